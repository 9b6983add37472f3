//! Questions to a static filter.
//!
//! Owns the way from a digest to an answer, one at a time and in batches. It
//! changes no word.
//!
//! ```text
//! locate   shard, row, block: known without a word of the filter
//! probe    threshold of its bucket ── bumped ──▶ the next layers
//!          parities of the columns of two blocks ── equal to the fingerprint?
//! ```
//!
//! There is no branch but for the keys that were bumped, one in thirty: half of all answers
//! would be guessed wrongly, and each wrong guess would hold up the loads behind it.

use super::Static;
use super::place::{BUCKET, Row, WIDTH, is_bumped, shard_of};
use super::shape::Layer;
use crate::arch::prefetch::prefetch;
use crate::arch::wide::{AnyCpu, Cpu, Work, wide};
use crate::error::Result;
use crate::hash::{Digest, Digests};
use crate::identity::About;
use crate::traits::{Bits, Contains};
use crate::typed::BATCH;

/// Digests that are located, and their words under way, before the first of
/// them is probed: divides 64.
const AHEAD: usize = 32;

/// Filters up to this size are asked without fetching ahead: they are in the
/// L2 cache, or close to it, and independent questions overlap by themselves.
const CACHED_BYTES: usize = 2 << 20;

/// What a digest differs in that is in no layer.
const ABSENT: u64 = u64::MAX;

/// What a digest is compared with in a layer, and where that is.
#[derive(Clone, Copy, Default)]
struct Place {
    digest: u64,
    shard: usize,
    /// The first slot.
    start: u64,
    /// Slots of the first block.
    left: u64,
    /// Slots of the block behind it; 0 if the row ends with its block.
    right: u64,
    fingerprint: u64,
    /// Columns to compare.
    columns: usize,
    /// The first words of the two blocks.
    here: usize,
    behind: usize,
    /// The word with the threshold.
    threshold: usize,
}

impl Place {
    /// Where a row is in a layer that is there. `uniform`, if not 0, are the columns of every
    /// block: a loop that knows them has less to do, and so has one that knows the bits of a
    /// value, `values`, as 0.
    #[inline(always)]
    fn of(layer: &Layer, row: Row, uniform: usize, values: u32) -> Self {
        let row = row.with_value(values, 0);
        let (block, bit) = (row.start / WIDTH, row.start % WIDTH);
        let (columns, here, behind) = if uniform == 0 {
            let here = layer.block_at(block);
            (
                layer.columns_from(block),
                here,
                here + layer.columns_in(block),
            )
        } else {
            let here = layer.uniform_block_at(block, uniform);
            (uniform, here, here + uniform)
        };
        Self {
            digest: 0,
            shard: 0,
            start: row.start,
            left: row.coefficients << bit,
            right: row.coefficients >> 1 >> (WIDTH - 1 - bit),
            fingerprint: row.fingerprint,
            columns,
            here,
            behind,
            threshold: layer.threshold_at(row.start / BUCKET),
        }
    }

    /// Whether the keys of this row were bumped to the next layer.
    #[inline(always)]
    fn is_bumped(&self, words: &[u64]) -> bool {
        let bucket = self.start / BUCKET;
        is_bumped(self.start, words[self.threshold] >> (2 * (bucket % 32)))
    }

    /// The bits of the row's columns that are not those of its fingerprint.
    #[inline(always)]
    fn differs<C: Cpu>(&self, cpu: C, words: &[u64]) -> u64 {
        let Some(both) = words.get(self.here..self.behind + self.columns) else {
            return self.differs_at_end(words);
        };
        let (here, behind) = both.split_at(self.behind - self.here);
        let parities = cpu.parities(here, behind, self.columns, self.left, self.right);
        (parities ^ self.fingerprint) & !(u64::MAX << self.columns)
    }

    /// The same for the last block of all: nothing is behind it, and nothing of it counts.
    #[cold]
    #[inline(never)]
    fn differs_at_end(&self, words: &[u64]) -> u64 {
        let here = words.get(self.here..).unwrap_or(&[]);
        let parities = AnyCpu.parities(here, here, self.columns, self.left, 0);
        (parities ^ self.fingerprint) & !(u64::MAX << self.columns)
    }
}

impl Static {
    /// The columns of every block, if they are as many everywhere; else 0.
    fn uniform(&self) -> usize {
        if self.columns.more == 0 {
            self.columns.least() as usize
        } else {
            0
        }
    }

