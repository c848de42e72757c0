//! What the gateway says to bad input, as it says it: asked over HTTP, and kept in `gateway/api/problems.json`.
//!
//! The command and the console translate what is in that file and keep what comes out as snapshots of their own, so
//! a sentence cannot lose its values on the way, in any language.

use std::collections::BTreeSet;

use envd_api::control::{EngineState, NodeReport, Syscalls, Tenants};
use gateway_api::{Code, Problem, Status, node::DiskLimit, session::Role};
use http::Method;
use serde_json::{Value, json};

use super::testing::{Site, checked_in};
use crate::{
    auth::token::Token,
    error::{Error, samples},
    store::GroupId,
};

const REGISTRY: &str = "127.0.0.1:5000";

/// Every mistake that a request for an instance can hold, and what makes it.
fn mistakes() -> Vec<(&'static str, Value)> {
    vec![
        ("name rule broken", json!({"name": "my instance"})),
        ("name empty", json!({"name": ""})),
        ("name in use", json!({"name": "train"})),
        ("image unknown to the site", json!({"image": format!("{REGISTRY}/alice/train:9")})),
        ("reference does not parse", json!({"image": "python 3.12"})),
        ("reference in upper case", json!({"image": "Python:3.12"})),
        ("reference with a bad tag", json!({"image": "python:3.12:1"})),
        ("reference with a bad digest", json!({"image": "python@sha256:12"})),
        ("reference is an id", json!({"image": "0".repeat(64)})),
        ("reference empty", json!({"image": ""})),
        ("more CPUs than any node has", json!({"cpus": 64})),
        ("more memory than any node has", json!({"memory_bytes": 1_u64 << 40})),
        ("more GPUs than any node has", json!({"gpus": 8})),
        ("zero CPUs", json!({"cpus": 0})),
        ("zero memory", json!({"memory_bytes": 0})),
        ("zero shared memory", json!({"shm_bytes": 0})),
        ("negative CPUs", json!({"cpus": -1})),
        ("negative memory", json!({"memory_bytes": -1})),
        ("negative shared memory", json!({"shm_bytes": -1})),
        ("negative GPUs", json!({"gpus": -1})),
        ("memory below 64 MiB", json!({"memory_bytes": 63 << 20})),
        ("more shared memory than memory", json!({"shm_bytes": 2_u64 << 30})),
        ("variable with NUL in its name", json!({"env": {"A\0B": "1"}})),
        ("variable with a newline in its name", json!({"env": {"A\nB": "1"}})),
        ("variable with = in its name", json!({"env": {"A=B": "1"}})),
        ("variable without a name", json!({"env": {"": "1"}})),
        ("variable with NUL in its value", json!({"env": {"A": "\0"}})),
        ("command with an empty first word", json!({"command": [""]})),
        ("body over the limit", json!({"command": ["x".repeat(super::body::LIMIT)]})),
        ("unknown field", json!({"cpu": 1})),
        ("field of the wrong type", json!({"cpus": "two"})),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_mistake_has_its_own_sentence_code_pointer_and_hint() {
    let site = Site::open_with(&format!("[gateway]\nregistry = \"{REGISTRY}\"")).await;
    site.app.clusters.first().note_node(NodeReport {
        name: "node".to_owned(),
        address: None,
        cpus: 2.0,
        memory_bytes: 4 << 30,
        gpus: 0,
        cards: Vec::new(),
        engine: EngineState::Ready,
        tenants: Tenants::Apart,
        syscalls: Syscalls::Filtered,
        disk: DiskLimit::Polled,
    });
    let token = site.user("alice", Role::User, GroupId::DEFAULT).await;
    site.instance("alice", "train", &Status::Running { since: jiff::Timestamp::now() }).await;

    let mut said = BTreeSet::new();
    let mut bad_input = serde_json::Map::new();
    for (what, wrong) in mistakes() {
        let problem = refused(&site, &token, what, &wrong).await;
        assert!(problem.hint.is_some() && problem.pointer.is_some(), "{what}: {problem:?}");
        assert!(said.insert(problem.message.clone()), "{what}: {problem:?}");
        bad_input.insert(what.to_owned(), serde_json::to_value(&problem).unwrap());
    }
    // As the registry that has been asked would be quoted.
    let elsewhere = Error::ImageNotFound {
        reference: "python:3.99".to_owned(),
        why: "docker.io answered `manifest unknown`".to_owned(),
    };
    bad_input.insert(
        "image unknown to its registry".to_owned(),
        serde_json::to_value(elsewhere.problem()).unwrap(),
    );

    let all: Vec<_> = samples::all().iter().map(Error::problem).collect();
    every_code_is_there(&all);
    let whole = serde_json::to_string_pretty(&json!({"bad_input": bad_input, "all": all})).unwrap();
    checked_in("api/problems.json", &whole);
}

async fn refused(site: &Site, token: &Token, what: &str, wrong: &Value) -> Problem {
    let mut body = json!({"name": "new", "cpus": 1, "memory_bytes": 1 << 30, "image": "python:3.12"});
    for (field, value) in wrong.as_object().unwrap() {
        body[field] = value.clone();
    }
    let reply = site.ask(&Method::POST, "/api/v1/instances", Some(token), Some(&body)).await;
    assert!((400..500).contains(&reply.status), "{what}: {} {}", reply.status, reply.body);
    let problem: Problem = serde_json::from_value(reply.json()).unwrap();
    Problem { request_id: String::new(), ..problem }
}

/// A code without a sample would have no sentence that anybody has read.
fn every_code_is_there(all: &[Problem]) {
    let document: Value = serde_json::from_str(&super::openapi_json()).unwrap();
    let codes = document["components"]["schemas"]["Code"]["enum"].as_array().unwrap();
    for code in codes {
        let code: Code = serde_json::from_value(code.clone()).unwrap();
        // The one is a state of instances, the other what an older client makes of a newer code.
        let never_sent = matches!(code, Code::EngineUnreachable | Code::Unknown);
        let is_there = all.iter().any(|problem| problem.code == code);
        assert!(is_there != never_sent, "{code:?}: put one of it among the samples");
    }
}
