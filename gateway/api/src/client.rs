//! The client of the gateway: every call of `/api/v1`, typed.
//!
//! It is what the `berth` command and the end-to-end tests speak with, so it knows the public contract and nothing
//! else. Plain calls are JSON over HTTP; `exec`, terminals and followed logs are WebSockets ([`process`]); changes come
//! as server-sent events ([`events`]); [`wait`] puts the last two together.
//!
//! All that comes from the other side is bounded: bodies, lines, messages and the time to wait for them. TLS is rustls
//! with the machine's own roots, so a site's private authority works once the machine trusts it. Proxies from the
//! environment are not used: an instance's WebSockets could not follow, and a gateway is on one's own network.

mod apps;
mod error;
pub mod events;
mod http;
mod images;
mod jobs;
mod people;
pub mod process;
mod secrets;
pub mod survey;
pub mod wait;

use std::{fmt, sync::Arc};

use bytes::Bytes;
use futures_util::Stream;
use reqwest::{Method, Url, header::HeaderValue};
use rustls::ClientConfig;

pub use self::{
    error::ClientError,
    events::{Event, Events},
    http::fetch,
    jobs::LogPart,
    process::{Finished, Process, ProcessEvent, ProcessInput, ProcessOutput, StandardStream},
    secrets::SecretsOf,
    wait::Waited,
};
use crate::{
    CreateInstance, Instance, Page,
    job::DryRun,
    node::{Gpu, Node},
    preparing::PreparingStep,
    session::{ChangePassword, ClientKind, Me, SetLanguage, SignIn, SignedIn},
    stream::{ExecStart, Size, Terminal},
    words::Language,
};

/// One gateway, and who one is there. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    tls: Arc<ClientConfig>,
    base: Url,
    /// The whole `Authorization` header.
    authorization: Option<HeaderValue>,
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Client").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

// === the sign-in ===

impl Client {
    /// Checks a name and password; the answer's token goes into another [`Client::new`].
    pub async fn sign_in(&self, user: &str, password: &str) -> Result<SignedIn, ClientError> {
        let body = SignIn { user: user.to_owned(), password: password.to_owned(), client: ClientKind::Cli };
        self.call(Method::POST, &["session"], Some(&body)).await
    }

    /// Makes this client's token worthless.
    pub async fn sign_out(&self) -> Result<(), ClientError> {
        self.tell(Method::DELETE, &["session"], None::<&()>).await
    }

    pub async fn me(&self) -> Result<Me, ClientError> {
        self.get(&["me"]).await
    }

    pub async fn change_password(&self, change: &ChangePassword) -> Result<(), ClientError> {
        self.tell(Method::PUT, &["me", "password"], Some(change)).await
    }

    /// Chooses the language in which one is spoken to.
    pub async fn set_language(&self, language: Option<Language>) -> Result<(), ClientError> {
        self.tell(Method::PUT, &["me", "language"], Some(&SetLanguage { language })).await
    }
}

// === instances ===

/// Wherever an instance is asked for, its name, its slug or its id will do.
impl Client {
    /// All instances of one's own, newest first.
    pub async fn instances(&self) -> Result<Vec<Instance>, ClientError> {
        self.all_pages("instances", false, |instance: &Instance| instance.id.to_string()).await
    }

    /// Those of everyone as far as one may see them: of the group for its leader, all for an admin.
    pub async fn visible_instances(&self) -> Result<Vec<Instance>, ClientError> {
        self.all_pages("instances", true, |instance: &Instance| instance.id.to_string()).await
    }

    /// What would become of a request.
    pub async fn dry_run_instance(&self, instance: &CreateInstance) -> Result<DryRun, ClientError> {
        self.call(Method::POST, &["instances:dryRun"], Some(instance)).await
    }

    pub async fn create_instance(&self, instance: &CreateInstance) -> Result<Instance, ClientError> {
        self.call(Method::POST, &["instances"], Some(instance)).await
    }

    pub async fn instance(&self, name: &str) -> Result<Instance, ClientError> {
        self.get(&["instances", name]).await
    }

