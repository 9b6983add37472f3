//! Questions to a guard.
//!
//! Owns the order of the layers, and when an answer is good enough. `load` fetches
//! what no layer here has, `write` and `warm` change it.

use std::fmt;
use std::sync::Arc;

use futures_util::future::join_all;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::builder::Builder;
use crate::error::Error;
use crate::flight::Flights;
use crate::hub::Hub;
use crate::item::{Item, Tokens};
use crate::link::Link;
use crate::local::LocalCache;
use crate::meter::{Meter, Stats};
use crate::remote;
use crate::settings::{FilterKind, Settings};
use crate::storage::Storage;
use crate::write::Writes;

/// Which layer answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layer {
    /// The filter: the key is absent.
    Filter,
    /// The cache in this process.
    Local,
    /// The cache in Redis.
    Shared,
    /// Storage.
    Storage,
}

/// An answer and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traced {
    /// The value; `None` if storage has no such key.
    pub value: Option<Arc<[u8]>>,
    /// Who said so.
    pub layer: Layer,
    /// The value was due to be loaded anew, and is being.
    pub stale: bool,
}

/// A filter and two caches in front of a storage. See the [crate].
///
/// Clones are one guard. Its connection and feed end with the last clone.
#[derive(Clone)]
pub struct Guard {
    pub(crate) inner: Arc<Inner>,
    // Dropped with the last clone.
    _tasks: Arc<Tasks>,
}

pub(crate) struct Tasks(Vec<AbortHandle>);

impl Drop for Tasks {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("name", &self.inner.settings.name)
            .field("filter", &self.inner.settings.filter)
            .finish_non_exhaustive()
    }
}

/// What a guard consists of, for its own tasks as well.
pub(crate) struct Inner {
    pub(crate) settings: Settings,
    pub(crate) hub: Arc<Hub>,
    pub(crate) link: Option<Arc<Link>>,
    /// What stands in the remote filter for "all of it is there".
    pub(crate) sentinel: Item,
    pub(crate) local: LocalCache,
    pub(crate) flights: Flights,
    pub(crate) loads: Semaphore,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) writes: Writes,
    pub(crate) tokens: Tokens,
    pub(crate) meter: Meter,
}

/// What the filter says of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was absent, as of an instant.
    Absent(Instant),
    /// It may be there.
    Passed,
    /// There is no telling: the filter is missing, not filled, damaged or
    /// behind.
    Unknown,
    /// There is no filter.
    Unfiltered,
}

impl Guard {
    /// Settings for a guard. All guards in front of the same keys have the
    /// same name and the same secret.
    #[must_use]
    pub fn builder(name: &str) -> Builder {
        Builder::new(name)
    }

    pub(crate) fn new(inner: Arc<Inner>, tasks: Vec<AbortHandle>) -> Self {
        Self {
            inner,
            _tasks: Arc::new(Tasks(tasks)),
        }
    }

    /// The value of a key; `None` if storage has none.
    ///
    /// "Absent" is right as of the moment of the call, less `max_lag`. A value
    /// may be older: as old as a message between guards takes, and where writers go
    /// past the guards as the feed does.
    ///
    /// # Errors
    /// If it takes a load, and that fails.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Arc<[u8]>>, Error> {
        Ok(self.get_traced(key).await?.value)
    }

    /// [`Self::get`], and which layer answered.
    ///
    /// # Errors
    /// As for [`Self::get`].
    pub async fn get_traced(&self, key: &[u8]) -> Result<Traced, Error> {
        self.inner.get(key).await
    }

    /// [`Self::get`] for many keys: answers in their order. The filter is
    /// asked once for all; what is left goes on at the same time.
    ///
    /// # Errors
    /// The first of those of [`Self::get`].
    pub async fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
    ) -> Result<Vec<Option<Arc<[u8]>>>, Error> {
        self.inner.get_many(keys).await
    }

    /// What has been counted since the guard was built.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.inner.meter.stats()
    }

    /// Whether the filter answers nothing until [`Self::warm_up`] is called
    /// (by this guard, or for a filter in Redis by any): it was never filled, or it
    /// has been lost.
    #[must_use]
    pub fn needs_warm_up(&self) -> bool {
        match &self.inner.settings.filter {
            FilterKind::None => false,
            FilterKind::Local { .. } => {
                let filter = self.inner.hub.local_filter.as_ref();
                filter.is_some_and(|filter| !filter.is_filled())
            }
            FilterKind::Remote { .. } => {
                let session = self.inner.link.as_ref().and_then(|link| link.session());
                session.is_some_and(|session| session.live().is_none())
            }
        }
    }
}

