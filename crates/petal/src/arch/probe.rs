//! One digest: from the digest to its blocks, and from block to block.
//!
//! Owns [`BlockKernel`], what a kernel has to offer, and the loops over the
//! regions that every such kernel compiles for its own CPU. It does not know
//! the kernels, and does not choose one; many digests at once are `batch`'s.

use crate::geometry::{block_of, lanes, next_region};

/// Works on blocks of `W` words (4 or 8), given their lanes.
pub(crate) trait BlockKernel: Copy {
    /// Whether the block has the bit that the lanes choose in each word.
    fn has<const W: usize>(self, block: &[u64; W], lanes: u64) -> bool;

    /// Sets those bits. True if one of them was not set before.
    fn set<const W: usize>(self, block: &mut [u64; W], lanes: u64) -> bool;
}

/// The blocks of a filter's words.
#[inline(always)]
pub(crate) fn blocks<const W: usize>(words: &[u64]) -> &[[u64; W]] {
    words.as_chunks().0
}

/// The block that `state` falls into in region `region`, among all blocks.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the blocks are in memory, so their indices fit a usize"
)]
pub(crate) const fn block_index(region_blocks: u64, region: usize, state: u64) -> usize {
    (region as u64 * region_blocks + block_of(state, region_blocks)) as usize
}

/// Whether all bits of a digest are set.
#[inline(always)]
pub(crate) fn contains<K: BlockKernel, const W: usize, const R: usize>(
    kernel: K,
    words: &[u64],
    region_blocks: u64,
    digest: u64,
) -> bool {
    let blocks = blocks::<W>(words);
    let mut state = digest;
    for region in 0..R {
        if !kernel.has(
            &blocks[block_index(region_blocks, region, state)],
            lanes(state),
        ) {
            return false;
        }
        state = next_region(state);
    }
    true
}

/// Sets the bits of a digest. True if one of them was not set before.
#[inline(always)]
pub(crate) fn insert<K: BlockKernel, const W: usize, const R: usize>(
    kernel: K,
    words: &mut [u64],
    region_blocks: u64,
    digest: u64,
) -> bool {
    let blocks = words.as_chunks_mut::<W>().0;
    let mut state = digest;
    let mut changed = false;
    for region in 0..R {
        changed |= kernel.set(
            &mut blocks[block_index(region_blocks, region, state)],
            lanes(state),
        );
        state = next_region(state);
    }
    changed
}
