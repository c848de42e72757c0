//! Reading a container by way of the engine, for a save.

use std::io::{self, Read};

use envd_api::save::SaveState;
use gateway_api::packages::Packages;
use jiff::Timestamp;

use super::{Changed, readable};
use crate::{
    runtime::{BaseImage, Container, Runtime},
    save::{
        SaveError,
        job::Job,
        journal::Written,
        pack::{Packed, Packer},
        rules::Rules,
    },
};

/// How often the archive is asked for at most: other names of files are found on the way.
const TRIES: u32 = 4;

impl<R: Runtime> Job<R> {
    /// Reads the changes where the engine keeps no directory of them.
    pub(in crate::save) async fn read_exported(
        &self,
        container: &Container,
        mut base: BaseImage,
        rules: Rules,
    ) -> Result<Written, SaveError> {
        let created = Timestamp::now();
        // No layer can be merged with another here, but all files can be said in one.
        let all = base.diff_ids.len() + 1 > self.layers_max;
        if all {
            base.diff_ids.clear();
        }
        let runtime = &self.world.runtime;
        let mut changed = Changed::new(runtime.changed_paths(container).await?, rules, all)?;
        let mut is_settled = all || !container.is_running();
        for _ in 0..TRIES {
            let archive = readable(runtime.export_files(container).await?);
            let (packed, missing) = self.pack_exported(changed.clone(), archive).await?;
            let is_complete = missing.is_empty();
            changed.add_names(missing);
            // Once: what writes all the time is never settled.
            let is_new = !is_settled && changed.add_new(runtime.changed_paths(container).await?);
            is_settled = true;
            if is_complete && !is_new {
                let (blob, raw_bytes) = packed.into_blob();
                return Ok(Written {
                    layer: Some(blob),
                    raw_bytes,
                    kept: Vec::new(),
                    base,
                    earlier: Vec::new(),
                    container: container.id.clone(),
                    created,
                    frozen_ms: 0,
                    packages: Packages::default(),
                });
            }
        }
        Err(SaveError::Engine(
            "its files change faster than the engine gives them out; stop it first".to_owned(),
        ))
    }

    /// Packs what is wanted of an archive, and tells which names are missing.
    async fn pack_exported(
        &self,
        changed: Changed,
        archive: impl Read + Send + 'static,
    ) -> Result<(Packed, Vec<(Vec<u8>, Vec<u8>)>), SaveError> {
        let (file, compression) = (self.journal.blob(), self.compression().await);
        let (state, cancelled) = (self.state.clone(), self.cancelled.clone());
        let pack = move || {
            let space = rustix::fs::statvfs(file.parent().unwrap_or(&file)).map_err(io::Error::from)?;
            let free = space.f_bavail.saturating_mul(space.f_frsize);
            let mut done_bytes = 0;
            let progress = |bytes| {
                if cancelled.is_cancelled() {
                    return Err(io::Error::other(SaveError::Cancelled));
                }
                done_bytes += bytes;
                // Holes are free in the instance and nowhere else.
                if done_bytes > free {
                    return Err(io::Error::other(SaveError::TooLarge { free }));
                }
                state.send_replace(SaveState::Packing { done_bytes, total_bytes: done_bytes });
                Ok(())
            };
            let packer = Packer::create(&file, compression)?;
            let told = changed.write(archive, packer, progress)?;
            Ok((told.out.finish()?, told.missing))
        };
        let packed = self.world.tasks.blocking(pack).await;
        packed.unwrap_or_else(|| Err(io::Error::other("it panicked").into()))
    }
}
