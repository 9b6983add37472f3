//! The cache in this process.
//!
//! Owns what an entry holds and when it may be used. Entries are kept under a
//! [`Stamp`]: one that is not the key's any more is as good as none.

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use tokio::time::Instant;

use crate::item::Item;
use crate::shared::Header;
use crate::stamps::Stamp;

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// `None`: storage has no such key.
    pub(crate) value: Option<Arc<[u8]>>,
    pub(crate) stamp: Stamp,
    /// From then on it is served while it is loaded anew.
    pub(crate) fresh_until: Instant,
    /// From then on it is not served.
    pub(crate) usable_until: Instant,
    /// The entry of the shared cache that it equals.
    pub(crate) shared: Option<Header>,
}

#[derive(Debug)]
pub(crate) struct LocalCache(Cache<Item, Entry>);

impl LocalCache {
    /// Of so many bytes. moka forgets by its own clock what nobody can use
    /// any more; whether an entry may be used is said by `Entry` alone.
    pub(crate) fn new(bytes: u64, longest: Duration) -> Self {
        // moka panics above 1000 years.
        let longest = longest.min(Duration::from_secs(10 * 365 * 24 * 3600));
        let cache = Cache::builder()
            .max_capacity(bytes)
            .weigher(|_, entry: &Entry| {
                let value = entry.value.as_ref().map_or(0, |value| value.len());
                // About what moka and the entry take themselves.
                u32::try_from(value + 256).unwrap_or(u32::MAX)
            })
            .time_to_live(longest)
            .build();
        Self(cache)
    }

    /// What may be used now.
    pub(crate) fn get(&self, item: &Item, stamp: Stamp, now: Instant) -> Option<Entry> {
        self.0
            .get(item)
            .filter(|entry| entry.stamp == stamp && now < entry.usable_until)
    }

    pub(crate) fn put(&self, item: Item, entry: Entry) {
        self.0.insert(item, entry);
    }

    pub(crate) fn forget(&self, item: &Item) {
        self.0.invalidate(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamps::Stamps;

    #[tokio::test(start_paused = true)]
    async fn an_entry_read_before_a_change_and_stored_after_it_is_not_used() {
        let stamps = Stamps::new();
        let cache = LocalCache::new(1 << 20, Duration::from_secs(60));
        let item = [3; 16];
        let now = Instant::now();
        let entry = |stamp| Entry {
            value: None,
            stamp,
            fresh_until: now + Duration::from_secs(1),
            usable_until: now + Duration::from_secs(1),
            shared: None,
        };
        let before = stamps.of(&item);
        stamps.changed(&item);
        cache.put(item, entry(before));
        assert!(cache.get(&item, stamps.of(&item), now).is_none());
        cache.put(item, entry(stamps.of(&item)));
        assert!(cache.get(&item, stamps.of(&item), now).is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        let now = Instant::now();
        assert!(cache.get(&item, stamps.of(&item), now).is_none());
    }
}
