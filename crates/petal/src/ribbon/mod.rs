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
//! ```text
//! words:  directory (if there is more than one shard) | shard | shard | ...
//! shard:  layer 0 | layer 1 | ...
//! layer:  thresholds, two bits a bucket | block 0 | block 1 | ...
//! block:  one word a column, bit k of it for slot k
//! ```

mod build;
mod place;
mod shape;
mod shard;
mod solve;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::arch::prefetch::prefetch;
use crate::arch::wide::{Work, wide};
use crate::error::{Error, Result};
use crate::hash::{Bytes, Key, KeyHasher, KeyKind};
use crate::identity::{About, Identity};
use crate::sizing::{Promise, check_items};
use crate::traits::Bits;
use crate::typed::Typed;
use crate::words::Words;

use place::{KEEP_ALL, LAYERS, Row, bump_class, shard_of};
use shape::{Columns, Layer};

/// Words of the directory for a shard: where it begins, and the blocks of its
/// layers.
const ENTRY: usize = 3;

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
}

/// [`StaticFilter`] over digests: the type of its keys is known at run time.
#[derive(Debug)]
pub struct Static {
    columns: Columns,
    shards: u64,
    /// The blocks of a single shard, which has no directory.
    single: [u32; LAYERS],
    words: Words,
    about: About,
}

impl Static {
    /// A filter of the digests that keys of the identity have.
    pub(crate) fn build(
        identity: Identity,
        mut digests: Vec<u64>,
        error: f64,
        threads: usize,
    ) -> Result<Self> {
        build::sort_distinct(&mut digests, threads);
        let items = digests.len() as u64;
        check_items(items.max(1))?;
        let collisions = identity.collisions();
        let least = collisions.least_error(items);
        if !(error >= least && error < 1.0) {
            return Err(Error::parameter(
                "error",
                error,
                format!("use {least:e} to 1 for {items} keys"),
            ));
        }
        let columns = Columns::for_error(error - collisions.probability(items));
        let built = build::build_shards(&digests, columns, threads);
        drop(digests);
        let directory = if built.len() > 1 {
            ENTRY * built.len()
        } else {
            0
        };
        let total = directory + built.iter().map(|shard| shard.words.len()).sum::<usize>();
        let mut words = Words::zeroed(total as u64)?;
        let (entries, mut rest) = words.get_mut()?.split_at_mut(directory);
        let mut entries = entries.as_chunks_mut::<ENTRY>().0.iter_mut();
        let mut first = directory;
        for shard in &built {
            if let Some(entry) = entries.next() {
                let [a, b, c, d] = shard.blocks.map(u64::from);
                *entry = [first as u64, a | b << 32, c | d << 32];
            }
            let (here, behind) = rest.split_at_mut(shard.words.len());
            here.copy_from_slice(&shard.words);
            rest = behind;
            first += shard.words.len();
        }
        let mut about = About::new(identity, Some(Promise { items, error }));
        about.insertions = Some(items);
        Ok(Self {
            columns,
            shards: built.len() as u64,
            single: built.first().map_or([0; LAYERS], |shard| shard.blocks),
            words,
            about,
        })
    }

