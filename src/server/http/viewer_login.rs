//! Viewer login: the page exchanges a one-time link for a key.
//!
//! A cookie would go to every port of 127.0.0.1, also to the server of another user. So the page
//! keeps its key in storage that belongs to one origin, port included, and sends it as a header.
//! The link carries its secret in the fragment: no request contains it, so a preview of the link
//! neither learns it nor uses it up.

use std::{
    fs, io,
    net::IpAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, header::HOST},
};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    auth::is_same,
    error::{ApiError, ApiResult, Problem},
    state::{AppState, lock},
};
use crate::instance::{Presence, secret};

/// Lifetime of a link.
const LINK_AGE_MAX: Duration = Duration::from_secs(60);
/// Unused links kept at the same time; the oldest is dropped.
const LINKS_MAX: usize = 16;
/// Browsers with a key at the same time; the oldest loses its key.
const KEYS_MAX: usize = 64;
/// The header with the secret of a link.
const LINK: &str = "x-claude-mem-link";

/// Unused links, and the keys of browsers that used one. Both are gone when the worker ends.
#[derive(Debug, Default)]
pub(super) struct ViewerLogin {
    links: Mutex<Vec<(String, Instant)>>,
    keys: Mutex<Vec<String>>,
}

impl ViewerLogin {
    /// Whether this key is valid.
    pub(super) fn knows(&self, key: &[u8]) -> bool {
        lock(&self.keys).iter().any(|known| is_same(key, known.as_bytes()))
    }

    pub(super) fn entries(&self) -> (usize, usize) {
        (lock(&self.links).len(), lock(&self.keys).len())
    }

    /// The secret of a new link.
    fn add_link(&self, now: Instant) -> io::Result<String> {
        let link = secret()?;
        let mut links = lock(&self.links);
        links.retain(|(_, until)| *until > now);
        if links.len() >= LINKS_MAX {
            links.remove(0);
        }
        links.push((link.clone(), now + LINK_AGE_MAX));
        Ok(link)
    }

    /// Exchanges a link for a key. It works once.
    fn redeem(&self, link: &[u8], now: Instant) -> io::Result<Option<String>> {
        let mut links = lock(&self.links);
        let before = links.len();
        links.retain(|(known, until)| *until <= now || !is_same(known.as_bytes(), link));
        if links.len() == before {
            return Ok(None);
        }
        let key = secret()?;
        let mut keys = lock(&self.keys);
        if keys.len() >= KEYS_MAX {
            keys.remove(0);
        }
        keys.push(key.clone());
        Ok(Some(key))
    }
}

/// A link that gives one browser access.
#[derive(Debug, Serialize, ToSchema)]
struct Link {
    /// URL of the link.
    url: String,
    /// Lifetime in seconds.
    expires_s: u64,
}

/// The bearer token of the page.
#[derive(Debug, Serialize, ToSchema)]
struct ViewerKey {
    key: String,
}

pub(super) fn open_routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(session))
}

pub(super) fn closed_routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(link))
}

/// Creates a link that opens the viewer. It works once, within a minute.
#[utoipa::path(post, path = "/api/viewer/link", tag = "viewer", security(("token" = [])),
    responses((status = 200, body = Link), (status = "4XX", body = Problem)))]
async fn link(State(state): State<Arc<AppState>>) -> ApiResult<Link> {
    let link = state.viewers.add_link(Instant::now());
    let link = link.map_err(|error| ApiError::failed(error.to_string()))?;
    let url = format!("{}/open#{link}", state.shared.presence.url());
    Ok(Json(Link { url, expires_s: LINK_AGE_MAX.as_secs() }))
}

/// Exchanges the secret of a link, in the header `X-Claude-Mem-Link`, for a key. The page does
/// this.
#[utoipa::path(post, path = "/api/viewer/session", tag = "viewer",
    params(("x-claude-mem-link" = String, Header)),
    responses((status = 200, body = ViewerKey), (status = "4XX", body = Problem)))]
async fn session(State(state): State<Arc<AppState>>, headers: HeaderMap) -> ApiResult<ViewerKey> {
    if !is_own_address(headers.get(HOST), &state.shared.presence) {
        return Err(ApiError::forbidden("open the viewer under the address in its link"));
    }
    let link = headers.get(LINK).map_or(&b""[..], HeaderValue::as_bytes);
    let key = state.viewers.redeem(link, Instant::now());
    let key = key.map_err(|error| ApiError::failed(error.to_string()))?;
    let key = key.ok_or_else(|| {
        ApiError::forbidden("this link was already used, or has expired")
            .remedy("create a new one with `claude-mem viewer`")
    })?;
    let page = state.shared.paths.viewer_page();
    // The link in the file that the browser opened is used up now.
    let removed = move || {
        let _ = fs::remove_file(page);
        Ok(())
    };
    state.block(removed).await?;
    Ok(Json(ViewerKey { key }))
}

/// Whether the page was opened under the address that the worker listens on. Under `localhost` a
/// server of another user on `::1` would share the page's storage, and could read the key from it.
fn is_own_address(host: Option<&HeaderValue>, presence: &Presence) -> bool {
    let is_loopback = presence.host.parse().is_ok_and(|host: IpAddr| host.is_loopback());
    let host = host.and_then(|host| host.to_str().ok());
    !is_loopback || host.is_some_and(|host| format!("http://{host}") == presence.url())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_exchanged_once_and_only_in_time() {
        let viewers = ViewerLogin::default();
        let now = Instant::now();
        let (first, second) = (viewers.add_link(now).unwrap(), viewers.add_link(now).unwrap());
        let redeem = |link: &str, now| viewers.redeem(link.as_bytes(), now).unwrap();
        assert_eq!((redeem("", now), redeem(&first[1..], now)), (None, None));
        let key = redeem(&first, now).unwrap();
        assert!(viewers.knows(key.as_bytes()) && !viewers.knows(first.as_bytes()));
        assert_eq!(redeem(&first, now), None);
        assert_eq!(redeem(&second, now + LINK_AGE_MAX), None);
    }

    #[test]
    fn unused_links_and_old_keys_do_not_pile_up() {
        let viewers = ViewerLogin::default();
        let now = Instant::now();
        let oldest = viewers.add_link(now).unwrap();
        for _ in 0..LINKS_MAX {
            viewers.add_link(now).unwrap();
        }
        assert_eq!(viewers.redeem(oldest.as_bytes(), now).unwrap(), None);
        for _ in 0..2 * KEYS_MAX {
            let link = viewers.add_link(now).unwrap();
            viewers.redeem(link.as_bytes(), now).unwrap().unwrap();
        }
        assert_eq!(lock(&viewers.keys).len(), KEYS_MAX);
        assert!(lock(&viewers.links).len() <= LINKS_MAX);
    }

    #[test]
    fn the_viewer_is_entered_under_the_address_of_the_worker_alone() {
        let is_own = |host: &'static str, listens_on: &str| {
            let presence = Presence::new(listens_on, 37777, 1).unwrap();
            is_own_address(Some(&HeaderValue::from_static(host)), &presence)
        };
        assert!(is_own("127.0.0.1:37777", "127.0.0.1"));
        assert!(is_own("[::1]:37777", "::1"));
        assert!(is_own("10.0.0.7:37777", "0.0.0.0"), "a remote worker has many addresses");
        for other in ["localhost:37777", "127.0.0.2:37777", "[::1]:37777", "127.0.0.1"] {
            assert!(!is_own(other, "127.0.0.1"), "{other}");
        }
    }
}
