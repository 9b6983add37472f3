//! `MurmurHash2` and `MurmurHash64A` (Austin Appleby, public domain).

/// 32 bits.
pub(crate) fn murmur2_32(bytes: &[u8], seed: u32) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mix = |k: u32| {
        let k = k.wrapping_mul(M);
        (k ^ (k >> 24)).wrapping_mul(M)
    };
    let (blocks, tail) = bytes.as_chunks::<4>();
    // The length counts in 32 bits.
    let mut h = seed ^ super::low32(bytes.len() as u64);
    for block in blocks {
        h = h.wrapping_mul(M) ^ mix(u32::from_le_bytes(*block));
    }
    if !tail.is_empty() {
        let mut last = [0; 4];
        last[..tail.len()].copy_from_slice(tail);
        h = (h ^ u32::from_le_bytes(last)).wrapping_mul(M);
    }
    h = (h ^ (h >> 13)).wrapping_mul(M);
    h ^ (h >> 15)
}

/// 64 bits, the variant for 64-bit machines.
pub(crate) fn murmur2_64a(bytes: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let (blocks, tail) = bytes.as_chunks::<8>();
    let mut h = seed ^ (bytes.len() as u64).wrapping_mul(M);
    for block in blocks {
        let k = u64::from_le_bytes(*block).wrapping_mul(M);
        h = (h ^ (k ^ (k >> 47)).wrapping_mul(M)).wrapping_mul(M);
    }
    if !tail.is_empty() {
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        h = (h ^ u64::from_le_bytes(last)).wrapping_mul(M);
    }
    h = (h ^ (h >> 47)).wrapping_mul(M);
    h ^ (h >> 47)
}
