//! From what is asked for to what is built: items, error and bytes.
//!
//! Owns every formula and all rounding between (items `n`, error `p`) or a
//! memory budget and the shape of a filter, and back from a shape and its
//! load to the expected error. Pure functions: they hold no filter, read no
//! clock and allocate nothing but small vectors. Also owns
//! [`Promise`]. The shapes themselves are not here: that of split blocks is in
//! [`crate::SplitGeometry`].
//!
//! The promise: **the expected error at `n` distinct keys is at most `p`**,
//! for `n` from 1 to [`MAX_ITEMS`] and `p` from [`MIN_ERROR`] up to, but
//! not including, 1. *Expected* is over the keys, that is over hashes that
//! behave as random: one small filter scatters around it.

mod classic;
mod counting;
mod deletable;
mod fixed;
mod growable;
mod packet;
mod split;
mod window;
mod wire;

pub use classic::{
    ClassicGiven, ClassicPlan, MAX_HASHES, classic_error, classic_for, plan_classic,
};
pub use counting::saturated_counters;
pub use deletable::{deletable_error, deletable_for};
pub(crate) use fixed::{SHARD_KEYS, words_enough};
pub use fixed::{StaticPlan, static_for};
pub use growable::GrowthPlan;
pub use packet::{hashes_for_path, lost_on_path};
pub use split::{
    best_split_within, capacity_of, estimated_len, split_error, split_for,
    split_for_items_and_bytes,
};
pub use window::{
    DEFAULT_GENERATIONS, MAX_GENERATIONS, generation_keys, window_error, window_error_at,
    window_for,
};
pub use wire::{WirePlan, wire_for, wire_with_hashes};

use crate::error::{Error, Result};
use crate::hash::{KeyHasher, KeyType};

/// The most keys a filter is sized for: 10^12.
pub const MAX_ITEMS: u64 = 1_000_000_000_000;

/// The least error a filter is sized for: 10^-12.
pub const MIN_ERROR: f64 = 1e-12;

/// The most bits a filter may have: 2^63, so that bit positions fit an `i64`.
pub const MAX_BITS: u64 = 1 << 63;

/// The most bytes a filter may have: those of [`MAX_BITS`].
pub const MAX_BYTES: u64 = MAX_BITS / 8;

/// 2^64 as a float: the number of digests.
const DIGESTS: f64 = 18_446_744_073_709_551_616.0;

/// Byte keys take at most one part in this of their error from shared digests.
const COLLISION_SHARE: f64 = 10.0;

/// What a filter was made for. For a filter sized by (n, p): the expected
/// error at `items` distinct keys is at most `error`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Promise {
    /// Distinct keys, n.
    pub items: u64,
    /// Error, p: the expected share of absent keys that are answered "seen".
    pub error: f64,
}

/// Whether two different keys can share a digest. A shared digest is a false
/// positive in every filter, whatever its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collisions {
    /// Never: integer keys under the portable hasher, which is a bijection.
    Never,
    /// With probability 2^-64 a pair: all other keys.
    Digest64,
}

impl Collisions {
    /// What holds for keys of a type under a hasher.
    #[must_use]
    pub const fn of(hasher: &KeyHasher, key_type: KeyType) -> Self {
        match (hasher, key_type) {
            (KeyHasher::Portable { .. }, KeyType::Int) => Self::Never,
            _ => Self::Digest64,
        }
    }

    /// An upper bound of the probability that a new key shares its digest
    /// with one of `items` keys: `items / 2^64`.
    #[must_use]
    pub fn probability(self, items: u64) -> f64 {
        match self {
            Self::Never => 0.0,
            Self::Digest64 => items as f64 / DIGESTS,
        }
    }

    /// The least error that [`split_for`] and its kin accept for `items`
    /// keys: [`MIN_ERROR`], or ten times [`Self::probability`] if that is more.
    #[must_use]
    pub fn least_error(self, items: u64) -> f64 {
        MIN_ERROR.max(COLLISION_SHARE * self.probability(items))
    }

    /// The most keys whose [`Self::least_error`] is at most `error`.
    fn most_items(self, error: f64) -> u64 {
        largest(1, MAX_ITEMS, |items| self.least_error(items) <= error).unwrap_or(0)
    }

    /// The error of a filter that answers wrongly with probability `filter`
    /// when digests differ: `1 - (1 - filter)(1 - items / 2^64)`.
    fn with(self, filter: f64, items: u64) -> f64 {
        filter + self.probability(items) * (1.0 - filter)
    }
}

/// Refuses a number of keys that no filter is sized for.
pub(crate) fn check_items(items: u64) -> Result<()> {
    if items == 0 {
        return Err(Error::parameter(
            "n",
            items,
            "a filter is sized for at least 1 key: use a number from 1 to 10^12",
        ));
    }
    if items > MAX_ITEMS {
        return Err(Error::parameter("n", items, too_many(items)));
    }
    Ok(())
}

/// How to go on with more than [`MAX_ITEMS`] keys.
fn too_many(items: u64) -> String {
    let parts = items.div_ceil(MAX_ITEMS);
    format!("use a number from 1 to 10^12, or split the keys into {parts} parts or more")
}

/// Refuses an error that is not a probability, or smaller than any filter
/// is sized for.
pub(crate) fn check_error(error: f64) -> Result<()> {
    let refuse = |expected: String| Err(Error::parameter("p", format!("{error:?}"), expected));
    if error > 1.0 && error <= 100.0 {
        let percent = error / 100.0;
        return refuse(format!(
            "an error is a share between 0 and 1; did you mean {percent} ({error} %)?"
        ));
    }
    // The negation catches NaN as well.
    if !(error > 0.0 && error < 1.0) {
        return refuse("use a number between 0 and 1, such as 0.01".to_owned());
    }
    if error < MIN_ERROR {
        return refuse(format!("use {MIN_ERROR:e} or more"));
    }
    Ok(())
}

/// Refuses keys and an error that no filter can have at the same time:
/// [`check_items`], [`check_error`], and the share of colliding digests.
pub(crate) fn check_items_and_error(items: u64, error: f64, collisions: Collisions) -> Result<()> {
    check_items(items)?;
    check_error(error)?;
    let least = collisions.least_error(items);
    if error < least {
        return Err(Error::parameter(
            "p",
            format!("{error:?}"),
            format!(
                "with {items} keys of 64-bit digests p must be {least:e} or more, \
                 so that at most a tenth of it are keys that share a digest: \
                 use a larger p, fewer keys, or integer keys without a secret"
            ),
        ));
    }
    Ok(())
}

/// Refuses a memory budget that is no filter's.
fn check_bytes(bytes: u64) -> Result<()> {
    if bytes > MAX_BYTES {
        return Err(Error::parameter(
            "bytes",
            bytes,
            format!("a filter has at most {MAX_BYTES} bytes (2^63 bits)"),
        ));
    }
    Ok(())
}

/// The least number from `low` to `high` for which `holds`, which must be
/// false up to some number and true from there. `None` if false at `high`.
fn least(low: u64, high: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if low > high || !holds(high) {
        return None;
    }
    let (mut low, mut high) = (low, high);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

/// The largest number from `low` to `high` for which `holds`, which must be
/// true up to some number and false from there. `None` if false at `low`.
fn largest(low: u64, high: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if low > high || !holds(low) {
        return None;
    }
    match least(low, high, |value| !holds(value)) {
        Some(first_false) => Some(first_false - 1),
        None => Some(high),
    }
}

#[cfg(test)]
mod tests;
