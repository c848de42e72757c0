//! The store as a whole: upgrades, and what must hold across tables.

use envd_api::control::InstanceSpec;
use gateway_api::{
    Goal, GroupName, InstanceId, InstanceName, Status, UserName, audit::AuditQuery, instance::WaitReason,
    session::Role,
};
use sqlx::{Connection as _, SqliteConnection};

use super::{
    GroupId, Held, InstanceRow, Line, NewInstance, NewUser, QuotaOwner, Settled, Store, StoreError,
    UserChange, Whose, migrations::MIGRATIONS,
};

/// A store as version 0.1.0 left it.
const FIRST_RELEASE: &str = r#"
create table users (
    id integer primary key, name text not null unique collate nocase, password_hash text not null,
    role text not null check (role in ('admin', 'user')),
    must_change_password integer not null check (must_change_password in (0, 1)), created_at integer not null
) strict;
create table sessions (
    token_hash blob primary key, user_id integer not null references users (id) on delete cascade,
    created_at integer not null, expires_at integer not null
) strict;
create index sessions_by_user on sessions (user_id);
create table instances (
    id text primary key, user_id integer not null references users (id), name text not null, slug text not null,
    spec text not null, goal text not null check (goal in ('running', 'stopped', 'deleted')),
    generation integer not null, status text not null, created_at integer not null, unique (user_id, slug)
) strict;
insert into users values (1, 'admin', 'hash-1', 'admin', 1, 1000), (7, 'alice', 'hash-7', 'user', 0, 2000);
insert into sessions values (x'01', 1, 1000, 9000000000000), (x'07', 7, 2000, 9000000000000);
insert into instances values ('ins_0190f2c3a1b27cc09d3e5f60718293a4', 7, 'Train_1', 'train-1',
    '{"hostname":"train-1","image":"python:3.12","cpus":1.0,"memory_bytes":1073741824,"shm_bytes":67108864,"gpus":0,
      "env":{"A":"1"},"command":[],"mounts":[{"storage":"home","key":"alice"}]}',
    'running', 3, '{"state":"starting"}', 3000);
"#;

#[tokio::test]
async fn a_store_of_the_first_release_is_found_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let mut connection =
        SqliteConnection::connect(&format!("sqlite://{}?mode=rwc", file.display())).await.unwrap();
    sqlx::raw_sql(FIRST_RELEASE).execute(&mut connection).await.unwrap();
    let all = &*MIGRATIONS;
    let first = all.iter().next().unwrap();
    sqlx::raw_sql(
        "create table _sqlx_migrations (version bigint primary key, description text not null,
            installed_on timestamp not null default current_timestamp, success boolean not null,
            checksum blob not null, execution_time bigint not null)",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    sqlx::query("insert into _sqlx_migrations values (?, ?, current_timestamp, true, ?, 0)")
        .bind(first.version)
        .bind(first.description.as_ref())
        .bind(first.checksum.as_ref())
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();

    let store = Store::open(&file).await.unwrap();
    let admin = store.session_user(&[1]).await.unwrap().unwrap();
    assert_eq!((admin.name.as_str(), admin.role, admin.must_change_password), ("admin", Role::Admin, true));
    let (alice, hash) = store.user_to_verify(&name("alice")).await.unwrap().unwrap();
    assert_eq!((hash.as_str(), alice.home.as_str(), alice.group.as_str()), ("hash-7", "alice", "default"));
    assert_eq!(store.session_user(&[7]).await.unwrap().unwrap().id, alice.id);
    let instances = store.shown_instances(Whose::User(alice.id), None, None).await.unwrap();
    assert_eq!(instances.len(), 1);
    assert_eq!((instances[0].name.as_str(), instances[0].generation), ("Train_1", 3));
    assert_eq!((instances[0].spec.user.as_str(), instances[0].spec.env["A"].as_str()), ("alice", "1"));
    let broken = sqlx::query("pragma foreign_key_check").fetch_all(&store.pool).await.unwrap();
    assert!(broken.is_empty(), "references that lead nowhere");
    let orphan = sqlx::query("insert into sessions values (x'09', 99, 0, 0)").execute(&store.writer).await;
    assert!(orphan.is_err(), "sessions still refer to users");
    assert!(matches!(add(&store, "alice", Role::User).await, Err(StoreError::Taken)));
}

