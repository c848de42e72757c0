//! Who may call what: every operation of the API's description, HTTP and WebSocket alike.

use gateway_api::{Code, InstanceId, Problem};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use tests::{OrFail as _, World, http_client, raw_http, web_socket_refused};

/// What is open to everyone, and why.
const OPEN: [(&str, &str); 2] = [
    // Nobody is signed in before it.
    ("POST", "/api/v1/session"),
    // For load balancers and monitors; says nothing but which part is unwell.
    ("GET", "/healthz"),
];
const ELSEWHERE: &str = "http://elsewhere.example";

/// One operation, ready to be called.
#[derive(Debug, Clone)]
struct Operation {
    method: Method,
    /// With the parameters filled in.
    path: String,
    is_web_socket: bool,
    about_an_instance: bool,
    needs_body: bool,
}

type Headers<'a> = &'a [(&'static str, &'a str)];

impl Operation {
    /// Everything in the description; instances are asked for by an id that no instance has.
    fn all() -> Vec<Self> {
        let document: Value = serde_json::from_str(include_str!("../../gateway/api/openapi.json"))
            .or_fail("read the description");
        let unknown = InstanceId::new();
        let mut operations = Vec::new();
        for (template, methods) in document["paths"].as_object().into_iter().flatten() {
            let path = template
                .replace("{name}", unknown.as_str())
                .replace("{terminal}", "main")
                .replace("{port}", "9000")
                .replace("{app}", "lab")
                .replace("{id}", "tok_00000000000000000000000000000000")
                .replace("{image}", "img_00000000000000000000000000000000")
                .replace("{secret}", "NO_SUCH_SECRET")
                .replace("{user}", "nobody");
            assert!(!path.contains('{'), "what to put into {template}?");
            for (method, operation) in methods.as_object().into_iter().flatten() {
                operations.push(Self {
                    method: method.to_uppercase().parse().or_fail("read a method"),
                    path: path.clone(),
                    is_web_socket: operation["responses"].get("101").is_some(),
                    about_an_instance: template.starts_with("/api/v1/instances/{name}"),
                    needs_body: operation["requestBody"]["required"] == true,
                });
            }
        }
        assert!(operations.iter().any(|operation| operation.is_web_socket));
        assert!(operations.iter().any(|operation| operation.about_an_instance));
        operations
    }

    fn is_open(&self) -> bool {
        OPEN.contains(&(self.method.as_str(), &self.path))
    }

    async fn call(&self, world: &World, headers: Headers<'_>) -> (StatusCode, Option<Problem>) {
        let url = format!("{}{}", world.console(), self.path);
        if self.is_web_socket {
            web_socket_refused(&url, headers).await
        } else {
            let (status, problem, _) = raw_http(self.method.clone(), &url, headers).await;
            (status, problem)
        }
    }

    async fn is_refused(&self, world: &World, headers: Headers<'_>, status: StatusCode, code: Code) {
        let (answered, problem) = self.call(world, headers).await;
        let answered = (answered, problem.as_ref().map(|problem| problem.code));
        assert_eq!(answered, (status, Some(code)), "{} {} with {headers:?}", self.method, self.path);
        let request_id = problem.map(|problem| problem.request_id).unwrap_or_default();
        assert!(!request_id.is_empty(), "{} {} has no request id", self.method, self.path);
    }
}

