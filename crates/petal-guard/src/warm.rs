//! Filling the filter.
//!
//! Owns the order by which no key is missed: from the moment the second filter is
//! known, writes go to both; then all writes that began before are waited for; then
//! storage is read; then the second filter takes the place of the first, in one step.

use std::time::Duration;

use futures_util::{Stream, StreamExt};
use tokio::time::sleep;

use crate::error::{BoxError, Error};
use crate::guard::{Guard, Inner};
use crate::item::Item;
use crate::remote;
use crate::settings::FilterKind;

fn failed(error: impl std::fmt::Display) -> Error {
    Error::WarmUp(error.to_string())
}

impl Guard {
    /// Fills a new filter with all keys of storage and puts it in use. Says how
    /// many keys came. The filter before, if there is one, answers until then.
    ///
    /// `keys` is called when reading may begin, and must not begin earlier: keys
    /// that are written meanwhile are taken from the writes, but not those of writes
    /// that began before. Where there is Redis, that is after `write_timeout` and a
    /// little, since other guards' writes are waited for.
    ///
    /// Guards that share a filter in Redis all use it at once, so that one of them
    /// calls this. Of two calls at a time the later one wins.
    ///
    /// # Errors
    /// [`Error::WarmUp`] if storage or Redis fails on the way, or another warm-up
    /// began.
    pub async fn warm_up<S, K, E>(&self, keys: impl FnOnce() -> S) -> Result<u64, Error>
    where
        S: Stream<Item = Result<K, E>>,
        K: AsRef<[u8]>,
        E: Into<BoxError>,
    {
        let inner = &self.inner;
        match inner.settings.filter {
            FilterKind::None => Err(Error::Settings(
                "there is no filter to fill: set remote_filter or local_filter".into(),
            )),
            FilterKind::Local { .. } => inner.warm_local(keys).await,
            FilterKind::Remote { items, error } => inner.warm_remote(keys, items, error).await,
        }
    }
}

impl Inner {
    /// Waits for every write that may have missed the second filter.
    async fn settle(&self) {
        self.writes.finished().await;
        if self.link.is_some() {
            // Others' cannot be seen. They take this long at most: the step
            // before storage is three answers of Redis.
            sleep(self.settings.write_timeout + 4 * self.settings.redis_timeout).await;
        }
    }

    async fn warm_local<S, K, E>(&self, keys: impl FnOnce() -> S) -> Result<u64, Error>
    where
        S: Stream<Item = Result<K, E>>,
        K: AsRef<[u8]>,
        E: Into<BoxError>,
    {
        let Some(filter) = &self.hub.local_filter else {
            return Err(failed("there is no local filter"));
        };
        if self.hub.feed.is_some() {
            self.feed_position().await?;
        } else if let Some(link) = &self.link
            && link.session().is_none()
        {
            return Err(Error::WarmUp(link.fault()));
        }
        let shadow = filter.begin()?;
        self.settle().await;
        let keys = keys();
        tokio::pin!(keys);
        let mut count = 0;
        while let Some(key) = keys.next().await {
            shadow.add(key.map_err(|error| failed(error.into()))?.as_ref());
            count += 1;
        }
        filter.finish(&shadow)?;
        Ok(count)
    }

    async fn warm_remote<S, K, E>(
        &self,
        keys: impl FnOnce() -> S,
        items: u64,
        error: f64,
    ) -> Result<u64, Error>
    where
        S: Stream<Item = Result<K, E>>,
        K: AsRef<[u8]>,
        E: Into<BoxError>,
    {
        let Some(link) = &self.link else {
            return Err(failed("there is no Redis"));
        };
        if self.hub.feed.is_some() {
            self.feed_position().await?;
        }
        // One session from beginning to end: one server.
        let session = link.session().ok_or_else(|| failed(link.fault()))?;
        let mut control = session.control();
        let generation = format!("{:016x}", self.tokens.draw());
        remote::begin(&mut control, &link.names, &generation, items, error)
            .await
            .map_err(|error| {
                failed(format!(
                    "BF.RESERVE: {error} (expected a server with a module that has the BF.* commands)"
                ))
            })?;
        self.settle().await;
        let keys = keys();
        tokio::pin!(keys);
        let mut count = 0;
        let mut batch: Vec<Item> = Vec::with_capacity(remote::BATCH);
        while let Some(key) = keys.next().await {
            let key = key.map_err(|error| failed(error.into()))?;
            batch.push(self.hub.item(key.as_ref()));
            count += 1;
            if batch.len() == remote::BATCH {
                remote::fill(&mut control, &link.names, &batch)
                    .await
                    .map_err(failed)?;
                batch.clear();
            }
        }
        if !batch.is_empty() {
            remote::fill(&mut control, &link.names, &batch)
                .await
                .map_err(failed)?;
        }
        let position = match self.hub.feed {
            Some(_) => Some(self.feed_position().await?),
            None => None,
        };
        if !link.is_current(&session) {
            return Err(failed("the connection to Redis was lost meanwhile"));
        }
        link.set_mine(generation.clone());
        let swapped = remote::swap(
            &mut control,
            &link.names,
            &generation,
            &session.server,
            &self.sentinel,
            position.as_deref(),
        );
        if swapped.await.map_err(failed)? {
            session.set_live(generation);
            Ok(count)
        } else {
            Err(failed("another warm-up began, or the new filter was lost"))
        }
    }

    /// Where the feed is. Writers that go past the guards are known from there on.
    async fn feed_position(&self) -> Result<Vec<u8>, Error> {
        // A feed that works brings something often.
        for _ in 0..100 {
            let runs = self
                .hub
                .feed
                .as_ref()
                .is_some_and(|feed| feed.as_of().is_some());
            if let (true, Some(position)) = (runs, self.hub.position()) {
                return Ok(position);
            }
            sleep(Duration::from_millis(20)).await;
        }
        Err(failed(
            "the change feed has brought nothing for two seconds",
        ))
    }
}
