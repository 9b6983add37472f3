//! The split-block kernel for x86-64 CPUs with AVX2: four words at a time.
//!
//! ```text
//! lanes, four times      shifted right by 58, 52, 46, 40  (28 .. 10 for words 4 to 7)
//! bits                   1 << (low six bits of each)
//! has                    no bit that the block lacks:  testc(block, bits)
//! ```

use std::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_loadu_si256, _mm256_or_si256, _mm256_set_epi64x,
    _mm256_set1_epi64x, _mm256_sllv_epi64, _mm256_srlv_epi64, _mm256_storeu_si256,
    _mm256_testc_si256,
};

use crate::arch::batch;
use crate::arch::probe::{self, BlockKernel};

/// Proof that the CPU has AVX2: only [`Avx2::new`] makes one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The proof, if it is true.
    pub(crate) fn new() -> Option<Self> {
        std::arch::is_x86_feature_detected!("avx2").then_some(Self(()))
    }
}

/// Enters code that is compiled for AVX2: the bodies are those of `probe` and
/// `batch`, inlined.
macro_rules! enter {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $body:path;)*) => {
        impl Avx2 {$(
            #[inline]
            pub(crate) fn $name<const W: usize, const R: usize>(self, $($argument: $type),*) $(-> $result)? {
                #[target_feature(enable = "avx2")]
                fn entered<const W: usize, const R: usize>(kernel: Avx2, $($argument: $type),*) $(-> $result)? {
                    $body(kernel, $($argument),*)
                }
                // SAFETY: holding an `Avx2` proves that the CPU has AVX2.
                #[expect(unsafe_code, reason = "calling code compiled for AVX2")]
                unsafe {
                    entered::<W, R>(self, $($argument),*)
                }
            }
        )*}
    };
}

enter! {
    fn contains(words: &[u64], region_blocks: u64, digest: u64) -> bool
        = probe::contains::<Avx2, W, R>;
    fn insert(words: &mut [u64], region_blocks: u64, digest: u64) -> bool
        = probe::insert::<Avx2, W, R>;
    fn contains_all(words: &[u64], region_blocks: u64, digests: &[u64], mask: &mut [u64])
        = batch::contains_all::<Avx2, W, R>;
    fn insert_all(words: &mut [u64], region_blocks: u64, digests: &[u64], mask: &mut [u64])
        -> u64 = batch::insert_all::<Avx2, W, R>;
}

impl BlockKernel for Avx2 {
    #[inline(always)]
    fn has<const W: usize>(self, block: &[u64; W], lanes: u64) -> bool {
        // SAFETY: holding an `Avx2` proves that the CPU has AVX2.
        #[expect(unsafe_code, reason = "calling code compiled for AVX2")]
        unsafe {
            has(block.as_chunks().0, lanes)
        }
    }

    #[inline(always)]
    fn set<const W: usize>(self, block: &mut [u64; W], lanes: u64) -> bool {
        // SAFETY: holding an `Avx2` proves that the CPU has AVX2.
        #[expect(unsafe_code, reason = "calling code compiled for AVX2")]
        unsafe {
            set(block.as_chunks_mut().0, lanes)
        }
    }
}

/// Whether the parts of a block have their bits.
#[target_feature(enable = "avx2")]
#[inline]
fn has(block: &[[u64; 4]], lanes: u64) -> bool {
    let mut all = true;
    for (i, part) in block.iter().enumerate() {
        all &= _mm256_testc_si256(load(part), bits(lanes, i)) == 1;
    }
    all
}

/// Sets the bits of the parts of a block. True if one was not set before.
#[target_feature(enable = "avx2")]
#[inline]
fn set(block: &mut [[u64; 4]], lanes: u64) -> bool {
    let mut all = true;
    for (i, part) in block.iter_mut().enumerate() {
        let (words, bits) = (load(part), bits(lanes, i));
        all &= _mm256_testc_si256(words, bits) == 1;
        store(part, _mm256_or_si256(words, bits));
    }
    !all
}

/// The bits of four words: of words 0 to 3 for part 0, of 4 to 7 for part 1.
#[target_feature(enable = "avx2")]
#[inline]
fn bits(lanes: u64, part: usize) -> __m256i {
    let shifts = if part == 0 {
        _mm256_set_epi64x(40, 46, 52, 58)
    } else {
        _mm256_set_epi64x(16, 22, 28, 34)
    };
    let lanes = _mm256_srlv_epi64(_mm256_set1_epi64x(lanes.cast_signed()), shifts);
    let places = _mm256_and_si256(lanes, _mm256_set1_epi64x(63));
    _mm256_sllv_epi64(_mm256_set1_epi64x(1), places)
}

#[target_feature(enable = "avx2")]
#[inline]
fn load(words: &[u64; 4]) -> __m256i {
    // SAFETY: the pointer is to 32 readable bytes; alignment is not required.
    #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
    unsafe {
        _mm256_loadu_si256(words.as_ptr().cast())
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn store(words: &mut [u64; 4], value: __m256i) {
    // SAFETY: the pointer is to 32 writable bytes; alignment is not required.
    #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
    unsafe {
        _mm256_storeu_si256(words.as_mut_ptr().cast(), value);
    }
}
