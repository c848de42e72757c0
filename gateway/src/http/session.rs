//! Signing in and out, and who one is.

use std::sync::Arc;

use axum::extract::State;
use axum_extra::extract::CookieJar;
use gateway_api::{
    Problem,
    session::{ChangePassword, ClientKind, Me, SetLanguage, SignInBody, SignInByTicket, SignedIn},
};
use http::StatusCode;

use super::{
    body::Json,
    caller::{Caller, SameOrigin, session_cookie},
};
use crate::{app::App, auth::Origin, error::Error, store::User};

#[utoipa::path(post, path = "/session", operation_id = "sign_in", request_body = SignInBody, responses(
    (status = 200, body = SignedIn),
    (status = 400, body = Problem),
    (status = 403, body = Problem, description = "`cross_site`"),
    (status = 413, body = Problem),
    (status = 401, body = Problem, description = "`bad_credentials`, or `unauthenticated`: the ticket is used or too old"),
    (status = 429, body = Problem, description = "`too_many_attempts`"),
))]
pub(super) async fn sign_in(
    State(app): State<Arc<App>>,
    origin: Origin,
    _: SameOrigin,
    jar: CookieJar,
    Json(body): Json<SignInBody>,
) -> Result<(CookieJar, Json<SignedIn>), Error> {
    let body = match body {
        SignInBody::Password(body) => body,
        SignInBody::Ticket(SignInByTicket { ticket }) => {
            let (user, token) = app.sign_in_by_ticket(&ticket, &origin).await?;
            let signed_in = SignedIn { me: me_of(user), token: None };
            return Ok((jar.add(session_cookie(&app, Some(&token))), Json(signed_in)));
        }
    };
    let (user, token) = app.sign_in(&body.user, body.password, &origin).await?;
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
    (status = 403, body = Problem, description = "`forbidden`: an API token has no session"),
))]
pub(super) async fn sign_out(
    State(app): State<Arc<App>>,
    caller: Caller,
    jar: CookieJar,
) -> Result<(CookieJar, StatusCode), Error> {
    app.sign_out(&caller).await?;
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
    (status = 400, body = Problem),
    (status = 401, body = Problem, description = "`bad_credentials`"),
    (status = 403, body = Problem),
    (status = 413, body = Problem),
    (status = 422, body = Problem, description = "`weak_password`"),
    (status = 429, body = Problem, description = "`too_many_attempts`"),
))]
pub(super) async fn change_password(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(body): Json<ChangePassword>,
) -> Result<StatusCode, Error> {
    app.change_password(&caller, body).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[utoipa::path(put, path = "/me/language", operation_id = "set_language", request_body = SetLanguage, responses(
    (status = 204),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 413, body = Problem),
))]
pub(super) async fn set_language(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(body): Json<SetLanguage>,
) -> Result<StatusCode, Error> {
    app.set_language(&caller, body.language).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn me_of(user: User) -> Me {
    Me {
        name: user.name,
        role: user.role,
        group: user.group,
        must_change_password: user.must_change_password,
        language: user.language,
    }
}
