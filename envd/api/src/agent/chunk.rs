//! Chunks: the pieces of a process's streams, each a kind (u8), a length (u32, big-endian) and bytes.
//!
//! No chunk is longer than [`CHUNK_MAX`]; longer data is sent as several. A kind that this version does not know is
//! skipped, so that a newer end can say more to an older one.

use std::io::IoSlice;

use process_api::{Exit, Size};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{CHUNK_MAX, Chunk, ProtocolError, ReadHalf, WriteHalf};

const STDIN: u8 = 1;
const STDOUT: u8 = 2;
const STDERR: u8 = 3;
const RESIZE: u8 = 4;
const SIGNAL: u8 = 5;
const CLOSE_STDIN: u8 = 6;
const EXIT: u8 = 7;

const HEADER: usize = 5;
/// What is read at once where nothing of a chunk is there yet: a key, or its echo, comes whole.
const AHEAD: usize = 256;

/// The writing half of a process's stream.
///
/// Dropping the gateway's one hangs the process up; to end its input, send [`Chunk::CloseStdin`].
#[derive(Debug)]
pub struct ChunkWriter<W = WriteHalf> {
    to: W,
}

/// The reading half of a process's stream.
#[derive(Debug)]
pub struct ChunkReader<R = ReadHalf> {
    from: R,
    /// What has arrived and is in no body yet, from a chunk's header on; kept here, as the body is, so that
    /// [`Self::next`] can be cancelled.
    ahead: Vec<u8>,
    /// What has arrived of the body, and perhaps of the header after it.
    body: Vec<u8>,
}

// === impl ChunkWriter ===

