//! A web terminal's other end: Berth's, or that of ttyd.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::sockets::{Socket, To, summary};

/// How long a terminal may be silent.
const SILENCE: Duration = Duration::from_secs(30);
const INTERRUPT: u8 = 3;
/// How much the console deals with before it says so.
const ACK_EVERY: usize = 64 << 10;
/// What a line prints at its end; not to be found in text that is base64.
const END: &[u8] = b"<DONE>";
/// Written apart, so that its echo is not it.
const TELL_END: &str = "echo '<DO''NE>'";

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Speaks {
    Berth,
    Ttyd,
}

#[derive(Debug, Args)]
struct At {
    #[command(flatten)]
    to: To,
    /// Whose terminal it is
    #[arg(long)]
    speaks: Speaks,
    /// Say how much was dealt with, as the console does
    #[arg(long)]
    acknowledge: bool,
}

struct Terminal {
    socket: Socket,
    speaks: Speaks,
    /// What came since the last acknowledgement, where they are wanted.
    unsaid: Option<usize>,
}

impl At {
    async fn open(&self) -> anyhow::Result<Terminal> {
        let mut socket = self.to.open().await?;
        if matches!(self.speaks, Speaks::Ttyd) {
            let hello = json!({ "AuthToken": "", "columns": 80, "rows": 24 });
            socket.send(Message::binary(hello.to_string())).await?;
        }
        Ok(Terminal { socket, speaks: self.speaks, unsaid: self.acknowledge.then_some(0) })
    }
}

impl Terminal {
    async fn send(&mut self, keys: &[u8]) -> anyhow::Result<()> {
        let bytes = match self.speaks {
            Speaks::Berth => keys.to_vec(),
            Speaks::Ttyd => [b"0", keys].concat(),
        };
        Ok(self.socket.send(Message::binary(bytes)).await?)
    }

    /// The next output; never empty.
    async fn output(&mut self) -> anyhow::Result<Bytes> {
        loop {
            let message = tokio::time::timeout(SILENCE, self.socket.next()).await.context("it is silent")?;
            let Message::Binary(mut bytes) = message.context("the terminal was closed")?? else { continue };
            match self.speaks {
                Speaks::Berth => {}
                Speaks::Ttyd if bytes.first() == Some(&b'0') => drop(bytes.split_to(1)),
                // Its title and settings.
                Speaks::Ttyd => continue,
            }
            if !bytes.is_empty() {
                self.acknowledge(bytes.len()).await?;
                return Ok(bytes);
            }
        }
    }

    async fn acknowledge(&mut self, bytes: usize) -> anyhow::Result<()> {
        let Some(unsaid) = &mut self.unsaid else { return Ok(()) };
        *unsaid += bytes;
        if *unsaid >= ACK_EVERY {
            let ack = json!({ "ack": std::mem::take(unsaid) });
            self.socket.send(Message::text(ack.to_string())).await?;
        }
        Ok(())
    }

    /// Reads until `mark` has come; how many bytes that was.
    async fn until(&mut self, mark: &[u8]) -> anyhow::Result<usize> {
        let (mut count, mut tail) = (0, Vec::new());
        loop {
            let bytes = self.output().await?;
            count += bytes.len();
            tail.extend_from_slice(&bytes);
            if tail.windows(mark.len()).any(|window| window == mark) {
                return Ok(count);
            }
            tail.drain(..tail.len().saturating_sub(mark.len()));
        }
    }

    /// Runs a line and waits for its end; how many bytes came.
    async fn line(&mut self, line: &str) -> anyhow::Result<usize> {
        self.send(format!("{line}; {TELL_END}\n").as_bytes()).await?;
        self.until(END).await
    }
}

#[derive(Debug, Args)]
pub(crate) struct Keys {
    #[command(flatten)]
    at: At,
    #[arg(long, default_value_t = 600)]
    count: usize,
}

impl Keys {
    /// `cat` reads, so that nothing but the terminal itself answers a key.
    pub(crate) async fn run(self) -> anyhow::Result<Value> {
        let mut terminal = self.at.open().await?;
        terminal.line("true").await?;
        terminal.send(b"echo RE''ADY; cat >/dev/null\n").await?;
        terminal.until(b"READY").await?;
        let mut times = Vec::with_capacity(self.count);
        for key in 0..self.count {
            // A line in this mode is at most 4,096 keys.
            if key % 1000 == 999 {
                terminal.send(b"\n").await?;
                terminal.until(b"\n").await?;
            }
            let begun = Instant::now();
            terminal.send(b"x").await?;
            loop {
                if terminal.output().await?.contains(&b'x') {
                    break;
                }
            }
            times.push(begun.elapsed());
        }
        Ok(summary(times))
    }
}

#[derive(Debug, Args)]
pub(crate) struct Flood {
    #[command(flatten)]
    at: At,
    /// What to run
    #[arg(long)]
    command: String,
    /// Instead of waiting for its end, interrupt it after so many bytes
    #[arg(long)]
    interrupt_after: Option<usize>,
}

impl Flood {
    pub(crate) async fn run(self) -> anyhow::Result<Value> {
        let mut terminal = self.at.open().await?;
        terminal.line("stty -echo").await?;
        let begun = Instant::now();
        let Some(after) = self.interrupt_after else {
            let bytes = terminal.line(&self.command).await?;
            return Ok(json!({ "bytes": bytes, "seconds": begun.elapsed().as_secs_f64() }));
        };
        terminal.send(format!("{}; {TELL_END}\n", self.command).as_bytes()).await?;
        let mut seen = 0;
        while seen < after {
            let bytes = terminal.output().await?;
            if bytes.windows(END.len()).any(|window| window == END) {
                bail!("the command ended before it was interrupted");
            }
            seen += bytes.len();
        }
        let pressed = Instant::now();
        terminal.send(&[INTERRUPT, b'\n']).await?;
        terminal.send(b"echo ST''OPPED\n").await?;
        terminal.until(b"STOPPED").await?;
        Ok(json!({ "interrupt_ms": pressed.elapsed().as_secs_f64() * 1e3 }))
    }
}
