//! Telling the engine of a saved image without a download: it gets the config and the new layers, and has the rest.
//!
//! It takes the engine longer than all the rest of a save, and the image can be used elsewhere meanwhile. Whoever wants
//! to use it here waits for the engine.

use std::{
    fs::File,
    io::{self, BufReader, Write},
};

use futures_util::Stream;
use gateway_api::InstanceId;
use serde_json::json;
use tokio::{io::DuplexStream, sync::watch};
use tokio_util::io::{ReaderStream, SyncIoBridge};

use super::image::{Blob, Document};

/// Bytes that are unpacked and not read yet.
const AHEAD: usize = 1 << 20;

/// What the engine is given.
#[derive(Debug)]
pub(super) struct Bundle {
    pub(super) config: Document,
    pub(super) layers: Vec<Blob>,
    /// Those that the engine lacks: each with its file and its bytes before compression.
    pub(super) new: Vec<(Blob, File, u64)>,
    pub(super) reference: String,
}

/// The images that the engine is being told of, by the digests of their configs, and the instances that were saved.
#[derive(Debug, Clone, Default)]
pub(super) struct Loads(watch::Sender<Vec<(InstanceId, String)>>);

/// One of them, until this is dropped.
#[derive(Debug)]
pub(super) struct Loading {
    loads: Loads,
    load: (InstanceId, String),
}

impl Loads {
    pub(super) fn begin(&self, instance: InstanceId, image: String) -> Loading {
        let load = (instance, image);
        self.0.send_modify(|all| all.push(load.clone()));
        Loading { loads: self.clone(), load }
    }

    /// Until the engine has been told of an image, if it is being told.
    pub(super) async fn ended(&self, image: &str) {
        let _ = self.0.subscribe().wait_for(|all| all.iter().all(|(_, other)| other != image)).await;
    }
}

impl Loading {
    pub(super) fn image(&self) -> &str {
        &self.load.1
    }

    /// Until it is the first of its instance: it may lie on those before it.
    pub(super) async fn turn(&self) {
        let first = |all: &Vec<(InstanceId, String)>| {
            all.iter().find(|(instance, _)| *instance == self.load.0) == Some(&self.load)
        };
        let _ = self.loads.0.subscribe().wait_for(first).await;
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        self.loads.0.send_modify(|all| {
            if let Some(at) = all.iter().position(|load| *load == self.load) {
                all.remove(at);
            }
        });
    }
}

/// The archive as a stream, and the work that fills it, for a thread of its own.
pub(super) fn archive(
    bundle: Bundle,
) -> (impl Stream<Item = io::Result<bytes::Bytes>> + Send + 'static, impl FnOnce() -> io::Result<()>) {
    let (read, write) = tokio::io::duplex(AHEAD);
    let handle = tokio::runtime::Handle::current();
    let fill = move || fill(bundle, SyncIoBridge::new_with_handle(write, handle));
    (ReaderStream::with_capacity(read, AHEAD), fill)
}

fn fill(bundle: Bundle, out: SyncIoBridge<DuplexStream>) -> io::Result<()> {
    let mut archive = tar::Builder::new(out);
    let config = format!("{}.json", bundle.config.digest.trim_start_matches("sha256:"));
    add(&mut archive, &config, bundle.config.bytes.len() as u64, &bundle.config.bytes[..])?;
    let names: Vec<_> = bundle.layers.iter().map(name).collect();
    let manifest = json!([{ "Config": config, "RepoTags": [bundle.reference], "Layers": names }]).to_string();
    add(&mut archive, "manifest.json", manifest.len() as u64, manifest.as_bytes())?;
    for (blob, file, raw_bytes) in bundle.new {
        let layer = blob.compression.reader(BufReader::new(file))?;
        add(&mut archive, &name(&blob), raw_bytes, layer)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_image_waits_for_those_before_it_of_its_instance_alone() {
        let (loads, one, other) = (Loads::default(), InstanceId::new(), InstanceId::new());
        let first = loads.begin(one.clone(), "first".to_owned());
        let second = loads.begin(one, "second".to_owned());
        let third = loads.begin(other, "third".to_owned());
        tokio::join!(first.turn(), third.turn());
        tokio::join!(
            async {
                second.turn().await;
                drop(second);
            },
            async { drop(first) },
            loads.ended("second"),
        );
        loads.ended("first").await;
        loads.ended("never begun").await;
        assert_eq!(loads.0.borrow().len(), 1);
    }
}
