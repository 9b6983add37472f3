//! Filters that are to be packed: m and k from bytes on the wire.
//!
//! Owns the sizes of packed classic filters. After Mitzenmacher, "Compressed
//! Bloom Filters" (2002): with k positions, n keys and m bits the fill is
//! `f = 1 - (1 - 1/m)^(k n)`, the error `f^k`, and what is sent `m H(f)` bits.
//! With the number of bits on the wire given, the usual k, which fills half of
//! the bits, is the worst: fewer positions in more bits have a smaller error.
//! In the limit, one position in ever more bits, an error takes log2(e) bits
//! a key above the lower bound log2(1/p).

use super::{Collisions, MAX_BYTES, check_items, largest};
use crate::classic::ClassicGeometry;
use crate::error::{Error, Result};
use crate::sizing::classic_error;

/// What a packed filter takes beside its coded bits: its header, metadata of
/// the usual length, and a run of at most a MiB.
const OVERHEAD_BITS: f64 = 8.0 * 176.0;

/// What each further MiB takes.
const OVERHEAD_OF_MIB: f64 = 64.0 + 32.0;

/// A classic filter that is to be packed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WirePlan {
    /// Distinct keys, n.
    pub items: u64,
    /// Bits in memory, m.
    pub bits: u64,
    /// Positions a key, k.
    pub hashes: u32,
    /// The expected share of bits that are set at n keys.
    pub fill: f64,
    /// The expected bytes of the packed filter at n keys.
    pub wire_bytes: f64,
    /// The expected error at n keys.
    pub error: f64,
}

impl WirePlan {
    /// With these keys, bits and positions.
    ///
    /// # Errors
    /// If the filter cannot be: see [`ClassicGeometry::new`].
    fn new(items: u64, bits: u64, hashes: u32, collisions: Collisions) -> Result<Self> {
        Ok(Self {
            items,
            bits,
            hashes,
            fill: fill(items, bits, hashes),
            wire_bytes: wire_bits(items, bits, hashes) / 8.0,
            error: classic_error(items, bits, hashes, collisions)?,
        })
    }

    /// Bytes in memory.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.bits.div_ceil(64) * 8
    }
}

/// The expected share of bits that are set.
fn fill(items: u64, bits: u64, hashes: u32) -> f64 {
    if bits == 1 {
        return 1.0;
    }
    let of_one = (-1.0 / bits as f64).ln_1p();
    -(items as f64 * f64::from(hashes) * of_one).exp_m1()
}

/// The entropy of a bit that is set with probability `q`, in bits.
fn entropy(q: f64) -> f64 {
    if q <= 0.0 || q >= 1.0 {
        return 0.0;
    }
    -(q * q.log2() + (1.0 - q) * (-q).ln_1p() / std::f64::consts::LN_2)
}

/// The expected bits of a packed filter, header and all; those of the filter
/// as it is if that is less.
fn wire_bits(items: u64, bits: u64, hashes: u32) -> f64 {
    let m = bits as f64;
    let mibs = (m / 8_388_608.0).floor();
    m * entropy(fill(items, bits, hashes)) + OVERHEAD_BITS + OVERHEAD_OF_MIB * mibs
}

/// The largest classic filter with so many positions that holds `items` keys,
/// is at most `memory` bytes, and packed at most `wire` bytes, both expected at
/// `items` keys, and whose error is not below the least that may be asked for;
/// `None` if there is none, or only one that takes every key for its own.
///
/// # Errors
/// If `items` is 0 or above [`super::MAX_ITEMS`], or `hashes` is none that a
/// classic filter may have.
pub fn wire_with_hashes(
    items: u64,
    wire: u64,
    memory: u64,
    hashes: u32,
    collisions: Collisions,
) -> Result<Option<WirePlan>> {
    check_items(items)?;
    ClassicGeometry::new(1, hashes)?;
    let most = (memory.min(MAX_BYTES) / 8).saturating_mul(64);
    let limit = wire as f64 * 8.0;
    // For given k and n both factors of m H(f) that matter grow with m.
    let least = collisions.least_error(items);
    let fits = |bits| {
        wire_bits(items, bits, hashes) <= limit
            && classic_error(items, bits, hashes, collisions).is_ok_and(|error| error >= least)
    };
    let plan = match largest(1, most, fits) {
        Some(bits) => WirePlan::new(items, bits, hashes, collisions)?,
        None => return Ok(None),
    };
    Ok((plan.error < 1.0).then_some(plan))
}

/// The classic filter with the least expected error of all that hold `items`
/// keys, are at most `memory` bytes at the receiver, and packed at most `wire`
/// bytes. Numbers of positions are taken up to the first that fills half of the
/// bits: still more would pack as well, and be slower to ask.
///
/// # Errors
/// If `items` is 0 or above [`super::MAX_ITEMS`], or the bytes are too few for
/// any filter.
pub fn wire_for(items: u64, wire: u64, memory: u64, collisions: Collisions) -> Result<WirePlan> {
    let mut best: Option<WirePlan> = None;
    for hashes in 1..=ClassicGeometry::MAX_POSITIONS {
        let plan = wire_with_hashes(items, wire, memory, hashes, collisions)?;
        if let Some(plan) = plan
            // Where all reach the least error, the fewest positions do.
            && best.is_none_or(|best| plan.error < best.error * 0.999)
        {
            best = Some(plan);
        }
        if plan.is_some_and(|plan| plan.fill > 0.5) {
            break;
        }
    }
    match best {
        Some(best) => Ok(best),
        None => Err(Error::parameter(
            "bytes on the wire",
            wire,
            "too few for so many keys, or too little memory: allow more",
        )),
    }
}