    /// The shard of a digest, and its place in the first layer if there is one.
    #[inline(always)]
    fn locate(&self, digest: u64, uniform: usize, values: u32) -> Option<Place> {
        let (shard, position) = shard_of(digest, self.shards.count());
        #[expect(clippy::cast_possible_truncation, reason = "shards are in memory")]
        let shard = shard as usize;
        let layer = &self.shards.first[shard];
        if layer.starts == 0 {
            return None; // a shard without keys
        }
        let row = Row::in_first(digest, position, layer.starts);
        Some(Place {
            digest,
            shard,
            ..Place::of(layer, row, uniform, values)
        })
    }

    /// The bits in which a digest differs from what is stored where it would
    /// be: for keys their values alone, in the low bits.
    #[inline(always)]
    fn probe<C: Cpu>(&self, cpu: C, place: &Place) -> u64 {
        let words = self.words.get();
        if self.shards.first[place.shard].bumps && place.is_bumped(words) {
            return self.probe_later(place.digest, place.shard);
        }
        place.differs(cpu, words)
    }

    /// The layers after the first one.
    #[cold]
    #[inline(never)]
    fn probe_later(&self, digest: u64, shard: usize) -> u64 {
        wide(ProbeLater {
            filter: self,
            digest,
            shard,
        })
    }

    /// [`Self::locate`], and the words on their way.
    #[inline(always)]
    fn fetch(&self, digest: u64, values: u32) -> Option<Place> {
        let words = self.words.get().as_ptr();
        let place = self.locate(digest, 0, values)?;
        prefetch(words.wrapping_add(place.threshold));
        prefetch(words.wrapping_add(place.here));
        prefetch(words.wrapping_add(place.here + 8));
        prefetch(words.wrapping_add(place.behind + place.columns.max(1) - 1));
        Some(place)
    }
}

struct ProbeLater<'a> {
    filter: &'a Static,
    digest: u64,
    shard: usize,
}

impl Work for ProbeLater<'_> {
    type Result = u64;

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) -> u64 {
        let words = self.filter.words.get();
        for (index, layer) in self.filter.shards.later[self.shard].iter().enumerate() {
            if layer.starts == 0 {
                break;
            }
            let row = Row::in_later(self.digest, index + 1, layer.starts);
            let place = Place::of(layer, row, 0, self.filter.columns.values);
            if !(layer.bumps && place.is_bumped(words)) {
                return place.differs(cpu, words);
            }
        }
        ABSENT // not reached in a file that was written by petal: the last layer bumps none
    }
}

impl Bits for Static {
    fn meta(&self) -> &About {
        &self.about
    }

    fn meta_mut(&mut self) -> &mut About {
        &mut self.about
    }

    fn contains_bits(&self, digest: u64) -> bool {
        self.is_seen(self.difference(digest))
    }

    fn contains_all_bits(&self, digests: &[u64], mask: &mut [u64]) {
        wide(AskAll {
            filter: self,
            digests,
            mask,
        });
    }
}

impl Static {
    /// Whether a digest that differs so is one of a key.
    #[inline(always)]
    const fn is_seen(&self, difference: u64) -> bool {
        difference >> self.columns.values == 0
    }

    /// What [`Self::probe`] says of a digest.
    fn difference(&self, digest: u64) -> u64 {
        wide(Ask {
            filter: self,
            digest,
        })
    }

    /// The same for many digests, into as many words.
    fn differences(&self, digests: &[u64], into: &mut [u64]) {
        wide(AskValues {
            filter: self,
            digests,
            into,
        });
    }

    /// The value in what a digest differs in: `None` if it is of no key.
    #[expect(clippy::cast_possible_truncation, reason = "at most 16 bits")]
    const fn value_in(&self, difference: u64) -> Option<u16> {
        match self.is_seen(difference) {
            true => Some(difference as u16),
            false => None,
        }
    }

    /// The value of a digest whose origin is right.
    pub(crate) fn value_of_bits(&self, digest: u64) -> Option<u16> {
        self.value_in(self.difference(digest))
    }

    /// The same for many: each value is handed over with its index.
    pub(crate) fn values_of_bits(&self, digests: &[u64], mut take: impl FnMut(usize, Option<u16>)) {
        let mut differences = [0; BATCH];
        for (first, part) in (0..).step_by(BATCH).zip(digests.chunks(BATCH)) {
            let differences = &mut differences[..part.len()];
            self.differences(part, differences);
            for (i, &difference) in differences.iter().enumerate() {
                take(first + i, self.value_in(difference));
            }
        }
    }

