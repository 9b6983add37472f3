//! Which URLs were seen: a filter that grows, or, to compare, an exact set.

use std::collections::HashSet;

use anyhow::Result;
use petal::normalise::Normalisation;
use petal::sizing::GrowthPlan;
use petal::{AnyFilter, Growable, Identity, KeyHasher, KeyType, Secret};

/// What was seen, and how many new URLs were probably taken for seen ones.
#[derive(Debug)]
pub(crate) struct Seen {
    memory: Memory,
    /// URLs that were new.
    pub(crate) new: u64,
    /// New URLs that are expected to have been missed: see [`Seen::insert`].
    pub(crate) expected_missed: f64,
    odds: f64,
    measure_at: u64,
}

#[derive(Debug)]
enum Memory {
    Filter(Box<AnyFilter>),
    Exact {
        urls: HashSet<Box<str>>,
        url_bytes: u64,
    },
}

/// The error is measured again when this share of new URLs has come.
const MEASURE_EVERY: u64 = 64;

impl Seen {
    /// An empty filter for a number of URLs; it grows past it and keeps its error.
    pub(crate) fn sized(
        items: u64,
        error: f64,
        normalisation: Normalisation,
        secret: Option<Secret>,
    ) -> Result<Self> {
        let hasher = match secret {
            Some(secret) => KeyHasher::Keyed { secret },
            None => KeyHasher::default(),
        };
        let identity = Identity::new(KeyType::Bytes)
            .with_normalisation(normalisation)
            .with_hasher(hasher);
        let plan = GrowthPlan::ceiling(items, items, error)?;
        let filter = AnyFilter::Growable(Growable::with_plan(identity, plan)?);
        Ok(Self::new(Memory::Filter(Box::new(filter))))
    }

    /// A filter that was saved.
    pub(crate) fn resumed(filter: AnyFilter, new: u64, expected_missed: f64) -> Self {
        Self {
            new,
            expected_missed,
            ..Self::new(Memory::Filter(Box::new(filter)))
        }
    }

    pub(crate) fn exact() -> Self {
        Self::new(Memory::Exact {
            urls: HashSet::new(),
            url_bytes: 0,
        })
    }

    const fn new(memory: Memory) -> Self {
        Self {
            memory,
            new: 0,
            expected_missed: 0.0,
            odds: 0.0,
            measure_at: 0,
        }
    }

    /// True if the URL was certainly not seen before.
    ///
    /// With an error of f at this moment a new URL is missed with probability f. So each that is not
    /// stands for f / (1 - f) that are, and the expected number missed is the sum of that.
    pub(crate) fn insert(&mut self, url: &str) -> Result<bool> {
        let is_new = match &mut self.memory {
            Memory::Filter(filter) => filter.insert_bytes(url.as_bytes())?,
            Memory::Exact { urls, url_bytes } => {
                let is_new = urls.insert(url.into());
                if is_new {
                    *url_bytes += allocated(url.len());
                }
                is_new
            }
        };
        if is_new {
            self.new += 1;
            if let Memory::Filter(filter) = &self.memory
                && self.new >= self.measure_at
            {
                let error = filter.error_now();
                self.odds = error / (1.0 - error).max(f64::EPSILON);
                self.measure_at = self.new + self.new / MEASURE_EVERY + 1;
            }
            self.expected_missed += self.odds;
        }
        Ok(is_new)
    }

    /// The filter, if it is not the exact set.
    pub(crate) fn filter_mut(&mut self) -> Option<&mut AnyFilter> {
        match &mut self.memory {
            Memory::Filter(filter) => Some(filter),
            Memory::Exact { .. } => None,
        }
    }

    /// Bytes in memory: of the filter's words; of the set's table (16 bytes and a control byte a slot)
    /// and of each URL as an allocator hands it out.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.memory {
            Memory::Filter(filter) => filter.bytes(),
            Memory::Exact { urls, url_bytes } => {
                // An eighth of the slots, a power of two, stays free.
                let slots = (urls.capacity() as u64 * 8 / 7).next_power_of_two();
                slots * 17 + url_bytes
            }
        }
    }
}

/// What glibc takes for an allocation: 8 bytes before it, in steps of 16, 32 at the least.
fn allocated(len: usize) -> u64 {
    ((len as u64 + 8).next_multiple_of(16)).max(32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expectation_is_what_is_missed() {
        let urls = 20_000;
        let normalisation = Normalisation::default();
        let mut seen = Seen::sized(urls, 0.05, normalisation, None).unwrap();
        let missed = (0..urls).filter(|i| !seen.insert(&format!("http://x.example/{i}")).unwrap());
        let missed = missed.count() as f64;
        let expected = seen.expected_missed;
        assert!(expected > 50.0, "{expected}");
        assert!(
            (missed - expected).abs() < 5.0 * expected.sqrt(),
            "{missed}, expected {expected}"
        );
    }

    #[test]
    fn the_exact_set_misses_nothing() {
        let mut seen = Seen::exact();
        assert!(seen.insert("a").unwrap() && seen.insert("b").unwrap());
        assert!(!seen.insert("a").unwrap());
        assert_eq!((seen.new, seen.expected_missed), (2, 0.0));
        assert!(seen.bytes() >= 2 * 32);
    }
}
