//! Spark's `Murmur3_x86_32`: MurmurHash3 of 32 bits, but every byte behind the
//! last whole word is mixed as a word of its own, sign-extended.

/// `hashUnsafeBytes`. The hash of a long is that of its 8 little-endian bytes.
pub(crate) fn spark_murmur3_32(bytes: &[u8], seed: u32) -> u32 {
    let (words, tail) = bytes.as_chunks::<4>();
    let mut h = seed;
    for word in words {
        h = mix(h, u32::from_le_bytes(*word));
    }
    for &byte in tail {
        h = mix(h, i32::from(byte.cast_signed()).cast_unsigned());
    }
    // The length counts in 32 bits.
    h ^= super::low32(bytes.len() as u64);
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

const fn mix(h: u32, k: u32) -> u32 {
    let k = k
        .wrapping_mul(0xcc9e_2d51)
        .rotate_left(15)
        .wrapping_mul(0x1b87_3593);
    (h ^ k)
        .rotate_left(13)
        .wrapping_mul(5)
        .wrapping_add(0xe654_6b64)
}
