//! The built-in embedding model.
