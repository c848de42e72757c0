//! What went wrong, as the user reads it: `error:` says what and why, `hint:` what to do.

use std::{
    error::Error,
    fmt::{self, Write as _},
    io,
    process::ExitCode,
};

use gateway_api::{Code, client::ClientError};
use jobfile::Level;

use crate::{output, words::Words};

/// What the command ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) u8);

impl Status {
    pub(crate) const DONE: Self = Self(0);
    pub(crate) const FAILED: Self = Self(1);
    pub(crate) const BERTH_FAILED: Self = Self(125);
    pub(crate) const NO_SUCH_COMMAND: Self = Self(127);
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        status.0.into()
    }
}

/// An error of the command's own, already in the user's language.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
}

impl fmt::Display for Said {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.what)
    }
}

impl Error for Said {}

/// Tells the user, and gives `status` back.
pub(crate) fn report(error: &anyhow::Error, words: Words, status: Status) -> Status {
    // Whoever closed our output has all that they wanted.
    let closed = |cause: &(dyn Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    if error.downcast_ref::<ClientError>().is_none() && error.chain().any(closed) {
        return Status::DONE;
    }
    output::say(&render(error, words, output::colours()));
    status
}

/// The lines for standard error.
pub(crate) fn render(error: &anyhow::Error, words: Words, colours: bool) -> String {
    let (what, hint, request_id) = if let Some(said) = error.downcast_ref::<Said>() {
        (said.what.clone(), said.hint.clone(), None)
    } else if let Some(error) = error.downcast_ref::<ClientError>() {
        client_error(error, words)
    } else {
        (format!("{error:#}"), None, None)
    };
    let mut lines = String::new();
    if let Some(ClientError::Problem(problem)) = error.downcast_ref() {
        for note in problem.notes.iter().filter(|note| note.level == "error") {
            let (level, (what, hint)) = words.job_note("", note);
            let _ = writeln!(lines, "{}", remark(level, &what, hint.as_deref(), words, colours));
        }
    }
    lines.push_str(&remark(Level::Error, &what, hint.as_deref(), words, colours));
    if let Some(id) = request_id {
        let _ = write!(lines, "\n{}{}", words.request_id(), output::printable(&id));
    }
    lines
}

/// What is so, and on a second line what to do.
pub(crate) fn remark(level: Level, what: &str, hint: Option<&str>, words: Words, colours: bool) -> String {
    let mark = |word: &str, colour: &str| {
        if colours { format!("\x1b[1;{colour}m{word}\x1b[0m") } else { word.to_owned() }
    };
    let colour = if level == Level::Error { "31" } else { "33" };
    let mut lines = format!("{}{}", mark(words.level(level), colour), output::printable(what));
    if let Some(hint) = hint {
        let _ = write!(lines, "\n{}{}", mark(words.hint(), "36"), output::printable(hint));
    }
    lines
}

/// What a call's failure means and what to do about it.
pub(crate) fn explain(error: &ClientError, words: Words) -> (String, Option<String>) {
    let (what, hint, _) = client_error(error, words);
    (what, hint)
}

/// The same for any failure of ours.
pub(crate) fn explain_any(error: &anyhow::Error, words: Words) -> (String, Option<String>) {
    if let Some(said) = error.downcast_ref::<Said>() {
        (said.what.clone(), said.hint.clone())
    } else if let Some(error) = error.downcast_ref::<ClientError>() {
        explain(error, words)
    } else {
        (format!("{error:#}"), None)
    }
}

fn client_error(error: &ClientError, words: Words) -> (String, Option<String>, Option<String>) {
    match error {
        ClientError::Problem(problem) => {
            let (what, hint) = words.problem(problem);
            let shown =
                matches!(problem.code, Code::Internal | Code::Unknown) && !problem.request_id.is_empty();
            (what, hint, shown.then(|| problem.request_id.clone()))
        }
        ClientError::Unreachable { url, cause } => {
            let mut last: &dyn Error = cause.as_ref();
            while let Some(deeper) = last.source() {
                last = deeper;
            }
            (words.unreachable(url, &last.to_string()), Some(words.hint_unreachable()), None)
        }
        ClientError::BadAddress { address, reason } => {
            (words.bad_address(address, reason), Some(words.hint_login()), None)
        }
        ClientError::Protocol { url, what } => {
            (words.not_a_gateway(url, what), Some(words.hint_not_a_gateway()), None)
        }
        ClientError::TooLate { limit, .. } => {
            (words.too_late(limit.as_secs()), Some(words.hint_too_late()), None)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gateway_api::{Problem, client::Client, job::JobNote};
    use serde_json::Value;

    use super::*;
    use crate::words::Language;

    /// All codes there are, by the API's own description.
    fn codes() -> Vec<Code> {
        let document: Value = serde_json::from_str(include_str!("../../api/openapi.json")).unwrap();
        serde_json::from_value(document["components"]["schemas"]["Code"]["enum"].clone()).unwrap()
    }

    /// What gateways answer, written down by a test of the gateway.
    fn problems() -> Value {
        serde_json::from_str(include_str!("../../api/problems.json")).unwrap()
    }

    fn problem(code: Code) -> Problem {
        Problem {
            code,
            message: "what the gateway says".to_owned(),
            hint: Some("what the gateway advises".to_owned()),
            pointer: None,
            params: [].into(),
            notes: Vec::new(),
            request_id: "req_1".to_owned(),
        }
    }

    fn both(errors: impl Fn() -> Vec<anyhow::Error>) -> String {
        let mut text = Vec::new();
        for language in [Language::English, Language::Chinese] {
            text.extend(errors().iter().map(|error| render(error, Words::new(language), false)));
        }
        text.join("\n\n")
    }

    #[test]
    fn bad_input_in_both_languages() {
        let mut text = String::new();
        for (what, problem) in problems()["bad_input"].as_object().unwrap() {
            let problem: Problem = serde_json::from_value(problem.clone()).unwrap();
            let _ = writeln!(text, "{what}\n{}\n", both(|| vec![ClientError::from(problem.clone()).into()]));
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn every_error_in_both_languages() {
        let all: Vec<Problem> = serde_json::from_value(problems()["all"].clone()).unwrap();
        let newer = problem(Code::Unknown);
        let all = || all.iter().chain([&newer]).map(|problem| ClientError::from(problem.clone()).into());
        insta::assert_snapshot!(both(|| all().collect()));
    }

    /// What only the gateway can know about a file, such as the site's storages.
    #[test]
    fn mistakes_in_a_file_are_told_by_their_codes() {
        let note = |code: &str, params: &[(&str, &str)]| JobNote {
            level: "error".to_owned(),
            code: code.to_owned(),
            line: Some(3),
            column: Some(5),
            pointer: "/dataDir".to_owned(),
            message: "what the gateway says".to_owned(),
            hint: Some("what the gateway advises".to_owned()),
            params: params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        };
        let outside = [("value", "/mnt/x"), ("known", "/userhome")];
        let notes = vec![note("outside_storage", &outside), note("of_a_newer_gateway", &[])];
        let bad = Problem { notes, ..problem(Code::BadJobFile) };
        insta::assert_snapshot!(both(|| vec![ClientError::from(bad.clone()).into()]));
    }

    #[test]
    fn names_of_each_kind_have_their_own_rule() {
        let names = || {
            let kinds = ["instance", "user", "group", "workspace", "token"].map(|kind| {
                let params = [("kind", kind), ("name", "a/b")];
                let params = params.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
                ClientError::from(Problem { params, ..problem(Code::BadName) }).into()
            });
            kinds.into()
        };
        insta::assert_snapshot!(both(names));
    }

    #[test]
    fn a_problem_without_params_still_reads_well() {
        let bare = |code| Problem { hint: None, ..problem(code) };
        let chinese = Words::new(Language::Chinese);
        for code in codes() {
            let (what, _) = chinese.problem(&bare(code));
            assert!(!what.is_empty() && !what.contains("``") && !what.contains("（）"), "{code:?}: {what}");
        }
    }

    #[test]
    fn other_errors_in_both_languages() {
        let url = || "http://localhost:8080".to_owned();
        let errors = || {
            vec![
                ClientError::Unreachable { url: url(), cause: "Connection refused (os error 111)".into() }
                    .into(),
                ClientError::Protocol { url: url(), what: "status 502 Bad Gateway".to_owned() }.into(),
                Client::new("localhost", None).unwrap_err().into(),
                ClientError::TooLate { what: "it".to_owned(), limit: Duration::from_hours(1) }.into(),
                anyhow::anyhow!("inner").context("`config.toml` cannot be read"),
            ]
        };
        insta::assert_snapshot!(both(errors));
    }

    #[test]
    fn colours_are_for_terminals_and_texts_cannot_bring_their_own() {
        let said = Said { what: "\x1b[31mred\x07".to_owned(), hint: None };
        assert_eq!(
            render(&said.into(), Words::new(Language::English), true),
            "\x1b[1;31merror: \x1b[0m[31mred"
        );
    }
}
