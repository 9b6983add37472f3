//! Plain loops, compiled for the vectors of this CPU.
//!
//! Owns [`wide`] and what it asks of the CPU. It knows nothing of filters:
//! the loop comes as a closure, and the compiler vectorises it. The result
//! is the same on every CPU.

/// Runs a closure in code that may use the widest vectors of this CPU.
#[inline]
pub(crate) fn wide<T>(run: impl FnOnce() -> T) -> T {
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512() {
            // SAFETY: the CPU has these features.
            #[expect(unsafe_code, reason = "calling code compiled for AVX-512")]
            return unsafe { avx512(run) };
        }
        if has_avx2() {
            // SAFETY: the CPU has these features.
            #[expect(unsafe_code, reason = "calling code compiled for AVX2")]
            return unsafe { avx2(run) };
        }
    }
    run()
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
fn avx2<T>(run: impl FnOnce() -> T) -> T {
    run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512vpopcntdq,bmi2,popcnt")]
fn avx512<T>(run: impl FnOnce() -> T) -> T {
    run()
}
