//! The program `berth`. Only this crate knows the commit, so a new commit rebuilds nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    berth::main(option_env!("BERTH_COMMIT"))
}
