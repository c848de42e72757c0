//! The config and the manifest of a saved image.
//!
//! The config is that of the image which the instance was made from, and one layer more. Nothing of the container is in
//! it: not its variables, its labels or its command.

use std::collections::BTreeMap;

use bytes::Bytes;
use envd_api::save::Provenance;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{compression::Compression, pack, registry::MANIFEST};
use crate::runtime::BaseImage;

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// A layer as a registry has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Blob {
    /// The digest of the layer itself.
    pub(super) diff_id: String,
    /// The digest of the blob.
    pub(super) digest: String,
    pub(super) size_bytes: u64,
    #[serde(default)]
    pub(super) compression: Compression,
}

/// Something small, ready to be pushed.
#[derive(Debug, Clone)]
pub(super) struct Document {
    pub(super) bytes: Bytes,
    pub(super) digest: String,
}

impl Document {
    fn new(value: &serde_json::Value) -> Self {
        let bytes = Bytes::from(value.to_string());
        Self { digest: pack::digest(&bytes), bytes }
    }
}

/// The config of an image with these layers.
pub(super) fn config(base: &BaseImage, layers: &[Blob], created: Timestamp) -> Document {
    let mut config = json!({
        "architecture": base.architecture,
        "os": base.os,
        "created": created.to_string(),
        "config": base.config,
        "rootfs": {
            "type": "layers",
            "diff_ids": layers.iter().map(|layer| layer.diff_id.as_str()).collect::<Vec<_>>(),
        },
    });
    if let Some(variant) = &base.variant {
        config["variant"] = json!(variant);
    }
    Document::new(&config)
}

/// The manifest that ties config and layers together.
pub(super) fn manifest(
    config: &Document,
    layers: &[Blob],
    provenance: &Provenance,
    created: Timestamp,
) -> Document {
    let layers: Vec<_> = layers
        .iter()
        .map(|layer| {
            let kind = layer.compression.media_type();
            json!({ "mediaType": kind, "digest": layer.digest, "size": layer.size_bytes })
        })
        .collect();
    Document::new(&json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": { "mediaType": CONFIG, "digest": config.digest, "size": config.bytes.len() },
        "layers": layers,
        "annotations": annotations(provenance, created),
    }))
}

fn annotations(provenance: &Provenance, created: Timestamp) -> BTreeMap<&'static str, String> {
    let all = [
        ("org.opencontainers.image.created", created.to_string()),
        ("org.opencontainers.image.authors", provenance.author.clone()),
        ("org.opencontainers.image.title", provenance.title.clone()),
        ("org.opencontainers.image.description", provenance.message.clone()),
        ("org.opencontainers.image.base.name", provenance.base.clone()),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}
