//! One agent, its door, and the gateway's end of the conversation.

use std::{
    future::Future,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use envd_api::agent::{
    AgentSpec, Call, Chunk, ChunkReader, ChunkWriter, Exec, Greeting, Received, Refusal, Request, SOCKET,
    SPEC, halves, read_message, receive_reply, write_message,
};
use process_api::{Exit, Tty};
use tokio::{
    io::AsyncWriteExt as _,
    net::{UnixListener, UnixStream},
};

/// Nothing here takes long, but the machine may be busy.
const LIMIT: Duration = Duration::from_mins(1);

pub(crate) struct World {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) agent: Child,
    listener: Option<UnixListener>,
    link: Option<UnixStream>,
    next: u64,
}

pub(crate) struct Process {
    pub(crate) input: ChunkWriter,
    pub(crate) output: ChunkReader,
}

/// All that came from a process.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) exit: Option<Exit>,
}

/// Awaits what must come within the limit.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let value = tokio::time::timeout(LIMIT, future).await;
    value.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LIMIT, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) fn exec(argv: &[&str]) -> Exec {
    Exec {
        argv: argv.iter().map(|part| (*part).to_owned()).collect(),
        env: [("EXTRA".to_owned(), "from the call".to_owned())].into(),
        cwd: None,
        tty: None,
    }
}

pub(crate) fn with_tty(mut exec: Exec) -> Exec {
    exec.tty = Some(Tty { cols: 80, rows: 24, term: None });
    exec
}

pub(crate) fn spec(command: &[&str]) -> AgentSpec {
    AgentSpec {
        generation: 1,
        command: command.iter().map(|part| (*part).to_owned()).collect(),
        env: [("IMAGE".to_owned(), "from the image".to_owned())].into(),
        user: String::new(),
        cwd: "/".to_owned(),
        links: [].into(),
        aliases: [].into(),
        code: None,
        hold: false,
    }
}

impl World {
    /// An agent that has linked.
    pub(crate) async fn linked(spec: &AgentSpec) -> Self {
        let mut world = Self::start(spec);
        world.listen();
        world.wait_for_link().await;
        world
    }

    /// An agent whose gateway is away.
    pub(crate) fn start(spec: &AgentSpec) -> Self {
        let directory = tempfile::tempdir().unwrap();
        // Shells must find nobody's dot files, and leave none behind.
        let mut spec = spec.clone();
        spec.env.insert("HOME".to_owned(), directory.path().display().to_string());
        std::fs::create_dir(directory.path().join("link")).unwrap();
        std::fs::write(directory.path().join(SPEC), serde_json::to_vec(&spec).unwrap()).unwrap();
        let agent = Command::new(env!("CARGO_BIN_EXE_envd-agent"))
            .arg("--door")
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self { directory, agent, listener: None, link: None, next: 1 }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join(SOCKET)
    }

    pub(crate) fn listen(&mut self) {
        self.listener = Some(UnixListener::bind(self.socket()).unwrap());
    }

    /// The gateway goes away, as by `kill -9`: its connections close, its socket stays.
    pub(crate) fn vanish(&mut self) {
        self.listener = None;
        self.link = None;
    }

    /// Bytes on the link that mean nothing.
    pub(crate) async fn say_nonsense(&mut self) {
        self.link.as_mut().unwrap().write_all(&[255; 64]).await.unwrap();
    }

    pub(crate) async fn wait_for_link(&mut self) {
        let (stream, greeting) = self.accept().await;
        assert!(matches!(greeting, Greeting::Link { version } if version >= 1), "{greeting:?}");
        self.link = Some(stream);
    }

    async fn accept(&self) -> (UnixStream, Greeting) {
        let listener = self.listener.as_ref().unwrap();
        let (mut stream, _) = soon("a connection", listener.accept()).await.unwrap();
        let greeting = soon("a greeting", read_message(&mut stream)).await.unwrap();
        (stream, greeting)
    }

