//! `GET /events`: one stream of news per browser.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::State,
    response::sse::{Event, KeepAlive, Sse},
};
use futures_util::{Stream, stream};
use gateway_api::Problem;
use serde_json::json;

use super::caller::Caller;
use crate::{app::App, auth::live::Kind, error::Error, events::What};

const HEARTBEAT: Duration = Duration::from_secs(15);

#[utoipa::path(get, path = "/events", operation_id = "events", responses(
    (status = 200, content_type = "text/event-stream", body = String, description =
        "`event: instance` with an `Instance`, `event: instance_deleted` with `{id}`, `event: image` \
         with an `Image`, `event: image_deleted` with `{id}`, `event: job` with a `Job`, \
         `event: job_deleted` with `{id}`, all of one's own; `event: changed` with `{topics}`, of which something \
         changed, whoever's it is. The first event is `ready`. \
         Read the lists after each (re)connect: news is not repeated"),
    (status = 401, body = Problem),
    (status = 429, body = Problem, description = "`too_many_open`"),
))]
pub(super) async fn events(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Error> {
    let news = app.events.listen();
    let stopping = app.tasks.stopping();
    let open = Arc::new(app.live.open(&caller, Kind::Events)?);
    let stream = stream::unfold((news, true), move |(mut news, first)| {
        let (stopping, open, me) = (stopping.clone(), Arc::clone(&open), caller.user.id);
        async move {
            if first {
                return Some((Ok(Event::default().event("ready").data("{}")), (news, false)));
            }
            loop {
                // Falling behind ends the stream too: the client connects again and reads the lists.
                let heard = tokio::select! {
                    () = stopping.cancelled() => return None,
                    () = open.ended() => return None,
                    heard = news.recv() => heard.ok()?,
                };
                if heard.owner.is_none_or(|owner| owner == me) {
                    return Some((Ok(event(&heard.what)), (news, false)));
                }
            }
        }
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(HEARTBEAT)))
}

fn event(what: &What) -> Event {
    let (name, data) = match what {
        What::Changed(instance) => ("instance", json!(instance)),
        What::Deleted(id) => ("instance_deleted", json!({ "id": id })),
        What::Image(image) => ("image", json!(image)),
        What::ImageDeleted(id) => ("image_deleted", json!({ "id": id })),
        What::JobChanged(job) => ("job", json!(job)),
        What::JobDeleted(id) => ("job_deleted", json!({ "id": id })),
        What::Anything(topics) => {
            ("changed", json!({ "topics": topics.iter().map(|topic| topic.word()).collect::<Vec<_>>() }))
        }
    };
    Event::default().event(name).data(data.to_string())
}
