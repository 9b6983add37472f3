//! The programs, run as a user runs them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod crawler;
mod kills;
mod mail_list;
mod program;
