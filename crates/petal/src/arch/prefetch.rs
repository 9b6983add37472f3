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
