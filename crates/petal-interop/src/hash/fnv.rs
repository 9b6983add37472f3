//! FNV of 64 bits (Fowler, Noll and Vo).

/// Where it starts.
pub(crate) const OFFSET: u64 = 14_695_981_039_346_656_037;
/// What it multiplies by.
pub(crate) const PRIME: u64 = 1_099_511_628_211;

/// FNV-1: multiplies, then takes the byte in.
pub(crate) fn fnv1_64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(OFFSET, |hash, &byte| {
        hash.wrapping_mul(PRIME) ^ u64::from(byte)
    })
}

/// FNV-1a, which takes the unit in, then multiplies, from a start of one's
/// own, over units that may be wider than a byte.
pub(crate) fn fnv1a_64_from(start: u64, units: impl Iterator<Item = u32>) -> u64 {
    units.fold(start, |hash, unit| {
        (hash ^ u64::from(unit)).wrapping_mul(PRIME)
    })
}
