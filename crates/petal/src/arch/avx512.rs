//! The split-block kernel for x86-64 CPUs with AVX-512: a block of eight words
//! at a time.
//!
//! ```text
//! lanes, eight times     shifted right by 58, 52, 46, 40, 34, 28, 22, 16
//! bits                   1 rotated left by each (modulo 64: no mask needed)
//! lacking                one bit for each word where  bits & block  is zero
//! ```
//!
//! Only for CPUs that have VBMI as well, Ice Lake and Zen 4 and their
//! followers: older ones lower their clock for vectors of 512 bits.

use std::arch::x86_64::{
    __m256i, __m512i, _mm256_loadu_si256, _mm256_or_si256, _mm256_rolv_epi64, _mm256_set_epi64x,
    _mm256_set1_epi64x, _mm256_srlv_epi64, _mm256_storeu_si256, _mm256_testn_epi64_mask,
    _mm512_loadu_si512, _mm512_or_si512, _mm512_rolv_epi64, _mm512_set_epi64, _mm512_set1_epi64,
    _mm512_srlv_epi64, _mm512_storeu_si512, _mm512_test_epi8_mask, _mm512_testn_epi64_mask,
};

use crate::arch::probe::BlockKernel;
use crate::arch::wide;

/// Proof that the CPU has what [`wide::has_avx512`] asks for: only
/// [`Avx512::new`] and code compiled for it make one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    /// The proof, if it is true.
    pub(crate) fn new() -> Option<Self> {
        wide::has_avx512().then_some(Self(()))
    }
}

compile!(
    Avx512,
    Avx512(()),
    "avx512f,avx512vl,avx512dq,avx512bw,avx512vbmi,bmi2,popcnt"
);

impl BlockKernel for Avx512 {
    #[inline(always)]
    fn lacking<const W: usize>(self, block: &[u64; W], lanes: u64) -> u8 {
        // SAFETY: holding an `Avx512` proves that the CPU has AVX-512.
        #[expect(unsafe_code, reason = "calling code compiled for AVX-512")]
        unsafe {
            lacking(block, lanes)
        }
    }

    #[inline(always)]
    fn set<const W: usize>(self, block: &mut [u64; W], lanes: u64) -> u8 {
        // SAFETY: holding an `Avx512` proves that the CPU has AVX-512.
        #[expect(unsafe_code, reason = "calling code compiled for AVX-512")]
        unsafe {
            set(block, lanes)
        }
    }

    #[inline(always)]
    fn flags(self, values: &[u8; 64]) -> u64 {
        // SAFETY: holding an `Avx512` proves that the CPU has AVX-512.
        #[expect(unsafe_code, reason = "calling code compiled for AVX-512")]
        unsafe {
            flags(values)
        }
    }
}

/// The words of a block of eight or four that lack their bit.
#[target_feature(enable = "avx512f,avx512vl")]
#[inline]
fn lacking(block: &[u64], lanes: u64) -> u8 {
    let (eight, four) = block.as_chunks::<8>();
    let mut lacking = 0;
    for part in eight {
        lacking |= _mm512_testn_epi64_mask(load8(part), bits8(lanes));
    }
    for part in four.as_chunks::<4>().0 {
        lacking |= _mm256_testn_epi64_mask(load4(part), bits4(lanes));
    }
    lacking
}

/// Sets the bits of a block of eight or four words. Returns what it lacked.
#[target_feature(enable = "avx512f,avx512vl")]
#[inline]
fn set(block: &mut [u64], lanes: u64) -> u8 {
    let (eight, four) = block.as_chunks_mut::<8>();
    let mut lacking = 0;
    for part in eight {
        let (words, bits) = (load8(part), bits8(lanes));
        lacking |= _mm512_testn_epi64_mask(words, bits);
        store8(part, _mm512_or_si512(words, bits));
    }
    for part in four.as_chunks_mut::<4>().0 {
        let (words, bits) = (load4(part), bits4(lanes));
        lacking |= _mm256_testn_epi64_mask(words, bits);
        store4(part, _mm256_or_si256(words, bits));
    }
    lacking
}

/// Bit `i` where value `i` is not 0.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn flags(values: &[u8; 64]) -> u64 {
    // SAFETY: the pointer is to 64 readable bytes; alignment is not required.
    #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
    let values = unsafe { _mm512_loadu_si512(values.as_ptr().cast()) };
    _mm512_test_epi8_mask(values, values)
}

/// The bits of eight words.
#[target_feature(enable = "avx512f")]
#[inline]
fn bits8(lanes: u64) -> __m512i {
    let shifts = _mm512_set_epi64(16, 22, 28, 34, 40, 46, 52, 58);
    let lanes = _mm512_srlv_epi64(_mm512_set1_epi64(lanes.cast_signed()), shifts);
    _mm512_rolv_epi64(_mm512_set1_epi64(1), lanes)
}

/// The bits of four words.
#[target_feature(enable = "avx512f,avx512vl")]
#[inline]
fn bits4(lanes: u64) -> __m256i {
    let shifts = _mm256_set_epi64x(40, 46, 52, 58);
    let lanes = _mm256_srlv_epi64(_mm256_set1_epi64x(lanes.cast_signed()), shifts);
    _mm256_rolv_epi64(_mm256_set1_epi64x(1), lanes)
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load8(words: &[u64; 8]) -> __m512i {
    // SAFETY: the pointer is to 64 readable bytes; alignment is not required.
    #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
    unsafe {
        _mm512_loadu_si512(words.as_ptr().cast())
    }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn store8(words: &mut [u64; 8], value: __m512i) {
    // SAFETY: the pointer is to 64 writable bytes; alignment is not required.
    #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
    unsafe {
        _mm512_storeu_si512(words.as_mut_ptr().cast(), value);
    }
}

#[target_feature(enable = "avx512f,avx512vl")]
#[inline]
fn load4(words: &[u64; 4]) -> __m256i {
    // SAFETY: the pointer is to 32 readable bytes; alignment is not required.
    #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
    unsafe {
        _mm256_loadu_si256(words.as_ptr().cast())
    }
}

#[target_feature(enable = "avx512f,avx512vl")]
#[inline]
fn store4(words: &mut [u64; 4], value: __m256i) {
    // SAFETY: the pointer is to 32 writable bytes; alignment is not required.
    #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
    unsafe {
        _mm256_storeu_si256(words.as_mut_ptr().cast(), value);
    }
}
