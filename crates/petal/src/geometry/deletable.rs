//! The layout of a quotient filter: which slot a digest belongs to, and where
//! the parts of a slot are.
//!
//! Owns [`DeletableGeometry`]. A digest becomes a fingerprint, evenly one of
//! `slots * 2^remainder_bits`: its quotient is the slot it belongs to, its
//! remainder is what the slot holds. With `x` the digest, both are parts of
//! the 128-bit product `x * slots`: the high word is the quotient, the high
//! bits of the low word are the remainder. So the number of slots need not be
//! a power of two, and taking one bit from the remainder for twice the slots
//! keeps every fingerprint as it is.
//!
//! ```text
//! | 8 offsets | block 0 | ... | block 7 | 8 offsets | block 8 | ...
//!   an offset = 8 bits; a block = 64 slots:
//!   | occupied, 1 word | run ends, 1 word | remainders, remainder_bits words |
//! ```

use std::fmt;

use crate::error::{Error, Result};

/// Slots of a block.
pub(crate) const BLOCK_SLOTS: u32 = 64;

/// Blocks whose offsets share a word.
pub(crate) const GROUP_BLOCKS: u32 = 8;

/// Slots behind the last quotient, for what is pushed beyond it. At a load of
/// 0.95 the mean of those is 9, and 256 are passed once in 10^11 filters.
const SPARE_SLOTS: u64 = 256;

/// The shape of a [`crate::Deletable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeletableGeometry {
    slots: u64,
    remainder_bits: u32,
}

impl DeletableGeometry {
    /// Most bits a remainder may have.
    pub const MAX_REMAINDER_BITS: u32 = 56;

    /// A geometry of `slots` (at least 1) with remainders of `remainder_bits`
    /// (1 to 56) bits.
    ///
    /// # Errors
    /// If either is out of range, or the fingerprints would be more than the
    /// digests, `slots * 2^remainder_bits > 2^64`.
    pub fn new(slots: u64, remainder_bits: u32) -> Result<Self> {
        if !(1..=Self::MAX_REMAINDER_BITS).contains(&remainder_bits) {
            return Err(Error::parameter(
                "remainder bits",
                remainder_bits,
                "use 1 to 56",
            ));
        }
        let geometry = Self {
            slots,
            remainder_bits,
        };
        // The slots themselves then have at most 2^63 bits, too.
        if slots == 0 || slots > 1 << 56 || geometry.fingerprints() > 1 << 64 {
            return Err(Error::parameter(
                "slots",
                slots,
                format!(
                    "use at least 1, and with {remainder_bits} bits of remainder at most {}",
                    (1u64 << 56).min(1 << (64 - remainder_bits).min(63))
                ),
            ));
        }
        Ok(geometry)
    }

    /// Slots that fingerprints belong to. A few more stand behind them.
    #[must_use]
    pub const fn slots(self) -> u64 {
        self.slots
    }

    /// Bits of a remainder.
    #[must_use]
    pub const fn remainder_bits(self) -> u32 {
        self.remainder_bits
    }

    /// Different fingerprints.
    #[must_use]
    pub const fn fingerprints(self) -> u128 {
        (self.slots as u128) << self.remainder_bits
    }

    /// Blocks of 64 slots, those behind the last quotient included.
    pub(crate) const fn blocks(self) -> u64 {
        let spare = if self.slots < SPARE_SLOTS {
            self.slots
        } else {
            SPARE_SLOTS
        };
        (self.slots + spare).div_ceil(BLOCK_SLOTS as u64)
    }

    /// 64-bit words of all blocks and offsets.
    #[must_use]
    pub const fn words(self) -> u64 {
        let blocks = self.blocks();
        blocks * (2 + self.remainder_bits as u64) + blocks.div_ceil(GROUP_BLOCKS as u64)
    }

    /// Bytes of the words.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.words() * 8
    }

    /// Bits of the words.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.words() * 64
    }

    /// The shape with twice the slots and the same fingerprints, if a bit of
    /// the remainder can be spared.
    #[must_use]
    pub fn doubled(self) -> Option<Self> {
        Self::new(self.slots.checked_mul(2)?, self.remainder_bits - 1).ok()
    }

    /// Quotient and remainder of a digest.
    #[inline(always)]
    pub(crate) const fn split(self, digest: u64) -> (u64, u64) {
        let product = digest as u128 * self.slots as u128;
        #[expect(clippy::cast_possible_truncation, reason = "the low word")]
        let low = product as u64;
        ((product >> 64) as u64, low >> (64 - self.remainder_bits))
    }
}

impl fmt::Display for DeletableGeometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} slots, remainders of {} bits",
            self.slots, self.remainder_bits
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_shapes_are_refused() {
        for (slots, bits) in [
            (0, 7),
            (1, 0),
            (1, 57),
            ((1 << 56) + 1, 1),
            ((1 << 24) + 1, 40),
            (u64::MAX, 1),
        ] {
            assert!(
                DeletableGeometry::new(slots, bits).is_err(),
                "{slots}, {bits}"
            );
        }
        let largest = DeletableGeometry::new(1 << 56, 8).unwrap();
        assert!(largest.words() <= 1 << 57);
    }

    #[test]
    fn doubling_keeps_the_fingerprints() {
        let mut geometry = DeletableGeometry::new(1003, 9).unwrap();
        let fingerprint = |geometry: DeletableGeometry, digest| {
            let (quotient, remainder) = geometry.split(digest);
            assert!(quotient < geometry.slots());
            quotient << geometry.remainder_bits() | remainder
        };
        let digests: Vec<_> = (0..1000).map(|key| crate::mix_int(key, 3)).collect();
        let first: Vec<_> = digests.iter().map(|&d| fingerprint(geometry, d)).collect();
        while let Some(next) = geometry.doubled() {
            geometry = next;
            for (&digest, &first) in digests.iter().zip(&first) {
                assert_eq!(fingerprint(geometry, digest), first);
            }
        }
        assert_eq!(geometry.remainder_bits(), 1);
    }
}