impl Inner {
    pub(crate) const fn has_remote_filter(&self) -> bool {
        matches!(self.settings.filter, FilterKind::Remote { .. })
    }

    async fn get(self: &Arc<Self>, key: &[u8]) -> Result<Traced, Error> {
        let asked = Instant::now();
        let need = self.need(asked);
        let item = self.hub.item(key);
        if let Some(traced) = self.near(key, &item, asked, need) {
            return Ok(traced);
        }
        let verdict = self.verdicts(&[(key, item)], need).await[0];
        self.beyond(key, item, verdict, need).await
    }

    async fn get_many<K: AsRef<[u8]>>(
        self: &Arc<Self>,
        keys: &[K],
    ) -> Result<Vec<Option<Arc<[u8]>>>, Error> {
        let asked = Instant::now();
        let need = self.need(asked);
        let mut answers = vec![None; keys.len()];
        let (mut places, mut left) = (Vec::new(), Vec::new());
        for (place, key) in keys.iter().enumerate() {
            let key = key.as_ref();
            let item = self.hub.item(key);
            match self.near(key, &item, asked, need) {
                Some(traced) => answers[place] = traced.value,
                None => {
                    places.push(place);
                    left.push((key, item));
                }
            }
        }
        let verdicts = self.verdicts(&left, need).await;
        let rest = left
            .iter()
            .zip(verdicts)
            .map(|(&(key, item), verdict)| self.beyond(key, item, verdict, need));
        for (place, traced) in places.into_iter().zip(join_all(rest).await) {
            answers[place] = traced?.value;
        }
        Ok(answers)
    }

    /// The instant as of which an "absent" must be right.
    fn need(&self, asked: Instant) -> Instant {
        asked.checked_sub(self.settings.max_lag).unwrap_or(asked)
    }

    /// What the local cache answers.
    fn near(
        self: &Arc<Self>,
        key: &[u8],
        item: &Item,
        now: Instant,
        need: Instant,
    ) -> Option<Traced> {
        if !self.hub.is_fresh(now, self.settings.max_silence) {
            return None;
        }
        // The horizon before the entry: a change that comes between is then
        // later than what is claimed.
        let as_of = self.hub.as_of(now);
        let stamp = self.hub.stamps.of(item);
        let entry = self.local.get(item, stamp, now)?;
        if entry.value.is_none() {
            if as_of.is_none_or(|as_of| as_of < need) {
                return None;
            }
            self.meter.false_positive();
        }
        let stale = now >= entry.fresh_until;
        if stale {
            self.meter.stale();
            self.refresh(key, *item, &entry);
        }
        self.meter.answered(Layer::Local);
        Some(Traced {
            value: entry.value,
            layer: Layer::Local,
            stale,
        })
    }

    /// What the filter says, of each key.
    async fn verdicts(&self, keys: &[(&[u8], Item)], need: Instant) -> Vec<Verdict> {
        if keys.is_empty() {
            return Vec::new();
        }
        let unknown = || vec![Verdict::Unknown; keys.len()];
        if let Some(feed) = &self.hub.feed
            && feed.reach(need, self.settings.patience).await.is_none()
        {
            return unknown();
        }
        match &self.settings.filter {
            FilterKind::None => vec![Verdict::Unfiltered; keys.len()],
            FilterKind::Local { .. } => {
                self.hear(need).await;
                // Before the filter is asked, as in `near`.
                let as_of = self.hub.as_of(Instant::now());
                let verdict = |key: &[u8]| match self.hub.local_filter.as_ref()?.ask(key)? {
                    true => Some(Verdict::Passed),
                    false => Some(Verdict::Absent(as_of.filter(|as_of| *as_of >= need)?)),
                };
                keys.iter()
                    .map(|(key, _)| verdict(key).unwrap_or(Verdict::Unknown))
                    .collect()
            }
            FilterKind::Remote { .. } => {
                let items: Vec<Item> = keys.iter().map(|(_, item)| *item).collect();
                let verdicts = self.ask_remote(&items, need).await;
                verdicts.unwrap_or_else(unknown)
            }
        }
    }

