//! What has expired opens nothing, by HTTP and by WebSocket.

use std::time::Duration;

use gateway_api::{TokenName, id::TokenId, session::Role, token::Scope};
use http::Method;

use super::testing::Site;
use crate::{
    auth::token::Token,
    store::{GroupId, Line, NewToken},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_and_tokens_open_nothing_once_their_time_is_over() {
    let site = Site::open().await;
    let valid = site.user("alice", Role::User, GroupId::DEFAULT).await;
    let alice = site.app.store.user_by_name(&"alice".parse().unwrap()).await.unwrap().unwrap();
    let line = Line::by_system("test", "");
    let (session, token, id) = (Token::new(), Token::new_for_api(), TokenId::new());
    site.app.store.add_session(&session.hash(), alice.id, Duration::ZERO, &line).await.unwrap();
    let new = NewToken {
        id: &id,
        token_hash: &token.hash(),
        user: alice.id,
        name: &"nightly".parse::<TokenName>().unwrap(),
        scope: Scope::All,
        lasts: Duration::ZERO,
    };
    site.app.store.add_token(new, &line).await.unwrap();
    for (what, key, status) in
        [("a session", &session, 401), ("a token", &token, 401), ("a valid one", &valid, 200)]
    {
        let answer = site.ask(&Method::GET, "/api/v1/me", Some(key), None).await;
        assert_eq!(answer.status, status, "{what}");
        let (followed, _stream) = site.follow("/api/v1/events", Some(key)).await;
        assert_eq!(followed, status, "{what}");
    }
}
