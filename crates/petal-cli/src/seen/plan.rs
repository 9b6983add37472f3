//! How the memory of a run is divided, decided before anything is allocated.
//!
//! Owns the arithmetic from a budget and what is known of the input to the
//! sizes of the tables and filters of [`super::Seen`]. It allocates nothing.

use std::fmt;

use anyhow::{Result, bail};
use petal::sizing::{self, Collisions, GrowthPlan};
use petal::{Identity, SplitGeometry};

use super::addresses::{self, Addresses};
use crate::budget::{OVERHEAD, needed, usable};
use crate::sample::Estimate;
use crate::units::{format_count as count, format_size as size};

/// The error that a filter filled from digests may come to.
pub(crate) const CEILING: f64 = 1e-9;

/// Half the memory, below which a bitmap holds fewer addresses than a table of digests
/// may: up to 8 MiB of it are for blocks with few addresses in each.
const LEAST_BITMAP: u64 = 16 << 20;

/// Slots a digest needs in a table that is never doubled: tables are at most
/// three quarters full.
const SLOTS_PER_DIGEST: f64 = 4.0 / 3.0;

/// What a sample may be wrong by: an estimate is raised by this share.
const MARGIN: f64 = 0.05;

/// First capacity of a filter for input of unknown length: a few megabytes.
/// Each question costs a look at every stage, so there should be few.
pub(crate) const FIRST_ITEMS: u64 = 1_000_000;

/// The plan of one run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Plan {
    /// Digests first; poured into a Bloom filter when they outgrow their share.
    Digests {
        /// Slots the table starts with.
        slots: u64,
        /// Slots at which it is poured instead of doubled.
        most_slots: u64,
        /// Bytes of tables and filter together.
        usable: u64,
        /// Lines that a sample says there are, if the table takes them all.
        lines: Option<u64>,
        /// Bytes of tables and filter at the moment of most use.
        peak: u64,
        /// Whether `peak` is what will be used, and not only a bound.
        known: bool,
    },
    /// A bitmap of addresses first; poured into a Bloom filter when it outgrows its
    /// share.
    Addresses {
        /// Bytes at which it is poured.
        most_bytes: u64,
        /// Bytes of bitmap and filter together.
        usable: u64,
        /// Lines that a sample says there are, if they all fit.
        lines: Option<u64>,
    },
    /// A filter of a fixed size from the start.
    Fixed {
        items: u64,
        error: f64,
        geometry: SplitGeometry,
    },
    /// A filter that grows.
    Growing {
        plan: GrowthPlan,
        /// Bytes of the first stage.
        first: u64,
        usable: u64,
        known: bool,
    },
}

impl Plan {
    /// Digests, then a filter: no error was asked for.
    pub(crate) fn digests(budget: u64, estimate: Option<&Estimate>) -> Result<Self> {
        let usable = usable(budget)?;
        // Poured when a quarter of the memory is used: the filter, which
        // exists beside the table while it is filled, then gets three.
        let quarter = (usable / 4 / 8).max(64);
        let known = estimate.is_some_and(Estimate::is_mostly_distinct);
        let lines = estimate.map(|estimate| estimate.lines);
        if let Some(slots) = lines.map(slots_for).filter(|&s| s <= usable / 2 / 8) {
            // Where repeats dominate, the table starts small and doubles.
            let (first, peak) = if known {
                (slots, slots * 8)
            } else {
                (smallest_doubling_to(slots), slots * 8 / 2 * 3)
            };
            return Ok(Self::Digests {
                slots: first,
                most_slots: slots.max(quarter),
                usable,
                lines,
                peak,
                known,
            });
        }
        Ok(Self::Digests {
            slots: smallest_doubling_to(quarter),
            most_slots: quarter,
            usable,
            lines: None,
            peak: usable,
            known,
        })
    }

