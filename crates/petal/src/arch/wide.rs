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
    fn run(self) -> Self::Result;
}

/// Does work in code that may use the widest vectors of this CPU.
#[inline]
pub(crate) fn wide<W: Work>(work: W) -> W::Result {
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512() {
            // SAFETY: the CPU has these features.
            #[expect(unsafe_code, reason = "calling code compiled for AVX-512")]
            return unsafe { avx512(work) };
        }
        if has_avx2() {
            // SAFETY: the CPU has these features.
            #[expect(unsafe_code, reason = "calling code compiled for AVX2")]
            return unsafe { avx2(work) };
        }
    }
    work.run()
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
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512vpopcntdq,bmi2,popcnt")]
fn avx512<W: Work>(work: W) -> W::Result {
    work.run()
}