impl<W: AsyncWrite + Unpin> ChunkWriter<W> {
    pub fn new(to: W) -> Self {
        Self { to }
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

    /// One [`Chunk::Stdin`] of several pieces, no longer than [`CHUNK_MAX`] together, without a copy of its own.
    pub async fn stdin_of(&mut self, pieces: &[impl AsRef<[u8]>]) -> Result<(), ProtocolError> {
        let pieces = pieces.iter().map(AsRef::as_ref);
        let header = header(STDIN, pieces.clone().map(<[u8]>::len).sum())?;
        let mut slices: Vec<_> = std::iter::once(&header[..]).chain(pieces).map(IoSlice::new).collect();
        self.write(&mut slices).await
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
        let header = header(kind, body.len())?;
        self.write(&mut [IoSlice::new(&header), IoSlice::new(body)]).await
    }

    /// All at once and without a copy; the rest in turn where the other end is slow.
    async fn write(&mut self, mut slices: &mut [IoSlice<'_>]) -> Result<(), ProtocolError> {
        while !slices.is_empty() {
            match self.to.write_vectored(slices).await? {
                0 => return Err(ProtocolError::Io(std::io::ErrorKind::WriteZero.into())),
                sent => IoSlice::advance_slices(&mut slices, sent),
            }
        }
        Ok(())
    }
}

// === impl ChunkReader ===

impl<R: AsyncRead + Unpin> ChunkReader<R> {
    pub fn new(from: R) -> Self {
        Self { from, ahead: Vec::new(), body: Vec::new() }
    }

    /// The next chunk, or `None` when the other end has closed. Cancel-safe: what had arrived is kept.
    pub async fn next(&mut self) -> Result<Option<Chunk>, ProtocolError> {
        loop {
            let Some((kind, length)) = self.header(AHEAD).await? else { return Ok(None) };
            // With the header after it, which then needs no call of its own.
            self.body.reserve_exact((length + HEADER).saturating_sub(self.body.len()));
            let here = length.saturating_sub(self.body.len()).min(self.ahead.len() - HEADER);
            self.body.extend(self.ahead.drain(HEADER..HEADER + here));
            while self.body.len() < length {
                let missing = length + HEADER - self.body.len();
                if fill(&mut self.from, &mut self.body, missing).await? == 0 {
                    return Err(end_within_a_chunk());
                }
            }
            self.ahead.drain(..HEADER);
            self.ahead.extend_from_slice(&self.body[length..]);
            self.body.truncate(length);
            if let Some(chunk) = decode(kind, std::mem::take(&mut self.body))? {
                return Ok(Some(chunk));
            }
        }
    }

    /// How many bytes of input are next in what the chunks are read from: none when anything else is. They may be taken
    /// from there, of which [`Self::took`] is told; what is left of them is the next chunk. Cancel-safe.
    pub async fn input_ahead(&mut self) -> Result<usize, ProtocolError> {
        let header = self.header(HEADER).await?;
        let is_next = self.ahead.len() == HEADER && self.body.is_empty();
        Ok(header.filter(|(kind, _)| *kind == STDIN && is_next).map_or(0, |(_, length)| length))
    }

    /// So many bytes of the input ahead have been taken.
    pub fn took(&mut self, bytes: usize) -> Result<(), ProtocolError> {
        let (kind, length) = parts(&self.ahead);
        self.ahead.clear();
        if bytes < length {
            self.ahead.extend(header(kind, length - bytes)?);
        }
        Ok(())
    }

    /// Kind and length of the next chunk, or `None` when there will be none. Reads at most `most` bytes for it.
    async fn header(&mut self, most: usize) -> Result<Option<(u8, usize)>, ProtocolError> {
        while self.ahead.len() < HEADER {
            let missing = most - self.ahead.len();
            self.ahead.reserve(missing);
            if fill(&mut self.from, &mut self.ahead, missing).await? == 0 {
                return if self.ahead.is_empty() { Ok(None) } else { Err(end_within_a_chunk()) };
            }
        }
        let (kind, length) = parts(&self.ahead);
        if length > CHUNK_MAX { Err(ProtocolError::TooLong(length)) } else { Ok(Some((kind, length))) }
    }

    /// What the chunks are read from.
    pub fn get_ref(&self) -> &R {
        &self.from
    }
}

/// Reads at most `most` bytes to the end of `into`; how many came.
async fn fill<R: AsyncRead + Unpin>(from: &mut R, into: &mut Vec<u8>, most: usize) -> std::io::Result<usize> {
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    from.take(most).read_buf(into).await
}

/// The header of a chunk.
fn header(kind: u8, length: usize) -> Result<[u8; HEADER], ProtocolError> {
    let [a, b, c, d] = u32::try_from(length).map_err(|_| ProtocolError::TooLong(length))?.to_be_bytes();
    if length > CHUNK_MAX { Err(ProtocolError::TooLong(length)) } else { Ok([kind, a, b, c, d]) }
}

/// Kind and length of a whole header, whatever comes after it.
fn parts(header: &[u8]) -> (u8, usize) {
    let (kind, length) = header.split_first().unwrap_or((&0, &[]));
    let length = length.iter().take(HEADER - 1).fold(0u32, |length, byte| (length << 8) | u32::from(*byte));
    (*kind, usize::try_from(length).unwrap_or(usize::MAX))
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
        let (read, _kept) = super::super::halves(far).unwrap();
        let (_unused, write) = super::super::halves(near).unwrap();
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
    async fn chunks_that_arrive_in_any_pieces_read_back_in_order() {
        let mut frames = Vec::new();
        for chunk in every_kind() {
            ChunkWriter::new(&mut frames).send(&chunk).await.unwrap();
        }
        for piece in 1..=frames.len() {
            let (mut near, far) = tokio::io::duplex(frames.len());
            let write = async {
                for piece in frames.chunks(piece) {
                    near.write_all(piece).await.unwrap();
                    tokio::task::yield_now().await;
                }
                drop(near);
            };
            let read = async {
                let mut reader = ChunkReader::new(far);
                for chunk in every_kind() {
                    assert_eq!(reader.next().await.unwrap(), Some(chunk), "in pieces of {piece}");
                }
                assert_eq!(reader.next().await.unwrap(), None);
            };
            tokio::join!(write, read);
        }
    }

    #[tokio::test]
    async fn pieces_of_input_are_one_chunk() {
        let mut frame = Vec::new();
        let pieces = [vec![1; CHUNK_MAX - 9], vec![], vec![2; 9]];
        ChunkWriter::new(&mut frame).stdin_of(&pieces).await.unwrap();
        let mut reader = ChunkReader::new(&frame[..]);
        assert_eq!(reader.next().await.unwrap(), Some(Chunk::Stdin(pieces.concat())));
        assert_eq!(reader.next().await.unwrap(), None);
        assert!(ChunkWriter::new(&mut frame).stdin_of(&[vec![0; CHUNK_MAX], vec![0]]).await.is_err());
    }

    #[tokio::test]
    async fn input_can_be_taken_from_where_it_is() {
        let (near, mut far) = tokio::io::duplex(64);
        let mut writer = ChunkWriter::new(near);
        for _ in 0..3 {
            writer.stdin(b"taken").await.unwrap();
        }
        writer.send(&Chunk::CloseStdin).await.unwrap();
        drop(writer);
        let mut reader = ChunkReader::new(&mut far);
        for taken in [5, 3] {
            assert_eq!(reader.input_ahead().await.unwrap(), 5);
            assert_eq!(reader.input_ahead().await.unwrap(), 5);
            reader.from.read_exact(&mut vec![0; taken]).await.unwrap();
            reader.took(taken).unwrap();
        }
        // What was not taken is a chunk, and what was read with it is not where it was.
        assert_eq!(reader.input_ahead().await.unwrap(), 2);
        assert_eq!(reader.next().await.unwrap(), Some(Chunk::Stdin(b"en".to_vec())));
        assert_eq!(reader.input_ahead().await.unwrap(), 5);
        assert_eq!(reader.next().await.unwrap(), Some(Chunk::Stdin(b"taken".to_vec())));
        assert_eq!(reader.input_ahead().await.unwrap(), 0);
        assert_eq!(reader.next().await.unwrap(), Some(Chunk::CloseStdin));
        assert_eq!(reader.input_ahead().await.unwrap(), 0);
        assert_eq!(reader.next().await.unwrap(), None);
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