    /// A bitmap, if the keys of this identity are addresses and the memory is enough for
    /// one to be worth while; else digests.
    pub(crate) fn addresses(
        budget: u64,
        identity: &Identity,
        estimate: Option<&Estimate>,
    ) -> Result<Self> {
        let usable = usable(budget)?;
        if addresses::seed(identity).is_none() || usable / 2 < LEAST_BITMAP {
            return Self::digests(budget, estimate);
        }
        let lines = estimate.map(|estimate| raised(estimate.lines));
        Ok(Self::Addresses {
            most_bytes: if usable >= addresses::FULL {
                addresses::FULL
            } else {
                usable / 2
            },
            usable,
            lines: lines.filter(|&lines| Addresses::bytes_of(lines) <= usable / 2),
        })
    }

    /// A filter with the error that was asked for.
    pub(crate) fn filter(
        budget: u64,
        error: f64,
        items: Option<u64>,
        estimate: Option<&Estimate>,
        collisions: Collisions,
    ) -> Result<Self> {
        let usable = usable(budget)?;
        if let Some(items) = items {
            let geometry = sizing::split_for(items, error, collisions)?;
            return fits(geometry.bytes(), usable, || Self::Fixed {
                items,
                error,
                geometry,
            });
        }
        let (plan, known) = match estimate {
            Some(estimate) => {
                let items = raised(estimate.lines).max(1);
                let Ok(plan) = GrowthPlan::ceiling(items, items, error) else {
                    // So small an error cannot be shared among stages.
                    return Self::filter(budget, error, Some(items), None, collisions);
                };
                (plan, true)
            }
            None => (open_within(usable, error, collisions)?, false),
        };
        let stage = plan.stage(0)?;
        let first = sizing::split_for(stage.items, stage.error, collisions)?.bytes();
        fits(first, usable, || Self::Growing {
            plan,
            first,
            usable,
            known,
        })
    }

    /// Bytes at the moment of most use, the process itself included.
    pub(crate) fn peak(&self) -> u64 {
        OVERHEAD
            + match self {
                Self::Digests { peak, .. } => *peak,
                Self::Addresses {
                    usable,
                    lines: None,
                    ..
                } => (*usable).min(addresses::FULL),
                Self::Addresses {
                    lines: Some(lines), ..
                } => Addresses::bytes_of(*lines),
                Self::Fixed { geometry, .. } => geometry.bytes(),
                Self::Growing {
                    first,
                    usable,
                    known,
                    ..
                } => {
                    if *known {
                        *first
                    } else {
                        *usable
                    }
                }
            }
    }

    /// Whether `peak` is what will be used, and not only a bound.
    pub(crate) const fn is_known(&self) -> bool {
        match self {
            Self::Digests { known, .. } | Self::Growing { known, .. } => *known,
            Self::Fixed { .. } => true,
            Self::Addresses { .. } => false,
        }
    }
}

/// For people: what will be used, and for what.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.is_known(), self) {
            (true, _) => write!(f, "memory {}: ", size(self.peak()))?,
            // A guess, since repeats decide how many lines are kept.
            (
                false,
                Self::Digests {
                    lines: Some(_),
                    usable,
                    ..
                },
            ) => write!(
                f,
                "memory about {}, at most {}: ",
                size(self.peak()),
                size(usable + OVERHEAD)
            )?,
            (false, _) => write!(f, "memory at most {}: ", size(self.peak()))?,
        }
        match self {
            Self::Digests {
                lines: Some(lines), ..
            } => write!(f, "digests of about {} lines", count(*lines)),
            Self::Digests {
                most_slots, usable, ..
            } => {
                let digests = most_slots / 4 * 3;
                let rest = usable.saturating_sub(most_slots * 8);
                write!(f, "digests of up to {} distinct lines", count(digests))?;
                if let Ok((geometry, items)) =
                    sizing::best_split_within(rest, CEILING, Collisions::Never)
                    && items > digests
                {
                    write!(
                        f,
                        ", then a Bloom filter of {} for up to {} at an error of {CEILING:e}",
                        size(geometry.bytes()),
                        count(items)
                    )?;
                }
                Ok(())
            }
            Self::Addresses { usable, .. } if *usable >= addresses::FULL => {
                write!(f, "a bitmap of all addresses")
            }
            Self::Addresses { .. } => write!(
                f,
                "a bitmap of addresses, then a Bloom filter at an error of {CEILING:e}"
            ),
            Self::Fixed { items, error, .. } => write!(
                f,
                "a Bloom filter for {} distinct lines at an error of {error:e}",
                count(*items)
            ),
            Self::Growing {
                plan, known: true, ..
            } => write!(
                f,
                "a Bloom filter for about {} lines at an error of {:e}",
                count(plan.stage(0).map_or(0, |stage| stage.items)),
                plan.error()
            ),
            Self::Growing { plan, .. } => write!(
                f,
                "a Bloom filter that grows, at an error of {:e}",
                plan.error()
            ),
        }
    }
}

