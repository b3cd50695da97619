//! Turns text into vectors of its meaning.
