//! The audit log over HTTP.

use std::sync::Arc;

use axum::extract::State;
use gateway_api::{
    Problem,
    audit::{AuditPage, AuditQuery},
};

use super::{
    body::{Ask, Json},
    caller::Caller,
};
use crate::{app::App, auth::policy, error::Error};

#[utoipa::path(get, path = "/audit", operation_id = "read_audit", params(
    ("actor" = Option<String>, Query, description = "only of this user"),
    ("act" = Option<String>, Query, description = "only this act, such as `sign_in`"),
    ("object" = Option<String>, Query, description = "only what was done to this, such as the id of an instance"),
    ("since" = Option<String>, Query, description = "only what is not older than this moment (RFC 3339)"),
    ("before" = Option<i64>, Query, description = "where the page before ended: its `next`"),
    ("limit" = Option<u32>, Query, description = "1 to 1000; 100 when absent"),
), responses(
    (status = 200, body = AuditPage, description = "newest first"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn everyones(
    State(app): State<Arc<App>>,
    caller: Caller,
    Ask(query): Ask<AuditQuery>,
) -> Result<Json<AuditPage>, Error> {
    policy::administer(&caller)?;
    Ok(Json(app.audit_log(query).await?))
}

#[utoipa::path(get, path = "/me/audit", operation_id = "read_own_audit", params(
    ("act" = Option<String>, Query, description = "only this act, such as `sign_in`"),
    ("object" = Option<String>, Query, description = "only what was done to this, such as the id of an instance"),
    ("since" = Option<String>, Query, description = "only what is not older than this moment (RFC 3339)"),
    ("before" = Option<i64>, Query, description = "where the page before ended: its `next`"),
    ("limit" = Option<u32>, Query, description = "1 to 1000; 100 when absent"),
), responses(
    (status = 200, body = AuditPage, description =
        "what was done, or tried, in the caller's name; with `object` of the caller's own also what others did to it; \
         newest first"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn own(
    State(app): State<Arc<App>>,
    caller: Caller,
    Ask(query): Ask<AuditQuery>,
) -> Result<Json<AuditPage>, Error> {
    Ok(Json(app.own_audit(&caller, query).await?))
}
