//! The console and the API: the only place that knows axum. Handlers read a request, call [`App`], and shape the
//! answer; what the product does is in `app/`.

mod apps;
#[cfg(test)]
mod apps_bad_tests;
#[cfg(test)]
mod apps_long_tests;
#[cfg(test)]
mod apps_tests;
mod audit;
#[cfg(test)]
mod bad_input;
mod body;
mod caller;
mod cluster;
mod console;
mod convert;
mod events;
#[cfg(test)]
mod expiry_tests;
mod groups;
mod health;
mod images;
mod instances;
mod jobs;
mod logs;
mod notices;
#[cfg(test)]
mod people_tests;
#[cfg(test)]
mod policy_table;
mod port;
mod problem;
mod process;
mod queue;
mod quotas;
mod registry;
mod relay;
mod secrets;
mod session;
mod settings;
mod site;
mod ssh;
#[cfg(test)]
mod stage;
mod terminals;
#[cfg(test)]
mod testing;
mod tokens;
mod usage;
mod users;
mod workspaces;

use std::{net::SocketAddr, pin::Pin, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{ConnectInfo, DefaultBodyLimit},
    middleware,
    response::IntoResponse,
    routing::{MethodRouter, any, get},
};
use futures_util::FutureExt as _;
use http_body_util::Either;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use ipnet::IpNet;
use tokio::signal::unix::{SignalKind, signal};
use utoipa::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    error::Error,
    listen::{Door, RequestBody, client},
    proxy::{AnswerBody, Proxy, address::Host},
    service,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Berth",
        description = "A machine of one's own behind one door. Errors are `application/problem+json`; branch on `code`. \
                       Browsers carry the session in a cookie, everyone else as `Authorization: Bearer`.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(schemas(
        gateway_api::Problem,
        gateway_api::stream::ExecStart,
        gateway_api::stream::FromClient,
        gateway_api::stream::FromServer
    ))
)]
struct Description;

/// Serves until the process is told to stop. Connections that are still open are tasks, and end with them.
pub(crate) async fn serve(door: Door, apps: Option<Door>, app: Arc<App>) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let (tasks, all, told) = (app.tasks.clone(), app.tasks.clone(), app.tasks.stopping());
    tasks.spawn("signals", async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                () = told.cancelled() => break,
                _ = hang_up.recv() => tracing::warn!("SIGHUP changes nothing here: restart to read the settings again"),
            }
        }
        tracing::info!("stopping");
        service::stopping();
        all.tell();
    });
    // Not before: whoever hears of it may tell us to stop.
    service::ready(&app);
    let proxy = Proxy::new(&app);
    if let Some(door) = apps {
        let proxy = Arc::clone(&proxy);
        let answer = move |request, from| Arc::clone(&proxy).by_path(request, from);
        let answer = by_client(app.config.trusted_proxies.clone(), answer);
        tasks.spawn("apps", {
            let tasks = tasks.clone();
            async move {
                if let Err(error) = door.serve_on_every_core(tasks, answer).await {
                    tracing::error!(%error, "apps cannot be served");
                }
            }
        });
    }
    let trusted = app.config.trusted_proxies.clone();
    let answer = answer_all(router(app), proxy);
    door.serve_on_every_core(tasks, by_client(trusted, answer)).await
}

type Answering = Pin<Box<dyn Future<Output = ::http::Response<Either<Body, AnswerBody>>> + Send>>;

/// Answers whoever a trusted proxy speaks for as if they had come themselves.
fn by_client<B, A>(
    trusted: Vec<IpNet>,
    answer: impl Fn(::http::Request<B>, SocketAddr) -> A + Send + Sync + 'static,
) -> impl Fn(::http::Request<B>, SocketAddr) -> A + Send + Sync + 'static {
    move |request, from| {
        let client = client::address(request.headers(), from, &trusted);
        answer(request, client)
    }
}

/// The console and the API at one host, apps at theirs. Apps never come near the console's router.
fn answer_all(
    router: Router,
    proxy: Arc<Proxy>,
) -> impl Fn(::http::Request<RequestBody>, SocketAddr) -> Answering + Send + Sync + 'static {
    let router = TowerToHyperService::new(router);
    move |request, from| {
        let address = match proxy.host(&request) {
            Host::Console => {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(ConnectInfo(from));
                let answer = router.call(request);
                return Box::pin(async {
                    answer.await.unwrap_or_else(|never| match never {}).map(Either::Left)
                });
            }
            Host::App(address) => Some(address),
            Host::NoApp => None,
        };
        let proxy = Arc::clone(&proxy);
        let answer = proxy.by_host(address, request, from);
        Box::pin(answer.map(|answer| answer.map(Either::Right)))
    }
}

/// The API's description as it is checked in.
pub(crate) fn openapi_json() -> String {
    api().1.to_pretty_json().unwrap_or_default()
}

