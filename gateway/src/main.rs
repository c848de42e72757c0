//! The program of the gateway. Only this crate knows the commit, so a new commit rebuilds nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    gateway::main(option_env!("BERTH_COMMIT"))
}
