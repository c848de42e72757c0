//! A store of every version that there was becomes one of today: nothing that was in it is lost.

use std::path::Path;

use gateway_api::{ImageId, InstanceId, JobId, words::Language};
use sqlx::{
    Row as _, SqlitePool,
    migrate::Migrator,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};

use super::{InstanceRow, QuotaOwner, Store, User, Whose, migrations::MIGRATIONS};

const INSTANCE: &str = "ins_0190f2c3a1b27cc09d3e5f60718293a4";
const IMAGE: &str = "img_0190f2c3a1b27cc09d3e5f60718293a4";
const JOB: &str = "job_0190f2c3a1b27cc09d3e5f60718293a4";

/// What each version added, filled as that version filled it. A row stays in the store through all later versions.
#[expect(clippy::too_many_lines, reason = "one for each version")]
fn rows(version: i64) -> &'static str {
    match version {
        1 => {
            r#"
            insert into users values (1, 'admin', 'hash-1', 'admin', 1, 1000), (7, 'alice', 'hash-7', 'user', 0, 2000);
            insert into sessions values (x'01', 1, 1000, 9000000000000), (x'07', 7, 2000, 9000000000000);
            insert into instances values ('ins_0190f2c3a1b27cc09d3e5f60718293a4', 7, 'Train_1', 'train-1',
                '{"hostname":"train-1","image":"python:3.12","cpus":1.0,"memory_bytes":1073741824,
                  "shm_bytes":67108864,"gpus":0,"env":{"A":"1"},"command":[],
                  "mounts":[{"storage":"home","key":"alice"}]}',
                'running', 3, '{"state":"starting"}', 3000);
            "#
        }
        2 => {
            r"
            insert into groups values (2, 'vision', 1000);
            update users set group_id = 2, role = 'leader' where id = 7;
            insert into workspaces values (1, 'paper', 1000);
            insert into workspace_members values (1, 7);
            insert into tokens values ('tok_0190f2c3a1b27cc09d3e5f60718293a4', x'77', 7, 'nightly', 'read', 1000,
                9000000000000, null);
            insert into audit values (1, 1000, 'alice', '::1', 'sign_in', 'alice', 'done', 'req_1', '{}');
            "
        }
        3 => {
            r"
            insert into sessions values (x'08', 7, 2000, 9000000000000, x'07');
            insert into app_sessions values (x'0a', 7, 'ins_0190f2c3a1b27cc09d3e5f60718293a4', 'lab', null, x'07',
                null, 1000, 9000000000000);
            "
        }
        4 => {
            r"
            insert into ssh_keys values ('key_0190f2c3a1b27cc09d3e5f60718293a4', x'0b', 7, 'laptop', x'0c',
                'ssh-ed25519 AAAA', 1000, 1000, null);
            "
        }
        5 => {
            r#"
            insert into images values ('img_0190f2c3a1b27cc09d3e5f60718293a4', 7, 'alice/train', 'train', '1', 'first',
                'ins_0190f2c3a1b27cc09d3e5f60718293a4', 'Train_1', 'python:3.12', '[]', 'group', 0, 0, 0,
                '{"state":"ready"}', 'ready', 1, 'sha256:00', 2, 1, 2, 1000);
            "#
        }
        6 => {
            r#"
            insert into jobs values ('job_0190f2c3a1b27cc09d3e5f60718293a4', 7, 'first', 'first', x'62',
                '{"dialect":"berth","name":"first","description":"","purpose":"batch","retries":{"up_to":0},
                  "keep_on_failure":false,"env":{},"mounts":[],"roles":[],"kept":{}}',
                '[]', 'running', null, 1, '{"state":"succeeded"}', null, null, 1, 0, 0, 5, null, 0, 1000, 1000, null,
                null, 2000, null);
            insert into tasks values ('job_0190f2c3a1b27cc09d3e5f60718293a4', 1, 0, 0,
                'ins_0190f2c3a1b27cc09d3e5f60718293a5', 'first-main-0', '{}', '[]', null, null, 1, 2000);
            insert into job_events values ('job_0190f2c3a1b27cc09d3e5f60718293a4', 1, 1000, '{"event":"submitted"}');
            insert into cards values ('node', 'GPU-1', 'ins_0190f2c3a1b27cc09d3e5f60718293a4');
            insert into quotas values ('user', 7, '{"gpus":4,"gpus_by_model":{}}', null);
            "#
        }
        7 => "update instances set auto_start = 1;",
        8 => {
            r"
            insert into announcements values (1, 'info', '维护', 'maintenance', 1000, null, 1000);
            insert into rules values (1, 3, '规则', 'rules', 1000);
            insert into rules_accepted values (7, 3, 1000);
            "
        }
        9 => {
            r"
            insert into holdings values (100, 'ins_0190f2c3a1b27cc09d3e5f60718293a5', 7, 'vision', 1000, 0, null, 1000,
                2000);
            "
        }
        10 => "update images set packages = '{}', frozen_ms = 12;",
        12 => "insert into site values (1, 'The lab', 0, 1);",
        14 => "insert into secrets values (1, 7, 'HF_TOKEN', null, null, x'01', 1000);",
        15 => {
            r#"
            insert into images (id, user_id, repository, name, tag, message, parent, exclude, share, stop, state, phase,
                                settled, created_at, wanted_bytes, kept_until)
            values ('img_0190f2c3a1b27cc09d3e5f60718293a5', 7, 'alice/train', 'train', '2', '', 'python:3.12', '[]', 'me',
                    0, '{"state":"failed","failure":"disk_full","message":"full"}', 'failed', 1, 1000, 3, 2000);
            insert into image_blobs values ('img_0190f2c3a1b27cc09d3e5f60718293a4', 'sha256:01', 20);
            insert into uploads values (7, 'sha256:02', 300, 1000);
            "#
        }
        18 => {
            r"
            update instances set cluster = 'annex', pool = 'dev';
            update jobs set cluster = 'annex';
            update images set cluster = 'annex';
            "
        }
        21 => r#"update instances set status = '{"state":"pulling","done_bytes":0}';"#,
        22 => {
            r#"
            insert into instances (id, user_id, name, slug, spec, goal, generation, status, created_at)
            select 'ins_0190f2c3a1b27cc09d3e5f60718293a6', 7, 'Rests', 'rests', spec, 'stopped', 1, '{"state":"stopped"}',
                   4000
            from instances where slug = 'train-1';
            "#
        }
        23 => "update users set language = 'zh-CN' where id = 7;",
        26 => "insert into unknown_times values (100, 200);",
        _ => "",
    }
}

