//! The agent: what it is asked, and who answers.

pub(crate) mod modes;
pub(crate) mod prompts;
pub(crate) mod question;
mod tool_text;
mod wording;