    /// The value that a key came with; what any filter without values says of one is 0. `None`
    /// if the key is certainly absent; another absent key gets a random value with the filter's
    /// error.
    ///
    /// # Errors
    /// If the digest is of another origin.
    pub fn value(&self, digest: Digest) -> Result<Option<u16>> {
        Contains::origin(self).accept(digest.origin)?;
        Ok(self.value_of_bits(digest.bits))
    }

    /// [`Self::value`] for a batch: `values` gets one for each digest, in order, and nothing
    /// else.
    ///
    /// # Errors
    /// If the digests are of another origin. The values are then as they were.
    pub fn values(&self, digests: &Digests, values: &mut Vec<Option<u16>>) -> Result<()> {
        Contains::origin(self).accept(digests.origin())?;
        values.clear();
        self.values_of_bits(digests.bits(), |_, value| values.push(value));
        Ok(())
    }
}

/// One question.
struct Ask<'a> {
    filter: &'a Static,
    digest: u64,
}

impl Work for Ask<'_> {
    type Result = u64;

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) -> u64 {
        let place = match self.filter.columns.values {
            0 => self.filter.locate(self.digest, 0, 0),
            values => self.filter.locate(self.digest, 0, values),
        };
        place.map_or(ABSENT, |place| self.filter.probe(cpu, &place))
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
    fn run<C: Cpu>(self, cpu: C) {
        let cached = size_of_val(self.filter.words.get()) <= CACHED_BYTES;
        match (self.filter.columns.values, cached) {
            (0, false) => self.run_ahead(cpu, 0),
            (values, false) => self.run_ahead(cpu, values),
            (0, true) => match self.filter.uniform() {
                0 => self.run_cached(cpu, 0, 0),
                8 => self.run_cached(cpu, 8, 0),
                columns => self.run_cached(cpu, columns, 0),
            },
            (values, true) => self.run_cached(cpu, 0, values),
        }
    }
}

impl AskAll<'_> {
    #[inline(always)]
    fn run_ahead<C: Cpu>(self, cpu: C, values: u32) {
        let Self {
            filter,
            digests,
            mask,
        } = self;
        run_ahead(cpu, filter, digests, values, |i, difference| {
            let seen = difference.is_some_and(|difference| difference >> values == 0);
            mask[i / 64] |= u64::from(seen) << (i % 64);
        });
    }

    #[inline(always)]
    fn run_cached<C: Cpu>(self, cpu: C, uniform: usize, values: u32) {
        let Self {
            filter,
            digests,
            mask,
        } = self;
        for (chunk, word) in digests.chunks(64).zip(mask) {
            let mut answers = 0;
            for (i, &digest) in chunk.iter().enumerate() {
                let place = filter.locate(digest, uniform, values);
                let seen = place.is_some_and(|place| filter.probe(cpu, &place) >> values == 0);
                answers |= u64::from(seen) << i;
            }
            *word |= answers;
        }
    }
}

/// A batch of questions for values.
struct AskValues<'a> {
    filter: &'a Static,
    digests: &'a [u64],
    into: &'a mut [u64],
}

impl Work for AskValues<'_> {
    type Result = ();

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) {
        let Self {
            filter,
            digests,
            into,
        } = self;
        let values = filter.columns.values;
        run_ahead(cpu, filter, digests, values, |i, difference| {
            into[i] = difference.unwrap_or(ABSENT);
        });
    }
}

/// For a filter in memory: the words of each digest are fetched [`AHEAD`] digests before. Hands
/// over what each differs in, with its index, in order: `None` in a shard without keys.
#[inline(always)]
fn run_ahead<C: Cpu>(
    cpu: C,
    filter: &Static,
    digests: &[u64],
    values: u32,
    mut take: impl FnMut(usize, Option<u64>),
) {
    let mut places = [None; AHEAD];
    let (started, following) = digests.split_at(digests.len().min(AHEAD));
    for (place, &digest) in places.iter_mut().zip(started) {
        *place = filter.fetch(digest, values);
    }
    let mut following = following.iter();
    for i in 0..digests.len() {
        let place = &mut places[i % AHEAD];
        take(i, place.as_ref().map(|place| filter.probe(cpu, place)));
        if let Some(&digest) = following.next() {
            *place = filter.fetch(digest, values);
        }
    }
}
