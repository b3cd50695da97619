//! A model server that answers from a script, over the real wire protocols.
//!
//! It implements the Anthropic Messages API (`POST /v1/messages`, streaming or not, and
//! `count_tokens`), the OpenAI chat completions API (`POST /v1/chat/completions`, streaming or
//! not), its Responses API (`POST /v1/responses`, streaming), its embeddings (`POST
//! /v1/embeddings`) and Gemini's `generateContent`. It is as strict as the real services about keys
//! and required fields. A [`Script`] or a closure decides the responses:
//!
//! ```
//! use claude_mem_tools::model::{Answer, Script, Server, When};
//! use serde_json::json;
//!
//! # fn main() -> std::io::Result<()> {
//! let server = Server::start(
//!     Script::new()
//!         .when(When::new().text("summary"), Answer::text("It went well."))
//!         .then(Answer::tools([("Bash", json!({"command": "echo hi"}))]))
//!         .then(Answer::http(529).retry_after(1))
//!         .then(Answer::text("Done.")),
//! )?;
//! assert!(server.url().starts_with("http://127.0.0.1:"));
//! assert!(server.requests().is_empty());
//! # Ok(())
//! # }
//! ```

mod answer;
mod anthropic;
mod gate;
mod gemini;
mod model_server;
mod openai;
mod request;
mod response;
mod responses;
mod script;

pub use answer::{Answer, Block, Usage};
pub use gate::Gate;
pub use model_server::Server;
pub use request::Request;
pub use script::{Script, ScriptError, When};
