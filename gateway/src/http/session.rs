//! Signing in and out, and who one is.

use std::sync::Arc;

use axum::extract::State;
use axum_extra::extract::CookieJar;
use gateway_api::{
    Problem,
    session::{ChangePassword, ClientKind, Me, SignIn, SignedIn},
};
use http::StatusCode;

use super::{
    body::Json,
    caller::{Caller, SameOrigin, Source, session_cookie},
};
use crate::{app::App, error::Error, store::User};

#[utoipa::path(post, path = "/session", operation_id = "sign_in", request_body = SignIn, responses(
    (status = 200, body = SignedIn),
    (status = 401, body = Problem, description = "`bad_credentials`"),
    (status = 429, body = Problem, description = "`too_many_attempts`"),
))]
pub(super) async fn sign_in(
    State(app): State<Arc<App>>,
    Source(from): Source,
    _: SameOrigin,
    jar: CookieJar,
    Json(body): Json<SignIn>,
) -> Result<(CookieJar, Json<SignedIn>), Error> {
    let (user, token) = app.sign_in(&body.user, body.password, from).await?;
    let me = me_of(user);
    Ok(match body.client {
        ClientKind::Browser => {
            (jar.add(session_cookie(&app, Some(&token))), Json(SignedIn { me, token: None }))
        }
        ClientKind::Cli => (jar, Json(SignedIn { me, token: Some(token.reveal().to_owned()) })),
    })
}

#[utoipa::path(delete, path = "/session", operation_id = "sign_out", responses(
    (status = 204),
    (status = 401, body = Problem),
))]
pub(super) async fn sign_out(
    State(app): State<Arc<App>>,
    caller: Caller,
    jar: CookieJar,
) -> Result<(CookieJar, StatusCode), Error> {
    app.sign_out(&caller.session).await?;
    Ok((jar.add(session_cookie(&app, None)), StatusCode::NO_CONTENT))
}

#[utoipa::path(get, path = "/me", operation_id = "me", responses(
    (status = 200, body = Me),
    (status = 401, body = Problem),
))]
pub(super) async fn me(caller: Caller) -> Json<Me> {
    Json(me_of(caller.user))
}

#[utoipa::path(put, path = "/me/password", operation_id = "change_password", request_body = ChangePassword, responses(
    (status = 204),
    (status = 401, body = Problem, description = "`bad_credentials`"),
    (status = 422, body = Problem, description = "`weak_password`"),
))]
pub(super) async fn change_password(
    State(app): State<Arc<App>>,
    Source(from): Source,
    caller: Caller,
    Json(body): Json<ChangePassword>,
) -> Result<StatusCode, Error> {
    app.change_password(&caller.user, &caller.session, body, from).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn me_of(user: User) -> Me {
    Me { name: user.name, role: user.role, must_change_password: user.must_change_password }
}
