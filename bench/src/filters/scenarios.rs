//! What is compared, and what petal has to reach.
//!
//! Owns the list of comparisons ([`SCENARIOS`]), the bounds ([`BOUNDS`]) and the run of one scenario.

use std::fmt;

use crate::filters::concurrent::{self, SharedTimes};
use crate::filters::keys::{Ints, Source, Strings};
use crate::filters::limit::{DISTANCES, Limit};
use crate::filters::measure::{Measured, Op, Times, ask, empty, fill};
use crate::filters::peers::Filter;
use crate::filters::petal::PetalKeys;
use crate::filters::sizing::{TOLERANCE, fit};

/// From this error on down, sizes come from the bits that are set: measuring would take too long.
const LEAST_MEASURED_ERROR: f64 = 1e-4;

/// The most keys of a filter that the search for a size builds. Beyond, bits a key stay as they are.
const MOST_SIZED_ITEMS: usize = 1_000_000;

/// Filters with fewer keys are sized by the mean of several, as one alone scatters.
const LEAST_SIZED_ITEMS: usize = 400_000;

/// Rounds of a filter that is slow.
const SLOW_ROUNDS: usize = 2;

/// How often the machine's limit and a filter are measured in turn, each round.
const TURNS: usize = 16;

/// Bytes of the arrays of the machine's limit.
const LIMIT_BYTES: [usize; 2] = [128 << 20, 1 << 30];

/// A comparison.
pub struct Scenario {
    /// What `--only` calls it.
    pub name: &'static str,
    /// The heading of its table.
    pub title: &'static str,
    kind: Kind,
    rounds: usize,
    /// Whether `--quick` runs it.
    pub quick: bool,
}

enum Kind {
    /// Filters of `items` members with an error of `error`.
    Filters {
        items: usize,
        error: f64,
        strings: bool,
        filters: &'static [Filter],
        /// Runs of every question in a round.
        asks: usize,
        /// Measures reads from an array of petal's size beside it.
        limit: bool,
    },
    /// Two threads.
    Concurrent { items: usize },
    /// The machine alone.
    Limit,
}

const ALL_SIZED: &[Filter] = &[
    Filter::Petal,
    Filter::Fastbloom,
    Filter::FastbloomAtomic,
    Filter::SplitBlock,
    Filter::Parquet,
    Filter::Bloomfilter,
    Filter::Growable,
];
const FASTEST: &[Filter] = &[Filter::Petal, Filter::Fastbloom, Filter::SplitBlock];
const STRINGS: &[Filter] = &[
    Filter::Petal,
    Filter::Fastbloom,
    Filter::SplitBlock,
    Filter::Parquet,
];
const LARGE: &[Filter] = &[
    Filter::Petal,
    Filter::Fastbloom,
    Filter::FastbloomHuge,
    Filter::FastbloomAtomic,
    Filter::SplitBlock,
    Filter::Parquet,
];

const FORGETTING: &[Filter] = &[
    Filter::PetalCounting,
    Filter::FastbloomRsCounting,
    Filter::BloomcraftCounting,
    Filter::Cuckoo,
];

const fn ints(items: usize, error: f64, filters: &'static [Filter]) -> Kind {
    Kind::Filters {
        items,
        error,
        strings: false,
        filters,
        asks: 3,
        limit: false,
    }
}

