//! A terminal as a person uses one: types, and looks until something is on the screen.

use gateway_api::{
    client::{Client, Process, ProcessEvent},
    stream::Size,
};

use crate::{LIMIT, OrFail as _};

/// An attached terminal and all that it has shown since it was attached.
#[derive(Debug)]
pub struct Screen {
    process: Process,
    shown: String,
}

impl Screen {
    pub async fn attach(client: &Client, instance: &str, terminal: &str) -> Self {
        let size = Size { cols: 100, rows: 30 };
        let process = client.terminal(instance, terminal, size).await.or_fail("attach to a terminal");
        Self { process, shown: String::new() }
    }

    /// Types a line and presses Enter.
    pub async fn enter(&mut self, line: &str) {
        let keys = format!("{line}\r");
        self.process.input.write(keys.as_bytes()).await.or_fail("type");
    }

    /// Looks until `text` is shown.
    pub async fn shows(&mut self, text: &str) {
        let look = async {
            while !self.shown.contains(text) {
                let Some(event) = self.process.output.next().await else { return false };
                match event.or_fail("read the terminal") {
                    ProcessEvent::Output { bytes, .. } => self.shown += &String::from_utf8_lossy(&bytes),
                    ProcessEvent::Exit(_) | ProcessEvent::Problem(_) => return false,
                }
            }
            true
        };
        let found = tokio::time::timeout(LIMIT, look).await;
        assert!(found == Ok(true), "the terminal does not show `{text}`, but:\n{}", self.shown);
    }
}