fn api() -> (Router<Arc<App>>, utoipa::openapi::OpenApi) {
    let v1 = OpenApiRouter::new()
        .routes(routes!(session::sign_in, session::sign_out))
        .routes(routes!(session::me))
        .routes(routes!(session::change_password))
        .routes(routes!(session::set_language))
        .routes(routes!(instances::list, instances::create))
        .routes(routes!(instances::dry_run))
        .routes(routes!(instances::show, instances::delete))
        .routes(routes!(instances::start))
        .routes(routes!(instances::stop))
        .routes(routes!(instances::restart))
        .routes(routes!(jobs::list, jobs::submit))
        .routes(routes!(jobs::dry_run))
        .routes(routes!(convert::convert))
        .routes(routes!(jobs::show, jobs::change, jobs::delete))
        .routes(routes!(jobs::stop))
        .routes(routes!(jobs::rerun))
        .routes(routes!(jobs::file))
        .routes(routes!(jobs::events))
        .routes(routes!(jobs::logs))
        .routes(routes!(jobs::follow_logs))
        .routes(routes!(logs::read))
        .routes(routes!(logs::follow))
        .routes(routes!(process::exec))
        .routes(routes!(terminals::list))
        .routes(routes!(terminals::terminal, terminals::close))
        .routes(routes!(port::port))
        .routes(routes!(apps::show, apps::act))
        .routes(routes!(apps::open))
        .routes(routes!(apps::create_tensorboard))
        .routes(routes!(images::images))
        .routes(routes!(images::show, images::change, images::delete))
        .routes(routes!(images::dockerfile))
        .routes(routes!(images::retry))
        .routes(routes!(images::collect))
        .routes(routes!(images::save))
        .routes(routes!(images::changes))
        .routes(routes!(images::nodes))
        .routes(routes!(images::gpus))
        .routes(routes!(usage::instance))
        .routes(routes!(usage::job))
        .routes(routes!(usage::usage))
        .routes(routes!(events::events))
        .routes(routes!(queue::queue))
        .routes(routes!(users::list, users::add))
        .routes(routes!(users::show, users::change, users::remove))
        .routes(routes!(users::restore))
        .routes(routes!(users::reset_password))
        .routes(routes!(quotas::user, quotas::set_user))
        .routes(routes!(quotas::group, quotas::set_group))
        .routes(routes!(quotas::own))
        .routes(routes!(groups::list, groups::add))
        .routes(routes!(groups::show, groups::remove))
        .routes(routes!(workspaces::list, workspaces::add))
        .routes(routes!(workspaces::show, workspaces::remove))
        .routes(routes!(workspaces::add_member, workspaces::remove_member))
        .routes(routes!(tokens::list, tokens::add))
        .routes(routes!(tokens::remove))
        .routes(routes!(audit::everyones))
        .routes(routes!(audit::own))
        .routes(routes!(ssh::door))
        .routes(routes!(ssh::list, ssh::add))
        .routes(routes!(ssh::challenge))
        .routes(routes!(ssh::make_pair))
        .routes(routes!(secrets::list))
        .routes(routes!(secrets::set, secrets::remove))
        .routes(routes!(secrets::list_site))
        .routes(routes!(secrets::set_site, secrets::remove_site))
        .routes(routes!(notices::list, notices::add))
        .routes(routes!(notices::remove))
        .routes(routes!(notices::rules, notices::set_rules))
        .routes(routes!(notices::accept_rules))
        .routes(routes!(settings::effective))
        .routes(routes!(site::show, site::change))
        .routes(routes!(site::preparing))
        .routes(routes!(cluster::show))
        .routes(routes!(ssh::remove));
    OpenApiRouter::with_openapi(Description::openapi())
        .nest("/api/v1", v1)
        .routes(routes!(health::healthz))
        .split_for_parts()
}

/// What is answered and is not in the API's description. The only routes besides: [`policy_table`] walks both.
fn undescribed() -> Vec<(&'static str, MethodRouter<Arc<App>>)> {
    vec![
        ("/api/v1/openapi.json", get(openapi)),
        ("/api/{*rest}", any(async || Error::NoSuchRoute)),
        ("/v2/", any(registry::version)),
        ("/v2/token", get(registry::token)),
        ("/v2/_catalog", get(registry::catalog)),
        ("/v2/{*rest}", any(registry::serve)),
    ]
}

fn router(app: Arc<App>) -> Router {
    let (api, _) = api();
    let all = undescribed().into_iter().fold(api, |router, (path, answers)| router.route(path, answers));
    all.fallback(console::serve)
        .method_not_allowed_fallback(async || Error::NoSuchMethod)
        .layer(DefaultBodyLimit::max(body::LIMIT))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), problem::number))
        .with_state(app)
}

async fn openapi() -> impl IntoResponse {
    ([(http::header::CONTENT_TYPE, "application/json")], openapi_json())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checked_in_description_is_the_code() {
        testing::checked_in("api/openapi.json", &openapi_json());
    }
}
