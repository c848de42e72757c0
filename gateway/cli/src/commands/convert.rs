//! `berth convert`: what a job file from elsewhere means here.
//!
//! It needs no gateway: without one, paths and shares that only a site knows are taken as they are. Whoever is signed in
//! gets the same reading as by a submission. The job goes to standard output in our own YAML, everything about it to
//! standard error.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    string::FromUtf8Error,
};

use clap::Args;
use gateway_api::{
    convert::{ConvertJob, Converted},
    job::JobNote,
};
use jobfile::{LARGEST_BYTES, Level, Reading, Site};

use crate::{
    config,
    failure::{self, Said, Status},
    output,
    words::Words,
};

#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// A job file (OpenPAI v1 or v2, DLC parameters, Determined or our own), or the address of one; `-` is standard
    /// input
    file: PathBuf,
}

pub(crate) async fn convert(arguments: &Convert, words: Words) -> anyhow::Result<Status> {
    let name = arguments.file.display().to_string();
    let bytes = bytes_of(&name, words).await?;
    let (lines, file) = if let Some(converted) = at_the_site(&bytes, words).await {
        (site_notes(&name, &converted.notes, words, output::colours()), converted.file)
    } else {
        let reading = jobfile::read(&bytes, &Site::default());
        (notes(&name, &reading, words, output::colours()), reading.spec.as_ref().map(jobfile::write))
    };
    for line in &lines {
        output::say(line);
    }
    let Some(file) = file else { return Ok(Status::FAILED) };
    output::data(file.trim_end())?;
    Ok(Status::DONE)
}

/// What the gateway makes of a file; `None` where nobody is signed in or it does not answer.
async fn at_the_site(bytes: &[u8], words: Words) -> Option<Converted> {
    let file = str::from_utf8(bytes).ok()?.to_owned();
    let client = config::client(words).ok()?;
    let answer = client.convert_job(&ConvertJob { file }).await;
    answer
        .map_err(|error| {
            let (cause, _) = failure::explain(&error, words);
            output::say(&output::printable(&words.site_not_asked(&cause)));
        })
        .ok()
}

/// What a file holds, or an address leads to.
pub(super) async fn bytes_of(name: &str, words: Words) -> anyhow::Result<Vec<u8>> {
    let read = if name.starts_with("http://") || name.starts_with("https://") {
        let fetched = gateway_api::client::fetch(name, LARGEST_BYTES + 1).await;
        fetched.map_err(|error| error.to_string())
    } else {
        read_file(Path::new(name)).map_err(|error| error.to_string())
    };
    read.map_err(|cause| Said { what: words.unreadable(name, &cause), hint: None }.into())
}

/// The same as text.
pub(super) async fn text_of(name: &str, words: Words) -> anyhow::Result<String> {
    let unreadable =
        |error: FromUtf8Error| Said { what: words.unreadable(name, &error.to_string()), hint: None };
    Ok(String::from_utf8(bytes_of(name, words).await?).map_err(unreadable)?)
}

/// A file, or standard input for `-`.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    if path == Path::new("-") { bounded(io::stdin().lock()) } else { File::open(path).and_then(bounded) }
}

/// As much as is needed to see that a file is too large.
fn bounded(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LARGEST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The lines for standard error: what is wrong, what to write instead, and a last line that counts.
pub(super) fn notes(file: &str, reading: &Reading, words: Words, colours: bool) -> Vec<String> {
    let said = reading.notes.iter().map(|note| (note.level, words.note(file, note)));
    lines(file, said, words, colours)
}

/// The same about what the gateway says.
pub(super) fn site_notes(file: &str, notes: &[JobNote], words: Words, colours: bool) -> Vec<String> {
    lines(file, notes.iter().map(|note| words.job_note(file, note)), words, colours)
}

fn lines(
    file: &str,
    said: impl Iterator<Item = (Level, (String, Option<String>))>,
    words: Words,
    colours: bool,
) -> Vec<String> {
    let mut errors = 0;
    let mut lines = Vec::new();
    for (level, (what, hint)) in said {
        errors += usize::from(level == Level::Error);
        lines.push(failure::remark(level, &what, hint.as_deref(), words, colours));
    }
    if errors > 0 {
        lines.push(words.no_job(file, errors));
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs};

    use jobfile::{Code, Note, Place};

    use super::*;
    use crate::words::Language;

    fn both(file: &str, bytes: &[u8]) -> String {
        let reading = jobfile::read(bytes, &Site::default());
        let mut text = [Language::English, Language::Chinese]
            .map(|language| notes(file, &reading, Words::new(language), false).join("\n"));
        text[1].push('\n');
        format!("{}\n{}", text.join("\n\n"), reading.spec.as_ref().map(jobfile::write).unwrap_or_default())
    }

    #[test]
    fn files_from_elsewhere() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../jobfile/tests/files");
        for name in [
            "hello-world.json",
            "imagenet-4gpu.json",
            "two-roles.json",
            "protocol-v2.yaml",
            "sample_job.params",
            "shell.yaml",
            "berth.yaml",
        ] {
            insta::assert_snapshot!(name, both(name, &fs::read(folder.join(name)).unwrap()));
        }
    }

    #[test]
    fn all_mistakes_at_once() {
        let file = r#"{
  "jobName": "bad name",
  "image": "",
  "retryCount": -1,
  "codeDir": "hdfs://10.0.0.1:9000/code",
  "taskRoles": [
    {"name": "ps.1", "taskNumber": 0, "cpuNumber": "four", "memoryMB": 50, "shmMB": 128, "gpuNumbr": 1},
    {"name": "worker", "command": "  "}
  ]
}"#;
        insta::assert_snapshot!(both("job.json", file.as_bytes()));
    }

    #[test]
    fn every_code_in_both_languages() {
        let params = [
            ("value", "VALUE"),
            ("of", "role"),
            ("limit", "LIMIT"),
            ("example", "key: EXAMPLE"),
            ("what", "WHAT"),
            ("expected", "whole_number"),
            ("found", "text"),
            ("least", "LEAST"),
            ("most", "MOST"),
            ("rule", "RULE"),
            ("known", "KNOWN, ONES"),
            ("instead", "INSTEAD"),
            ("memory", "MEMORY"),
            ("other", "OTHER"),
            ("nearest", "NEAREST"),
            ("why", "registry_login"),
            ("also", "ALSO"),
        ];
        let params: BTreeMap<_, _> =
            params.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut lines = Vec::new();
        for code in Code::ALL {
            let place = Some(Place { line: 3, column: 5 });
            let pointer = "/taskRoles/0/name".to_owned();
            let note = Note { level: Level::Error, code, place, pointer, params: params.clone() };
            for words in [Language::English, Language::Chinese].map(Words::new) {
                let (what, hint) = words.note("job.yaml", &note);
                lines.push(format!("{what}\n  {}", hint.unwrap_or_default()));
            }
        }
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_file_that_is_too_large_is_not_read_whole() {
        let endless = io::repeat(b'a');
        let bytes = bounded(endless).unwrap();
        assert_eq!(bytes.len(), LARGEST_BYTES + 1);
        let reading = jobfile::read(&bytes, &Site::default());
        assert_eq!(reading.notes[0].code, Code::FileTooLarge);
    }
}
