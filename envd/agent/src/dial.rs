//! A connection to a port on the instance's own loopback, or to whatever the instance can reach, handed to the gateway
//! whole.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::AsFd as _,
    time::Duration,
};

use envd_api::agent::{ProtocolError, Refusal, Reply, send_with_descriptor, write_message};
use tokio::{
    net::{TcpStream, UnixStream},
    time::timeout,
};

use crate::{Agent, link::Refused, resolve};

/// Loopback answers at once, unless the app's own queue is full.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// What another machine may take, each of its addresses and all of them: less than the gateway waits.
const REACH_LIMIT: Duration = Duration::from_secs(4);
const REACH_TOTAL: Duration = Duration::from_secs(8);
const ADDRESSES_MAX: usize = 8;

pub(crate) async fn dial(port: u16) -> Result<TcpStream, Refused> {
    for address in
        [SocketAddr::from((Ipv4Addr::LOCALHOST, port)), SocketAddr::from((Ipv6Addr::LOCALHOST, port))]
    {
        if let Ok(Ok(connection)) = timeout(CONNECT_LIMIT, TcpStream::connect(address)).await {
            return Ok(connection);
        }
    }
    let message = format!("nothing listens on port {port} in this instance");
    Err(Refused { refusal: Refusal::NothingListens, message })
}

/// A connection to any address that the instance can reach.
pub(crate) async fn reach(agent: &Agent, host: &str, port: u16) -> Result<TcpStream, Refused> {
    let refused = |message: String| Refused { refusal: Refusal::NothingListens, message };
    let addresses = resolve::look_up(agent, host)
        .await
        .map_err(|error| refused(format!("`{host}` is not known: {error}")))?;
    let mut last = None;
    let tries = async {
        for address in addresses.into_iter().take(ADDRESSES_MAX) {
            match timeout(REACH_LIMIT, TcpStream::connect(SocketAddr::new(address, port))).await {
                Ok(Ok(connection)) => return Some(connection),
                Ok(Err(error)) => last = Some(error.to_string()),
                Err(_) => last = Some("no answer".to_owned()),
            }
        }
        None
    };
    let connection = timeout(REACH_TOTAL, tries).await.unwrap_or_default();
    let connection = connection.ok_or_else(|| {
        refused(format!("`{host}` port {port}: {}", last.unwrap_or_else(|| "no answer".to_owned())))
    })?;
    let _as_it_is = connection.set_nodelay(true);
    Ok(connection)
}

/// Passes the descriptor and is done. Where the system has too many descriptors under way, relays the bytes instead.
pub(crate) async fn hand_over(mut gateway: UnixStream, mut app: TcpStream) -> Result<(), ProtocolError> {
    match send_with_descriptor(&gateway, app.as_fd()).await {
        Err(ProtocolError::Io(error))
            if error.raw_os_error() == Some(rustix::io::Errno::TOOMANYREFS.raw_os_error()) =>
        {
            write_message(&mut gateway, &Reply::Stream).await?;
            tokio::io::copy_bidirectional(&mut gateway, &mut app).await?;
            Ok(())
        }
        result => result,
    }
}
