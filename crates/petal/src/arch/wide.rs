//! Plain loops, compiled for the vectors of this CPU.
//!
//! Owns [`wide`], [`Work`] and what they ask of the CPU. It knows nothing of
//! filters: the loops are others', and the compiler vectorises them. The
//! result is the same on every CPU.
//!
//! A trait and not a closure: a closure that is called for three sets of
//! features is compiled once, for none of them, as soon as it is large.

/// A loop that is worth the widest vectors.
pub(crate) trait Work {
    /// What comes out.
    type Result;

    /// Does it. Implemented with `#[inline(always)]`, and so is what it calls:
    /// only then is the loop compiled for the CPU and not for all of them.
    fn run<C: Cpu>(self, cpu: C) -> Self::Result;
}

/// What a compiler does not find by itself for some CPU.
pub(crate) trait Cpu: Copy {
    /// Bit `i` is the parity of `a[i] & left ^ b[i] & right`: of as many words of each as
    /// `most`, up to 64, and there are.
    fn parities(self, a: &[u64], b: &[u64], most: usize, left: u64, right: u64) -> u64;
}

/// Any CPU: the specification of the others.
#[derive(Clone, Copy)]
pub(crate) struct AnyCpu;

impl Cpu for AnyCpu {
    #[inline(always)]
    fn parities(self, a: &[u64], b: &[u64], most: usize, left: u64, right: u64) -> u64 {
        let mut parities = 0;
        for (i, (a, b)) in a.iter().zip(b).enumerate().take(most.min(64)) {
            parities |= u64::from((a & left ^ b & right).count_ones() & 1) << i;
        }
        parities
    }
}

/// Does work in code that may use the widest vectors of this CPU.
#[inline]
pub(crate) fn wide<W: Work>(work: W) -> W::Result {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(cpu) = Avx512::new() {
            // SAFETY: holding an `Avx512` proves that the CPU has the features.
            #[expect(unsafe_code, reason = "calling code compiled for AVX-512")]
            return unsafe { avx512(work, cpu) };
        }
        if has_avx2() {
            // SAFETY: the CPU has these features.
            #[expect(unsafe_code, reason = "calling code compiled for AVX2")]
            return unsafe { avx2(work) };
        }
    }
    work.run(AnyCpu)
}

/// Whether the CPU has AVX2, BMI2 and POPCNT: whatever has the first has all.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("bmi2")
        && std::arch::is_x86_feature_detected!("popcnt")
}

/// Whether the CPU has AVX-512 without a price: the features of Ice Lake and
/// Zen 4. Older CPUs lower their clock for vectors of 512 bits.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx512() -> bool {
    has_avx2()
        && std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512vl")
        && std::arch::is_x86_feature_detected!("avx512dq")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512vbmi")
        && std::arch::is_x86_feature_detected!("avx512vpopcntdq")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2,popcnt")]
fn avx2<W: Work>(work: W) -> W::Result {
    work.run(AnyCpu)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512vpopcntdq,bmi2,popcnt")]
fn avx512<W: Work>(work: W, cpu: Avx512) -> W::Result {
    work.run(cpu)
}

/// Proof that the CPU has what [`has_avx512`] asks for: only [`Avx512::new`]
/// makes one.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512(());

#[cfg(target_arch = "x86_64")]
impl Avx512 {
    /// The proof, if it is true.
    #[inline]
    pub(crate) fn new() -> Option<Self> {
        has_avx512().then_some(Self(()))
    }
}

#[cfg(target_arch = "x86_64")]
impl Cpu for Avx512 {
    #[inline(always)]
    fn parities(self, a: &[u64], b: &[u64], most: usize, left: u64, right: u64) -> u64 {
        // SAFETY: holding an `Avx512` proves that the CPU has the features.
        #[expect(unsafe_code, reason = "calling code compiled for AVX-512")]
        unsafe {
            parities(a, b, most, left, right)
        }
    }
}

/// [`Cpu::parities`], eight words at a time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
#[inline]
fn parities(a: &[u64], b: &[u64], most: usize, left: u64, right: u64) -> u64 {
    use std::arch::x86_64::{
        __mmask8, _mm512_and_si512, _mm512_maskz_loadu_epi64, _mm512_popcnt_epi64,
        _mm512_set1_epi64, _mm512_ternarylogic_epi64, _mm512_test_epi64_mask,
    };
    let count = most.min(a.len()).min(b.len()).min(64);
    let there = if count < 64 {
        !(u64::MAX << count)
    } else {
        u64::MAX
    };
    let left = _mm512_set1_epi64(left.cast_signed());
    let right = _mm512_set1_epi64(right.cast_signed());
    let mut parities = 0;
    let mut first = 0;
    loop {
        #[expect(clippy::cast_possible_truncation, reason = "eight at a time")]
        let eight = (there >> first) as __mmask8;
        // SAFETY: the words under the mask are in both slices, and no others are
        // read; alignment is not required.
        #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
        let a = unsafe { _mm512_maskz_loadu_epi64(eight, a.as_ptr().wrapping_add(first).cast()) };
        // SAFETY: as above.
        #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
        let b = unsafe { _mm512_maskz_loadu_epi64(eight, b.as_ptr().wrapping_add(first).cast()) };
        // (a & left) ^ (b & right): the constant is the table of b' ^ (a & left).
        let bits = _mm512_ternarylogic_epi64::<0x78>(_mm512_and_si512(b, right), a, left);
        let odd = _mm512_test_epi64_mask(_mm512_popcnt_epi64(bits), _mm512_set1_epi64(1));
        parities |= u64::from(odd) << first;
        first += 8;
        if first >= count {
            return parities;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn parities_are_those_of_the_specification() {
        let Some(cpu) = Avx512::new() else { return };
        let word = |i: u64| crate::mix_int(i.cast_signed(), 5);
        let words: Vec<u64> = (0..200).map(word).collect();
        for count in 0..=64 {
            let (a, b) = (&words[..count], &words[100..100 + count]);
            let (left, right) = (word(1000 + count as u64), word(2000 + count as u64));
            assert_eq!(
                cpu.parities(a, b, 64, left, right),
                AnyCpu.parities(a, b, 64, left, right),
                "{count} words"
            );
        }
    }
}
