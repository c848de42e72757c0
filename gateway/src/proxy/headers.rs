//! What of a request reaches an app, and what of its answer reaches the browser.
//!
//! The same two functions serve plain requests and upgrades: a check that one path has and the other lacks is how
//! cookies of gateways leak. Nothing that is ours goes in, and what says who the visitor is comes from us alone.

use std::net::IpAddr;

use aws_lc_rs::digest;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{self, Entry},
};

/// The cookie of an app's host.
pub(super) const COOKIE: &str = "__Host-berth-app";
/// The same where there is no TLS, or where several apps share a host.
pub(super) const PLAIN_COOKIE: &str = "berth-app";
/// Cookies that are ours, here or at the console.
const OURS: [&str; 4] = [COOKIE, PLAIN_COOKIE, "__Host-berth", "berth"];

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
const SERVICE_WORKER_ALLOWED: HeaderName = HeaderName::from_static("service-worker-allowed");
/// Headers of answers that browsers keep for the whole host, for all below it, or for the domain that it shares with the
/// console: to use TLS only, to empty or sign out, to go elsewhere, to report each address that is asked for.
static OF_THE_HOST: [HeaderName; 11] = [
    header::ALT_SVC,
    header::STRICT_TRANSPORT_SECURITY,
    header::PUBLIC_KEY_PINS,
    header::PUBLIC_KEY_PINS_REPORT_ONLY,
    HeaderName::from_static("clear-site-data"),
    HeaderName::from_static("expect-ct"),
    HeaderName::from_static("nel"),
    HeaderName::from_static("report-to"),
    HeaderName::from_static("sec-session-registration"),
    HeaderName::from_static("secure-session-registration"),
    HeaderName::from_static("set-login"),
];
/// What RFC 6455 puts behind a key.
const WEBSOCKET_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Headers that are about one connection. Not a constant: that would be made anew for each header that is looked at.
static HOP_BY_HOP: [HeaderName; 5] = [
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// What an app is told about a request, and what of it is ours.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) from: IpAddr,
    pub(super) secure: bool,
    /// The path that was taken away, in path mode.
    pub(super) prefix: Option<&'a str>,
    /// The values of `Authorization` that carry a key of ours, by their positions.
    pub(super) keys: &'a [usize],
}

/// Why a request goes no further.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Meddling;

/// Takes out all that is ours or about one connection, then says where the request came from. `Host` and `Origin` stay
/// what they are. An upgrade stays one.
pub(super) fn sanitize_upstream_request(headers: &mut HeaderMap, facts: &Facts<'_>) -> Result<(), Meddling> {
    let upgrade = upgrade_of(headers).cloned();
    let wants_trailers = headers.get(header::TE).is_some_and(|value| names(value, "trailers"));
    for name in named_by_connection(headers)? {
        headers.remove(name);
    }
    let is_out = |name: &HeaderName| *name == header::TE || is_of_one_connection(name) || is_ours(name);
    remove_where(headers, |name| is_out(name) || is_an_alias(name));
    without_our_keys(headers, facts.keys);
    without_our_cookies(headers);

    if let Some(host) = headers.get(header::HOST).cloned() {
        headers.insert(FORWARDED_HOST, host);
    }
    if let Ok(from) = HeaderValue::try_from(super::text_of(facts.from.to_canonical())) {
        headers.insert(FORWARDED_FOR, from);
    }
    let scheme = if facts.secure { "https" } else { "http" };
    headers.insert(FORWARDED_PROTO, HeaderValue::from_static(scheme));
    if let Some(prefix) = facts.prefix.and_then(|prefix| HeaderValue::from_str(prefix).ok()) {
        headers.insert(FORWARDED_PREFIX, prefix);
    }
    if let Some(protocol) = upgrade {
        headers.insert(header::UPGRADE, protocol);
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    } else if wants_trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
    }
    Ok(())
}

/// Takes out of a request's trailers what an app believes of a request's head.
pub(super) fn sanitize_request_trailers(trailers: &mut HeaderMap) {
    let is_out = |name: &HeaderName| is_ours(name) || is_needed(name) || HOP_BY_HOP.contains(name);
    remove_where(trailers, |name| is_out(name) || is_an_alias(name));
}

/// What an answer may be about.
#[derive(Debug)]
pub(super) struct Bounds<'a> {
    /// Who may show the page in a frame, as a policy says it.
    pub(super) frame_ancestors: &'a HeaderValue,
    /// Where the app's own part begins, if several apps share the origin.
    pub(super) below: Option<&'a str>,
    /// There is no TLS, nor a browser on this very machine: what is marked as secure would be lost.
    pub(super) plain: bool,
    pub(super) is_upgrade: bool,
}

