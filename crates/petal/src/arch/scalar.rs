//! The split-block kernel in plain Rust: the specification that every other
//! kernel is tested against, bit for bit.

use crate::arch::probe::BlockKernel;
use crate::geometry::lane_bit;

/// Runs everywhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scalar;

compile!(Scalar, Scalar);

impl BlockKernel for Scalar {
    #[inline(always)]
    fn lacking<const W: usize>(self, block: &[u64; W], lanes: u64) -> u8 {
        let mut missing = 0;
        for (i, word) in (0..).zip(block) {
            missing |= !word & lane_bit(lanes, i);
        }
        u8::from(missing != 0)
    }

    #[inline(always)]
    fn set<const W: usize>(self, block: &mut [u64; W], lanes: u64) -> u8 {
        let mut missing = 0;
        for (i, word) in (0..).zip(block) {
            let bit = lane_bit(lanes, i);
            missing |= !*word & bit;
            *word |= bit;
        }
        u8::from(missing != 0)
    }
}
