//! One HTTP call: its address, its limits, and how an answer becomes a value or an error.

use std::{sync::Arc, time::Duration};

use reqwest::{
    Method, RequestBuilder, Response, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION},
    redirect::Policy,
};
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};
use rustls_platform_verifier::BuilderVerifierExt as _;
use serde::{Serialize, de::DeserializeOwned};

use super::{Client, ClientError};
use crate::{
    Page,
    error::{Code, PROBLEM_JSON, Problem},
};

/// How long to try to reach the gateway.
pub(super) const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long one plain call may take. The gateway answers at once and works on afterwards.
const CALL_LIMIT: Duration = Duration::from_mins(1);
/// How long a streamed body may stay silent; the gateway says something at least every 15 s.
const SILENCE_LIMIT: Duration = Duration::from_mins(1);
/// The largest body of a plain call: thousands of instances fit.
const BODY_LIMIT: usize = 16 << 20;
/// As many as a gateway gives at once.
const PAGE_MAX: u32 = 1000;

impl Client {
    /// A client of the gateway at `base`, such as `http://localhost:8080`. Nothing is sent yet.
    pub fn new(base: &str, token: Option<String>) -> Result<Self, ClientError> {
        let bad = |reason| ClientError::BadAddress { address: base.to_owned(), reason };
        if !base.starts_with("http://") && !base.starts_with("https://") {
            return Err(bad("it begins with neither `http://` nor `https://`"));
        }
        let url = Url::parse(base).map_err(|_| bad("it is not a URL"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad("a name or password does not belong in it"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(bad("it holds a `?` or a `#`"));
        }
        let authorization = token.map(bearer).transpose().map_err(bad)?;
        let tls = tls(&url).map_err(|cause| ClientError::unreachable(&url, cause))?;
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls.clone())
            .user_agent(concat!("berth/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_LIMIT)
            .read_timeout(SILENCE_LIMIT)
            .redirect(Policy::none())
            .no_proxy()
            .build()
            .map_err(|cause| ClientError::unreachable(&url, cause))?;
        Ok(Self { http, tls: Arc::new(tls), base: url, authorization })
    }

    /// The address that it was made with.
    pub fn base(&self) -> &str {
        self.base.as_str()
    }

    /// `/api/v1` and `path`, each part of which becomes exactly one segment whatever it holds.
    pub(super) fn url(&self, path: &[&str]) -> Result<Url, ClientError> {
        // `Url` would drop these, and with them turn one call into another.
        if let Some(name) = path.iter().find(|part| matches!(**part, "" | "." | "..")) {
            return Err(Problem {
                code: Code::NotFound,
                message: format!("nothing is named `{name}`"),
                hint: None,
                pointer: None,
                params: [("name".to_owned(), (*name).to_owned())].into(),
                notes: Vec::new(),
                request_id: String::new(),
            }
            .into());
        }
        let mut url = self.base.clone();
        match url.path_segments_mut() {
            Ok(mut segments) => {
                segments.pop_if_empty().extend(["api", "v1"]).extend(path);
            }
            Err(()) => return Err(ClientError::protocol(&self.base, "it has no path")),
        }
        Ok(url)
    }

    pub(super) fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.http.request(method, url);
        match &self.authorization {
            Some(value) => request.header(AUTHORIZATION, value),
            None => request,
        }
    }

    /// Sends, and turns every answer but a success into an error.
    pub(super) async fn send(&self, request: RequestBuilder, url: &Url) -> Result<Response, ClientError> {
        let answer =
            request.send().await.map_err(|cause| ClientError::unreachable(url, cause.without_url()))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        if let Some(to) = answer.headers().get(LOCATION).and_then(|to| to.to_str().ok()) {
            return Err(ClientError::protocol(url, format!("it redirects to `{to}`")));
        }
        let is_problem = answer
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.starts_with(PROBLEM_JSON));
        let body = bounded(answer, url).await?;
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) if is_problem => Err(problem.into()),
            Ok(_) | Err(_) => Err(ClientError::protocol(url, format!("status {status}"))),
        }
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, ClientError> {
        self.call(Method::GET, path, None::<&()>).await
    }

    /// The same for an address with a query.
    pub(super) async fn get_url<T: DeserializeOwned>(&self, url: Url) -> Result<T, ClientError> {
        let answer = self.send(self.plain(Method::GET, url.clone(), None::<&()>), &url).await?;
        read(answer, &url).await
    }

    /// A whole list of things, newest first, page after page.
    pub(super) async fn all_pages<T: DeserializeOwned>(
        &self,
        kind: &str,
        all: bool,
        id: impl Fn(&T) -> String + Send,
    ) -> Result<Vec<T>, ClientError> {
        let mut found: Vec<T> = Vec::new();
        loop {
            let after = found.last().map(&id);
            let page = self.page(kind, all, after.as_deref(), PAGE_MAX).await?;
            let is_last = page.len() < PAGE_MAX as usize;
            found.extend(page);
            if is_last {
                return Ok(found);
            }
        }
    }

