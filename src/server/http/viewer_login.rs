//! Viewer login: the page exchanges a one-time link for a key.
//!
//! A cookie would go to every port of 127.0.0.1, also to the server of another user. So the page
//! keeps its key in storage that belongs to one origin, port included, and sends it as a header.
//! The link carries its secret in the fragment: no request contains it, so a preview of the link
//! cannot read it or use it up.
//!
//! Keys end with the worker. A browser that used a link gets a new one from the next worker by its
//! signature (`known_browsers.rs`).

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
    error::{ApiError, ApiResult},
    known_browsers,
    state::{AppState, lock},
};
use crate::instance::{Instance, secret};

/// Lifetime of a link.
const LINK_AGE_MAX: Duration = Duration::from_secs(60);
/// Unused links kept at the same time; the oldest is dropped.
const LINKS_MAX: usize = 16;
/// Browsers with a key at the same time; the oldest loses its key.
const KEYS_MAX: usize = 64;
/// The header with the secret of a link.
const LINK: &str = "x-claude-mem-link";
/// The header with the public key of a browser.
const BROWSER: &str = "x-claude-mem-browser";
/// The header with a browser's signature of the challenge.
const SIGNATURE: &str = "x-claude-mem-signature";

/// Unused links, and the keys of browsers that used one. All are gone when the worker ends.
#[derive(Debug)]
pub(super) struct ViewerLogin {
    links: Mutex<Vec<(String, Instant)>>,
    keys: Mutex<Vec<String>>,
    /// The text that known browsers sign.
    challenge: String,
    /// Held while `browsers.json` is changed.
    browsers: Mutex<()>,
}

impl ViewerLogin {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            links: Mutex::default(),
            keys: Mutex::default(),
            challenge: secret()?,
            browsers: Mutex::default(),
        })
    }

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

    /// Uses up a link. It works once.
    fn redeem(&self, link: &[u8], now: Instant) -> bool {
        let mut links = lock(&self.links);
        let before = links.len();
        links.retain(|(known, until)| *until <= now || !is_same(known.as_bytes(), link));
        links.len() < before
    }

    fn add_key(&self) -> io::Result<String> {
        let key = secret()?;
        let mut keys = lock(&self.keys);
        if keys.len() >= KEYS_MAX {
            keys.remove(0);
        }
        keys.push(key.clone());
        Ok(key)
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

/// What a known browser signs.
#[derive(Debug, Serialize, ToSchema)]
struct Challenge {
    challenge: String,
}

/// The bearer token of the page.
#[derive(Debug, Serialize, ToSchema)]
struct ViewerKey {
    key: String,
}

pub(super) fn open_routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(challenge, session))
}

pub(super) fn closed_routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(link))
}

/// Creates a link that opens the viewer. It works once, within a minute.
#[utoipa::path(post, path = "/api/viewer/link", tag = "viewer",
    responses((status = 200, body = Link)))]
async fn link(State(state): State<Arc<AppState>>) -> ApiResult<Link> {
    let link = state.viewers.add_link(Instant::now());
    let link = link.map_err(|error| ApiError::failed(error.to_string()))?;
    let url = format!("{}/open#{link}", state.shared.instance.url());
    Ok(Json(Link { url, expires_s: LINK_AGE_MAX.as_secs() }))
}

/// Returns the text that a known browser signs. It changes with each start of the worker.
#[utoipa::path(get, path = "/api/viewer/session", tag = "viewer",
    responses((status = 200, body = Challenge)))]
async fn challenge(State(state): State<Arc<AppState>>) -> Json<Challenge> {
    Json(Challenge { challenge: state.viewers.challenge.clone() })
}

/// Gives the page a key for the secret of a link, in the header `X-Claude-Mem-Link`. A link with a
/// public key, in `X-Claude-Mem-Browser`, makes the browser known. A known browser gets a key for
/// its signature of the challenge, in `X-Claude-Mem-Signature`. The page does this.
#[utoipa::path(post, path = "/api/viewer/session", tag = "viewer",
    params(("x-claude-mem-link" = Option<String>, Header),
        ("x-claude-mem-browser" = Option<String>, Header),
        ("x-claude-mem-signature" = Option<String>, Header)),
    responses((status = 200, body = ViewerKey)))]
