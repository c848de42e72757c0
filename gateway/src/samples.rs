//! What instances and tasks used, every ten seconds, for a week: for plots.
//!
//! A directory for each instance, `samples/<instance>/` below the data directory, and in it a file for each day of
//! records of one size. So a record is written with one append, a day is forgotten with one removal, what a crash left
//! of a record is seen by its length, and no instance takes more than eight days of 8,640 records. Readers see means of
//! as many records as it takes not to get more points than they asked for; what is missing stays missing.

use std::{collections::HashMap, fs, io, io::Write as _, path::PathBuf, sync::Arc, time::Duration};

use envd_api::control::{CardReport, Counted, Counts};
use futures_util::future::join_all;
use gateway_api::{InstanceId, usage::Sample};
use jiff::{SignedDuration, Timestamp};
use tokio::time::{MissedTickBehavior, interval};

use crate::{app::App, clusters::Cluster, error::chain};

/// Between two samples.
const EVERY: Duration = Duration::from_secs(10);
/// For how many days they are kept.
const DAYS: i64 = 7;
const DAY_MS: i64 = 24 * 3600 * 1000;
/// How often what is too old is forgotten.
const TIDY_EVERY: Duration = Duration::from_hours(1);
/// The bytes of one record: nine numbers of eight.
const RECORD: usize = 72;
/// Two counts that are further apart say nothing of the time between.
const GAP_MAX: SignedDuration = SignedDuration::from_secs(60);
/// In the place of a number that there is not.
const NONE: u64 = u64::MAX;

/// Where they are.
#[derive(Debug)]
pub(crate) struct Samples {
    directory: PathBuf,
}

/// Takes samples until the process stops.
pub(crate) async fn run(app: Arc<App>) {
    let stopping = app.tasks.stopping();
    let (mut clock, mut tidy) = (interval(EVERY), interval(TIDY_EVERY));
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = vec![HashMap::new(); app.clusters.iter().count()];
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            _ = clock.tick() => {
                let each = app.clusters.iter().zip(&mut before);
                join_all(each.map(|(cluster, before)| take(&app, cluster, before))).await;
            }
            _ = tidy.tick() => {
                let samples = Arc::clone(&app.samples);
                app.tasks.blocking(move || samples.forget_old(Timestamp::now())).await;
            }
        }
    }
}

async fn take(app: &App, cluster: &Cluster, before: &mut HashMap<InstanceId, Counts>) {
    // Nobody is told that the cluster is away: `place.rs` tells it.
    let (Ok(counted), Some(node)) = (cluster.envd.counts().await, cluster.node()) else { return };
    let held: HashMap<InstanceId, Vec<String>> = match app.store.reservations().await {
        Ok(held) => held.into_iter().map(|one| (one.instance, one.held.cards)).collect(),
        Err(error) => {
            tracing::warn!(error = chain(&error), "cannot see who has which card");
            return;
        }
    };
    let mut new = Vec::new();
    for Counted { instance, counts } in &counted {
        let cards = held.get(instance).map(Vec::as_slice).unwrap_or_default();
        if let Some(sample) =
            before.get(instance).and_then(|before| sample(before, counts, cards, &node.cards))
        {
            new.push((instance.clone(), sample));
        }
    }
    *before = counted.into_iter().map(|one| (one.instance, one.counts)).collect();
    let samples = Arc::clone(&app.samples);
    let written = app
        .tasks
        .blocking(move || new.iter().try_for_each(|(instance, sample)| samples.append(instance, sample)));
    if let Some(Err(error)) = written.await {
        tracing::warn!(%error, "samples cannot be written");
    }
}

/// What was used between two counts; `None` for two that do not follow each other.
#[expect(clippy::cast_precision_loss, reason = "for a plot")]
fn sample(before: &Counts, now: &Counts, cards: &[String], all: &[CardReport]) -> Option<Sample> {
    let apart = now.at.duration_since(before.at);
    if apart <= SignedDuration::ZERO || apart > GAP_MAX {
        return None;
    }
    let seconds = apart.as_secs_f64();
    let per_second = |before: u64, now: u64| -> Option<f64> {
        // Less than before: the container was started again meanwhile.
        now.checked_sub(before).map(|used| used as f64 / seconds)
    };
    let bytes = |before: u64, now: u64| per_second(before, now).map(whole);
    let own: Vec<&CardReport> = all.iter().filter(|card| cards.contains(&card.uuid)).collect();
    let count = own.len() as f64;
    let has = !own.is_empty();
    Some(Sample {
        at: now.at,
        cpus: per_second(before.cpu_nanoseconds, now.cpu_nanoseconds)? / 1e9,
        memory_bytes: now.memory_bytes,
        disk_read_bytes: bytes(before.disk_read_bytes, now.disk_read_bytes)?,
        disk_written_bytes: bytes(before.disk_written_bytes, now.disk_written_bytes)?,
        received_bytes: bytes(before.received_bytes, now.received_bytes)?,
        sent_bytes: bytes(before.sent_bytes, now.sent_bytes)?,
        gpu_busy: has.then(|| own.iter().map(|card| f64::from(card.busy)).sum::<f64>() / count),
        gpu_memory_bytes: has.then(|| own.iter().map(|card| card.memory_used_bytes).sum()),
    })
}

