//! What is said about a job file: mistakes and warnings, as codes with values.
//!
//! [`Note::message`] and [`Note::hint`] are the English sentences. Other languages translate by [`Code`] and `params`,
//! never by the text; the params of each code are named beside it.

use std::{cell::RefCell, collections::BTreeMap, fmt::Write as _};

use serde::{Deserialize, Serialize};

/// What is wrong, or worth saying. Never renamed once released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The file is larger than `limit`.
    FileTooLarge,
    NotUtf8,
    NothingInIt,
    /// `what` the parser says.
    Syntax,
    /// More than `limit` levels.
    TooDeep,
    /// More than `limit` values once aliases are written out.
    TooManyValues,
    /// `value` refers to itself.
    Cycle,
    /// None of the known formats.
    UnknownFormat,
    /// `field` is not there; `example` is how to write it.
    Missing,
    /// `field` is there with nothing in it; `example` is how to write it.
    Blank,
    /// `field` is `found` where `expected` is meant: words of [`Kind`].
    WrongType,
    /// `value` of `field` is below `least` or above `most`.
    OutOfRange,
    /// `value` cannot be the name of `of`; `rule` says what can, `example` is one.
    BadName,
    /// Two `of` are named `value`.
    Twice,
    /// The roles `value` and `other` differ in case or underscores only, and their tasks would be called the same.
    Alike,
    /// The path `value` lies in HDFS.
    Hdfs,
    /// `value` is not an absolute path without `..`.
    BadPath,
    /// The path `value` is in none of the storages; `known` are their paths.
    OutsideStorage,
    /// `value` of `field` is none of `known`.
    UnknownValue,
    /// `field` (with `value`) cannot be had here; `instead` says what to do.
    Unsupported,
    /// `value` cannot be the name or content of a variable.
    BadVariable,
    /// The shared memory `value` is larger than the memory `memory`, both in MiB.
    ShmAboveMemory,
    /// The ports `value` and `other` ask for the same numbers.
    SamePorts,
    /// `value` is not a size.
    BadSize,
    /// `value` is not a length of time.
    BadDuration,
    /// `field` holds a character that no program can be given.
    BadText,
    /// More than `limit` of `of`.
    TooMany,
    /// `field` and `other` exclude each other.
    Both,
    /// `field` is not known here and was kept; `nearest` may be what was meant.
    UnknownKey,
    /// `field` has no effect here; `why` is one of `always_so`, `not_here`, and what there is
    /// instead: `registry_login`, `storages`, `code`, `tensorboard`, `one_gpu_model`.
    Ignored,
    /// `value` is given twice; the last one counts.
    Repeated,
    /// The variable `value` is set by the platform, which wins.
    Reserved,
    /// The variables of `value` are also set with the name `also`, since shells cannot spell the first.
    AlsoNamed,
    /// A password stands in `field`.
    SecretInFile,
    /// The path `value` is checked when the job is submitted.
    PathUnchecked,
}

/// Whether the job can be submitted all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Error,
    Warning,
}

/// What a value is, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Nothing,
    Boolean,
    WholeNumber,
    Number,
    Text,
    List,
    Map,
}

/// A line and a column, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Place {
    pub line: u32,
    /// 0: not known.
    pub column: u32,
}

/// One thing said about a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub level: Level,
    pub code: Code,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// A JSON pointer to the field, `""` for the whole file.
    pub pointer: String,
    /// The values in the sentences.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
}

/// The most errors, and the most warnings, that are said about one file.
const MOST_NOTES: usize = 200;

/// Where notes gather while a file is read.
#[derive(Debug, Default)]
pub(crate) struct Notes(RefCell<Vec<Note>>);

// === impl Kind ===

impl Kind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Boolean => "boolean",
            Self::WholeNumber => "whole_number",
            Self::Number => "number",
            Self::Text => "text",
            Self::List => "list",
            Self::Map => "map",
        }
    }
}

/// A [`Kind`] as a sentence says it.
fn kind_in_english(word: &str) -> &str {
    match word {
        "nothing" => "nothing",
        "boolean" => "`true` or `false`",
        "whole_number" => "a whole number",
        "number" => "a number",
        "text" => "text",
        "list" => "a list",
        "map" => "a map",
        other => other,
    }
}

// === impl Code ===

impl Code {
    pub const ALL: [Self; 35] = [
        Self::FileTooLarge,
        Self::NotUtf8,
        Self::NothingInIt,
        Self::Syntax,
        Self::TooDeep,
        Self::TooManyValues,
        Self::Cycle,
        Self::UnknownFormat,
        Self::Missing,
        Self::Blank,
        Self::WrongType,
        Self::OutOfRange,
        Self::BadName,
        Self::Twice,
        Self::Alike,
        Self::Hdfs,
        Self::BadPath,
        Self::OutsideStorage,
        Self::UnknownValue,
        Self::Unsupported,
        Self::BadVariable,
        Self::ShmAboveMemory,
        Self::SamePorts,
        Self::BadSize,
        Self::BadDuration,
        Self::BadText,
        Self::TooMany,
        Self::Both,
        Self::UnknownKey,
        Self::Ignored,
        Self::Repeated,
        Self::Reserved,
        Self::AlsoNamed,
        Self::SecretInFile,
        Self::PathUnchecked,
    ];
}

