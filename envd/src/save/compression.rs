//! How layers are compressed.

use std::io::{self, BufRead, Read};

use flate2::read::MultiGzDecoder;
use libdeflater::{CompressionLvl, Compressor};
use serde::{Deserialize, Serialize};

/// Layers are written once and read on fast networks: speed before size.
const LEVEL: i32 = 1;
/// Written as it is.
const STORED: i32 = 0;
/// Of every so many bytes of a piece, so many are tried.
const STRIDE: usize = 128 << 10;
const SAMPLE: usize = 4 << 10;

/// How a layer is compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compression {
    /// Whoever reads images reads this.
    #[default]
    Gzip,
    /// Several times as fast, for engines that understand it.
    Zstd,
}

impl Compression {
    /// What manifests call it.
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Gzip => "application/vnd.oci.image.layer.v1.tar+gzip",
            Self::Zstd => "application/vnd.oci.image.layer.v1.tar+zstd",
        }
    }

    /// Whether who asks for this gets along with that.
    pub(super) fn takes(self, other: Self) -> bool {
        self == other || other == Self::Gzip
    }

    /// A piece that stands by itself: many of them one after the other are one file to all who read it.
    pub(super) fn compress(self, piece: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip => gzip(piece, if shrinks(piece)? { LEVEL } else { STORED }),
            Self::Zstd => zstd::bulk::compress(piece, LEVEL),
        }
    }

    pub(super) fn reader<'a>(self, from: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
        Ok(match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(from)),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(from)?),
        })
    }
}

fn gzip(piece: &[u8], level: i32) -> io::Result<Vec<u8>> {
    let level = CompressionLvl::new(level).map_err(|error| io::Error::other(format!("{error:?}")))?;
    let mut compressor = Compressor::new(level);
    let mut out = vec![0; compressor.gzip_compress_bound(piece.len())];
    let length = compressor.gzip_compress(piece, &mut out).map_err(io::Error::other)?;
    out.truncate(length);
    Ok(out)
}

/// Whether gzip is worth its time, by samples from all over the piece: weights, pictures and archives do not shrink, and
/// finding that out byte by byte takes many times as long as storing them.
fn shrinks(piece: &[u8]) -> io::Result<bool> {
    if piece.len() <= STRIDE {
        return Ok(true);
    }
    let samples: Vec<_> = piece.chunks(STRIDE).map(|part| &part[..part.len().min(SAMPLE)]).collect();
    let samples = samples.concat();
    Ok(gzip(&samples, LEVEL)?.len() < samples.len() / 32 * 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_shrink_is_stored_and_what_does_is_not() {
        let mut seed = 1_u32;
        let noise: Vec<_> = (0..1 << 20)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                seed.to_be_bytes()[0]
            })
            .collect();
        let text = b"import torch\n".repeat(80_000);
        assert!(!shrinks(&noise).unwrap());
        assert!(shrinks(&text).unwrap());
        assert!(shrinks(&[&noise[..noise.len() / 2], &text[..]].concat()).unwrap(), "half of it does");
        let stored = Compression::Gzip.compress(&noise).unwrap();
        assert!((noise.len()..noise.len() + 256).contains(&stored.len()), "{}", stored.len());
        let mut back = Vec::new();
        Compression::Gzip.reader(&stored[..]).unwrap().read_to_end(&mut back).unwrap();
        assert!(back == noise);
    }
}