    pub async fn delete_instance(&self, name: &str) -> Result<Instance, ClientError> {
        self.call(Method::DELETE, &["instances", name], None::<&()>).await
    }

    pub async fn start_instance(&self, name: &str) -> Result<Instance, ClientError> {
        self.call(Method::POST, &["instances", name, "start"], None::<&()>).await
    }

    /// Opens what a failed task left, with so many cards of the kind that it had.
    pub async fn open_with_gpus(&self, name: &str, gpus: u32) -> Result<Instance, ClientError> {
        let mut url = self.url(&["instances", name, "start"])?;
        url.query_pairs_mut().append_pair("gpus", &gpus.to_string());
        self.call_url(Method::POST, url, None::<&()>).await
    }

    pub async fn stop_instance(&self, name: &str) -> Result<Instance, ClientError> {
        self.call(Method::POST, &["instances", name, "stop"], None::<&()>).await
    }

    pub async fn restart_instance(&self, name: &str) -> Result<Instance, ClientError> {
        self.call(Method::POST, &["instances", name, "restart"], None::<&()>).await
    }

    /// What the instance's command has written, as far as it is kept: its last 1000 lines if nothing else is said.
    pub async fn logs(
        &self,
        name: &str,
        part: &LogPart,
    ) -> Result<impl Stream<Item = Result<Bytes, ClientError>> + Unpin + use<>, ClientError> {
        self.pieces(self.log_url(&["instances", name, "logs"], part)?).await
    }

    /// The same, then on until the container ends.
    pub async fn follow_logs(&self, name: &str, part: &LogPart) -> Result<Process, ClientError> {
        let url = self.log_url(&["instances", name, "logs", "follow"], part)?;
        Process::connect(self, url, process::Framing::Prefixed).await
    }

    /// Starts a process in a running instance.
    pub async fn exec(&self, name: &str, start: &ExecStart) -> Result<Process, ClientError> {
        let url = self.url(&["instances", name, "exec"])?;
        let mut process = Process::connect(self, url, process::Framing::Prefixed).await?;
        process.input.say(start).await?;
        Ok(process)
    }

    /// Attaches to the persistent terminal `terminal`, which the first use makes.
    pub async fn terminal(&self, name: &str, terminal: &str, size: Size) -> Result<Process, ClientError> {
        let mut url = self.url(&["instances", name, "terminals", terminal])?;
        url.query_pairs_mut()
            .append_pair("cols", &size.cols.to_string())
            .append_pair("rows", &size.rows.to_string());
        Process::connect(self, url, process::Framing::Plain).await
    }

    /// The persistent terminals, oldest first.
    pub async fn terminals(&self, name: &str) -> Result<Vec<Terminal>, ClientError> {
        Ok(self.get::<Page<Terminal>>(&["instances", name, "terminals"]).await?.items)
    }

    /// Hangs the shell of a persistent terminal up.
    pub async fn close_terminal(&self, name: &str, terminal: &str) -> Result<(), ClientError> {
        self.tell(Method::DELETE, &["instances", name, "terminals", terminal], None::<&()>).await
    }
}

// === the rest ===

impl Client {
    pub async fn nodes(&self) -> Result<Vec<Node>, ClientError> {
        Ok(self.get::<Page<Node>>(&["nodes"]).await?.items)
    }

    pub async fn gpus(&self) -> Result<Vec<Gpu>, ClientError> {
        Ok(self.get::<Page<Gpu>>(&["gpus"]).await?.items)
    }

    /// Lists the steps that prepare the site. Empty once all are done.
    pub async fn preparing(&self) -> Result<Vec<PreparingStep>, ClientError> {
        Ok(self.get::<Page<PreparingStep>>(&["site", "preparing"]).await?.items)
    }

    /// Changes of one's own instances as they happen. What changed before the connection is not told again.
    pub async fn events(&self) -> Result<Events, ClientError> {
        let url = self.url(&["events"])?;
        let request = self.request(Method::GET, url.clone()).header("accept", "text/event-stream");
        Ok(Events::new(self.send(request, &url).await?, url))
    }
}
