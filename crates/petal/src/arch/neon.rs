//! The split-block kernel for 64-bit ARM with NEON: two words at a time.
//!
//! ```text
//! lanes, twice           shifted left by minus 58, minus 52  (and so on)
//! bits                   1 shifted left by the low six bits of each
//! lacking                unless  bits & !block  is zero
//! ```

use std::arch::aarch64::{
    uint64x2_t, vandq_u64, vbicq_u64, vdupq_n_u64, vgetq_lane_u64, vld1q_s64, vld1q_u64, vorrq_u64,
    vreinterpretq_s64_u64, vshlq_u64, vst1q_u64,
};

use crate::arch::probe::BlockKernel;

/// Proof that the CPU has NEON: only [`Neon::new`] and code compiled for it
/// make one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Neon(());

impl Neon {
    /// The proof, if it is true.
    pub(crate) fn new() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
    }
}

compile!(Neon, Neon(()), "neon");

impl BlockKernel for Neon {
    #[inline(always)]
    fn lacking<const W: usize>(self, block: &[u64; W], lanes: u64) -> u8 {
        // SAFETY: holding a `Neon` proves that the CPU has NEON.
        #[expect(unsafe_code, reason = "calling code compiled for NEON")]
        unsafe {
            lacking(block.as_chunks().0, lanes)
        }
    }

    #[inline(always)]
    fn set<const W: usize>(self, block: &mut [u64; W], lanes: u64) -> u8 {
        // SAFETY: holding a `Neon` proves that the CPU has NEON.
        #[expect(unsafe_code, reason = "calling code compiled for NEON")]
        unsafe {
            set(block.as_chunks_mut().0, lanes)
        }
    }
}

/// 1 if the parts of a block lack one of their bits, else 0.
#[target_feature(enable = "neon")]
#[inline]
fn lacking(block: &[[u64; 2]], lanes: u64) -> u8 {
    let mut lacking = vdupq_n_u64(0);
    for (part, shifts) in block.iter().zip(&SHIFTS) {
        lacking = vorrq_u64(lacking, vbicq_u64(bits(lanes, shifts), load(part)));
    }
    u8::from(!is_zero(lacking))
}

/// Sets the bits of the parts of a block. 1 if one was not set before.
#[target_feature(enable = "neon")]
#[inline]
fn set(block: &mut [[u64; 2]], lanes: u64) -> u8 {
    let mut lacking = vdupq_n_u64(0);
    for (part, shifts) in block.iter_mut().zip(&SHIFTS) {
        let (words, bits) = (load(part), bits(lanes, shifts));
        lacking = vorrq_u64(lacking, vbicq_u64(bits, words));
        store(part, vorrq_u64(words, bits));
    }
    u8::from(!is_zero(lacking))
}

/// How far the lanes are shifted left for each word.
const SHIFTS: [[i64; 2]; 4] = [[-58, -52], [-46, -40], [-34, -28], [-22, -16]];

/// The bits of two words.
#[target_feature(enable = "neon")]
#[inline]
fn bits(lanes: u64, shifts: &[i64; 2]) -> uint64x2_t {
    // SAFETY: the pointer is to 16 readable bytes.
    #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
    let shifts = unsafe { vld1q_s64(shifts.as_ptr()) };
    let lanes = vshlq_u64(vdupq_n_u64(lanes), shifts);
    let places = vandq_u64(lanes, vdupq_n_u64(63));
    vshlq_u64(vdupq_n_u64(1), vreinterpretq_s64_u64(places))
}

#[target_feature(enable = "neon")]
#[inline]
fn is_zero(words: uint64x2_t) -> bool {
    vgetq_lane_u64::<0>(words) | vgetq_lane_u64::<1>(words) == 0
}

#[target_feature(enable = "neon")]
#[inline]
fn load(words: &[u64; 2]) -> uint64x2_t {
    // SAFETY: the pointer is to 16 readable bytes.
    #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
    unsafe {
        vld1q_u64(words.as_ptr())
    }
}

#[target_feature(enable = "neon")]
#[inline]
fn store(words: &mut [u64; 2], value: uint64x2_t) {
    // SAFETY: the pointer is to 16 writable bytes.
    #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
    unsafe {
        vst1q_u64(words.as_mut_ptr(), value);
    }
}