#[tokio::test]
async fn a_store_of_every_version_is_found_whole() {
    let all = &*MIGRATIONS;
    let versions: Vec<_> = all.iter().map(|migration| migration.version).collect();
    let mut schemas = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.db");
        let before = old_store(&file, all, index + 1).await;
        let store = Store::open(&file).await.unwrap_or_else(|error| panic!("from {version}: {error:?}"));

        for (table, count) in before {
            let after = count_of(&store.pool, &table).await;
            assert!(after >= count, "{table} of version {version}: {count} rows became {after}");
        }
        assert_readable(&store, *version).await;
        let broken = sqlx::query("pragma foreign_key_check").fetch_all(&store.pool).await.unwrap();
        assert!(broken.is_empty(), "from {version}: references that lead nowhere");
        schemas.push(schema(&store.pool).await);
    }
    schemas.dedup();
    assert_eq!(schemas.len(), 1, "all ways lead to the same tables");
}

/// A store that went through the first `count` versions and was used in each; its tables and how many rows they have.
async fn old_store(file: &Path, all: &Migrator, count: usize) -> Vec<(String, i64)> {
    let options = SqliteConnectOptions::new().filename(file).create_if_missing(true).foreign_keys(true);
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
    for upto in 1..=count {
        let migrations = all.migrations[..upto].to_vec();
        let version = migrations[upto - 1].version;
        let some = Migrator::with_migrations(migrations);
        some.run(&pool).await.unwrap_or_else(|error| panic!("{version}: {error:?}"));
        sqlx::raw_sql(rows(version))
            .execute(&pool)
            .await
            .unwrap_or_else(|error| panic!("{version}: {error}"));
    }
    let tables = "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'";
    let mut counts = Vec::new();
    for row in sqlx::query(tables).fetch_all(&pool).await.unwrap() {
        let table: String = row.get(0);
        let count = count_of(&pool, &table).await;
        counts.push((table, count));
    }
    pool.close().await;
    counts
}

