//! Every command line that the guides show is one that `berth` understands.

use std::{fs, path::Path};

use clap::{Parser as _, error::ErrorKind};

use super::Cli;

#[test]
fn the_guides_show_only_commands_that_there_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut guides = vec![root.join("README.md")];
    for folder in ["docs", "docs/zh"] {
        let found = fs::read_dir(root.join(folder)).unwrap().map(|file| file.unwrap().path());
        guides.extend(found.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    }
    let (mut seen, mut wrong) = (0, Vec::new());
    for guide in guides {
        for line in command_lines(&fs::read_to_string(&guide).unwrap()) {
            seen += 1;
            if let Err(error) = understood(&line) {
                wrong.push(format!("{}: `{line}`: {error}", guide.display()));
            }
        }
    }
    assert!(seen > 100, "only {seen} command lines were found");
    assert_eq!(wrong, [] as [String; 0], "\n{}", wrong.join("\n"));
}

#[test]
fn a_command_that_there_is_not_is_found() {
    let text =
        "Use `berth token\nadd laptop`.\n```\nbin/berth create a --no-such 1 # or `berth nodez`\n```\n";
    let lines = command_lines(text);
    assert_eq!(lines, ["berth token add laptop", "berth create a --no-such 1", "berth nodez"]);
    assert!(lines.iter().all(|line| understood(line).is_err()));
}

/// Those in blocks of code, and those within a text or a comment that are marked as code.
fn command_lines(text: &str) -> Vec<String> {
    let (mut found, mut prose, mut in_block) = (Vec::new(), String::new(), false);
    for line in text.lines().chain([""]) {
        let line = line.trim();
        let ends_prose = line.is_empty() || line.starts_with("```");
        if ends_prose && !in_block {
            found.extend(marked(&prose));
            prose.clear();
        }
        if line.starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            let (command, comment) = line.split_once(" #").unwrap_or((line, ""));
            let command = command.strip_prefix("bin/").unwrap_or(command).trim();
            found.extend(command.starts_with("berth ").then(|| command.to_owned()));
            found.extend(marked(comment));
        } else {
            prose = format!("{prose} {line}");
        }
    }
    found
}

fn marked(text: &str) -> Vec<String> {
    let code = text.split('`').skip(1).step_by(2);
    code.filter(|code| code.starts_with("berth ")).map(str::to_owned).collect()
}

/// A text may leave the rest of a command to its reader, and have words in capitals for what is theirs to say.
fn understood(line: &str) -> Result<(), clap::Error> {
    let words = line.split(' ').filter(|word| *word != "…");
    let words: Vec<_> = words.map(|word| word.split('|').next().unwrap_or(word)).collect();
    let stands_for = |word: &&str| word.len() > 1 && word.chars().all(|letter| letter.is_ascii_uppercase());
    match Cli::try_parse_from(&words).map_err(|error| (error.kind(), error)) {
        Ok(_)
        | Err((
            ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            | ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion,
            _,
        )) => Ok(()),
        Err((ErrorKind::InvalidValue | ErrorKind::ValueValidation, _)) if words.iter().any(stands_for) => {
            Ok(())
        }
        Err((_, error)) => Err(error),
    }
}
