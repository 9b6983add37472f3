//! The guard on real servers. `./test guard` builds the module and runs these;
//! nothing is mocked.

#![expect(clippy::unwrap_used, reason = "a test helper fails as a test does")]

mod bypass;
mod changes;
mod faults;
mod harness;
mod layers;
