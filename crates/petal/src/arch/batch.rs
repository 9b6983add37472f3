//! Batches: many digests in one call, so that the memory works in parallel.
//!
//! Owns the order of prefetching and probing. It does not touch the bits of
//! a block, and does not know the kernels that do: they compile these loops,
//! each for its own CPU.
//!
//! ```text
//!    digest:  0  1  2 .. 31 32 33 34 ..
//!    locate, fetch        ^              32 ahead of the probe, in a ring
//!    probe       ^                       its lines have arrived
//! ```

use crate::arch::prefetch::prefetch;
use crate::arch::probe::{self, BlockKernel, Blocks, BlocksMut, block_index};
use crate::geometry::{lanes, next_region};

/// How many digests are located, and their lines under way, before the first
/// of them is probed: enough to cover the latency of memory, few enough for
/// the L1 cache. Divides 64, so that a turn of the ring fills half a word of
/// the mask.
pub(crate) const AHEAD: usize = 32;

/// Filters up to this size are asked without fetching ahead: they are in the
/// L2 cache, or close to it, and independent questions overlap by themselves.
pub(crate) const CACHED_BYTES: usize = 2 << 20;

/// Where the blocks of a digest are, and what is looked for in them: one
/// entry a region.
#[derive(Clone, Copy)]
struct Place<const R: usize> {
    blocks: [usize; R],
    lanes: [u64; R],
}

impl<const R: usize> Place<R> {
    const NONE: Self = Self {
        blocks: [0; R],
        lanes: [0; R],
    };

    /// Locates the blocks of a digest and fetches them with `fetch`.
    #[inline(always)]
    fn locate<B>(
        &mut self,
        first: *const B,
        region_blocks: u64,
        digest: u64,
        fetch: impl Fn(*const B),
    ) {
        let mut state = digest;
        for region in 0..R {
            self.blocks[region] = block_index(region_blocks, region, state);
            self.lanes[region] = lanes(state);
            fetch(first.wrapping_add(self.blocks[region]));
            state = next_region(state);
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
    let blocks = Blocks::<W, R>::new(words, region_blocks);
    let flags = |values: &[u8; 64]| !kernel.flags(values);
    if size_of_val(words) <= CACHED_BYTES {
        each_digest(digests, mask, flags, |digest| {
            probe::lacking(kernel, &blocks, digest)
        });
    } else {
        let blocks = words.as_chunks::<W>().0;
        each_ahead(
            blocks.as_ptr(),
            region_blocks,
            digests,
            mask,
            flags,
            |indices: &[usize; R], bits: &[u64; R]| {
                let mut lacking = 0;
                // No early end: the lines are there, and a wrong guess costs more.
                for region in 0..R {
                    lacking |= kernel.lacking(&blocks[indices[region]], bits[region]);
                }
                lacking
            },
        );
    }
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
    let flags = |values: &[u8; 64]| kernel.flags(values);
    if size_of_val(words) <= CACHED_BYTES {
        let mut blocks = BlocksMut::<W, R>::new(words, region_blocks);
        return each_digest(digests, mask, flags, |digest| {
            probe::set(kernel, &mut blocks, digest)
        });
    }
    let blocks = words.as_chunks_mut::<W>().0;
    each_ahead(
        blocks.as_ptr(),
        region_blocks,
        digests,
        mask,
        flags,
        |indices: &[usize; R], bits: &[u64; R]| {
            let mut lacking = 0;
            for region in 0..R {
                lacking |= kernel.set(&mut blocks[indices[region]], bits[region]);
            }
            lacking
        },
    )
}

/// A word with the first `count` bits set, 1 to 64.
#[inline(always)]
const fn first_bits(count: usize) -> u64 {
    u64::MAX >> (64 - count)
}

/// Calls `probe` for every digest in order and sets the bits of the mask that
/// `flags` makes of the values. Returns how many bits that are.
///
/// The values are collected as bytes and become bits 64 at a time (`flags`):
/// a bit each would take longer than the probe of a line that is at hand.
#[inline(always)]
pub(crate) fn each_digest(
    digests: &[u64],
    mask: &mut [u64],
    flags: impl Fn(&[u8; 64]) -> u64,
    mut probe: impl FnMut(u64) -> u8,
) -> u64 {
    debug_assert!(mask.len() >= digests.len().div_ceil(64));
    let mut count = 0;
    for (chunk, word) in digests.chunks(64).zip(mask) {
        let mut values = [0; 64];
        for (value, &digest) in values.iter_mut().zip(chunk) {
            *value = probe(digest);
        }
        let answers = flags(&values) & first_bits(chunk.len());
        count += u64::from(answers.count_ones());
        *word |= answers;
    }
    count
}

/// Calls `probe(indices, lanes)` for every digest in order, its lines fetched
/// [`AHEAD`] digests before, and sets the bits of the mask that `flags` makes
/// of the values. Returns how many bits that are.
#[inline(always)]
pub(crate) fn each_ahead<B, const R: usize>(
    first: *const B,
    region_blocks: u64,
    digests: &[u64],
    mask: &mut [u64],
    flags: impl Fn(&[u8; 64]) -> u64,
    probe: impl FnMut(&[usize; R], &[u64; R]) -> u8,
) -> u64 {
    let fetch_after = |_| prefetch;
    each_fetched(
        first,
        region_blocks,
        digests,
        mask,
        fetch_after,
        flags,
        probe,
    )
}

/// [`each_ahead`] with another way to fetch a line: that which
/// `fetch_after(count)` gives, after a turn of the ring with so many bits.
#[inline(always)]
pub(crate) fn each_fetched<B, F: Fn(*const B), const R: usize>(
    first: *const B,
    region_blocks: u64,
    digests: &[u64],
    mask: &mut [u64],
    fetch_after: impl Fn(u32) -> F,
    flags: impl Fn(&[u8; 64]) -> u64,
    mut probe: impl FnMut(&[usize; R], &[u64; R]) -> u8,
) -> u64 {
    let mut places = [Place::<R>::NONE; AHEAD];
    let (started, mut rest) = digests.split_at(digests.len().min(AHEAD));
    let mut fetch = fetch_after(0);
    for (place, &digest) in places.iter_mut().zip(started) {
        place.locate(first, region_blocks, digest, &fetch);
    }
    let mut count = 0;
    for number in 0..digests.len().div_ceil(AHEAD) {
        let mut values = [0; 64];
        let following = rest.split_off(..rest.len().min(AHEAD)).unwrap_or_default();
        let mut places = places.iter_mut().zip(&mut values);
        // One probe, one fetch: the memory is never without work.
        for (&digest, (place, value)) in following.iter().zip(places.by_ref()) {
            *value = probe(&place.blocks, &place.lanes);
            place.locate(first, region_blocks, digest, &fetch);
        }
        // At the end: what is under way, with nothing left to fetch.
        let turn = (digests.len() - number * AHEAD).min(AHEAD);
        for (place, value) in places.take(turn - following.len()) {
            *value = probe(&place.blocks, &place.lanes);
        }
        let answers = flags(&values) & first_bits(turn);
        fetch = fetch_after(answers.count_ones());
        count += u64::from(answers.count_ones());
        let at = number * AHEAD;
        mask[at / 64] |= answers << (at % 64);
    }
    count
}