/// Through the same doors as the gateway.
async fn assert_readable(store: &Store, version: i64) {
    let admin = store.session_user(&[1]).await.unwrap().unwrap();
    let alice = store.session_user(&[7]).await.unwrap().unwrap();
    assert_eq!((admin.name.as_str(), alice.name.as_str(), alice.home.as_str()), ("admin", "alice", "alice"));
    let instance = store.instance(&INSTANCE.parse::<InstanceId>().unwrap()).await.unwrap().unwrap();
    assert_eq!((instance.name.as_str(), instance.generation), ("Train_1", 3), "from {version}");
    assert_eq!(
        store.reservations().await.unwrap().len(),
        1,
        "from {version}: it runs, so it holds something"
    );
    if version >= 2 {
        assert_eq!(alice.group.as_str(), "vision");
        assert_eq!(store.tokens_of(alice.id).await.unwrap().len(), 1);
    }
    if version >= 4 {
        assert_eq!(store.ssh_keys_of(alice.id).await.unwrap().len(), 1);
    }
    if version >= 5 {
        let image = store.image(&IMAGE.parse::<ImageId>().unwrap()).await.unwrap().unwrap();
        assert_eq!((image.name.as_str(), image.tag.as_str()), ("train", "1"));
    }
    if version >= 6 {
        assert!(store.job(&JOB.parse::<JobId>().unwrap()).await.unwrap().is_some());
        assert_eq!(store.job_events(&JOB.parse::<JobId>().unwrap()).await.unwrap().len(), 1);
        assert_eq!(store.quotas().await.unwrap().len(), 1);
    }
    if version >= 7 {
        assert!(instance.auto_start);
    }
    if version >= 8 {
        assert_eq!(store.announcements(true).await.unwrap().len(), 1);
        assert_eq!(store.rules(alice.id).await.unwrap().version, 3);
    }
    if version >= 12 {
        assert_eq!(store.site().await.unwrap().name, "The lab");
    }
    if version >= 14 {
        assert_eq!(store.secrets_of(Some(alice.id)).await.unwrap().len(), 1);
    }
    assert_newer_readable(store, version, &alice, &instance).await;
}

async fn assert_newer_readable(store: &Store, version: i64, alice: &User, instance: &InstanceRow) {
    if version >= 5 {
        // What a blob takes that was there before anybody counted, and what came after.
        let room = store.image_room(QuotaOwner::User(alice.id), None).await.unwrap();
        assert_eq!(room.used, if version >= 15 { 1 + 20 + 300 } else { 1 }, "from {version}");
    }
    if version >= 15 {
        assert_eq!(store.images_kept_too_long().await.unwrap().len(), 1);
    }
    let (cluster, pool) = if version >= 18 { ("annex", Some("dev")) } else { ("default", None) };
    assert_eq!((instance.cluster.as_str(), instance.pool.as_deref()), (cluster, pool), "from {version}");
    if version >= 21 {
        assert_eq!(instance.start_times.keys().collect::<Vec<_>>(), ["pulling"]);
    }
    let shown = store.shown_instances(Whose::User(alice.id), None, None).await.unwrap();
    assert_eq!(shown.len(), if version >= 22 { 2 } else { 1 }, "from {version}");
    if version >= 23 {
        assert_eq!(alice.language, Some(Language::Chinese));
    }
    let unknown = store.unknown_times().await.unwrap();
    assert_eq!(unknown.len(), if version >= 26 { 2 } else { 1 }, "from {version}: {unknown:?}");
}

async fn count_of(pool: &SqlitePool, table: &str) -> i64 {
    let count = sqlx::AssertSqlSafe(format!("select count(*) from \"{table}\""));
    sqlx::query_scalar(count).fetch_one(pool).await.unwrap()
}

async fn schema(pool: &SqlitePool) -> Vec<String> {
    let all = "select coalesce(sql, name) from sqlite_master order by type, name";
    sqlx::query_scalar(all).fetch_all(pool).await.unwrap()
}