/// Every comparison, in the order of the report.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "10k",
        title: "10 k integers, 1 %",
        kind: ints(10_000, 0.01, FASTEST),
        rounds: 16,
        quick: false,
    },
    Scenario {
        name: "100k",
        title: "100 k integers, 1 %",
        kind: ints(100_000, 0.01, FASTEST),
        rounds: 8,
        quick: false,
    },
    Scenario {
        name: "1M",
        title: "1 M integers, 1 %",
        kind: ints(1_000_000, 0.01, ALL_SIZED),
        rounds: 8,
        quick: true,
    },
    Scenario {
        name: "1M-0.1%",
        title: "1 M integers, 0.1 %",
        kind: ints(1_000_000, 0.001, FASTEST),
        rounds: 8,
        quick: true,
    },
    Scenario {
        name: "1M-40B",
        title: "1 M strings of 40 bytes, 1 %",
        kind: Kind::Filters {
            items: 1_000_000,
            error: 0.01,
            strings: true,
            filters: STRINGS,
            asks: 32,
            limit: false,
        },
        rounds: 8,
        quick: true,
    },
    Scenario {
        name: "1M-fuse",
        title: "1 M integers, 2^-8",
        kind: ints(
            1_000_000,
            1.0 / 256.0,
            &[
                Filter::Petal,
                Filter::Fastbloom,
                Filter::SplitBlock,
                Filter::BinaryFuse8,
            ],
        ),
        rounds: 8,
        quick: true,
    },
    Scenario {
        name: "1M-static",
        title: "1 M integers, 2^-8, filters of fixed keys",
        kind: ints(
            1_000_000,
            1.0 / 256.0,
            &[Filter::PetalStatic, Filter::BinaryFuse8],
        ),
        rounds: 8,
        quick: true,
    },
    Scenario {
        name: "1M-forget",
        title: "1 M integers, 1 %, filters that forget",
        kind: ints(1_000_000, 0.01, FORGETTING),
        rounds: 8,
        quick: true,
    },
    Scenario {
        name: "10M",
        title: "10 M integers, 1 %",
        kind: ints(10_000_000, 0.01, FASTEST),
        rounds: 4,
        quick: false,
    },
    Scenario {
        name: "10M-1e-6",
        title: "10 M integers, 1e-6",
        kind: ints(10_000_000, 1e-6, &[Filter::Petal, Filter::Fastbloom]),
        rounds: 4,
        quick: false,
    },
    Scenario {
        name: "10M-1e-9",
        title: "10 M integers, 1e-9",
        kind: ints(10_000_000, 1e-9, &[Filter::Petal, Filter::Fastbloom]),
        rounds: 4,
        quick: false,
    },
    Scenario {
        name: "100M",
        title: "100 M integers, 1 %",
        kind: Kind::Filters {
            items: 100_000_000,
            error: 0.01,
            strings: false,
            filters: LARGE,
            asks: 4,
            limit: true,
        },
        rounds: 2,
        quick: false,
    },
    Scenario {
        name: "limit",
        title: "Random reads of cache lines",
        kind: Kind::Limit,
        rounds: 20,
        quick: false,
    },
    Scenario {
        name: "1M-window",
        title: "Windows over the last 1 M integers, 1 %",
        kind: ints(
            1_000_000,
            0.01,
            &[Filter::PetalWindow, Filter::Rotated, Filter::Expiring],
        ),
        rounds: 8,
        quick: false,
    },
    Scenario {
        name: "1M-deletable",
        title: "Deletable filters of 1 M integers, 1 %",
        kind: ints(
            1_000_000,
            0.01,
            &[Filter::PetalDeletable, Filter::Qfilter, Filter::Cuckoo],
        ),
        rounds: 8,
        quick: false,
    },
    Scenario {
        name: "threads-1M",
        title: "Two threads, 1 M integers, 1 %",
        kind: Kind::Concurrent { items: 1_000_000 },
        rounds: 12,
        quick: true,
    },
    Scenario {
        name: "threads-20M",
        title: "Two threads, 20 M integers, 1 %",
        kind: Kind::Concurrent { items: 20_000_000 },
        rounds: 4,
        quick: false,
    },
];

/// What petal's time is held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Against {
    /// At least so many times as fast as a peer.
    Filter(Filter, Op, f64),
    /// At most so many times the time of a random read.
    Limit(f64),
    /// Two threads, at least so many times as fast as fastbloom with new keys.
    New(f64),
    /// The same with repeated keys.
    Repeated(f64),
    /// A peer, without a bound.
    Shown(Filter, Op),
}

/// A ratio to report, and what it has to be.
pub struct Bound {
    /// The name of the scenario.
    pub scenario: &'static str,
    pub(crate) petal: Op,
    pub(crate) against: Against,
}

const fn bound(scenario: &'static str, petal: Op, against: Against) -> Bound {
    Bound {
        scenario,
        petal,
        against,
    }
}

