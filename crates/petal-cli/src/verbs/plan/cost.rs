//! What each kind of filter costs.
//!
//! Owns the rows of `plan`: for two of keys, error and bytes, the third for
//! every kind. All formulas are the library's; nothing is allocated.

use anyhow::{Result, bail};
use petal::sizing::{self, ClassicGiven, ClassicPlan, Collisions, GrowthPlan, MAX_ITEMS};
use petal::{DigestSet, SplitGeometry};

use crate::seen::FIRST_ITEMS;

/// What is known. Two of the first three decide the third.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Given {
    pub(super) items: Option<u64>,
    pub(super) error: Option<f64>,
    pub(super) bytes: Option<u64>,
    pub(super) hashes: Option<u32>,
}

/// The two that are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Question {
    ItemsError { items: u64, error: f64 },
    ItemsBytes { items: u64, bytes: u64 },
    BytesError { bytes: u64, error: f64 },
}

/// One kind of filter with nothing left open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cost {
    pub(super) items: u64,
    pub(super) bits: u64,
    /// The expected error at `items`.
    pub(super) error: f64,
    /// Regions of split blocks, over all stages.
    pub(super) regions: Option<u32>,
    /// Bits a key sets.
    pub(super) hashes: Option<u32>,
    /// Cache lines that the answer "yes" reads at most.
    pub(super) lines: u32,
    pub(super) stages: Option<u32>,
    /// Bytes that it holds while counts of repeats double it.
    pub(super) doubling: Option<u64>,
}

impl Cost {
    pub(super) const fn bytes(self) -> u64 {
        self.bits.div_ceil(8)
    }

    pub(super) fn bits_per_key(self) -> f64 {
        self.bits as f64 / self.items as f64
    }
}

/// A kind, and what it costs or why it cannot be.
pub(super) struct Row {
    /// The name and, for the growable filter, what is known of n.
    pub(super) kind: &'static str,
    pub(super) cost: Result<Cost>,
}

/// Every kind's answer.
pub(super) fn rows(question: Question, collisions: Collisions) -> Vec<Row> {
    let row = |kind, cost| Row { kind, cost };
    let mut rows = rows_that_keep(question, collisions);
    rows.push(row("counting", counting(question, collisions)));
    rows.push(row("deletable", deletable(question, collisions)));
    rows.push(row("window", window(question, collisions)));
    rows
}

/// The answers of the kinds that forget nothing.
pub(super) fn rows_that_keep(question: Question, collisions: Collisions) -> Vec<Row> {
    let row = |kind, cost| Row { kind, cost };
    vec![
        row("bloom", bloom(question, collisions)),
        row("classic", classic(given(question), collisions)),
        row("growable, n declared", growable(question, true, collisions)),
        row("growable, n unknown", growable(question, false, collisions)),
        row("digests", digests(question, collisions)),
        row("static", fixed(question, collisions)),
    ]
}

/// What a question says to the sizing of the classic filter.
fn given(question: Question) -> Given {
    match question {
        Question::ItemsError { items, error } => Given {
            items: Some(items),
            error: Some(error),
            ..Given::default()
        },
        Question::ItemsBytes { items, bytes } => Given {
            items: Some(items),
            bytes: Some(bytes),
            ..Given::default()
        },
        Question::BytesError { bytes, error } => Given {
            bytes: Some(bytes),
            error: Some(error),
            ..Given::default()
        },
    }
}

pub(super) fn bloom(question: Question, collisions: Collisions) -> Result<Cost> {
    let (items, geometry) = match question {
        Question::ItemsError { items, error } => {
            (items, sizing::split_for(items, error, collisions)?)
        }
        Question::ItemsBytes { items, bytes } => (
            items,
            sizing::split_for_items_and_bytes(items, bytes, collisions)?,
        ),
        Question::BytesError { bytes, error } => {
            let (geometry, items) = sizing::best_split_within(bytes, error, collisions)?;
            (items, geometry)
        }
    };
    Ok(Cost {
        items,
        bits: geometry.bits(),
        error: sizing::split_error(geometry, items, collisions),
        regions: Some(geometry.regions()),
        hashes: Some(geometry.bits_per_key()),
        lines: geometry.regions(),
        stages: None,
        doubling: None,
    })
}

/// The classic filter, with k given or not.
pub(super) fn classic(given: Given, collisions: Collisions) -> Result<Cost> {
    let given = ClassicGiven {
        items: given.items,
        error: given.error,
        bits: given.bytes.map(|bytes| bytes.saturating_mul(8)),
        hashes: given.hashes,
    };
    let ClassicPlan {
        items,
        error,
        bits,
        hashes,
    } = sizing::plan_classic(given, collisions)?;
    Ok(Cost {
        items,
        bits,
        error,
        regions: None,
        hashes: Some(hashes),
        lines: hashes,
        stages: None,
        doubling: None,
    })
}

