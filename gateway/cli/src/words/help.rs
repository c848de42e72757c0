//! The help in Chinese. It is written in English where the commands are; here stands each of its paragraphs in the
//! other language. A test finds those that are missing and those that nobody says any more.

use std::{collections::HashMap, sync::LazyLock};

use clap::{
    Arg, ArgAction, Command,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::help_table::CHINESE;

static TABLE: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| CHINESE.iter().copied().collect());

const TEMPLATE: &str = "{about-with-newline}\n用法：{usage}\n\n{all-args}{after-help}";

/// The whole command line with its help in Chinese.
pub(crate) fn in_chinese(command: Command) -> Command {
    let mut whole = translated(command);
    // Clap's own command is there only now.
    whole.build();
    whole.mut_subcommand("help", |help| help.about("显示本帮助，或某个命令的帮助"))
}

fn translated(command: Command) -> Command {
    let (about, long) = (command.get_about().map(chinese), command.get_long_about().map(chinese));
    let after = command.get_after_help().map(chinese);
    let is_whole = command.get_version().is_some();
    let mut command = command
        .help_template(TEMPLATE)
        .subcommand_help_heading("命令")
        .disable_help_flag(true)
        .mut_args(argument)
        .mut_subcommands(translated)
        .arg(flag("help", 'h', ArgAction::Help, "显示帮助"));
    if is_whole {
        command =
            command.disable_version_flag(true).arg(flag("version", 'V', ArgAction::Version, "显示版本"));
    }
    if command.has_subcommands() && !is_whole {
        command = command.disable_help_subcommand(true);
    }
    if let Some(about) = about {
        command = command.about(about);
    }
    if let Some(long) = long {
        command = command.long_about(long);
    }
    match after {
        Some(after) => command.after_help(after),
        None => command,
    }
}

fn flag(name: &'static str, short: char, action: ArgAction, help: &'static str) -> Arg {
    Arg::new(name).short(short).long(name).action(action).help(help).help_heading("选项")
}

fn argument(argument: Arg) -> Arg {
    let defaults = argument.get_default_values().iter().map(|value| value.to_string_lossy());
    let default = defaults.filter(|value| !value.is_empty()).collect::<Vec<_>>().join(" ");
    let values: Vec<_> = argument.get_possible_values();
    let is_choice = !values.is_empty() && argument.get_action().takes_values();
    let mut help = argument.get_help().map(chinese).unwrap_or_default();
    if is_choice {
        let choices =
            values.iter().filter(|value| !value.is_hide_set()).map(|value| match value.get_help() {
                Some(says) => format!("{}（{}）", value.get_name(), chinese(says)),
                None => value.get_name().to_owned(),
            });
        help = format!("{help} [可选：{}]", choices.collect::<Vec<_>>().join("、"));
    }
    if !default.is_empty() && argument.get_action().takes_values() {
        help = format!("{help} [默认：{default}]");
    }
    let heading = if argument.is_positional() { "参数" } else { "选项" };
    let long = argument.get_long_help().map(chinese);
    let takes = argument.get_action().takes_values();
    let argument = argument.help_heading(heading).help(help.trim().to_owned());
    let argument =
        if takes { argument.hide_default_value(true).hide_possible_values(true) } else { argument };
    match long {
        Some(long) => argument.long_help(long),
        None => argument,
    }
}

/// Each paragraph in Chinese; what nobody has translated stays as it is.
fn chinese(text: &StyledStr) -> String {
    let text = text.to_string();
    let paragraph = |english: &str| TABLE.get(english).copied().unwrap_or(english).to_owned();
    TABLE.get(text.as_str()).map_or_else(
        || text.split("\n\n").map(paragraph).collect::<Vec<_>>().join("\n\n"),
        |&whole| whole.to_owned(),
    )
}

