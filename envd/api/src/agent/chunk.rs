//! Chunks: the pieces of a process's streams, each a kind (u8), a length (u32, big-endian) and bytes.
//!
//! No chunk is longer than [`CHUNK_MAX`]; longer data is sent as several. A kind that this version does not know is
//! skipped, so that a newer end can say more to an older one.

use gateway_api::stream::{Exit, Size};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::unix::{OwnedReadHalf, OwnedWriteHalf},
};

use super::{CHUNK_MAX, Chunk, ProtocolError};

const STDIN: u8 = 1;
const STDOUT: u8 = 2;
const STDERR: u8 = 3;
const RESIZE: u8 = 4;
const SIGNAL: u8 = 5;
const CLOSE_STDIN: u8 = 6;
const EXIT: u8 = 7;

const HEADER: usize = 5;

/// The writing half of a process's stream.
///
/// Dropping the gateway's one hangs the process up; to end its input, send [`Chunk::CloseStdin`].
#[derive(Debug)]
pub struct ChunkWriter<W = OwnedWriteHalf> {
    to: W,
    frame: Vec<u8>,
}

/// The reading half of a process's stream.
#[derive(Debug)]
pub struct ChunkReader<R = OwnedReadHalf> {
    from: R,
    header: [u8; HEADER],
    body: Vec<u8>,
    /// How much of header and body has arrived; kept here so that [`Self::next`] can be cancelled.
    filled: usize,
}

// === impl ChunkWriter ===

impl<W: AsyncWrite + Unpin> ChunkWriter<W> {
    pub fn new(to: W) -> Self {
        Self { to, frame: Vec::new() }
    }

    /// Sends a chunk, data longer than [`CHUNK_MAX`] as several. Waits when the other end is slow. Not cancel-safe.
    pub async fn send(&mut self, chunk: &Chunk) -> Result<(), ProtocolError> {
        match chunk {
            Chunk::Stdin(bytes) => self.data(STDIN, bytes).await,
            Chunk::Stdout(bytes) => self.data(STDOUT, bytes).await,
            Chunk::Stderr(bytes) => self.data(STDERR, bytes).await,
            Chunk::Resize(size) => self.frame(RESIZE, &serde_json::to_vec(size)?).await,
            Chunk::Signal(name) => self.frame(SIGNAL, name.as_bytes()).await,
            Chunk::CloseStdin => self.frame(CLOSE_STDIN, &[]).await,
            Chunk::Exit(exit) => self.frame(EXIT, &serde_json::to_vec(exit)?).await,
        }
    }

    /// [`Chunk::Stdin`] without a copy of its own.
    pub async fn stdin(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        self.data(STDIN, bytes).await
    }

    /// [`Chunk::Stdout`] without a copy of its own.
    pub async fn stdout(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        self.data(STDOUT, bytes).await
    }

    /// [`Chunk::Stderr`] without a copy of its own.
    pub async fn stderr(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        self.data(STDERR, bytes).await
    }

    async fn data(&mut self, kind: u8, bytes: &[u8]) -> Result<(), ProtocolError> {
        for piece in bytes.chunks(CHUNK_MAX) {
            self.frame(kind, piece).await?;
        }
        Ok(())
    }

    async fn frame(&mut self, kind: u8, body: &[u8]) -> Result<(), ProtocolError> {
        let length = u32::try_from(body.len()).map_err(|_| ProtocolError::TooLong(body.len()))?;
        if body.len() > CHUNK_MAX {
            return Err(ProtocolError::TooLong(body.len()));
        }
        self.frame.clear();
        self.frame.push(kind);
        self.frame.extend_from_slice(&length.to_be_bytes());
        self.frame.extend_from_slice(body);
        self.to.write_all(&self.frame).await?;
        Ok(())
    }
}

// === impl ChunkReader ===

impl<R: AsyncRead + Unpin> ChunkReader<R> {
    pub fn new(from: R) -> Self {
        Self { from, header: [0; HEADER], body: Vec::new(), filled: 0 }
    }

    /// The next chunk, or `None` when the other end has closed. Cancel-safe: what had arrived is kept.
    pub async fn next(&mut self) -> Result<Option<Chunk>, ProtocolError> {
        loop {
            while self.filled < HEADER {
                match self.from.read(&mut self.header[self.filled..]).await? {
                    0 if self.filled == 0 => return Ok(None),
                    0 => return Err(end_within_a_chunk()),
                    read => self.filled += read,
                }
            }
            let [kind, length @ ..] = self.header;
            let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
            if length > CHUNK_MAX {
                return Err(ProtocolError::TooLong(length));
            }
            self.body.resize(length, 0);
            while self.filled < HEADER + length {
                match self.from.read(&mut self.body[self.filled - HEADER..]).await? {
                    0 => return Err(end_within_a_chunk()),
                    read => self.filled += read,
                }
            }
            self.filled = 0;
            if let Some(chunk) = decode(kind, std::mem::take(&mut self.body))? {
                return Ok(Some(chunk));
            }
        }
    }

