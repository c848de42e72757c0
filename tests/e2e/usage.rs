//! What instances use, for plots, and what was held over time.

use gateway_api::usage::Usage;
use tests::{LIMIT, OrFail as _, Setup, World, nvml, wait_until};

#[tokio::test]
async fn an_instance_is_sampled_and_what_it_held_is_summed_up() {
    let directory = tempfile::tempdir().or_fail("make a directory");
    let nvml = Some(nvml::library(directory.path()));
    let world = World::start_with(Setup { nvml, ..Setup::default() }).await;
    let create = ["create", "train", "-m", "128M", "--gpus", "1", "--gpu-type", "P100", "--wait"];
    world.berth(&create).await.succeeded();
    let samples = wait_until("it was sampled", LIMIT, async || {
        let samples = world.client().instance_samples("train", None, None).await.or_fail("list samples");
        (!samples.is_empty()).then_some(samples)
    })
    .await;
    let sample = &samples[0];
    assert!(sample.memory_bytes > 0 && sample.memory_bytes < 128 << 20, "{sample:?}");
    // The first of that model is the fifth of all, which is busy for 40 % of the time.
    assert_eq!((sample.gpu_busy, sample.gpu_memory_bytes), (Some(40.0), Some(1 << 30)));

    world.berth(&["stop", "train", "--wait"]).await.succeeded();
    let usage = async || -> Vec<Usage> { world.client().usage(true, None, None).await.or_fail("sum up") };
    let [held] = &usage().await[..] else { panic!("{:?}", usage().await) };
    assert_eq!((held.user.as_str(), held.gpu_model.as_deref()), ("admin", Some(nvml::MODELS[1])));
    assert!(held.gpu_hours > 0.0 && (held.cpu_hours - held.gpu_hours).abs() < 1e-9, "one of each: {held:?}");
    assert_eq!(usage().await, std::slice::from_ref(held), "what is stopped holds nothing");
    let printed = world.berth(&["usage", "--all", "--by", "model"]).await.succeeded();
    assert!(printed.contains(nvml::MODELS[1]), "{printed}");
    let stranger = world.person("bob").await.usage(true, None, None).await;
    assert_eq!(stranger.err().and_then(|error| error.code()), Some(gateway_api::Code::Forbidden));

    let submit = ["submit", "--name", "batch", "-m", "128M", "--", "sleep", "600"];
    world.berth(&submit).await.succeeded();
    let of_job = wait_until("a job is sampled too", LIMIT, async || {
        let samples = world.client().job_samples("batch", None, None).await;
        // Before it has begun there is no task to ask of.
        samples.unwrap_or_default().pop()
    })
    .await;
    assert!(of_job.memory_bytes > 0 && of_job.gpu_busy.is_none(), "{of_job:?}");
}
