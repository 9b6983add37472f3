//! What the benchmarks share: generated inputs whose true answers are known by construction.
//!
//! Measuring itself lives in the runners (`dedup.py` beside this crate). Nothing here uses petal,
//! so that a fault of petal cannot hide in its own yardstick.

pub mod lines;
