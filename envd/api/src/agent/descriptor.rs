//! Replies, and the one descriptor that may ride on a reply.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{BorrowedFd, OwnedFd},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use tokio::{
    io::{AsyncReadExt, Interest},
    net::UnixStream,
};

use super::{
    Passed, ProtocolError, Refusal, Reply,
    message::{body_length, encode},
    passed::{discard, takes_no_more},
};

/// A reply as it arrived, with what rode on it.
#[derive(Debug)]
pub enum Received {
    Stream,
    Descriptor(Passed),
    Listening { port: u16, path: String },
    Refused { refusal: Refusal, message: String },
}

/// Sends [`Reply::Descriptor`] with the descriptor on it. The receiver gets a copy; `fd` stays the caller's.
pub async fn send_with_descriptor(stream: &UnixStream, fd: BorrowedFd<'_>) -> Result<(), ProtocolError> {
    let message = encode(&Reply::Descriptor)?;
    let sent = stream
        .async_io(Interest::WRITABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let fds = [fd];
            if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            Ok(rustix::net::sendmsg(stream, &[IoSlice::new(&message)], &mut control, flags)?)
        })
        .await?;
    let mut rest = &message[sent..];
    while !rest.is_empty() {
        stream.writable().await?;
        match stream.try_write(rest) {
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Receives a reply. A descriptor is taken only with [`Reply::Descriptor`], only one, and only when it is a connected
/// stream socket; whatever else comes is closed and the reply is an error.
///
/// Reads not a byte more than the reply. Not cancel-safe.
pub async fn receive_reply(stream: &mut UnixStream) -> Result<Received, ProtocolError> {
    let mut header = [0; 4];
    let mut filled = 0;
    let mut ridden = Ridden { fds: Vec::new(), cut: false };
    while filled < header.len() {
        let rest = &mut header[filled..];
        match stream.async_io(Interest::READABLE, || receive(stream, rest, &mut ridden)).await? {
            0 => return Err(ProtocolError::Io(io::ErrorKind::UnexpectedEof.into())),
            read => filled += read,
        }
        if ridden.cut || ridden.fds.len() > 1 {
            return Err(ProtocolError::Descriptor("more than one descriptor"));
        }
    }
    // A plain read: the kernel closes descriptors that ride on the rest.
    let mut body = vec![0; body_length(header)?];
    stream.read_exact(&mut body).await?;

    match (serde_json::from_slice(&body)?, ridden.fds.pop()) {
        (Reply::Descriptor, Some(fd)) => Passed::receive(fd).map(Received::Descriptor),
        (Reply::Descriptor, None) => Err(ProtocolError::Descriptor("no descriptor")),
        (Reply::Stream, None) => Ok(Received::Stream),
        (Reply::Listening { port, path }, None) => Ok(Received::Listening { port, path }),
        (Reply::Refused { refusal, message }, None) => Ok(Received::Refused { refusal, message }),
        (Reply::Stream | Reply::Listening { .. } | Reply::Refused { .. }, Some(fd)) => {
            discard(fd);
            Err(ProtocolError::Descriptor("a descriptor that nobody asked for"))
        }
    }
}

/// The descriptors that came so far. All that is not taken is discarded.
struct Ridden {
    fds: Vec<OwnedFd>,
    /// The kernel closed some that did not fit.
    cut: bool,
}

impl Drop for Ridden {
    fn drop(&mut self) {
        self.fds.drain(..).for_each(discard);
    }
}

fn receive(stream: &UnixStream, into: &mut [u8], ridden: &mut Ridden) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    // Without room the kernel closes what comes, and says so. It does not wait for that.
    let room = if takes_no_more() { 0 } else { space.len() };
    let mut control = RecvAncillaryBuffer::new(&mut space[..room]);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = rustix::net::recvmsg(stream, &mut [IoSliceMut::new(into)], &mut control, flags)?;
    ridden.cut |= received.flags.contains(ReturnFlags::CTRUNC);
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            ridden.fds.extend(fds);
        }
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use tokio::{
        io::AsyncWriteExt,
        net::{TcpListener, TcpStream},
    };

    use super::*;

    async fn tcp_pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (near, listener.accept().await.unwrap().0)
    }

    fn send_raw(stream: &UnixStream, reply: &Reply, fds: &[BorrowedFd<'_>]) {
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(32))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
        let message = encode(reply).unwrap();
        rustix::net::sendmsg(stream, &[IoSlice::new(&message)], &mut control, SendFlags::empty()).unwrap();
    }

    #[tokio::test]
    async fn a_passed_socket_is_a_byte_stream_even_when_its_sender_makes_it_block() {
        let (agent, mut gateway) = UnixStream::pair().unwrap();
        let (app, mut user) = tcp_pair().await;
        send_with_descriptor(&agent, app.as_fd()).await.unwrap();
        let Received::Descriptor(mut passed) = receive_reply(&mut gateway).await.unwrap() else {
            panic!("no descriptor")
        };
        // The sender's copy shares its flags with ours.
        let app = app.into_std().unwrap();
        app.set_nonblocking(false).unwrap();

        let mut byte = [0];
        tokio::select! {
            biased;
            read = passed.read(&mut byte) => panic!("{read:?} out of nothing"),
            () = tokio::task::yield_now() => {}
        }
        user.write_all(b"x").await.unwrap();
        passed.read_exact(&mut byte).await.unwrap();
        assert_eq!(&byte, b"x");

        // Fills the socket: a blocking write would hang this test's only thread.
        let flood = vec![7; 16 << 20];
        let expected = flood.len();
        let write = async {
            passed.write_all(&flood).await.unwrap();
            passed.shutdown().await.unwrap();
        };
        let read = async {
            let mut all = Vec::new();
            user.read_to_end(&mut all).await.unwrap();
            assert_eq!(all.len(), expected);
        };
        tokio::join!(write, read);
    }

    #[tokio::test]
    async fn only_one_connected_stream_socket_is_taken() {
        let (tcp, _peer) = tcp_pair().await;
        let (unix, _other) = UnixStream::pair().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        datagrams.connect(("127.0.0.1", 9)).unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        let (tcp, unix) = (tcp.as_fd(), unix.as_fd());

        let check = async |reply: &Reply, fds: &[BorrowedFd<'_>]| {
            let (agent, mut gateway) = UnixStream::pair().unwrap();
            send_raw(&agent, reply, fds);
            receive_reply(&mut gateway).await.map(drop)
        };
        let descriptor = Reply::Descriptor;
        check(&descriptor, &[tcp]).await.unwrap();
        check(&descriptor, &[unix]).await.unwrap();
        check(&descriptor, &[tcp, tcp]).await.unwrap_err();
        check(&descriptor, &[tcp; 30]).await.unwrap_err();
        check(&descriptor, &[]).await.unwrap_err();
        check(&descriptor, &[listener.as_fd()]).await.unwrap_err();
        check(&descriptor, &[datagrams.as_fd()]).await.unwrap_err();
        check(&descriptor, &[file.as_fd()]).await.unwrap_err();
        check(&Reply::Stream, &[tcp]).await.unwrap_err();
    }

    #[tokio::test]
    async fn refused_descriptors_do_not_stay_open() {
        let (tcp, mut peer) = tcp_pair().await;
        let (agent, mut gateway) = UnixStream::pair().unwrap();
        send_raw(&agent, &Reply::Descriptor, &[tcp.as_fd(), tcp.as_fd(), tcp.as_fd()]);
        receive_reply(&mut gateway).await.unwrap_err();
        drop(tcp);
        // The end arrives only when every copy is closed.
        let end = tokio::time::timeout(std::time::Duration::from_mins(1), peer.read(&mut [0])).await;
        assert_eq!(end.unwrap().unwrap(), 0);
    }

    #[tokio::test]
    async fn a_reply_is_read_and_not_a_byte_more() {
        let (mut agent, mut gateway) = UnixStream::pair().unwrap();
        let mut bytes = encode(&Reply::Stream).unwrap();
        bytes.extend_from_slice(b"rest");
        agent.write_all(&bytes).await.unwrap();
        assert!(matches!(receive_reply(&mut gateway).await.unwrap(), Received::Stream));
        let mut rest = [0; 4];
        gateway.read_exact(&mut rest).await.unwrap();
        assert_eq!(&rest, b"rest");
    }
}
