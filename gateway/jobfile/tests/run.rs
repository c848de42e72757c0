//! What a job does once it is read: its variables, when it is over, and whether it is tried again.

#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::collections::BTreeMap;

use jobfile::{
    Dialect, JobSpec, Site,
    outcome::{
        Behaviour, MOST_FREE_RETRIES, NODE_LOST, Next, OUT_OF_MEMORY, RoleTasks, Task, Tries, Verdict,
        behaviour, judge, retry, task_end,
    },
    read,
    spec::{Command, Completion, Purpose, Retries, Source},
    variables::{Folders, Me, Placement, TaskPlace, environment, expand, expand_spec, variables},
};

fn spec(file: &str) -> JobSpec {
    read(file.as_bytes(), &Site::default()).spec.unwrap()
}

fn sample(name: &str) -> JobSpec {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name);
    spec(&std::fs::read_to_string(path).unwrap())
}

fn placement(spec: &JobSpec) -> Placement {
    let mut number = 0;
    let mut place = |role: &str, task: u32, labels: &[&str]| {
        number += 1;
        TaskPlace {
            host: format!("train-{role}-{task}"),
            ip: Some(format!("10.0.0.{number}")),
            container_id: format!("container-{number}"),
            ports: labels
                .iter()
                .map(|label| ((*label).to_owned(), vec![30000 + number, 31000 + number]))
                .collect(),
        }
    };
    let roles = spec.roles.iter().map(|role| {
        let labels: Vec<_> = role.ports.iter().map(|port| port.label.as_str()).collect();
        (0..role.tasks).map(|task| place(&role.name, task, &labels)).collect()
    });
    Placement {
        user: "alice".to_owned(),
        job: "train".to_owned(),
        job_id: "job_1".to_owned(),
        gateway: "http://berth.example.org".to_owned(),
        roles: roles.collect(),
        folders: Folders { work: "/root".to_owned(), ..Folders::default() },
    }
}

fn shown(variables: &BTreeMap<String, String>) -> String {
    variables.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("\n")
}

#[test]
fn variables_of_openpai() {
    let spec = sample("two-roles.json");
    let all = variables(&spec, &placement(&spec), Me { role: 1, task: 1 }).unwrap();
    insta::assert_snapshot!(shown(&all));
    let server = variables(&spec, &placement(&spec), Me { role: 0, task: 1 }).unwrap();
    assert_eq!(server["PAI_CONTAINER_SSH_PORT"], "30002");
    // The second release calls the job by its owner's name too.
    let v2 = sample("protocol-v2.yaml");
    let all = variables(&v2, &placement(&v2), Me { role: 0, task: 0 }).unwrap();
    assert_eq!(
        (all["PAI_JOB_NAME"].as_str(), all["PAI_FRAMEWORK_NAME"].as_str()),
        ("alice~train", "alice~train")
    );
    assert_eq!(variables(&v2, &placement(&v2), Me { role: 0, task: 1 }), None);
}

#[test]
fn variables_of_dlc_and_determined() {
    let tensorflow =
        "name=a\nkind=TFJob\ncommand=x\nworker_count=2\nworker_image=u\nworker_gpu=4\nps_count=1\nps_image=u";
    for (name, spec, me) in [
        ("pytorch", sample("sample_job.params"), Me { role: 0, task: 1 }),
        ("tensorflow", spec(tensorflow), Me { role: 0, task: 0 }),
        ("determined", sample("shell.yaml"), Me { role: 0, task: 0 }),
    ] {
        insta::assert_snapshot!(name, shown(&variables(&spec, &placement(&spec), me).unwrap()));
    }
}

#[test]
fn the_platform_wins_and_labels_are_spelt_twice() {
    let file = r#"{"jobName": "a", "image": "u", "jobEnvs": {"PAI_USER_NAME": "root", "OUT": "$PAI_OUTPUT_DIR/x"},
        "taskRoles": [{"name": "main", "command": "x", "portList": [{"label": "a.b"}]}]}"#;
    let spec = spec(file);
    let all = environment(&spec, &placement(&spec), Me { role: 0, task: 0 }).unwrap();
    assert_eq!(all["PAI_USER_NAME"], "alice");
    assert_eq!(all["OUT"], "/userhome/Output/train/x");
    assert_eq!(all["PAI_PORT_LIST_main_0_a.b"], "30001,31001");
    assert_eq!(all["PAI_PORT_LIST_main_0_a_b"], "30001,31001");
}

