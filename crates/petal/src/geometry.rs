//! The split-block layout: which bits of the words a digest owns.
//!
//! Owns [`SplitGeometry`] and the arithmetic from a digest to block and bit
//! positions. It holds no words, does not choose sizes
//! ([`crate::sizing`]), does not touch bits ([`crate::arch`]), and knows no
//! filter.
//!
//! ```text
//! region 0                         region 1 (if any)
//! | block 0 | block 1 | ... | b-1 || block 0 | ...
//!   a block = 8 words of 64 bits (one cache line), or 4 (half a line)
//!   a key takes one block of each region, and one bit in each word of it
//! ```
//!
//! With `x` the digest for region 0, and `x = (x ^ x >> 32) * NEXT` for each
//! further region:
//! block = `x * blocks >> 64` (128-bit product, "fastrange": Lemire,
//! "Fast random integer generation in an interval", 2019);
//! `lanes = x * LANES`; bit of word i = `(lanes >> (58 - 6 i)) & 63`.
//! The block comes from the high bits of `x`, the lanes from all of them.

pub(crate) mod deletable;
pub(crate) mod window;

use std::fmt;

use crate::error::{Error, Result};

/// Odd multiplier that spreads a digest over the lanes of a block.
pub(crate) const LANES: u64 = 0x9e37_79b9_7f4a_7c15;
/// Odd multiplier from one region's state to the next.
const NEXT: u64 = 0xd6e8_feb8_6659_fd93;

/// Blocks a region of any larger filter are `q * 2^s` with `q` from this
/// number up to twice it, so that it folds `s` times.
pub(crate) const MIN_FOLDED_BLOCKS: u64 = 256;

/// How many 64-bit words make a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockWords {
    /// 256 bits, half a cache line: smaller and faster for errors of 5 % and more.
    Four,
    /// 512 bits, one cache line.
    Eight,
}

impl BlockWords {
    /// Words in the block: 4 or 8.
    #[must_use]
    pub const fn count(self) -> u32 {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// The shape of a split-block filter: everything that decides where the bits
/// of a digest are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitGeometry {
    block: BlockWords,
    regions: u32,
    blocks: u64,
}

impl SplitGeometry {
    /// Most regions a filter may have.
    pub const MAX_REGIONS: u32 = 4;

    /// A geometry of `regions` (1 to 4) equal regions of `blocks` blocks each.
    ///
    /// # Errors
    /// If `regions` is out of range, `blocks` is 0 or not of the form
    /// `q * 2^s` with 256 ≤ q < 512 (any number below 256 is fine), or the
    /// bits would pass 2^63.
    pub fn new(block: BlockWords, regions: u32, blocks: u64) -> Result<Self> {
        if !(1..=Self::MAX_REGIONS).contains(&regions) {
            return Err(Error::parameter("regions", regions, "use 1 to 4"));
        }
        if blocks == 0 || round_up_blocks(blocks) != Some(blocks) {
            return Err(Error::parameter(
                "blocks",
                blocks,
                "use 1 to 511, or q * 2^s with q from 256 to 511",
            ));
        }
        let bits = u128::from(blocks) * u128::from(regions) * u128::from(block.count()) * 64;
        if bits > 1 << 63 {
            return Err(Error::parameter(
                "blocks",
                blocks,
                "a filter has at most 2^63 bits: use fewer blocks",
            ));
        }
        Ok(Self {
            block,
            regions,
            blocks,
        })
    }

    /// Words in a block.
    #[must_use]
    pub const fn block(self) -> BlockWords {
        self.block
    }

    /// Number of regions, 1 to 4.
    #[must_use]
    pub const fn regions(self) -> u32 {
        self.regions
    }

    /// Blocks in each region.
    #[must_use]
    pub const fn blocks(self) -> u64 {
        self.blocks
    }

    /// 64-bit words in all regions together.
    #[must_use]
    pub const fn words(self) -> u64 {
        self.blocks * self.regions as u64 * self.block.count() as u64
    }

    /// Bytes of the words.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.words() * 8
    }

