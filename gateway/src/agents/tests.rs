//! The gateway's side against an agent that is played by hand.

use std::os::{
    fd::{AsFd as _, AsRawFd as _},
    unix::fs::PermissionsExt as _,
};

use envd_api::agent::{
    Chunk, Greeting, Reply, Request, SOCKET, VERSION, read_message, send_with_descriptor, write_message,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::*;

/// Nothing here takes long, but the machine may be busy.
const LIMIT: Duration = Duration::from_mins(1);

struct World {
    directory: tempfile::TempDir,
    instance: InstanceId,
    agents: Agents,
}

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(LIMIT, future).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

impl World {
    async fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        // Longer than a socket's path may be.
        let data = directory.path().join("d".repeat(120));
        let world = Self {
            agents: Agents::new(vec![data], Tasks::default()),
            instance: InstanceId::new(),
            directory,
        };
        world.make_directory();
        world.agents.open(&world.instance).await.unwrap();
        world
    }

    fn door(&self) -> PathBuf {
        envd_api::agent::door(&self.agents.shared.data[0], &self.instance)
    }

    fn make_directory(&self) {
        std::fs::create_dir_all(self.door().join("link")).unwrap();
    }

    async fn connect(&self) -> UnixStream {
        let door = std::fs::File::open(self.door()).unwrap();
        UnixStream::connect(format!("/proc/self/fd/{}/{SOCKET}", door.as_raw_fd())).await.unwrap()
    }

    async fn greet(&self, greeting: Greeting) -> UnixStream {
        let mut stream = self.connect().await;
        write_message(&mut stream, &greeting).await.unwrap();
        stream
    }

    async fn link(&self) -> UnixStream {
        let link = self.greet(Greeting::Link { version: VERSION }).await;
        soon("the link", self.agents.door(&self.instance).unwrap().link()).await.unwrap();
        link
    }

    /// There is a link now.
    async fn linked(&self) -> bool {
        let door = self.agents.door(&self.instance).unwrap();
        timeout(Duration::ZERO, door.link()).await.is_ok()
    }

    /// Takes the next request from the link and connects to answer it.
    async fn answer(&self, link: &mut UnixStream) -> (Call, UnixStream) {
        let Request { request, call } = soon("a request", read_message(link)).await.unwrap();
        (call, self.greet(Greeting::Answer { request }).await)
    }

    fn exec(&self) -> impl Future<Output = Result<Process, AgentError>> {
        let exec = Exec { argv: vec!["true".to_owned()], env: [].into(), cwd: None, tty: None };
        self.agents.exec(&self.instance, exec)
    }
}

