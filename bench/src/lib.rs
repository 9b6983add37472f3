//! What the benchmarks share.
//!
//! [`lines`] generates inputs whose true answers are known by construction; it does not use petal,
//! so that a fault of petal cannot hide in its own yardstick. [`filters`] runs petal and other
//! filters side by side, [`classic`] the ways that a textbook compares. The comparison of commands is `dedup.py` beside this crate.

#[cfg(feature = "classic")]
pub mod classic;
#[cfg(feature = "filters")]
pub mod filters;
pub mod lines;