    /// One's own things, or all that one may see: those that come after `after`, the newest when it is absent.
    pub(super) async fn page<T: DeserializeOwned>(
        &self,
        kind: &str,
        all: bool,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<T>, ClientError> {
        let mut url = self.url(&[kind])?;
        let mut query = url.query_pairs_mut();
        query.append_pair("limit", &limit.to_string());
        if all {
            query.append_pair("all", "true");
        }
        if let Some(after) = after {
            query.append_pair("after", after);
        }
        drop(query);
        Ok(self.get_url::<Page<T>>(url).await?.items)
    }

    /// A call that answers with JSON.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
        body: Option<&impl Serialize>,
    ) -> Result<T, ClientError> {
        self.call_url(method, self.url(path)?, body).await
    }

    pub(super) async fn call_url<T: DeserializeOwned>(
        &self,
        method: Method,
        url: Url,
        body: Option<&impl Serialize>,
    ) -> Result<T, ClientError> {
        let answer = self.send(self.plain(method, url.clone(), body), &url).await?;
        read(answer, &url).await
    }

    /// A call that answers with nothing.
    pub(super) async fn tell(
        &self,
        method: Method,
        path: &[&str],
        body: Option<&impl Serialize>,
    ) -> Result<(), ClientError> {
        let url = self.url(path)?;
        self.send(self.plain(method, url.clone(), body), &url).await?;
        Ok(())
    }

    pub(super) fn plain(&self, method: Method, url: Url, body: Option<&impl Serialize>) -> RequestBuilder {
        let request = self.request(method, url).timeout(CALL_LIMIT);
        match body {
            Some(body) => request.json(body),
            None => request,
        }
    }

    pub(super) fn tls(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.tls)
    }

    pub(super) fn authorization(&self) -> Option<HeaderValue> {
        self.authorization.clone()
    }
}

/// TLS with the machine's own roots. Without TLS in the address none are read, so that a machine without any still
/// reaches a gateway over plain HTTP.
fn tls(url: &Url) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?;
    let builder = if url.scheme() == "https" {
        builder.with_platform_verifier()?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
}

fn bearer(mut token: String) -> Result<HeaderValue, &'static str> {
    token.insert_str(0, "Bearer ");
    let mut value = HeaderValue::try_from(token)
        .map_err(|_| "the token given for it holds characters that no token has")?;
    value.set_sensitive(true);
    Ok(value)
}

pub(super) async fn read<T: DeserializeOwned>(answer: Response, url: &Url) -> Result<T, ClientError> {
    let body = bounded(answer, url).await?;
    serde_json::from_slice(&body)
        .map_err(|cause| ClientError::protocol(url, format!("the answer is not understood: {cause}")))
}

/// Fetches what anyone can read, at most so many bytes of it.
pub async fn fetch(address: &str, most: usize) -> Result<Vec<u8>, ClientError> {
    let wrong = |reason: &'static str| ClientError::BadAddress { address: address.to_owned(), reason };
    let url = Url::parse(address).map_err(|_| wrong("it is not an address"))?;
    let tls = tls(&url).map_err(|_| wrong("TLS cannot be used here"))?;
    let http = reqwest::Client::builder().use_preconfigured_tls(tls).timeout(CALL_LIMIT).build();
    let http = http.map_err(|cause| ClientError::unreachable(&url, cause))?;
    let answer = http.get(url.clone()).send().await.map_err(|cause| ClientError::unreachable(&url, cause))?;
    if !answer.status().is_success() {
        return Err(ClientError::protocol(&url, format!("status {}", answer.status())));
    }
    let mut body = Vec::new();
    let mut answer = answer;
    while let Some(chunk) = answer.chunk().await.map_err(|cause| ClientError::unreachable(&url, cause))? {
        body.extend_from_slice(&chunk);
        if body.len() >= most {
            break;
        }
    }
    Ok(body)
}

async fn bounded(mut answer: Response, url: &Url) -> Result<Vec<u8>, ClientError> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|cause| ClientError::unreachable(url, cause))? {
        if body.len() + chunk.len() > BODY_LIMIT {
            return Err(ClientError::protocol(url, format!("the answer is larger than {BODY_LIMIT} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_segment_whatever_it_holds() {
        let client = Client::new("http://localhost:8080/", None).unwrap();
        let check = |name, url: &str| assert_eq!(client.url(&["instances", name]).unwrap().as_str(), url);
        check("train_1", "http://localhost:8080/api/v1/instances/train_1");
        check("a/../b?c#d", "http://localhost:8080/api/v1/instances/a%2F..%2Fb%3Fc%23d");
        check("名字", "http://localhost:8080/api/v1/instances/%E5%90%8D%E5%AD%97");
        for name in ["", ".", ".."] {
            assert_eq!(client.url(&["instances", name]).unwrap_err().code(), Some(Code::NotFound));
        }
    }

    #[test]
    fn an_address_is_checked_before_anything_is_sent() {
        for right in
            ["http://localhost:8080", "https://berth.example.org/", "http://[::1]:8080", "https://a/b"]
        {
            assert!(Client::new(right, None).is_ok(), "{right}");
        }
        for wrong in
            ["", "localhost:8080", "ftp://a", "http://", "http://u:p@a", "http://a/?q", "http://a/#f"]
        {
            assert!(Client::new(wrong, None).is_err(), "{wrong}");
        }
        assert!(Client::new("http://a", Some("two\nlines".to_owned())).is_err());
    }
}