const fn fastbloom(op: Op, at_least: f64) -> Against {
    Against::Filter(Filter::Fastbloom, op, at_least)
}

const fn fastbloom_rs(op: Op, at_least: f64) -> Against {
    Against::Filter(Filter::FastbloomRsCounting, op, at_least)
}

const fn cuckoo(op: Op, at_least: f64) -> Against {
    Against::Filter(Filter::Cuckoo, op, at_least)
}

/// Every ratio, in the order of the report.
pub const BOUNDS: &[Bound] = &[
    bound("1M", Op::Hit, fastbloom(Op::Hit, 2.0)),
    bound("1M", Op::Miss, fastbloom(Op::Miss, 3.2)),
    bound("1M", Op::Insert, fastbloom(Op::Insert, 2.0)),
    bound("1M", Op::HalfBatch, fastbloom(Op::Half, 5.0)),
    bound("1M", Op::InsertBatch, fastbloom(Op::Insert, 4.0)),
    bound("1M-0.1%", Op::HalfBatch, fastbloom(Op::Half, 5.0)),
    bound("1M-0.1%", Op::InsertBatch, fastbloom(Op::Insert, 5.0)),
    bound("1M-40B", Op::Half, fastbloom(Op::Half, 1.7)),
    bound("1M-40B", Op::HalfBatch, fastbloom(Op::Half, 2.3)),
    bound("100M", Op::HalfBatch, fastbloom(Op::Half, 7.0)),
    bound("100M", Op::InsertBatch, fastbloom(Op::Insert, 8.0)),
    bound(
        "100M",
        Op::HalfBatch,
        Against::Shown(Filter::FastbloomHuge, Op::Half),
    ),
    bound(
        "100M",
        Op::InsertBatch,
        Against::Shown(Filter::FastbloomHuge, Op::Insert),
    ),
    bound("100M", Op::HalfBatch, Against::Limit(1.2)),
    bound("10M-1e-6", Op::HalfBatch, fastbloom(Op::Half, 4.0)),
    bound("10M-1e-6", Op::InsertBatch, fastbloom(Op::Insert, 4.0)),
    bound("10M-1e-9", Op::HalfBatch, fastbloom(Op::Half, 4.0)),
    bound("10M-1e-9", Op::InsertBatch, fastbloom(Op::Insert, 4.0)),
    bound("threads-1M", Op::InsertBatch, Against::New(1.0)),
    bound("threads-20M", Op::InsertBatch, Against::New(1.5)),
    bound("threads-1M", Op::InsertBatch, Against::Repeated(4.0)),
    bound(
        "1M-window",
        Op::Insert,
        Against::Filter(Filter::Rotated, Op::Insert, 1.0),
    ),
    bound(
        "1M-window",
        Op::Half,
        Against::Filter(Filter::Rotated, Op::Half, 1.0),
    ),
    bound(
        "1M-window",
        Op::InsertBatch,
        Against::Filter(Filter::Rotated, Op::Insert, 1.0),
    ),
    bound(
        "1M-window",
        Op::HalfBatch,
        Against::Filter(Filter::Rotated, Op::Half, 1.0),
    ),
    bound(
        "1M-window",
        Op::Insert,
        Against::Filter(Filter::Expiring, Op::Insert, 1.0),
    ),
    bound(
        "1M-window",
        Op::Half,
        Against::Filter(Filter::Expiring, Op::Half, 1.0),
    ),
    bound(
        "1M-deletable",
        Op::InsertBatch,
        Against::Shown(Filter::Qfilter, Op::Insert),
    ),
    bound(
        "1M-deletable",
        Op::HalfBatch,
        Against::Shown(Filter::Qfilter, Op::Half),
    ),
    bound(
        "1M-deletable",
        Op::InsertBatch,
        Against::Shown(Filter::Cuckoo, Op::Insert),
    ),
    bound(
        "1M-deletable",
        Op::HalfBatch,
        Against::Shown(Filter::Cuckoo, Op::Half),
    ),
    bound(
        "1M-fuse",
        Op::HalfBatch,
        Against::Filter(Filter::BinaryFuse8, Op::Half, 2.0),
    ),
    // At most 2.5 times as long, for 13 % fewer bits.
    bound(
        "1M-static",
        Op::Insert,
        Against::Filter(Filter::BinaryFuse8, Op::Insert, 0.4),
    ),
    bound(
        "1M-static",
        Op::HalfBatch,
        Against::Filter(Filter::BinaryFuse8, Op::Half, 0.4),
    ),
    bound("1M-forget", Op::Insert, fastbloom_rs(Op::Insert, 1.0)),
    bound("1M-forget", Op::Half, fastbloom_rs(Op::Half, 1.0)),
    bound("1M-forget", Op::Remove, fastbloom_rs(Op::Remove, 1.0)),
    bound("1M-forget", Op::InsertBatch, fastbloom_rs(Op::Insert, 1.5)),
    bound("1M-forget", Op::HalfBatch, fastbloom_rs(Op::Half, 1.5)),
    bound("1M-forget", Op::RemoveBatch, fastbloom_rs(Op::Remove, 1.5)),
    bound("1M-forget", Op::InsertBatch, cuckoo(Op::Insert, 1.0)),
    bound("1M-forget", Op::HalfBatch, cuckoo(Op::Half, 1.0)),
    bound("1M-forget", Op::RemoveBatch, cuckoo(Op::Remove, 1.0)),
];

