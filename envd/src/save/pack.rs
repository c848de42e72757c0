//! Compressing on all cores, and hashing what goes in and what comes out in the same pass.
//!
//! Gzip in pieces, each a member of its own: a file of several members is a file like any other to all who read gzip.

use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use flate2::{Compression, write::GzEncoder};
use sha2::{Digest as _, Sha256};

/// What one thread compresses at once.
const PIECE: usize = 1 << 20;
/// Layers are written once and read on fast networks: speed before size.
const LEVEL: Compression = Compression::new(2);

/// A blob that was packed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Packed {
    /// The digest of what went in.
    pub(super) diff_id: String,
    /// The digest of what came out.
    pub(super) digest: String,
    pub(super) raw_bytes: u64,
    pub(super) size_bytes: u64,
}

/// Writes `out` compressed.
#[derive(Debug)]
pub(super) struct Packer<W> {
    raw: Counted,
    pieces: Pieces<W>,
}

impl<W: Write> Packer<W> {
    pub(super) fn new(out: W) -> io::Result<Self> {
        Ok(Self { raw: Counted::default(), pieces: Pieces::new(out)? })
    }

    pub(super) fn finish(self) -> io::Result<(W, Packed)> {
        let (out, compressed) = self.pieces.finish()?;
        let (diff_id, raw_bytes) = self.raw.done();
        let (digest, size_bytes) = compressed.done();
        Ok((out, Packed { diff_id, digest, raw_bytes, size_bytes }))
    }
}

impl<W: Write> Write for Packer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.raw.add(bytes);
        self.pieces.add(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A digest, and how many bytes it is of.
#[derive(Debug, Default)]
struct Counted {
    hash: Sha256,
    bytes: u64,
}

impl Counted {
    fn add(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    fn done(self) -> (String, u64) {
        (named(&self.hash.finalize()), self.bytes)
    }
}

/// The digest of something small.
pub(super) fn digest(bytes: &[u8]) -> String {
    named(&Sha256::digest(bytes))
}

fn named(hash: &[u8]) -> String {
    hash.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

type Work = (Vec<u8>, SyncSender<io::Result<Vec<u8>>>);

/// Pieces on their way through the threads, in order.
#[derive(Debug)]
struct Pieces<W> {
    out: W,
    compressed: Counted,
    piece: Vec<u8>,
    work: SyncSender<Work>,
    on_the_way: VecDeque<Receiver<io::Result<Vec<u8>>>>,
    most: usize,
    any: bool,
}

impl<W: Write> Pieces<W> {
    fn new(out: W) -> io::Result<Self> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let most = threads * 2;
        let (work, queue) = sync_channel::<Work>(most);
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads {
            let queue = Arc::clone(&queue);
            thread::Builder::new().name("pack".to_owned()).spawn(move || {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((piece, done)) = next else { return };
                    // Nobody waits for it any more if the save was given up.
                    let _ = done.send(compress(&piece));
                }
            })?;
        }
        let (piece, on_the_way) = (Vec::with_capacity(PIECE), VecDeque::new());
        Ok(Self { out, compressed: Counted::default(), piece, work, on_the_way, most, any: false })
    }

    fn add(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let most = bytes.len().min(PIECE - self.piece.len());
            self.piece.extend_from_slice(&bytes[..most]);
            bytes = &bytes[most..];
            if self.piece.len() == PIECE {
                self.send()?;
            }
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        let (done, answer) = sync_channel(1);
        self.work.send((piece, done)).map_err(|_| lost())?;
        self.any = true;
        self.on_the_way.push_back(answer);
        if self.on_the_way.len() >= self.most { self.take() } else { Ok(()) }
    }

    fn take(&mut self) -> io::Result<()> {
        let Some(next) = self.on_the_way.pop_front() else { return Ok(()) };
        let piece = next.recv().map_err(|_| lost())??;
        self.compressed.add(&piece);
        self.out.write_all(&piece)
    }

    fn finish(mut self) -> io::Result<(W, Counted)> {
        if !self.piece.is_empty() || !self.any {
            self.send()?;
        }
        while !self.on_the_way.is_empty() {
            self.take()?;
        }
        self.out.flush()?;
        Ok((self.out, self.compressed))
    }
}

fn compress(piece: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(piece.len() / 2), LEVEL);
    encoder.write_all(piece)?;
    encoder.finish()
}

fn lost() -> io::Error {
    io::Error::other("a thread that compresses ended")
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::MultiGzDecoder;

    use super::*;

    #[test]
    fn what_goes_in_comes_out_and_the_digests_are_true() {
        for length in [0, 1, PIECE, PIECE * 5 + 77] {
            let raw: Vec<_> = (0..length).map(|n| u8::try_from(n * 31 % 251).unwrap()).collect();
            let mut packer = Packer::new(Vec::new()).unwrap();
            for part in raw.chunks(300_007) {
                packer.write_all(part).unwrap();
            }
            let (blob, done) = packer.finish().unwrap();
            let mut back = Vec::new();
            MultiGzDecoder::new(&blob[..]).read_to_end(&mut back).unwrap();
            assert!(back == raw, "{length}");
            assert_eq!((done.digest, done.diff_id), (digest(&blob), digest(&raw)));
            assert_eq!((done.raw_bytes, done.size_bytes), (raw.len() as u64, blob.len() as u64));
        }
    }
}
