//! Maintenance of the database and the log: forgetting, erasing, vacuuming, dumps.

mod dump;
mod erasures;
mod forget_preview;
mod forget_targets;
mod tombstones;
mod vacuum;

pub use erasures::{Eraser, Erasure};
pub use forget_preview::{ForgetPreview, ForgetTargets};
pub use forget_targets::{Forgetting, MemorySource};
pub use vacuum::Vacuumed;
