//! The smallest filter for a fixed set of keys: a bumped ribbon.
//!
//! Owns [`Static`] and its typed form [`StaticFilter`]: the words, their
//! directory, and questions. Building is in `build`, `shard` and `solve`; the
//! arithmetic from a digest to its rows in `place`, the layout of a layer in
//! `shape`.
//!
//! After Dillinger, Hübschle-Schneider, Sanders and Walzer, "Fast succinct
//! retrieval and approximate membership using ribbon" (2022): each key is an
//! equation over 64 neighbouring slots of a table of bits; the table that
//! solves all of them is the filter. A key whose equation does not fit is
//! *bumped* to the next, smaller layer, and two bits for every 128 slots say
//! which keys are.
//!
//! A few bits of a value can be kept with each key: further columns, for their own size.
//!
//! ```text
//! words:  directory (if there is more than one shard) | shard | shard | ...
//! shard:  layer 0 | layer 1 | ...
//! layer:  block 0 | block 1 | ... | thresholds, two bits a bucket
//! block:  one word a column, bit k of it for slot k
//! ```

mod ask;
mod build;
mod directory;
mod entry;
mod place;
mod shape;
mod shard;
mod solve;
#[cfg(test)]
mod tests;

use crate::error::{FormatError, Result};
use crate::hash::{Bytes, Key, KeyHasher, KeyKind};
use crate::identity::{About, Identity};
use crate::traits::Bits;
use crate::typed::{BATCH, Typed, hash_all};
use crate::words::{self, Words};

pub use build::StaticBuilder;
pub(crate) use build::{columns_for, expected_bytes};
pub use entry::{Entry, Valued};
pub(crate) use shape::Columns;
pub use shape::StaticGeometry;

use directory::{Shards, wrong};

/// The smallest filter for keys that are all known, and do not change:
/// 1.003 times the log2(1/p) bits a key that no filter can go below, 30 % less
/// than a [`crate::BloomFilter`]. It is asked as it is; to build it takes all
/// keys at once, and some 8 bytes a key in memory.
///
/// * A key it was built from is always found.
/// * Another one is found with an expected probability of at most `p`, as
///   given to the constructors: expected over seeds.
/// * The same keys and error give the same bits, in whatever order, with any
///   repeats, and on any number of threads.
///
/// ```
/// let hashes = ["5f4dcc3b", "e10adc39", "25d55ad2"];
/// let listed = petal::StaticFilter::from_keys(hashes, 1e-6)?;
/// assert!(listed.contains("e10adc39"));
/// # Ok::<(), petal::Error>(())
/// ```
pub type StaticFilter<K = Bytes> = Typed<K, Static>;

impl StaticFilter<Bytes> {
    /// A filter of byte keys with an expected error of at most `error`, under
    /// the default hasher. Repeated keys count once.
    ///
    /// # Errors
    /// If `error` is not a number between 1e-12 and 1, digests of 64 bits
    /// cannot keep it for so many keys, there are more than 10^12, or the
    /// memory cannot be had.
    pub fn from_keys<Q: Key<Bytes>>(keys: impl IntoIterator<Item = Q>, error: f64) -> Result<Self> {
        Self::with_hasher(keys, error, KeyHasher::default(), 1)
    }
}

impl<K: KeyKind> StaticFilter<K> {
    /// A filter of either kind of key under a hasher of the caller's choice,
    /// built on so many threads.
    ///
    /// # Errors
    /// As for [`StaticFilter::from_keys`].
    pub fn with_hasher<Q: Key<K>>(
        keys: impl IntoIterator<Item = Q>,
        error: f64,
        hasher: KeyHasher,
        threads: usize,
    ) -> Result<Self> {
        let digests = keys
            .into_iter()
            .map(|key| key.digest_bits(&hasher))
            .collect();
        let identity = Identity::new(K::TYPE).with_hasher(hasher);
        Self::new_for(Static::build(identity, digests, error, threads)?)
    }

