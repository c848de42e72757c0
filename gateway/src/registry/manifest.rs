//! What a manifest says: the blobs that an image is made of, or the images that an index is of.

use oci_spec::image::{Descriptor, ImageIndex, ImageManifest};

/// The kinds of manifests that there are for images.
pub(crate) const KINDS: [&str; 4] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];

/// A manifest, as far as it matters who may have what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Manifest {
    /// One image: all its blobs, the config first.
    Image { blobs: Vec<Blob> },
    /// Images for different machines, by the digests of their manifests.
    Index { manifests: Vec<String> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blob {
    pub(crate) digest: String,
    pub(crate) size_bytes: u64,
}

impl Manifest {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        if let Ok(index) = serde_json::from_slice::<ImageIndex>(bytes) {
            let manifests = index.manifests().iter().map(|one| one.digest().to_string()).collect();
            return Ok(Self::Index { manifests });
        }
        let manifest: ImageManifest = serde_json::from_slice(bytes)?;
        let blob = |one: &Descriptor| Blob { digest: one.digest().to_string(), size_bytes: one.size() };
        let blobs = std::iter::once(manifest.config()).chain(manifest.layers()).map(blob).collect();
        Ok(Self::Image { blobs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYER: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

    #[test]
    fn images_and_indexes_of_both_kinds() {
        for kind in ["oci.image.manifest.v1", "docker.distribution.manifest.v2"] {
            let text = format!(
                r#"{{"schemaVersion":2,"mediaType":"application/vnd.{kind}+json",
                    "config":{{"mediaType":"application/json","digest":"{LAYER}","size":2}},
                    "layers":[{{"mediaType":"application/x","digest":"{LAYER}","size":7}}]}}"#
            );
            let Manifest::Image { blobs } = Manifest::read(text.as_bytes()).unwrap() else {
                panic!("{kind}")
            };
            assert_eq!(blobs.iter().map(|blob| blob.size_bytes).collect::<Vec<_>>(), [2, 7]);
        }
        let text = format!(
            r#"{{"schemaVersion":2,"manifests":[{{"mediaType":"application/x","digest":"{LAYER}","size":7}}]}}"#
        );
        let index = Manifest::Index { manifests: vec![LAYER.to_owned()] };
        assert_eq!(Manifest::read(text.as_bytes()).unwrap(), index);
        for wrong in ["", "{}", "[]", r#"{"schemaVersion":1,"fsLayers":[]}"#] {
            assert!(Manifest::read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
