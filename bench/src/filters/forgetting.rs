//! Filters that forget: windows over the last keys, and filters that delete.
//!
//! Owns petal's [`Windowed`] and [`Deleting`], and their peers. A window is measured when it has
//! long been full: each is made with older keys in it, so that it answers for all that it holds at its
//! worst. That is twice the items for windows, and nothing for the others.

use std::future::Future;
use std::hash::Hash;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fastbloom::BloomFilter;
use foldhash::fast::FixedState;
use parquet::data_type::AsBytes;
use petal::{DeletableFilter, KeyHasher, Promise, WindowFilter, WindowSpan, mask_words};
use probabilistic_rs::ebloom::{
    ExpiringBloomFilter, ExpiringBloomFilterOps, ExpiringFilterConfig, ExpiringFilterConfigBuilder,
};

use crate::filters::contestant::{Batches, Contestant, Single};
use crate::filters::keys::Keys;
use crate::filters::petal::{BATCH, FITS, PetalKeys};
use crate::lines::mix64;

/// Calls `take` for the keys that were there before: as many, and none that is asked about.
fn older<K: Keys>(count: usize, mut take: impl FnMut(&K)) {
    let mut keys = K::default();
    for number in 0..count as u64 {
        // Members and questions are mixed from small numbers, these from large ones.
        keys.push(mix64(u64::MAX - number));
        if keys.len() == K::RUN {
            take(&keys);
            keys.clear();
        }
    }
    take(&keys);
}

macro_rules! petal_contestant {
    ($contestant:ident, $filter:ident) => {
        impl<K: PetalKeys> Contestant<K> for $contestant<K> {
            fn insert(&mut self, keys: &K) {
                for key in keys.iter() {
                    self.0.insert(key).expect(FITS);
                }
            }

            fn count(&mut self, keys: &K) -> usize {
                let filter = &self.0;
                keys.iter().filter(|&key| filter.contains(key)).count()
            }

            fn batches(&mut self) -> Option<&mut dyn Batches<K>> {
                Some(self)
            }

            #[expect(clippy::cast_possible_truncation, reason = "the bits are in memory")]
            fn bits(&self) -> usize {
                self.0.geometry().bits() as usize
            }

            fn error_from_bits(&self) -> Option<f64> {
                Some(self.0.error_now())
            }
        }

        impl<K: PetalKeys> Batches<K> for $contestant<K> {
            fn insert(&mut self, keys: &K) {
                let mut mask = [0; mask_words(BATCH)];
                keys.each_batch(|batch| self.0.insert_batch(batch, &mut mask).expect(FITS));
            }

            fn count(&mut self, keys: &K) -> usize {
                let mut mask = [0; mask_words(BATCH)];
                let mut seen = 0;
                keys.each_batch(|batch| {
                    self.0.contains_batch(batch, &mut mask).expect(FITS);
                    let answered = &mask[..mask_words(batch.len())];
                    seen += answered
                        .iter()
                        .map(|word| word.count_ones() as usize)
                        .sum::<usize>();
                });
                seen
            }
        }
    };
}

/// petal's window.
pub(crate) struct Windowed<K: PetalKeys>(WindowFilter<K::Kind>);

impl<K: PetalKeys> Windowed<K> {
    pub(crate) fn new(items: usize, error: f64) -> petal::Result<Self> {
        let promise = Promise {
            items: items as u64,
            error,
        };
        let hasher = KeyHasher::default();
        let mut filter = Self(WindowFilter::with_hasher(
            WindowSpan::Keys,
            promise,
            hasher,
        )?);
        older::<K>(2 * items, |keys| Batches::insert(&mut filter, keys));
        Ok(filter)
    }
}

petal_contestant!(Windowed, WindowFilter);

/// petal's quotient filter.
pub(crate) struct Deleting<K: PetalKeys>(DeletableFilter<K::Kind>);

