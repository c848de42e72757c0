//! Figures about the gateway, in Prometheus' words, on a listener of their own: never on the public one.
//!
//! What happens is counted where it happens, by the functions here; what *is* is looked up when somebody asks. Labels
//! come from our own code alone (routes, not paths), so their number is bounded whatever clients send.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::Context as _;
use bytes::Bytes;
use gateway_api::Problem;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;

use crate::{
    app::App,
    config::Limits,
    listen::{Door, Front},
};

const REQUESTS: &str = "berth_http_requests_total";
const REQUEST_SECONDS: &str = "berth_http_request_seconds";
const CONNECTIONS: &str = "berth_connections";
const WEBSOCKETS: &str = "berth_websockets";
const SIGN_INS: &str = "berth_sign_ins_total";
const PROBLEMS: &str = "berth_problems_total";
const INSTANCES: &str = "berth_instances";
const AGENT_LINKS: &str = "berth_agent_links";
const RECONCILED: &str = "berth_reconciled_timestamp_seconds";
const STORE_SECONDS: &str = "berth_store_change_seconds";
const RECONCILE_SECONDS: &str = "berth_reconcile_seconds";
const PART_WELL: &str = "berth_part_well";
const TLS_EXPIRES: &str = "berth_tls_expires_timestamp_seconds";
const BUILD: &str = "berth_build_info";
const MEMORY: &str = "process_resident_memory_bytes";
const FILES: &str = "process_open_fds";

/// In seconds: from a cached list to a call that waits for an engine.
const BUCKETS: &[f64] = &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
/// In seconds: a durable change takes little more than the disk does.
const STORE_BUCKETS: &[f64] = &[
    0.0001, 0.00015, 0.0002, 0.00025, 0.0003, 0.00035, 0.0004, 0.00045, 0.0005, 0.0006, 0.0007, 0.0008,
    0.0009, 0.001, 0.00125, 0.0015, 0.002, 0.003, 0.005, 0.01, 0.025, 0.1, 1.0,
];
/// How often figures are put together while nobody asks.
const UPKEEP: Duration = Duration::from_secs(5);
/// One Prometheus, and a person who looks.
const CONNECTIONS_MAX: usize = 16;

/// Whether anybody counts. Where nobody does, not even the labels are put together.
static COUNTS: AtomicBool = AtomicBool::new(false);

/// Counts from now on, and shows the figures at `listener`.
pub(crate) fn serve(listener: TcpListener, app: &Arc<App>) -> anyhow::Result<()> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), BUCKETS)
        .and_then(|builder| {
            builder.set_buckets_for_metric(Matcher::Full(STORE_SECONDS.to_owned()), STORE_BUCKETS)
        })
        .and_then(PrometheusBuilder::install_recorder)
        .context("the figures cannot be counted")?;
    COUNTS.store(true, Ordering::Relaxed);
    describe();
    let stopping = app.tasks.stopping();
    let kept = handle.clone();
    app.tasks.spawn("metrics upkeep", async move {
        loop {
            tokio::select! {
                () = tokio::time::sleep(UPKEEP) => kept.run_upkeep(),
                () = stopping.cancelled() => return,
            }
        }
    });
    let limits = Limits { connections_max: CONNECTIONS_MAX, ..Limits::default() };
    let door = Door { listener, front: Front::Plain, limits };
    let asked = Arc::clone(app);
    app.tasks.spawn(
        "metrics",
        door.serve(app.tasks.clone(), move |request, _| answer(request, Arc::clone(&asked), handle.clone())),
    );
    Ok(())
}

async fn answer<B>(request: Request<B>, app: Arc<App>, handle: PrometheusHandle) -> Response<Full<Bytes>> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => {
            look(&app).await;
            (StatusCode::OK, handle.render())
        }
        (_, "/metrics") => (StatusCode::METHOD_NOT_ALLOWED, String::new()),
        (_, _) => (StatusCode::NOT_FOUND, "the figures are at /metrics\n".to_owned()),
    };
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    let kind = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn describe() {
    describe_counter!(REQUESTS, "requests answered");
    describe_histogram!(REQUEST_SECONDS, "time from a request's head to the answer's head");
    describe_gauge!(CONNECTIONS, "open connections, WebSockets included");
    describe_gauge!(WEBSOCKETS, "open WebSockets");
    describe_counter!(SIGN_INS, "attempts to sign in with a password");
    describe_counter!(PROBLEMS, "answers that said no, by their code");
    describe_gauge!(INSTANCES, "instances by state");
    describe_gauge!(AGENT_LINKS, "instances whose agent is connected");
    describe_gauge!(RECONCILED, "when the cluster was last told all that should be");
    describe_histogram!(
        STORE_SECONDS,
        "time of a durable change of the store, with its line in the audit log"
    );
    describe_histogram!(RECONCILE_SECONDS, "time to tell the cluster all that should be");
    describe_gauge!(PART_WELL, "1 when this part is well, as at /healthz");
    describe_gauge!(TLS_EXPIRES, "when the certificate expires");
    describe_gauge!(BUILD, "which version this is");
    describe_gauge!(MEMORY, "resident memory");
    describe_gauge!(FILES, "open file descriptors");
}

// === what happens ===

