//! The hashes of other systems, quirks included.
//!
//! Owns those that no library has as they are needed here. XXH64, XXH3 and the
//! cryptographic ones come from crates.

mod fnv;
mod murmur3;

/// The low half.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the rest is meant to be dropped"
)]
pub(crate) const fn low32(value: u64) -> u32 {
    value as u32
}

pub(crate) use fnv::fnv1_64;
pub(crate) use murmur3::murmur3_x64_128;
