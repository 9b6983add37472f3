//! The split-block kernel in plain Rust: the specification that every other
//! kernel is tested against, bit for bit.

use crate::arch::batch;
use crate::arch::probe::{self, BlockKernel};
use crate::geometry::lane_bit;

/// Runs everywhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scalar;

/// The bodies of `probe` and `batch` with this kernel. Not inlined, so
/// that the callers stay small where a vector kernel is the usual one.
macro_rules! bodies {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $body:path;)*) => {
        impl Scalar {$(
            #[inline(never)]
            pub(crate) fn $name<const W: usize, const R: usize>(
                self,
                $($argument: $type),*
            ) $(-> $result)? {
                $body(self, $($argument),*)
            }
        )*}
    };
}

bodies! {
    fn contains(words: &[u64], region_blocks: u64, digest: u64) -> bool
        = probe::contains::<Scalar, W, R>;
    fn insert(words: &mut [u64], region_blocks: u64, digest: u64) -> bool
        = probe::insert::<Scalar, W, R>;
    fn contains_all(words: &[u64], region_blocks: u64, digests: &[u64], mask: &mut [u64])
        = batch::contains_all::<Scalar, W, R>;
    fn insert_all(words: &mut [u64], region_blocks: u64, digests: &[u64], mask: &mut [u64])
        -> u64 = batch::insert_all::<Scalar, W, R>;
}

impl BlockKernel for Scalar {
    #[inline(always)]
    fn has<const W: usize>(self, block: &[u64; W], lanes: u64) -> bool {
        let mut missing = 0;
        for (i, word) in (0..).zip(block) {
            missing |= !word & lane_bit(lanes, i);
        }
        missing == 0
    }

    #[inline(always)]
    fn set<const W: usize>(self, block: &mut [u64; W], lanes: u64) -> bool {
        let mut missing = 0;
        for (i, word) in (0..).zip(block) {
            let bit = lane_bit(lanes, i);
            missing |= !*word & bit;
            *word |= bit;
        }
        missing != 0
    }
}