pub(crate) fn answered(method: &Method, route: Option<&str>, status: StatusCode, took: Duration) {
    if !COUNTS.load(Ordering::Relaxed) {
        return;
    }
    // Methods and paths of a client's own making share one label each.
    let method = match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    };
    let route = route.unwrap_or("console").to_owned();
    if (method, route.as_str()) == ("POST", "/api/v1/session") {
        let outcome = match status.as_u16() {
            200..=299 => "signed in",
            429 => "too many attempts",
            _ => "refused",
        };
        counter!(SIGN_INS, "outcome" => outcome).increment(1);
    }
    counter!(REQUESTS, "method" => method, "route" => route.clone(), "status" => status.as_u16().to_string())
        .increment(1);
    histogram!(REQUEST_SECONDS, "route" => route).record(took);
}

pub(crate) fn refused(problem: &Problem) {
    counter!(PROBLEMS, "code" => word(&problem.code)).increment(1);
}

pub(crate) fn connection_opened() {
    gauge!(CONNECTIONS).increment(1);
}

pub(crate) fn connection_closed() {
    gauge!(CONNECTIONS).decrement(1);
}

pub(crate) fn websocket_opened() {
    gauge!(WEBSOCKETS).increment(1);
}

pub(crate) fn websocket_closed() {
    gauge!(WEBSOCKETS).decrement(1);
}

/// A change is on the disk.
pub(crate) fn stored(took: Duration) {
    histogram!(STORE_SECONDS).record(took);
}

/// The cluster knows all that should be.
pub(crate) fn reconciled(took: Duration) {
    histogram!(RECONCILE_SECONDS).record(took);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    gauge!(RECONCILED).set(now.as_secs_f64());
}

// === what is ===

#[expect(clippy::cast_precision_loss, reason = "no figure here has more than 52 bits")]
async fn look(app: &App) {
    gauge!(BUILD, "version" => env!("CARGO_PKG_VERSION")).set(1);
    for part in app.health().await {
        gauge!(PART_WELL, "part" => part.name).set(u8::from(part.trouble.is_none()));
    }
    if let Ok(rows) = app.store.instances().await {
        let mut states: BTreeMap<String, u32> = STATES.iter().map(|state| ((*state).to_owned(), 0)).collect();
        for row in rows {
            let state = serde_json::to_value(&row.status).ok();
            let state = state.as_ref().and_then(|status| status["state"].as_str()).unwrap_or("unknown");
            *states.entry(state.to_owned()).or_default() += 1;
        }
        for (state, count) in states {
            gauge!(INSTANCES, "state" => state).set(count);
        }
    }
    gauge!(AGENT_LINKS).set(app.agents.linked() as f64);
    if let Some(end) = app.certificates.get().and_then(crate::listen::tls::Certificates::ends) {
        gauge!(TLS_EXPIRES).set(end.as_second() as f64);
    }
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.as_deref().and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    if let Some(pages) = pages {
        gauge!(MEMORY).set((pages * rustix::param::page_size() as u64) as f64);
    }
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        gauge!(FILES).set(files.count() as f64);
    }
}

/// Those that are shown also when no instance is in them.
const STATES: &[&str] =
    &["waiting", "pulling", "starting", "running", "stopping", "stopped", "succeeded", "failed", "deleting"];

fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
    };

    use super::*;
    use crate::{config::Config, listen::Doors, store::Store, tasks::Tasks};

    async fn get(address: std::net::SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// Figures are global to the process, so with `cargo test` other tests count into them too: no count is compared.
    #[tokio::test]
    async fn figures_are_at_their_own_address_alone() {
        let (data, tasks) = (tempfile::tempdir().unwrap(), Tasks::default());
        let settings = "[gateway]\nhttp = '127.0.0.1:0'\nmetrics = '127.0.0.1:0'";
        let config = Config::from_parts(data.path(), settings, |_| None).unwrap();
        let store = Store::open(&data.path().join("store.db")).await.unwrap();
        let app = App::build(config, store, tasks.clone()).unwrap();
        let doors = Doors::bind(&app.config, &tasks).await.unwrap();
        let (site, figures) = (doors.site.listener.local_addr().unwrap(), doors.metrics.unwrap());
        let own = figures.local_addr().unwrap();
        serve(figures, &app).unwrap();
        let serving = Arc::clone(&app);
        tasks.spawn("site", async move { crate::http::serve(doors.site, None, serving).await.unwrap() });

        let missing = get(site, "/api/v1/instances/%3Cscript%3E").await;
        assert!(missing.starts_with("HTTP/1.1 401"), "{missing}");
        let public = get(site, "/metrics").await;
        assert!(!public.contains("berth_http_requests_total"), "{public}");
        assert!(get(own, "/api/v1/me").await.starts_with("HTTP/1.1 404"), "and nothing else is there");

        let shown = get(own, "/metrics").await;
        for line in [
            "berth_http_requests_total{method=\"GET\",route=\"/api/v1/instances/{name}\",status=\"401\"} ",
            "berth_problems_total{code=\"unauthenticated\"} ",
            "berth_instances{state=\"running\"} 0",
            "berth_part_well{part=\"store\"} 1",
            "berth_part_well{part=\"cluster\"} 0",
            "berth_connections ",
            "process_open_fds ",
            "berth_http_request_seconds_bucket{",
        ] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
        assert!(!shown.contains("%3C"), "labels are ours alone");
        tasks.stop(Duration::from_secs(5)).await;
    }
}
