//! Listening inside the instance, and connecting to its unix sockets: done by a process of its own that is the image's
//! user, so that the kernel decides what that user may.
//!
//! The process has the answer's connection as its standard input and speaks with the gateway itself; when the gateway
//! closes it, the listener and its socket are gone.

use std::{
    ffi::OsString,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::{
        fd::AsFd as _,
        unix::{ffi::OsStrExt as _, fs::DirBuilderExt as _, net::UnixStream as StdUnixStream},
    },
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use envd_api::agent::{Listen, ProtocolError, Refusal, Reply, send_with_descriptor, write_message};
use rustix::fs::Mode;
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, UnixListener, UnixStream, unix::OwnedReadHalf},
};

/// What is mounted for the agent, the gateway's socket among it.
const OURS: &str = "/.berth";
/// The pause after the system refused to accept a connection, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Connects to a unix socket and passes it to the gateway.
pub(crate) fn connect_unix(path: &OsString) -> ExitCode {
    answer(async |mut gateway| {
        // Where links lead is what counts.
        let ours = std::fs::canonicalize(path).is_ok_and(|real| real.starts_with(OURS));
        if ours {
            let message = format!("`{}` is not for users", path.display());
            return refuse(&mut gateway, Refusal::NotForUsers, message).await;
        }
        match UnixStream::connect(path).await {
            Ok(connection) => send_with_descriptor(&gateway, connection.as_fd()).await,
            Err(error) => {
                refuse(&mut gateway, Refusal::Other, format!("`{}`: {error}", path.display())).await
            }
        }
    })
}

/// Listens where `wanted` (a [`Listen`] as JSON) says and passes every connection to the gateway.
pub(crate) fn serve(wanted: &OsString) -> ExitCode {
    answer(async |mut gateway| {
        let wanted: Listen = serde_json::from_slice(wanted.as_bytes())?;
        match Listener::bind(&wanted).await {
            Ok(listener) => listener.serve(gateway).await,
            Err(error) => refuse(&mut gateway, Refusal::Other, format!("cannot listen: {error}")).await,
        }
    })
}

/// Runs with the connection that is standard input.
fn answer(work: impl AsyncFnOnce(UnixStream) -> Result<(), ProtocolError>) -> ExitCode {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let stream = StdUnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
            stream.set_nonblocking(true)?;
            work(UnixStream::from_std(stream)?).await
        })
    };
    if run().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn refuse(gateway: &mut UnixStream, refusal: Refusal, message: String) -> Result<(), ProtocolError> {
    write_message(gateway, &Reply::Refused { refusal, message }).await
}

/// What accepts.
#[derive(Debug)]
enum Listener {
    /// For `localhost` both kinds of loopback, as far as there are two.
    Tcp(TcpListener, Option<TcpListener>),
    Unix(UnixListener, Socket),
}

/// A socket's file, removed at the end; with the directory that was made for it.
#[derive(Debug)]
struct Socket {
    path: PathBuf,
    directory: Option<PathBuf>,
}

impl Listener {
    async fn bind(wanted: &Listen) -> io::Result<Self> {
        match wanted {
            Listen::Tcp { host, port } => Self::bind_tcp(host, *port).await,
            Listen::Unix { path } => Self::bind_unix(Socket { path: PathBuf::from(path), directory: None }),
            Listen::Private {} => {
                let directory = private_directory()?;
                Self::bind_unix(Socket { path: directory.join("agent.sock"), directory: Some(directory) })
            }
        }
    }

    /// Only its owner may connect, as with `sshd`.
    fn bind_unix(mut socket: Socket) -> io::Result<Self> {
        let before = rustix::process::umask(Mode::from_raw_mode(0o177));
        let bound = UnixListener::bind(&socket.path);
        rustix::process::umask(before);
        if bound.is_err() {
            // Whatever is at that path is not ours to remove.
            socket.path = PathBuf::new();
        }
        Ok(Self::Unix(bound?, socket))
    }

