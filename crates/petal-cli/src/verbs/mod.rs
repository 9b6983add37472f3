//! The verbs, one file or folder each: they put the parts together.

pub(crate) mod add;
pub(crate) mod build;
mod change;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod dedup;
pub(crate) mod exact;
pub(crate) mod info;
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod plan;
pub(crate) mod remove;
pub(crate) mod shrink;
pub(crate) mod verify;
pub(crate) mod wire;
