//! The counters of single digests, and batches of them.
//!
//! Owns reading, increasing and decreasing the counters that a digest has.
//! Batches go through the loops of [`crate::arch::batch`], which fetch ahead.
//! What concerns all counters of a filter is in `cells`.
//!
//! Plain Rust for every CPU: a digest's counters lie in words of their own, so
//! there is little for vectors to do at once.

use super::geometry::{CounterBits, CountingGeometry, Increase, max, place};
use crate::arch::batch::{CACHED_BYTES, each_ahead, each_digest};
use crate::arch::probe::{block_index, flags};
use crate::geometry::{BlockWords, lane, lanes, next_region};

/// The counters of a block: `C` words for each of its `W` words of bits.
type Block<const C: usize, const W: usize> = [[u64; C]; W];

/// Calls a function for the geometry's bits a counter, words a block and
/// regions, so that all three are constants in its code.
macro_rules! dispatch {
    ($geometry:expr, $function:ident($($argument:expr),*)) => {
        match $geometry.counter() {
            CounterBits::Four => dispatch!(@ 4, $geometry, $function($($argument),*)),
            CounterBits::Eight => dispatch!(@ 8, $geometry, $function($($argument),*)),
            CounterBits::Sixteen => dispatch!(@ 16, $geometry, $function($($argument),*)),
        }
    };
    (@ $c:literal, $geometry:expr, $function:ident($($argument:expr),*)) => {
        match ($geometry.split().block(), $geometry.split().regions()) {
            (BlockWords::Eight, 1) => $function::<$c, 8, 1>($($argument),*),
            (BlockWords::Eight, 2) => $function::<$c, 8, 2>($($argument),*),
            (BlockWords::Eight, 3) => $function::<$c, 8, 3>($($argument),*),
            (BlockWords::Eight, _) => $function::<$c, 8, 4>($($argument),*),
            (BlockWords::Four, 1) => $function::<$c, 4, 1>($($argument),*),
            (BlockWords::Four, 2) => $function::<$c, 4, 2>($($argument),*),
            (BlockWords::Four, 3) => $function::<$c, 4, 3>($($argument),*),
            (BlockWords::Four, _) => $function::<$c, 4, 4>($($argument),*),
        }
    };
}

impl CountingGeometry {
    /// The least of a digest's counters.
    #[inline(always)]
    pub(super) fn count(self, words: &[u64], digest: u64) -> u64 {
        dispatch!(self, count(words, self.split().blocks(), digest))
    }

    /// Whether no counter of a digest is 0.
    #[inline(always)]
    pub(super) fn contains(self, words: &[u64], digest: u64) -> bool {
        dispatch!(self, contains(words, self.split().blocks(), digest))
    }

    /// Increases the counters of a digest. True if one of them was 0.
    #[inline(always)]
    pub(super) fn insert(self, words: &mut [u64], digest: u64) -> bool {
        let (blocks, increase) = (self.split().blocks(), self.increase());
        dispatch!(self, insert(words, blocks, increase, digest))
    }

    /// Decreases the counters of a digest, unless one of them is 0. True if that
    /// changed one: false as well where all are saturated.
    #[inline(always)]
    pub(super) fn remove(self, words: &mut [u64], digest: u64) -> bool {
        dispatch!(self, remove(words, self.split().blocks(), digest))
    }

    /// [`Self::contains`] for every digest: sets bit `i` of the mask.
    pub(super) fn contains_all(self, words: &[u64], digests: &[u64], mask: &mut [u64]) {
        dispatch!(
            self,
            contains_all(words, self.split().blocks(), digests, mask)
        );
    }

    /// [`Self::insert`] for every digest in order.
    pub(super) fn insert_all(self, words: &mut [u64], digests: &[u64], mask: &mut [u64]) {
        let (blocks, increase) = (self.split().blocks(), self.increase());
        dispatch!(self, insert_all(words, blocks, increase, digests, mask));
    }

    /// [`Self::remove`] for every digest in order. Returns how many were.
    pub(super) fn remove_all(self, words: &mut [u64], digests: &[u64], mask: &mut [u64]) -> u64 {
        dispatch!(
            self,
            remove_all(words, self.split().blocks(), digests, mask)
        )
    }
}

#[inline(always)]
fn blocks<const C: usize, const W: usize>(words: &[u64]) -> &[Block<C, W>] {
    words.as_chunks::<C>().0.as_chunks::<W>().0
}

