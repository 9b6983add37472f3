//! Checksums of the payload, one a MiB.

use std::sync::OnceLock;

use twox_hash::XxHash3_64;

use super::MIB;

/// The checksum of a run of bytes.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// Whether all bytes are zero: the first is, and each equals the one before.
/// The comparison is the system's `memcmp`, as fast as memory.
pub(super) fn is_zero(bytes: &[u8]) -> bool {
    match bytes {
        [] => true,
        [first, rest @ ..] => *first == 0 && *rest == bytes[..rest.len()],
    }
}

/// The checksum of `len` (at most a MiB) zeros.
pub(super) fn zero_sum(len: usize) -> u64 {
    static WHOLE: OnceLock<u64> = OnceLock::new();
    if len == MIB {
        *WHOLE.get_or_init(|| sum(&vec![0; MIB]))
    } else {
        sum(&vec![0; len])
    }
}

/// The checksum table as bytes.
pub(super) fn table_bytes(sums: &[u64]) -> Vec<u8> {
    sums.iter().flat_map(|sum| sum.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_recognised() {
        assert!(is_zero(&[]));
        for len in [1, 2, 7, 64, 1000, MIB] {
            let mut bytes = vec![0; len];
            assert!(is_zero(&bytes));
            assert_eq!(zero_sum(len), sum(&bytes));
            for at in [0, len / 2, len - 1] {
                bytes[at] = 1;
                assert!(!is_zero(&bytes), "{at} of {len}");
                bytes[at] = 0;
            }
        }
    }
}
