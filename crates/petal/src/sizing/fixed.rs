//! Sizes and errors of static filters.
//!
//! Owns their expected size. The very size depends on the keys, by a few words;
//! [`crate::Static`] says how such a filter is built.
//!
//! For an error between 2^-r and 2^-(r+1) a key is compared in r columns, and a
//! share `s` of the keys in one more: `p = 2^-r (1 - s / 2)`, with `r + s` columns on
//! average. A column has a bit for each key, nearly; thresholds take two bits for every 128 slots.

use super::{Collisions, check_items_and_error};
use crate::error::Result;

/// Slots for each key: measured, as are the numbers below.
const SLOTS_A_KEY: f64 = 1.001_05;

/// Bits of thresholds for each key.
const THRESHOLDS_A_KEY: f64 = 0.0155;

/// Slots that rounding to blocks of 64 costs a shard.
const SLOTS_A_SHARD: f64 = 2.0 * 64.0;

/// The same of a single shard of few keys, for which every number of blocks is tried.
const SLOTS_OF_FEW: f64 = 0.9 * 64.0;

/// Fewer keys than this are few.
const FEW: u64 = 8192;

/// Keys of a shard at most, on average: its matrix takes 4 MiB, and what is
/// lost at the ends of its layers is below a thousandth.
pub(crate) const SHARD_KEYS: u64 = 1 << 18;

/// Bits of the directory for a shard, and of what is lost as each begins at a
/// cache line.
const DIRECTORY_A_SHARD: f64 = 3.0 * 64.0 + 3.5 * 64.0;

/// A static filter that is to be built.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StaticPlan {
    /// Distinct keys, n.
    pub items: u64,
    /// The expected bits.
    pub bits: u64,
    /// Bits that are compared for a key, on average.
    pub columns: f64,
    /// The expected error.
    pub error: f64,
}

/// The static filter for `items` distinct keys with an expected error of at most
/// `error`. What is built has the bits of the plan to within 1 % and a block and a half
/// (96 slots) of its columns.
///
/// # Errors
/// As [`super::split_for`].
pub fn static_for(items: u64, error: f64, collisions: Collisions) -> Result<StaticPlan> {
    check_items_and_error(items, error, collisions)?;
    let own = error - collisions.probability(items);
    let everywhere = (-own.log2()).floor().max(0.0);
    let columns = everywhere + 2.0 * (1.0 - own * everywhere.exp2());
    Ok(StaticPlan {
        items,
        bits: whole(expected_bits(items, columns)),
        columns,
        error: collisions.with(own, items),
    })
}

/// The expected bits of a filter of so many keys and columns, those of a value
/// among them.
fn expected_bits(items: u64, columns: f64) -> f64 {
    let shards = items.div_ceil(SHARD_KEYS);
    let rounding = match items < FEW {
        true => SLOTS_OF_FEW,
        false => SLOTS_A_SHARD * shards as f64,
    };
    let directory = match shards {
        0 | 1 => 0.0,
        shards => DIRECTORY_A_SHARD * shards as f64,
    };
    let bits = items as f64 * (SLOTS_A_KEY * columns + THRESHOLDS_A_KEY);
    bits + rounding * columns + directory
}

/// Words that such a filter hardly ever passes: what is expected, and as much more as
/// [`static_for`] says that it may be off.
pub(crate) fn words_enough(items: u64, columns: f64) -> u64 {
    let bits = 1.01 * expected_bits(items, columns) + 96.0 * columns;
    whole(bits / 64.0).saturating_add(1)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive count; the cast saturates"
)]
fn whole(count: f64) -> u64 {
    count.ceil() as u64
}
