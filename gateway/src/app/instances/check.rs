//! What a request for an instance may ask for. Each mistake has a sentence of its own.

use std::cmp::Ordering;

use envd_api::control::NodeReport;
use gateway_api::{CreateInstance, error::Reason, instance::MEMORY_MIN_BYTES};
use oci_spec::distribution::{ParseError, Reference};

use crate::error::Error;

const ENV_MAX: usize = 256;
const ENV_BYTES_MAX: usize = 64 << 10;
const COMMAND_BYTES_MAX: usize = 128 << 10;
const REFERENCE_BYTES_MAX: usize = 512;

/// The reference must parse, and must be a name, not the id of some image on the machine.
pub(in crate::app) fn image(text: &str) -> Result<(), Error> {
    let bad = |reason| Error::BadImage {
        reference: text.chars().filter(|letter| !letter.is_control()).take(128).collect(),
        reason,
    };
    if text.is_empty() {
        return Err(bad(Reason::ImageEmpty));
    }
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(bad(Reason::ImageIsAnId));
    }
    if text.len() > REFERENCE_BYTES_MAX {
        return Err(bad(Reason::ImageTooLong));
    }
    text.parse::<Reference>().map(drop).map_err(|error| bad(unreadable(text, &error)))
}

/// What is wrong with a reference that does not parse.
pub(in crate::app) fn unreadable(text: &str, error: &ParseError) -> Reason {
    match error {
        ParseError::NameContainsUppercase => Reason::ImageNotLowerCase,
        ParseError::NameTooLong => Reason::ImageTooLong,
        ParseError::TagInvalidFormat => Reason::ImageTagUnfit,
        ParseError::DigestInvalidFormat | ParseError::DigestInvalidLength | ParseError::DigestUnsupported => {
            Reason::ImageDigestUnfit
        }
        ParseError::NameEmpty => Reason::ImageUnreadable,
        // Of most mistakes the parser says no more than this.
        ParseError::ReferenceInvalidFormat => {
            let known = |letter: char| letter.is_ascii_alphanumeric() || "._-/:@+".contains(letter);
            let (whole, digest) = text.split_once('@').map_or((text, None), |(whole, d)| (whole, Some(d)));
            let last = whole.rfind('/').map_or(0, |slash| slash + 1);
            let tag = whole[last..].find(':');
            let name = &whole[..tag.map_or(whole.len(), |colon| last + colon)];
            if !text.chars().all(known) {
                Reason::ImageUnreadable
            } else if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
                Reason::ImageNotLowerCase
            } else if digest.is_some() {
                Reason::ImageDigestUnfit
            } else if tag.is_some() {
                Reason::ImageTagUnfit
            } else {
                Reason::ImageUnreadable
            }
        }
    }
}

/// Numbers, variables and the command. `node` is the largest machine, where it is known.
pub(super) fn request(wanted: &CreateInstance, node: Option<&NodeReport>) -> Result<(), Error> {
    resources(wanted)?;
    if let Some(node) = node {
        fits(wanted, node)?;
    }
    environment(wanted)?;
    command(wanted)
}

fn resources(wanted: &CreateInstance) -> Result<(), Error> {
    if !wanted.cpus.is_finite() || wanted.cpus < 0.01 {
        let reason = match wanted.cpus.partial_cmp(&0.0) {
            Some(Ordering::Less) => Reason::Negative,
            Some(Ordering::Equal) => Reason::Zero,
            Some(Ordering::Greater) | None => Reason::CpusTooFew,
        };
        return Err(Error::unfit("cpus", reason));
    }
    if wanted.memory_bytes == 0 {
        return Err(Error::unfit("memory_bytes", Reason::Zero));
    }
    if wanted.memory_bytes < MEMORY_MIN_BYTES {
        return Err(Error::unfit("memory_bytes", Reason::MemoryTooSmall));
    }
    match wanted.shm_bytes {
        Some(0) => Err(Error::unfit("shm_bytes", Reason::Zero)),
        Some(shm) if shm > wanted.memory_bytes => Err(Error::unfit("shm_bytes", Reason::MoreThanMemory)),
        Some(_) | None => Ok(()),
    }
}

fn fits(wanted: &CreateInstance, node: &NodeReport) -> Result<(), Error> {
    let too_large = |field, wanted: String, largest: String| Err(Error::TooLarge { field, wanted, largest });
    if wanted.cpus > node.cpus {
        return too_large("cpus", wanted.cpus.to_string(), node.cpus.to_string());
    }
    if wanted.memory_bytes > node.memory_bytes {
        return too_large("memory_bytes", readable(wanted.memory_bytes), readable(node.memory_bytes));
    }
    if wanted.gpus > node.gpus {
        return too_large("gpus", wanted.gpus.to_string(), node.gpus.to_string());
    }
    Ok(())
}