    /// What the chunks are read from.
    pub fn get_ref(&self) -> &R {
        &self.from
    }
}

fn decode(kind: u8, body: Vec<u8>) -> Result<Option<Chunk>, ProtocolError> {
    Ok(Some(match kind {
        STDIN => Chunk::Stdin(body),
        STDOUT => Chunk::Stdout(body),
        STDERR => Chunk::Stderr(body),
        RESIZE => Chunk::Resize(serde_json::from_slice::<Size>(&body)?),
        SIGNAL => Chunk::Signal(String::from_utf8(body).map_err(|_| ProtocolError::MalformedChunk)?),
        CLOSE_STDIN => Chunk::CloseStdin,
        EXIT => Chunk::Exit(serde_json::from_slice::<Exit>(&body)?),
        _ => return Ok(None),
    }))
}

fn end_within_a_chunk() -> ProtocolError {
    ProtocolError::Io(std::io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_kind() -> Vec<Chunk> {
        vec![
            Chunk::Stdin(b"in".to_vec()),
            Chunk::Stdout(b"out".to_vec()),
            Chunk::Stderr(Vec::from([0, 255])),
            Chunk::Resize(Size { cols: 80, rows: 24 }),
            Chunk::Signal("INT".to_owned()),
            Chunk::CloseStdin,
            Chunk::Exit(Exit::Code(3)),
            Chunk::Exit(Exit::Signal("KILL".to_owned())),
        ]
    }

    #[tokio::test]
    async fn chunks_read_back_over_the_halves_of_a_socket() {
        let (near, far) = tokio::net::UnixStream::pair().unwrap();
        let (read, _kept) = far.into_split();
        let (_unused, write) = near.into_split();
        let (mut writer, mut reader) = (ChunkWriter::new(write), ChunkReader::new(read));
        for chunk in every_kind() {
            writer.send(&chunk).await.unwrap();
            assert_eq!(reader.next().await.unwrap(), Some(chunk));
        }
        drop(writer);
        assert_eq!(reader.next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn long_data_is_sent_in_pieces_and_arrives_whole() {
        let (near, far) = tokio::io::duplex(1000);
        let data: Vec<u8> = (0..CHUNK_MAX * 2 + 17).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let expected = data.clone();
        let write = async move { ChunkWriter::new(near).send(&Chunk::Stdin(data)).await.unwrap() };
        let read = async {
            let mut reader = ChunkReader::new(far);
            let mut whole = Vec::new();
            while let Some(Chunk::Stdin(piece)) = reader.next().await.unwrap() {
                assert!(piece.len() <= CHUNK_MAX);
                whole.extend(piece);
            }
            assert!(whole == expected);
        };
        tokio::join!(write, read);
    }

    #[tokio::test]
    async fn a_reader_that_is_cancelled_loses_nothing() {
        let (mut near, far) = tokio::io::duplex(64);
        let mut reader = ChunkReader::new(far);
        let mut frame = Vec::new();
        ChunkWriter::new(&mut frame).stdout(b"hello").await.unwrap();
        for byte in &frame[..frame.len() - 1] {
            near.write_all(&[*byte]).await.unwrap();
            tokio::select! {
                biased;
                chunk = reader.next() => panic!("{chunk:?} came too early"),
                () = std::future::ready(()) => {}
            }
        }
        near.write_all(&frame[frame.len() - 1..]).await.unwrap();
        assert_eq!(reader.next().await.unwrap(), Some(Chunk::Stdout(b"hello".to_vec())));
    }

    #[tokio::test]
    async fn unknown_kinds_are_skipped_and_nonsense_is_refused() {
        let mut bytes = vec![99, 0, 0, 0, 2, 1, 2];
        ChunkWriter::new(&mut bytes).send(&Chunk::CloseStdin).await.unwrap();
        let mut reader = ChunkReader::new(&bytes[..]);
        assert_eq!(reader.next().await.unwrap(), Some(Chunk::CloseStdin));

        for wrong in [
            &[STDOUT, 255, 255, 255, 255][..],
            &[STDOUT, 0, 0, 0, 9, 1],
            &[STDOUT, 0],
            &[EXIT, 0, 0, 0, 1, 1],
        ] {
            assert!(ChunkReader::new(wrong).next().await.is_err(), "{wrong:?}");
        }
    }
}
