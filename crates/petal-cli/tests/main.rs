//! The command, run as a user runs it. One module a verb; they link once.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod add;
mod build;
mod check;
mod dedup;
mod dedup_state;
mod dedup_window;
mod exact;
mod exact_faults;
mod foreign;
mod foreign_faults;
mod info;
mod lists;
mod manual;
mod merge;
mod parallel;
mod plan;
mod remove;
mod shrink;
mod support;
mod wire;
