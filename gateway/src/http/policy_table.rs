//! Who gets what from which operation: every operation of the API's description, and every route besides, asked by
//! everyone, in one snapshot.
//!
//! The walk goes over what the router itself is made of, so nothing can be forgotten: an operation whose path or body
//! this file does not know how to fill fails the test, and so does a route that is made elsewhere.

use std::fmt::Write as _;

use gateway_api::{Status, session::Role, token::Scope};
use http::Method;
use serde_json::{Value, json};

use super::testing::{PASSWORD, Site};
use crate::{auth::token::Token, store::GroupId};

/// The columns. All things that are asked for belong to the owner.
const ROLES: [&str; 6] = ["nobody", "stranger", "owner", "member", "leader", "admin"];

const SSH_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEjbzQr3Sd8mFQz2YpqfdJrOqOqYRT3Nzq2y3yMOTPCk";

/// The things of one owner and everyone around them.
struct World {
    tokens: [Option<Token>; 6],
    owner: String,
    group: String,
    workspace: String,
    instance: String,
    job: String,
    token: String,
    image: String,
    number: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_policy_table() {
    let site = Site::open_with("[gateway]\nregistry = \"127.0.0.1:1\"").await;
    let mut number = 0;
    let mut table = format!("{:<48}", "");
    for role in ROLES {
        let _ = write!(table, "{role:>9}");
    }
    let document: Value = serde_json::from_str(&super::openapi_json()).unwrap();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let method: Method = method.to_uppercase().parse().unwrap();
            let name = operation["operationId"].as_str().unwrap();
            let _ = write!(table, "\n{:<48}", format!("{method} {}", path.trim_start_matches("/api/v1")));
            let mut world = World::make(&site, &mut number, name).await;
            for (column, role) in ROLES.iter().enumerate() {
                // What changes something changes it for those who ask later.
                if !method.is_safe() && column > 0 {
                    world = World::make(&site, &mut number, name).await;
                }
                let status = world.ask(&site, &method, path, operation, column).await;
                assert!(status != 500 && status != 405 && status != 400, "{name} as {role}: {status}");
                let _ = write!(table, "{status:>9}");
            }
        }
    }
    for (route, _) in super::undescribed() {
        for (method, path) in asked_of(route) {
            let _ = write!(table, "\n{:<48}", format!("{method} {}", path.trim_start_matches("/api/v1")));
            for (column, role) in ROLES.iter().enumerate() {
                let world = World::make(&site, &mut number, "").await;
                let path = path.replace("{owner}", &world.owner);
                let status = site.ask(&method, &path, world.tokens[column].as_ref(), None).await.status;
                assert!(status != 500 && status != 405 && status != 400, "{path} as {role}: {status}");
                let _ = write!(table, "{status:>9}");
            }
        }
    }
    insta::assert_snapshot!(table);
}

/// What is asked of a route that the description does not have. No registry answers behind these.
fn asked_of(route: &str) -> Vec<(Method, &'static str)> {
    match route {
        "/api/v1/openapi.json" => vec![(Method::GET, "/api/v1/openapi.json")],
        "/api/{*rest}" => vec![(Method::GET, "/api/v1/nothing")],
        "/v2/" => vec![(Method::GET, "/v2/")],
        "/v2/token" => vec![(Method::GET, "/v2/token")],
        "/v2/_catalog" => vec![(Method::GET, "/v2/_catalog")],
        "/v2/{*rest}" => vec![
            (Method::GET, "/v2/{owner}/train/tags/list"),
            (Method::GET, "/v2/{owner}/train/manifests/1"),
            (Method::DELETE, "/v2/{owner}/train/manifests/1"),
            (Method::POST, "/v2/{owner}/train/blobs/uploads/"),
        ],
        other => panic!("{other}: say what is asked of it"),
    }
}

