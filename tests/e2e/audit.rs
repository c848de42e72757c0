//! The audit log and `kill -9`: whoever has got an answer finds it in the log.

use gateway_api::{
    audit::{AuditQuery, AuditResult},
    client::{Client, ClientError},
    people::AddUser,
};
use tests::{OrFail as _, World, wanted};

/// An act, what it is done to, and how it ends.
const ACTS: [(&str, &str, AuditResult); 8] = [
    ("sign_in", "", AuditResult::Refused),
    ("user.add", "mia", AuditResult::Done),
    ("instance.create", "a1", AuditResult::Done),
    ("access", "/stop", AuditResult::Refused),
    ("instance.stop", "a1", AuditResult::Done),
    ("instance.delete", "a1", AuditResult::Done),
    ("user.remove", "mia", AuditResult::Done),
    ("sign_out", "", AuditResult::Done),
];

/// `stranger` is somebody whose nothing of it is.
async fn act(world: &World, stranger: &Client, act: &str, object: &str) -> Result<(), ClientError> {
    let client = world.client();
    match act {
        "access" => {
            let id = client.instance("a1").await?.id;
            stranger.stop_instance(id.as_str()).await.map(drop)
        }
        "sign_in" => client.sign_in("admin", "not the password").await.map(drop),
        "user.add" => {
            let user = AddUser { name: object.to_owned(), role: None, group: None };
            client.add_user(&user).await.map(drop)
        }
        "instance.create" => client.create_instance(&wanted(object)).await.map(drop),
        "instance.stop" => client.stop_instance(object).await.map(drop),
        "instance.delete" => client.delete_instance(object).await.map(drop),
        "user.remove" => client.remove_user(object).await.map(drop),
        "sign_out" => {
            // Out of a session of its own: the other one is still needed.
            let signed_in = client.sign_in("admin", world.password()).await?;
            Client::new(world.console(), signed_in.token)?.sign_out().await
        }
        other => panic!("what is `{other}`?"),
    }
}

#[tokio::test]
async fn an_answered_act_is_in_the_log_whatever_happens_next() {
    let mut world = World::start().await;
    let stranger = world.person("bob").await;
    for (name, object, result) in ACTS {
        let reader = world.client();
        let before = reader.audit(&AuditQuery::default()).await.or_fail("read the log").items[0].id;
        let answer = act(&world, &stranger, name, object).await;
        world.kill_gateway();
        let agrees = match (&answer, result) {
            (Ok(()), AuditResult::Done) | (Err(ClientError::Problem(_)), AuditResult::Refused) => true,
            (Ok(()) | Err(_), _) => false,
        };
        assert!(agrees, "{name}: {answer:?}");
        world.start_gateway().await;
        let page = reader.audit(&AuditQuery::default()).await.or_fail("read the log");
        let actor = if name == "access" { "bob" } else { "admin" };
        let new: Vec<_> = page.items.iter().filter(|line| line.id > before && line.actor == actor).collect();
        let found = new.iter().filter(|line| line.act == name && line.result == result);
        assert_eq!(found.count(), 1, "{name}: {new:?}");
        assert!(object.is_empty() || new.iter().any(|line| line.object.contains(object)), "{name}: {new:?}");
    }
}
