//! What to do with more keys than one filter, or one machine, can hold.
//!
//! Owns the split into parts that `dedup --part` can run one by one, and the
//! sum of filters that more than 10^12 keys take.

use anyhow::{Result, bail};
use petal::sizing::{self, Collisions, MAX_ITEMS};

use super::cost::{self, Cost, Question, Row};
use crate::budget;
use crate::report::{figure, probability};
use crate::units::{format_count, format_size};

/// The most parts that `--part` takes.
const MOST_PARTS: u64 = 1_000_000;

/// Parts that are handled one after the other, or on as many machines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Parts {
    pub(super) count: u64,
    /// Keys of a part, with 5 sigma of what chance may add.
    pub(super) items: u64,
    /// Bytes of the filter of a part.
    pub(super) bytes: u64,
    /// The memory that a run of a part may use.
    pub(super) memory: u64,
}

/// The fewest parts of `items` keys whose filters fit into `memory` bytes.
pub(super) fn fewest(items: u64, error: f64, memory: u64, collisions: Collisions) -> Result<Parts> {
    // Keys that share a digest are in one part: there are as many of them as
    // if there were no parts.
    let own = own_error(items, error, collisions)?;
    let usable = budget::usable(memory)?;
    let part = |count: u64| {
        let items = with_scatter(items, count);
        if items > MAX_ITEMS {
            return None;
        }
        let bytes = sizing::split_for(items, own, Collisions::Never)
            .ok()?
            .bytes();
        (bytes <= usable).then_some(Parts {
            count,
            items,
            bytes,
            memory,
        })
    };
    // Not enough up to some number, enough from there.
    let too_few = cost::most(1, MOST_PARTS, |count| part(count).is_none());
    match too_few.map_or(1, |count| count + 1) {
        count if count > MOST_PARTS => bail!(
            "even {} parts do not fit into {} each",
            format_count(MOST_PARTS),
            format_size(memory)
        ),
        count => part(count).ok_or_else(|| anyhow::anyhow!("no part fits")),
    }
}

/// Keys of the fullest of `count` parts: parts are chosen by digest, so their
/// sizes scatter as a binomial does.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive count; the cast saturates"
)]
fn with_scatter(items: u64, count: u64) -> u64 {
    let even = items.div_ceil(count);
    if count == 1 {
        return even;
    }
    even.saturating_add((5.0 * (even as f64).sqrt()).ceil() as u64)
}

/// What of an error is left when keys that share a digest have had theirs.
fn own_error(items: u64, error: f64, collisions: Collisions) -> Result<f64> {
    let least = collisions.least_error(items);
    if least >= 1.0 {
        bail!(
            "-n {items} is not possible: so many keys share 64-bit digests all the time; give fewer"
        );
    }
    if error < least {
        bail!(
            "-p {error:e} is not possible: with {} keys of 64-bit digests it must be {} or more",
            format_count(items),
            figure(least)
        );
    }
    Ok(error - collisions.probability(items))
}

/// The rows for more keys than one filter takes: those of as few filters as
/// possible, together.
pub(super) fn rows(items: u64, error: f64, collisions: Collisions) -> Result<(u64, Vec<Row>)> {
    let filters = items.div_ceil(MAX_ITEMS);
    let own = own_error(items, error, collisions)?;
    let question = Question::ItemsError {
        items: items.div_ceil(filters),
        error: own,
    };
    let shared = collisions.probability(items);
    let mut rows = cost::rows(question, Collisions::Never);
    for row in &mut rows {
        if let Ok(cost) = &mut row.cost {
            *cost = Cost {
                items,
                bits: cost.bits.saturating_mul(filters),
                error: cost.error + shared * (1.0 - cost.error),
                ..*cost
            };
        }
    }
    Ok((filters, rows))
}

/// The remedy, as a command.
pub(super) fn advice(parts: &Parts, error: f64) -> String {
    format!(
        "Split the work into {count} parts of {size} each, one after the other or on several \
         machines:\n  petal dedup FILE... -p {error} --memory {memory}M --part 1/{count}   \
         (then 2/{count}, and so on)",
        count = parts.count,
        error = probability(error),
        size = format_size(parts.bytes),
        memory = parts.memory >> 20,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_fewest_parts_fit_and_one_less_does_not() {
        let parts = fewest(2_000_000_000_000, 0.01, 12 * GIB, Collisions::Digest64).unwrap();
        assert!(budget::needed(parts.bytes) <= 12 * GIB);
        let larger = with_scatter(2_000_000_000_000, parts.count - 1);
        let larger = sizing::split_for(larger, 0.01, Collisions::Digest64).unwrap();
        assert!(budget::needed(larger.bytes()) > 12 * GIB);
        assert_eq!(parts.items, with_scatter(2_000_000_000_000, parts.count));
        assert_eq!(
            fewest(1000, 0.01, GIB, Collisions::Digest64).unwrap().count,
            1
        );
    }

    #[test]
    fn what_cannot_be_split_is_refused() {
        let refusal = |items, error, memory| {
            fewest(items, error, memory, Collisions::Digest64)
                .unwrap_err()
                .to_string()
        };
        assert!(refusal(10_000_000_000_000_000, 0.01, 10 << 20).contains("1,000,000 parts"));
        assert!(refusal(10_000_000_000_000_000, 0.001, 1 << 50).contains("must be"));
        assert!(refusal(u64::MAX, 0.01, 1 << 50).contains("share 64-bit digests"));
        assert!(refusal(1000, 0.01, 1000).contains("too little"));
    }

    #[test]
    fn more_keys_than_one_filter_takes_are_added_up() {
        let (filters, rows) = rows(2_000_000_000_000, 0.01, Collisions::Digest64).unwrap();
        assert_eq!(filters, 2);
        let cost = rows[0].cost.as_ref().unwrap();
        assert!((9.5..10.2).contains(&cost.bits_per_key()), "{cost:?}");
        assert!(cost.error <= 0.01);
    }
}
