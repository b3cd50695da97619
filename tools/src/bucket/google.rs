//! Specifics of Google Cloud Storage in the test bucket: accounts, tokens and permissions.
//!
//! This is not Google's server. No published emulator (Rust, Python, Node, Debian) completely
//! supports the XML API of Google Cloud Storage, which our client uses: they support only the JSON
//! API, or lack listings or conditions. So this implements the documented behaviour for our
//! requests, as strictly: a token must be signed with the account's key, for the right account and
//! scope, and be valid now. Undocumented behaviour of Google is not covered.

use std::{
    collections::BTreeSet,
    io,
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
};

use serde_json::{Value, json};

use super::request::{Answer, Request};

/// The bucket that the account may use.
pub(super) const OURS: &str = "memories";
/// A bucket that the account may not use.
const OTHERS: &str = "others";
const EMAIL: &str = "ada@claude-mem-tests.iam.gserviceaccount.com";
const KEY_ID: &str = "0123456789abcdef";
/// The token of a Google metadata server.
const OF_INSTANCE: &str = "of-this-very-machine";
const INSTANCE_PATH: &str = "computeMetadata/v1/instance/service-accounts/default/token";

/// A new key each time: a key in a file would look like a leaked secret.
const MAKE_KEY: &str = "
    const {privateKey, publicKey} = require('crypto').generateKeyPairSync('rsa', {modulusLength: 2048});
    console.log(JSON.stringify([privateKey.export({type: 'pkcs8', format: 'pem'}),
        publicKey.export({type: 'spki', format: 'pem'})]));";

const CHECK_TOKEN: &str = "
    const [token, key, email, keyId] = process.argv.slice(1);
    const [head, claims, signature] = token.split('.');
    const {alg, kid} = JSON.parse(Buffer.from(head, 'base64url'));
    const {iss, sub, scope, iat, exp} = JSON.parse(Buffer.from(claims, 'base64url'));
    const now = Date.now() / 1000;
    const isMeant = alg === 'RS256' && kid === keyId && iss === email && sub === email
        && scope === 'https://www.googleapis.com/auth/cloud-platform'
        && iat <= now + 60 && now < exp && exp - iat <= 3600;
    const isSigned = require('crypto').verify('RSA-SHA256', Buffer.from(`${head}.${claims}`), key,
        Buffer.from(signature, 'base64url'));
    process.exit(isMeant && isSigned ? 0 : 1);";

/// Accounts with access.
#[derive(Debug)]
pub(super) struct Google {
    private_key: String,
    public_key: String,
    /// Verified tokens. A client uses the same one for an hour.
    good: Mutex<BTreeSet<String>>,
}

impl Google {
    pub(super) fn new() -> io::Result<Self> {
        let output = Command::new("node").args(["-e", MAKE_KEY]).output()?;
        let (private_key, public_key) = serde_json::from_slice(&output.stdout)?;
        Ok(Self { private_key, public_key, good: Mutex::default() })
    }

    /// The account file, in Google's format.
    pub(super) fn account(&self) -> Value {
        json!({
            "type": "service_account",
            "private_key": self.private_key,
            "private_key_id": KEY_ID,
            "client_email": EMAIL,
        })
    }

    /// The response to token requests, and to requests without permission.
    pub(super) fn meet(&self, request: &Request, is_open: bool) -> Option<Answer> {
        if request.key == INSTANCE_PATH {
            return Some(self.token_of_instance(request));
        }
        let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        if !is_open && !token.is_some_and(|token| self.is_good(token)) {
            return Some(Answer::error(401, "AuthenticationRequired", "Authentication required."));
        }
        match request.key.split('/').next() {
            Some(OURS) => None,
            Some(OTHERS) => {
                let why = format!("Access denied. {EMAIL} does not have access to the bucket.");
                Some(Answer::error(403, "AccessDenied", &why))
            }
            _ => Some(Answer::error(404, "NoSuchBucket", "The specified bucket does not exist.")),
        }
    }

    fn token_of_instance(&self, request: &Request) -> Answer {
        // This header rules out requests of web pages in a browser.
        if request.header("metadata-flavor") != Some("Google") {
            return Answer::new(403, "Missing Metadata-Flavor:Google header.");
        }
        self.remember(OF_INSTANCE);
        let token =
            json!({"access_token": OF_INSTANCE, "expires_in": 3599, "token_type": "Bearer"});
        Answer::new(200, token.to_string())
    }

    fn is_good(&self, token: &str) -> bool {
        let is_known = self.good.lock().unwrap_or_else(PoisonError::into_inner).contains(token);
        let is_good = is_known || token.contains('.') && self.is_signed(token);
        if is_good {
            self.remember(token);
        }
        is_good
    }

    fn is_signed(&self, token: &str) -> bool {
        let mut node = Command::new("node");
        node.args(["-e", CHECK_TOKEN, token, &self.public_key, EMAIL, KEY_ID]);
        node.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    fn remember(&self, token: &str) {
        self.good.lock().unwrap_or_else(PoisonError::into_inner).insert(token.into());
    }
}
