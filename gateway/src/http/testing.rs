//! A whole gateway on the loopback for tests of what it answers: real router, real store, and a cluster that is down.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use envd_api::{control::InstanceSpec, save::SavedImage};
use gateway_api::{
    GroupName, ImageId, InstanceId, InstanceName, JobId, Slug, Status, TokenName, UserName, WorkspaceName,
    id::TokenId,
    image::Share,
    packages::Packages,
    secret::{SecretRegistry, UseSecret},
    session::Role,
    token::Scope,
};
use http::Method;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::{
    app::App,
    auth::{password::Passwords, token::Token},
    config::{Certificate, Config, Tls},
    listen::{
        Door, Front,
        tls::{Certificates, provider},
    },
    proxy::{Proxy, address::Addresses},
    store::{Added, GroupId, Line, NewImage, NewInstance, NewJob, NewSecret, NewToken, NewUser, Store},
    tasks::Tasks,
};

/// Everybody's password.
pub(super) const PASSWORD: &str = "correct horse";
/// The smallest job there is.
pub(super) const JOB_FILE: &str = "berth: 1\nname: new\nimage: python:3.12\ncommand: echo hello\n";
const HOUR: Duration = Duration::from_hours(1);
/// No answer takes longer.
pub(super) const LIMIT: Duration = Duration::from_mins(1);
/// Revocation closes sessions within 5 s; a busy machine gets four times as long.
pub(super) const REVOKED_LIMIT: Duration = Duration::from_secs(4 * 5);

#[derive(Debug)]
pub(super) struct Site {
    pub(super) app: Arc<App>,
    pub(super) address: SocketAddr,
    /// Where apps are in path mode.
    pub(super) apps_address: SocketAddr,
    password_hash: String,
    pub(super) folder: tempfile::TempDir,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: String,
}

impl Reply {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.app.tasks.tell();
    }
}

impl Site {
    pub(super) async fn open() -> Self {
        Self::open_with("").await
    }

    /// The same with settings. Without TLS, whatever they say.
    pub(super) async fn open_with(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store.db")).await.unwrap();
        let tasks = Tasks::default();
        let config = Config::from_parts(folder.path(), settings, |_| None).unwrap();
        let app = App::build(config, store, tasks.clone()).unwrap();
        app.start_chores();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let _ = app.addresses.set(Addresses::new(&app.config, app.config.console(address), None));
        let proxy = Proxy::new(&app);
        let limits = app.config.limits;
        let door = |listener| Door { listener, front: Front::Plain, limits };
        let apps = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let apps_address = apps.local_addr().unwrap();
        let by_path = Arc::clone(&proxy);
        let answer = move |request, from| Arc::clone(&by_path).by_path(request, from);
        tasks.spawn("apps", door(apps).serve(tasks.clone(), answer));
        let answer = super::answer_all(super::router(Arc::clone(&app)), proxy);
        tasks.spawn("site", door(listener).serve(tasks.clone(), answer));
        let password_hash = Passwords::new().unwrap().hash(PASSWORD.to_owned()).await.unwrap();
        Self { app, address, apps_address, password_hash, folder }
    }

    /// A connection as of a browser that trusts our own certificate, to the host `name` of the same site.
    pub(super) async fn by_tls(&self, name: &str) -> tokio_rustls::client::TlsStream<TcpStream> {
        use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
        let certificate = Certificate::SelfSigned { names: Vec::new() };
        let tls = Tls { certificate, redirect_http: None };
        let certificates = Certificates::build(&tls, self.folder.path(), &self.app.tasks).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let door = Door { listener, front: Front::Tls(certificates), limits: self.app.config.limits };
        let answer = super::answer_all(super::router(Arc::clone(&self.app)), Proxy::new(&self.app));
        self.app.tasks.spawn("site by tls", door.serve(self.app.tasks.clone(), answer));

        let mut roots = rustls::RootCertStore::empty();
        let pem = self.folder.path().join("keys/self-signed.pem");
        roots.add(CertificateDer::from_pem_file(pem).unwrap()).unwrap();
        let mut config = rustls::ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }

