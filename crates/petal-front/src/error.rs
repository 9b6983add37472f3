//! What can go wrong: in the store, or with the filter.

use std::fmt;

/// A result whose error is [`Error`] over that of a store.
pub type Result<T, E> = std::result::Result<T, Error<E>>;

/// Why a call was refused.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error<E> {
    /// What the store says.
    Store(E),
    /// What the filter says. Nothing was written to the store.
    Filter(petal::Error),
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => write!(f, "store: {error}"),
            Self::Filter(error) => write!(f, "filter: {error}"),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Filter(error) => Some(error),
        }
    }
}

impl<E> From<petal::Error> for Error<E> {
    fn from(error: petal::Error) -> Self {
        Self::Filter(error)
    }
}
