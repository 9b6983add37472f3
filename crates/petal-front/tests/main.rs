//! The front over real engines.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod engines;
mod faults;
mod histories;
mod outsiders;
mod questions;