#[test]
fn fields_are_expanded_once() {
    let values = BTreeMap::from(
        [("PAI_JOB_NAME", "a"), ("PAI_LOOP", "$PAI_LOOP"), ("HOME", "/root")]
            .map(|(k, v)| (k.to_owned(), v.to_owned())),
    );
    for (text, expected) in [
        ("$PAI_JOB_NAME/${PAI_JOB_NAME}/x", "a/a/x"),
        ("$PAI_JOB_NAMES $PAI_OTHER ${PAI_OTHER", "$PAI_JOB_NAMES $PAI_OTHER ${PAI_OTHER"),
        ("$PAI_LOOP", "$PAI_LOOP"),
        ("$HOME 5$ $", "$HOME 5$ $"),
    ] {
        assert_eq!(expand(text, &values), expected);
    }
    let file = "berth: 1\nname: a\nimage: hub/$PAI_JOB_NAME\ncommand: echo $PAI_JOB_NAME\noutput_dir: /userhome/${PAI_JOB_NAME}\n";
    let expanded = expand_spec(&spec(file), &values);
    assert_eq!(expanded.roles[0].image.as_deref(), Some("hub/a"));
    assert_eq!(expanded.output_dir.unwrap().to_string(), "/userhome/a");
    // The shell has the variables itself.
    assert_eq!(expanded.roles[0].command, Command::Shell("echo $PAI_JOB_NAME".to_owned()));
}

#[test]
fn fields_may_name_what_is_known_at_submission() {
    let file = r#"{"jobName": "a", "image": "hub/$PAI_USER_NAME:$PAI_TASK_INDEX", "outputDir": "/userhome/$jobName/out",
        "taskRoles": [{"name": "main", "command": "echo $jobName"}]}"#;
    let spec = spec(file);
    let expanded = expand_spec(&spec, &jobfile::variables::known_before(&spec, "alice", "b"));
    assert_eq!(expanded.roles[0].image.as_deref(), Some("hub/alice:$PAI_TASK_INDEX"));
    assert_eq!(expanded.output_dir.unwrap().to_string(), "/userhome/b/out");
}

#[test]
fn a_folder_may_be_a_tasks_own() {
    let mut spec = sample("two-roles.json");
    spec.output_dir = Some(Source::Home("out/$PAI_TASK_ROLE_NAME/${PAI_TASK_INDEX}/$OTHER".to_owned()));
    let mut placement = placement(&spec);
    placement.folders.output = spec.output_dir.as_ref().map(ToString::to_string);
    let all = variables(&spec, &placement, Me { role: 1, task: 1 }).unwrap();
    assert_eq!(all["PAI_OUTPUT_DIR"], "/userhome/out/worker/1/$OTHER");
}

#[test]
fn a_job_that_only_waits_is_interactive() {
    for (command, purpose) in [
        ("sleep infinity", Purpose::Interactive),
        ("exec sleep infinity;", Purpose::Interactive),
        ("/bin/sleep inf", Purpose::Interactive),
        ("tail -f /dev/null", Purpose::Interactive),
        ("sleep 60", Purpose::Batch),
        ("python x.py && sleep infinity", Purpose::Batch),
    ] {
        let file = format!("berth: 1\nname: a\nimage: u\ncommand: {command}\n");
        assert_eq!(spec(&file).purpose, purpose, "{command}");
    }
}

// === outcome ===

const GOING: Task = Task::Going;
const DONE: Task = Task::Succeeded;
const FAILED: Task = Task::Failed { exit_code: 1 };

fn role(min_failed: Option<u32>, min_succeeded: Option<u32>, tasks: &[Task]) -> RoleTasks {
    RoleTasks { completion: Completion { min_failed, min_succeeded }, tasks: tasks.to_vec() }
}

#[test]
fn when_a_job_is_over() {
    let over = |by| Verdict::Succeeded { by };
    let failed = |role, task| Verdict::Failed { role, task, exit_code: 1 };
    for (roles, expected) in [
        // The first file's defaults: one failure fails, success waits for all.
        (vec![role(Some(1), None, &[GOING, DONE])], Verdict::Going),
        (vec![role(Some(1), None, &[DONE, DONE])], over(None)),
        (vec![role(Some(1), None, &[GOING, FAILED])], failed(0, 1)),
        (vec![role(Some(1), None, &[DONE]), role(Some(1), None, &[GOING])], Verdict::Going),
        // The second file's: one role's success is the job's.
        (vec![role(Some(1), Some(1), &[DONE]), role(Some(1), Some(2), &[GOING, GOING])], over(Some(0))),
        // Never: whatever fails, the job succeeds when all have ended.
        (vec![role(None, None, &[FAILED, FAILED])], over(None)),
        (vec![role(None, None, &[FAILED, GOING])], Verdict::Going),
        // Thresholds.
        (vec![role(Some(2), None, &[FAILED, GOING, GOING])], Verdict::Going),
        (vec![role(Some(2), None, &[FAILED, GOING, FAILED])], failed(0, 2)),
        (vec![role(Some(2), None, &[FAILED, DONE, DONE])], over(None)),
        (vec![role(None, Some(2), &[DONE, DONE, GOING])], over(Some(0))),
        // Both at once: a failure is not talked away.
        (vec![role(Some(1), Some(1), &[DONE, FAILED])], failed(0, 1)),
        (vec![role(Some(1), Some(1), &[Task::Stopped])], Verdict::Stopped),
        (vec![role(Some(1), Some(1), &[Task::Stopped]), role(Some(1), None, &[GOING])], Verdict::Going),
    ] {
        assert_eq!(judge(&roles), expected, "{roles:?}");
    }
}

