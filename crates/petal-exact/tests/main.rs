//! The operations as a program uses them, compared with models that remember everything.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod delimited;
mod model;
mod models;
mod refusals;
