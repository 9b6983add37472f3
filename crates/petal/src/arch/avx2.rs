//! The split-block kernel for x86-64 CPUs with AVX2: four words at a time.
//!
//! ```text
//! lanes, four times      shifted right by 58, 52, 46, 40  (28 .. 10 for words 4 to 7)
//! bits                   1 << (low six bits of each)
//! lacking                unless the block has all bits:  testc(block, bits)
//! ```

use std::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_loadu_si256, _mm256_or_si256, _mm256_set_epi64x,
    _mm256_set1_epi64x, _mm256_sllv_epi64, _mm256_srlv_epi64, _mm256_storeu_si256,
    _mm256_testc_si256,
};

use crate::arch::probe::BlockKernel;
use crate::arch::wide;

/// Proof that the CPU has what [`wide::has_avx2`] asks for: only
/// [`Avx2::new`] and code compiled for it make one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The proof, if it is true.
    pub(crate) fn new() -> Option<Self> {
        wide::has_avx2().then_some(Self(()))
    }
}

compile!(Avx2, Avx2(()), "avx2,bmi2,popcnt");

impl BlockKernel for Avx2 {
    #[inline(always)]
    fn lacking<const W: usize>(self, block: &[u64; W], lanes: u64) -> u8 {
        // SAFETY: holding an `Avx2` proves that the CPU has AVX2.
        #[expect(unsafe_code, reason = "calling code compiled for AVX2")]
        unsafe {
            lacking(block.as_chunks().0, lanes)
        }
    }

    #[inline(always)]
    fn set<const W: usize>(self, block: &mut [u64; W], lanes: u64) -> u8 {
        // SAFETY: holding an `Avx2` proves that the CPU has AVX2.
        #[expect(unsafe_code, reason = "calling code compiled for AVX2")]
        unsafe {
            set(block.as_chunks_mut().0, lanes)
        }
    }
}

/// 1 if the parts of a block lack one of their bits, else 0.
#[target_feature(enable = "avx2")]
#[inline]
fn lacking(block: &[[u64; 4]], lanes: u64) -> u8 {
    let mut all = true;
    for (i, part) in block.iter().enumerate() {
        all &= _mm256_testc_si256(load(part), bits(lanes, i)) == 1;
    }
    u8::from(!all)
}

/// Sets the bits of the parts of a block. 1 if one was not set before.
#[target_feature(enable = "avx2")]
#[inline]
fn set(block: &mut [[u64; 4]], lanes: u64) -> u8 {
    let mut all = true;
    for (i, part) in block.iter_mut().enumerate() {
        let (words, bits) = (load(part), bits(lanes, i));
        all &= _mm256_testc_si256(words, bits) == 1;
        store(part, _mm256_or_si256(words, bits));
    }
    u8::from(!all)
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
