//! Batches: many digests in one call, so that the memory works in parallel.
//!
//! Owns the order of prefetching and probing. It does not touch the bits of
//! a block, and does not know the kernels that do: they compile these loops,
//! each for its own CPU.
//!
//! ```text
//! group 0: locate and prefetch
//! group 1: locate and prefetch | group 0: probe
//! group 2: locate and prefetch | group 1: probe ...
//! ```

use crate::arch::prefetch::prefetch;
use crate::arch::probe::{self, BlockKernel, block_index, blocks};
use crate::geometry::{lanes, next_region};

/// Digests whose lines are under way at once: enough to cover the latency of
/// memory, few enough for the L1 cache. Divides 64, so that the answers of a
/// group lie in one word of the mask.
const GROUP: usize = 32;

/// Filters up to this size are asked without fetching ahead: they are in the
/// L2 cache, or close to it, and independent questions overlap by themselves.
const CACHED_BYTES: usize = 2 << 20;

/// Where the blocks of a group are, and what is looked for in them: one entry
/// a region for each digest.
struct Group<const R: usize> {
    blocks: [[usize; R]; GROUP],
    lanes: [[u64; R]; GROUP],
}

impl<const R: usize> Group<R> {
    const EMPTY: Self = Self {
        blocks: [[0; R]; GROUP],
        lanes: [[0; R]; GROUP],
    };

    /// Locates the blocks of at most [`GROUP`] digests and fetches them.
    #[inline(always)]
    fn locate<T, const W: usize>(
        &mut self,
        blocks: &[[T; W]],
        region_blocks: u64,
        digests: &[u64],
    ) {
        let places = self.blocks.iter_mut().zip(&mut self.lanes);
        for (&digest, (indices, bits)) in digests.iter().zip(places) {
            let mut state = digest;
            for region in 0..R {
                indices[region] = block_index(region_blocks, region, state);
                bits[region] = lanes(state);
                prefetch(blocks, indices[region]);
                state = next_region(state);
            }
        }
    }
}

/// Sets bit `i` of the mask for every digest that may be present.
#[inline(always)]
pub(crate) fn contains_all<K: BlockKernel, const W: usize, const R: usize>(
    kernel: K,
    words: &[u64],
    region_blocks: u64,
    digests: &[u64],
    mask: &mut [u64],
) {
    if size_of_val(words) <= CACHED_BYTES {
        each_digest(digests, mask, |digest| {
            probe::contains::<K, W, R>(kernel, words, region_blocks, digest)
        });
        return;
    }
    let mut blocks = blocks::<W>(words);
    each_group(
        &mut blocks,
        |blocks| blocks,
        region_blocks,
        digests,
        mask,
        |blocks, indices: &[usize; R], bits: &[u64; R]| {
            let mut all = true;
            // No early end: the lines are there, and a wrong guess costs more.
            for region in 0..R {
                all &= kernel.has(&blocks[indices[region]], bits[region]);
            }
            all
        },
    );
}

/// Inserts every digest in order; sets bit `i` of the mask where that
/// changed a bit. Returns how many did.
#[inline(always)]
pub(crate) fn insert_all<K: BlockKernel, const W: usize, const R: usize>(
    kernel: K,
    words: &mut [u64],
    region_blocks: u64,
    digests: &[u64],
    mask: &mut [u64],
) -> u64 {
    if size_of_val(words) <= CACHED_BYTES {
        return each_digest(digests, mask, |digest| {
            probe::insert::<K, W, R>(kernel, words, region_blocks, digest)
        });
    }
    let mut blocks = words.as_chunks_mut::<W>().0;
    each_group(
        &mut blocks,
        |blocks| blocks,
        region_blocks,
        digests,
        mask,
        |blocks, indices: &[usize; R], bits: &[u64; R]| {
            let mut changed = false;
            for region in 0..R {
                changed |= kernel.set(&mut blocks[indices[region]], bits[region]);
            }
            changed
        },
    )
}

/// Calls `probe` for every digest in order and sets its bit of the mask where
/// that is true. Returns how many were.
#[inline(always)]
fn each_digest(digests: &[u64], mask: &mut [u64], mut probe: impl FnMut(u64) -> bool) -> u64 {
    let mut count = 0;
    for (chunk, word) in digests.chunks(64).zip(mask) {
        // Collected here: in the mask each bit would wait for the one before.
        let mut answers = 0u64;
        for (i, &digest) in chunk.iter().enumerate() {
            answers |= u64::from(probe(digest)) << i;
        }
        count += u64::from(answers.count_ones());
        *word |= answers;
    }
    count
}

/// Calls `probe(blocks, indices, lanes)` for every digest in order, with the
/// lines of the following group already under way, and sets its bit of the
/// mask where that is true. Returns how many were.
#[inline(always)]
pub(crate) fn each_group<B, T, const W: usize, const R: usize>(
    blocks: &mut B,
    as_slice: impl Fn(&B) -> &[[T; W]],
    region_blocks: u64,
    digests: &[u64],
    mask: &mut [u64],
    mut probe: impl FnMut(&mut B, &[usize; R], &[u64; R]) -> bool,
) -> u64 {
    let mut groups = [Group::<R>::EMPTY, Group::<R>::EMPTY];
    let [mut current, mut next] = groups.each_mut();
    let mut count = 0;
    let mut chunks = digests.chunks(GROUP).enumerate().peekable();
    if let Some((_, first)) = chunks.peek() {
        next.locate(as_slice(blocks), region_blocks, first);
    }
    while let Some((number, chunk)) = chunks.next() {
        std::mem::swap(&mut current, &mut next);
        if let Some((_, following)) = chunks.peek() {
            next.locate(as_slice(blocks), region_blocks, following);
        }
        let mut answers = 0u64;
        let places = current.blocks.iter().zip(&current.lanes);
        for (i, (indices, bits)) in places.take(chunk.len()).enumerate() {
            answers |= u64::from(probe(blocks, indices, bits)) << i;
        }
        count += u64::from(answers.count_ones());
        let place = number * GROUP;
        mask[place / 64] |= answers << (place % 64);
    }
    count
}
