//! Writes through a guard.
//!
//! Owns their order, and which of them are under way.
//!
//! ```text
//! filter takes the key ─▶ Redis: "being written" ─▶ other guards are told
//!   ─▶ storage is written ─▶ filter again, Redis forgets, guards are told again
//! ```
//!
//! Whatever breaks off in between leaves the filter with a key too many at worst,
//! and Redis with an announcement under which nobody caches what they read, until it
//! ends by itself. If the first steps fail, storage is not touched.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use redis::RedisResult;
use tokio::time::{sleep, timeout};

use crate::error::{BoxError, Error};
use crate::guard::{Guard, Inner};
use crate::item::Item;
use crate::link::Session;
use crate::{remote, shared};

/// The writes of this process that are under way.
#[derive(Debug, Default)]
pub(crate) struct Writes(Mutex<Arc<()>>);

impl Writes {
    fn current(&self) -> MutexGuard<'_, Arc<()>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Until it is dropped a write is under way.
    fn begin(&self) -> Arc<()> {
        self.current().clone()
    }

    /// Waits for those that began before now.
    pub(crate) async fn finished(&self) {
        let before = std::mem::take(&mut *self.current());
        while Arc::strong_count(&before) > 1 {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

impl Guard {
    /// Stores a value, by [`crate::Storage::store`]. A write goes on if the
    /// caller goes away.
    ///
    /// # Errors
    /// [`Error::NotWritten`] if storage was not touched, otherwise what
    /// [`Self::write`] says.
    pub async fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let storage = self.inner.storage.clone();
        let (stored, value) = (key.to_vec(), value.to_vec());
        let change = async move { storage.store(&stored, &value).await };
        self.inner.write(key, true, change).await
    }

    /// Deletes a key, by [`crate::Storage::delete`]. A Bloom filter goes on
    /// letting it pass, until [`Self::warm_up`] fills another.
    ///
    /// # Errors
    /// As for [`Self::put`].
    pub async fn remove(&self, key: &[u8]) -> Result<(), Error> {
        let storage = self.inner.storage.clone();
        let deleted = key.to_vec();
        let change = async move { storage.delete(&deleted).await };
        self.inner.write(key, false, change).await
    }

    /// Any other change of one key in storage: runs it between the steps that
    /// [`Self::put`] does around a store.
    ///
    /// # Errors
    /// [`Error::NotWritten`] if it was not run, [`Error::Write`] with its own
    /// error, [`Error::WriteTimeout`] and [`Error::WriteLost`] if nobody knows.
    pub async fn write<T: Send + 'static>(
        &self,
        key: &[u8],
        change: impl Future<Output = Result<T, BoxError>> + Send + 'static,
    ) -> Result<T, Error> {
        self.inner.write(key, true, change).await
    }
}

impl Inner {
    async fn write<T: Send + 'static>(
        self: &Arc<Self>,
        key: &[u8],
        adds: bool,
        change: impl Future<Output = Result<T, BoxError>> + Send + 'static,
    ) -> Result<T, Error> {
        let (guard, key) = (self.clone(), key.to_vec());
        let task = tokio::spawn(async move {
            let _under_way = guard.writes.begin();
            guard.write_now(&key, adds, change).await
        });
        task.await.unwrap_or(Err(Error::WriteLost))
    }

    async fn write_now<T>(
        &self,
        key: &[u8],
        adds: bool,
        change: impl Future<Output = Result<T, BoxError>>,
    ) -> Result<T, Error> {
        self.meter.write();
        let item = self.hub.item(key);
        if let (true, Some(filter)) = (adds, &self.hub.local_filter) {
            filter.add(key);
        }
        self.announce(key, &item, adds).await?;
        self.hub.stamps.changed(&item);
        let limit = self.settings.write_timeout;
        let Ok(written) = timeout(limit, change).await else {
            // It may still happen: the announcement stays as long again.
            return Err(Error::WriteTimeout(limit));
        };
        if let (true, Some(filter)) = (adds, &self.hub.local_filter) {
            filter.add(key);
        }
        self.hub.stamps.changed(&item);
        if let Some(session) = self.link.as_ref().and_then(|link| link.session())
            && let Err(error) = self.finish(&session, key, &item, adds).await
        {
            // Nobody caches the key until the announcement ends.
            session.failed(&error);
        }
        written.map_err(|error| Error::Write(error.into()))
    }

    /// What comes before storage is touched.
    async fn announce(&self, key: &[u8], item: &Item, adds: bool) -> Result<(), Error> {
        let Some(link) = &self.link else {
            return Ok(());
        };
        let told = match link.session() {
            None => Err(link.fault()),
            Some(session) => {
                let told = self.tell(&session, key, item, adds).await;
                told.map_err(|error| {
                    session.failed(&error);
                    error.to_string()
                })
            }
        };
        match told {
            // The feed tells everyone, and until it has, no "absent" is given.
            Err(_) if self.hub.feed.is_some() => Ok(()),
            told => told.map_err(Error::NotWritten),
        }
    }

    async fn tell(
        &self,
        session: &Session,
        key: &[u8],
        item: &Item,
        adds: bool,
    ) -> RedisResult<()> {
        let Some(link) = &self.link else {
            return Ok(());
        };
        let (mut control, mut values) = (session.control(), session.values());
        if adds && self.has_remote_filter() {
            remote::add(&mut control, &link.names, &[*item]).await?;
        }
        let stays = self.settings.write_timeout * 2 + Duration::from_secs(1);
        let (name, token) = (link.names.value(item), self.tokens.draw());
        shared::announce(&mut values, &name, session.tag, token, stays).await?;
        remote::publish(&mut control, &link.names, key).await
    }

    async fn finish(
        &self,
        session: &Session,
        key: &[u8],
        item: &Item,
        adds: bool,
    ) -> RedisResult<()> {
        let Some(link) = &self.link else {
            return Ok(());
        };
        let (mut control, mut values) = (session.control(), session.values());
        if adds && self.has_remote_filter() {
            // Another filter may be in use than when the write began.
            remote::add(&mut control, &link.names, &[*item]).await?;
        }
        shared::delete(&mut values, &link.names.value(item)).await?;
        remote::publish(&mut control, &link.names, key).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_for_the_writes_before_and_not_for_those_after() {
        let writes = Writes::default();
        let before = writes.begin();
        let finished = writes.finished();
        tokio::pin!(finished);
        assert!(futures_util::poll!(finished.as_mut()).is_pending());
        let _after = writes.begin();
        drop(before);
        finished.await;
    }
}
