//! One digest: from the digest to its blocks, and from block to block.
//!
//! Owns [`BlockKernel`], what a kernel has to offer, the blocks as the kernels
//! see them, and the loops over the regions that every kernel compiles for its
//! own CPU. It does not know the kernels, and does not choose one; many
//! digests at once are `batch`'s.

use crate::geometry::{block_of, lanes, next_region};

/// Works on blocks of `W` words (4 or 8), given their lanes.
pub(crate) trait BlockKernel: Copy {
    /// 0 if the block has the bit that the lanes choose in each word. Else
    /// another value, of the kernel's choice; values of several blocks may be
    /// joined by `|`.
    fn lacking<const W: usize>(self, block: &[u64; W], lanes: u64) -> u8;

    /// Sets those bits. Returns what [`Self::lacking`] would have said before.
    fn set<const W: usize>(self, block: &mut [u64; W], lanes: u64) -> u8;

    /// A word with bit `i` set where value `i`, as the two above return them,
    /// is not 0.
    #[inline(always)]
    fn flags(self, values: &[u8; 64]) -> u64 {
        flags(values)
    }
}

/// [`BlockKernel::flags`] for values of 0 and 1: the product moves the lowest
/// bit of byte `i` to bit `56 + i`.
#[inline(always)]
pub(crate) fn flags(values: &[u8; 64]) -> u64 {
    let mut flags = 0;
    for (i, &eight) in values.as_chunks::<8>().0.iter().enumerate() {
        let gathered = u64::from_le_bytes(eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        flags |= gathered << (8 * i);
    }
    flags
}

/// The block that `state` falls into in region `region`, among all blocks:
/// less than `(region + 1) * region_blocks`.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the blocks are in memory, so their indices fit a usize"
)]
pub(crate) const fn block_index(region_blocks: u64, region: usize, state: u64) -> usize {
    (region as u64 * region_blocks + block_of(state, region_blocks)) as usize
}

/// The words of a filter of `R` regions as blocks. That all are there is
/// checked once, so that a probe need not.
pub(crate) struct Blocks<'a, const W: usize, const R: usize> {
    all: &'a [[u64; W]],
    region_blocks: u64,
}

impl<'a, const W: usize, const R: usize> Blocks<'a, W, R> {
    /// # Panics
    /// If the words are not those of `R` regions of `region_blocks` blocks.
    #[inline(always)]
    pub(crate) fn new(words: &'a [u64], region_blocks: u64) -> Self {
        let all = words.as_chunks().0;
        assert!(Some(all.len() as u64) == region_blocks.checked_mul(R as u64));
        Self { all, region_blocks }
    }

    /// The block of a state in a region below `R`.
    #[inline(always)]
    fn at(&self, region: usize, state: u64) -> &[u64; W] {
        assert!(region < R); // a constant where the loops are unrolled
        let index = block_index(self.region_blocks, region, state);
        // SAFETY: the index is less than R * region_blocks, the length.
        #[expect(unsafe_code, reason = "one check for a batch, not one for each digest")]
        unsafe {
            self.all.get_unchecked(index)
        }
    }
}

/// [`Blocks`] that are changed.
pub(crate) struct BlocksMut<'a, const W: usize, const R: usize> {
    all: &'a mut [[u64; W]],
    region_blocks: u64,
}

impl<'a, const W: usize, const R: usize> BlocksMut<'a, W, R> {
    /// # Panics
    /// As [`Blocks::new`].
    #[inline(always)]
    pub(crate) fn new(words: &'a mut [u64], region_blocks: u64) -> Self {
        let all = words.as_chunks_mut().0;
        assert!(Some(all.len() as u64) == region_blocks.checked_mul(R as u64));
        Self { all, region_blocks }
    }

    /// The block of a state in a region below `R`.
    #[inline(always)]
    fn at(&mut self, region: usize, state: u64) -> &mut [u64; W] {
        assert!(region < R); // a constant where the loops are unrolled
        let index = block_index(self.region_blocks, region, state);
        // SAFETY: the index is less than R * region_blocks, the length.
        #[expect(unsafe_code, reason = "one check for a batch, not one for each digest")]
        unsafe {
            self.all.get_unchecked_mut(index)
        }
    }
}

/// Whether all bits of a digest are set. Ends with the first region that
/// lacks one: its later lines need not be fetched.
#[inline(always)]
pub(crate) fn contains<K: BlockKernel, const W: usize, const R: usize>(
    kernel: K,
    words: &[u64],
    region_blocks: u64,
    digest: u64,
) -> bool {
    let blocks = Blocks::<W, R>::new(words, region_blocks);
    let mut state = digest;
    for region in 0..R {
        if kernel.lacking(blocks.at(region, state), lanes(state)) != 0 {
            return false;
        }
        state = next_region(state);
    }
    true
}

/// What the blocks of a digest lack of its bits, all regions together.
#[inline(always)]
pub(crate) fn lacking<K: BlockKernel, const W: usize, const R: usize>(
    kernel: K,
    blocks: &Blocks<'_, W, R>,
    digest: u64,
) -> u8 {
    let mut state = digest;
    let mut lacking = 0;
    for region in 0..R {
        lacking |= kernel.lacking(blocks.at(region, state), lanes(state));
        state = next_region(state);
    }
    lacking
}

/// Sets the bits of a digest. Returns what the blocks lacked of them.
#[inline(always)]
pub(crate) fn set<K: BlockKernel, const W: usize, const R: usize>(
    kernel: K,
    blocks: &mut BlocksMut<'_, W, R>,
    digest: u64,
) -> u8 {
    let mut state = digest;
    let mut lacking = 0;
    for region in 0..R {
        lacking |= kernel.set(blocks.at(region, state), lanes(state));
        state = next_region(state);
    }
    lacking
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_the_values_in_order() {
        let mut x = 1u64;
        for _ in 0..1000 {
            x = next_region(x.wrapping_add(0x1234_5678_9abc_def1));
            let values: [u8; 64] = std::array::from_fn(|i| (x >> i & 1) as u8);
            assert_eq!(flags(&values), x);
        }
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn missing_blocks_are_noticed() {
        let _ = Blocks::<8, 2>::new(&[0; 8 * 19], 10);
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn a_product_that_wraps_is_noticed() {
        let _ = Blocks::<8, 4>::new(&[], 1 << 62);
    }
}