impl Samples {
    pub(crate) fn new(data: &std::path::Path) -> Self {
        Self { directory: data.join("samples") }
    }

    fn append(&self, instance: &InstanceId, sample: &Sample) -> io::Result<()> {
        let directory = self.directory.join(instance.as_str());
        fs::create_dir_all(&directory)?;
        let path = directory.join(day(sample.at).to_string());
        let mut file = fs::OpenOptions::new().append(true).create(true).open(path)?;
        // What a crash left of the last record would shift all that follow.
        let torn = file.metadata()?.len() % RECORD as u64;
        if torn > 0 {
            file.set_len(file.metadata()?.len() - torn)?;
        }
        file.write_all(&encode(sample))
    }

    /// Those from `since` until `until`, as at most `points` means. Blocks.
    pub(crate) fn read(
        &self,
        instance: &InstanceId,
        since: Timestamp,
        until: Timestamp,
        points: usize,
    ) -> io::Result<Vec<Sample>> {
        let directory = self.directory.join(instance.as_str());
        let oldest = day(Timestamp::now()) - DAYS;
        let mut all = Vec::new();
        for day in day(since).max(oldest)..=day(until).min(day(Timestamp::now())) {
            let content = match fs::read(directory.join(day.to_string())) {
                Ok(content) => content,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let records = content.chunks_exact(RECORD).filter_map(decode);
            all.extend(records.filter(|sample| (since..=until).contains(&sample.at)));
        }
        Ok(thin(&all, since, until, points))
    }

    /// Forgets what is too old. Blocks.
    fn forget_old(&self, now: Timestamp) {
        let oldest = day(now) - DAYS;
        let entries = |path: &PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
        for instance in entries(&self.directory) {
            for file in entries(&instance.path()) {
                let day = file.file_name().to_str().and_then(|name| name.parse::<i64>().ok());
                if day.is_some_and(|day| day < oldest) {
                    let _ = fs::remove_file(file.path());
                }
            }
            // Only an empty one goes.
            let _ = fs::remove_dir(instance.path());
        }
    }
}

fn day(at: Timestamp) -> i64 {
    at.as_millisecond().div_euclid(DAY_MS)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded, and never negative")]
fn whole(number: f64) -> u64 {
    number.round().max(0.0) as u64
}

fn encode(sample: &Sample) -> [u8; RECORD] {
    let numbers = [
        sample.at.as_millisecond().cast_unsigned(),
        whole(sample.cpus * 1000.0),
        sample.memory_bytes,
        sample.disk_read_bytes,
        sample.disk_written_bytes,
        sample.received_bytes,
        sample.sent_bytes,
        sample.gpu_busy.map_or(NONE, |busy| whole(busy * 100.0)),
        sample.gpu_memory_bytes.unwrap_or(NONE),
    ];
    let mut record = [0; RECORD];
    for (place, number) in record.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_be_bytes());
    }
    record
}

#[expect(clippy::cast_precision_loss, reason = "for a plot")]
fn decode(record: &[u8]) -> Option<Sample> {
    let numbers: Vec<u64> =
        record.chunks_exact(8).filter_map(|bytes| Some(u64::from_be_bytes(bytes.try_into().ok()?))).collect();
    let [
        at,
        cpus,
        memory_bytes,
        disk_read_bytes,
        disk_written_bytes,
        received_bytes,
        sent_bytes,
        busy,
        gpu_memory,
    ] = numbers[..]
    else {
        return None;
    };
    Some(Sample {
        at: Timestamp::from_millisecond(at.cast_signed()).ok()?,
        cpus: cpus as f64 / 1000.0,
        memory_bytes,
        disk_read_bytes,
        disk_written_bytes,
        received_bytes,
        sent_bytes,
        gpu_busy: (busy != NONE).then_some(busy as f64 / 100.0),
        gpu_memory_bytes: (gpu_memory != NONE).then_some(gpu_memory),
    })
}

/// Means over equal parts of the time; a part without samples has no point.
fn thin(all: &[Sample], since: Timestamp, until: Timestamp, points: usize) -> Vec<Sample> {
    if all.len() <= points {
        return all.to_vec();
    }
    let from = all.first().map_or(since, |first| first.at).as_millisecond();
    let width = (until.as_millisecond() - from).max(1) / i64::try_from(points.max(1)).unwrap_or(1) + 1;
    let part = |sample: &Sample| (sample.at.as_millisecond() - from) / width;
    all.chunk_by(|one, other| part(one) == part(other)).filter_map(mean).collect()
}