    /// Adds a user who is signed in.
    pub(super) async fn user(&self, name: &str, role: Role, group: GroupId) -> Token {
        let user: UserName = name.parse().unwrap();
        let new = NewUser {
            name: &user,
            password_hash: &self.password_hash,
            role,
            group,
            must_change_password: false,
        };
        self.app.store.add_user(new, &line()).await.unwrap();
        let token = Token::new();
        let id = self.app.store.user_by_name(&user).await.unwrap().unwrap().id;
        self.app.store.add_session(&token.hash(), id, HOUR, &line()).await.unwrap();
        token
    }

    pub(super) async fn group(&self, name: &str) -> GroupId {
        self.app.store.add_group(&name.parse::<GroupName>().unwrap(), &line()).await.unwrap()
    }

    pub(super) async fn workspace(&self, name: &str, member: &str) {
        let name: WorkspaceName = name.parse().unwrap();
        self.app.store.add_workspace(&name, &line()).await.unwrap();
        let member = self.app.store.user_by_name(&member.parse().unwrap()).await.unwrap().unwrap();
        self.app.store.set_member(&name, member.id, true, &line()).await.unwrap();
    }

    pub(super) async fn token(&self, owner: &str, scope: Scope) -> (TokenId, Token) {
        let owner = self.app.store.user_by_name(&owner.parse().unwrap()).await.unwrap().unwrap();
        let (id, token) = (TokenId::new(), Token::new_for_api());
        let new = NewToken {
            id: &id,
            token_hash: &token.hash(),
            user: owner.id,
            name: &id.as_str().parse::<TokenName>().unwrap(),
            scope,
            lasts: HOUR,
        };
        self.app.store.add_token(new, &line()).await.unwrap();
        (id, token)
    }

    /// Adds an instance that is in that state.
    pub(super) async fn instance(&self, owner: &str, name: &str, status: &Status) -> InstanceId {
        self.instance_with(owner, name, status, Vec::new()).await
    }

    /// The same for one that uses secrets.
    pub(super) async fn instance_with(
        &self,
        owner: &str,
        name: &str,
        status: &Status,
        secrets: Vec<UseSecret>,
    ) -> InstanceId {
        let owner = self.app.store.user_by_name(&owner.parse().unwrap()).await.unwrap().unwrap();
        let name: InstanceName = name.parse().unwrap();
        let id = InstanceId::new();
        let spec = InstanceSpec {
            user: owner.home,
            group: owner.group.to_string(),
            hostname: "x".to_owned(),
            image: "python:3.12".to_owned(),
            cpus: 1.0,
            memory_bytes: 1 << 30,
            shm_bytes: 1 << 26,
            disk_bytes: None,
            gpus: 0,
            gpu_model: None,
            cards: Vec::new(),
            env: [("SECRET".to_owned(), "hush".to_owned())].into(),
            command: Vec::new(),
            links: [].into(),
            aliases: [].into(),
            code_dir: None,
            work_dir: None,
            task: false,
            secrets,
        };
        let slug = name.slug();
        let new = NewInstance {
            id: &id,
            user: owner.id,
            name: &name,
            slug: &slug,
            cluster: "default",
            pool: None,
            spec: &spec,
            status,
            auto_start: false,
            needs: &[],
        };
        self.app.store.add_instance(new, &line()).await.unwrap();
        id
    }

    /// Adds an image that was saved from an instance, for the owner's group.
    pub(super) async fn image(&self, owner: &str, instance: &str) -> ImageId {
        let owner = self.app.store.user_by_name(&owner.parse().unwrap()).await.unwrap().unwrap();
        let (id, name) = (ImageId::new(), "train".parse::<InstanceName>().unwrap());
        let new = NewImage {
            id: &id,
            user: owner.id,
            repository: &format!("{}/train", owner.home),
            name: "train",
            tag: "1",
            message: "",
            instance: (&instance.parse().unwrap(), &name),
            parent: "python:3.12",
            exclude: &[],
            share: Share::Group,
            stop: false,
            wanted_bytes: 0,
        };
        assert_eq!(self.app.store.add_image(new, None, &line()).await.unwrap(), Added::Yes(None));
        let saved = SavedImage {
            digest: format!("sha256:{:064x}", rand::random::<u128>()),
            config: format!("sha256:{:064x}", 1),
            size_bytes: 2,
            added_bytes: 1,
            layers: 2,
            frozen_ms: 0,
            packages: Packages::default(),
            blobs: Vec::new(),
        };
        assert!(self.app.store.finish_image(&id, &saved, &line()).await.unwrap());
        id
    }

