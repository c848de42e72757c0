//! The connection to the engine: every call has a name and a limit, and every error becomes one of ours.

use std::{
    error::Error,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bollard::{API_DEFAULT_VERSION, Docker, errors::Error as DockerError};
use tokio::{sync::Semaphore, time::timeout};

use crate::runtime::RuntimeError;

/// The most that saying hello may take.
const CONNECT: Duration = Duration::from_secs(5);
/// bollard's own limit on the head of an answer: longer than any of ours, so that ours decide.
const OUTERMOST: Duration = Duration::from_mins(10);
/// Calls at once; more wait for their turn, which does not count towards their limit.
const CALLS_MAX: usize = 16;
/// What may take longer than this, such as a stop, has turns of its own: a crowd of stops must not hold up the looks
/// that tell whether the engine is there.
const QUICK: Duration = Duration::from_secs(10);
/// The most that is kept of what the engine or a registry says.
const TEXT_MAX: usize = 1000;

/// One Docker engine behind a unix socket.
#[derive(Debug)]
pub(super) struct Engine {
    socket: String,
    /// A client that speaks the engine's version; forgotten when the engine goes away, since it may come back as
    /// another version.
    docker: Mutex<Option<Docker>>,
    quick: Semaphore,
    slow: Semaphore,
}

impl Engine {
    pub(super) fn new(socket: String) -> Self {
        let turns = || Semaphore::new(CALLS_MAX);
        Self { socket, docker: Mutex::new(None), quick: turns(), slow: turns() }
    }

    pub(super) async fn docker(&self) -> Result<Docker, RuntimeError> {
        let known = self.docker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(docker) = known {
            return Ok(docker);
        }
        let docker = Docker::connect_with_unix(&self.socket, OUTERMOST.as_secs(), API_DEFAULT_VERSION)
            .map_err(runtime_error)?;
        let docker = timeout(CONNECT, docker.negotiate_version())
            .await
            .map_err(|_| too_slow("hello", CONNECT))?
            .map_err(runtime_error)?;
        *self.docker.lock().unwrap_or_else(PoisonError::into_inner) = Some(docker.clone());
        Ok(docker)
    }

    /// One call within `limit`; `what` names it in errors.
    pub(super) async fn call<T>(
        &self,
        what: &'static str,
        limit: Duration,
        call: impl AsyncFnOnce(Docker) -> Result<T, DockerError>,
    ) -> Result<T, RuntimeError> {
        self.raw(what, limit, call).await?.map_err(runtime_error)
    }

    /// Like [`Self::call`], with `None` when the engine answers with one of `statuses`.
    pub(super) async fn call_unless<T>(
        &self,
        what: &'static str,
        limit: Duration,
        statuses: &[u16],
        call: impl AsyncFnOnce(Docker) -> Result<T, DockerError>,
    ) -> Result<Option<T>, RuntimeError> {
        match self.raw(what, limit, call).await? {
            Err(DockerError::DockerResponseServerError { status_code, .. })
                if statuses.contains(&status_code) =>
            {
                Ok(None)
            }
            answer => answer.map(Some).map_err(runtime_error),
        }
    }

    async fn raw<T>(
        &self,
        what: &'static str,
        limit: Duration,
        call: impl AsyncFnOnce(Docker) -> Result<T, DockerError>,
    ) -> Result<Result<T, DockerError>, RuntimeError> {
        let turns = if limit > QUICK { &self.slow } else { &self.quick };
        let _turn = turns.acquire().await;
        let answer = timeout(limit, async { Ok(call(self.docker().await?).await) })
            .await
            .unwrap_or_else(|_| Err(too_slow(what, limit)));
        if let Ok(Err(error)) = &answer
            && (is_away(error) || is_nonsense(error))
        {
            *self.docker.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        answer
    }
}

pub(super) fn too_slow(what: &str, limit: Duration) -> RuntimeError {
    RuntimeError::Unreachable { why: format!("no answer to `{what}` within {} s", limit.as_secs()) }
}

/// Whether nothing was said by an engine at all.
fn is_away(error: &DockerError) -> bool {
    matches!(
        error,
        DockerError::HyperLegacyError { .. }
            | DockerError::HyperResponseError { .. }
            | DockerError::IOError { .. }
            | DockerError::RequestTimeoutError
            | DockerError::SocketNotFoundError(_)
    )
}

/// Whether an answer came that no engine gives.
fn is_nonsense(error: &DockerError) -> bool {
    matches!(
        error,
        DockerError::JsonDataError { .. }
            | DockerError::JsonSerdeError { .. }
            | DockerError::StrParseError { .. }
            | DockerError::APIVersionParseError {}
    )
}

/// Our error for the engine's.
#[expect(clippy::needless_pass_by_value, reason = "it is used as a function in `map_err`")]
pub(super) fn runtime_error(error: DockerError) -> RuntimeError {
    let why = text(&error);
    if is_disk_full(&why) {
        return RuntimeError::DiskFull;
    }
    if is_away(&error) {
        return RuntimeError::Unreachable { why };
    }
    if is_nonsense(&error) {
        return RuntimeError::Unreachable { why: format!("what it says is not understood: {why}") };
    }
    if let DockerError::DockerResponseServerError { status_code, .. } = error {
        // Conflicts and what is missing pass when things move; a bad request stays a bad request.
        return match status_code {
            400 | 403 => RuntimeError::Refused { why },
            _ if is_stuck(&why) => RuntimeError::Stuck { why },
            _ => RuntimeError::Engine { why },
        };
    }
    RuntimeError::Engine { why }
}

pub(super) fn is_disk_full(why: &str) -> bool {
    why.contains("no space left on device") || why.contains("disk quota exceeded")
}

/// Whether a start is refused since containerd still has the run before, or only its name, and the engine believes it to be
/// over.
fn is_stuck(why: &str) -> bool {
    (why.contains("task") && why.contains("already exists")) || why.contains("id already in use")
}

/// What the engine said, with the causes that its client keeps behind it, in bounds.
pub(super) fn text(error: &DockerError) -> String {
    if let DockerError::DockerResponseServerError { message, .. } = error {
        return bounded(message);
    }
    if let DockerError::DockerStreamError { error } = error {
        return bounded(error);
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let next_text = next.to_string();
        if !text.contains(&next_text) {
            text = format!("{text}: {next_text}");
        }
        cause = next.source();
    }
    bounded(&text)
}

fn bounded(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(TEXT_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_the_engine_holds_on_to_is_told_from_other_trouble() {
        let is_stuck = |message: &str| {
            let error =
                DockerError::DockerResponseServerError { status_code: 500, message: message.to_owned() };
            matches!(runtime_error(error), RuntimeError::Stuck { .. })
        };
        assert!(is_stuck("AlreadyExists: task 0123 already exists: unknown"));
        assert!(is_stuck("id already in use"));
        assert!(!is_stuck("container 0123 already exists"));
        assert!(!is_stuck("network bridge not found"));
    }
}
