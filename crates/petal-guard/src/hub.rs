//! Where changes of keys arrive, from whichever side.
//!
//! Owns what a change does in this process, and how far changes are known. Told
//! by `link` (other guards), `feed` (writers that go past the guards) and `write`
//! (this guard).

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use petal::Sip128;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::horizon::Horizon;
use crate::item::{Item, item};
use crate::local_filter::LocalFilter;
use crate::stamps::Stamps;

#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) sip: Sip128,
    pub(crate) stamps: Stamps,
    pub(crate) local_filter: Option<LocalFilter>,
    /// Changes by other guards; `None` where there are no others.
    pub(crate) link: Option<Horizon>,
    /// Changes by all writers; `None` where all go through guards.
    pub(crate) feed: Option<Horizon>,
    /// Asks the feed to begin again behind the position that belongs to
    /// the filter now in use.
    pub(crate) adopted: Notify,
    pub(crate) run: Mutex<Run>,
}

/// From one start of the feed to the next.
#[derive(Debug, Default)]
pub(crate) struct Run {
    number: u64,
    /// Up to where changes have been applied.
    position: Option<Vec<u8>>,
}

impl Hub {
    pub(crate) fn item(&self, key: &[u8]) -> Item {
        item(&self.sip, key)
    }

    /// A key has got, or is about to get, another value.
    pub(crate) fn changed(&self, key: &[u8]) {
        if let Some(filter) = &self.local_filter {
            filter.add(key);
        }
        self.stamps.changed(&self.item(key));
    }

    /// Changes may have been missed between the last one and the next.
    pub(crate) fn missed_from_link(&self) {
        if let Some(link) = &self.link {
            link.lose();
        }
        self.stamps.all_changed();
        // With a feed the filter does not depend on the other guards.
        if let (None, Some(filter)) = (&self.feed, &self.local_filter) {
            filter.lose();
        }
    }

    fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A filter that others filled is in use. They know its changes up to a
    /// position of their own: this feed has to begin behind it.
    pub(crate) fn adopt(&self) {
        if let Some(feed) = &self.feed {
            let mut run = self.run();
            run.number += 1;
            feed.lose();
            self.adopted.notify_one();
        }
    }

    /// The feed begins (again), behind a position. The number of this run.
    pub(crate) fn begin_run(&self, position: Option<Vec<u8>>) -> u64 {
        let mut run = self.run();
        run.number += 1;
        run.position = position;
        if let Some(feed) = &self.feed {
            feed.lose();
        }
        run.number
    }

    /// Changes up to here have been applied, unless another run has begun.
    pub(crate) fn advance_run(&self, number: u64, position: Vec<u8>, as_of: Instant) {
        let mut run = self.run();
        if run.number == number {
            run.position = Some(position);
            if let Some(feed) = &self.feed {
                feed.advance(as_of);
            }
        }
    }

    pub(crate) fn position(&self) -> Option<Vec<u8>> {
        self.run().position.clone()
    }

    /// Whether what is cached here may be used at all: changes are known up
    /// to so long ago.
    pub(crate) fn is_fresh(&self, now: Instant, silence: Duration) -> bool {
        let fresh = |horizon: &Horizon| horizon.as_of().is_some_and(|as_of| as_of + silence >= now);
        self.link.as_ref().is_none_or(fresh)
    }

    /// Up to when changes are in what this process knows, if it is read
    /// after this. A feed tells of all writers, so of the other guards, too.
    pub(crate) fn as_of(&self, now: Instant) -> Option<Instant> {
        match (&self.feed, &self.link) {
            (None, Some(link)) => link.as_of(),
            _ => self.feed_as_of(now),
        }
    }

    /// The same for what is read from Redis: guards change it before they
    /// write storage.
    pub(crate) fn feed_as_of(&self, now: Instant) -> Option<Instant> {
        match &self.feed {
            Some(feed) => Some(feed.as_of()?.min(now)),
            None => Some(now),
        }
    }
}
