//! A spec as our own YAML.
//!
//! Written by hand because the order of the fields and the form of commands (`|` blocks) are what makes the file
//! readable. What can be left out is left out. Texts are plain only where no YAML reader could take them for anything
//! else; the rest is quoted as JSON quotes it, which YAML reads alike. Secrets are not written.

use std::{fmt::Write as _, time::Duration};

use serde_json::Value as Json;

use crate::spec::{Command, Dialect, JobSpec, Purpose, Resources, Retries, Role};

/// The spec in our own language.
pub fn write(spec: &JobSpec) -> String {
    let mut out = Writer::default();
    out.line(0, "berth: 1");
    if spec.dialect != Dialect::Berth {
        out.line(0, &format!("dialect: {}", spec.dialect.word()));
    }
    out.optional(0, "name", spec.name.as_deref());
    if !spec.description.is_empty() {
        out.text(0, "description", &spec.description);
    }
    if spec.purpose == Purpose::Interactive {
        out.line(0, "interactive: true");
    }
    out.optional(0, "share", spec.share.as_deref());
    out.optional(0, "workspace", spec.workspace.as_deref());
    out.optional(0, "cluster", spec.cluster.as_deref());
    out.optional(0, "pool", spec.pool.as_deref());
    out.optional(0, "gpu_model", spec.gpu_model.as_deref());
    if let Some(priority) = spec.priority {
        out.line(0, &format!("priority: {priority}"));
    }
    out.retries(0, "retries", spec.retries);
    out.duration("time_limit", spec.time_limit);
    out.duration("idle_timeout", spec.idle_timeout);
    if spec.keep_on_failure {
        out.line(0, "keep_on_failure: true");
    }
    if let Some(framework) = spec.framework {
        out.line(0, &format!("framework: {}", framework.word()));
    }
    if !spec.env.is_empty() {
        out.line(0, "env:");
        for (name, value) in &spec.env {
            out.text(1, &scalar(name), value);
        }
    }
    for (key, source) in
        [("data_dir", &spec.data_dir), ("code_dir", &spec.code_dir), ("output_dir", &spec.output_dir)]
    {
        out.optional(0, key, source.as_ref().map(ToString::to_string).as_deref());
    }
    if !spec.mounts.is_empty() {
        out.line(0, "mounts:");
    }
    for mount in &spec.mounts {
        out.line(0, &format!("- from: {}", scalar(&mount.from.to_string())));
        out.text(1, "to", &mount.to);
        if mount.read_only {
            out.line(1, "read_only: true");
        }
    }
    out.line(0, "roles:");
    for role in &spec.roles {
        out.role(role);
    }
    if !spec.kept.is_empty() {
        out.line(0, "kept:");
    }
    for (pointer, value) in &spec.kept {
        // JSON in one line is YAML too, and nobody edits what has no effect.
        out.line(1, &format!("{}: {}", quoted(pointer), json(value)));
    }
    out.0
}

#[derive(Debug, Default)]
struct Writer(String);

impl Writer {
    fn line(&mut self, depth: usize, line: &str) {
        let _ = writeln!(self.0, "{}{line}", "  ".repeat(depth));
    }

    fn text(&mut self, depth: usize, key: &str, text: &str) {
        let several = text.trim_end_matches('\n').contains('\n');
        // Commands are full of quotes; a block needs none.
        if !(several || key == "command" && scalar(text) != text) || !fits_block(text) {
            self.line(depth, &format!("{key}: {}", scalar(text)));
            return;
        }
        let (body, keep) = match text.strip_suffix('\n') {
            Some(body) => (body, "|"),
            None => (text, "|-"),
        };
        self.line(depth, &format!("{key}: {keep}"));
        for line in body.split('\n') {
            if line.is_empty() {
                self.0.push('\n');
            } else {
                self.line(depth + 1, line);
            }
        }
    }

