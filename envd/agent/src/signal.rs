//! Signals by name, as users and the protocol say them: without `SIG`.

use rustix::process::Signal;

const NAMES: [(&str, Signal); 31] = [
    ("HUP", Signal::HUP),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
    ("ILL", Signal::ILL),
    ("TRAP", Signal::TRAP),
    ("ABRT", Signal::ABORT),
    ("BUS", Signal::BUS),
    ("FPE", Signal::FPE),
    ("KILL", Signal::KILL),
    ("USR1", Signal::USR1),
    ("SEGV", Signal::SEGV),
    ("USR2", Signal::USR2),
    ("PIPE", Signal::PIPE),
    ("ALRM", Signal::ALARM),
    ("TERM", Signal::TERM),
    ("STKFLT", Signal::STKFLT),
    ("CHLD", Signal::CHILD),
    ("CONT", Signal::CONT),
    ("STOP", Signal::STOP),
    ("TSTP", Signal::TSTP),
    ("TTIN", Signal::TTIN),
    ("TTOU", Signal::TTOU),
    ("URG", Signal::URG),
    ("XCPU", Signal::XCPU),
    ("XFSZ", Signal::XFSZ),
    ("VTALRM", Signal::VTALARM),
    ("PROF", Signal::PROF),
    ("WINCH", Signal::WINCH),
    ("IO", Signal::IO),
    ("PWR", Signal::POWER),
    ("SYS", Signal::SYS),
];

/// The signal of that name; `SIGINT` and `int` mean `INT` too.
pub(crate) fn by_name(name: &str) -> Option<Signal> {
    let upper = name.to_ascii_uppercase();
    let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
    NAMES.iter().find(|(known, _)| *known == bare).map(|(_, signal)| *signal)
}

/// The name of a signal's number, or the number itself for the real-time ones.
pub(crate) fn name(number: i32) -> String {
    let known = NAMES.iter().find(|(_, signal)| signal.as_raw() == number);
    known.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for (text, signal) in NAMES {
            assert_eq!(by_name(text), Some(signal));
            assert_eq!(name(signal.as_raw()), text);
        }
        assert_eq!(by_name("sigterm"), Some(Signal::TERM));
        assert_eq!(by_name("NOPE"), None);
        assert_eq!(name(40), "40");
    }
}