async fn ends(mut stream: UnixStream) {
    assert_eq!(soon("the end of a connection", stream.read(&mut [0; 64])).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn a_door_is_opened_once_for_its_owner_alone_and_again_when_it_was_made_anew() {
    let world = World::open().await;
    let socket = world.door().join(SOCKET);
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let _link = world.link().await;
    world.agents.open(&world.instance).await.unwrap();
    assert!(world.linked().await);

    std::fs::remove_dir_all(world.door()).unwrap();
    world.agents.open(&world.instance).await.unwrap_err();
    world.make_directory();
    std::fs::write(&socket, "left by somebody").unwrap();
    world.agents.open(&world.instance).await.unwrap();
    assert!(!world.linked().await);
    let link = world.link().await;

    world.agents.close(&world.instance);
    ends(link).await;
    assert!(matches!(world.exec().await, Err(AgentError::NotLinked)));
    drop(world.directory);
}

#[tokio::test]
async fn a_call_waits_for_the_link_and_gets_its_streams() {
    let world = World::open().await;
    let agent = async {
        let mut link = world.link().await;
        let (call, mut stream) = world.answer(&mut link).await;
        assert!(matches!(call, Call::Exec(_)));
        write_message(&mut stream, &Reply::Stream).await.unwrap();
        let (read, write) = stream.into_split();
        ChunkWriter::new(write).send(&Chunk::Stdout(b"hi".to_vec())).await.unwrap();
        assert_eq!(ChunkReader::new(read).next().await.unwrap(), Some(Chunk::CloseStdin));
    };
    let gateway = async {
        let mut process = soon("a process", world.exec()).await.unwrap();
        assert_eq!(process.output.next().await.unwrap(), Some(Chunk::Stdout(b"hi".to_vec())));
        process.input.send(&Chunk::CloseStdin).await.unwrap();
        process
    };
    let _kept = tokio::join!(gateway, agent);
}

#[tokio::test]
async fn dial_takes_a_descriptor_or_a_relay() {
    let world = World::open().await;
    let app = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut link = world.link().await;
    for relayed in [false, true] {
        let agent = async {
            let (call, mut stream) = world.answer(&mut link).await;
            assert_eq!(call, Call::Dial { port: 80 });
            let mut connection = TcpStream::connect(app.local_addr().unwrap()).await.unwrap();
            if relayed {
                write_message(&mut stream, &Reply::Stream).await.unwrap();
                let _ended = tokio::io::copy_bidirectional(&mut stream, &mut connection).await;
            } else {
                send_with_descriptor(&stream, connection.as_fd()).await.unwrap();
            }
        };
        let gateway = async {
            let mut passed = soon("a connection", world.agents.dial(&world.instance, 80)).await.unwrap();
            passed.write_all(b"ping").await.unwrap();
            let (mut connection, _) = app.accept().await.unwrap();
            let mut echo = [0; 4];
            soon("ping", connection.read_exact(&mut echo)).await.unwrap();
            assert_eq!(&echo, b"ping");
        };
        tokio::join!(gateway, agent);
    }
}

#[tokio::test]
async fn a_refusal_is_shown_without_control_characters_and_not_at_any_length() {
    let world = World::open().await;
    let mut link = world.link().await;
    let agent = async {
        let (_, mut stream) = world.answer(&mut link).await;
        let message = format!("\u{1b}[2Jno{}", "o".repeat(10_000));
        write_message(&mut stream, &Reply::Refused { refusal: Refusal::CannotRun, message }).await.unwrap();
    };
    let (refused, ()) = tokio::join!(world.exec(), agent);
    match refused {
        Err(AgentError::Refused { refusal: Refusal::CannotRun, message }) => {
            assert!(message.starts_with("[2Jnooo") && message.len() == SENTENCE_MAX, "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_newest_link_counts_and_a_broken_one_fails_its_calls() {
    let world = World::open().await;
    let old = world.link().await;
    let mut new = world.greet(Greeting::Link { version: VERSION + 41 }).await;
    ends(old).await;
    let agent = async {
        let _unanswered: Request = soon("a request", read_message(&mut new)).await.unwrap();
        drop(new);
    };
    let (failed, ()) = tokio::join!(soon("the failure", world.exec()), agent);
    assert!(matches!(failed, Err(AgentError::NotLinked)), "{failed:?}");
    assert!(!world.linked().await);
}

/// Agents live for months: those of yesterday and of tomorrow say things that this gateway does not know.
#[tokio::test]
async fn an_agent_of_another_version_is_understood() {
    let world = World::open().await;
    let mut old: Option<UnixStream> = None;
    for version in [0, VERSION + 1] {
        let mut link = world.connect().await;
        let greeting = serde_json::json!({"link": {"version": version, "colour": "blue"}});
        write_message(&mut link, &greeting).await.unwrap();
        if let Some(old) = old.take() {
            ends(old).await;
        }
        let agent = async {
            for reply in [
                serde_json::json!("stream"),
                serde_json::json!({"refused": {"refusal": "tired", "message": "later", "colour": "blue"}}),
            ] {
                let request: Request = soon("a request", read_message(&mut link)).await.unwrap();
                let mut answer = world.connect().await;
                let greeting = serde_json::json!({"answer": {"request": request.request, "colour": "blue"}});
                write_message(&mut answer, &greeting).await.unwrap();
                write_message(&mut answer, &reply).await.unwrap();
            }
        };
        let gateway = async {
            world.exec().await.unwrap();
            let refused = world.exec().await;
            assert!(
                matches!(&refused, Err(AgentError::Refused { refusal: Refusal::Other, message }) if message == "later"),
                "{refused:?}"
            );
        };
        tokio::join!(gateway, agent);
        old = Some(link);
    }
}

#[tokio::test]
async fn nonsense_ends_its_own_connection_and_no_other() {
    let world = World::open().await;
    let mut link = world.link().await;
    let mut nonsense = world.connect().await;
    nonsense.write_all(&[0, 0, 0, 2, b'h', b'i']).await.unwrap();
    ends(nonsense).await;
    ends(world.greet(Greeting::Answer { request: 4 }).await).await;

    let agent = async {
        let (_, mut stream) = world.answer(&mut link).await;
        stream.write_all(&[255; 8]).await.unwrap();
        let (_, mut stream) = world.answer(&mut link).await;
        write_message(&mut stream, &Reply::Stream).await.unwrap();
        stream
    };
    let gateway = async {
        let nonsense = soon("an answer", world.exec()).await;
        assert!(matches!(nonsense, Err(AgentError::Protocol(_))), "{nonsense:?}");
        soon("a process", world.exec()).await.unwrap()
    };
    let _kept = tokio::join!(gateway, agent);
}

#[tokio::test]
async fn connections_that_say_nothing_are_few() {
    let world = World::open().await;
    let mut silent = Vec::new();
    for _ in 0..door::UNGREETED_MAX {
        silent.push(world.connect().await);
    }
    ends(world.connect().await).await;
    silent.clear();
    // As soon as their end has been noticed there is room again.
    let door = world.agents.door(&world.instance).unwrap();
    soon("a link", async {
        let mut link = world.connect().await;
        while timeout(Duration::from_millis(50), door.link()).await.is_err() {
            link = world.connect().await;
            let _no_room_yet = write_message(&mut link, &Greeting::Link { version: VERSION }).await;
        }
        link
    })
    .await;
}
