//! The viewer's way in: a link that works once, and a cookie that pages elsewhere cannot use.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    answer::{Answer, Asked, Problem, Refusal},
    guard::is_same,
    site::Site,
};
use crate::{viewer, worker::secret};

/// How long a link waits to be opened.
const LINK_AGE_MAX: Duration = Duration::from_secs(60);
/// Links that wait at the same time; the oldest gives way.
const LINKS_MAX: usize = 16;

/// What opens the door.
#[derive(Debug)]
pub(super) struct Door {
    cookie: String,
    links: Mutex<Vec<(String, Instant)>>,
}

impl Door {
    /// With a cookie of its own, so that the token never gets into a browser. Cookies know no ports, so its
    /// name does.
    pub(super) fn new(port: u16) -> io::Result<Self> {
        let cookie = format!("claude_mem_{port}={}", secret()?);
        Ok(Self { cookie, links: Mutex::default() })
    }

    /// Whether this is our cookie.
    pub(super) fn is_ours(&self, cookie: &str) -> bool {
        is_same(cookie.as_bytes(), self.cookie.as_bytes())
    }

    /// The key of a new link.
    fn add(&self, now: Instant) -> io::Result<String> {
        let key = secret()?;
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|(_, until)| *until > now);
        if links.len() == LINKS_MAX {
            links.remove(0);
        }
        links.push((key.clone(), now + LINK_AGE_MAX));
        Ok(key)
    }

    /// Whether this is the key of a link that waits. It does not any more.
    fn take(&self, key: &str, now: Instant) -> bool {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let before = links.len();
        links.retain(|(link, until)| *until <= now || !is_same(link.as_bytes(), key.as_bytes()));
        links.len() < before
    }
}

/// A link that lets a browser in, once.
#[derive(Debug, Serialize, ToSchema)]
struct Link {
    /// What to open.
    url: String,
    /// How long it works, in seconds.
    expires_s: u64,
}

#[derive(Debug, Deserialize, IntoParams)]
struct Key {
    /// From the link.
    key: String,
}

pub(super) fn open_routes() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new().routes(routes!(open))
}

pub(super) fn closed_routes() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new().routes(routes!(link))
}

/// Makes a link that opens the viewer in a browser. It works once, and for a minute.
#[utoipa::path(post, path = "/api/viewer/link", tag = "viewer", security(("token" = [])),
    responses((status = 200, body = Link), (status = "4XX", body = Problem)))]
async fn link(State(site): State<Arc<Site>>) -> Answer<Link> {
    let key = site.door.add(Instant::now()).map_err(|error| Refusal::failed(error.to_string()))?;
    let url = format!("{}/open?key={key}", site.shared.presence.url());
    Ok(Json(Link { url, expires_s: LINK_AGE_MAX.as_secs() }))
}

/// Where such a link leads: takes it, gives the browser a cookie, and goes on to the viewer.
#[utoipa::path(get, path = "/open", tag = "viewer", params(Key),
    responses((status = 303, description = "to the viewer"), (status = "4XX", body = Problem)))]
async fn open(
    State(site): State<Arc<Site>>,
    headers: HeaderMap,
    Asked(Key { key }): Asked<Key>,
) -> Response {
    if !site.door.take(&key, Instant::now()) {
        // A person is told so by the page itself.
        let accepted = headers.get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok());
        if accepted.is_some_and(|accepted| accepted.contains("text/html")) {
            return viewer::refused(&headers);
        }
        let refusal = Refusal::forbidden("this link was used before, or is too old");
        return refusal.remedy("make a new one with `claude-mem viewer`").into_response();
    }
    let cookie = format!("{}; Path=/; HttpOnly; SameSite=Strict", site.door.cookie);
    let headers = [(header::LOCATION, "/".to_owned()), (header::SET_COOKIE, cookie)];
    (StatusCode::SEE_OTHER, headers).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_opens_once_and_only_in_time() {
        let door = Door::new(1).unwrap();
        let now = Instant::now();
        let (first, second) = (door.add(now).unwrap(), door.add(now).unwrap());
        assert!(!door.take("", now) && !door.take(&first[1..], now));
        assert!(door.take(&first, now));
        assert!(!door.take(&first, now));
        assert!(!door.take(&second, now + LINK_AGE_MAX));
    }

    #[test]
    fn links_that_nobody_opens_do_not_pile_up() {
        let door = Door::new(1).unwrap();
        let now = Instant::now();
        let oldest = door.add(now).unwrap();
        for _ in 0..LINKS_MAX {
            door.add(now).unwrap();
        }
        assert!(!door.take(&oldest, now));
        assert_eq!(door.links.lock().unwrap().len(), LINKS_MAX);
    }
}
