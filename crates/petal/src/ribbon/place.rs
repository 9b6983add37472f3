//! Where a digest is in a layer of a shard, and what is stored for it.
//!
//! Owns the arithmetic from a digest to shard, layer, slot, coefficients and
//! fingerprint: all of it belongs to the file format. It holds no words.
//!
//! ```text
//! shard       = hi(digest * shards)
//! layer 0:      d = digest                start = hi(lo(digest * shards) * starts)
//! layer i > 0:  d = mix_int(digest, i)    start = hi(d * starts)
//! c           = (d ^ d >> 32) * NEXT
//! coefficients  c ^ c >> 32, lowest bit set: bit k is that of slot start + k
//! fingerprint   hi(c * LANES) shifted left by the bits of a value, and below it as many high
//!               bits of c: column j has bit j
//! ```
//!
//! A shard is a range of digests, and in its first layer the slots have the
//! order of the digests: sorted digests are inserted as they come.

use crate::geometry::{LANES, block_of, next_region};
use crate::hash::mix_int;

/// Slots a row may reach over, and of a block of the solution.
pub(super) const WIDTH: u64 = 64;

/// Slots of a bucket: the keys of a bucket are bumped by one threshold.
pub(super) const BUCKET: u64 = 128;

/// Layers a key may be bumped through. The last one bumps none.
pub(super) const LAYERS: usize = 4;

/// The shard of a digest, and its position in the shard's range: from 0 to
/// 2^64.
#[inline(always)]
pub(super) const fn shard_of(digest: u64, shards: u64) -> (u64, u64) {
    (block_of(digest, shards), digest.wrapping_mul(shards))
}

/// What a layer makes of a digest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// The first slot.
    pub(super) start: u64,
    /// Bit `k` belongs to slot `start + k`. Bit 0 is set.
    pub(super) coefficients: u64,
    /// Column `j` has bit `j`.
    pub(super) fingerprint: u64,
}

impl Row {
    /// The row of a digest in the first layer, from its position in the
    /// shard's range.
    #[inline(always)]
    pub(super) const fn in_first(digest: u64, position: u64, starts: u64) -> Self {
        Self::from_mixed(digest, position, starts)
    }

    /// The row of a digest in a layer after the first one.
    #[inline(always)]
    pub(super) const fn in_later(digest: u64, layer: usize, starts: u64) -> Self {
        let mixed = mix_int(digest.cast_signed(), layer as u64);
        Self::from_mixed(mixed, mixed, starts)
    }

    /// The row in a filter with so many bits of a value. These come first, masked by bits that no
    /// other column has: so those found for an absent key are random, however few keys there are.
    /// (The high bits of `hi(c * LANES)` would not do: it is at most LANES.)
    #[inline(always)]
    pub(super) const fn with_value(mut self, bits: u32, value: u16) -> Self {
        // Those of the coefficients are those of c.
        let mask = self.coefficients.rotate_left(bits) & ((1 << bits) - 1);
        self.fingerprint = self.fingerprint << bits | mask ^ value as u64;
        self
    }

    #[inline(always)]
    const fn from_mixed(digest: u64, position: u64, starts: u64) -> Self {
        let c = next_region(digest);
        Self {
            start: block_of(position, starts),
            coefficients: c ^ (c >> 32) | 1,
            fingerprint: block_of(c, LANES),
        }
    }
}

/// Slots at which a row can start.
#[inline(always)]
pub(super) const fn starts(blocks: u64) -> u64 {
    blocks * WIDTH - (WIDTH - 1)
}

/// How soon a key is bumped, 0 to 2, by its place in the bucket: those with
/// the lowest starts first, since the rows before them leave no room there. A
/// bucket's threshold `t` keeps the keys whose value is below `t`.
///
/// The two steps are those of the authors' implementation for rows of 64
/// (Dillinger, Hübschle-Schneider, Sanders and Walzer, "Fast succinct
/// retrieval and approximate membership using ribbon", 2022), at 3.5 % more
/// keys than slots.
#[inline(always)]
pub(super) const fn bump_class(start: u64) -> u64 {
    let from_end = BUCKET - 1 - start % BUCKET;
    (from_end > 94) as u64 + (from_end > 113) as u64
}

/// The threshold that keeps all keys.
pub(super) const KEEP_ALL: u64 = 3;

/// Whether a key is bumped by the threshold in the two low bits: what
/// `bump_class(start) >= threshold` says.
#[inline(always)]
pub(super) const fn is_bumped(start: u64, thresholds: u64) -> bool {
    /// For each threshold, the first place in the bucket that is kept.
    const KEPT_FROM: u32 = u32::from_le_bytes([128, 33, 14, 0]);
    start % BUCKET < (KEPT_FROM >> (8 * (thresholds & KEEP_ALL)) & 0xff) as u64
}

/// Buckets of a layer.
pub(super) const fn buckets(blocks: u64) -> u64 {
    (blocks * WIDTH).div_ceil(BUCKET)
}

/// Words of their thresholds, two bits each.
pub(super) const fn threshold_words(blocks: u64) -> u64 {
    buckets(blocks).div_ceil(32)
}