    /// A filter that keeps a value of so many bits (1 to 16) with each key, built on so many
    /// threads. A key may come again with the same value.
    ///
    /// With an error of 1 nothing tells whether a key is there: every question has a value as
    /// its answer, and only that of a key is the right one.
    ///
    /// ```
    /// use petal::{Bytes, KeyHasher, StaticFilter};
    /// let seen = [("5f4dcc3b", 3), ("e10adc39", 12)];
    /// let filter = StaticFilter::<Bytes>::with_values(seen, 4, 1e-6, KeyHasher::default(), 1)?;
    /// assert_eq!(filter.value("e10adc39"), Some(12));
    /// assert_eq!(filter.value("25d55ad2"), None);
    /// # Ok::<(), petal::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`StaticFilter::from_keys`]; if a value or the number of bits is out of range; or
    /// if a digest came with two values ([`crate::Error::Ambiguous`]).
    pub fn with_values<Q: Key<K>>(
        pairs: impl IntoIterator<Item = (Q, u16)>,
        bits: u32,
        error: f64,
        hasher: KeyHasher,
        threads: usize,
    ) -> Result<Self> {
        let keys = pairs.into_iter().map(|(key, value)| Valued {
            digest: key.digest_bits(&hasher),
            value,
        });
        let keys = keys.collect();
        let identity = Identity::new(K::TYPE).with_hasher(hasher);
        Self::new_for(Static::build_with_values(
            identity, keys, error, bits, threads,
        )?)
    }

    /// The value that a key came with: see [`Static::value`].
    #[must_use]
    pub fn value<Q: Key<K> + ?Sized>(&self, key: &Q) -> Option<u16> {
        let hasher = &Bits::meta(&**self).identity().hasher;
        self.value_of_bits(key.digest_bits(hasher))
    }

    /// [`Self::value`] for many keys, with the memory working in parallel: `values` gets one for
    /// each, in order, and nothing else.
    pub fn values<Q: Key<K>>(&self, keys: &[Q], values: &mut Vec<Option<u16>>) {
        let hasher = &Bits::meta(&**self).identity().hasher;
        values.clear();
        let mut digests = [0; BATCH];
        for keys in keys.chunks(BATCH) {
            let digests = hash_all(hasher, keys, &mut digests);
            self.values_of_bits(digests, |_, value| values.push(value));
        }
    }
}

/// Start, coefficients and fingerprint.
#[cfg(test)]
type ExampleRow = (u64, u64, u64);

/// The shard of a digest, and its rows in two layers of so many blocks.
#[cfg(test)]
pub(crate) fn example_rows(digest: u64, shards: u64, blocks: [u64; 2]) -> (u64, [ExampleRow; 2]) {
    let (shard, position) = place::shard_of(digest, shards);
    let first = place::Row::in_first(digest, position, place::starts(blocks[0]));
    let later = place::Row::in_later(digest, 1, place::starts(blocks[1]));
    let parts = |row: place::Row| (row.start, row.coefficients, row.fingerprint);
    (shard, [parts(first), parts(later)])
}

/// [`StaticFilter`] over digests: the type of its keys is known at run time.
#[derive(Debug)]
pub struct Static {
    columns: Columns,
    shards: Shards,
    words: Words,
    about: About,
}

impl Static {
    /// Takes a filter from words that may be anything.
    ///
    /// # Errors
    /// If they do not have the shape that they say.
    pub(crate) fn from_parts(
        about: About,
        geometry: StaticGeometry,
        words: Words,
    ) -> Result<Self, FormatError> {
        if about.insertions.is_none() {
            return Err(wrong(
                "insertions",
                "unknown",
                "known, as the kind is static",
            ));
        }
        let (columns, single) = (geometry.columns, geometry.single);
        let shards = Shards::read(columns, geometry.shards, single, words.get())?;
        Ok(Self {
            columns,
            shards,
            words,
            about,
        })
    }

    /// Its shape.
    #[must_use]
    pub fn geometry(&self) -> StaticGeometry {
        let words = self.words.get().len() as u64;
        StaticGeometry::new(
            self.shards.count(),
            self.columns,
            self.shards.single(),
            words,
        )
    }

    pub(crate) const fn words(&self) -> &Words {
        &self.words
    }

    /// Bits of the value that is kept with each key; 0 if there is none.
    #[must_use]
    pub const fn value_bits(&self) -> u32 {
        self.columns.values
    }

    /// Distinct keys it was built from.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.about.insertions.unwrap_or(0)
    }

    /// Whether it was built from no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the words.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.words.get().len() as u64 * 8
    }

    /// The share of bits that are set: about a half, as they look like noise.
    #[must_use]
    pub fn fill(&self) -> f64 {
        let words = self.words.get();
        words::ones(words) as f64 / (words.len().max(1) as f64 * 64.0)
    }

    /// The chance that a random absent digest is "seen": from the columns.
    #[must_use]
    pub fn error_now(&self) -> f64 {
        let errors = self
            .shards
            .first
            .iter()
            .map(|layer| layer.error(self.columns));
        errors.sum::<f64>() / self.shards.first.len() as f64
    }
}
