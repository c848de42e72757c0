//! Announcements and the rules of the place over HTTP.

use std::sync::Arc;

use axum::extract::{Path, State};
use gateway_api::{
    Page, Problem,
    notice::{AcceptRules, AddAnnouncement, Announcement, Bilingual, Rules},
};
use http::StatusCode;
use serde::Deserialize;

use super::{
    body::{Ask, Json},
    caller::Caller,
};
use crate::{app::App, error::Error};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    #[serde(default)]
    all: bool,
}

#[utoipa::path(get, path = "/announcements", operation_id = "list_announcements", params(
    ("all" = Option<bool>, Query, description = "for admins: also those that are over or yet to come"),
), responses(
    (status = 200, body = Page<Announcement>, description = "newest first"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Ask(which): Ask<Which>,
) -> Result<Json<Page<Announcement>>, Error> {
    Ok(Json(Page { items: app.announcements(&caller, which.all).await? }))
}

#[utoipa::path(post, path = "/announcements", operation_id = "add_announcement", request_body = AddAnnouncement,
    responses(
    (status = 201, body = Announcement),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 413, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn add(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(wanted): Json<AddAnnouncement>,
) -> Result<(StatusCode, Json<Announcement>), Error> {
    Ok((StatusCode::CREATED, Json(app.add_announcement(&caller, wanted).await?)))
}

#[utoipa::path(delete, path = "/announcements/{id}", operation_id = "remove_announcement", params(
    ("id" = String, Path),
), responses(
    (status = 204),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Error> {
    app.remove_announcement(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[utoipa::path(get, path = "/rules", operation_id = "read_rules", responses(
    (status = 200, body = Rules),
    (status = 401, body = Problem),
))]
pub(super) async fn rules(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<Rules>, Error> {
    Ok(Json(app.rules(&caller).await?))
}

#[utoipa::path(put, path = "/rules", operation_id = "set_rules", request_body = Bilingual, responses(
    (status = 200, body = Rules, description = "everyone is asked to agree to them; empty texts mean no rules"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 413, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn set_rules(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(text): Json<Bilingual>,
) -> Result<Json<Rules>, Error> {
    Ok(Json(app.set_rules(&caller, text).await?))
}

#[utoipa::path(post, path = "/rules/acceptance", operation_id = "accept_rules", request_body = AcceptRules, responses(
    (status = 200, body = Rules, description = "`accepted` is false when another version is in force by now"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 413, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn accept_rules(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(AcceptRules { version }): Json<AcceptRules>,
) -> Result<Json<Rules>, Error> {
    Ok(Json(app.accept_rules(&caller, version).await?))
}

#[cfg(test)]
mod tests {
    use gateway_api::{notice::NOTICE_MAX_BYTES, session::Role};
    use http::Method;
    use serde_json::{Value, json};

    use crate::{http::testing::Site, store::GroupId};

    #[tokio::test]
    async fn an_announcement_that_says_nothing_too_much_or_never_is_refused() {
        let site = Site::open().await;
        let admin = site.user("alice", Role::Admin, GroupId::DEFAULT).await;
        let text = json!({"english": "Power cut at noon"});
        let (noon, one) = ("2030-01-01T12:00:00Z", "2030-01-01T13:00:00Z");
        let check = async |body: Value, status: u16, pointer: Option<&str>, reason: Option<&str>| {
            let reply = site.ask(&Method::POST, "/api/v1/announcements", Some(&admin), Some(&body)).await;
            let said = reply.json();
            assert_eq!(reply.status, status, "{body}: {said}");
            assert_eq!(said["pointer"].as_str(), pointer, "{body}: {said}");
            assert_eq!(said["params"]["reason"].as_str(), reason, "{body}: {said}");
        };
        let long = "x".repeat(NOTICE_MAX_BYTES + 1);
        check(json!({"level": "info", "text": {}}), 422, Some("/text"), Some("text_missing")).await;
        check(json!({"level": "info", "text": {"chinese": " \n"}}), 422, Some("/text"), Some("text_missing"))
            .await;
        check(json!({"level": "info", "text": {"english": long}}), 422, Some("/text"), Some("text_too_long"))
            .await;
        for end in [noon, "2029-12-31T12:00:00Z"] {
            let window = json!({"level": "info", "text": text, "starts_at": noon, "ends_at": end});
            check(window, 422, Some("/ends_at"), Some("ends_before_it_starts")).await;
        }
        let all = site.ask(&Method::GET, "/api/v1/announcements?all=true", Some(&admin), None).await;
        assert_eq!(all.json()["items"], json!([]));
        let window = json!({"level": "info", "text": text, "starts_at": noon, "ends_at": one});
        check(window, 201, None, None).await;
    }
}
