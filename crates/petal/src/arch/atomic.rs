//! The split-block kernel over words that many threads change at once. Alone
//! it gives the bits and answers of [`super::Scalar`].
//!
//! Every access is `Relaxed`. Bits only ever appear, and each word has one
//! order of changes that all threads agree on, so:
//!
//! * no bit is lost: `fetch_or` acts on the newest value of its word;
//! * whoever learned of an insertion by other means that synchronise (a
//!   channel, a lock, `join`, a flag stored with `Release` and loaded with
//!   `Acquire`) sees its bits: a load may not return a value older than one
//!   that happened before it, and no newer value lacks the bit;
//! * a thread sees its own insertions.
//!
//! Stronger orderings would add one thing: that whoever finds a key also sees
//! what its inserter wrote elsewhere before. No caller can rest on that,
//! since an answer of "seen" may be false, and they would cost barriers on
//! some machines.
//!
//! There are no vector loads here: to read words while others change them is
//! a data race unless each read is atomic.

use std::sync::atomic::Ordering::Relaxed;

use crate::arch::batch::{AHEAD, each_ahead, each_fetched};
use crate::arch::prefetch::{can_fetch_to_write, prefetch_to_write};
use crate::arch::probe::{block_index, flags};
use crate::geometry::{BlockWords, SplitGeometry, lane_bit, lanes, next_region};
use crate::words::AtomicU64;

/// Whether all bits of a digest are set.
#[inline(always)]
pub(crate) fn contains(words: &[AtomicU64], geometry: SplitGeometry, digest: u64) -> bool {
    dispatch!(geometry, |W, R| contains_in::<W, R>(
        words,
        geometry.blocks(),
        digest
    ))
}

/// Sets the bits of a digest. True if this call changed one of them.
#[inline(always)]
pub(crate) fn insert(words: &[AtomicU64], geometry: SplitGeometry, digest: u64) -> bool {
    dispatch!(geometry, |W, R| insert_in::<W, R>(
        words,
        geometry.blocks(),
        digest
    ))
}

/// Sets bit `i` of the mask for every digest that may be present.
pub(crate) fn contains_all(
    words: &[AtomicU64],
    geometry: SplitGeometry,
    digests: &[u64],
    mask: &mut [u64],
) {
    dispatch!(geometry, |W, R| {
        let blocks = words.as_chunks::<W>().0;
        each_ahead(
            blocks.as_ptr(),
            geometry.blocks(),
            digests,
            mask,
            flags,
            |indices: &[usize; R], lanes: &[u64; R]| {
                let mut places = indices.iter().zip(lanes);
                u8::from(places.all(|(&index, &lanes)| has(&blocks[index], lanes)))
            },
        );
    });
}

/// Inserts every digest in order; sets bit `i` of the mask where this call
/// changed a bit. Returns how many did.
///
/// Lines are fetched ahead whatever the size: those of a small filter are
/// often in the cache of another CPU. After a turn of mostly new keys they are
/// fetched to be written, which spares the locked operations the wait for
/// that; lines of repeats stay in all caches.
pub(crate) fn insert_all(
    words: &[AtomicU64],
    geometry: SplitGeometry,
    digests: &[u64],
    mask: &mut [u64],
) -> u64 {
    dispatch!(geometry, |W, R| {
        let blocks = words.as_chunks::<W>().0;
        let can_write = can_fetch_to_write();
        each_fetched(
            blocks.as_ptr(),
            geometry.blocks(),
            digests,
            mask,
            |new| {
                let write = can_write && new as usize > AHEAD / 2;
                move |line| prefetch_to_write(line, write)
            },
            flags,
            |indices: &[usize; R], lanes: &[u64; R]| {
                let mut changed = false;
                for (&index, &lanes) in indices.iter().zip(lanes) {
                    changed |= set(&blocks[index], lanes);
                }
                u8::from(changed)
            },
        )
    })
}

/// [`contains`], for words and regions that are constants.
#[inline(always)]
pub(crate) fn contains_in<const W: usize, const R: usize>(
    words: &[AtomicU64],
    region_blocks: u64,
    digest: u64,
) -> bool {
    let blocks = words.as_chunks::<W>().0;
    let mut state = digest;
    for region in 0..R {
        let block = &blocks[block_index(region_blocks, region, state)];
        if !has(block, lanes(state)) {
            return false;
        }
        state = next_region(state);
    }
    true
}

/// [`insert`], for words and regions that are constants.
#[inline(always)]
pub(crate) fn insert_in<const W: usize, const R: usize>(
    words: &[AtomicU64],
    region_blocks: u64,
    digest: u64,
) -> bool {
    let blocks = words.as_chunks::<W>().0;
    let mut state = digest;
    let mut changed = false;
    for region in 0..R {
        let block = &blocks[block_index(region_blocks, region, state)];
        changed |= set(block, lanes(state));
        state = next_region(state);
    }
    changed
}

/// Whether the block has the bit that the lanes choose in each word.
#[inline(always)]
fn has<const W: usize>(block: &[AtomicU64; W], lanes: u64) -> bool {
    let mut missing = 0;
    for (i, word) in (0..).zip(block) {
        missing |= !word.load(Relaxed) & lane_bit(lanes, i);
    }
    missing == 0
}

/// The words of a block that lack the bit which the lanes choose, as bits.
#[inline(always)]
fn lacking<const W: usize>(block: &[AtomicU64; W], lanes: u64) -> u32 {
    let mut lacking = 0;
    for (i, word) in (0..).zip(block) {
        let lacks = word.load(Relaxed) & lane_bit(lanes, i) == 0;
        lacking |= u32::from(lacks) << i;
    }
    lacking
}

/// Sets those bits. True if this call changed one of them.
#[inline(always)]
fn set<const W: usize>(block: &[AtomicU64; W], lanes: u64) -> bool {
    // Looking first is cheap, and a locked operation is not. A repeat needs
    // none, and leaves the line in the caches of all CPUs that read it.
    let mut left = lacking(block, lanes);
    let mut changed = false;
    while left != 0 {
        let i = left.trailing_zeros();
        let bit = lane_bit(lanes, i);
        // Another thread may have set the bit since we looked.
        changed |= block[i as usize].fetch_or(bit, Relaxed) & bit == 0;
        left &= left - 1;
    }
    changed
}