#[inline(always)]
fn blocks_mut<const C: usize, const W: usize>(words: &mut [u64]) -> &mut [Block<C, W>] {
    words.as_chunks_mut::<C>().0.as_chunks_mut::<W>().0
}

/// The block of a digest in each region, and its lanes there.
#[inline(always)]
fn locate<const R: usize>(region_blocks: u64, digest: u64) -> ([usize; R], [u64; R]) {
    let (mut indices, mut bits) = ([0; R], [0; R]);
    let mut state = digest;
    for region in 0..R {
        indices[region] = block_index(region_blocks, region, state);
        bits[region] = lanes(state);
        state = next_region(state);
    }
    (indices, bits)
}

/// The word of a counter, and its bits in there, all set.
#[inline(always)]
const fn field<const C: usize>(lane: u64) -> (usize, u64) {
    let (word, shift) = place::<C>(lane);
    (word, max::<C>() << shift)
}

/// A counter of 1 in the field `full`: without a second shift by a number that
/// is not known before, which are slow on older CPUs.
#[inline(always)]
const fn one<const C: usize>(full: u64) -> u64 {
    full & (u64::MAX / max::<C>())
}

/// The least counter that the lanes choose, one in each word.
#[inline(always)]
fn least<const C: usize, const W: usize>(block: &Block<C, W>, lanes: u64) -> u64 {
    let mut least = max::<C>();
    for (i, words) in (0..).zip(block) {
        let (word, shift) = place::<C>(lane(lanes, i));
        least = least.min(words[word] >> shift & max::<C>());
    }
    least
}

/// The least counter in all regions.
#[inline(always)]
fn least_of_all<const C: usize, const W: usize, const R: usize>(
    blocks: &[Block<C, W>],
    indices: &[usize; R],
    bits: &[u64; R],
) -> u64 {
    let mut all = max::<C>();
    for (&index, &bits) in indices.iter().zip(bits) {
        all = all.min(least(&blocks[index], bits));
    }
    all
}

/// Whether no counter is 0.
#[inline(always)]
fn has_all<const C: usize, const W: usize, const R: usize>(
    blocks: &[Block<C, W>],
    indices: &[usize; R],
    bits: &[u64; R],
) -> bool {
    let mut zero = false;
    for (&index, &bits) in indices.iter().zip(bits) {
        let block = &blocks[index];
        for (i, words) in (0..).zip(block) {
            let (word, shift) = place::<C>(lane(bits, i));
            zero |= words[word] >> shift & max::<C>() == 0;
        }
    }
    !zero
}

/// Increases the counters, each but the saturated ones. True if one was 0.
#[inline(always)]
fn increase_all<const C: usize, const W: usize, const R: usize>(
    blocks: &mut [Block<C, W>],
    indices: &[usize; R],
    bits: &[u64; R],
) -> bool {
    let mut zero = false;
    for (&index, &bits) in indices.iter().zip(bits) {
        let block = &mut blocks[index];
        for (i, words) in (0..).zip(block) {
            let (word, full) = field::<C>(lane(bits, i));
            let value = words[word] & full;
            zero |= value == 0;
            words[word] += if value == full { 0 } else { one::<C>(full) };
        }
    }
    zero
}

/// Increases the least of the counters. True if they were 0.
#[inline(never)] // the rarer way of counting: one copy a shape
fn increase_least<const C: usize, const W: usize, const R: usize>(
    blocks: &mut [Block<C, W>],
    indices: &[usize; R],
    bits: &[u64; R],
) -> bool {
    let least = least_of_all(blocks, indices, bits);
    if least == max::<C>() {
        return false;
    }
    for (&index, &bits) in indices.iter().zip(bits) {
        let block = &mut blocks[index];
        for (i, words) in (0..).zip(block) {
            let (word, shift) = place::<C>(lane(bits, i));
            let value = words[word] >> shift & max::<C>();
            words[word] += u64::from(value == least) << shift;
        }
    }
    least == 0
}

#[inline(always)]
fn increase_by<const C: usize, const W: usize, const R: usize>(
    increase: Increase,
    blocks: &mut [Block<C, W>],
    indices: &[usize; R],
    bits: &[u64; R],
) -> bool {
    match increase {
        Increase::All => increase_all(blocks, indices, bits),
        Increase::Minimal => increase_least(blocks, indices, bits),
    }
}

