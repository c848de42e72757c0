//! The program of envd. Only this crate knows the commit, so a new commit rebuilds nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    envd::main(option_env!("BERTH_COMMIT"))
}
