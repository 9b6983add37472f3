//! petal as its users call it, on a typed filter: single keys, and batches of keys.

use petal::{
    BloomFilter, Bytes, CountingBloomFilter, Identity, Int, Key, KeyHasher, KeyKind, StaticBuilder,
    StaticFilter, mask_words,
};

use crate::filters::contestant::{Batches, Contestant};
use crate::filters::keys::{Ints, Keys, Strings};

/// The filter of keys that are all known, built on one thread.
pub(crate) struct PetalStatic<K: PetalKeys> {
    filter: StaticFilter<K::Kind>,
    error: f64,
}

impl<K: PetalKeys> PetalStatic<K> {
    /// A filter without keys.
    pub(crate) fn new(error: f64) -> petal::Result<Self> {
        let filter = Self::of(Vec::new(), error)?;
        Ok(Self { filter, error })
    }

    fn of(mut digests: Vec<u64>, error: f64) -> petal::Result<StaticFilter<K::Kind>> {
        StaticBuilder::sort_distinct(&mut digests, 1);
        let identity = Identity::new(K::Kind::TYPE);
        let mut builder = StaticBuilder::new(identity, digests.len() as u64, error, 1)?;
        builder.push(&digests)?;
        StaticFilter::new_for(builder.finish()?)
    }
}

impl<K: PetalKeys> Contestant<K> for PetalStatic<K> {
    fn insert(&mut self, keys: &K) {
        let hasher = KeyHasher::default();
        let digests = keys.iter().map(|key| key.digest_bits(&hasher)).collect();
        self.filter = Self::of(digests, self.error).expect(FITS);
    }

    fn count(&mut self, keys: &K) -> usize {
        let filter = &self.filter;
        keys.iter().filter(|&key| filter.contains(key)).count()
    }

    fn batches(&mut self) -> Option<&mut dyn Batches<K>> {
        Some(self)
    }

    fn takes_all_at_once(&self) -> bool {
        true
    }

    fn bits(&self) -> usize {
        usize::try_from(self.filter.bytes() * 8).expect("the bits are in memory")
    }

    fn error_from_bits(&self) -> Option<f64> {
        Some(self.filter.error_now())
    }
}

impl<K: PetalKeys> Batches<K> for PetalStatic<K> {
    fn insert(&mut self, keys: &K) {
        Contestant::insert(self, keys);
    }

    fn count(&mut self, keys: &K) -> usize {
        let mut mask = [0; mask_words(BATCH)];
        let mut seen = 0;
        keys.each_batch(|batch| {
            self.filter.contains_batch(batch, &mut mask).expect(FITS);
            seen += yes(&mask, batch.len());
        });
        seen
    }
}

/// Keys of one batched call.
pub(crate) const BATCH: usize = 1024;

/// How petal takes keys of a form.
pub(crate) trait PetalKeys: Keys<Key: Key<Self::Kind>> {
    /// petal's name for the form.
    type Kind: KeyKind;
    /// A key of a batch.
    type Item<'a>: Key<Self::Kind>;

    /// Calls `take` for every batch of the keys, in order.
    fn each_batch(&self, take: impl for<'a> FnMut(&[Self::Item<'a>]));
}

impl PetalKeys for Ints {
    type Kind = Int;
    type Item<'a> = i64;

    fn each_batch(&self, take: impl FnMut(&[i64])) {
        self.0.chunks(BATCH).for_each(take);
    }
}

impl PetalKeys for Strings {
    type Kind = Bytes;
    type Item<'a> = &'a [u8];

    fn each_batch(&self, mut take: impl for<'a> FnMut(&[&'a [u8]])) {
        let mut batch = [[].as_slice(); BATCH];
        let mut keys = self.iter();
        loop {
            let mut count = 0;
            for (place, key) in batch.iter_mut().zip(keys.by_ref()) {
                *place = key;
                count += 1;
            }
            if count == 0 {
                return;
            }
            take(&batch[..count]);
        }
    }
}

/// The default filter.
pub(crate) struct Petal<K: PetalKeys>(BloomFilter<K::Kind>);

impl<K: PetalKeys> Petal<K> {
    /// A filter sized by petal.
    pub(crate) fn new(items: usize, error: f64) -> petal::Result<Self> {
        let hasher = KeyHasher::default();
        BloomFilter::with_hasher(items as u64, error, hasher).map(Self)
    }

    fn bits_in_memory(&self) -> u64 {
        self.0.geometry().bits()
    }
}

/// The filter that forgets, with counters of 4 bits.
pub(crate) struct PetalCounting<K: PetalKeys>(CountingBloomFilter<K::Kind>);

impl<K: PetalKeys> PetalCounting<K> {
    /// A filter sized by petal.
    pub(crate) fn new(items: usize, error: f64) -> petal::Result<Self> {
        let (counter, increase) = Default::default();
        let hasher = KeyHasher::default();
        CountingBloomFilter::with_options(items as u64, error, hasher, counter, increase).map(Self)
    }

    fn bits_in_memory(&self) -> u64 {
        self.0.geometry().bytes() * 8
    }
}

/// Why the calls below cannot fail.
pub(crate) const FITS: &str = "a filter in memory takes every key, and the mask has a bit for each";

/// How many bits of a mask are set that answer `questions`.
fn yes(mask: &[u64], questions: usize) -> usize {
    let answered = &mask[..mask_words(questions)];
    answered.iter().map(|word| word.count_ones() as usize).sum()
}

/// A typed filter of petal as a contestant, with what it has of its own.
macro_rules! contestant {
    ($filter:ident, { $($single:item)* }, { $($batched:item)* }) => {
        impl<K: PetalKeys> Contestant<K> for $filter<K> {
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

            fn bits(&self) -> usize {
                usize::try_from(self.bits_in_memory()).expect("the bits are in memory")
            }

            fn error_from_bits(&self) -> Option<f64> {
                Some(self.0.error_now())
            }

            $($single)*
        }

        impl<K: PetalKeys> Batches<K> for $filter<K> {
            fn insert(&mut self, keys: &K) {
                let mut mask = [0; mask_words(BATCH)];
                keys.each_batch(|batch| self.0.insert_batch(batch, &mut mask).expect(FITS));
            }

            fn count(&mut self, keys: &K) -> usize {
                let mut mask = [0; mask_words(BATCH)];
                let mut seen = 0;
                keys.each_batch(|batch| {
                    self.0.contains_batch(batch, &mut mask).expect(FITS);
                    seen += yes(&mask, batch.len());
                });
                seen
            }

            $($batched)*
        }
    };
}

contestant!(Petal, {}, {});
contestant!(
    PetalCounting,
    {
        fn remove(&mut self, keys: &K) -> Option<usize> {
            let filter = &mut self.0;
            Some(
                keys.iter()
                    .filter(|&key| filter.remove(key).expect(FITS))
                    .count(),
            )
        }
    },
    {
        fn remove(&mut self, keys: &K) -> Option<usize> {
            let mut mask = [0; mask_words(BATCH)];
            let mut removed = 0;
            keys.each_batch(|batch| {
                self.0.remove_batch(batch, &mut mask).expect(FITS);
                removed += yes(&mask, batch.len());
            });
            Some(removed)
        }
    }
);
