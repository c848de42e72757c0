//! People from outside: what ends when, what looks alike, and what the audit log knows afterwards.

use std::time::Instant;

use gateway_api::{InstanceId, Status, session::Role, token::Scope};
use http::Method;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use super::testing::{LIMIT, PASSWORD, REVOKED_LIMIT, Reply, Site};
use crate::{
    auth::token::Token,
    store::{GroupId, ImageChange, Line},
};

fn running() -> Status {
    Status::Running { since: jiff::Timestamp::now() }
}

/// The problem without what differs from request to request.
fn alike(reply: &Reply, name: &str) -> Value {
    let mut problem = reply.json();
    problem["request_id"] = Value::Null;
    serde_json::from_str(&problem.to_string().replace(name, "NAME")).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_yours_and_what_is_not_there_look_alike() {
    let site = Site::open().await;
    let group = site.group("vision").await;
    site.user("owner", Role::User, group).await;
    site.workspace("secret", "owner").await;
    let (token, _) = site.token("owner", Scope::All).await;
    let instance = site.instance("owner", "train", &running()).await;
    let stranger = site.user("stranger", Role::Leader, GroupId::DEFAULT).await;
    let (instance, token) = (instance.to_string(), token.to_string());
    let nothing = "0190f2c3a1b27cc09d3e5f60718293a4";
    let pairs = [
        ("users", "owner", "nobody"),
        ("groups", "vision", "nothing"),
        ("workspaces", "secret", "nothing"),
        ("instances", &instance, &format!("ins_{nothing}")),
    ];
    for (kind, theirs, none) in pairs {
        for method in [Method::GET, Method::DELETE] {
            let ask = async |name: &str| {
                site.ask(&method, &format!("/api/v1/{kind}/{name}"), Some(&stranger), None).await
            };
            let (there, not_there) = (ask(theirs).await, ask(none).await);
            assert_eq!((there.status, not_there.status), (404, 404), "{method} {kind}");
            assert_eq!(alike(&there, theirs), alike(&not_there, none), "{method} {kind}");
        }
    }
    let remove = async |id: &str| {
        site.ask(&Method::DELETE, &format!("/api/v1/tokens/{id}"), Some(&stranger), None).await
    };
    let (there, none) = (remove(&token).await, format!("tok_{nothing}"));
    assert_eq!(alike(&there, &token), alike(&remove(&none).await, &none));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_wrong_disabled_and_removed_get_the_same_answer() {
    let site = Site::open().await;
    let admin = site.user("root", Role::Admin, GroupId::DEFAULT).await;
    for name in ["alice", "bob", "carol"] {
        site.user(name, Role::User, GroupId::DEFAULT).await;
    }
    let off = json!({"disabled": true});
    assert_eq!(site.ask(&Method::PATCH, "/api/v1/users/bob", Some(&admin), Some(&off)).await.status, 200);
    assert_eq!(site.ask(&Method::DELETE, "/api/v1/users/carol", Some(&admin), None).await.status, 202);
    let sign_in = async |user: &str, password: &str| {
        let body = json!({"user": user, "password": password, "client": "cli"});
        site.ask(&Method::POST, "/api/v1/session", None, Some(&body)).await
    };
    let wrong = sign_in("alice", "not the one").await;
    let endless = "x".repeat(2000);
    let tries = [
        ("nobody", PASSWORD),
        ("bob", PASSWORD),
        ("carol", PASSWORD),
        ("Not A Name", PASSWORD),
        ("alice", endless.as_str()),
    ];
    for (user, password) in tries {
        let reply = sign_in(user, password).await;
        assert_eq!(reply.status, 401, "{user}");
        assert_eq!(alike(&reply, "\0"), alike(&wrong, "\0"), "{user}");
    }
    assert_eq!(sign_in("alice", PASSWORD).await.status, 200, "only wrong ones count");
    let log = site.ask(&Method::GET, "/api/v1/audit?act=sign_in", Some(&admin), None).await;
    let items = log.json()["items"].clone();
    let names: Vec<_> =
        items.as_array().unwrap().iter().map(|line| line["actor"].as_str().unwrap()).collect();
    assert_eq!(names, ["alice", "alice", "", "carol", "bob", "nobody", "alice"]);
    assert!(!log.body.contains("Not A Name"), "it may be a password in the wrong place");
    assert_eq!(items[0]["source"], "127.0.0.1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_wrong_passwords_a_minute_and_sessions_go_on() {
    let site = Site::open().await;
    let session = site.user("alice", Role::User, GroupId::DEFAULT).await;
    let guess = json!({"user": "alice", "password": "wrong", "client": "cli"});
    for _ in 0..10 {
        assert_eq!(site.ask(&Method::POST, "/api/v1/session", None, Some(&guess)).await.status, 401);
    }
    for _ in 0..3 {
        let refused = site.ask(&Method::POST, "/api/v1/session", None, Some(&guess)).await;
        assert_eq!((refused.status, refused.json()["code"].as_str()), (429, Some("too_many_attempts")));
    }
    assert_eq!(site.ask(&Method::GET, "/api/v1/me", Some(&session), None).await.status, 200);
    let admin = site.user("root", Role::Admin, GroupId::DEFAULT).await;
    let log = site.ask(&Method::GET, "/api/v1/audit?act=sign_in", Some(&admin), None).await.json();
    let lines = log["items"].as_array().unwrap();
    let unseen = lines.iter().filter(|line| line["details"]["why"] == "too many wrong passwords");
    assert_eq!(
        (lines.len(), unseen.count()),
        (11, 1),
        "one line a minute for what nobody looked at: {lines:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_open_closes_when_its_key_ends() {
    let site = Site::open().await;
    let admin = site.user("root", Role::Admin, GroupId::DEFAULT).await;
    let session = site.user("alice", Role::User, GroupId::DEFAULT).await;
    let instance = site.instance("alice", "train", &running()).await;
    let (id, token) = site.token("alice", Scope::Read).await;
    let (_, bystander) = site.token("alice", Scope::All).await;

    let (status, mut by_token) = site.follow("/api/v1/events", Some(&token)).await;
    assert_eq!(status, 200);
    let (status, mut by_bystander) = site.follow("/api/v1/events", Some(&bystander)).await;
    assert_eq!(status, 200);
    let (status, mut by_session) = site.follow("/api/v1/events", Some(&session)).await;
    assert_eq!(status, 200);
    // Nothing answers in the instance, so what keeps this one open is the first message that it waits for.
    let (status, mut exec) = site.follow(&format!("/api/v1/instances/{instance}/exec"), Some(&session)).await;
    assert_eq!(status, 101);

    let path = format!("/api/v1/tokens/{id}");
    assert_eq!(site.ask(&Method::DELETE, &path, Some(&session), None).await.status, 204);
    let begun = Instant::now();
    closes(&mut by_token).await;
    assert_eq!(site.ask(&Method::GET, "/api/v1/me", Some(&token), None).await.status, 401);
    let off = json!({"disabled": true});
    let disabled = site.ask(&Method::PATCH, "/api/v1/users/alice", Some(&admin), Some(&off)).await;
    assert_eq!((disabled.status, disabled.json()["state"]["state"].as_str()), (200, Some("disabled")));
    closes(&mut by_session).await;
    closes(&mut by_bystander).await;
    closes(&mut exec).await;
    assert!(begun.elapsed() < REVOKED_LIMIT, "it took {:?}", begun.elapsed());
    for key in [&session, &bystander] {
        assert_eq!(site.ask(&Method::GET, "/api/v1/me", Some(key), None).await.status, 401);
    }
    // Being enabled again brings nothing back.
    let on = json!({"disabled": false});
    assert_eq!(site.ask(&Method::PATCH, "/api/v1/users/alice", Some(&admin), Some(&on)).await.status, 200);
    assert_eq!(site.ask(&Method::GET, "/api/v1/me", Some(&session), None).await.status, 401);
}

async fn closes(stream: &mut tokio::net::TcpStream) {
    let over = async {
        let mut rest = Vec::new();
        // Closed, reset, or the last piece of a body: it is over.
        while !rest.ends_with(b"0\r\n\r\n") {
            match stream.read_buf(&mut rest).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    };
    tokio::time::timeout(LIMIT, over).await.expect("it should have been closed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_opens_what_its_scope_says() {
    let site = Site::open().await;
    site.user("alice", Role::Admin, GroupId::DEFAULT).await;
    let instance = site.instance("alice", "train", &running()).await;
    let (_, read) = site.token("alice", Scope::Read).await;
    let (_, all) = site.token("alice", Scope::All).await;
    let at = |rest: &str| format!("/api/v1/instances/{instance}{rest}");
    for path in [at(""), "/api/v1/users".to_owned(), "/api/v1/audit".to_owned()] {
        assert_eq!(site.ask(&Method::GET, &path, Some(&read), None).await.status, 200, "{path}");
    }
    assert_eq!(site.follow(&at("/logs/follow"), Some(&read)).await.0, 101);
    for path in [at("/exec"), at("/terminals/main"), at("/ports/8888")] {
        assert_eq!(site.follow(&path, Some(&read)).await.0, 403, "{path}");
        assert_eq!(site.follow(&path, Some(&all)).await.0, 101, "{path}");
    }
    let seen = site.ask(&Method::GET, &at(""), Some(&read), None).await.json();
    assert_eq!(seen["actions"], json!(["logs"]));
    let body = json!({"name": "more", "scope": "all"});
    for (method, path) in
        [(Method::POST, at("/stop")), (Method::DELETE, at("")), (Method::POST, "/api/v1/groups".into())]
    {
        let reply = site.ask(&method, &path, Some(&read), Some(&body)).await;
        assert_eq!(
            (reply.status, reply.json()["code"].as_str()),
            (403, Some("forbidden")),
            "{method} {path}"
        );
    }
    for key in [&read, &all] {
        assert_eq!(site.ask(&Method::POST, "/api/v1/tokens", Some(key), Some(&body)).await.status, 403);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_that_somebody_else_has_seen_opens_nothing_but_its_change() {
    let site = Site::open().await;
    let admin = site.user("root", Role::Admin, GroupId::DEFAULT).await;
    let added = site.ask(&Method::POST, "/api/v1/users", Some(&admin), Some(&json!({"name": "alice"}))).await;
    let old = added.json()["password"].as_str().unwrap().to_owned();
    let sign_in = json!({"user": "alice", "password": old, "client": "cli"});
    let token = async || {
        let signed_in = site.ask(&Method::POST, "/api/v1/session", None, Some(&sign_in)).await.json();
        Token::from_client(signed_in["token"].as_str().unwrap()).unwrap()
    };
    let alice = token().await;
    for path in ["/api/v1/instances", "/api/v1/events", "/api/v1/tokens"] {
        let refused = site.ask(&Method::GET, path, Some(&alice), None).await;
        assert_eq!(
            (refused.status, refused.json()["code"].as_str()),
            (403, Some("password_change_required"))
        );
    }
    assert_eq!(site.follow("/api/v1/instances/x/terminals/main", Some(&alice)).await.0, 403);
    assert_eq!(site.ask(&Method::GET, "/api/v1/me", Some(&alice), None).await.status, 200);
    let leaves = token().await;
    assert_eq!(site.ask(&Method::DELETE, "/api/v1/session", Some(&leaves), None).await.status, 204);
    let change = json!({"old": old, "new": "a horse of my own"});
    assert_eq!(site.ask(&Method::PUT, "/api/v1/me/password", Some(&alice), Some(&change)).await.status, 204);
    assert_eq!(site.ask(&Method::GET, "/api/v1/instances", Some(&alice), None).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_language_is_kept_with_the_account() {
    let site = Site::open().await;
    let alice = site.user("alice", Role::User, GroupId::DEFAULT).await;
    let choose = async |body: Value| {
        site.ask(&Method::PUT, "/api/v1/me/language", Some(&alice), Some(&body)).await.status
    };
    let language = async || {
        site.ask(&Method::GET, "/api/v1/me", Some(&alice), None).await.json().get("language").cloned()
    };
    assert_eq!(language().await, None);
    assert_eq!((choose(json!({"language": "zh-CN"})).await, language().await), (204, Some(json!("zh-CN"))));
    assert_eq!((choose(json!({"language": "fr"})).await, language().await), (400, Some(json!("zh-CN"))));
    assert_eq!((choose(json!({"language": null})).await, language().await), (204, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_is_removed_restored_and_at_last_given_up() {
    let site = Site::open().await;
    let admin = site.user("root", Role::Admin, GroupId::DEFAULT).await;
    let added = site.ask(&Method::POST, "/api/v1/users", Some(&admin), Some(&json!({"name": "alice"}))).await;
    assert_eq!(added.status, 201);
    let password = added.json()["password"].as_str().unwrap().to_owned();
    let sign_in = json!({"user": "alice", "password": password, "client": "cli"});
    let signed_in = site.ask(&Method::POST, "/api/v1/session", None, Some(&sign_in)).await;
    assert_eq!(signed_in.json()["me"]["must_change_password"], true);
    let instance = site.instance("alice", "train", &running()).await;
    let at = format!("/api/v1/instances/{instance}");
    let call = async |method: Method, path: &str| site.ask(&method, path, Some(&admin), None).await;

    let removed = call(Method::DELETE, "/api/v1/users/alice").await;
    assert_eq!((removed.status, removed.json()["state"]["state"].as_str()), (202, Some("removed")));
    let seen = call(Method::GET, &at).await.json();
    assert_eq!(
        (seen["goal"].as_str(), seen["status"]["state"].as_str()),
        (Some("stopped"), Some("stopping"))
    );
    assert_eq!(seen["env"], json!({}), "the variables of others are not shown");
    assert_eq!(site.ask(&Method::POST, "/api/v1/session", None, Some(&sign_in)).await.status, 401);
    let again = site.ask(&Method::POST, "/api/v1/users", Some(&admin), Some(&json!({"name": "alice"}))).await;
    assert_eq!((again.status, again.json()["code"].as_str()), (409, Some("user_removed")));

    site.app.purge_removed(jiff::Timestamp::now()).await.unwrap();
    assert_eq!(call(Method::POST, "/api/v1/users/alice/restore").await.json()["state"]["state"], "active");
    assert_eq!(site.ask(&Method::POST, "/api/v1/session", None, Some(&sign_in)).await.status, 200);

    call(Method::DELETE, "/api/v1/users/alice").await;
    let later = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(31 * 24);
    site.app.purge_removed(later).await.unwrap();
    assert_eq!(call(Method::GET, "/api/v1/users/alice").await.status, 404);
    assert_eq!(call(Method::GET, &at).await.json()["goal"], "deleted");
    let again = site.ask(&Method::POST, "/api/v1/users", Some(&admin), Some(&json!({"name": "alice"}))).await;
    assert_eq!(again.status, 201, "the name is free again");

    let last = call(Method::DELETE, "/api/v1/users/root").await;
    assert_eq!((last.status, last.json()["code"].as_str()), (409, Some("last_admin")));
    let log = call(Method::GET, "/api/v1/audit?since=2020-01-01T00:00:00Z&limit=1000").await.json();
    let acts: Vec<_> =
        log["items"].as_array().unwrap().iter().rev().map(|line| line["act"].as_str().unwrap()).collect();
    let acts: Vec<_> = acts.into_iter().filter(|act| *act != "test").collect();
    let expected = [
        "user.add",
        "sign_in",
        "user.remove",
        "sign_in",
        "user.restore",
        "sign_in",
        "user.remove",
        "user.purge",
        "user.add",
    ];
    assert_eq!(acts, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_user_go_their_secrets_and_the_images_that_nobody_needs() {
    let site = Site::open_with("[gateway]\nregistry = \"127.0.0.1:1\"").await;
    let admin = site.user("root", Role::Admin, GroupId::DEFAULT).await;
    let mut images = Vec::new();
    for name in ["alice", "bob", "carol"] {
        site.user(name, Role::User, GroupId::DEFAULT).await;
        let instance = site.instance(name, "train", &running()).await;
        images.push(site.image(name, instance.as_str()).await);
        site.secret(name).await;
    }
    let call = async |method: Method, path: &str, body: Option<Value>| {
        site.ask(&method, path, Some(&admin), body.as_ref()).await
    };
    let (listed, line) =
        (ImageChange { platform: Some(true), ..ImageChange::default() }, Line::by_system("test", ""));
    site.app.store.change_image(&images[1], &listed, &line).await.unwrap();
    let others =
        json!({"name": "other", "cpus": 1, "memory_bytes": 1 << 30, "image": "127.0.0.1:1/carol/train:1"});
    let made = call(Method::POST, "/api/v1/instances", Some(others)).await;
    assert_eq!(made.status, 201, "{}", made.json());

    let mut gone = Vec::new();
    for name in ["alice", "bob", "carol"] {
        gone.push(site.app.store.user_by_name(&name.parse().unwrap()).await.unwrap().unwrap().id);
        assert_eq!(call(Method::DELETE, &format!("/api/v1/users/{name}"), None).await.status, 202);
    }
    let later = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(31 * 24);
    let states = async || {
        site.app.purge_removed(later).await.unwrap();
        let mut states = Vec::new();
        for image in &images {
            states.push(site.app.store.image(image).await.unwrap().unwrap().state.word());
        }
        states
    };
    assert_eq!(
        states().await,
        ["deleting", "ready", "ready"],
        "one nobody needs, one of the platform, one in use"
    );
    for user in gone {
        assert!(site.app.store.secrets_of(Some(user)).await.unwrap().is_empty());
    }
    assert_eq!(site.app.store.secrets_of(None).await.unwrap().len(), 1, "the site's stay");
    // Once the last instance of it is gone, it goes as well.
    assert_eq!(call(Method::DELETE, "/api/v1/instances/other", None).await.status, 202);
    let id: InstanceId = made.json()["id"].as_str().unwrap().parse().unwrap();
    let row = site.app.store.instance(&id).await.unwrap().unwrap();
    assert!(site.app.store.forget_instance(&id, row.generation).await.unwrap());
    assert_eq!(states().await, ["deleting", "ready", "deleting"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_does_not_filter_system_calls_is_told_to_admins() {
    let site = Site::open().await;
    let admin = site.user("root", Role::Admin, GroupId::DEFAULT).await;
    let alice = site.user("alice", Role::User, GroupId::DEFAULT).await;
    let report = |syscalls: &str| {
        let report = json!({
            "name": "node", "cpus": 2.0, "memory_bytes": 1, "gpus": 0, "engine": {"state": "ready"}, "syscalls": syscalls,
        });
        site.app.clusters.first().note_node(serde_json::from_value(report).unwrap());
    };
    let seen = async |token: &Token| {
        let health = site.ask(&Method::GET, "/healthz", None, None).await.json();
        let parts = health["parts"].as_array().unwrap();
        let part = parts.iter().find(|part| part["name"] == "syscalls").unwrap()["ok"].clone();
        let nodes = site.ask(&Method::GET, "/api/v1/nodes", Some(token), None).await.json();
        (part, nodes["items"][0]["warnings"].clone())
    };
    report("unfiltered");
    assert_eq!(seen(&admin).await, (json!(false), json!(["syscalls_not_filtered"])));
    assert_eq!(seen(&alice).await, (json!(false), Value::Null));
    for fine in ["filtered", "unknown"] {
        report(fine);
        assert_eq!(seen(&admin).await, (json!(true), Value::Null), "{fine}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_are_in_the_audit_log() {
    let site = Site::open().await;
    let admin = site.user("root", Role::Admin, GroupId::DEFAULT).await;
    let user = site.user("mallory", Role::User, GroupId::DEFAULT).await;
    for path in ["/api/v1/users", "/api/v1/users/root", "/api/v1/audit"] {
        site.ask(&Method::GET, path, Some(&user), None).await;
    }
    let log =
        site.ask(&Method::GET, "/api/v1/audit?actor=mallory&act=access", Some(&admin), None).await.json();
    let lines: Vec<_> = log["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| format!("{} {} {}", line["object"], line["result"], line["details"]["status"]))
        .collect();
    let expected = [
        r#""GET /api/v1/audit" "refused" "403""#,
        r#""GET /api/v1/users/root" "refused" "404""#,
        r#""GET /api/v1/users" "refused" "403""#,
    ];
    assert_eq!(lines, expected);
    assert!(log["items"][0]["request_id"].as_str().unwrap().starts_with("req_"));
    let own = site.ask(&Method::GET, "/api/v1/me/audit?limit=2", Some(&user), None).await.json();
    assert_eq!(own["items"].as_array().unwrap().len(), 2);
    assert!(own["next"].is_i64());
    let bad = site.ask(&Method::GET, "/api/v1/me/audit?limit=0", Some(&user), None).await;
    assert_eq!((bad.status, bad.json()["pointer"].as_str()), (422, Some("/limit")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_see_what_others_did_to_what_is_theirs() {
    let site = Site::open().await;
    let admin = site.user("root", Role::Admin, GroupId::DEFAULT).await;
    let alice = site.user("alice", Role::User, GroupId::DEFAULT).await;
    let mallory = site.user("mallory", Role::User, GroupId::DEFAULT).await;
    let instance = site.instance("alice", "train", &running()).await;
    let stop = format!("/api/v1/instances/{instance}/stop");
    assert_eq!(site.ask(&Method::POST, &stop, Some(&admin), None).await.status, 202);
    let path = format!("/api/v1/me/audit?object={instance}");
    let seen = site.ask(&Method::GET, &path, Some(&alice), None).await.json();
    let line = &seen["items"][0];
    assert_eq!((line["actor"].as_str(), line["act"].as_str()), (Some("root"), Some("instance.stop")));
    assert_eq!(
        line["source"].as_str().unwrap_or_default(),
        "",
        "where an admin sits is not the owner's affair"
    );
    let hidden = site.ask(&Method::GET, &path, Some(&mallory), None).await.json();
    assert_eq!(hidden["items"].as_array().map(Vec::len), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_of_secrets_are_their_owners_affair() {
    let site = Site::open().await;
    let admin = site.user("root", Role::Admin, GroupId::DEFAULT).await;
    let leader = site.user("lead", Role::Leader, GroupId::DEFAULT).await;
    let alice = site.user("alice", Role::User, GroupId::DEFAULT).await;
    for name in ["HF_TOKEN", "OTHER_KEY"] {
        let path = format!("/api/v1/me/secrets/{name}");
        let set = site.ask(&Method::PUT, &path, Some(&alice), Some(&json!({"value": "hush"}))).await;
        assert_eq!(set.status, 200, "{}", set.body);
    }
    let body = json!({
        "name": "train", "cpus": 1, "memory_bytes": 1u64 << 30, "image": "python", "secrets": [{"name": "HF_TOKEN"}],
    });
    let made = site.ask(&Method::POST, "/api/v1/instances", Some(&alice), Some(&body)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let gone = site.ask(&Method::DELETE, "/api/v1/me/secrets/HF_TOKEN", Some(&alice), None).await;
    assert_eq!(gone.status, 204);
    let path = format!("/api/v1/instances/{}", made.json()["id"].as_str().unwrap());
    let own = site.ask(&Method::GET, &path, Some(&alice), None).await.json();
    assert_eq!(own["secrets"], json!([{"name": "HF_TOKEN", "env": "HF_TOKEN"}]));
    for (who, token) in [("an admin", &admin), ("a leader", &leader)] {
        let seen = site.ask(&Method::GET, &path, Some(token), None).await;
        assert!(seen.status == 200 && !seen.body.contains("HF_TOKEN"), "{who}: {}", seen.body);
        for act in ["start", "restart"] {
            let refused = site.ask(&Method::POST, &format!("{path}/{act}"), Some(token), None).await;
            assert!((400..500).contains(&refused.status), "{who} {act}: {}", refused.status);
            assert!(!refused.body.contains("OTHER_KEY"), "{who} {act}: {}", refused.body);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_see_how_much_of_their_quota_is_left() {
    let site = Site::open().await;
    let admin = site.user("root", Role::Admin, GroupId::DEFAULT).await;
    let alice = site.user("alice", Role::User, GroupId::DEFAULT).await;
    let until = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let quota = json!({
        "limits": {"gpus": 2, "cpus": 8.0},
        "raise": {"until": until.to_string(), "limits": {"gpus": 4}},
    });
    let set = site.ask(&Method::PUT, "/api/v1/users/alice/quota", Some(&admin), Some(&quota)).await;
    assert_eq!(set.status, 200);
    let body = json!({"name": "train", "cpus": 1.5, "memory_bytes": 1u64 << 30, "image": "python"});
    assert_eq!(site.ask(&Method::POST, "/api/v1/instances", Some(&alice), Some(&body)).await.status, 201);
    let own = site.ask(&Method::GET, "/api/v1/me/quota", Some(&alice), None).await.json();
    assert_eq!(own["user"]["limits"], json!({"gpus": 4, "cpus": 8.0}));
    assert!(own["user"]["raised_until"].is_string());
    assert_eq!(own["user"]["waiting"]["cpus"], json!(1.5));
    assert_eq!(own["group"]["waiting"]["instances"], json!(1));
    assert_eq!(own["user"]["used"]["instances"], json!(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_even_be_read_gets_a_sentence_too() {
    let site = Site::open().await;
    let user = site.user("alice", Role::User, GroupId::DEFAULT).await;
    site.instance("alice", "train", &running()).await;
    // An address that is not UTF-8, and a WebSocket's address asked for without one.
    for path in ["/api/v1/instances/%ff", "/api/v1/instances/train/exec"] {
        let reply = site.ask(&Method::GET, path, Some(&user), None).await;
        assert_eq!((reply.status, reply.json()["code"].as_str()), (400, Some("bad_body")), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_has_so_many_connections_open_and_no_more() {
    let site = Site::open().await;
    let alice = site.user("alice", Role::User, GroupId::DEFAULT).await;
    let bob = site.user("bob-2", Role::User, GroupId::DEFAULT).await;
    let open = async |who: &Token| site.follow("/api/v1/events", Some(who)).await;
    let mut streams = Vec::new();
    let refused = loop {
        match open(&alice).await {
            (200, stream) => streams.push(stream),
            (status, _) => break status,
        }
    };
    assert_eq!((refused, streams.len()), (429, 32));
    assert_eq!(open(&bob).await.0, 200, "others have their own");
    // A place is free again once the server has noticed.
    drop(streams);
    let begun = Instant::now();
    while open(&alice).await.0 != 200 {
        assert!(begun.elapsed() < LIMIT, "the places are not given back");
    }
}
