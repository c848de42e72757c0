//! A connection to a port on the instance's own loopback, handed to the gateway whole.

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

use crate::link::Refused;

/// Loopback answers at once, unless the app's own queue is full.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

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

/// Passes the descriptor and is done. Where the system has too many descriptors under way, relays the bytes instead.
pub(crate) async fn hand_over(mut gateway: UnixStream, mut app: TcpStream) -> Result<(), ProtocolError> {
    match send_with_descriptor(&mut gateway, app.as_fd()).await {
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