/// The cookie of a browser that has signed in.
async fn sign_in_as_browser(world: &World) -> String {
    let body = serde_json::json!({"user": "admin", "password": world.password(), "client": "browser"});
    let answer = http_client()
        .post(format!("{}/api/v1/session", world.console()))
        .json(&body)
        .send()
        .await
        .or_fail("sign in");
    let cookie = answer.headers()["set-cookie"].to_str().or_fail("read the cookie").to_owned();
    for attribute in ["HttpOnly", "Secure", "SameSite=Lax", "Path=/"] {
        assert!(cookie.contains(attribute), "{attribute} is missing: {cookie}");
    }
    let body: Value =
        serde_json::from_slice(&answer.bytes().await.or_fail("read")).or_fail("read the answer");
    assert_eq!(body.get("token"), None, "a script could read it");
    cookie.split(';').next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn nobody_gets_in() {
    let world = World::start().await;
    let operations = Operation::all();
    for (method, path) in OPEN {
        let known = operations.iter().any(|operation| operation.method == method && operation.path == path);
        assert!(known, "{method} {path} is not an operation");
    }
    let ours = world.console();
    let made_up = format!("Bearer {}", "A".repeat(world.token().len()));
    for operation in operations.iter().filter(|operation| !operation.is_open()) {
        for headers in [
            &[][..],
            &[("origin", ours)],
            &[("authorization", made_up.as_str())],
            &[("authorization", "Bearer ")],
            &[("authorization", "Basic YWRtaW46YWRtaW4=")],
            &[("origin", ours), ("cookie", "__Host-berth=made-up")],
        ] {
            operation.is_refused(&world, headers, StatusCode::UNAUTHORIZED, Code::Unauthenticated).await;
        }
    }
}

#[tokio::test]
async fn a_session_that_has_ended_is_worth_nothing() {
    let world = World::start().await;
    let bearer = format!("Bearer {}", world.token());
    world.client().me().await.or_fail("ask who one is");
    world.client().sign_out().await.or_fail("sign out");
    for operation in Operation::all().iter().filter(|operation| !operation.is_open()) {
        let headers = [("authorization", bearer.as_str())];
        operation.is_refused(&world, &headers, StatusCode::UNAUTHORIZED, Code::Unauthenticated).await;
    }
}

#[tokio::test]
async fn pages_of_other_sites_cannot_use_the_cookie() {
    let world = World::start().await;
    let cookie = sign_in_as_browser(&world).await;
    let unsafe_ones = |operation: &&Operation| operation.is_web_socket || !operation.method.is_safe();
    for operation in Operation::all().iter().filter(unsafe_ones) {
        let from_elsewhere = [("cookie", cookie.as_str()), ("origin", ELSEWHERE)];
        operation.is_refused(&world, &from_elsewhere, StatusCode::FORBIDDEN, Code::CrossSite).await;
        // One of our own apps, on a name below ours: another origin all the same.
        let app = world.console().replace("localhost", "app.localhost");
        let from_an_app = [("cookie", cookie.as_str()), ("origin", app.as_str())];
        operation.is_refused(&world, &from_an_app, StatusCode::FORBIDDEN, Code::CrossSite).await;
    }
    // The cookie itself is good.
    let ours = [("cookie", cookie.as_str()), ("origin", world.console())];
    let (status, ..) = raw_http(Method::GET, &format!("{}/api/v1/me", world.console()), &ours).await;
    assert_eq!(status, StatusCode::OK);
    let (status, ..) = raw_http(Method::DELETE, &format!("{}/api/v1/session", world.console()), &ours).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let world = World::start().await;
    let bearer = format!("Bearer {}", world.token());
    for operation in Operation::all().iter().filter(|operation| operation.about_an_instance) {
        let headers = [("authorization", bearer.as_str())];
        // What is asked must make sense before it is looked for.
        let (status, code) = if operation.needs_body {
            (StatusCode::BAD_REQUEST, Code::BadBody)
        } else {
            (StatusCode::NOT_FOUND, Code::NotFound)
        };
        operation.is_refused(&world, &headers, status, code).await;
    }
    for path in ["/api/v1/nothing", "/api/v2/instances", "/api/v1/instances/a/b/c/d"] {
        let url = format!("{}{path}", world.console());
        let (status, problem, _) = raw_http(Method::GET, &url, &[("authorization", &bearer)]).await;
        let code = problem.map(|problem| problem.code);
        assert_eq!((status, code), (StatusCode::NOT_FOUND, Some(Code::NotFound)), "{path}");
    }
}