    /// Adds a secret of the owner's, and one of the site's, both called `HF_TOKEN`.
    pub(super) async fn secret(&self, owner: &str) {
        let owner = self.app.store.user_by_name(&owner.parse().unwrap()).await.unwrap().unwrap();
        let name = "HF_TOKEN".parse().unwrap();
        let own = NewSecret { owner: Some(owner.id), name: &name, registry: None, sealed: b"sealed" };
        self.app.store.set_secret(own, &line()).await.unwrap();
        let registry = SecretRegistry { host: "registry.example.org".to_owned(), user: "lab".to_owned() };
        let site = NewSecret { owner: None, name: &name, registry: Some(&registry), sealed: b"sealed" };
        self.app.store.set_secret(site, &line()).await.unwrap();
    }

    /// Adds a job that is in that state.
    pub(super) async fn job(&self, owner: &str, status: &Status) -> JobId {
        let owner = self.app.store.user_by_name(&owner.parse().unwrap()).await.unwrap().unwrap();
        let spec = jobfile::read(JOB_FILE.as_bytes(), &jobfile::Site::default()).spec.unwrap();
        let (id, slug) = (JobId::new(), Slug::of_job("first"));
        let new = NewJob {
            id: &id,
            user: owner.id,
            name: "first",
            slug: &slug,
            cluster: "default",
            file: JOB_FILE,
            spec: &spec,
            warnings: &[],
            status,
            priority: 5,
            needs: &[],
        };
        self.app.store.add_job(new, &line()).await.unwrap();
        id
    }

    /// Sends a request and reads the whole answer.
    pub(super) async fn ask(
        &self,
        method: &Method,
        path: &str,
        token: Option<&Token>,
        body: Option<&Value>,
    ) -> Reply {
        let mut stream = self.send(method, path, token, body, "Connection: close\r\n").await;
        let mut answer = Vec::new();
        tokio::time::timeout(LIMIT, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        Reply { status: status(head), body: body.to_owned() }
    }

    /// Sends a request whose answer goes on, as a WebSocket or a stream of events. Answers once its head is there.
    pub(super) async fn follow(&self, path: &str, token: Option<&Token>) -> (u16, TcpStream) {
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        let mut stream = self.send(&Method::GET, path, token, None, upgrade).await;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(tokio::time::timeout(LIMIT, stream.read_u8()).await.unwrap().unwrap());
        }
        (status(&String::from_utf8_lossy(&head)), stream)
    }

    async fn send(
        &self,
        method: &Method,
        path: &str,
        token: Option<&Token>,
        body: Option<&Value>,
        more: &str,
    ) -> TcpStream {
        let address = self.address;
        let token =
            token.map(|token| format!("Authorization: Bearer {}\r\n", token.reveal())).unwrap_or_default();
        let body = body.map(Value::to_string);
        let length = body.as_ref().map_or(0, String::len);
        let kind = if body.is_some() { "Content-Type: application/json\r\n" } else { "" };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\n{token}{kind}\
             Content-Length: {length}\r\n{more}\r\n{}",
            body.unwrap_or_default()
        );
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }
}

/// Checks a file of this crate that is made from the code, or makes it as snapshots are made.
pub(super) fn checked_in(file: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("INSTA_UPDATE").is_some_and(|when| when == "always") {
        std::fs::write(path, format!("{text}\n")).unwrap();
        return;
    }
    let is_current = std::fs::read_to_string(path).is_ok_and(|checked_in| checked_in.trim_end() == text);
    assert!(is_current, "gateway/{file} is stale: run this test with INSTA_UPDATE=always, or `make openapi`");
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{head}"))
}

fn line() -> Line {
    Line::by_system("test", "")
}
