//! Authorization: enforces what `.github/SECURITY.md` promises about requests.

use std::{net::IpAddr, sync::Arc};

use axum::{
    Extension,
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, Uri,
        header::{self, AUTHORIZATION, HOST, ORIGIN},
        uri::Authority,
    },
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{connections::Connection, error::ApiError, state::AppState};
use crate::instance::Instance;
use claude_mem_core::os;

/// Alternative header for the token, for clients that cannot set `Authorization`.
const TOKEN: &str = "x-claude-mem-token";
/// Set by browsers to the origin of a request. Pages cannot change it.
const FETCH_SITE: &str = "sec-fetch-site";
/// Maximum size of a request head.
pub(super) const HEAD_BYTES_MAX: usize = 32 << 10;

/// Content security policy: only our own files, and no inline code.
const POLICY: &str = "\
    default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src \
    'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// Set on every response.
const SECURITY_HEADERS: [(HeaderName, &str); 7] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// The sender of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller {
    /// Sent the token, or the key of a viewer.
    pub(super) is_authorized: bool,
}

/// Checks every request before any route, and sets the security headers of every response.
pub(super) async fn guard(
    State(state): State<Arc<AppState>>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut answer = match authorize(&state, &request) {
        Ok(caller) => {
            if caller.is_authorized
                && let Some(connection) = request.extensions().get::<Arc<Connection>>()
            {
                connection.trust();
            }
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    };
    let headers = answer.headers_mut();
    for (name, value) in SECURITY_HEADERS {
        // The viewer's page sets a stricter policy.
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    answer
}

/// Requires the token. Applied to every route that reads memories or writes.
pub(super) async fn known_only(
    Extension(caller): Extension<Caller>,
    request: Request,
    next: Next,
) -> Response {
    if caller.is_authorized {
        return next.run(request).await;
    }
    let mut answer = ApiError::unauthorized().into_response();
    answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    answer
}

fn authorize(state: &AppState, request: &Request) -> Result<Caller, ApiError> {
    check_head(request)?;
    let headers = request.headers();
    let host = host(headers, request.uri())?;
    if !is_ours(&host, &state.shared.instance) {
        return Err(ApiError::forbidden("the Host header does not name this machine"));
    }
    check_origin(headers, &host)?;
    // A page on another port of this machine is same-site, but not same-origin.
    let header = |name| headers.get(name).map(HeaderValue::as_bytes);
    let is_navigation = *request.method() == Method::GET
        && header("sec-fetch-mode") == Some(b"navigate")
        && header("sec-fetch-dest") == Some(b"document");
    match header(FETCH_SITE) {
        None | Some(b"same-origin" | b"none") => {}
        // A link to the viewer, for example in the file that `claude-mem viewer` opens. It carries
        // no key.
        Some(_) if is_navigation => return Ok(Caller { is_authorized: false }),
        Some(_) => return Err(ApiError::forbidden("requests from other pages are not allowed")),
    }
    let is_authorized = shown(headers).any(|shown| {
        is_same(shown, state.shared.instance.token.as_bytes()) || state.viewers.knows(shown)
    });
    Ok(Caller { is_authorized })
}

/// Rejects a long head. Hyper has a limit, too, but reads up to one more buffer before it checks.
fn check_head(request: &Request) -> Result<(), ApiError> {
    let fields = request.headers().iter();
    // Each line has a colon, a space and a line end; the first line has the version, too.
    let fields: usize = fields.map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    let uri = request.uri().to_string().len();
    let bytes = request.method().as_str().len() + uri + "  HTTP/1.1\r\n".len() + fields + 2;
    match bytes > HEAD_BYTES_MAX {
        true => Err(ApiError::head_too_large(HEAD_BYTES_MAX)),
        false => Ok(()),
    }
}

/// The host that the request names.
fn host(headers: &HeaderMap, uri: &Uri) -> Result<Authority, ApiError> {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(ApiError::bad("exactly one Host header is required"));
    };
    let host = host.to_str().ok().filter(|host| !host.contains('@'));
    let host: Option<Authority> = host.and_then(|host| host.parse().ok());
    let host = host.ok_or_else(|| ApiError::bad("the Host header is invalid"))?;
    match uri.authority() {
        Some(other) if *other != host => {
            Err(ApiError::bad("the Host header and the URL name different hosts"))
        }
        _ => Ok(host),
    }
}

/// Guards against DNS rebinding: a name could be made to point here, so only addresses and
/// `localhost` are accepted. If the worker listens on the network, any address of this machine and
/// its host name are accepted, too.
fn is_ours(host: &Authority, instance: &Instance) -> bool {
    let name = host.host();
    let listens_here: Option<IpAddr> = instance.host.parse().ok();
    let is_alone = listens_here.is_none_or(|address| address.is_loopback());
    match name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || !is_alone,
        Err(_) if name.eq_ignore_ascii_case("localhost") => true,
        Err(_) => !is_alone && *name == *os::host_name(),
    }
}

/// The `Origin` header, if set, must be ours.
fn check_origin(headers: &HeaderMap, host: &Authority) -> Result<(), ApiError> {
    match headers.get(ORIGIN) {
        Some(origin) if origin.as_bytes() != format!("http://{host}").as_bytes() => {
            Err(ApiError::forbidden("requests from other pages are not allowed"))
        }
        _ => Ok(()),
    }
}

/// All tokens and keys in the headers.
fn shown(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().as_bytes())
    });
    let plain = headers.get(TOKEN).map(HeaderValue::as_bytes);
    [bearer, plain].into_iter().flatten()
}

/// Constant-time comparison: compares the hashes of both.
pub(super) fn is_same(shown: &[u8], secret: &[u8]) -> bool {
    blake3::hash(shown) == blake3::hash(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(host: &str) -> Instance {
        Instance::new(host, 37777, 1).unwrap()
    }

    fn is_host_ours(name: &str, listens_on: &str) -> bool {
        is_ours(&name.parse().unwrap(), &instance(listens_on))
    }

    #[test]
    fn only_names_that_others_cannot_claim_are_accepted() {
        for name in ["127.0.0.1:37777", "localhost:37777", "LOCALHOST", "[::1]:37777", "127.9.9.9"]
        {
            assert!(is_host_ours(name, "127.0.0.1"), "{name}");
        }
        let foreign =
            ["evil.example", "localhost.evil.example:37777", "10.0.0.7:37777", "localhost."];
        for name in foreign {
            assert!(!is_host_ours(name, "127.0.0.1"), "{name}");
        }
        assert!(is_host_ours("10.0.0.7:37777", "0.0.0.0"));
        assert!(!is_host_ours("evil.example", "0.0.0.0"));
    }

    #[test]
    fn a_secret_matches_only_completely() {
        assert!(is_same(b"secret", b"secret"));
        for other in [&b""[..], b"secre", b"secrets", b"Secret"] {
            assert!(!is_same(other, b"secret"));
        }
    }

    #[test]
    fn a_request_needs_exactly_one_host() {
        let uri: Uri = "/".parse().unwrap();
        let mut headers = HeaderMap::new();
        assert!(host(&headers, &uri).is_err());
        headers.append(HOST, HeaderValue::from_static("localhost"));
        assert!(host(&headers, &uri).is_ok());
        assert!(host(&headers, &"http://other/".parse().unwrap()).is_err());
        headers.append(HOST, HeaderValue::from_static("localhost"));
        assert!(host(&headers, &uri).is_err());
        let userinfo = HeaderMap::from_iter([(HOST, HeaderValue::from_static("x@localhost"))]);
        assert!(host(&userinfo, &uri).is_err());
    }
}
