//! What a container has used, in the engine's own figures.

use bollard::{models::ContainerStatsResponse, query_parameters::StatsOptionsBuilder};
use envd_api::control::Counts;
use futures_util::StreamExt as _;
use jiff::Timestamp;

use super::{LOOK, engine::Engine};
use crate::runtime::RuntimeError;

/// `name` is that of one of our containers; a stranger's with that name only has its figures read.
pub(super) async fn count(engine: &Engine, name: &str) -> Result<Option<Counts>, RuntimeError> {
    let found = engine
        .call_unless("count what a container uses", LOOK, &[404], async |docker| {
            let options = StatsOptionsBuilder::new().stream(false).one_shot(true).build();
            docker.stats(name, Some(options)).next().await.transpose()
        })
        .await?;
    Ok(found.flatten().and_then(counts))
}

/// `None` for one that does not run: the engine then tells of nothing at all.
fn counts(stats: ContainerStatsResponse) -> Option<Counts> {
    let cpu = stats.cpu_stats?.cpu_usage?.total_usage.filter(|&used| used > 0)?;
    let memory = stats.memory_stats?;
    // Files that were read once are the kernel's to drop; `total_` is the older kernels' word.
    let kept = memory
        .stats
        .as_ref()
        .and_then(|stats| stats.get("inactive_file").or_else(|| stats.get("total_inactive_file")).copied());
    let entries = stats.blkio_stats.and_then(|disk| disk.io_service_bytes_recursive).unwrap_or_default();
    let disk = |word: &str| -> u64 {
        let of_word = entries
            .iter()
            .filter(|entry| entry.op.as_deref().is_some_and(|op| op.eq_ignore_ascii_case(word)));
        of_word.filter_map(|entry| entry.value).sum()
    };
    let networks = stats.networks.unwrap_or_default();
    Some(Counts {
        at: Timestamp::now(),
        cpu_nanoseconds: cpu,
        memory_bytes: memory.usage.unwrap_or(0).saturating_sub(kept.unwrap_or(0)),
        disk_read_bytes: disk("read"),
        disk_written_bytes: disk("write"),
        received_bytes: networks.values().filter_map(|network| network.rx_bytes).sum(),
        sent_bytes: networks.values().filter_map(|network| network.tx_bytes).sum(),
    })
}