/// The digests themselves, in a table that was made for their number.
fn digests(question: Question, collisions: Collisions) -> Result<Cost> {
    let (items, slots) = match question {
        Question::ItemsError { items, error } => {
            if error < collisions.probability(items) {
                bail!("that many digests of 64 bits have a larger error");
            }
            (items, DigestSet::slots_for(items))
        }
        Question::ItemsBytes { items, bytes } => {
            let slots = DigestSet::slots_for(items);
            if slots > bytes / 8 {
                bail!(
                    "that many digests need {}",
                    crate::units::format_size(slots * 8)
                );
            }
            (items, slots)
        }
        Question::BytesError { bytes, error } => {
            let slots = bytes / 8;
            let fits = |items| {
                DigestSet::slots_for(items) <= slots && collisions.probability(items) <= error
            };
            match most(1, MAX_ITEMS, fits) {
                Some(items) => (items, slots.min(DigestSet::slots_for(items))),
                None => bail!("the least table takes 32 bytes"),
            }
        }
    };
    Ok(Cost {
        items,
        bits: slots.saturating_mul(64),
        error: collisions.probability(items),
        regions: None,
        hashes: None,
        // On average: 8.5 slots of 8 bytes for an absent digest when the
        // table is as full as it may be.
        lines: 2,
        stages: None,
        doubling: None,
    })
}

/// A chain of filters, all of whose stages are there.
fn growable(question: Question, declared: bool, collisions: Collisions) -> Result<Cost> {
    let plan = |items: u64, error: f64| {
        let first = items.min(FIRST_ITEMS);
        if declared {
            GrowthPlan::ceiling(first, items, error)
        } else {
            GrowthPlan::open(first, error)
        }
    };
    let chain = |items: u64, error: f64| chain(plan(items, error)?, items, collisions);
    solved(question, collisions, chain)
}

/// The answer of a kind of which only the cost for keys and error is known.
fn solved(
    question: Question,
    collisions: Collisions,
    cost: impl Fn(u64, f64) -> Result<Cost>,
) -> Result<Cost> {
    match question {
        Question::ItemsError { items, error } => cost(items, error),
        Question::ItemsBytes { items, bytes } => {
            // The least error that fits, to about one per cent: in steps of
            // the exponent, as the size is linear in it.
            let error_of = |step: u64| 0.9 * 0.99f64.powi(i32::try_from(step).unwrap_or(i32::MAX));
            let fits = |step| cost(items, error_of(step)).is_ok_and(|cost| cost.bytes() <= bytes);
            match most(0, 2750, fits) {
                Some(step) => cost(items, error_of(step)),
                None => bail!("too few bytes for so many keys"),
            }
        }
        Question::BytesError { bytes, error } => {
            let fits = |items| cost(items, error).is_ok_and(|cost| cost.bytes() <= bytes);
            // More than twice those of a Bloom filter of its size are in none.
            let (_, bound) = sizing::best_split_within(bytes, error, collisions)?;
            match most(1, bound.saturating_mul(2).min(MAX_ITEMS), fits) {
                Some(items) => cost(items, error),
                None => bail!("too few bytes"),
            }
        }
    }
}

/// The Bloom filter with counters of 4 bits.
fn counting(question: Question, collisions: Collisions) -> Result<Cost> {
    const BITS: u64 = 4;
    let of_bits = match question {
        Question::ItemsError { .. } => question,
        Question::ItemsBytes { items, bytes } => Question::ItemsBytes {
            items,
            bytes: bytes / BITS,
        },
        Question::BytesError { bytes, error } => Question::BytesError {
            bytes: bytes / BITS,
            error,
        },
    };
    let cost = bloom(of_bits, collisions)?;
    Ok(Cost {
        bits: cost.bits.saturating_mul(BITS),
        // Those of a block are neighbours: 4 for one of 8 words, 2 for 4.
        lines: cost.hashes.map_or(cost.lines, |words| words.div_ceil(2)),
        ..cost
    })
}

/// The ribbon of keys that are all known.
fn fixed(question: Question, collisions: Collisions) -> Result<Cost> {
    solved(question, collisions, |items, error| {
        let plan = sizing::static_for(items, error, collisions)?;
        // A word a column of two blocks side by side, and one of thresholds.
        let lines = (plan.columns.ceil() * 2.0 / 8.0).ceil() + 1.0;
        Ok(Cost {
            items,
            bits: plan.bits,
            error: plan.error,
            regions: None,
            hashes: None,
            lines: u32::try_from(whole(lines)).unwrap_or(u32::MAX),
            stages: None,
            doubling: None,
        })
    })
}

/// The quotient filter, for keys that do not come repeatedly.
fn deletable(question: Question, collisions: Collisions) -> Result<Cost> {
    solved(question, collisions, |items, error| {
        let geometry = sizing::deletable_for(items, error, collisions)?;
        Ok(Cost {
            items,
            bits: geometry.bits(),
            error: sizing::deletable_error(geometry, items),
            regions: None,
            hashes: None,
            // The offset, the bits of the block, and mostly one of remainders.
            lines: 3,
            stages: None,
            doubling: geometry
                .doubled()
                .map(|doubled| geometry.bytes().saturating_add(doubled.bytes())),
        })
    })
}