    pub(crate) async fn ask(&mut self, call: Call) -> (UnixStream, Received) {
        let request = self.next;
        self.ask_raw(&serde_json::to_value(Request { request, call }).unwrap()).await
    }

    pub(crate) async fn ask_raw(&mut self, request: &serde_json::Value) -> (UnixStream, Received) {
        write_message(self.link.as_mut().unwrap(), request).await.unwrap();
        let (mut stream, greeting) = self.accept().await;
        assert_eq!(greeting, Greeting::Answer { request: self.next });
        self.next += 1;
        let received = soon("a reply", receive_reply(&mut stream)).await.unwrap();
        (stream, received)
    }

    pub(crate) async fn refused(&mut self, call: Call) -> (Refusal, String) {
        let (_, received) = self.ask(call).await;
        let Received::Refused { refusal, message } = received else { panic!("not refused but {received:?}") };
        (refusal, message)
    }

    pub(crate) async fn process(&mut self, call: Call) -> Process {
        match self.ask(call).await {
            (stream, Received::Stream) => {
                let (read, write) = halves(stream).unwrap();
                Process { input: ChunkWriter::new(write), output: ChunkReader::new(read) }
            }
            (_, other) => panic!("no stream but {other:?}"),
        }
    }

    pub(crate) async fn run(&mut self, argv: &[&str]) -> Outcome {
        self.process(Call::Exec(exec(argv))).await.outcome().await
    }

    /// How the agent itself ends, and what it left on its standard output and error.
    pub(crate) async fn end(&mut self) -> (ExitStatus, String, String) {
        let mut status = None;
        until("the agent's end", || {
            status = self.agent.try_wait().unwrap();
            status.is_some()
        })
        .await;
        let read = |pipe: Option<&mut dyn std::io::Read>| {
            let mut text = String::new();
            pipe.unwrap().read_to_string(&mut text).unwrap();
            text
        };
        let stdout = read(self.agent.stdout.as_mut().map(|pipe| pipe as &mut dyn std::io::Read));
        let stderr = read(self.agent.stderr.as_mut().map(|pipe| pipe as &mut dyn std::io::Read));
        (status.unwrap(), stdout, stderr)
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.agent), signal).unwrap();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ended_before = self.agent.kill();
        let _ended_before = self.agent.wait();
    }
}

impl Process {
    pub(crate) async fn outcome(mut self) -> Outcome {
        let mut outcome = Outcome::default();
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        while let Some(chunk) = soon("the end of a process", self.output.next()).await.unwrap() {
            match &chunk {
                Chunk::Stdout(bytes) => stdout.extend(bytes),
                Chunk::Stderr(bytes) => stderr.extend(bytes),
                Chunk::Exit(exit) => {
                    outcome.exit = Some(exit.clone());
                    break;
                }
                Chunk::Stdin(_) | Chunk::Resize(_) | Chunk::Signal(_) | Chunk::CloseStdin => {
                    panic!("unexpected {chunk:?}")
                }
            }
        }
        outcome.stdout = String::from_utf8(stdout).unwrap();
        outcome.stderr = String::from_utf8(stderr).unwrap();
        outcome
    }

    /// Reads on until the output holds `text`; all that was read.
    pub(crate) async fn shows(&mut self, text: &str) -> String {
        let mut shown = Vec::new();
        loop {
            match soon(&format!("{text:?}"), self.output.next()).await.unwrap() {
                Some(Chunk::Stdout(bytes)) => {
                    // Only the end is new; a flood would take for ever otherwise.
                    let new = shown.len().saturating_sub(text.len());
                    shown.extend(bytes);
                    if String::from_utf8_lossy(&shown[new..]).contains(text) {
                        return String::from_utf8_lossy(&shown).into_owned();
                    }
                }
                other => panic!("no {text:?} but {other:?} after {:?}", String::from_utf8_lossy(&shown)),
            }
        }
    }

    pub(crate) async fn types(&mut self, text: &str) {
        self.input.stdin(text.as_bytes()).await.unwrap();
    }
}