fn environment(wanted: &CreateInstance) -> Result<(), Error> {
    if wanted.env.len() > ENV_MAX {
        return Err(Error::unfit("env", Reason::TooManyVariables));
    }
    if wanted.env.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() > ENV_BYTES_MAX {
        return Err(Error::unfit("env", Reason::VariablesTooLong));
    }
    for (key, value) in &wanted.env {
        let wrong = if key.is_empty() {
            Some(Reason::VariableNameEmpty)
        } else if key.contains('=') {
            Some(Reason::VariableNameHasEquals)
        } else if key.contains('\0') {
            Some(Reason::VariableNameHasNul)
        } else if key.contains(['\n', '\r']) {
            Some(Reason::VariableNameHasNewline)
        } else if key.chars().any(char::is_control) {
            Some(Reason::VariableNameHasControl)
        } else if value.contains('\0') {
            Some(Reason::VariableValueHasNul)
        } else {
            None
        };
        if let Some(reason) = wrong {
            return Err(Error::unfit("env", reason));
        }
    }
    Ok(())
}

fn command(wanted: &CreateInstance) -> Result<(), Error> {
    if wanted.command.first().is_some_and(String::is_empty) {
        return Err(Error::unfit("command", Reason::CommandFirstWordEmpty));
    }
    if wanted.command.iter().any(|word| word.contains('\0')) {
        return Err(Error::unfit("command", Reason::CommandHasNul));
    }
    if wanted.command.iter().map(String::len).sum::<usize>() > COMMAND_BYTES_MAX {
        return Err(Error::unfit("command", Reason::CommandTooLong));
    }
    Ok(())
}

/// A number of bytes as people read it.
pub(in crate::app) fn readable(bytes: u64) -> String {
    const UNITS: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let (unit, shift) = UNITS.into_iter().find(|(_, shift)| bytes >> shift > 0).unwrap_or(("KiB", 10));
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let amount = bytes as f64 / f64::from(1 << shift);
    format!("{amount:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use envd_api::control::{EngineState, Syscalls, Tenants};
    use gateway_api::node::DiskLimit;

    use super::*;

    fn asks() -> CreateInstance {
        CreateInstance {
            name: "a".to_owned(),
            image: None,
            cpus: 1.0,
            memory_bytes: 1 << 30,
            shm_bytes: None,
            gpus: 0,
            gpu_model: None,
            cluster: None,
            pool: None,
            env: BTreeMap::new(),
            command: Vec::new(),
            auto_start: false,
            secrets: Vec::new(),
        }
    }

    #[test]
    fn bytes_are_shown_in_the_largest_unit_that_they_fill() {
        let all = [3 << 30, (1 << 30) - 1, 10_000_000, 1 << 10, 5, 0].map(readable);
        assert_eq!(all, ["3.0 GiB", "1024.0 MiB", "9.5 MiB", "1.0 KiB", "0.0 KiB", "0.0 KiB"]);
    }

    #[test]
    fn each_mistake_has_its_own_sentence() {
        let node = NodeReport {
            name: "n".to_owned(),
            address: None,
            cpus: 2.0,
            memory_bytes: 4 << 30,
            gpus: 0,
            cards: Vec::new(),
            engine: EngineState::Ready,
            tenants: Tenants::Apart,
            syscalls: Syscalls::Filtered,
            disk: DiskLimit::Polled,
        };
        let env = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let mistakes = [
            CreateInstance { cpus: 0.0, ..asks() },
            CreateInstance { cpus: -1.0, ..asks() },
            CreateInstance { cpus: f64::NAN, ..asks() },
            CreateInstance { cpus: 3.0, ..asks() },
            CreateInstance { memory_bytes: 1, ..asks() },
            CreateInstance { memory_bytes: 5 << 30, ..asks() },
            CreateInstance { shm_bytes: Some(0), ..asks() },
            CreateInstance { shm_bytes: Some(2 << 30), ..asks() },
            CreateInstance { gpus: 1, ..asks() },
            CreateInstance { env: env("", ""), ..asks() },
            CreateInstance { env: env("A=B", ""), ..asks() },
            CreateInstance { env: env("A\nB", ""), ..asks() },
            CreateInstance { env: env("A\0B", ""), ..asks() },
            CreateInstance { env: env("A\tB", ""), ..asks() },
            CreateInstance { env: env("A", "\0"), ..asks() },
            CreateInstance { command: vec![String::new()], ..asks() },
            CreateInstance { command: vec!["a\0".to_owned()], ..asks() },
        ];
        let sentences: Vec<_> =
            mistakes.iter().map(|wanted| request(wanted, Some(&node)).unwrap_err().to_string()).collect();
        insta::assert_snapshot!(sentences.join("\n"));
        request(&asks(), Some(&node)).unwrap();
    }

    #[test]
    fn images_are_names() {
        for right in [
            "python:3.12",
            "localhost/berth/base:latest",
            "registry.example.org:5000/a/b@sha256:0000000000000000000000000000000000000000000000000000000000000000",
        ] {
            image(right).unwrap();
        }
        let id = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
        for wrong in ["", "A B", "python/Upper", "a:b:c", "../etc", &id[7..], "x@sha256:12"] {
            assert!(image(wrong).is_err(), "{wrong}");
        }
    }
}
