//! What an observation of the cluster means to the user, given what the user wants. A pure function.

use envd_api::control::{Failure, Observation};
use gateway_api::{
    Goal, Status,
    instance::{HeldUp, HeldUpReason, WaitReason},
    job::{EndCause, TaskEnd},
};

/// The status of an instance whose goal envd is working towards.
pub(super) fn status(goal: Goal, has_command: bool, observation: &Observation) -> Status {
    match goal {
        Goal::Running => running(has_command, observation),
        Goal::Stopped => stopped(has_command, observation),
        Goal::Deleted => Status::Deleting { held_up: held_up(observation) },
    }
}

fn running(has_command: bool, observation: &Observation) -> Status {
    match observation {
        Observation::Absent | Observation::Deleting => {
            waiting(WaitReason::StartingUp, "the cluster prepares it")
        }
        Observation::Pulling { done_bytes, total_bytes } => {
            Status::Pulling { done_bytes: *done_bytes, total_bytes: *total_bytes }
        }
        // Stopping on the way to running is the first half of a restart.
        Observation::Starting | Observation::Stopping => Status::Starting,
        Observation::Running { since } => Status::Running { since: *since },
        // Without a command nothing ends by itself: the cluster starts it again.
        Observation::Exited { .. } if !has_command => Status::Starting,
        Observation::Exited { exit_code: 0, .. } => Status::Succeeded,
        Observation::Exited { exit_code, out_of_memory } => Status::Failed {
            reason: ended(*exit_code, *out_of_memory),
            exit_code: Some(*exit_code),
            cause: Some(exit_cause(*exit_code, *out_of_memory)),
        },
        Observation::Failed { failure: Failure::EngineUnreachable, message, .. } => {
            waiting(WaitReason::EngineUnreachable, message)
        }
        Observation::Failed { retrying: true, message, .. } => waiting(WaitReason::Retrying, message),
        Observation::Failed { retrying: false, failure, message } => cannot(*failure, message),
    }
}

fn stopped(has_command: bool, observation: &Observation) -> Status {
    match observation {
        Observation::Absent => Status::Stopped { exit_code: None },
        Observation::Exited { exit_code, .. } => {
            Status::Stopped { exit_code: has_command.then_some(*exit_code) }
        }
        Observation::Failed { retrying: false, failure, message } => cannot(*failure, message),
        Observation::Pulling { .. }
        | Observation::Starting
        | Observation::Running { .. }
        | Observation::Stopping
        | Observation::Failed { retrying: true, .. }
        | Observation::Deleting => Status::Stopping { held_up: held_up(observation) },
    }
}

/// What keeps the cluster from stopping or deleting it for now.
fn held_up(observation: &Observation) -> Option<HeldUp> {
    let Observation::Failed { failure, message, retrying: true } = observation else { return None };
    let reason = match failure {
        Failure::EngineUnreachable => HeldUpReason::EngineUnreachable,
        Failure::BadImage
        | Failure::ImageNotFound
        | Failure::OverDiskLimit
        | Failure::Lost
        | Failure::DiskFull
        | Failure::Refused
        | Failure::Engine => HeldUpReason::Retrying,
    };
    Some(HeldUp { reason, message: message.clone() })
}

/// The status of an instance that the cluster could not take for now.
pub(super) fn not_taken(goal: Goal, message: String) -> Status {
    let held_up = |message| Some(HeldUp { reason: HeldUpReason::Retrying, message });
    match goal {
        Goal::Running => Status::Waiting { reason: WaitReason::Retrying, message },
        Goal::Stopped => Status::Stopping { held_up: held_up(message) },
        Goal::Deleted => Status::Deleting { held_up: held_up(message) },
    }
}

/// Whether its container has ended for good, or there will be none: what it held is free.
pub(super) fn is_over(status: &Status) -> bool {
    matches!(status, Status::Stopped { .. } | Status::Succeeded | Status::Failed { .. })
}

