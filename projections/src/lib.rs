//! Events to rows, and rows to answers.

pub mod xml;