/// The window over so many keys.
fn window(question: Question, collisions: Collisions) -> Result<Cost> {
    solved(question, collisions, |items, error| {
        let geometry = sizing::window_for(items, error, sizing::DEFAULT_GENERATIONS, collisions)?;
        let keys = sizing::generation_keys(geometry, items);
        Ok(Cost {
            items,
            bits: geometry.bits(),
            error: sizing::window_error(geometry, keys, collisions),
            regions: Some(geometry.regions()),
            hashes: Some(geometry.regions() * geometry.parts()),
            lines: geometry.regions(),
            stages: None,
            doubling: None,
        })
    })
}

/// The chain that holds `items` keys.
fn chain(plan: GrowthPlan, items: u64, collisions: Collisions) -> Result<Cost> {
    let (mut bits, mut regions, mut hashes, mut stages) = (0u64, 0, 0, 0);
    let (mut left, mut miss) = (items, 1.0);
    while left > 0 {
        let stage = plan.stage(stages)?;
        let geometry: SplitGeometry = sizing::split_for(stage.items, stage.error, collisions)?;
        let held = left.min(stage.items);
        bits = bits.saturating_add(geometry.bits());
        regions += geometry.regions();
        hashes = hashes.max(geometry.bits_per_key());
        miss *= 1.0 - sizing::split_error(geometry, held, collisions);
        left -= held;
        stages += 1;
    }
    Ok(Cost {
        items,
        bits,
        error: 1.0 - miss,
        regions: Some(regions),
        hashes: Some(hashes),
        lines: regions,
        stages: Some(stages),
        doubling: None,
    })
}

/// What no filter can be smaller than: log2(1/p) bits a key.
pub(super) fn lower_bound(question: Question) -> Cost {
    let (items, bits, error) = match question {
        Question::ItemsError { items, error } => {
            (items, whole(items as f64 * bits_at(error)), error)
        }
        Question::ItemsBytes { items, bytes } => {
            let bits = bytes.saturating_mul(8);
            (items, bits, (-(bits as f64) / items as f64).exp2())
        }
        Question::BytesError { bytes, error } => {
            let bits = bytes.saturating_mul(8);
            (whole((bits as f64 / bits_at(error)).floor()), bits, error)
        }
    };
    Cost {
        items,
        bits,
        error,
        regions: None,
        hashes: None,
        lines: 0,
        stages: None,
        doubling: None,
    }
}

/// Bits a key that an error takes at least.
pub(super) fn bits_at(error: f64) -> f64 {
    -error.log2()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive count; the cast saturates"
)]
fn whole(count: f64) -> u64 {
    count.ceil() as u64
}

/// The largest number from `low` to `high` for which `holds`, true up to
/// some number. `None` if it is false at `low`.
pub(super) fn most(low: u64, high: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if low > high || !holds(low) {
        return None;
    }
    let (mut low, mut high) = (low, high);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if holds(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: Collisions = Collisions::Digest64;

    #[test]
    fn the_largest_that_holds_is_found() {
        for end in 0..20 {
            assert_eq!(most(0, 30, |i| i <= end), Some(end));
        }
        assert_eq!(most(0, 30, |_| true), Some(30));
        assert_eq!(most(0, 30, |_| false), None);
        assert_eq!(most(0, u64::MAX, |_| true), Some(u64::MAX));
    }

    #[test]
    fn questions_are_inverse_to_each_other() {
        let (items, error) = (1_000_000, 1e-4);
        let there = rows(Question::ItemsError { items, error }, BYTES);
        for row in there {
            let cost = row.cost.unwrap();
            assert!(cost.error <= error, "{}: {cost:?}", row.kind);
            let bytes = cost.bytes();
            let back = rows(Question::BytesError { bytes, error }, BYTES);
            let back = back.into_iter().find(|r| r.kind == row.kind).unwrap();
            let back = back.cost.unwrap();
            assert!(back.bytes() <= bytes, "{}: {back:?}", row.kind);
            assert!(back.items >= items, "{}: {back:?}", row.kind);
            let at = rows(Question::ItemsBytes { items, bytes }, BYTES);
            let at = at.into_iter().find(|r| r.kind == row.kind).unwrap();
            let at = at.cost.unwrap();
            assert!(at.bytes() <= bytes, "{}: {at:?}", row.kind);
            assert!(at.error <= error * 1.02, "{}: {at:?}", row.kind);
        }
    }

    #[test]
    fn nothing_is_below_the_lower_bound() {
        for error in [0.5, 0.1, 1e-3, 1e-6, 1e-9, 1e-12] {
            let question = Question::ItemsError {
                items: 100_000,
                error,
            };
            let bound = lower_bound(question).bits;
            for row in rows(question, BYTES) {
                if let Ok(cost) = row.cost {
                    assert!(cost.bits >= bound, "{} at {error}", row.kind);
                }
            }
        }
    }

    #[test]
    fn the_most_keys_of_all_are_planned() {
        let question = Question::ItemsError {
            items: MAX_ITEMS,
            error: 1e-6,
        };
        for row in rows(question, BYTES) {
            if row.kind != "growable, n unknown" {
                assert!(row.cost.unwrap().bits_per_key() > 20.0, "{}", row.kind);
            }
        }
    }
}
