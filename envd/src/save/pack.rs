//! Compressing on all cores, and hashing what goes in and what comes out in the same pass.
//!
//! In pieces that each stand by themselves: a file of several of them is a file like any other to all who read it.
//! Whoever writes into a packer hashes what goes in; a thread of its own hashes what comes out and writes it down.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
};

use sha2::{Digest as _, Sha256};

use super::{compression::Compression, image::Blob};

/// What one thread compresses at once.
const PIECE: usize = 1 << 20;

/// A blob that was packed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Packed {
    /// The digest of what went in.
    pub(super) diff_id: String,
    /// The digest of what came out.
    pub(super) digest: String,
    pub(super) raw_bytes: u64,
    pub(super) size_bytes: u64,
    pub(super) compression: Compression,
}

impl Packed {
    /// The layer, and its bytes before compression.
    pub(super) fn into_blob(self) -> (Blob, u64) {
        let Self { diff_id, digest, raw_bytes, size_bytes, compression } = self;
        (Blob { diff_id, digest, size_bytes, compression }, raw_bytes)
    }
}

/// A digest, and how many bytes it is of.
#[derive(Debug, Default)]
struct Counted {
    hash: Sha256,
    bytes: u64,
}

impl Counted {
    fn done(self) -> (String, u64) {
        (named(&self.hash.finalize()), self.bytes)
    }
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The digest of something small.
pub(super) fn digest(bytes: &[u8]) -> String {
    named(&Sha256::digest(bytes))
}

/// The digest of a file.
pub(super) fn digest_of(file: &Path) -> io::Result<String> {
    let mut counted = Counted::default();
    io::copy(&mut io::BufReader::with_capacity(PIECE, File::open(file)?), &mut counted)?;
    Ok(counted.done().0)
}

fn named(hash: &[u8]) -> String {
    hash.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

/// A piece, and where it goes when it is compressed.
type Work = (Vec<u8>, SyncSender<io::Result<Vec<u8>>>);
/// A piece that is being compressed.
type Answer = Receiver<io::Result<Vec<u8>>>;

/// Writes a file compressed.
#[derive(Debug)]
pub(super) struct Packer {
    raw: Counted,
    piece: Vec<u8>,
    any: bool,
    compression: Compression,
    work: SyncSender<Work>,
    /// Pieces on their way through the threads, in order.
    on_the_way: SyncSender<Answer>,
    writer: Option<JoinHandle<io::Result<Counted>>>,
}

impl Packer {
    pub(super) fn create(path: &Path, compression: Compression) -> io::Result<Self> {
        // One that was given up a moment ago may still be written to: never the same file again.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let out = File::create_new(path)?;
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let (work, queue) = sync_channel(threads * 2);
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads {
            let queue = Arc::clone(&queue);
            thread::Builder::new().name("pack".to_owned()).spawn(move || compress(&queue, compression))?;
        }
        let (on_the_way, ready) = sync_channel(threads * 2);
        let writer =
            thread::Builder::new().name("pack-write".to_owned()).spawn(move || write(out, &ready))?;
        let (raw, piece) = (Counted::default(), Vec::with_capacity(PIECE));
        Ok(Self { raw, piece, any: false, compression, work, on_the_way, writer: Some(writer) })
    }

    pub(super) fn finish(mut self) -> io::Result<Packed> {
        if !self.piece.is_empty() || !self.any {
            self.send()?;
        }
        let Self { raw, compression, work, on_the_way, writer, .. } = self;
        drop((work, on_the_way));
        let (digest, size_bytes) = end(writer)?.done();
        let (diff_id, raw_bytes) = raw.done();
        Ok(Packed { diff_id, digest, raw_bytes, size_bytes, compression })
    }

    fn send(&mut self) -> io::Result<()> {
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        self.any = true;
        let (done, answer) = sync_channel(1);
        if self.work.send((piece, done)).is_ok() && self.on_the_way.send(answer).is_ok() {
            return Ok(());
        }
        Err(end(self.writer.take()).err().unwrap_or_else(lost))
    }
}

impl Write for Packer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(PIECE - self.piece.len())];
        self.raw.write_all(bytes)?;
        self.piece.extend_from_slice(bytes);
        if self.piece.len() == PIECE {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compresses what comes, until nothing comes any more.
fn compress(queue: &Mutex<Receiver<Work>>, compression: Compression) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((piece, done)) = next else { return };
        // Nobody waits for it any more if the save was given up.
        let _ = done.send(compression.compress(&piece));
    }
}

/// Writes what comes, in the order in which it was sent.
fn write(mut out: File, ready: &Receiver<Answer>) -> io::Result<Counted> {
    let mut compressed = Counted::default();
    while let Ok(answer) = ready.recv() {
        let piece = answer.recv().map_err(|_| lost())??;
        compressed.write_all(&piece)?;
        out.write_all(&piece)?;
    }
    Ok(compressed)
}

fn end(writer: Option<JoinHandle<io::Result<Counted>>>) -> io::Result<Counted> {
    writer.and_then(|writer| writer.join().ok()).unwrap_or_else(|| Err(lost()))
}

fn lost() -> io::Error {
    io::Error::other("a thread that compresses ended")
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn what_goes_in_comes_out_and_the_digests_are_true() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("blob");
        let lengths = [0, 1, PIECE, PIECE * 5 + 77];
        let all =
            lengths.into_iter().flat_map(|length| [(length, Compression::Gzip), (length, Compression::Zstd)]);
        for (length, compression) in all {
            let raw: Vec<_> = (0..length).map(|n| u8::try_from(n * 31 % 251).unwrap()).collect();
            let mut packer = Packer::create(&path, compression).unwrap();
            for part in raw.chunks(300_007) {
                packer.write_all(part).unwrap();
            }
            let done = packer.finish().unwrap();
            let blob = fs::read(&path).unwrap();
            let mut back = Vec::new();
            compression.reader(&blob[..]).unwrap().read_to_end(&mut back).unwrap();
            assert!(back == raw, "{length} {compression:?}");
            assert_eq!((done.digest, done.diff_id), (digest(&blob), digest(&raw)));
            assert_eq!(digest_of(&path).unwrap(), digest(&blob));
            assert_eq!((done.raw_bytes, done.size_bytes), (raw.len() as u64, blob.len() as u64));
        }
    }

    #[test]
    fn a_writer_that_fails_says_why() {
        let mut packer =
            Packer::create(&tempfile::tempdir().unwrap().path().join("blob"), Compression::Gzip).unwrap();
        let (done, answer) = sync_channel(1);
        done.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
        packer.on_the_way.send(answer).unwrap();
        let noise = vec![0; PIECE];
        let failed = (0..100).find_map(|_| packer.write_all(&noise).err());
        assert_eq!(failed.map(|error| error.kind()), Some(io::ErrorKind::StorageFull));
    }
}
