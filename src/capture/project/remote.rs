//! Normalizes the URL of a remote repository.

use std::path::{Path, PathBuf};

/// A longer URL is not valid.
const URL_BYTES_MAX: usize = 2048;

/// Converts `git@github.com:Owner/Name.git`, `ssh://git@github.com:22/Owner/Name` and
/// `https://user:token@GitHub.com/Owner/Name.git/` to `github.com/Owner/Name`. Returns a path for a
/// repository on this machine. The part before the `@` is always removed: it may be a password.
pub(super) fn normalised_remote(url: &str, checkout: &Path) -> Option<String> {
    let url = url.trim();
    let url = without_helper(url);
    if url.is_empty() || url.len() > URL_BYTES_MAX || url.contains(char::is_control) {
        return None;
    }
    match url.split_once("://") {
        Some(("file", path)) => Some(local(path, checkout)),
        Some((protocol, rest)) => of_url(protocol, rest),
        None => match scp_form(without_leading_user(url)) {
            Some((host, path)) => joined(host, path),
            None => Some(local(url, checkout)),
        },
    }
}

/// `helper::address` names a transport of git, which is not part of the identity.
fn without_helper(url: &str) -> &str {
    match url.split_once("::") {
        Some((helper, address)) if helper.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            address
        }
        _ => url,
    }
}

fn of_url(protocol: &str, rest: &str) -> Option<String> {
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = without_user(authority);
    let host = match host.rsplit_once(':') {
        Some((name, port)) if is_implied(protocol, port) => name,
        _ => host,
    };
    joined(host, path)
}

/// Over ssh, any port is ignored: a server has one port for ssh and another for the web, and both
/// URLs name the same repositories.
fn is_implied(protocol: &str, port: &str) -> bool {
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return false; // the last part of an IPv6 address, such as `1]`
    }
    match protocol {
        "http" => port == "80" || port.is_empty(),
        "https" => port == "443" || port.is_empty(),
        _ => true,
    }
}

/// `host:path`, unless it is a path: a slash comes before the colon, or a single letter, which is a
/// drive.
fn scp_form(url: &str) -> Option<(&str, &str)> {
    let after_host = if url.starts_with('[') { url.find("]:")? + 1 } else { url.find(':')? };
    let (host, path) = (&url[..after_host], &url[after_host + 1..]);
    let is_path = host.contains(['/', '\\']) || host.len() == 1;
    (!is_path).then_some((host, path))
}

/// Like [`without_user`], for a URL without a protocol, where the first slash ends the host.
fn without_leading_user(url: &str) -> &str {
    let host_end = url.find('/').unwrap_or(url.len());
    url[..host_end].rfind('@').map_or(url, |at| &url[at + 1..])
}

fn without_user(authority: &str) -> &str {
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

fn joined(host: &str, path: &str) -> Option<String> {
    let parts: Vec<&str> =
        path.split('/').filter(|part| !part.is_empty() && *part != "~").collect();
    let path = parts.join("/");
    let path = path.strip_suffix(".git").unwrap_or(&path).trim_end_matches('/');
    let host = host.to_lowercase();
    (!host.is_empty() && !path.is_empty()).then(|| format!("{host}/{path}"))
}

/// A clone of a folder on this machine belongs to the project of that folder, so both get its path
/// as key.
fn local(path: &str, checkout: &Path) -> String {
    let absolute = super::resolved(&checkout.join(PathBuf::from(path)));
    let absolute =
        if absolute.ends_with(".git") { super::main_checkout(&absolute) } else { absolute };
    super::shown(&absolute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_one_address_are_equal() {
        for url in [
            "git@github.com:Owner/Name.git",
            "github.com:Owner/Name",
            "git@github.com:/Owner/Name.git",
            "ssh://git@github.com/Owner/Name.git",
            "ssh://git@github.com:22/Owner/Name",
            "ssh://git@github.com:2222/Owner/Name",
            "git+ssh://git@github.com/Owner/Name",
            "https://github.com/Owner/Name",
            "https://GitHub.com:443/Owner//Name.git/",
            "http://github.com:80/Owner/Name.git?token=secret#main",
            "git://github.com/Owner/Name.git",
            "https://user:p%40ss@github.com/Owner/Name.git",
            "https://user:p@ss@github.com/Owner/Name.git",
            "gcrypt::git@github.com:Owner/Name.git",
            "  https://token@github.com/Owner/Name  ",
        ] {
            let found = normalised_remote(url, Path::new("/"));
            assert_eq!(found.as_deref(), Some("github.com/Owner/Name"), "{url}");
        }
    }

    #[test]
    fn different_urls_are_not_equal() {
        let cases = [
            ("http://localhost:3000/a/b", Some("localhost:3000/a/b")),
            ("ssh://git@[::1]:22/a/b.git", Some("[::1]/a/b")),
            ("https://[2001:db8::1]/a/b.git", Some("[2001:db8::1]/a/b")),
            ("git@[::1]:a/b", Some("[::1]/a/b")),
            ("git@host:~/a.git", Some("host/a")),
            ("https://github.com/", None),
            ("https://:secret@/x", None),
            ("", None),
            ("https://host/a\nb", None),
        ];
        for (url, expected) in cases {
            assert_eq!(normalised_remote(url, Path::new("/")).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn a_password_in_a_url_is_removed() {
        for url in [
            "https://ada:hunter2@host/x",
            "https://hunter2@host/x",
            "ssh://ada:hunter2@host:22/x",
            "ada:hunter2@host:x",
            "https://host/x?token=hunter2",
            "x::https://ada:hunter2@host/y",
        ] {
            let found = normalised_remote(url, Path::new("/")).unwrap_or_default();
            assert!(!found.contains("hunter2"), "{url} became {found}");
        }
    }
}