    /// Bits of the words (the "m" of the literature).
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.words() * 64
    }

    /// Bits one key sets: one in each word of its block in each region (the
    /// "k" of the literature).
    #[must_use]
    pub const fn bits_per_key(self) -> u32 {
        self.regions * self.block.count()
    }

    /// How often the filter can be folded to half its size: as long as the
    /// number of blocks is even. With `q * 2^s` blocks at least `s` times.
    #[must_use]
    pub const fn folds(self) -> u32 {
        self.blocks.trailing_zeros()
    }

    /// The shape with half the blocks; `None` if their number is odd. Because
    /// the block is a fastrange of the digest, block `i` of the half is the OR
    /// of blocks `2i` and `2i + 1`.
    #[must_use]
    pub const fn half(self) -> Option<Self> {
        if self.folds() == 0 {
            return None;
        }
        Some(Self {
            block: self.block,
            regions: self.regions,
            blocks: self.blocks / 2,
        })
    }
}

impl fmt::Display for SplitGeometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} x {} blocks of {} x 64 bits",
            self.regions,
            self.blocks,
            self.block.count()
        )
    }
}

/// The least allowed number of blocks that is not below `blocks`, or `None`
/// past 2^63. At most 0.4 % more than asked.
pub(crate) const fn round_up_blocks(blocks: u64) -> Option<u64> {
    if blocks < 2 * MIN_FOLDED_BLOCKS {
        return Some(blocks);
    }
    if blocks > 1 << 63 {
        return None;
    }
    let shift = (blocks / MIN_FOLDED_BLOCKS).ilog2();
    // Rounding 511.x up gives 512 * 2^shift, which is 256 * 2^(shift + 1).
    Some(blocks.div_ceil(1 << shift) << shift)
}

/// The greatest allowed number of blocks that is not above `blocks` (0 for 0).
pub(crate) const fn round_down_blocks(blocks: u64) -> u64 {
    if blocks < 2 * MIN_FOLDED_BLOCKS {
        return blocks;
    }
    let shift = (blocks / MIN_FOLDED_BLOCKS).ilog2();
    (blocks >> shift) << shift
}

/// Index of the block that a region's state falls into.
#[inline(always)]
pub(crate) const fn block_of(state: u64, blocks: u64) -> u64 {
    ((state as u128 * blocks as u128) >> 64) as u64
}

/// The state of the next region.
#[inline(always)]
pub(crate) const fn next_region(state: u64) -> u64 {
    (state ^ (state >> 32)).wrapping_mul(NEXT)
}

/// The lanes of a state: six bits a word, from the top.
#[inline(always)]
pub(crate) const fn lanes(state: u64) -> u64 {
    state.wrapping_mul(LANES)
}

/// The place (0 to 63) that the lanes choose in word `word` (0 to 7) of the block.
#[inline(always)]
pub(crate) const fn lane(lanes: u64, word: u32) -> u64 {
    (lanes >> (58 - 6 * word)) & 63
}

/// The one bit that the lanes choose in word `word` (0 to 7) of the block.
#[inline(always)]
pub(crate) const fn lane_bit(lanes: u64, word: u32) -> u64 {
    1 << lane(lanes, word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_block_counts_waste_little_and_fold() {
        for blocks in (1..100_000u64).chain((1..1000).map(|i| i * 987_654_321)) {
            let up = round_up_blocks(blocks).unwrap();
            assert!(up >= blocks && up - blocks <= blocks / 256);
            assert_eq!(round_up_blocks(up), Some(up));
            assert_eq!(round_down_blocks(up), up);
            let down = round_down_blocks(blocks);
            assert!(down <= blocks && blocks - down <= blocks / 256);
            let mut geometry = SplitGeometry::new(BlockWords::Eight, 1, up).unwrap();
            while let Some(half) = geometry.half() {
                assert_eq!(half.blocks() * 2, geometry.blocks());
                geometry = half;
            }
            assert!(geometry.blocks() < 512 && geometry.blocks() % 2 == 1);
        }
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (regions, blocks) in [(0, 1), (5, 1), (1, 0), (1, 513), (1, 1 << 63), (4, 1 << 53)] {
            assert!(SplitGeometry::new(BlockWords::Eight, regions, blocks).is_err());
        }
        assert!(SplitGeometry::new(BlockWords::Eight, 4, 1 << 52).is_ok());
    }

    #[test]
    fn folding_keeps_the_block_of_every_digest() {
        let mut x = 1u64;
        for _ in 0..10_000 {
            x = next_region(x.wrapping_add(0x1234_5678_9abc_def1));
            for blocks in [1u64, 3, 255, 256, 300, 511, 1 << 20, 3 << 30] {
                assert_eq!(block_of(x, blocks * 2) / 2, block_of(x, blocks));
            }
        }
    }
}