// === impl Note ===

impl Note {
    /// A parameter, or nothing.
    pub fn param(&self, name: &str) -> &str {
        self.params.get(name).map_or("", String::as_str)
    }

    /// The field as people write it: `taskRoles[0].command`.
    pub fn field(&self) -> String {
        let mut field = String::new();
        for part in self.pointer.split('/').skip(1) {
            let part = part.replace("~1", "/").replace("~0", "~");
            if part.bytes().all(|byte| byte.is_ascii_digit()) && !part.is_empty() {
                let _ = write!(field, "[{part}]");
            } else {
                if !field.is_empty() {
                    field.push('.');
                }
                field.push_str(&part);
            }
        }
        field
    }

    /// What is so, in English: lower case, no full stop.
    pub fn message(&self) -> String {
        let (field, value, of, limit) =
            (self.field(), self.param("value"), self.param("of"), self.param("limit"));
        match self.code {
            Code::FileTooLarge => format!("the file is larger than {limit}"),
            Code::NotUtf8 => "the file is not text in UTF-8".to_owned(),
            Code::NothingInIt => "there is nothing in the file".to_owned(),
            Code::Syntax => self.param("what").to_owned(),
            Code::TooDeep => format!("it is nested deeper than {limit} levels"),
            Code::TooManyValues => format!("with its aliases written out it has more than {limit} values"),
            Code::Cycle => format!("`{value}` refers to itself"),
            Code::UnknownFormat => "this is not a job file of any kind that is known".to_owned(),
            Code::Missing => format!("`{field}` is missing"),
            Code::Blank => format!("`{field}` is empty"),
            Code::WrongType => {
                let (expected, found) = (self.param("expected"), self.param("found"));
                format!("`{field}` must be {}, not {}", kind_in_english(expected), kind_in_english(found))
            }
            Code::OutOfRange => match (self.param("least"), self.param("most")) {
                (least, "") => format!("`{field}` is `{value}`; it must be at least {least}"),
                (least, most) => format!("`{field}` is `{value}`; it must be from {least} to {most}"),
            },
            Code::BadName => format!("`{value}` cannot be the name of a {of}"),
            Code::Twice => format!("two of the {of}s are named `{value}`"),
            Code::Alike => {
                format!("tasks of the roles `{value}` and `{}` would be called the same", self.param("other"))
            }
            Code::Hdfs => format!("`{value}` lies in HDFS, which is not to be had here"),
            Code::BadPath => format!("`{value}` is not a path that can be used"),
            Code::OutsideStorage => format!("`{value}` lies in none of the storages of this site"),
            Code::UnknownValue => format!("`{field}` is `{value}`, which is not known here"),
            Code::Unsupported if value.is_empty() => format!("`{field}` is not supported"),
            Code::Unsupported => format!("`{field}`: `{value}` is not supported"),
            Code::BadVariable => format!("`{value}` cannot be a variable of the environment"),
            Code::ShmAboveMemory => {
                format!("`{field}` is {value} MiB, more than the memory of {} MiB", self.param("memory"))
            }
            Code::SamePorts => {
                format!("the ports `{value}` and `{}` ask for the same numbers", self.param("other"))
            }
            Code::BadSize => format!("`{field}`: `{value}` is not a size"),
            Code::BadDuration => format!("`{field}`: `{value}` is not a length of time"),
            Code::BadText => format!("`{field}` holds a NUL character"),
            Code::TooMany => format!("there are more than {limit} {of}s"),
            Code::Both => format!("`{field}` and `{}` cannot both be given", self.param("other")),
            Code::UnknownKey => format!("`{field}` is not known; it is kept and has no effect"),
            Code::Ignored => format!("`{field}` has no effect here"),
            Code::Repeated => format!("`{value}` is given twice; the last one counts"),
            Code::Reserved => format!("the variable `{value}` is set by the platform, whose value wins"),
            Code::AlsoNamed => {
                format!("shells cannot spell variables with `{value}` in their name")
            }
            Code::SecretInFile => format!("`{field}` is a secret, and this file is kept with the job"),
            Code::PathUnchecked => {
                format!("whether `{value}` is in a storage of the site is checked on submission")
            }
        }
    }

