//! What a guard stands in front of.
//!
//! Owns the trait that callers implement. Limits and single flight are
//! `load`'s and `flight`'s.

use std::fmt;
use std::future::Future;

use async_trait::async_trait;

use crate::error::BoxError;

/// The storage behind a guard.
///
/// A load must see every write that was confirmed before it began: a replica
/// that lags does not, and a guard in front of one answers as late as it is.
#[async_trait]
pub trait Storage: Send + Sync + 'static {
    /// The value of a key; `None` if it has none.
    ///
    /// # Errors
    /// Whatever storage says. Errors are never cached.
    async fn load(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BoxError>;

    /// Stores a value, for [`crate::Guard::put`].
    ///
    /// # Errors
    /// Whatever storage says; as long as it is not overridden, that it is
    /// read only.
    async fn store(&self, key: &[u8], value: &[u8]) -> Result<(), BoxError> {
        let _ = (key, value);
        Err(ReadOnly.into())
    }

    /// Deletes a key, for [`crate::Guard::remove`]. One that is not there is
    /// no error.
    ///
    /// # Errors
    /// As for [`Self::store`].
    async fn delete(&self, key: &[u8]) -> Result<(), BoxError> {
        let _ = key;
        Err(ReadOnly.into())
    }
}

#[derive(Debug)]
struct ReadOnly;

impl fmt::Display for ReadOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "this storage is read only: implement `store` and `delete`, or use `Guard::write`",
        )
    }
}

impl std::error::Error for ReadOnly {}

/// A storage that is only read, from a function.
///
/// ```
/// # use petal_guard::Loader;
/// let storage = Loader::new(async |key: Vec<u8>| Ok((key == b"alice").then(|| b"1".to_vec())));
/// ```
pub struct Loader<F>(F);

impl<F, R> Loader<F>
where
    F: Fn(Vec<u8>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Option<Vec<u8>>, BoxError>> + Send + 'static,
{
    /// From a function that loads one key.
    pub const fn new(load: F) -> Self {
        Self(load)
    }
}

impl<F> fmt::Debug for Loader<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Loader(..)")
    }
}

#[async_trait]
impl<F, R> Storage for Loader<F>
where
    F: Fn(Vec<u8>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Option<Vec<u8>>, BoxError>> + Send + 'static,
{
    async fn load(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BoxError> {
        (self.0)(key.to_vec()).await
    }
}
