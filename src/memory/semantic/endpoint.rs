//! The user's embedding endpoint: `/embeddings` of an OpenAI-compatible server, instead of the
//! built-in model.
//!
//! It receives the redacted texts of memories, prompts and queries. Requests are limited in number
//! of texts, size and time. The last failure is stored in a file next to the vectors, so that
//! `status` and `doctor` can report it without sending a request.

use std::{fs, path::PathBuf, time::Duration};

use claude_mem_core::failure::Failure;
use claude_mem_embed::Role;
use claude_mem_http_client::{ErrorBody, Post, PostError, is_http_address, place};
use claude_mem_privacy::{Policy, redact_text};
use claude_mem_vectors::{ModelId, digest, file};
use serde::Deserialize;
use serde_json::json;

/// Maximum number of texts in one request.
const TEXTS_MAX: usize = 64;
/// About 500 tokens, the limit of many models. Some servers reject longer texts instead of
/// truncating them.
const TEXT_BYTES_MAX: usize = 1500;
/// 64 vectors of 4,096 numbers.
const REPLY_BYTES_MAX: usize = 8 << 20;
/// More than any vector file has.
const DIMENSIONS_MAX: usize = 4096;
/// Maximum length of a server message that is shown.
const MESSAGE_CHARS_MAX: usize = 300;
/// Time limit of a search, which falls back to words alone.
const QUERY_TIME_MAX: Duration = Duration::from_secs(3);
/// A local server may have to load its model first.
const MEMORIES_TIME_MAX: Duration = Duration::from_secs(60);
/// Ids of endpoints differ from those of model files.
const IDS: ModelId = *b"embedding server";

/// The server that receives texts, and its model.
#[derive(Clone, PartialEq, Eq)]
pub struct EmbeddingEndpoint {
    url: String,
    model: String,
    key: String,
    id: ModelId,
    /// File with the last failure, unless a success followed.
    failure: PathBuf,
    /// Whether to replace personal data in queries.
    redact_personal: bool,
}

#[derive(Deserialize)]
struct Reply {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl std::fmt::Debug for EmbeddingEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("EmbeddingEndpoint");
        shown.field("url", &place(&self.url)).field("model", &self.model).finish_non_exhaustive()
    }
}

impl EmbeddingEndpoint {
    /// The endpoint of the settings, without a request.
    pub(super) fn new(
        data: &std::path::Path,
        base_url: &str,
        model: String,
        key: String,
        redact_personal: bool,
    ) -> Result<Self, Failure> {
        let base_url = base_url.trim_end_matches('/');
        if !is_http_address(base_url) {
            return Err(unusable(format!(
                "CLAUDE_MEM_EMBEDDING_BASE_URL is not an http(s) address: `{}`",
                place(base_url)
            )));
        }
        if model.is_empty() {
            return Err(unusable(
                "the embedding endpoint needs the name of a model: set CLAUDE_MEM_EMBEDDING_MODEL"
                    .into(),
            ));
        }
        let url = format!("{base_url}/embeddings");
        let id = digest(&IDS, &format!("{url}\n{model}"));
        let failure = file(data, &id).with_extension("failure");
        Ok(Self { url, model, key, id, failure, redact_personal })
    }

    pub(super) fn id(&self) -> ModelId {
        self.id
    }

    /// Why the last request failed. `None` if it did not.
    pub(super) fn last_failure(&self) -> Option<String> {
        fs::read_to_string(&self.failure).ok().filter(|text| !text.is_empty())
    }

    /// Whether anything is left of a query after redaction.
    pub(super) fn can_read(&self, query: &str) -> bool {
        self.sendable(query, Role::Query).contains(char::is_alphanumeric)
    }

    /// The length of its vectors. Sends a request for one vector.
    pub(super) fn dimensions(&self) -> Result<usize, Failure> {
        let vectors = self.embed_all(&["dimensions"], Role::Memory)?;
        Ok(vectors.first().map_or(0, Vec::len))
    }

