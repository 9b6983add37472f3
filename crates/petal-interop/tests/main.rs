//! The filters that other systems made, and those that petal makes for them.
//!
//! `vectors/` holds files written by the real software, and what it answers:
//! see `vectors/README.md`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod classic;
mod hostile;
mod lab;
mod refused;
mod samples;
mod support;
mod written;
