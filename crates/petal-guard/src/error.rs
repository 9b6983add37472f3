//! What can go wrong, and what it means for the caller's data.
//!
//! Owns the error type. Faults of a filter or of a cache are no errors of a
//! read: it goes on to storage.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The error of a storage or a feed, whatever its type.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// What a guard can fail with. Many waiters may get one error, so that it is
/// cheap to clone.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// The settings of a guard do not fit together. What to change.
    Settings(String),
    /// Storage failed. Nothing was cached.
    Storage(Arc<dyn StdError + Send + Sync>),
    /// Storage did not answer within this time, and the load was given up.
    LoadTimeout(Duration),
    /// Storage had as many loads as it may within this time, and this one
    /// was never begun.
    Overloaded(Duration),
    /// A load ended without an answer: it panicked, or the runtime is
    /// shutting down.
    LoadLost,
    /// The filter or the cache could not be told of a write. Storage was
    /// *not* written: write again once Redis is back.
    NotWritten(String),
    /// Storage failed while it was written. It may or may not hold the new
    /// value; no cache holds either.
    Write(Arc<dyn StdError + Send + Sync>),
    /// Storage did not confirm a write within this time. It may or may not
    /// come to hold the new value.
    WriteTimeout(Duration),
    /// A write ended without an answer: it panicked, or the runtime is
    /// shutting down. Storage may or may not hold the new value.
    WriteLost,
    /// The filter was not filled, and the one before is in use. Why; then
    /// call `warm_up` again.
    WarmUp(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(what) => write!(f, "settings of the guard: {what}"),
            Self::Storage(error) => write!(f, "storage could not be read: {error}"),
            Self::LoadTimeout(limit) => write!(
                f,
                "storage gave no answer in {limit:?}: raise load_timeout or look at storage"
            ),
            Self::Overloaded(limit) => write!(
                f,
                "storage had all the loads it may have for {limit:?}: raise max_loads, or try later"
            ),
            Self::LoadLost => f.write_str("the load of this key panicked or was shut down"),
            Self::NotWritten(why) => write!(
                f,
                "storage was not written, since filter and cache could not be told first: {why}"
            ),
            Self::Write(error) => write!(f, "storage could not be written: {error}"),
            Self::WriteTimeout(limit) => write!(
                f,
                "storage did not confirm the write in {limit:?}: it may still happen"
            ),
            Self::WriteLost => f.write_str("the write of this key panicked or was shut down"),
            Self::WarmUp(why) => write!(f, "the filter was not filled: {why}"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Storage(error) | Self::Write(error) => Some(&**error),
            _ => None,
        }
    }
}
