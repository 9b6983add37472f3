//! Kernels: the only place that touches the bits of a block.
//!
//! [`Scalar`] is the specification. A vector kernel for a CPU gets a module
//! of its own here and gives the same bits and answers. Holding a value of its
//! type is the proof that the CPU can run it. [`Kernel::best`] chooses one
//! when a filter is made; a batch is run by one call of it. [`atomic`] is the
//! kernel for words that many threads share.
//!
//! Owns the choice of the kernel. What all kernels share is in [`probe`] (one
//! digest) and `batch` (many): the kernels import these, and only this module
//! imports the kernels.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod batch;
pub(crate) mod prefetch;
pub(crate) mod probe;
mod scalar;

use crate::geometry::{BlockWords, SplitGeometry};

pub(crate) use scalar::Scalar;

/// The kernel that a filter uses.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kernel {
    Scalar(Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
}

/// Calls a function of the kernel for the geometry's words a block and
/// regions, so that both are constants in its code.
macro_rules! dispatch {
    ($kernel:expr, $geometry:expr, $function:ident($($argument:expr),*)) => {
        match $kernel {
            Kernel::Scalar(kernel) => {
                dispatch!(@ $geometry, |W, R| kernel.$function::<W, R>($($argument),*))
            }
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2(kernel) => {
                dispatch!(@ $geometry, |W, R| kernel.$function::<W, R>($($argument),*))
            }
        }
    };
    (@ $geometry:expr, |$words:ident, $regions:ident| $run:expr) => {
        match ($geometry.block(), $geometry.regions()) {
            (BlockWords::Eight, 1) => dispatch!(@ $words = 8, $regions = 1, $run),
            (BlockWords::Eight, 2) => dispatch!(@ $words = 8, $regions = 2, $run),
            (BlockWords::Eight, 3) => dispatch!(@ $words = 8, $regions = 3, $run),
            (BlockWords::Eight, _) => dispatch!(@ $words = 8, $regions = 4, $run),
            (BlockWords::Four, 1) => dispatch!(@ $words = 4, $regions = 1, $run),
            (BlockWords::Four, 2) => dispatch!(@ $words = 4, $regions = 2, $run),
            (BlockWords::Four, 3) => dispatch!(@ $words = 4, $regions = 3, $run),
            (BlockWords::Four, _) => dispatch!(@ $words = 4, $regions = 4, $run),
        }
    };
    (@ $words:ident = $w:literal, $regions:ident = $r:literal, $run:expr) => {{
        const $words: usize = $w;
        const $regions: usize = $r;
        $run
    }};
}

pub(crate) mod atomic; // here, since it uses the macro

impl Kernel {
    /// The fastest one that this CPU can run.
    pub(crate) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(kernel) = avx2::Avx2::new() {
            return Self::Avx2(kernel);
        }
        Self::Scalar(Scalar)
    }

    /// Whether all bits of a digest are set.
    #[inline(always)]
    pub(crate) fn contains(self, words: &[u64], geometry: SplitGeometry, digest: u64) -> bool {
        dispatch!(self, geometry, contains(words, geometry.blocks(), digest))
    }

    /// Sets the bits of a digest. True if one of them was not set before.
    #[inline(always)]
    pub(crate) fn insert(self, words: &mut [u64], geometry: SplitGeometry, digest: u64) -> bool {
        dispatch!(self, geometry, insert(words, geometry.blocks(), digest))
    }

    /// Sets bit `i` of the mask for every digest that may be present.
    pub(crate) fn contains_all(
        self,
        words: &[u64],
        geometry: SplitGeometry,
        digests: &[u64],
        mask: &mut [u64],
    ) {
        dispatch!(
            self,
            geometry,
            contains_all(words, geometry.blocks(), digests, mask)
        );
    }

    /// Inserts every digest in order; sets bit `i` of the mask where that
    /// changed a bit. Returns how many did.
    pub(crate) fn insert_all(
        self,
        words: &mut [u64],
        geometry: SplitGeometry,
        digests: &[u64],
        mask: &mut [u64],
    ) -> u64 {
        dispatch!(
            self,
            geometry,
            insert_all(words, geometry.blocks(), digests, mask)
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every kernel that this machine can run.
    fn kernels() -> Vec<Kernel> {
        let mut kernels = vec![Kernel::Scalar(Scalar)];
        #[cfg(target_arch = "x86_64")]
        kernels.extend(avx2::Avx2::new().map(Kernel::Avx2));
        kernels
    }

    proptest! {
        #![proptest_config(crate::testing::cases(256))]
        #[test]
        fn every_kernel_does_what_the_scalar_one_does(
            inserted in proptest::collection::vec(any::<u64>(), 0..300),
            asked in proptest::collection::vec(any::<u64>(), 0..300),
            regions in 1u32..=4,
            half: bool,
            blocks in prop_oneof![1u64..20, Just(511u64), Just(40_960u64), Just(81_920u64)],
        ) {
            let block = if half { BlockWords::Four } else { BlockWords::Eight };
            let geometry = SplitGeometry::new(block, regions, blocks).unwrap();
            let empty = vec![0; usize::try_from(geometry.words()).unwrap()];
            let questions: Vec<u64> = inserted.iter().chain(&asked).copied().collect();
            let mut expected = None;
            for kernel in kernels() {
                let mut single = empty.clone();
                let changed: Vec<bool> = inserted
                    .iter()
                    .map(|&digest| kernel.insert(&mut single, geometry, digest))
                    .collect();
                let mut batched = empty.clone();
                let mut changed_mask = vec![0; inserted.len().div_ceil(64)];
                let count = kernel.insert_all(&mut batched, geometry, &inserted, &mut changed_mask);
                prop_assert!(single == batched);
                prop_assert_eq!(count, changed.iter().filter(|&&new| new).count() as u64);
                let seen: Vec<bool> = questions
                    .iter()
                    .map(|&digest| kernel.contains(&single, geometry, digest))
                    .collect();
                let mut seen_mask = vec![0; questions.len().div_ceil(64)];
                kernel.contains_all(&single, geometry, &questions, &mut seen_mask);
                let bit = |mask: &[u64], i: usize| mask[i / 64] >> (i % 64) & 1 == 1;
                prop_assert!((0..changed.len()).all(|i| bit(&changed_mask, i) == changed[i]));
                prop_assert!((0..seen.len()).all(|i| bit(&seen_mask, i) == seen[i]));
                let result = (single, changed, seen);
                match &expected {
                    None => expected = Some(result),
                    Some(first) => prop_assert!(*first == result),
                }
            }
        }
    }
}