async fn session(State(state): State<Arc<AppState>>, headers: HeaderMap) -> ApiResult<ViewerKey> {
    if !is_own_address(headers.get(HOST), &state.shared.instance) {
        return Err(ApiError::forbidden("open the viewer under the address in its link"));
    }
    let at = Arc::clone(&state);
    state.block(move || accept(&at, &headers)).await?;
    let key = state.viewers.add_key();
    Ok(Json(ViewerKey { key: key.map_err(|error| ApiError::failed(error.to_string()))? }))
}

/// Accepts a link, or the signature of a known browser.
fn accept(state: &AppState, headers: &HeaderMap) -> Result<(), ApiError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (viewers, address) = (&state.viewers, state.shared.instance.url());
    let (file, browser) = (state.shared.paths.viewer_browsers(), text(BROWSER));
    let now_us = state.shared.clock.now().as_microsecond().cast_unsigned();
    let _changing = lock(&viewers.browsers);
    let (is_accepted, refusal) = if headers.contains_key(LINK) {
        let is_valid = viewers.redeem(text(LINK).as_bytes(), Instant::now());
        if is_valid {
            // The link in the file that the browser opened is used up now.
            let _ = fs::remove_file(state.shared.paths.viewer_page());
            known_browsers::add(&file, browser, &address, now_us);
        }
        (is_valid, "this link was already used, or has expired")
    } else {
        let proof = (viewers.challenge.as_str(), text(SIGNATURE));
        let is_known = known_browsers::accept(&file, browser, &address, proof, now_us);
        (is_known, "this browser is not known")
    };
    match is_accepted {
        true => Ok(()),
        false => {
            Err(ApiError::forbidden(refusal).remedy("create a new link with `claude-mem viewer`"))
        }
    }
}

/// Whether the page was opened under the address that the worker listens on. Under `localhost` a
/// server of another user on `::1` would share the page's storage, and could read the key from it.
fn is_own_address(host: Option<&HeaderValue>, instance: &Instance) -> bool {
    let is_loopback = instance.host.parse().is_ok_and(|host: IpAddr| host.is_loopback());
    let host = host.and_then(|host| host.to_str().ok());
    !is_loopback || host.is_some_and(|host| format!("http://{host}") == instance.url())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_exchanged_once_and_only_in_time() {
        let viewers = ViewerLogin::new().unwrap();
        let now = Instant::now();
        let (first, second) = (viewers.add_link(now).unwrap(), viewers.add_link(now).unwrap());
        let redeem = |link: &str, now| viewers.redeem(link.as_bytes(), now);
        assert!(!redeem("", now) && !redeem(&first[1..], now));
        assert!(redeem(&first, now) && !redeem(&first, now));
        assert!(!redeem(&second, now + LINK_AGE_MAX));
        let key = viewers.add_key().unwrap();
        assert!(viewers.knows(key.as_bytes()));
        for other in [&first, &second, &viewers.challenge, ""] {
            assert!(!viewers.knows(other.as_bytes()));
        }
    }

    #[test]
    fn the_number_of_links_and_keys_is_limited() {
        let viewers = ViewerLogin::new().unwrap();
        let now = Instant::now();
        let oldest = viewers.add_link(now).unwrap();
        for _ in 0..LINKS_MAX {
            viewers.add_link(now).unwrap();
        }
        assert!(!viewers.redeem(oldest.as_bytes(), now));
        for _ in 0..2 * KEYS_MAX {
            viewers.add_key().unwrap();
        }
        assert_eq!(lock(&viewers.keys).len(), KEYS_MAX);
        assert!(lock(&viewers.links).len() <= LINKS_MAX);
    }

    #[test]
    fn the_viewer_opens_only_under_the_address_of_the_worker() {
        let is_own = |host: &'static str, listens_on: &str| {
            let instance = Instance::new(listens_on, 37777, 1).unwrap();
            is_own_address(Some(&HeaderValue::from_static(host)), &instance)
        };
        assert!(is_own("127.0.0.1:37777", "127.0.0.1"));
        assert!(is_own("[::1]:37777", "::1"));
        assert!(is_own("10.0.0.7:37777", "0.0.0.0"), "a remote worker has many addresses");
        for other in ["localhost:37777", "127.0.0.2:37777", "[::1]:37777", "127.0.0.1"] {
            assert!(!is_own(other, "127.0.0.1"), "{other}");
        }
    }
}
