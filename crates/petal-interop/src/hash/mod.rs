//! The hashes of other systems, quirks included.
//!
//! Owns those that no library has as they are needed here. XXH64, XXH3 and the
//! cryptographic ones come from crates.

mod fnv;
mod murmur2;
mod murmur3;
mod spark;

/// The low half.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the rest is meant to be dropped"
)]
pub(crate) const fn low32(value: u64) -> u32 {
    value as u32
}

/// The low half.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the rest is meant to be dropped"
)]
pub(crate) const fn low64(value: u128) -> u64 {
    value as u64
}

pub(crate) use fnv::{OFFSET as FNV_OFFSET, fnv1_64, fnv1a_64_from};
pub(crate) use murmur2::{murmur2_32, murmur2_64a};
pub(crate) use murmur3::murmur3_x64_128;
pub(crate) use spark::spark_murmur3_32;
