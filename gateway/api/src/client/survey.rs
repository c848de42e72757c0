//! What a gateway tells of itself and its machines.

use jiff::Timestamp;
use reqwest::{Method, header::DATE};
use serde::Deserialize;

use super::{Client, ClientError, http::read};
use crate::cluster::Cluster;

/// How a gateway is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// Its clock when it answered, to the second.
    pub time: Option<Timestamp>,
    pub parts: Vec<Part>,
}

/// One part of a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Part {
    pub name: String,
    pub ok: bool,
    #[serde(default)]
    pub message: Option<String>,
}

#[derive(Deserialize)]
struct Health {
    parts: Vec<Part>,
}

#[derive(Deserialize)]
struct Description {
    info: Info,
}

#[derive(Deserialize)]
struct Info {
    version: String,
}

impl Client {
    /// `/healthz`: an answer also when a part is unwell.
    pub async fn survey(&self) -> Result<Survey, ClientError> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("healthz");
        }
        let request = self.plain(Method::GET, url.clone(), None::<&()>);
        let answer =
            request.send().await.map_err(|cause| ClientError::unreachable(&url, cause.without_url()))?;
        let time = answer.headers().get(DATE).and_then(|date| date.to_str().ok());
        let time = time.and_then(|date| jiff::fmt::rfc2822::parse(date).ok()).map(|date| date.timestamp());
        let Health { parts } = read(answer, &url).await?;
        Ok(Survey { time, parts })
    }

    /// The name and the port that it connects to.
    pub fn host_and_port(&self) -> Option<(String, u16)> {
        let host = self.base.host_str()?.trim_start_matches('[').trim_end_matches(']');
        Some((host.to_owned(), self.base.port_or_known_default()?))
    }

    /// The machines: what is there, and what is taken.
    pub async fn cluster(&self) -> Result<Cluster, ClientError> {
        self.get(&["cluster"]).await
    }

    /// The version of the gateway.
    pub async fn version(&self) -> Result<String, ClientError> {
        let Description { info } = self.get(&["openapi.json"]).await?;
        Ok(info.version)
    }
}