/// How a task ended, given that it did.
pub(super) fn task_end(goal: Goal, observation: &Observation) -> Option<TaskEnd> {
    let end =
        |cause, exit_code, message: &str| Some(TaskEnd { cause, exit_code, message: message.to_owned() });
    match observation {
        _ if goal != Goal::Running => end(EndCause::Stopped, None, ""),
        Observation::Exited { exit_code: 0, .. } => end(EndCause::Succeeded, Some(0), ""),
        Observation::Exited { exit_code, out_of_memory } => {
            let cause = exit_cause(*exit_code, *out_of_memory);
            end(cause, Some(*exit_code), &ended(*exit_code, *out_of_memory))
        }
        Observation::Failed { failure, message, .. } => end(start_cause(*failure), None, message),
        Observation::Absent
        | Observation::Pulling { .. }
        | Observation::Starting
        | Observation::Running { .. }
        | Observation::Stopping
        | Observation::Deleting => None,
    }
}

/// How a task ended that the cluster does not take.
pub(super) fn cannot_start(status: &Status) -> Option<TaskEnd> {
    let Status::Failed { reason, exit_code, .. } = status else { return None };
    Some(TaskEnd { cause: EndCause::CannotStart, exit_code: *exit_code, message: reason.clone() })
}

fn cannot(failure: Failure, message: &str) -> Status {
    Status::Failed { reason: message.to_owned(), exit_code: None, cause: Some(start_cause(failure)) }
}

fn exit_cause(exit_code: i32, out_of_memory: bool) -> EndCause {
    match exit_code {
        _ if out_of_memory => EndCause::OutOfMemory,
        129..=192 => EndCause::Signal,
        _ => EndCause::ExitCode,
    }
}

fn start_cause(failure: Failure) -> EndCause {
    match failure {
        Failure::BadImage | Failure::ImageNotFound => EndCause::Image,
        Failure::OverDiskLimit => EndCause::OverDiskLimit,
        Failure::Lost => EndCause::Lost,
        Failure::EngineUnreachable | Failure::DiskFull | Failure::Refused | Failure::Engine => {
            EndCause::CannotStart
        }
    }
}

fn ended(exit_code: i32, out_of_memory: bool) -> String {
    if out_of_memory {
        "the command needed more memory than the instance has and was killed".to_owned()
    } else {
        match exit_code {
            127 => "the command was not found (exit code 127)".to_owned(),
            128..=192 => format!("the command was ended by signal {}", exit_code - 128),
            code => format!("the command ended with exit code {code}"),
        }
    }
}

fn waiting(reason: WaitReason, message: &str) -> Status {
    Status::Waiting { reason, message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_for_every_goal_and_observation() {
        let failed = |failure, retrying| Observation::Failed { failure, message: "why".to_owned(), retrying };
        let observations = [
            Observation::Absent,
            Observation::Pulling { done_bytes: 1, total_bytes: Some(2) },
            Observation::Starting,
            Observation::Running { since: jiff::Timestamp::UNIX_EPOCH },
            Observation::Stopping,
            Observation::Exited { exit_code: 0, out_of_memory: false },
            Observation::Exited { exit_code: 3, out_of_memory: false },
            Observation::Exited { exit_code: 137, out_of_memory: true },
            failed(Failure::ImageNotFound, false),
            failed(Failure::EngineUnreachable, true),
            failed(Failure::Engine, true),
            Observation::Deleting,
        ];
        let mut table = Vec::new();
        for (goal, has_command) in
            [(Goal::Running, false), (Goal::Running, true), (Goal::Stopped, true), (Goal::Deleted, false)]
        {
            for observation in &observations {
                let seen = serde_json::to_string(observation).unwrap();
                let shown = serde_json::to_string(&status(goal, has_command, observation)).unwrap();
                let command = if has_command { "with a command" } else { "no command" };
                table.push(format!("{goal:?}, {command}: {seen}\n    {shown}"));
            }
        }
        insta::assert_snapshot!(table.join("\n"));
    }
}
