//! What `make bench` measures with, where no packaged tool does.
//!
//! `serve` is the app behind every proxy; the others are clients. Each client does a fixed piece of work, then prints
//! one line of JSON.

#![expect(clippy::print_stdout, reason = "a program whose output is its point")]

mod serve;
mod sockets;
mod terminal;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(about, version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The app: `/small` is 1 KiB, `/large` is 10 MiB, `/sink` takes anything, `/socket` echoes
    Serve {
        /// Where it listens, such as `127.0.0.1:9000`
        address: std::net::SocketAddr,
    },
    /// Echoes messages over a number of WebSockets, as fast as they come back
    Echo(sockets::Echo),
    /// Keeps WebSockets open until standard input ends
    Idle(sockets::Idle),
    /// Keeps many WebSockets open for long, most of them idle, and counts those that were dropped
    Soak(sockets::Soak),
    /// Types keys into a web terminal, one after the other's echo
    Keys(terminal::Keys),
    /// Runs a command with much output in a web terminal
    Flood(terminal::Flood),
}

fn main() -> anyhow::Result<()> {
    let command = Arguments::parse().command;
    let mut runtime = match command {
        Command::Serve { .. } => tokio::runtime::Builder::new_multi_thread(),
        // One thread: a client must not take the cores from what it measures.
        Command::Echo(_) | Command::Idle(_) | Command::Soak(_) | Command::Keys(_) | Command::Flood(_) => {
            tokio::runtime::Builder::new_current_thread()
        }
    };
    let told = runtime.enable_all().build()?.block_on(async {
        match command {
            Command::Serve { address } => serve::serve(address).await.map(|()| None),
            Command::Echo(echo) => echo.run().await.map(Some),
            Command::Idle(idle) => idle.run().await.map(|()| None),
            Command::Soak(soak) => soak.run().await.map(Some),
            Command::Keys(keys) => keys.run().await.map(Some),
            Command::Flood(flood) => flood.run().await.map(Some),
        }
    })?;
    if let Some(told) = told {
        println!("{told}");
    }
    Ok(())
}
