//! The graphics processors of this machine, as NVIDIA's management library tells.
//!
//! No library, or none that has a driver to talk to, is no graphics processors: that is normal. It is asked for again by
//! the clock, since a driver can come later. Everything here blocks, and a driver in trouble can take its time: so one
//! loop asks, and everyone else is told what it heard last.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError, RwLock},
    time::Duration,
};

use envd_api::control::CardReport;
use nvml_wrapper::{Device, Nvml, enum_wrappers::device::TemperatureSensor, error::NvmlError};
use tracing::{info, warn};

/// Between two looks.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(5);
/// What a machine has whose driver is loaded.
const DRIVER: &str = "/dev/nvidiactl";

/// What is known of them.
#[derive(Debug)]
pub(crate) struct Cards {
    /// The library, if it is not where the linker finds it.
    library: Option<PathBuf>,
    nvml: Mutex<Option<Nvml>>,
    known: RwLock<Vec<CardReport>>,
}

impl Cards {
    pub(crate) fn new(library: Option<PathBuf>) -> Self {
        Self { library, nvml: Mutex::default(), known: RwLock::default() }
    }

    /// As last seen.
    pub(crate) fn known(&self) -> Vec<CardReport> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the library. Blocks.
    pub(crate) fn look(&self) {
        let before = self.known();
        let now = match self.read(&before) {
            Ok(cards) => cards,
            Err(error) => {
                if before.iter().any(|card| card.healthy) {
                    warn!(%error, "the graphics processors do not answer");
                }
                before.iter().cloned().map(lost).collect()
            }
        };
        if before.len() != now.len() {
            info!(cards = now.len(), "graphics processors found");
        }
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = now;
    }

    fn read(&self, before: &[CardReport]) -> Result<Vec<CardReport>, NvmlError> {
        let mut nvml = self.nvml.lock().unwrap_or_else(PoisonError::into_inner);
        let library = match nvml.take() {
            Some(library) => library,
            None => self.open()?,
        };
        // A library whose driver was taken away is opened anew the next time.
        let count = library.device_count()?;
        let cards = (0..count).filter_map(|index| {
            let known = || before.iter().find(|card| card.index == index).cloned().map(lost);
            library.device_by_index(index).and_then(|device| report(index, &device)).ok().or_else(known)
        });
        let cards = cards.collect();
        *nvml = Some(library);
        Ok(cards)
    }

    fn open(&self) -> Result<Nvml, NvmlError> {
        match &self.library {
            Some(path) => Nvml::builder().lib_path(path.as_os_str()).init(),
            None => Nvml::init(),
        }
    }
}

/// Whether containers can be given cards: with the library alone there is nothing to give.
pub(crate) fn has_driver() -> bool {
    Path::new(DRIVER).exists()
}

fn report(index: u32, device: &Device<'_>) -> Result<CardReport, NvmlError> {
    let (uuid, model) = (device.uuid()?, device.name()?);
    let memory = device.memory_info();
    // What an old driver does not tell is not there; what one says that lost its card makes the card unfit.
    let busy = match device.utilization_rates() {
        Err(lost @ (NvmlError::GpuLost | NvmlError::Unknown)) => return Err(lost),
        rates => rates.map_or(0, |rates| rates.gpu),
    };
    Ok(CardReport {
        uuid,
        index,
        model,
        memory_bytes: memory.as_ref().map_or(0, |memory| memory.total),
        memory_used_bytes: memory.as_ref().map_or(0, |memory| memory.used),
        healthy: true,
        busy,
        temperature: device.temperature(TemperatureSensor::Gpu).ok(),
        processes: device.running_compute_processes_count().unwrap_or(0),
    })
}

/// One that has been there and does not answer: nobody gets it.
fn lost(card: CardReport) -> CardReport {
    CardReport { healthy: false, busy: 0, memory_used_bytes: 0, temperature: None, processes: 0, ..card }
}