/// Decreases the counters, each but the saturated ones, unless one is 0. True
/// if that changed one.
#[inline(always)]
fn decrease<const C: usize, const W: usize, const R: usize>(
    blocks: &mut [Block<C, W>],
    indices: &[usize; R],
    bits: &[u64; R],
) -> bool {
    if !has_all(blocks, indices, bits) {
        return false;
    }
    let mut changed = false;
    for (&index, &bits) in indices.iter().zip(bits) {
        let block = &mut blocks[index];
        for (i, words) in (0..).zip(block) {
            let (word, full) = field::<C>(lane(bits, i));
            let value = words[word] & full;
            changed |= value != full;
            // No borrow: the value is not 0.
            words[word] -= if value == full { 0 } else { one::<C>(full) };
        }
    }
    changed
}

// One digest. Not inlined, so that callers stay small and batches share them.

#[inline(never)]
fn count<const C: usize, const W: usize, const R: usize>(
    words: &[u64],
    region_blocks: u64,
    digest: u64,
) -> u64 {
    let (indices, bits) = locate::<R>(region_blocks, digest);
    least_of_all(blocks::<C, W>(words), &indices, &bits)
}

#[inline(never)]
fn contains<const C: usize, const W: usize, const R: usize>(
    words: &[u64],
    region_blocks: u64,
    digest: u64,
) -> bool {
    let (indices, bits) = locate::<R>(region_blocks, digest);
    has_all(blocks::<C, W>(words), &indices, &bits)
}

#[inline(never)]
fn insert<const C: usize, const W: usize, const R: usize>(
    words: &mut [u64],
    region_blocks: u64,
    increase: Increase,
    digest: u64,
) -> bool {
    let (indices, bits) = locate::<R>(region_blocks, digest);
    increase_by(increase, blocks_mut::<C, W>(words), &indices, &bits)
}

#[inline(never)]
fn remove<const C: usize, const W: usize, const R: usize>(
    words: &mut [u64],
    region_blocks: u64,
    digest: u64,
) -> bool {
    let (indices, bits) = locate::<R>(region_blocks, digest);
    decrease(blocks_mut::<C, W>(words), &indices, &bits)
}

// Many: with the lines of the following ones under way, where that pays.

fn contains_all<const C: usize, const W: usize, const R: usize>(
    words: &[u64],
    region_blocks: u64,
    digests: &[u64],
    mask: &mut [u64],
) {
    if size_of_val(words) <= CACHED_BYTES {
        each_digest(digests, mask, flags, |digest| {
            u8::from(contains::<C, W, R>(words, region_blocks, digest))
        });
        return;
    }
    let blocks = blocks::<C, W>(words);
    each_ahead(
        blocks.as_ptr(),
        region_blocks,
        digests,
        mask,
        flags,
        |indices: &[usize; R], bits: &[u64; R]| u8::from(has_all(blocks, indices, bits)),
    );
}

fn insert_all<const C: usize, const W: usize, const R: usize>(
    words: &mut [u64],
    region_blocks: u64,
    increase: Increase,
    digests: &[u64],
    mask: &mut [u64],
) {
    if size_of_val(words) <= CACHED_BYTES {
        each_digest(digests, mask, flags, |digest| {
            u8::from(insert::<C, W, R>(words, region_blocks, increase, digest))
        });
        return;
    }
    let blocks = blocks_mut::<C, W>(words);
    each_ahead(
        blocks.as_ptr(),
        region_blocks,
        digests,
        mask,
        flags,
        |indices: &[usize; R], bits: &[u64; R]| {
            u8::from(increase_by(increase, blocks, indices, bits))
        },
    );
}

fn remove_all<const C: usize, const W: usize, const R: usize>(
    words: &mut [u64],
    region_blocks: u64,
    digests: &[u64],
    mask: &mut [u64],
) -> u64 {
    if size_of_val(words) <= CACHED_BYTES {
        return each_digest(digests, mask, flags, |digest| {
            u8::from(remove::<C, W, R>(words, region_blocks, digest))
        });
    }
    let blocks = blocks_mut::<C, W>(words);
    each_ahead(
        blocks.as_ptr(),
        region_blocks,
        digests,
        mask,
        flags,
        |indices: &[usize; R], bits: &[u64; R]| u8::from(decrease(blocks, indices, bits)),
    )
}
