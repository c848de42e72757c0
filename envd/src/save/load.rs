//! Telling the engine of a saved image without a download: it gets the config and the new layers, and has the rest.

use std::{
    fs::File,
    io::{self, BufReader, Write},
    path::PathBuf,
};

use flate2::read::MultiGzDecoder;
use futures_util::Stream;
use serde_json::json;
use tokio::io::DuplexStream;
use tokio_util::io::{ReaderStream, SyncIoBridge};

use super::image::{Blob, Document};

/// Bytes that are unpacked and not read yet.
const AHEAD: usize = 1 << 20;

/// What the engine is given.
#[derive(Debug, Clone)]
pub(super) struct Bundle {
    pub(super) config: Document,
    pub(super) layers: Vec<Blob>,
    /// Those that the engine lacks: each with its file and its bytes before compression.
    pub(super) new: Vec<(Blob, PathBuf, u64)>,
    pub(super) reference: String,
}

/// The archive as a stream, and the work that fills it, for a thread of its own.
pub(super) fn archive(
    bundle: Bundle,
) -> (impl Stream<Item = io::Result<bytes::Bytes>> + Send + 'static, impl FnOnce() -> io::Result<()>) {
    let (read, write) = tokio::io::duplex(AHEAD);
    let handle = tokio::runtime::Handle::current();
    let fill = move || fill(&bundle, SyncIoBridge::new_with_handle(write, handle));
    (ReaderStream::with_capacity(read, AHEAD), fill)
}

fn fill(bundle: &Bundle, out: SyncIoBridge<DuplexStream>) -> io::Result<()> {
    let mut archive = tar::Builder::new(out);
    let config = format!("{}.json", bundle.config.digest.trim_start_matches("sha256:"));
    add(&mut archive, &config, bundle.config.bytes.len() as u64, &bundle.config.bytes[..])?;
    let names: Vec<_> = bundle.layers.iter().map(name).collect();
    let manifest = json!([{ "Config": config, "RepoTags": [bundle.reference], "Layers": names }]).to_string();
    add(&mut archive, "manifest.json", manifest.len() as u64, manifest.as_bytes())?;
    for (blob, file, raw_bytes) in &bundle.new {
        let layer = MultiGzDecoder::new(BufReader::new(File::open(file)?));
        add(&mut archive, &name(blob), *raw_bytes, layer)?;
    }
    let mut out = archive.into_inner()?;
    out.flush()?;
    out.shutdown()
}

fn name(layer: &Blob) -> String {
    format!("{}/layer.tar", layer.diff_id.trim_start_matches("sha256:"))
}

fn add(
    archive: &mut tar::Builder<SyncIoBridge<DuplexStream>>,
    name: &str,
    size: u64,
    content: impl io::Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o644);
    archive.append_data(&mut header, name, content)
}