/// A filter's line in a table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) filter: Filter,
    pub(crate) bits_per_key: f64,
    pub(crate) measured: Measured,
    pub(crate) error_from_bits: Option<f64>,
    pub(crate) times: Times,
}

/// What a scenario found.
pub struct Outcome {
    /// The scenario.
    pub scenario: &'static Scenario,
    pub(crate) found: Found,
}

/// The figures of a scenario.
pub(crate) enum Found {
    Filters {
        items: usize,
        error: f64,
        rows: Vec<Row>,
        limit: Option<Limit>,
    },
    Concurrent {
        fastbloom: SharedTimes,
        petal: SharedTimes,
    },
    Limit(Vec<Limit>),
}

impl Scenario {
    /// Whether its keys are strings.
    pub(crate) fn has_strings(&self) -> bool {
        matches!(self.kind, Kind::Filters { strings: true, .. })
    }

    /// Runs it.
    ///
    /// # Errors
    /// If a filter cannot be built or sized, or loses a member.
    pub fn run(&'static self) -> Result<Outcome, String> {
        let found = match self.kind {
            Kind::Filters { .. } if self.has_strings() => self.run_filters::<Strings>(),
            Kind::Filters { .. } => self.run_filters::<Ints>(),
            Kind::Concurrent { items } => self.run_concurrent(items),
            Kind::Limit => self.run_limit(),
        };
        Ok(Outcome {
            scenario: self,
            found: found.map_err(|message| format!("{}: {message}", self.name))?,
        })
    }

    fn run_filters<K: PetalKeys>(&self) -> Result<Found, String> {
        let Kind::Filters {
            items,
            error,
            filters,
            asks,
            limit: with_limit,
            ..
        } = self.kind
        else {
            unreachable!("the caller looked");
        };
        let of = |filter: Filter| move |message| format!("{}: {message}", filter.name());
        let mut rows = Vec::new();
        for &filter in filters {
            rows.push(Row {
                filter,
                bits_per_key: bits_per_key::<K>(filter, items, error).map_err(of(filter))?,
                measured: Measured::default(),
                error_from_bits: None,
                times: Times::NONE,
            });
        }
        let mut limit: Option<Limit> = None;
        for round in 0..self.rounds {
            for row in &mut rows {
                let rounds = match row.filter.is_slow() {
                    true => self.rounds.min(SLOW_ROUNDS),
                    false => self.rounds,
                };
                if round >= rounds {
                    continue;
                }
                let mut source = Source::new(round as u64, items);
                let mut filter = row
                    .filter
                    .build::<K>(items, error, row.bits_per_key)
                    .map_err(of(row.filter))?;
                fill(&mut *filter, &source, round, &mut row.times);
                ask(&mut *filter, &mut source, asks, &mut row.times).map_err(of(row.filter))?;
                // Small filters scatter, so each round has its share in the error.
                let share = questions(error).div_ceil(rounds as u64);
                row.measured.ask(&mut *filter, &mut source, share);
                if round + 1 == rounds {
                    row.bits_per_key = filter.bits() as f64 / items as f64;
                    row.error_from_bits = filter
                        .error_from_bits()
                        .filter(|_| error < LEAST_MEASURED_ERROR);
                }
                empty(&mut *filter, &source, round, &mut row.times).map_err(of(row.filter))?;
                if with_limit && row.filter == Filter::Petal {
                    let limit = match &mut limit {
                        Some(limit) => limit,
                        none => none.insert(Limit::new(filter.bits() / 8)?),
                    };
                    // In turn, so that a busy moment of the machine meets both; and equally
                    // often, since the least of more runs is less.
                    for _ in 0..TURNS {
                        limit.run(1);
                        ask(&mut *filter, &mut source, DISTANCES.len(), &mut row.times)
                            .map_err(of(row.filter))?;
                    }
                }
            }
        }
        Ok(Found::Filters {
            items,
            error,
            rows,
            limit,
        })
    }

