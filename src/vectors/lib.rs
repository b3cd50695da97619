//! The file of embedding vectors, and the exact search in it.