/// What is wrong with a command line, in Chinese.
pub(crate) fn mistake(error: &clap::Error) -> String {
    let told = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join("、"),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let (argument, value) = (told(ContextKind::InvalidArg), told(ContextKind::InvalidValue));
    let what = match error.kind() {
        ErrorKind::UnknownArgument => format!("没有参数 `{argument}`"),
        ErrorKind::InvalidSubcommand => format!("没有命令 `{}`", told(ContextKind::InvalidSubcommand)),
        ErrorKind::MissingRequiredArgument => format!("缺少参数：{argument}"),
        ErrorKind::InvalidValue if value.is_empty() => format!("`{argument}` 需要一个值"),
        ErrorKind::InvalidValue => {
            format!("`{argument}` 的值 `{value}` 不可用；可选：{}", told(ContextKind::ValidValue))
        }
        ErrorKind::ValueValidation => {
            let why = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
            format!("`{argument}` 的值 `{value}` 不可用：{}", why_not(&why))
        }
        ErrorKind::ArgumentConflict => {
            format!("`{argument}` 不能与 `{}` 同时使用", told(ContextKind::PriorArg))
        }
        ErrorKind::TooManyValues => format!("`{argument}` 的值太多：`{value}`"),
        ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => format!("`{argument}` 的值的个数不对"),
        ErrorKind::NoEquals => format!("`{argument}` 需要写成 `{argument}=值`"),
        ErrorKind::MissingSubcommand => "缺少命令".to_owned(),
        ErrorKind::InvalidUtf8
        | ErrorKind::DisplayHelp
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::DisplayVersion
        | ErrorKind::Io
        | ErrorKind::Format
        | _ => "命令行有误".to_owned(),
    };
    let usage = told(ContextKind::Usage);
    let usage = usage.strip_prefix("Usage:").unwrap_or(&usage).trim();
    let usage = if usage.is_empty() { String::new() } else { format!("\n用法：{usage}\n") };
    let guess = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue]
        .into_iter()
        .map(told)
        .find(|guess| !guess.is_empty());
    let guess = guess.map(|guess| format!("提示：是否想用 `{guess}`？\n")).unwrap_or_default();
    format!("错误：{what}\n{guess}{usage}\n使用 `--help` 查看帮助。")
}

/// What a value should be like, as its reader says it in English.
fn why_not(english: &str) -> String {
    const PORTS: &str = "use ports from 1 to 65535, such as ";
    const OR_A_PORT: &str = ", or a port from 1 to 65535";
    let list = |text: &str| text.replace(" or ", " 或 ").replace(", ", "、");
    if let Some((_, examples)) = english.split_once("write it like ") {
        return format!("请写成 {}", list(examples));
    }
    if let Some(examples) = english.strip_prefix(PORTS) {
        return format!("请使用 1 到 65535 的端口，例如 {}", list(examples));
    }
    if let Some(names) = english.strip_prefix("use ").and_then(|rest| rest.strip_suffix(OR_A_PORT)) {
        return format!("请使用 {}，或 1 到 65535 的端口", list(names));
    }
    if let Some((_, range)) = english.split_once(" is not in ") {
        return format!("不在 {range} 之内");
    }
    match english {
        "invalid digit found in string" | "cannot parse integer from empty string" => "请写整数".to_owned(),
        "number too large to fit in target type" => "数字太大".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;
    use crate::Cli;

    fn said(command: &Command, all: &mut BTreeSet<String>) {
        let texts = [command.get_about(), command.get_long_about(), command.get_after_help()];
        let arguments = command.get_arguments().flat_map(|one| [one.get_help(), one.get_long_help()]);
        all.extend(texts.into_iter().chain(arguments).flatten().map(ToString::to_string));
        for argument in command.get_arguments().filter(|one| one.get_action().takes_values()) {
            let values = argument.get_possible_values();
            all.extend(values.iter().filter_map(|value| Some(value.get_help()?.to_string())));
        }
        command.get_subcommands().for_each(|inner| said(inner, all));
    }

    #[test]
    fn all_of_the_help_is_in_both_languages() {
        let mut texts = BTreeSet::new();
        said(&Cli::command(), &mut texts);
        let paragraphs = |text: &String| {
            if TABLE.contains_key(text.as_str()) {
                vec![text.clone()]
            } else {
                text.split("\n\n").map(str::to_owned).collect()
            }
        };
        let all: BTreeSet<String> = texts.iter().flat_map(paragraphs).collect();
        let missing: Vec<_> = all.iter().filter(|text| !TABLE.contains_key(text.as_str())).collect();
        let unsaid: Vec<_> = TABLE.keys().filter(|text| !all.contains(**text)).collect();
        assert!(missing.is_empty(), "without Chinese: {missing:#?}");
        assert!(unsaid.is_empty(), "nobody says this: {unsaid:#?}");
    }

    #[test]
    fn help_in_chinese() {
        let mut whole = in_chinese(Cli::command()).term_width(100);
        whole.build();
        let mut text = whole.render_long_help().to_string();
        for name in ["submit", "user", "token"] {
            let command = whole.find_subcommand_mut(name).unwrap();
            text.push_str("\n\n================================\n");
            text.push_str(&command.render_long_help().to_string());
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn mistakes_in_chinese() {
        let lines = [
            "berth crate a1",
            "berth create",
            "berth create a1 --nonsense",
            "berth token new a --scope everything",
            "berth create a1 --cpus many",
            "berth create a1 --memory lots",
            "berth logs a1 --since yesterday",
            "berth port-forward a1 a:b",
            "berth open a1 nothing",
            "berth token new a --days many",
        ];
        let told = lines.map(|line| {
            let wrong = in_chinese(Cli::command()).try_get_matches_from(line.split(' ')).unwrap_err();
            format!("$ {line}\n{}", mistake(&wrong))
        });
        insta::assert_snapshot!(told.join("\n"));
    }
}