#[expect(clippy::cast_precision_loss, reason = "for a plot")]
fn mean(part: &[Sample]) -> Option<Sample> {
    let middle = part.get(part.len() / 2)?;
    let over = |of: &dyn Fn(&Sample) -> Option<f64>| {
        let known: Vec<f64> = part.iter().filter_map(of).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let bytes = |of: &dyn Fn(&Sample) -> u64| over(&|sample| Some(of(sample) as f64)).map_or(0, whole);
    Some(Sample {
        at: middle.at,
        cpus: over(&|sample| Some(sample.cpus))?,
        memory_bytes: bytes(&|sample| sample.memory_bytes),
        disk_read_bytes: bytes(&|sample| sample.disk_read_bytes),
        disk_written_bytes: bytes(&|sample| sample.disk_written_bytes),
        received_bytes: bytes(&|sample| sample.received_bytes),
        sent_bytes: bytes(&|sample| sample.sent_bytes),
        gpu_busy: over(&|sample| sample.gpu_busy),
        gpu_memory_bytes: over(&|sample| sample.gpu_memory_bytes.map(|bytes| bytes as f64)).map(whole),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use super::*;

    /// Seconds after a moment an hour ago, the same one for all.
    fn at(second: i64) -> Timestamp {
        static THEN: OnceLock<Timestamp> = OnceLock::new();
        let then = *THEN.get_or_init(|| Timestamp::now() - SignedDuration::from_hours(1));
        then + SignedDuration::from_secs(second)
    }

    fn counts(second: i64, used: u64) -> Counts {
        Counts {
            at: at(second),
            cpu_nanoseconds: used * 1_000_000_000,
            memory_bytes: 5 << 20,
            disk_read_bytes: used,
            disk_written_bytes: 2 * used,
            received_bytes: 3 * used,
            sent_bytes: 4 * used,
        }
    }

    #[test]
    fn a_sample_is_what_two_counts_are_apart() {
        let card = |uuid: &str, busy| CardReport {
            uuid: uuid.to_owned(),
            index: 0,
            model: "A".to_owned(),
            memory_bytes: 8,
            healthy: true,
            memory_used_bytes: 3,
            busy,
            temperature: None,
            processes: 0,
        };
        let cards = [card("a", 50), card("b", 100), card("c", 0)];
        let own = ["a".to_owned(), "b".to_owned()];
        let first = counts(0, 10);
        let next =
            Counts { at: first.at.checked_add(SignedDuration::from_secs(10)).unwrap(), ..counts(0, 25) };
        let taken = sample(&first, &next, &own, &cards).unwrap();
        assert!((taken.cpus - 1.5).abs() < 1e-9, "{taken:?}");
        assert_eq!((taken.disk_written_bytes, taken.sent_bytes, taken.memory_bytes), (3, 6, 5 << 20));
        assert_eq!((taken.gpu_busy, taken.gpu_memory_bytes), (Some(75.0), Some(6)));
        assert_eq!(sample(&first, &next, &[], &cards).unwrap().gpu_busy, None);
        // Started again, the same again, and long ago.
        assert_eq!(sample(&next, &first, &[], &[]), None);
        assert_eq!(sample(&first, &first, &[], &[]), None);
        assert_eq!(sample(&first, &Counts { at: at(3000), ..next.clone() }, &[], &[]), None);
        assert_eq!(sample(&first, &Counts { cpu_nanoseconds: 1, ..next }, &[], &[]), None);
    }

    #[test]
    fn what_is_written_is_read_and_gaps_stay() {
        let data = tempfile::tempdir().unwrap();
        let (samples, id) = (Samples::new(data.path()), InstanceId::new());
        let write = |second: i64| {
            let sample = sample(&counts(second - 10, 0), &counts(second, 10), &[], &[]).unwrap();
            samples.append(&id, &sample).unwrap();
        };
        (10..1000).step_by(10).for_each(write);
        // A crash in the middle of a record.
        let directory = data.path().join("samples").join(id.as_str());
        let file = fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path();
        fs::OpenOptions::new().append(true).open(&file).unwrap().write_all(&[1, 2, 3]).unwrap();
        (2000..3000).step_by(10).for_each(write);
        let all = samples.read(&id, at(-100), at(4000), 10_000).unwrap();
        assert_eq!(all.len(), 199);
        let few = samples.read(&id, at(0), at(3000), 30).unwrap();
        assert!(few.len() <= 30 && few.len() >= 18, "{}", few.len());
        let apart = few.windows(2).map(|two| two[1].at.duration_since(two[0].at)).max().unwrap();
        assert!(apart > SignedDuration::from_secs(900), "nothing is made up: {apart:?}");
        assert_eq!(samples.read(&id, at(95), at(105), 10).unwrap().len(), 1);
        assert_eq!(samples.read(&InstanceId::new(), at(0), at(3000), 10).unwrap(), []);

        samples.forget_old(Timestamp::now());
        assert!(directory.exists());
        let later = Timestamp::now().checked_add(SignedDuration::from_hours(24 * 9)).unwrap();
        samples.forget_old(later);
        assert!(!directory.exists(), "a week later it is forgotten");
    }
}
