//! Secrets in base64: `Z2hwX…` is `ghp_…`, `REJfUEFTU1dPUkQ9…` is `DB_PASSWORD=…`.

use super::{
    Found, Scan,
    names::Kind,
    randomness::decoded,
    rules::{base64, run},
};
use crate::work;

/// Names and prefixes of secrets in base64. A word inside of a text has three forms, by its offset.
pub(super) const ENCODED: &[&str] = &[
    // password, PASSWORD, passwd
    "cGFzc3dvcm",
    "Bhc3N3b3Jk",
    "wYXNzd29yZ",
    "UEFTU1dPUk",
    "BBU1NXT1JE",
    "QQVNTV09SR",
    "cGFzc3dk",
    // secret, SECRET, TOKEN=, _KEY=
    "c2VjcmV0",
    "lY3Jld",
    "zZWNyZX",
    "U0VDUkVU",
    "NFQ1JFV",
    "NSRV",
    "VE9LRU49",
    "RPS0VOP",
    "UT0tFTj",
    "X0tFWT",
    "9LRVk9",
    "fS0VZP",
    // apiKey, api_key
    "YXBpS2V5",
    "FwaUtle",
    "hcGlLZX",
    "YXBpX2tle",
    "FwaV9rZX",
    "hcGlfa2V5",
    // Tokens
    "Z2hwX",
    "Z2hvX",
    "Z2l0aHViX3BhdF",
    "Z2xwYXQt",
    "c2tfbGl2ZV",
    "c2stYW50L",
    "eG94Yi",
    "QUtJQ",
    "bnBtX",
    "QUdFLVNFQ1JFV",
    // URLs
    "aHR0cHM6Ly",
    "aHR0cDovL",
    "cG9zdGdyZX",
    "bXlzcWw6Ly",
    "cmVkaXM6Ly",
    "bW9uZ29kYj",
    "YW1xcDovL",
];

/// The whole base64 around a trigger, if a secret is in it.
pub(super) fn encoded(text: &[u8], at: usize) -> Option<Found> {
    const BEFORE_BYTES_MAX: usize = 256;
    const DECODED_BYTES_MAX: usize = 1 << 10;
    let before = text[..at].iter().rev().take(BEFORE_BYTES_MAX);
    let before = before.take_while(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(byte));
    let start = at - before.count();
    work::count(at - start);
    if at - start == BEFORE_BYTES_MAX {
        return None; // The offset in the base64 is unknown.
    }
    let mut room = [0; DECODED_BYTES_MAX];
    let plain = decoded(&text[start..], &mut room);
    work::count(plain.len() * 2);
    let is_text = plain.iter().all(|&byte| byte >= b' ' || byte.is_ascii_whitespace());
    let Found { rule, .. } = if is_text { Scan::new(plain).next()? } else { return None };
    let end = at + run(&text[at..], base64);
    Some(Found { start, end, rule })
}

/// The login in `AUTH PLAIN …` of a mail server: user and password, each after a zero byte.
pub(super) fn auth_plain(text: &[u8], at: usize) -> Option<Found> {
    let start = at + "auth plain ".len();
    let rest = &text[start..];
    let mut room = [0; 128];
    let is_login = decoded(rest, &mut room).split(|byte| *byte == 0).count() > 2;
    let end = start + run(rest, base64);
    is_login.then_some(Found { start, end, rule: Kind::Password.rule() })
}