    /// The vectors of texts, of unit length.
    pub(super) fn embed_all(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<f32>>, Failure> {
        let sent = texts.chunks(TEXTS_MAX).map(|texts| self.send(texts, role));
        let vectors = sent.collect::<Result<Vec<_>, _>>().map_err(unusable);
        // If the file cannot be written, the failure is not stored.
        let _ = match &vectors {
            Err(failure) => self.failure.parent().map_or(Ok(()), |dir| {
                fs::create_dir_all(dir)?;
                fs::write(&self.failure, failure.parts().0)
            }),
            Ok(_) => match self.failure.exists() {
                true => fs::remove_file(&self.failure),
                false => Ok(()),
            },
        };
        Ok(vectors?.concat())
    }

    fn send(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<f32>>, String> {
        let texts: Vec<String> = texts.iter().map(|text| self.sendable(text, role)).collect();
        let authorization = format!("Bearer {}", self.key);
        let headers = [("authorization", authorization.as_str())];
        let post = Post {
            url: &self.url,
            // Local servers have no key, and some reject an empty one.
            headers: if self.key.is_empty() { &[] } else { &headers },
            body: &json!({"model": self.model, "input": texts}),
            time_max: match role {
                Role::Query => QUERY_TIME_MAX,
                Role::Memory => MEMORIES_TIME_MAX,
            },
            reply_bytes_max: REPLY_BYTES_MAX,
        };
        let reply = post.send_by(&post.agent()).map_err(|error| match error {
            PostError::TooLarge => format!("{} sent a response that is too long", post.place()),
            PostError::Settings(why) | PostError::TooSlow(why) | PostError::Connection(why) => why,
        })?;
        match reply.status {
            200..=299 => {
                read(&reply.body, texts.len()).map_err(|why| format!("{} sent {why}", post.place()))
            }
            status => {
                let error = ErrorBody::read(&reply.body);
                // If the texts caused the error, its message may quote them, and failures are
                // stored.
                let why =
                    if matches!(status, 400 | 413 | 422) { error.kind } else { error.message };
                let why: String = post.without_keys(&why).chars().take(MESSAGE_CHARS_MAX).collect();
                Err(format!("{} answered HTTP {status}: {why}", post.place()))
            }
        }
    }

    /// A text in the form in which it may leave this machine. Memories were redacted when they were
    /// recorded.
    fn sendable(&self, text: &str, role: Role) -> String {
        let policy = Policy { redact_personal: self.redact_personal, ..Policy::default() };
        let text = match role {
            Role::Query => redact_text(text, policy).unless_private(),
            Role::Memory => text.to_owned(),
        };
        let fits = |(at, letter): &(usize, char)| at + letter.len_utf8() <= TEXT_BYTES_MAX;
        text.char_indices().take_while(fits).map(|(_, letter)| letter).collect()
    }
}

/// One vector of unit length per text, in the order of the texts.
fn read(body: &[u8], count: usize) -> Result<Vec<Vec<f32>>, String> {
    // The error of the parser may quote the response, which is not useful.
    let reply: Reply = serde_json::from_slice(body).map_err(|_| "no list of vectors")?;
    let mut vectors = vec![Vec::new(); count];
    let found = reply.data.len();
    for (place, Embedding { index, embedding }) in reply.data.into_iter().enumerate() {
        if let Some(vector) = vectors.get_mut(index.unwrap_or(place)) {
            *vector = embedding;
        }
    }
    let dimensions = vectors.first().map_or(0, Vec::len);
    if found != count || vectors.iter().any(|vector| vector.len() != dimensions) {
        return Err(format!("{found} vectors, or of different lengths, for {count} texts"));
    }
    if !(1..=DIMENSIONS_MAX).contains(&dimensions) {
        return Err(format!(
            "vectors of {dimensions} dimensions; at most {DIMENSIONS_MAX} can be used"
        ));
    }
    for vector in &mut vectors {
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        if !length.is_normal() {
            return Err("a vector of length zero".into());
        }
        for value in vector {
            *value /= length;
        }
    }
    Ok(vectors)
}

fn unusable(what: String) -> Failure {
    Failure::new(what).meaning("search uses words only").remedy(
        "correct it, or use the built-in model: `claude-mem settings unset EMBEDDING_BASE_URL`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_counts_only_if_each_text_has_its_vector() {
        let two = br#"{"data":[{"index":1,"embedding":[0,2]},{"index":0,"embedding":[3,4]}]}"#;
        assert_eq!(read(two, 2).unwrap(), [vec![0.6, 0.8], vec![0.0, 1.0]]);
        let unnumbered = br#"{"data":[{"embedding":[1]},{"embedding":[2]}]}"#;
        assert_eq!(read(unnumbered, 2).unwrap(), [vec![1.0], vec![1.0]]);
        for wrong in [
            &b"<html>"[..],
            br#"{"data":[{"embedding":[1]}]}"#,
            br#"{"data":[{"embedding":[1]},{"embedding":[1,2]}]}"#,
            br#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#,
            br#"{"data":[{"embedding":[]},{"embedding":[]}]}"#,
            br#"{"data":[{"embedding":[0]},{"embedding":[1]}]}"#,
            br#"{"data":[{"embedding":[1e99]},{"embedding":[1]}]}"#,
        ] {
            assert!(read(wrong, 2).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
    }

    #[test]
    fn long_texts_are_cut_and_secrets_of_queries_removed() {
        let endpoint = |redact_personal: bool| {
            let url = "http://localhost/v1";
            let data = std::path::Path::new("d");
            EmbeddingEndpoint::new(data, url, "m".into(), String::new(), redact_personal).unwrap()
        };
        let sendable = |text: &str, role| endpoint(false).sendable(text, role);
        assert_eq!(sendable(&"ä".repeat(2000), Role::Memory).len(), TEXT_BYTES_MAX);
        let key = format!("AKIA{}", "Q7ZP3M5R8T2V6W4X");
        assert!(!sendable(&format!("where is {key} used"), Role::Query).contains(&key));
        assert_eq!(sendable("<private>mine</private>", Role::Query), "");
        let query = "what did ada@example.test ask for";
        assert_eq!(sendable(query, Role::Query), query);
        assert!(!endpoint(true).sendable(query, Role::Query).contains("ada@"));
    }
}