impl<K: PetalKeys> Deleting<K> {
    pub(crate) fn new(items: usize, error: f64) -> petal::Result<Self> {
        let hasher = KeyHasher::default();
        DeletableFilter::with_hasher(items as u64, error, hasher).map(Self)
    }
}

petal_contestant!(Deleting, DeletableFilter);

/// Two of fastbloom's filters, of which one is being filled and then takes the place of the other: what
/// one writes who needs a window and has a filter.
pub(crate) struct Rotated {
    filling: BloomFilter<FixedState>,
    full: BloomFilter<FixedState>,
    left: usize,
    items: usize,
}

impl Rotated {
    pub(crate) fn new<K: Keys>(items: usize, bits: usize) -> Self {
        let filter = || {
            BloomFilter::with_num_bits(bits.div_ceil(2))
                .hasher(FixedState::default())
                .expected_items(items)
        };
        let mut rotated = Self {
            filling: filter(),
            full: filter(),
            left: items,
            items,
        };
        older::<K>(2 * items, |keys| {
            for key in keys.iter() {
                Single::insert(&mut rotated, key);
            }
        });
        rotated
    }
}

impl<Q: Hash + ?Sized> Single<Q> for Rotated {
    fn insert(&mut self, key: &Q) {
        if self.left == 0 {
            std::mem::swap(&mut self.filling, &mut self.full);
            self.filling.clear();
            self.left = self.items;
        }
        self.left -= 1;
        // As petal, it says whether the key was in the window.
        black_box(self.filling.insert(key) | self.full.contains(key));
    }

    fn contains(&self, key: &Q) -> bool {
        self.filling.contains(key) || self.full.contains(key)
    }

    fn bits(&self) -> usize {
        self.filling.num_bits() + self.full.num_bits()
    }
}

/// The expiring filter of probabilistic-rs, with two levels: it forgets by the clock, which is left
/// out by asking for the next level.
pub(crate) struct Expiring {
    filter: ExpiringBloomFilter,
    bits: usize,
}

impl Expiring {
    pub(crate) fn new<K: Keys>(items: usize, bits: usize) -> Result<Self, String> {
        const LEVELS: usize = 2;
        const LN_2_SQUARED: f64 = std::f64::consts::LN_2 * std::f64::consts::LN_2;
        // It has as many bits a key as its error asks for, by the textbook.
        let per_level = bits as f64 / LEVELS as f64 / items as f64;
        let config: ExpiringFilterConfig = ExpiringFilterConfigBuilder::default()
            .capacity_per_level(items)
            .target_fpr((-per_level * LN_2_SQUARED).exp())
            .level_duration(Duration::from_secs(86_400))
            .num_levels(LEVELS)
            .build()
            .map_err(|refused| refused.to_string())?;
        let filter = ExpiringBloomFilter::new(config).map_err(|refused| refused.to_string())?;
        let mut expiring = Self { filter, bits };
        older::<K>(items, |keys| {
            for key in keys.iter() {
                Single::insert(&mut expiring, key);
            }
        });
        // Nothing in it waits, without files.
        let rotated = pin!(expiring.filter.rotate_levels())
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        match rotated {
            Poll::Ready(done) => done.map_err(|refused| refused.to_string())?,
            Poll::Pending => return Err("the filter waits for something".into()),
        }
        Ok(expiring)
    }
}

impl<Q: AsBytes + ?Sized> Single<Q> for Expiring {
    fn insert(&mut self, key: &Q) {
        self.filter.insert(key.as_bytes()).expect("it is in memory");
    }

    fn contains(&self, key: &Q) -> bool {
        self.filter
            .contains(key.as_bytes())
            .expect("it is in memory")
    }

    fn bits(&self) -> usize {
        self.bits
    }
}

impl<Q: Hash + ?Sized> Single<Q> for qfilter::Filter {
    fn insert(&mut self, key: &Q) {
        self.insert(key).expect("it was made for so many keys");
    }

    fn contains(&self, key: &Q) -> bool {
        self.contains(key)
    }

    fn bits(&self) -> usize {
        self.memory_usage() * 8
    }
}
