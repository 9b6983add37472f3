//! Kernels: the only place that touches the bits of a block.
//!
//! [`Scalar`] is the specification. A vector kernel for a CPU gets a module
//! of its own here and gives the same bits and answers. Holding a value of its
//! type is the proof that the CPU can run it. [`Kernel::best`] chooses one
//! when a filter is made, compiled for the filter's geometry; from then on a
//! call is one jump, and a batch is run by one call. [`atomic`] is the kernel
//! for words that many threads share.
//!
//! Owns the choice of the kernel. What all kernels share is in [`probe`] (one
//! digest) and `batch` (many): the kernels import these, and only this module
//! imports the kernels. [`wide`] compiles other loops for the CPU, and [`sip`]
//! hashes keys in step.

pub(crate) mod batch;
pub(crate) mod prefetch;
pub(crate) mod probe;
pub(crate) mod sip;
pub(crate) mod wide;

use std::fmt;

use crate::geometry::{BlockWords, SplitGeometry};

/// Runs `$run` with the geometry's words a block and regions as constants.
macro_rules! dispatch {
    ($geometry:expr, |$words:ident, $regions:ident| $run:expr) => {
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

/// Compiles the bodies of `probe` and `batch` with a kernel, for the CPUs that
/// have the named features: `compile!(Name, value, "features")`.
macro_rules! compile {
    ($kernel:ident, $value:expr $(, $features:literal)?) => {
        impl $kernel {
            /// This kernel for blocks of `W` words in `R` regions.
            pub(crate) fn functions<const W: usize, const R: usize>(self) -> $crate::arch::Kernel {
                use $crate::arch::{Kernel, batch, probe};
                // Each makes the proof anew, since to be entered at all needs it.
                $(#[target_feature(enable = $features)])?
                fn contains<const W: usize, const R: usize>(
                    words: &[u64],
                    blocks: u64,
                    digest: u64,
                ) -> bool {
                    probe::contains::<_, W, R>($value, words, blocks, digest)
                }
                $(#[target_feature(enable = $features)])?
                fn insert<const W: usize, const R: usize>(
                    words: &mut [u64],
                    blocks: u64,
                    digest: u64,
                ) -> bool {
                    let mut blocks = probe::BlocksMut::<W, R>::new(words, blocks);
                    probe::set($value, &mut blocks, digest) != 0
                }
                $(#[target_feature(enable = $features)])?
                fn contains_all<const W: usize, const R: usize>(
                    words: &[u64],
                    blocks: u64,
                    digests: &[u64],
                    mask: &mut [u64],
                ) {
                    batch::contains_all::<_, W, R>($value, words, blocks, digests, mask);
                }
                $(#[target_feature(enable = $features)])?
                fn insert_all<const W: usize, const R: usize>(
                    words: &mut [u64],
                    blocks: u64,
                    digests: &[u64],
                    mask: &mut [u64],
                ) -> u64 {
                    batch::insert_all::<_, W, R>($value, words, blocks, digests, mask)
                }
                Kernel {
                    contains: contains::<W, R>,
                    insert: insert::<W, R>,
                    contains_all: contains_all::<W, R>,
                    insert_all: insert_all::<W, R>,
                }
            }
        }
    };
}

pub(crate) mod atomic; // here and below, since these use the macros
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use scalar::Scalar;

/// A kernel compiled for the geometry of one filter.
///
/// Kept as functions, so that a single question asks neither which CPU this
/// is nor which geometry: both would cost it a third of its time.
#[derive(Clone, Copy)]
pub(crate) struct Kernel {
    // Unsafe to call, unless the CPU has what the kernel was compiled for: a
    // kernel's `functions` makes the value, and holding a kernel proves it.
    contains: unsafe fn(&[u64], u64, u64) -> bool,
    insert: unsafe fn(&mut [u64], u64, u64) -> bool,
    contains_all: unsafe fn(&[u64], u64, &[u64], &mut [u64]),
    insert_all: unsafe fn(&mut [u64], u64, &[u64], &mut [u64]) -> u64,
}

impl Kernel {
    /// The fastest one that this CPU can run.
    pub(crate) fn best(geometry: SplitGeometry) -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(kernel) = avx512::Avx512::new() {
                return dispatch!(geometry, |W, R| kernel.functions::<W, R>());
            }
            if let Some(kernel) = avx2::Avx2::new() {
                return dispatch!(geometry, |W, R| kernel.functions::<W, R>());
            }
        }
        #[cfg(target_arch = "aarch64")]
        if let Some(kernel) = neon::Neon::new() {
            return dispatch!(geometry, |W, R| kernel.functions::<W, R>());
        }
        dispatch!(geometry, |W, R| Scalar.functions::<W, R>())
    }

    /// Whether all bits of a digest are set. `words` are those of `blocks`
    /// blocks a region, in the geometry that the kernel was chosen for.
    #[inline(always)]
    pub(crate) fn contains(self, words: &[u64], blocks: u64, digest: u64) -> bool {
        // SAFETY: the CPU has what this kernel was compiled for.
        #[expect(unsafe_code, reason = "calling code compiled for a CPU")]
        unsafe {
            (self.contains)(words, blocks, digest)
        }
    }

    /// Sets the bits of a digest. True if one of them was not set before.
    #[inline(always)]
    pub(crate) fn insert(self, words: &mut [u64], blocks: u64, digest: u64) -> bool {
        // SAFETY: the CPU has what this kernel was compiled for.
        #[expect(unsafe_code, reason = "calling code compiled for a CPU")]
        unsafe {
            (self.insert)(words, blocks, digest)
        }
    }

    /// Sets bit `i` of the mask for every digest that may be present.
    #[inline]
    pub(crate) fn contains_all(
        self,
        words: &[u64],
        blocks: u64,
        digests: &[u64],
        mask: &mut [u64],
    ) {
        // SAFETY: the CPU has what this kernel was compiled for.
        #[expect(unsafe_code, reason = "calling code compiled for a CPU")]
        unsafe {
            (self.contains_all)(words, blocks, digests, mask);
        }
    }

    /// Inserts every digest in order; sets bit `i` of the mask where that
    /// changed a bit. Returns how many did.
    #[inline]
    pub(crate) fn insert_all(
        self,
        words: &mut [u64],
        blocks: u64,
        digests: &[u64],
        mask: &mut [u64],
    ) -> u64 {
        // SAFETY: the CPU has what this kernel was compiled for.
        #[expect(unsafe_code, reason = "calling code compiled for a CPU")]
        unsafe {
            (self.insert_all)(words, blocks, digests, mask)
        }
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kernel(..)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every kernel that this machine can run, the specification first.
    fn kernels(geometry: SplitGeometry) -> Vec<Kernel> {
        let mut kernels = vec![dispatch!(geometry, |W, R| Scalar.functions::<W, R>())];
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(kernel) = avx2::Avx2::new() {
                kernels.push(dispatch!(geometry, |W, R| kernel.functions::<W, R>()));
            }
            if let Some(kernel) = avx512::Avx512::new() {
                kernels.push(dispatch!(geometry, |W, R| kernel.functions::<W, R>()));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if let Some(kernel) = neon::Neon::new() {
            kernels.push(dispatch!(geometry, |W, R| kernel.functions::<W, R>()));
        }
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
            for kernel in kernels(geometry) {
                let mut single = empty.clone();
                let changed: Vec<bool> = inserted
                    .iter()
                    .map(|&digest| kernel.insert(&mut single, blocks, digest))
                    .collect();
                let mut batched = empty.clone();
                let mut changed_mask = vec![0; inserted.len().div_ceil(64)];
                let count = kernel.insert_all(&mut batched, blocks, &inserted, &mut changed_mask);
                prop_assert!(single == batched);
                prop_assert_eq!(count, changed.iter().filter(|&&new| new).count() as u64);
                let seen: Vec<bool> = questions
                    .iter()
                    .map(|&digest| kernel.contains(&single, blocks, digest))
                    .collect();
                let mut seen_mask = vec![0; questions.len().div_ceil(64)];
                kernel.contains_all(&single, blocks, &questions, &mut seen_mask);
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