#[test]
fn what_the_end_of_a_task_means() {
    for (purpose, exit_code, out_of_memory, expected) in [
        (Purpose::Batch, 0, false, DONE),
        (Purpose::Batch, 1, false, FAILED),
        (Purpose::Batch, 137, true, Task::Failed { exit_code: OUT_OF_MEMORY }),
        (Purpose::Batch, 143, false, Task::Failed { exit_code: 143 }),
        (Purpose::Interactive, 143, false, Task::Stopped),
        (Purpose::Interactive, 137, false, Task::Stopped),
        (Purpose::Interactive, 137, true, Task::Failed { exit_code: OUT_OF_MEMORY }),
        (Purpose::Interactive, 2, false, Task::Failed { exit_code: 2 }),
    ] {
        assert_eq!(task_end(purpose, exit_code, out_of_memory), expected);
    }
}

#[test]
fn whose_fault_an_exit_code_is() {
    for (codes, expected) in [
        (
            &[
                -100, -101, -110, -111, -120, -1000, -1001, -1002, -1003, -1006, -1205, NODE_LOST, 130, 131,
                137, 143, 223, 250, 251, 253,
            ][..],
            Behaviour::Transient,
        ),
        (
            &[
                -200,
                -210,
                -220,
                -230,
                -1004,
                -1005,
                -1100,
                OUT_OF_MEMORY,
                -1202,
                -1203,
                132,
                135,
                136,
                141,
                220,
                221,
                222,
                224,
                225,
                226,
                228,
                229,
                230,
                231,
                232,
                233,
                234,
                235,
                249,
                252,
                254,
            ],
            Behaviour::Permanent,
        ),
        (
            &[
                -300, -310, -1201, -1204, -8000, 1, 2, 126, 127, 128, 129, 133, 134, 138, 139, 140, 142, 144,
                219, 227, 236, 248, 255, 256,
            ],
            Behaviour::Unknown,
        ),
    ] {
        for &code in codes {
            assert_eq!(behaviour(code), expected, "{code}");
        }
    }
}

#[test]
fn whether_a_job_is_tried_again() {
    use Dialect::{Berth, Determined, Dlc, OpenpaiV1, OpenpaiV2};
    const COUNTED: Next = Next::Again { counted: true };
    const FREE: Next = Next::Again { counted: false };
    let failed = |exit_code| Verdict::Failed { role: 0, task: 0, exit_code };
    let done = Verdict::Succeeded { by: None };
    let tries = |counted, free| Tries { counted, free };
    for (dialect, retries, tries, verdict, expected) in [
        // Never on an error of the user's own.
        (OpenpaiV1, Retries::UpTo(0), tries(0, 0), failed(1), Next::Over),
        (OpenpaiV2, Retries::UpTo(2), tries(0, 0), failed(1), COUNTED),
        (OpenpaiV2, Retries::UpTo(2), tries(1, 5), failed(1), COUNTED),
        (OpenpaiV2, Retries::UpTo(2), tries(2, 0), failed(1), Next::Over),
        // The platform's own failures are not counted, and yet not retried for ever.
        (OpenpaiV1, Retries::UpTo(0), tries(0, 0), failed(NODE_LOST), FREE),
        (OpenpaiV1, Retries::UpTo(0), tries(0, 1), failed(137), FREE),
        (OpenpaiV1, Retries::UpTo(0), tries(0, MOST_FREE_RETRIES), failed(137), Next::Over),
        // What fails the same way again is not tried again.
        (OpenpaiV1, Retries::UpTo(5), tries(0, 0), failed(OUT_OF_MEMORY), Next::Over),
        (Berth, Retries::UpTo(5), tries(0, 0), failed(254), Next::Over),
        // −1 and −2.
        (OpenpaiV2, Retries::AfterFailure, tries(99, 0), failed(OUT_OF_MEMORY), COUNTED),
        (OpenpaiV2, Retries::AfterFailure, tries(0, 0), done, Next::Over),
        (OpenpaiV2, Retries::Always, tries(99, 0), done, COUNTED),
        (OpenpaiV2, Retries::Always, tries(0, 0), failed(1), COUNTED),
        // The others count what a command ended with, and nobody counts a machine that went away.
        (Berth, Retries::UpTo(1), tries(0, 0), failed(137), COUNTED),
        (Berth, Retries::UpTo(1), tries(1, 0), failed(137), Next::Over),
        (Berth, Retries::UpTo(0), tries(0, 0), failed(NODE_LOST), FREE),
        (Dlc, Retries::UpTo(0), tries(0, 1), failed(NODE_LOST), FREE),
        (Determined, Retries::UpTo(0), tries(0, MOST_FREE_RETRIES), failed(NODE_LOST), Next::Over),
        (Determined, Retries::UpTo(0), tries(0, 0), failed(1), Next::Over),
        // Who stopped it does not want it back.
        (OpenpaiV2, Retries::Always, tries(0, 0), Verdict::Stopped, Next::Over),
        (OpenpaiV2, Retries::UpTo(3), tries(0, 0), done, Next::Over),
    ] {
        assert_eq!(
            retry(dialect, retries, tries, verdict),
            expected,
            "{dialect:?} {retries:?} {tries:?} {verdict:?}"
        );
    }
}