/// Growth from [`FIRST_ITEMS`], or from fewer where these would take more than
/// a quarter of the memory at once.
fn open_within(usable: u64, error: f64, collisions: Collisions) -> Result<GrowthPlan> {
    let mut first = FIRST_ITEMS;
    loop {
        let plan = GrowthPlan::open(first, error)?;
        let stage = plan.stage(0)?;
        let bytes = sizing::split_for(stage.items, stage.error, collisions)?.bytes();
        if bytes <= usable / 4 || first < 2000 {
            return Ok(plan);
        }
        first /= 2;
    }
}

/// Refuses a filter that the budget does not hold.
fn fits(bytes: u64, usable: u64, plan: impl FnOnce() -> Plan) -> Result<Plan> {
    if bytes > usable {
        bail!(
            "the filter needs {}, the memory budget is {}: allow more with --memory, \
             accept a larger error with -p, or split the work with --part",
            size(needed(bytes)),
            size(needed(usable))
        );
    }
    Ok(plan())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count raised by a share; the cast saturates"
)]
fn raised(lines: u64) -> u64 {
    (lines as f64 * (1.0 + MARGIN)).ceil() as u64
}

/// Slots of a table that takes so many lines without doubling.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count raised by a share; the cast saturates"
)]
fn slots_for(lines: u64) -> u64 {
    ((raised(lines) as f64 * SLOTS_PER_DIGEST).ceil() as u64).max(64)
}

/// A small table whose doublings come out just at (or under) `slots`.
const fn smallest_doubling_to(slots: u64) -> u64 {
    let mut first = slots;
    while first >= 2048 {
        first /= 2;
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(lines: u64, distinct_share: f64) -> Estimate {
        Estimate {
            lines,
            distinct_share,
        }
    }

    #[test]
    fn a_table_for_all_lines_is_preferred_where_it_fits() {
        let plan = Plan::digests(1 << 30, Some(&estimate(10_000_000, 1.0))).unwrap();
        let Plan::Digests { slots, known, .. } = plan else {
            panic!("{plan:?}");
        };
        assert!(known && slots >= 14_000_000);
        assert_eq!(plan.peak(), OVERHEAD + slots * 8);
    }

    #[test]
    fn pouring_leaves_the_filter_most_of_the_memory() {
        let plan = Plan::digests(64 << 20, Some(&estimate(10_000_000, 1.0))).unwrap();
        let Plan::Digests {
            most_slots, usable, ..
        } = plan
        else {
            panic!("{plan:?}");
        };
        assert!(most_slots * 8 <= usable / 4);
        let rest = usable - most_slots * 8;
        let (_, items) = sizing::best_split_within(rest, CEILING, Collisions::Digest64).unwrap();
        assert!(items >= 6_900_000, "{items}");
        assert_eq!(plan.peak(), 60 << 20);
    }

    #[test]
    fn doublings_end_at_the_table_that_was_planned() {
        for slots in [64, 5000, 1 << 20, 3_333_333] {
            let mut first = smallest_doubling_to(slots);
            assert!(first < 2048 || slots < 2048);
            while first * 2 <= slots {
                first *= 2;
            }
            assert!(first as f64 >= slots as f64 * 0.998, "{first} {slots}");
        }
    }

    #[test]
    fn what_cannot_hold_is_refused_with_figures() {
        let error = Plan::filter(64 << 20, 1e-9, Some(1 << 30), None, Collisions::Never);
        let text = error.unwrap_err().to_string();
        assert!(text.contains("GiB") && text.contains("--memory"), "{text}");
        assert!(Plan::digests(1 << 20, None).is_err());
    }
}
