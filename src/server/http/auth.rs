//! Who may ask. Each line of `.github/SECURITY.md` that speaks of requests is kept here.

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

use super::{connections::Connection, error::Refusal, state::Site};
use crate::instance::Presence;
use claude_mem_core::os;

/// Another way to show the token, for programs that cannot set the usual header.
const TOKEN: &str = "x-claude-mem-token";
/// What a browser says of where a request comes from. Pages cannot set it.
const FETCH_SITE: &str = "sec-fetch-site";
/// The longest head of a request.
pub(super) const HEAD_BYTES_MAX: usize = 32 << 10;

/// Only our own files, and nothing in a line of HTML.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

/// On every answer.
const SEALS: [(HeaderName, &str); 7] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Who is asking.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visitor {
    /// It has shown the token, or is the viewer.
    pub(super) is_known: bool,
}

/// Looks at every request before anybody else, and seals every answer.
pub(super) async fn guard(
    State(site): State<Arc<Site>>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut answer = match admit(&site, &request) {
        Ok(visitor) => {
            if visitor.is_known
                && let Some(connection) = request.extensions().get::<Arc<Connection>>()
            {
                connection.trust();
            }
            request.extensions_mut().insert(visitor);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    };
    let headers = answer.headers_mut();
    for (name, value) in SEALS {
        // The viewer's page is stricter with itself.
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    answer
}

/// Stands before everything that reads memory or writes.
pub(super) async fn known_only(
    Extension(visitor): Extension<Visitor>,
    request: Request,
    next: Next,
) -> Response {
    if visitor.is_known {
        return next.run(request).await;
    }
    let mut answer = Refusal::unauthorized().into_response();
    answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    answer
}

fn admit(site: &Site, request: &Request) -> Result<Visitor, Refusal> {
    check_head(request)?;
    let headers = request.headers();
    let host = host(headers, request.uri())?;
    if !is_ours(&host, &site.shared.presence) {
        return Err(Refusal::forbidden("this is not the name of this machine"));
    }
    check_origin(headers, &host)?;
    // Another page of this machine, on another port, is of the same site but not ours.
    let told = |name| headers.get(name).map(HeaderValue::as_bytes);
    let is_navigation = *request.method() == Method::GET
        && told("sec-fetch-mode") == Some(b"navigate")
        && told("sec-fetch-dest") == Some(b"document");
    match told(FETCH_SITE) {
        None | Some(b"same-origin" | b"none") => {}
        // A link to the viewer, also in the file that `claude-mem viewer` opens. A browser sends no key with it.
        Some(_) if is_navigation => return Ok(Visitor { is_known: false }),
        Some(_) => return Err(Refusal::forbidden("requests of other pages are not answered")),
    }
    let is_known = shown(headers).any(|shown| {
        is_same(shown, site.shared.presence.token.as_bytes()) || site.viewers.knows(shown)
    });
    Ok(Visitor { is_known })
}

/// Refuses a head that is too long. Hyper has a limit, too, but reads up to one more buffer before it looks.
fn check_head(request: &Request) -> Result<(), Refusal> {
    let fields = request.headers().iter();
    // Each line has a colon, a blank and a line end; the first line has the version, too.
    let fields: usize = fields.map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    let uri = request.uri().to_string().len();
    let bytes = request.method().as_str().len() + uri + "  HTTP/1.1\r\n".len() + fields + 2;
    match bytes > HEAD_BYTES_MAX {
        true => Err(Refusal::head_too_large(HEAD_BYTES_MAX)),
        false => Ok(()),
    }
}

/// The one name that the request was sent to.
fn host(headers: &HeaderMap, uri: &Uri) -> Result<Authority, Refusal> {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(Refusal::bad("there must be one Host header"));
    };
    let host = host.to_str().ok().filter(|host| !host.contains('@'));
    let host: Option<Authority> = host.and_then(|host| host.parse().ok());
    let host = host.ok_or_else(|| Refusal::bad("the Host header cannot be read"))?;
    match uri.authority() {
        Some(other) if *other != host => Err(Refusal::bad("two hosts are named")),
        _ => Ok(host),
    }
}

/// A name that somebody else could make point here is none of ours: only addresses, and `localhost`. Where the
/// worker listens to others, it is reached by any address of this machine, or by the machine's own name.
fn is_ours(host: &Authority, presence: &Presence) -> bool {
    let name = host.host();
    let listens_here: Option<IpAddr> = presence.host.parse().ok();
    let is_alone = listens_here.is_none_or(|address| address.is_loopback());
    match name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || !is_alone,
        Err(_) if name.eq_ignore_ascii_case("localhost") => true,
        Err(_) => !is_alone && *name == *os::host_name(),
    }
}

/// The page that sends the request, if any, must be ours.
fn check_origin(headers: &HeaderMap, host: &Authority) -> Result<(), Refusal> {
    match headers.get(ORIGIN) {
        Some(origin) if origin.as_bytes() != format!("http://{host}").as_bytes() => {
            Err(Refusal::forbidden("requests of other pages are not answered"))
        }
        _ => Ok(()),
    }
}

/// What was shown as a token or key.
fn shown(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().as_bytes())
    });
    let plain = headers.get(TOKEN).map(HeaderValue::as_bytes);
    [bearer, plain].into_iter().flatten()
}

/// Compares without telling by its time how much was right: hashes of both are compared, and those as a whole.
pub(super) fn is_same(shown: &[u8], secret: &[u8]) -> bool {
    blake3::hash(shown) == blake3::hash(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presence(host: &str) -> Presence {
        Presence::new(host, 37777, 1).unwrap()
    }

    fn is_host_ours(name: &str, listens_on: &str) -> bool {
        is_ours(&name.parse().unwrap(), &presence(listens_on))
    }

    #[test]
    fn only_names_that_nobody_else_can_give_are_ours() {
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
    fn a_secret_is_the_same_only_as_a_whole() {
        assert!(is_same(b"secret", b"secret"));
        for other in [&b""[..], b"secre", b"secrets", b"Secret"] {
            assert!(!is_same(other, b"secret"));
        }
    }

    #[test]
    fn two_hosts_or_none_are_no_host() {
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
