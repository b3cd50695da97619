//! The viewer: its files, and how they are served.
//!
//! HTML, CSS and plain modules without a build step or external files. They
//! contain no memories: those come from the API, which needs a key.

mod files;

use axum::{
    Router,
    body::Body,
    extract::{Path, Request},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode,
        header::{
            ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
            CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
        },
    },
    response::{IntoResponse, Response},
    routing::get,
};
use files::{File, PAGE};

/// Every path of the page. `router.js` decides what it shows.
const PLACES: &[&str] = &[
    "/",
    "/s",
    "/s/{session}",
    "/m/{memory}",
    "/p",
    "/p/{project}",
    "/decisions",
    "/files",
    "/stats",
    "/context",
    "/replay",
    "/replay/{generation}",
    "/settings",
    "/log",
    "/events",
    "/open",
];

/// Content security policy: only our own files, no inline scripts, and Trusted Types.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// Routes of the page and its files.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let page = || get(|request: Request| async move { serve(&PAGE, request.headers()) });
    let router = PLACES.iter().fold(Router::new(), |router, place| router.route(place, page()));
    router.route("/assets/{name}", get(asset)).route("/favicon.ico", get(icon))
}

/// The page for an unknown address; `None` if the request is not for a page.
pub(crate) fn not_found(request: &Request) -> Option<Response> {
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    let is_for_page = request.method() == Method::GET && accept?.contains("text/html");
    is_for_page.then(|| (StatusCode::NOT_FOUND, serve(&PAGE, &HeaderMap::new())).into_response())
}

async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    match files::find(&name) {
        Some(file) => serve(file, &headers),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Browsers always request it.
async fn icon(headers: HeaderMap) -> Response {
    asset(Path("mark.svg".into()), headers).await
}

/// The file, or 304 if the browser has it.
fn serve(file: &'static File, headers: &HeaderMap) -> Response {
    let accepts = |name, text: &str| {
        let value = headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        value.is_some_and(|value| value.contains(text))
    };
    let mut response = match accepts(IF_NONE_MATCH, file.tag()) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false if accepts(ACCEPT_ENCODING, "gzip") => {
            let mut response = Body::from(file.packed()).into_response();
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response
        }
        false => Body::from(file.text).into_response(),
    };
    let kept = response.headers_mut();
    kept.insert(CONTENT_TYPE, HeaderValue::from_static(file.kind()));
    kept.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    // Revalidated each time, so that files of two versions are never mixed.
    kept.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    kept.insert(VARY, HeaderValue::from_static("accept-encoding"));
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        kept.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(tag) = HeaderValue::from_str(file.tag()) {
        kept.insert(ETAG, tag);
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::{body::to_bytes, http::header::HeaderName};

    use super::*;

    fn headers(given: &[(HeaderName, &str)]) -> HeaderMap {
        given.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    async fn bytes(response: Response) -> Vec<u8> {
        to_bytes(response.into_body(), 1 << 20).await.unwrap().to_vec()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_file_is_sent_once_and_then_known_by_its_tag() {
        let first = serve(&PAGE, &HeaderMap::new());
        assert_eq!(first.status(), StatusCode::OK);
        assert_eq!(first.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        let tag = first.headers()[ETAG].to_str().unwrap().to_owned();
        assert_eq!(bytes(first).await, PAGE.text.as_bytes());
        let again = serve(&PAGE, &headers(&[(IF_NONE_MATCH, &format!("W/{tag}, \"other\""))]));
        assert_eq!(
            (again.status(), again.headers()[ETAG].to_str().unwrap()),
            (StatusCode::NOT_MODIFIED, &*tag)
        );
        assert_eq!(bytes(again).await, b"");
        let other = serve(&PAGE, &headers(&[(IF_NONE_MATCH, "\"other\"")]));
        assert_eq!(other.status(), StatusCode::OK);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn who_can_unpack_gets_it_packed() {
        let packed = serve(&PAGE, &headers(&[(ACCEPT_ENCODING, "br, gzip")]));
        assert_eq!(packed.headers()[CONTENT_ENCODING], "gzip");
        let body = bytes(packed).await;
        let mut text = String::new();
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&body[..]), &mut text)
            .unwrap();
        assert_eq!(text, PAGE.text);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn everything_is_served_under_the_policy_and_nothing_else_is_served() {
        for name in ["app.js", "frame.css", "mark.svg"] {
            let response = asset(Path(name.into()), HeaderMap::new()).await;
            assert_eq!(response.headers()[CONTENT_SECURITY_POLICY], POLICY, "{name}");
            assert_eq!(response.headers()["x-content-type-options"], "nosniff", "{name}");
        }
        for name in ["", "index.html", "../mod.rs", "mod.rs", "APP.JS"] {
            let response = asset(Path(name.into()), HeaderMap::new()).await;
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{name}");
        }
    }
}
