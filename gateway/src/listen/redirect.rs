//! The answer of an address where the site no longer is, or not without TLS: the one where it is, with the same path.

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;

/// Where a redirect leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// An address such as `https://berth.example.org`.
    Url(String),
    /// The same host by `https` on this port.
    SameHost(u16),
}

impl Target {
    /// 308: the method and the body stay what they are.
    pub(crate) fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::default());
        match self.location(request) {
            Some(location) => {
                *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
                response.headers_mut().insert(header::LOCATION, location);
            }
            None => *response.status_mut() = StatusCode::BAD_REQUEST,
        }
        response
    }

    fn location<B>(&self, request: &Request<B>) -> Option<HeaderValue> {
        let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let path = if path.starts_with('/') { path } else { "/" };
        let location = match self {
            Self::Url(url) => format!("{url}{path}"),
            Self::SameHost(port) => {
                let host = request.headers().get(header::HOST)?.to_str().ok()?;
                let host =
                    host.parse::<http::uri::Authority>().ok().filter(|host| !host.as_str().contains('@'))?;
                match port {
                    443 => format!("https://{}{path}", host.host()),
                    port => format!("https://{}:{port}{path}", host.host()),
                }
            }
        };
        location.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_comes_along_and_the_host_does_not_lead_astray() {
        let location = |target: &Target, host: &str, path: &str| {
            let request = Request::builder().uri(path).header(header::HOST, host).body(()).unwrap();
            let answer = target.answer(&request);
            answer.headers().get(header::LOCATION).map(|value| value.to_str().unwrap().to_owned())
        };
        let url = Target::Url("https://berth.example.org".to_owned());
        assert_eq!(location(&url, "old:7443", "/a?b=c").unwrap(), "https://berth.example.org/a?b=c");
        assert_eq!(location(&url, "old", "*").unwrap(), "https://berth.example.org/");
        assert_eq!(
            location(&url, "old", "//evil.example").unwrap(),
            "https://berth.example.org//evil.example"
        );
        let same = Target::SameHost(8443);
        assert_eq!(location(&same, "here:80", "/x").unwrap(), "https://here:8443/x");
        assert_eq!(location(&Target::SameHost(443), "[::1]", "/").unwrap(), "https://[::1]/");
        assert_eq!(location(&same, "user@here", "/"), None);
        assert_eq!(location(&same, "he re", "/"), None);
    }
}