    async fn bind_tcp(host: &str, port: u16) -> io::Result<Self> {
        let both = |v6: IpAddr, v4: IpAddr| (v4, Some(v6));
        let (first, second) = match host {
            "" | "*" => (IpAddr::from(Ipv6Addr::UNSPECIFIED), Some(IpAddr::from(Ipv4Addr::UNSPECIFIED))),
            "localhost" => both(Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()),
            address => {
                let address = address.parse().map_err(|_| {
                    io::Error::other(format!("`{address}` is not an address of this instance"))
                })?;
                (address, None)
            }
        };
        match TcpListener::bind((first, port)).await {
            Ok(listener) => {
                // Where the first one takes both kinds, or there is only one kind, there is no second.
                let port = listener.local_addr()?.port();
                let second = match second {
                    Some(second) => TcpListener::bind(SocketAddr::from((second, port))).await.ok(),
                    None => None,
                };
                Ok(Self::Tcp(listener, second))
            }
            Err(error) => match second {
                Some(second) if host != "localhost" => {
                    Ok(Self::Tcp(TcpListener::bind((second, port)).await?, None))
                }
                Some(_) | None => Err(error),
            },
        }
    }

    async fn serve(self, mut gateway: UnixStream) -> Result<(), ProtocolError> {
        let listening = match &self {
            Self::Tcp(listener, _) => {
                Reply::Listening { port: listener.local_addr()?.port(), path: String::new() }
            }
            Self::Unix(_, socket) => {
                Reply::Listening { port: 0, path: socket.path.to_string_lossy().into_owned() }
            }
        };
        write_message(&mut gateway, &listening).await?;
        let (presence, writer) = gateway.into_split();
        let watch = closed(presence);
        let work = async {
            let mut gateway = writer;
            loop {
                if let Err(error) = self.pass_on(&mut gateway).await {
                    if matches!(&error, ProtocolError::Io(io) if io.kind() != io::ErrorKind::BrokenPipe) {
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    } else {
                        return;
                    }
                }
            }
        };
        tokio::select! { () = watch => {}, () = work => {} }
        Ok(())
    }

    async fn pass_on(&self, gateway: &mut tokio::net::unix::OwnedWriteHalf) -> Result<(), ProtocolError> {
        let stream: &UnixStream = gateway.as_ref();
        match self {
            Self::Tcp(first, second) => {
                let other = async {
                    match second {
                        Some(second) => second.accept().await,
                        None => std::future::pending().await,
                    }
                };
                let (connection, _) = tokio::select! {
                    accepted = first.accept() => accepted?,
                    accepted = other => accepted?,
                };
                let _as_it_is = connection.set_nodelay(true);
                send_with_descriptor(stream, connection.as_fd()).await
            }
            Self::Unix(listener, _) => {
                let (connection, _) = listener.accept().await?;
                send_with_descriptor(stream, connection.as_fd()).await
            }
        }
    }
}

/// Waits until the gateway has closed its end. It never sends anything.
async fn closed(mut presence: OwnedReadHalf) {
    let mut byte = [0];
    while matches!(presence.read(&mut byte).await, Ok(1..)) {}
}

fn private_directory() -> io::Result<PathBuf> {
    let mut tries = 0;
    loop {
        let name = format!("ssh-{:08x}{:08x}", random()?, random()?);
        let path = Path::new("/tmp").join(name);
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < 3 => tries += 1,
            Err(error) => return Err(io::Error::new(error.kind(), format!("/tmp: {error}"))),
            Ok(()) => return Ok(path),
        }
    }
}

fn random() -> io::Result<u32> {
    let mut bytes = [0; 4];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(u32::from_ne_bytes(bytes))
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.path);
        if let Some(directory) = &self.directory {
            let _not_empty = std::fs::remove_dir(directory);
        }
    }
}