#[tokio::test]
async fn a_page_of_instances_is_found_without_looking_at_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store.db")).await.unwrap();
    let mut ids = Vec::new();
    for user in ["root", "alice", "bob"] {
        add(&store, user, Role::User).await.unwrap();
        ids.push(store.user_by_name(&name(user)).await.unwrap().unwrap());
    }
    sqlx::query(
        "with recursive n (i) as (select 1 union all select i + 1 from n where i < 10000)
         insert into instances (id, user_id, name, slug, spec, goal, generation, status, created_at)
         select printf('ins_%032x', i), case i % 100 when 0 then ?2 else ?1 end, 'n' || i, 'n' || i,
                '{\"user\":\"u\",\"hostname\":\"h\",\"image\":\"i\",\"cpus\":1.0,\"memory_bytes\":1,\"shm_bytes\":1,\"gpus\":0,\"command\":[],\"env\":{}}',
                'stopped', 1, '{\"state\":\"stopped\"}', 0 from n",
    )
    .bind(ids[0].id.0)
    .bind(ids[1].id.0)
    .execute(&store.writer)
    .await
    .unwrap();
    let group = ids[0].group_id;
    for (whose, count) in [
        (Whose::User(ids[1].id), 100),
        (Whose::User(ids[2].id), 0),
        (Whose::Group(group), 10_000),
        (Whose::Everyones, 10_000),
    ] {
        let all = store.shown_instances(whose, None, None).await.unwrap();
        assert_eq!(all.len(), count, "{whose:?}");
        let mut paged: Vec<InstanceRow> = Vec::new();
        loop {
            let after = paged.last().map(|row| row.id.clone());
            let page = store.shown_instances(whose, after.as_ref(), Some(70)).await.unwrap();
            let is_last = page.len() < 70;
            paged.extend(page);
            if is_last {
                break;
            }
        }
        let id = |row: &InstanceRow| row.id.to_string();
        assert!(paged.iter().map(id).eq(all.iter().map(id)), "{whose:?}");
        assert!(paged.is_sorted_by(|one, next| one.id > next.id), "the newest first");
    }
    for (index, with) in [("instances_shown_by_user", "user_id = 1 and "), ("instances_shown", "")] {
        let question = format!(
            "explain query plan select * from instances where {with}job_id is null and id < 'x' order by id desc"
        );
        let plan: Vec<String> = sqlx::query(sqlx::AssertSqlSafe(question))
            .fetch_all(&store.pool)
            .await
            .unwrap()
            .iter()
            .map(|row| sqlx::Row::get(row, "detail"))
            .collect();
        assert!(plan.len() == 1 && plan[0].contains(&format!("USING INDEX {index} (")), "{plan:?}");
    }
}

#[tokio::test]
async fn somebody_can_always_administer() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store.db")).await.unwrap();
    add(&store, "root", Role::Admin).await.unwrap();
    let root = store.user_by_name(&name("root")).await.unwrap().unwrap();
    let demote = UserChange { role: Some(Role::Leader), ..UserChange::default() };
    let disable = UserChange { disabled: Some(true), ..UserChange::default() };
    for change in [demote, disable] {
        assert!(matches!(store.change_user(root.id, change, &line()).await, Err(StoreError::LastAdmin)));
    }
    let removed = store.remove_user(root.id, &Status::STOPPING, &line()).await;
    assert!(matches!(removed, Err(StoreError::LastAdmin)));
    let lines = store.audit_page(&AuditQuery::default(), 10).await.unwrap();
    assert_eq!(lines.len(), 1, "what was refused is not written as done");
    add(&store, "second", Role::Admin).await.unwrap();
    store.change_user(root.id, disable, &line()).await.unwrap();
}

#[tokio::test]
async fn a_removed_user_can_come_back_and_a_purged_one_leaves_no_files_to_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store.db")).await.unwrap();
    add(&store, "root", Role::Admin).await.unwrap();
    add(&store, "alice", Role::User).await.unwrap();
    let alice = store.user_by_name(&name("alice")).await.unwrap().unwrap();
    store.add_session(&[1], alice.id, std::time::Duration::from_hours(1), &line()).await.unwrap();
    assert!(store.still_opens(&[1]).await.unwrap());
    store.remove_user(alice.id, &Status::STOPPING, &line()).await.unwrap();
    assert!(!store.still_opens(&[1]).await.unwrap());
    assert!(matches!(add(&store, "alice", Role::User).await, Err(StoreError::Taken)));
    assert!(store.restore_user(alice.id, &line()).await.unwrap());
    assert!(!store.restore_user(alice.id, &line()).await.unwrap(), "not removed any more");
    store.remove_user(alice.id, &Status::STOPPING, &line()).await.unwrap();
    assert!(store.purge_user(alice.id, &Status::DELETING, &line()).await.unwrap());
    assert!(!store.restore_user(alice.id, &line()).await.unwrap());
    add(&store, "alice", Role::User).await.unwrap();
    let next = store.user_by_name(&name("alice")).await.unwrap().unwrap();
    assert_ne!(next.id, alice.id);
    assert_eq!(next.home, "alice.2");
}

