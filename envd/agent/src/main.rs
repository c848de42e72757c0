//! The program of the agent: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    envd_agent::main()
}