    /// Waits for what other guards have said before now: a filter in this
    /// process learns of their writes that way.
    async fn hear(&self, need: Instant) {
        let (Some(link), Some(horizon), None) = (&self.link, &self.hub.link, &self.hub.feed) else {
            return;
        };
        if horizon.as_of().is_some_and(|as_of| as_of >= need) {
            return;
        }
        if let Some(session) = link.session() {
            let sent = Instant::now();
            let mut control = session.control();
            match redis::cmd("PING")
                .query_async::<redis::Value>(&mut control)
                .await
            {
                Ok(_) if link.is_current(&session) => horizon.advance(sent),
                Ok(_) => {}
                Err(error) => session.failed(&error),
            }
        }
    }

    async fn ask_remote(&self, items: &[Item], need: Instant) -> Option<Vec<Verdict>> {
        let link = self.link.as_ref()?;
        let session = link.session()?;
        // The filter before the horizon, which is lost before another filter
        // is known to be in use.
        let generation = session.live()?;
        let as_of = self.hub.feed_as_of(Instant::now())?;
        if as_of < need {
            return None;
        }
        let mut verdicts = Vec::with_capacity(items.len());
        for items in items.chunks(remote::BATCH) {
            let mut control = session.control();
            let asked = remote::ask(&mut control, &link.names.filter, &self.sentinel, items);
            match asked.await {
                Ok(Some(answers)) => {
                    let verdict = |there| match there {
                        true => Verdict::Passed,
                        false => Verdict::Absent(as_of),
                    };
                    verdicts.extend(answers.into_iter().map(verdict));
                }
                Ok(None) => {
                    session.forget(&generation);
                    return None;
                }
                Err(error) => {
                    // Of another type, or a server without the module.
                    if error.code().is_some() {
                        session.forget(&generation);
                    }
                    session.failed(&error);
                    return None;
                }
            }
        }
        // Whether it was this filter that answered: a message that there is
        // another one comes before that one's answers.
        if session.live().is_none_or(|live| live != generation) {
            return None;
        }
        Some(verdicts)
    }

    /// What the layers behind the filter answer.
    async fn beyond(
        self: &Arc<Self>,
        key: &[u8],
        item: Item,
        verdict: Verdict,
        need: Instant,
    ) -> Result<Traced, Error> {
        let keep_absent = match verdict {
            Verdict::Absent(_) => {
                self.meter.answered(Layer::Filter);
                return Ok(Traced {
                    value: None,
                    layer: Layer::Filter,
                    stale: false,
                });
            }
            Verdict::Passed | Verdict::Unfiltered => true,
            Verdict::Unknown => {
                self.meter.unanswered();
                false
            }
        };
        let mut landed = None;
        // A flight that another request began may have looked before this one
        // came; the one after it has not, but for a feed that is late.
        for _ in 0..2 {
            let stamp = self.hub.stamps.of(&item);
            let one = self
                .flights
                .join(item, stamp, || {
                    let (guard, key) = (self.clone(), key.to_vec());
                    async move { guard.fly(&key, item, stamp, need, keep_absent).await }
                })
                .await?;
            if one.value.is_some() || one.as_of >= need {
                landed = Some(one);
                break;
            }
        }
        let landed = match landed {
            Some(landed) => landed,
            None => self.load(key).await?,
        };
        self.meter.answered(landed.layer);
        if verdict == Verdict::Passed && landed.value.is_none() {
            self.meter.false_positive();
        }
        Ok(Traced {
            value: landed.value,
            layer: landed.layer,
            stale: landed.stale,
        })
    }
}