    fn optional(&mut self, depth: usize, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(depth, key, text);
        }
    }

    fn retries(&mut self, depth: usize, key: &str, retries: Retries) {
        match retries {
            Retries::UpTo(0) => {}
            Retries::UpTo(most) => self.line(depth, &format!("{key}: {most}")),
            Retries::AfterFailure => self.line(depth, &format!("{key}: after-failure")),
            Retries::Always => self.line(depth, &format!("{key}: always")),
        }
    }

    fn duration(&mut self, key: &str, time: Option<Duration>) {
        let Some(time) = time else { return };
        let (seconds, millis) = (time.as_secs(), time.subsec_millis());
        let units =
            [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s"), (millis.into(), "ms")];
        let parts = units.into_iter().filter(|(number, _)| *number > 0);
        let parts: Vec<String> = parts.map(|(number, unit)| format!("{number}{unit}")).collect();
        self.line(0, &format!("{key}: {}", parts.concat()));
    }

    fn role(&mut self, role: &Role) {
        self.line(0, &format!("- name: {}", scalar(&role.name)));
        if role.tasks != 1 {
            self.line(1, &format!("tasks: {}", role.tasks));
        }
        self.optional(1, "image", role.image.as_deref());
        match &role.command {
            Command::None => {}
            Command::Shell(text) => self.text(1, "command", text),
            Command::Program(words) => {
                let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
                self.line(1, &format!("program: [{}]", words.join(", ")));
            }
        }
        self.optional(1, "work_dir", role.work_dir.as_deref());
        self.resources(&role.resources);
        if !role.ports.is_empty() {
            self.line(1, "ports:");
        }
        for port in &role.ports {
            self.line(1, &format!("- label: {}", scalar(&port.label)));
            if port.begin_at != 0 {
                self.line(2, &format!("begin_at: {}", port.begin_at));
            }
            if port.count != 1 {
                self.line(2, &format!("count: {}", port.count));
            }
        }
        let threshold = |number: Option<u32>| number.map_or("never".to_owned(), |number| number.to_string());
        if role.completion.min_failed != Some(1) {
            self.line(1, &format!("fail_after: {}", threshold(role.completion.min_failed)));
        }
        if role.completion.min_succeeded.is_some() {
            self.line(1, &format!("succeed_after: {}", threshold(role.completion.min_succeeded)));
        }
        self.retries(1, "task_retries", role.task_retries);
    }

    fn resources(&mut self, resources: &Resources) {
        self.line(1, &format!("cpus: {}", resources.cpus));
        self.line(1, &format!("memory: {}", size(resources.memory_mib)));
        if let Some(shm) = resources.shm_mib {
            self.line(1, &format!("shm: {}", size(shm)));
        }
        if resources.gpus > 0 {
            self.line(1, &format!("gpus: {}", resources.gpus));
        }
    }
}

/// In the largest unit that says it exactly.
fn size(mib: u64) -> String {
    if mib > 0 && mib.is_multiple_of(1024) { format!("{}G", mib / 1024) } else { format!("{mib}M") }
}

/// Whether a text can be a `|` block: nothing that a block cannot hold or would change.
fn fits_block(text: &str) -> bool {
    let lines = text.strip_suffix('\n').unwrap_or(text);
    !lines.is_empty()
        && !lines.ends_with('\n')
        && !lines.starts_with(['\n', ' ', '\t'])
        && text.chars().all(|letter| letter == '\n' || letter == '\t' || is_printable(letter))
}

fn is_printable(letter: char) -> bool {
    !letter.is_control()
        && !matches!(letter, '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{85}' | '\u{fffe}' | '\u{ffff}')
}

/// A text in one line: plain where nothing can mistake it.
fn scalar(text: &str) -> String {
    let first = |letter: char| letter.is_ascii_alphabetic() || letter == '/' || letter == '_';
    let rest = |letter: char| letter.is_ascii_alphanumeric() || "-_./=+@%~^,;() ".contains(letter);
    // A colon is plain only before something else than space.
    let colons = text
        .split(':')
        .skip(1)
        .all(|after| after.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '/'));
    let reserved = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "never", "always"];
    let plain = text.starts_with(first)
        && text.chars().all(|letter| rest(letter) || letter == ':')
        && colons
        && !text.ends_with(' ')
        && !reserved.contains(&text.to_ascii_lowercase().as_str());
    if plain { text.to_owned() } else { quoted(text) }
}

/// A text as JSON quotes it, with everything escaped that YAML does not take as it is.
fn quoted(text: &str) -> String {
    let mut done = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => done.push_str("\\\""),
            '\\' => done.push_str("\\\\"),
            '\n' => done.push_str("\\n"),
            '\t' => done.push_str("\\t"),
            '\r' => done.push_str("\\r"),
            letter if is_printable(letter) => done.push(letter),
            letter => {
                let _ = write!(done, "\\u{:04x}", u32::from(letter));
            }
        }
    }
    done.push('"');
    done
}

fn json(value: &Json) -> String {
    match value {
        Json::String(text) => quoted(text),
        Json::Array(items) => format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(", ")),
        Json::Object(map) => {
            let entries = map.iter().map(|(key, value)| format!("{}: {}", quoted(key), json(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => value.to_string(),
    }
}