/// Takes out what is about one connection, and what would reach beyond the app's own origin.
pub(super) fn sanitize_upstream_response(headers: &mut HeaderMap, bounds: &Bounds<'_>) {
    let upgrade = headers.get(header::UPGRADE).filter(|_| bounds.is_upgrade).cloned();
    for name in named_by_connection(headers).unwrap_or_default() {
        headers.remove(name);
    }
    remove_where(headers, |name| is_of_one_connection(name) || OF_THE_HOST.contains(name));
    if let Some(below) = bounds.below
        && headers.remove(SERVICE_WORKER_ALLOWED).is_some()
        && let Ok(below) = HeaderValue::from_str(below)
    {
        // However far the app wants its worker to reach, it is no further than its own part.
        headers.insert(SERVICE_WORKER_ALLOWED, below);
    }
    if headers.contains_key(header::SET_COOKIE) {
        let in_frames = bounds.below.is_none() && !bounds.plain;
        let cookies: Vec<HeaderValue> = headers
            .get_all(header::SET_COOKIE)
            .iter()
            .filter_map(|value| own_cookie(value, in_frames))
            .collect();
        headers.remove(header::SET_COOKIE);
        for cookie in cookies {
            headers.append(header::SET_COOKIE, cookie);
        }
    }
    only_ours_says_who_frames(headers);
    headers.append(header::CONTENT_SECURITY_POLICY, bounds.frame_ancestors.clone());
    if let Some(protocol) = upgrade {
        headers.insert(header::UPGRADE, protocol);
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    }
}

/// The protocol that a request wants to change to. Only that of WebSockets: behind another, such as `h2c`, there are
/// requests again, which nobody here would look at.
pub(super) fn upgrade_of(headers: &HeaderMap) -> Option<&HeaderValue> {
    let asked = || headers.get_all(header::CONNECTION).iter().any(|value| names(value, "upgrade"));
    headers
        .get(header::UPGRADE)
        .filter(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket") && asked())
}

/// What an app has to answer to the handshake of a WebSocket; `None` if a request does not ask for it as it should.
pub(super) fn agreement(headers: &HeaderMap) -> Option<HeaderValue> {
    let key = only(headers, &header::SEC_WEBSOCKET_KEY)?;
    let mut digest = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    digest.update(key.as_bytes());
    digest.update(WEBSOCKET_GUID);
    HeaderValue::try_from(STANDARD.encode(digest.finish())).ok()
}

/// Whether an app has understood the handshake that it agrees to. One that only echoes what it was sent has not, and what
/// follows could be another protocol.
pub(super) fn agrees(answer: &HeaderMap, agreement: &HeaderValue) -> bool {
    upgrade_of(answer).is_some()
        && only(answer, &header::UPGRADE).is_some()
        && only(answer, &header::SEC_WEBSOCKET_ACCEPT) == Some(agreement)
}

fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut all = headers.get_all(name).iter();
    all.next().filter(|_| all.next().is_none())
}

