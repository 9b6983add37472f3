//! Asks the CPU to fetch cache lines ahead of their use. A hint: it changes
//! no value and is a no-op where there is no such instruction.

/// Fetches the cache lines of a value, which starts at one if it is larger
/// than one. Nothing happens if there is none at the address.
#[inline(always)]
pub(crate) fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        for line in (0..size_of::<T>()).step_by(64) {
            // SAFETY: SSE is part of x86-64, and the instruction ignores
            // addresses that are not mapped.
            #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(place.cast::<i8>().wrapping_add(line));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// [`prefetch`] of lines that are about to be written: takes them from the
/// caches of other CPUs in the same step. `_mm_prefetch` cannot ask for that
/// in the default build; without `can_write`, see [`can_fetch_to_write`], the
/// lines are fetched to be read.
#[inline(always)]
pub(crate) fn prefetch_to_write<T>(place: *const T, can_write: bool) {
    #[cfg(target_arch = "x86_64")]
    if can_write {
        for line in (0..size_of::<T>()).step_by(64) {
            // SAFETY: the CPU knows the instruction, which ignores addresses
            // that are not mapped and changes no value, flag or register.
            #[expect(unsafe_code, reason = "the instruction has no intrinsic")]
            unsafe {
                std::arch::asm!(
                    "prefetchw [{}]",
                    in(reg) place.cast::<i8>().wrapping_add(line),
                    options(nostack, preserves_flags),
                );
            }
        }
        return;
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = can_write;
    prefetch(place);
}

/// Whether the CPU knows `prefetchw`. Those with AVX2 do, the first of them
/// as an instruction without effect.
#[inline]
pub(crate) fn can_fetch_to_write() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    false
}
