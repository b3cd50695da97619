//! Black box.