    /// What to write instead, in English.
    pub fn hint(&self) -> Option<String> {
        let (value, example, known) = (self.param("value"), self.param("example"), self.param("known"));
        Some(match self.code {
            Code::FileTooLarge => "a job file says what to run; put data and code into a folder".to_owned(),
            Code::NotUtf8 => "save it as UTF-8".to_owned(),
            Code::NothingInIt => "write at least a name, an image and a command".to_owned(),
            Code::Syntax => "check this line and the one before it".to_owned(),
            Code::TooDeep => "write it flatter".to_owned(),
            Code::TooManyValues => "write out what is needed, without aliases".to_owned(),
            Code::Cycle => "take one of the references out".to_owned(),
            Code::UnknownFormat => "begin with `berth: 1`; OpenPAI v1 and v2, DLC parameters and Determined \
                                    configurations are recognised too"
                .to_owned(),
            Code::Missing => format!("add `{example}`"),
            Code::Blank | Code::WrongType | Code::OutOfRange => format!("write `{example}`"),
            Code::BadName => format!("use {}, such as `{example}`", self.param("rule")),
            Code::Twice => "give each a name of its own".to_owned(),
            Code::Alike => "give them names that differ in more than case and underscores".to_owned(),
            Code::Hdfs => {
                format!("copy the files below `/userhome` and write that path, such as `{example}`")
            }
            Code::BadPath => format!("write an absolute path without `..`, such as `{example}`"),
            Code::OutsideStorage if known.is_empty() => "use a path below `/userhome`".to_owned(),
            Code::OutsideStorage => format!("use a path below one of: {known}"),
            Code::UnknownValue if known.is_empty() => {
                "there is none to choose from: add one first".to_owned()
            }
            Code::UnknownValue => format!("write one of: {known}"),
            Code::Unsupported => self.param("instead").to_owned(),
            Code::BadVariable => {
                "write it like `NAME=value`, without NUL and line breaks in the name".to_owned()
            }
            Code::ShmAboveMemory => format!("write at most `{}`", self.param("memory")),
            Code::SamePorts => "give each numbers of its own, or 0 for any".to_owned(),
            Code::BadSize => "write it like `512M`, `8G` or `1.5G`".to_owned(),
            Code::BadDuration => "write it like `90s`, `30m` or `1h30m`".to_owned(),
            Code::BadText => "take it out".to_owned(),
            Code::TooMany => "split it into several jobs".to_owned(),
            Code::Both => "leave one of them out".to_owned(),
            Code::UnknownKey => match self.param("nearest") {
                "" => return None,
                nearest => format!("did you mean `{nearest}`?"),
            },
            Code::Ignored => match self.param("why") {
                "always_so" => "it is always so".to_owned(),
                "registry_login" => {
                    "keep the login with `berth secret set NAME --registry HOST --user USER`".to_owned()
                }
                "storages" => {
                    "what you have of the site's storages is in every task; write their paths, such as \
                               `/userhome`, in the command"
                        .to_owned()
                }
                "code" => "get the code in the command (`git clone`), or put it below `/userhome`".to_owned(),
                "tensorboard" => "run `berth tensorboard FOLDER`".to_owned(),
                "one_gpu_model" => "all tasks of a job get the model that its first role names".to_owned(),
                _ => return None,
            },
            Code::Reserved => "give it another name".to_owned(),
            Code::AlsoNamed => format!("they are set with `{}` as well", self.param("also")),
            Code::SecretInFile => {
                format!("keep `{value}` with your account and take it out of the file")
            }
            Code::Repeated | Code::PathUnchecked => return None,
        })
    }
}

// === impl Notes ===

impl Notes {
    pub(crate) fn add<const N: usize>(
        &self,
        level: Level,
        code: Code,
        place: Option<Place>,
        pointer: &str,
        params: [(&str, String); N],
    ) {
        let params = params.into_iter().filter(|(_, value)| !value.is_empty());
        let params = params.map(|(name, value)| (name.to_owned(), shortened(&value))).collect();
        let mut notes = self.0.borrow_mut();
        if notes.iter().filter(|note| note.level == level).count() < MOST_NOTES {
            notes.push(Note { level, code, place, pointer: pointer.to_owned(), params });
        }
    }

    /// All notes, in the order of the file.
    pub(crate) fn sorted(self) -> Vec<Note> {
        let mut notes = self.0.into_inner();
        notes.sort_by_key(|note| note.place.unwrap_or_default());
        notes
    }

    pub(crate) fn any_error(&self) -> bool {
        self.0.borrow().iter().any(|note| note.level == Level::Error)
    }
}

/// What of a file's text may be repeated: a bounded piece without control characters.
fn shortened(text: &str) -> String {
    const MOST: usize = 120;
    let mut clean: String = text.chars().filter(|letter| !letter.is_control()).take(MOST).collect();
    if text.chars().count() > MOST {
        clean.push('…');
    }
    clean
}