#[tokio::test]
async fn a_group_with_members_stays() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store.db")).await.unwrap();
    add(&store, "root", Role::Admin).await.unwrap();
    let vision: GroupName = "vision".parse().unwrap();
    let group = store.add_group(&vision, &line()).await.unwrap();
    assert!(matches!(store.add_group(&vision, &line()).await, Err(StoreError::Taken)));
    let root = store.user_by_name(&name("root")).await.unwrap().unwrap();
    let join = |group| UserChange { group: Some(group), ..UserChange::default() };
    store.change_user(root.id, join(group), &line()).await.unwrap();
    assert_eq!(store.groups(Some(group)).await.unwrap()[0].members, [name("root")]);
    assert!(!store.remove_group(group, &line()).await.unwrap());
    store.change_user(root.id, join(GroupId::DEFAULT), &line()).await.unwrap();
    let quota =
        queue::Allowance { limits: queue::Limits { gpus: Some(4), ..Default::default() }, raise: None };
    store.set_quota(QuotaOwner::Group(group), &quota, &line()).await.unwrap();
    assert!(store.remove_group(group, &line()).await.unwrap());
    let next = store.add_group(&"speech".parse().unwrap(), &line()).await.unwrap();
    assert_eq!(
        store.quota(QuotaOwner::Group(next)).await.unwrap(),
        None,
        "what another group had is not its own"
    );
}

/// A command that ends at the very moment at which its user asks for a restart has given its place back.
#[tokio::test]
async fn what_is_to_run_holds_a_place_or_waits_for_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store.db")).await.unwrap();
    add(&store, "root", Role::Admin).await.unwrap();
    let root = store.user_by_name(&name("root")).await.unwrap().unwrap();
    let spec: InstanceSpec = serde_json::from_value(serde_json::json!({
        "user": "root", "group": "default", "hostname": "train", "image": "debian", "cpus": 1.0,
        "memory_bytes": 1 << 30, "shm_bytes": 1 << 20, "gpus": 0, "env": {}, "command": ["true"]
    }))
    .unwrap();
    let (id, train) = (InstanceId::new(), "train".parse::<InstanceName>().unwrap());
    let waits = Status::Waiting { reason: WaitReason::Queued, message: String::new() };
    let slug = train.slug();
    let new = NewInstance {
        id: &id,
        user: root.id,
        name: &train,
        slug: &slug,
        cluster: "default",
        pool: None,
        spec: &spec,
        status: &waits,
        auto_start: false,
        needs: &[],
    };
    store.add_instance(new, &line()).await.unwrap();
    let held = Held {
        node: "here".to_owned(),
        cpus_milli: 1000,
        memory_mib: 1024,
        cards: Vec::new(),
        model: None,
        sequence: 1,
    };
    assert!(store.reserve_instance(&id, 1, &held, &Status::Starting).await.unwrap());
    let ended = Settled { status: &Status::Succeeded, is_over: true, end: None };
    let steps = async || {
        let row = store.instance(&id).await.unwrap().unwrap();
        row.start_times.into_keys().collect::<Vec<_>>()
    };
    assert!(store.settle(&id, 1, &ended).await.unwrap());
    assert_eq!(steps().await, ["starting", "succeeded", "waiting"]);
    assert!(store.set_goal(&id, 1, Goal::Running, &Status::Starting, &line()).await.unwrap());
    assert_eq!(steps().await, ["starting"], "the clocks of a new start begin anew");
    assert!(
        store.generations("default").await.unwrap().is_empty(),
        "the cluster is told of what has a place"
    );
    let waiting = store.waiting_instances().await.unwrap();
    assert_eq!(waiting.iter().map(|one| (&one.id, one.generation)).collect::<Vec<_>>(), [(&id, 2)]);
}

#[tokio::test]
async fn whoever_comes_beside_a_gateway_changes_no_tables() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    assert!(Store::open_beside(&file).await.is_err(), "there is none, and none is made");
    assert!(!file.exists());
    Store::open(&file).await.unwrap().close().await;
    let store = Store::open_beside(&file).await.unwrap();
    let last = "delete from _sqlx_migrations where version = (select max(version) from _sqlx_migrations)";
    sqlx::query(last).execute(&store.writer).await.unwrap();
    store.close().await;
    assert!(matches!(Store::open_beside(&file).await, Err(StoreError::OtherVersion)));
}

pub(super) async fn add(store: &Store, user: &str, role: Role) -> Result<(), StoreError> {
    let user = name(user);
    let new = NewUser {
        name: &user,
        password_hash: "x",
        role,
        group: GroupId::DEFAULT,
        must_change_password: false,
    };
    store.add_user(new, &Line::by_system("user.add", user.as_str())).await
}

fn name(text: &str) -> UserName {
    text.parse().unwrap()
}

fn line() -> Line {
    Line::by_system("test", "")
}