    /// Bits of the filter.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.words.get().len() as u64 * 64
    }

    /// The index of the shard's first word, and the blocks of its layers.
    #[inline(always)]
    fn entry(&self, shard: u64) -> (usize, [u32; LAYERS]) {
        if self.shards == 1 {
            return (0, self.single);
        }
        let at = shard as usize * ENTRY;
        let entry = &self.words.get()[at..at + ENTRY];
        let half = |word: u64, upper: bool| (if upper { word >> 32 } else { word }) as u32;
        let blocks = [
            half(entry[1], false),
            half(entry[1], true),
            half(entry[2], false),
            half(entry[2], true),
        ];
        (entry[0] as usize, blocks)
    }

    /// Layer `index` of a shard, which begins at word `first`; whether it
    /// bumps shows in the blocks of the next one.
    #[inline(always)]
    fn layer(&self, first: usize, blocks: &[u32; LAYERS], index: usize) -> Layer {
        let bumps = index + 1 < LAYERS && blocks[index + 1] != 0;
        Layer::new(first, u64::from(blocks[index]), bumps, self.columns)
    }

    // Inlined, so that it is compiled for the CPU that the caller asks for.
    #[inline(always)]
    fn ask(&self, digest: u64) -> bool {
        let (shard, position) = shard_of(digest, self.shards);
        let (first, blocks) = self.entry(shard);
        if blocks[0] == 0 {
            return false; // a shard without keys
        }
        let layer = self.layer(first, &blocks, 0);
        let row = Row::of(digest, position, 0, layer.blocks);
        if self.is_bumped(&layer, &row) {
            return self.ask_bumped(digest, layer.end(), &blocks);
        }
        self.matches(&layer, &row)
    }

    /// The layers after the first one: for one key in thirty.
    #[cold]
    #[inline(never)]
    fn ask_bumped(&self, digest: u64, mut first: usize, blocks: &[u32; LAYERS]) -> bool {
        for index in 1..LAYERS {
            let layer = self.layer(first, blocks, index);
            let row = Row::of(digest, 0, index, layer.blocks);
            if !self.is_bumped(&layer, &row) {
                return self.matches(&layer, &row);
            }
            first = layer.end();
        }
        false // not reached: the last layer bumps none
    }

    /// Whether keys with the start of this row were bumped to the next layer.
    #[inline(always)]
    fn is_bumped(&self, layer: &Layer, row: &Row) -> bool {
        if !layer.bumps {
            return false;
        }
        let bucket = row.start / place::BUCKET;
        let thresholds = self.words.get()[layer.threshold_at(bucket)];
        bump_class(row.start) >= thresholds >> (2 * (bucket % 32)) & KEEP_ALL
    }

    /// Whether the solution of a layer has the row's fingerprint.
    ///
    /// Without a branch for up to eight columns: half of all answers would be
    /// guessed wrongly, and each guess would hold up the loads behind it.
    #[inline(always)]
    fn matches(&self, layer: &Layer, row: &Row) -> bool {
        let words = self.words.get();
        let (block, bit) = (row.start / place::WIDTH, row.start % place::WIDTH);
        let columns = layer.columns_from(block);
        let left = row.coefficients << bit;
        let right = row.coefficients >> 1 >> (63 - bit); // 0 if the row ends with its block
        let here = layer.block_at(block);
        let behind = layer.block_at(block + u64::from(right != 0));
        let mut differs = 0;
        for first in (0..columns).step_by(8) {
            // Eight columns, whether there are so many or not: what is behind
            // the last one is not compared.
            let eight = |at: usize| words.get(at + first..)?.first_chunk::<8>();
            let (Some(here), Some(behind)) = (eight(here), eight(behind)) else {
                return differs == 0 && self.matches_at_end(here, behind, first..columns, row);
            };
            let mut sums = 0;
            for column in 0..8 {
                let sum = u64::from((here[column] & left ^ behind[column] & right).count_ones());
                sums |= (sum & 1) << column;
            }
            let compared = 0xff >> 8usize.saturating_sub(columns - first);
            differs |= (sums ^ row.fingerprint >> first) & compared;
        }
        differs == 0
    }

    /// The same for columns at the end of the words, one at a time.
    #[cold]
    #[inline(never)]
    fn matches_at_end(&self, here: usize, behind: usize, columns: Range<usize>, row: &Row) -> bool {
        let words = self.words.get();
        let bit = row.start % place::WIDTH;
        let left = row.coefficients << bit;
        let right = row.coefficients >> 1 >> (63 - bit);
        columns.into_iter().all(|column| {
            let sum = (words[here + column] & left ^ words[behind + column] & right).count_ones();
            (u64::from(sum) ^ row.fingerprint >> column) & 1 == 0
        })
    }
}

/// Digests whose words are fetched before the first of them is probed.
const AHEAD: usize = 32;

/// Filters up to this size are asked without fetching ahead.
const CACHED_BYTES: usize = 2 << 20;

impl Bits for Static {
    fn meta(&self) -> &About {
        &self.about
    }

    fn meta_mut(&mut self) -> &mut About {
        &mut self.about
    }

    fn contains_bits(&self, digest: u64) -> bool {
        wide(Ask {
            filter: self,
            digest,
        })
    }

    fn contains_all_bits(&self, digests: &[u64], mask: &mut [u64]) {
        wide(AskAll {
            filter: self,
            digests,
            mask,
        });
    }
}

/// One question.
struct Ask<'a> {
    filter: &'a Static,
    digest: u64,
}

impl Work for Ask<'_> {
    type Result = bool;

    #[inline(always)]
    fn run(self) -> bool {
        self.filter.ask(self.digest)
    }
}

/// A batch of them.
struct AskAll<'a> {
    filter: &'a Static,
    digests: &'a [u64],
    mask: &'a mut [u64],
}

impl Work for AskAll<'_> {
    type Result = ();

    #[inline(always)]
    fn run(self) {
        let fetched = size_of_val(self.filter.words.get()) > CACHED_BYTES;
        let mut chunks = self.digests.chunks(AHEAD).enumerate().peekable();
        while let Some((number, chunk)) = chunks.next() {
            if fetched && let Some((_, following)) = chunks.peek() {
                self.filter.fetch(following);
            }
            let mut answers = 0;
            for (i, &digest) in chunk.iter().enumerate() {
                answers |= u64::from(self.filter.ask(digest)) << i;
            }
            let at = number * AHEAD;
            self.mask[at / 64] |= answers << (at % 64);
        }
    }
}

impl Static {
    /// Fetches the words that the first layers have for digests.
    #[inline(always)]
    fn fetch(&self, digests: &[u64]) {
        let words = self.words.get().as_ptr();
        for &digest in digests {
            let (shard, position) = shard_of(digest, self.shards);
            let (first, blocks) = self.entry(shard);
            if blocks[0] == 0 {
                continue;
            }
            let layer = self.layer(first, &blocks, 0);
            let start = Row::of(digest, position, 0, layer.blocks).start;
            let block = start / place::WIDTH;
            let at = layer.block_at(block);
            prefetch(words.wrapping_add(layer.threshold_at(start / place::BUCKET)));
            prefetch(words.wrapping_add(at));
            prefetch(words.wrapping_add(at + 8));
            prefetch(words.wrapping_add(at + 2 * layer.columns_from(block) - 1));
        }
    }
}