/// What is routed anywhere else would not be in the table.
#[test]
fn nothing_is_routed_but_where_the_table_looks() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http");
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
        // This file would find itself.
        if file.extension().is_none_or(|ending| ending != "rs") || file.ends_with("policy_table.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        for call in [".route(", ".route_service(", ".nest_service(", ".nest(", ".merge("] {
            for _ in text.matches(call) {
                found.push(format!("{}: {call}", file.file_name().unwrap().display()));
            }
        }
    }
    found.sort();
    assert_eq!(found, ["mod.rs: .nest(", "mod.rs: .route("], "put it among `undescribed`");
}

impl World {
    async fn make(site: &Site, number: &mut usize, operation: &str) -> Self {
        *number += 1;
        let n = *number;
        let (owner, group, workspace) =
            (format!("owner-{n}"), format!("group-{n}"), format!("workspace-{n}"));
        let id = site.group(&group).await;
        let tokens = [
            None,
            Some(site.user(&format!("stranger-{n}"), Role::User, GroupId::DEFAULT).await),
            Some(site.user(&owner, Role::User, id).await),
            Some(site.user(&format!("member-{n}"), Role::User, id).await),
            Some(site.user(&format!("leader-{n}"), Role::Leader, id).await),
            Some(site.user(&format!("admin-{n}"), Role::Admin, GroupId::DEFAULT).await),
        ];
        site.workspace(&workspace, &owner).await;
        let status = match operation {
            "start_instance" => Status::Stopped { exit_code: None },
            _ => Status::Running { since: jiff::Timestamp::now() },
        };
        let instance = site.instance(&owner, "train", &status).await.to_string();
        let token = site.token(&owner, Scope::All).await.0.to_string();
        let image = site.image(&owner, &instance).await.to_string();
        let status = match operation {
            "change_job" | "stop_job" => Status::Running { since: jiff::Timestamp::now() },
            _ => Status::Succeeded,
        };
        let job = site.job(&owner, &status).await.to_string();
        site.secret(&owner).await;
        Self { tokens, owner, group, workspace, instance, job, token, image, number: n }
    }

    async fn ask(&self, site: &Site, method: &Method, path: &str, operation: &Value, column: usize) -> u16 {
        let token = self.tokens[column].as_ref();
        let path = self.path(path);
        let goes_on = operation["responses"].get("101").is_some()
            || operation["responses"]["200"]["content"].get("text/event-stream").is_some();
        if goes_on {
            return site.follow(&path, token).await.0;
        }
        let body =
            operation.get("requestBody").map(|_| self.body(operation["operationId"].as_str().unwrap()));
        site.ask(method, &path, token, body.as_ref()).await.status
    }

    /// The path with things of the owner in it.
    fn path(&self, path: &str) -> String {
        let name = match path.split('/').nth(3) {
            Some("instances") => &self.instance,
            Some("users") => &self.owner,
            Some("groups") => &self.group,
            Some("workspaces") => &self.workspace,
            Some("jobs") => &self.job,
            Some(_) | None => "{name}",
        };
        let path = path
            .replace("{name}", name)
            .replace("{user}", &self.owner)
            .replace("{id}", &self.token)
            .replace("{terminal}", "main")
            .replace("{app}", "desktop")
            .replace("{image}", &self.image)
            .replace("{secret}", "HF_TOKEN")
            .replace("{port}", "8888");
        assert!(!path.contains('{'), "{path}: say what stands for this");
        path
    }

    fn body(&self, operation: &str) -> Value {
        let n = self.number;
        match operation {
            "sign_in" => json!({"user": self.owner, "password": PASSWORD, "client": "cli"}),
            "change_password" => json!({"old": PASSWORD, "new": "another horse"}),
            "set_language" => json!({"language": "zh-CN"}),
            "create_instance" | "dry_run_instance" => {
                json!({"name": "new", "cpus": 1, "memory_bytes": 1 << 30, "image": "python"})
            }
            "change_user" => json!({"disabled": true}),
            "add_user" | "add_group" | "add_workspace" => json!({"name": format!("new-{n}")}),
            "act_on_app" => json!({"act": "start"}),
            "open_app" | "save_instance" | "rerun_job" | "collect_images" => json!({}),
            "change_image" => json!({"message": "changed"}),
            "create_tensorboard" => json!({"folder": "/userhome/runs", "name": "board"}),
            "add_ssh_key" => json!({"key": SSH_KEY, "name": format!("key-{n}")}),
            "make_ssh_pair" => json!({"name": format!("pair-{n}")}),
            "add_announcement" => json!({"level": "info", "text": {"english": "maintenance on Monday"}}),
            "set_rules" => json!({"english": "release what you do not use"}),
            "change_site" => json!({"name": "The lab"}),
            "accept_rules" => json!({"version": 1}),
            "submit_job" | "dry_run_job" | "convert_job" => json!({"file": super::testing::JOB_FILE}),
            "change_job" => json!({"priority": 6}),
            "set_user_quota" | "set_group_quota" => json!({"limits": {"gpus": 2}}),
            "set_secret" | "set_site_secret" => {
                json!({"value": "hush", "registry": {"host": format!("registry-{n}.example.org"), "user": "me"}})
            }
            "add_token" => json!({"name": "new", "scope": "all"}),
            other => panic!("{other}: say what body it takes"),
        }
    }
}