    fn run_concurrent(&self, items: usize) -> Result<Found, String> {
        const ERROR: f64 = 0.01;
        let mut fastbloom = SharedTimes::NONE;
        let mut petal = SharedTimes::NONE;
        for round in 0..self.rounds as u64 {
            let filter = concurrent::fastbloom(items, ERROR);
            fastbloom.round(&*filter, round, items)?;
            drop(filter);
            petal.round(&*concurrent::petal(items, ERROR)?, round, items)?;
        }
        Ok(Found::Concurrent { fastbloom, petal })
    }

    fn run_limit(&self) -> Result<Found, String> {
        let mut limits = Vec::new();
        for bytes in LIMIT_BYTES {
            let mut limit = Limit::new(bytes)?;
            limit.run(self.rounds);
            limits.push(limit);
        }
        Ok(Found::Limit(limits))
    }
}

/// Absent keys to ask so that an error is known to about half a percent of itself, as far as that can
/// be had in seconds.
fn questions(error: f64) -> u64 {
    let most = match error < LEAST_MEASURED_ERROR {
        true => 200_000_000.0,
        false => 20_000_000.0,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between the bounds"
    )]
    let questions = (40_000.0 / error).clamp(1e6, most) as u64;
    questions
}

/// The bits a key with which a filter has the wanted error.
fn bits_per_key<K: PetalKeys>(filter: Filter, items: usize, error: f64) -> Result<f64, String> {
    if !filter.is_sized_by_bits() {
        return Ok(0.0);
    }
    let items = items.min(MOST_SIZED_ITEMS);
    let filters = (LEAST_SIZED_ITEMS / items).max(1) as u64;
    let mut seed = 0;
    let fitted = fit(error, |bits_per_key| {
        let mut measured = Measured::default();
        for _ in 0..filters {
            seed += 1;
            let mut source = Source::new(u64::MAX - seed, items);
            let mut filter = filter.build::<K>(items, error, bits_per_key)?;
            fill(&mut *filter, &source, 0, &mut Times::NONE.clone());
            if error < LEAST_MEASURED_ERROR {
                return filter
                    .error_from_bits()
                    .ok_or_else(|| "its error is too small to be measured".into());
            }
            let share = questions(error) / filters;
            measured.ask(&mut *filter, &mut source, share / 16);
            // Far off, a rough figure does.
            if (0.9..1.1).contains(&(measured.error() / error)) {
                measured.ask(&mut *filter, &mut source, share);
            }
        }
        Ok(measured.error())
    })?;
    Ok(fitted.bits_per_key)
}

impl fmt::Display for Against {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter(filter, op, _) | Self::Shown(filter, op) => {
                write!(f, "{}: {}", filter.name(), op.name())
            }
            Self::Limit(_) => f.write_str("random reads of lines"),
            Self::New(_) => f.write_str("fastbloom Atomic: new keys"),
            Self::Repeated(_) => f.write_str("fastbloom Atomic: repeated keys"),
        }
    }
}