/// The values of one of our cookies in a request.
pub(super) fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(move |pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

fn names(value: &HeaderValue, wanted: &str) -> bool {
    value.to_str().is_ok_and(|text| text.split(',').any(|word| word.trim().eq_ignore_ascii_case(wanted)))
}

/// The headers that `Connection` says are about one connection. One that names what apps are to rely on meddles.
fn named_by_connection(headers: &HeaderMap) -> Result<Vec<HeaderName>, Meddling> {
    let mut named = Vec::new();
    for value in headers.get_all(header::CONNECTION) {
        for word in value.to_str().map_err(|_| Meddling)?.split(',').map(str::trim) {
            let keeps = ["", "close", "keep-alive", "upgrade", "te"];
            if keeps.iter().any(|known| word.eq_ignore_ascii_case(known)) {
                continue;
            }
            let name: HeaderName = word.parse().map_err(|_| Meddling)?;
            if is_ours(&name) || is_needed(&name) {
                return Err(Meddling);
            }
            named.push(name);
        }
    }
    Ok(named)
}

/// Takes headers out in one look at all of them: most have nothing to be taken out, and to ask for each by its name costs
/// more than to look at those that there are.
fn remove_where(headers: &mut HeaderMap, is_out: impl Fn(&HeaderName) -> bool) {
    let out: Vec<HeaderName> = headers.keys().filter(|name| is_out(name)).cloned().collect();
    for name in out {
        headers.remove(name);
    }
}

fn is_of_one_connection(name: &HeaderName) -> bool {
    *name == header::CONNECTION || HOP_BY_HOP.contains(name)
}

/// Headers that only we may set.
fn is_ours(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.starts_with("x-forwarded")
        || name.starts_with("x-berth-")
        || matches!(
            name,
            "forwarded"
                | "x-real-ip"
                | "x-client-ip"
                | "x-cluster-client-ip"
                | "true-client-ip"
                | "remote-addr"
                | "remote-user"
                | "x-remote-user"
                | "x-authenticated-user"
                | "x-auth-request-user"
                | "x-webauth-user"
                | "x-original-url"
                | "x-rewrite-url"
        )
}

/// Whether programs that know only letters, digits and one sign between them, as CGI and its heirs do, take a name for one
/// that we set, take out or obey: to them `X_Forwarded_For` is `X-Forwarded-For`.
fn is_an_alias(name: &HeaderName) -> bool {
    let is_sign = |byte: u8| !byte.is_ascii_alphanumeric() && byte != b'-';
    if !name.as_str().bytes().any(is_sign) {
        return false;
    }
    let read: Vec<u8> = name.as_str().bytes().map(|byte| if is_sign(byte) { b'-' } else { byte }).collect();
    HeaderName::from_bytes(&read)
        .is_ok_and(|read| is_of_one_connection(&read) || is_ours(&read) || is_needed(&read))
}

/// Headers that no client may have taken away.
fn is_needed(name: &HeaderName) -> bool {
    [
        header::HOST,
        header::ORIGIN,
        header::COOKIE,
        header::AUTHORIZATION,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
        header::SEC_WEBSOCKET_KEY,
        header::SEC_WEBSOCKET_VERSION,
    ]
    .contains(name)
        || name.as_str().starts_with("sec-fetch-")
}

fn without_our_keys(headers: &mut HeaderMap, keys: &[usize]) {
    if keys.is_empty() {
        return;
    }
    let all = headers.get_all(header::AUTHORIZATION).iter().enumerate();
    let others: Vec<_> = all.filter(|(nth, _)| !keys.contains(nth)).map(|(_, value)| value.clone()).collect();
    headers.remove(header::AUTHORIZATION);
    for value in others {
        headers.append(header::AUTHORIZATION, value);
    }
}

fn without_our_cookies(headers: &mut HeaderMap) {
    let Entry::Occupied(found) = headers.entry(header::COOKIE) else { return };
    let is_ours = |pair: &&[u8]| {
        let name = memchr::memchr(b'=', pair).map_or(*pair, |end| &pair[..end]).trim_ascii();
        OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours.as_bytes()))
    };
    let (mut left, mut is_other) = (Vec::new(), found.iter().count() > 1);
    for value in found.iter() {
        for pair in value.as_bytes().split(|&byte| byte == b';') {
            if is_ours(&pair) {
                is_other = true;
                continue;
            }
            if !left.is_empty() {
                left.extend_from_slice(b"; ");
            }
            left.extend_from_slice(pair.trim_ascii());
        }
    }
    if !is_other {
        return; // byte for byte what the browser sent
    }
    found.remove_entry_mult();
    if !left.is_empty()
        && let Ok(value) = HeaderValue::from_bytes(&left)
    {
        headers.insert(header::COOKIE, value);
    }
}

/// Takes out what an app says of frames. Apps allow themselves alone, and know nothing of the console that frames them;
/// what we say instead allows these two.
fn only_ours_says_who_frames(headers: &mut HeaderMap) {
    headers.remove(header::X_FRAME_OPTIONS);
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        return;
    }
    let others = |value: &HeaderValue| {
        let Ok(text) = value.to_str() else { return Some(value.clone()) };
        let is_about_frames = |directive: &&str| {
            let name = directive.split_ascii_whitespace().next().unwrap_or_default();
            name.eq_ignore_ascii_case("frame-ancestors")
        };
        let left: Vec<_> = text.split(';').filter(|directive| !is_about_frames(directive)).collect();
        let left = left.join(";");
        (!left.trim().is_empty()).then(|| HeaderValue::from_str(left.trim())).and_then(Result::ok)
    };
    let policies: Vec<_> =
        headers.get_all(header::CONTENT_SECURITY_POLICY).iter().filter_map(others).collect();
    headers.remove(header::CONTENT_SECURITY_POLICY);
    for policy in policies {
        headers.append(header::CONTENT_SECURITY_POLICY, policy);
    }
}

/// A cookie that an app sets, as one of its own host alone; `None` if it has the name of one of ours.
///
/// At a host of its own, an app in the console's frame is another site than the console, where browsers keep no cookie
/// unless it says so. It is then kept apart for each site that frames, so that saying so lets nobody else use it.
fn own_cookie(value: &HeaderValue, in_frames: bool) -> Option<HeaderValue> {
    let mut parts = value.as_bytes().split(|&byte| byte == b';');
    let pair = parts.next().unwrap_or_default();
    let name = pair.split(|&byte| byte == b'=').next().unwrap_or_default().trim_ascii();
    if OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours.as_bytes())) {
        return None;
    }
    let replaced: &[&str] =
        if in_frames { &["domain", "secure", "samesite", "partitioned"] } else { &["domain"] };
    let is_kept = |part: &&[u8]| {
        let name = part.split(|&byte| byte == b'=').next().unwrap_or_default().trim_ascii();
        !replaced.iter().any(|attribute| name.eq_ignore_ascii_case(attribute.as_bytes()))
    };
    let mut own = pair.to_vec();
    for part in parts.filter(is_kept) {
        own.push(b';');
        own.extend_from_slice(part);
    }
    if in_frames {
        own.extend_from_slice(b"; Secure; SameSite=None; Partitioned");
    }
    HeaderValue::from_bytes(&own).ok()
}
