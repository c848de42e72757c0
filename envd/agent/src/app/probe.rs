//! Whether an app answers yet: not that something listens, but that it speaks.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{sleep, timeout},
};

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(100);
/// For one answer. The first one can take long: some apps read themselves from disk for it.
const ANSWER_LIMIT: Duration = Duration::from_mins(1);
/// How every answer of HTTP begins.
const HTTP: &[u8] = b"HTTP/1.";
/// How every VNC server greets.
const VNC: &[u8] = b"RFB 00";

/// What an app speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// HTTP, with a page at this path.
    Http(String),
    Vnc,
}

/// Waits, for ever, until something listens on that port of loopback.
pub(crate) async fn listens(port: u16) {
    while connect(port).await.is_err() {
        sleep(PAUSE).await;
    }
}

/// Waits, for ever, until it answers.
pub(crate) async fn answers(port: u16, speaks: &Speaks) {
    while !matches!(timeout(ANSWER_LIMIT, ask(port, speaks)).await, Ok(Ok(true))) {
        sleep(PAUSE).await;
    }
}

async fn connect(port: u16) -> io::Result<TcpStream> {
    TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await
}

async fn ask(port: u16, speaks: &Speaks) -> io::Result<bool> {
    let mut stream = connect(port).await?;
    let expected = match speaks {
        Speaks::Http(path) => {
            let request =
                format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await?;
            HTTP
        }
        Speaks::Vnc => VNC,
    };
    let mut beginning = vec![0; expected.len()];
    stream.read_exact(&mut beginning).await?;
    Ok(beginning == expected)
}