/// Whether an error is within the tolerance of the wanted one.
pub(crate) fn is_near(error: f64, wanted: f64) -> bool {
    (error / wanted - 1.0).abs() <= TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_distinct_and_bounds_name_what_is_run() {
        let names: HashSet<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        assert_eq!(names.len(), SCENARIOS.len());
        for bound in BOUNDS {
            let scenario = SCENARIOS
                .iter()
                .find(|scenario| scenario.name == bound.scenario)
                .unwrap();
            match (&scenario.kind, bound.against) {
                (
                    Kind::Filters { filters, .. },
                    Against::Filter(filter, ..) | Against::Shown(filter, _),
                ) => assert!(filters.contains(&filter)),
                (Kind::Filters { limit, .. }, Against::Limit(_)) => assert!(limit),
                (Kind::Concurrent { .. }, Against::New(_) | Against::Repeated(_)) => {}
                _ => panic!("{} has no {}", bound.scenario, bound.against),
            }
        }
    }

    /// Every filter of every kind of key, small: sized, filled, asked.
    fn all_filters_work<K: PetalKeys>() {
        const ITEMS: usize = 50_000;
        const ERROR: f64 = 0.05;
        let filters = ALL_SIZED
            .iter()
            .chain(&[
                Filter::FastbloomHuge,
                Filter::BinaryFuse8,
                Filter::PetalStatic,
            ])
            .chain(FORGETTING);
        for &filter in filters {
            let bits = bits_per_key::<K>(filter, ITEMS, ERROR).unwrap();
            let mut source = Source::new(1, ITEMS);
            let mut times = Times::NONE;
            let mut built = filter.build::<K>(ITEMS, ERROR, bits).unwrap();
            fill(&mut *built, &source, 1, &mut times);
            ask(&mut *built, &mut source, 1, &mut times).unwrap();
            let mut measured = Measured::default();
            measured.ask(&mut *built, &mut source, 500_000);
            let wanted = match filter {
                Filter::BinaryFuse8 => 1.0 / 256.0,
                // Two buckets of four slots, three eighths of which are used, of 255 fingerprints.
                Filter::Cuckoo => 8.0 * ITEMS as f64 / 131_072.0 / 255.0,
                _ => ERROR,
            };
            let off = measured.error() / wanted - 1.0;
            // Scatter of a filter this small, of the search and of the measurement.
            assert!(off.abs() < 0.1, "{filter:?}: {measured:?}");
            let used = built.bits() as f64 / ITEMS as f64;
            let of_one = match filter {
                Filter::Cuckoo => 2.0, // half of it is empty
                // The smallest: 4.3 bits at 5 %.
                Filter::PetalStatic => 0.7,
                _ if FORGETTING.contains(&filter) => 4.0,
                _ => 1.0,
            };
            assert!(
                (6.0 * of_one..13.0 * of_one).contains(&used),
                "{filter:?}: {used} bits a key"
            );
            assert_eq!(times.get(Op::HalfBatch).is_some(), filter.is_petal());
            empty(&mut *built, &source, 1, &mut times).unwrap();
            let forgets = FORGETTING.contains(&filter);
            assert_eq!(
                times.get(Op::Remove).is_some() || times.get(Op::RemoveBatch).is_some(),
                forgets
            );
            if forgets {
                let mut left = Measured::default();
                left.ask(&mut *built, &mut source, 10_000);
                assert_eq!(left.seen, 0, "{filter:?} is empty again");
            }
        }
    }

    #[test]
    fn all_filters_work_with_integers() {
        all_filters_work::<Ints>();
    }

    #[test]
    fn all_filters_work_with_strings() {
        all_filters_work::<Strings>();
    }

    #[test]
    fn a_lost_member_is_an_error() {
        let mut filter = Filter::Fastbloom.build::<Ints>(1_000, 0.01, 10.0).unwrap();
        let mut source = Source::new(1, 1_000);
        let lost = ask(&mut *filter, &mut source, 1, &mut Times::NONE.clone()).unwrap_err();
        assert!(lost.contains("members were not found"), "{lost}");
    }
}
