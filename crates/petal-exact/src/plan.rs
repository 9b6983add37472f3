//! What a run will read, write and hold, decided before it begins.
//!
//! Owns the choice of the method and the arithmetic behind it. The work itself is in `memory`
//! and `partition`; they keep to the sizes that are decided here.

use std::path::PathBuf;

use petal::SplitGeometry;
use petal::sizing::{self, Collisions};

use crate::bitmap::Bitmap;
use crate::error::Error;
use crate::partition::Group;
use crate::source::Facts;
use crate::spill::Writer;
use crate::table::Table;

/// Which records of a deduplication are handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The first occurrence of each.
    First,
    /// Those that occur once in all sources together.
    NeverRepeated,
    /// The first occurrence of each, with the number of all of them.
    Counted,
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Distinct records of all sources, one after the other.
    Dedup(Which),
    /// Records that are in at least so many of the sources, in the order of their first
    /// occurrence. With as many as there are sources: those in all of them, in the order of the
    /// first.
    Common {
        /// From 1 to the number of sources.
        at_least: usize,
    },
    /// Records of the first source that are in no other.
    Except,
}

/// How an operation is run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of memory to use for what is remembered, at most. The sources' own buffers are
    /// not counted.
    pub memory: u64,
    /// Where temporary files are made, if any are needed.
    pub directory: PathBuf,
    /// Threads, at least 1.
    pub threads: usize,
    /// [`Operation::Common`] and [`Operation::Except`] hand out every occurrence in the first
    /// source that has the record, instead of the first occurrence alone.
    pub multi: bool,
    /// Before anything else, compare the keys of all records with equal fingerprints, byte for
    /// byte: then the answer does not rest on the improbability of equal fingerprints. It reads
    /// all sources once more and, where their keys do not fit the memory, writes and reads all
    /// keys.
    pub verify: bool,
    /// About which share of the records of the first source are in all others, where that is
    /// known (from a sample): decides whether filters pay.
    pub overlap: Option<f64>,
}

impl Options {
    /// With an amount of memory and a directory for temporary files; one thread, sets, no
    /// verification.
    pub fn new(memory: u64, directory: impl Into<PathBuf>) -> Self {
        Self {
            memory,
            directory: directory.into(),
            threads: 1,
            multi: false,
            verify: false,
            overlap: None,
        }
    }
}

/// How the question is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// A table of fingerprints in memory.
    Memory,
    /// A Bloom filter of the first source decides which fingerprints of the others are worth a
    /// place in the table.
    Filtered {
        /// Bytes of the filter.
        filter: u64,
    },
    /// Fingerprints are written to disk in partitions, each of which fits into memory.
    Partitions {
        /// log2 of their number.
        bits: u32,
        /// Bytes of a Bloom filter of the smallest other source, which keeps records of the first
        /// that are not in it off the disk; 0 if there is none.
        filter: u64,
    },
}

/// One step of a plan: in it some bytes are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Step {
    /// What is done.
    pub what: &'static str,
    /// Bytes read of the sources.
    pub sources: u64,
    /// Bytes read of temporary files.
    pub read: u64,
    /// Bytes written to temporary files.
    pub written: u64,
}

/// What a run will do. Where nothing is known of the sources beforehand, it says what is done if
/// the table suffices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// How.
    pub method: Method,
    /// In which steps, in order.
    pub steps: Vec<Step>,
    /// Bytes of memory used at most.
    pub memory: u64,
    /// Bytes of temporary files at most.
    pub disk: u64,
    /// Records of the sources together, if known.
    pub records: Option<u64>,
}

impl Plan {
    /// Bytes read of the sources, over all steps.
    #[must_use]
    pub fn sources(&self) -> u64 {
        self.steps.iter().map(|step| step.sources).sum()
    }

    /// Bytes read and written in all, sources and temporary files.
    #[must_use]
    pub fn traffic(&self) -> u64 {
        let of = |step: &Step| step.sources + step.read + step.written;
        self.steps.iter().map(of).sum()
    }
}

/// Records of one source are numbered with so many bits.
pub(crate) const NUMBER_BITS: u32 = 48;

/// Most partitions made at once: 2^12.
const MOST_BITS: u32 = 12;

/// Bytes a record takes where nothing is known but the bytes, which may be compressed.
const GUESSED_RECORD: u64 = 16;

/// From this share of records that pass on, a filter does not pay: what it saves is less than
/// the work of asking it.
const WORTHLESS: f64 = 0.7;

/// The least memory that work can be planned in.
pub(crate) const LEAST_MEMORY: u64 = 16 << 10;

/// How memory is divided between what exists at the same time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shares {
    /// A table that is alone.
    pub(crate) table: u64,
    /// The buffers of all writers.
    pub(crate) buffers: u64,
}

impl Shares {
    pub(crate) const fn of(memory: u64) -> Self {
        Self {
            table: memory - memory / 16,
            buffers: memory / 4,
        }
    }
}

/// What is planned from.
pub(crate) struct Question<'a> {
    pub(crate) operation: Operation,
    pub(crate) facts: &'a [Facts],
    pub(crate) options: &'a Options,
}

impl Question<'_> {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let sources = self.facts.len();
        let parameter = |name, got: usize, expected: String| Error::Parameter {
            name,
            got: got as u64,
            expected,
        };
        let most = usize::from(u16::MAX) - 1;
        if sources == 0 || sources > most {
            return Err(parameter(
                "number of sources",
                sources,
                format!("1 to {most}"),
            ));
        }
        if let Operation::Common { at_least } = self.operation
            && !(1..=sources).contains(&at_least)
        {
            let expected = format!("from 1 to the number of sources, {sources}");
            return Err(parameter("at-least", at_least, expected));
        }
        if self.options.memory < LEAST_MEMORY {
            return Err(Error::NoMemory {
                needed: LEAST_MEMORY,
                allowed: self.options.memory,
                what: "any operation",
            });
        }
        Ok(())
    }

    /// The first sources, whose records may be handed out.
    pub(crate) fn candidates(&self) -> usize {
        candidates(self.operation, self.facts.len())
    }

    /// Of the sources after the first, the one with the fewest records.
    pub(crate) fn smallest_other(&self) -> Option<usize> {
        (1..self.facts.len()).min_by_key(|&i| records(&self.facts[i]))
    }

    /// Whether records must be in every one of several sources.
    pub(crate) fn wants_all(&self) -> bool {
        wants_all(self.operation, self.facts.len())
    }

    /// About how many fingerprints a table in memory takes; `None` if nobody knows.
    pub(crate) fn in_table(&self) -> Option<u64> {
        let all = || self.facts.iter().map(distinct).sum();
        match self.operation {
            Operation::Common { .. } if self.wants_all() => {
                self.smallest_other().and_then(|i| distinct(&self.facts[i]))
            }
            Operation::Except if self.options.multi => self.facts[1..].iter().map(distinct).sum(),
            _ => all(),
        }
    }

    /// Bytes of a table in memory for so many fingerprints.
    fn table_bytes(&self, fingerprints: u64) -> u64 {
        match self.operation {
            Operation::Dedup(Which::First) | Operation::Except => {
                Table::<()>::bytes_for(fingerprints)
            }
            Operation::Dedup(Which::NeverRepeated) | Operation::Common { .. } => {
                Table::<u32>::bytes_for(fingerprints)
            }
            Operation::Dedup(Which::Counted) => Table::<u64>::bytes_for(fingerprints),
        }
    }

    fn bytes(&self) -> u64 {
        self.facts.iter().map(|facts| facts.bytes).sum()
    }

    fn candidate_bytes(&self) -> u64 {
        let candidates = &self.facts[..self.candidates()];
        candidates.iter().map(|facts| facts.bytes).sum()
    }

    /// The plan.
    pub(crate) fn plan(&self) -> Result<Plan, Error> {
        self.check()?;
        let shares = Shares::of(self.options.memory);
        let in_table = self.in_table();
        let mut plan = match in_table {
            None => self.in_memory(shares.table),
            Some(count) if self.table_bytes(count) <= shares.table => {
                self.in_memory(self.table_bytes(count))
            }
            Some(_) => match self.filtered() {
                Some(plan) => plan,
                None => self.partitions()?,
            },
        };
        if self.options.verify {
            let step = self.verification();
            plan.disk = plan.disk.max(step.written);
            plan.steps.insert(0, step);
        }
        plan.records = self.facts.iter().map(|facts| facts.records).sum();
        Ok(plan)
    }

    fn in_memory(&self, memory: u64) -> Plan {
        let read = |what, sources| Step {
            what,
            sources,
            ..Step::default()
        };
        let (all, candidates) = (self.bytes(), self.candidate_bytes());
        let steps = match self.operation {
            Operation::Dedup(Which::First) => vec![read("deduplicate", all)],
            Operation::Dedup(_) => vec![read("count", all), read("select", all)],
            Operation::Common { .. } if !self.wants_all() => {
                vec![read("remember", all), read("select", candidates)]
            }
            _ => vec![
                read("remember the others", all - candidates),
                read("select from the first", candidates),
            ],
        };
        Plan {
            method: Method::Memory,
            steps,
            memory,
            disk: 0,
            records: None,
        }
    }

    /// A filter of the first source and a table of what passes it, if both fit.
    fn filtered(&self) -> Option<Plan> {
        self.options.overlap?;
        if !self.wants_all() {
            return None;
        }
        let first = records(&self.facts[0]).max(1);
        let room = Shares::of(self.options.memory).table;
        let (filter, table) = (4..16u64)
            .filter_map(|sixteenths| {
                let bytes = room / 16 * sixteenths;
                let geometry =
                    sizing::split_for_items_and_bytes(first, bytes, Collisions::Never).ok()?;
                let table = self.table_bytes(self.passing(geometry.bytes()));
                (geometry.bytes() + table <= room).then_some((geometry.bytes(), table))
            })
            .min_by_key(|(filter, table)| filter + table)?;
        let mut plan = self.in_memory(filter + table);
        plan.method = Method::Filtered { filter };
        plan.steps.insert(
            0,
            Step {
                what: "make a filter of the first",
                sources: self.facts[0].bytes,
                ..Step::default()
            },
        );
        Some(plan)
    }

    /// About how many fingerprints of the smallest other source pass a filter of the first that
    /// takes so many bytes.
    pub(crate) fn passing(&self, filter: u64) -> u64 {
        let other = self.smallest_other().map_or(0, |i| records(&self.facts[i]));
        let first = records(&self.facts[0]).max(1);
        let overlap = self.options.overlap.unwrap_or(1.0);
        let error = sizing::split_for_items_and_bytes(first, filter, Collisions::Never)
            .map_or(1.0, |geometry| {
                sizing::split_error(geometry, first, Collisions::Never)
            });
        // Half as much again as a sample shows, and some more: a table that turns out to be
        // too small costs the whole way.
        let shared = (1.5 * overlap + 0.001) * first as f64;
        to_count(shared + error * 1.1 * other as f64).min(other)
    }

    /// The way over the disk.
    pub(crate) fn partitions(&self) -> Result<Plan, Error> {
        let memory = self.options.memory;
        let shares = Shares::of(memory);
        let (candidates, others) = self.facts.split_at(self.candidates());
        let kept: u64 = candidates.iter().map(records).sum();
        let marks: u64 = others.iter().map(records).sum();
        let bitmaps = Bitmap::bytes_for(kept);
        if bitmaps > memory / 2 {
            return Err(Error::NoMemory {
                needed: bitmaps * 2,
                allowed: memory,
                what: "one bit for each record, with as much again for the work,",
            });
        }
        let (filter, passing) = self.prefilter(memory - bitmaps - shares.buffers);
        let on_disk = to_count(kept as f64 * passing);
        let threads = self.options.threads.max(1) as u64;
        let each = table_share(self.operation, (memory - bitmaps) / threads);
        let most = Table::<Group>::most_for(each).max(1);
        // Partitions differ in size by chance: an eighth more room than the average one needs. A
        // filter is not counted on: more partitions cost nothing, too few are divided again.
        let wanted = (kept + kept / 8).div_ceil(most).max(2);
        // Sources are read one after the other where a filter of one is asked for the next.
        let at_once = threads.min(self.facts.len() as u64);
        let writers = if filter == 0 { at_once } else { 1 };
        let bits = (64 - (wanted - 1).leading_zeros())
            .min(most_bits(shares.buffers / writers))
            .max(1);
        let buffers = writers * Writer::memory(bits, shares.buffers / writers);
        let table = Table::<Group>::bytes_for((on_disk + on_disk / 8) >> bits).min(each);
        let number = number_bytes(1u64 << bits, passing);
        let written = marks * 16 + to_count(on_disk as f64 * (16.0 + number));
        let repeats: f64 = candidates
            .iter()
            .map(|facts| records(facts) as f64 * (1.0 - facts.distinct_share))
            .sum();
        let (counts, again) = match self.operation {
            Operation::Dedup(Which::Counted) => (to_count(repeats) * 16, 0),
            Operation::Common { .. } | Operation::Except if self.options.multi => {
                (0, written - marks * 16)
            }
            _ => (0, 0),
        };
        let steps = vec![
            Step {
                what: "write fingerprints in partitions",
                sources: self.bytes(),
                read: 0,
                written,
            },
            Step {
                what: "compare each partition",
                sources: 0,
                read: written + again,
                written: counts,
            },
            Step {
                what: "select by line numbers",
                sources: self.candidate_bytes(),
                read: counts,
                written: 0,
            },
        ];
        Ok(Plan {
            method: Method::Partitions { bits, filter },
            steps,
            memory: bitmaps + (filter + buffers).max(table * threads),
            disk: written + counts,
            records: None,
        })
    }

    /// The size of a filter that keeps records of the first source off the disk, and the share
    /// of them that pass it.
    fn prefilter(&self, room: u64) -> (u64, f64) {
        let Some(overlap) = self.options.overlap.filter(|_| self.wants_all()) else {
            return (0, 1.0);
        };
        let Some(other) = self.smallest_other() else {
            return (0, 1.0);
        };
        let keys = records(&self.facts[other]).max(1);
        // Past 1e-3 more bits save next to nothing.
        let enough = sizing::split_for(keys, 1e-3, Collisions::Never)
            .map_or(room, SplitGeometry::bytes)
            .min(room);
        let sized = sizing::split_for_items_and_bytes(keys, enough, Collisions::Never);
        let Ok(geometry) = sized else {
            return (0, 1.0);
        };
        let error = sizing::split_error(geometry, keys, Collisions::Never);
        let passing = overlap + (1.0 - overlap) * error;
        if passing > WORTHLESS {
            return (0, 1.0);
        }
        (geometry.bytes(), passing)
    }

    /// Reading all keys to compare those of equal fingerprints.
    fn verification(&self) -> Step {
        let memory = self.options.memory;
        let keys: u64 = self.facts.iter().map(records).sum();
        let written = if verify_bits(self.facts, memory) == 0 {
            0
        } else {
            self.bytes() + keys * KEY_HEAD as u64
        };
        Step {
            what: "compare keys of equal fingerprints",
            sources: self.bytes(),
            read: written,
            written,
        }
    }
}

/// Bytes before a key on disk: its fingerprint and its length.
pub(crate) const KEY_HEAD: usize = 16 + 8;

/// The share of the memory that keys may take, and that a table of them may: the table is there
/// twice while it grows.
pub(crate) const KEY_SHARE: u64 = 3;

/// log2 of the parts into which keys are divided so that each fits; 0 if all do.
pub(crate) fn verify_bits(facts: &[Facts], memory: u64) -> u32 {
    let bytes: u64 = facts.iter().map(|facts| facts.bytes).sum();
    let keys: u64 = facts.iter().map(records).sum();
    let room = memory / KEY_SHARE;
    // A table that grew has up to twice the slots it needs, and a part an eighth more keys than
    // the average.
    let table = Table::<[u64; 2]>::bytes_for(keys).saturating_mul(3);
    let parts = (bytes.max(table).saturating_mul(9) / 8).div_ceil(room.max(1));
    (u64::BITS - (parts.max(1) - 1).leading_zeros()).min(MOST_BITS)
}

/// The first sources, whose records may be handed out.
pub(crate) const fn candidates(operation: Operation, sources: usize) -> usize {
    match operation {
        Operation::Dedup(_) => sources,
        Operation::Except => 1,
        // A record that is first seen later is in too few of them.
        Operation::Common { at_least } => sources - at_least + 1,
    }
}

/// Whether records must be in every one of several sources.
pub(crate) fn wants_all(operation: Operation, sources: usize) -> bool {
    sources > 1 && operation == Operation::Common { at_least: sources }
}

/// Of the memory of one thread that compares partitions, what its table may take.
pub(crate) const fn table_share(operation: Operation, memory: u64) -> u64 {
    match operation {
        // A list of counts as well, of up to 16 bytes for 32 x 4 / 3 of the table.
        Operation::Dedup(Which::Counted) => memory / 8 * 5,
        _ => memory / 8 * 7,
    }
}

/// The most partitions for which buffers fit into so many bytes, as a power of 2.
pub(crate) fn most_bits(bytes: u64) -> u32 {
    (0..=MOST_BITS)
        .rev()
        .find(|&bits| Writer::least_memory(bits) <= bytes)
        .unwrap_or(0)
}

/// Bytes of the distance between the numbers of one partition's records (LEB128), on average:
/// the distance is d or more with probability e^(-d passing / partitions).
fn number_bytes(partitions: u64, passing: f64) -> f64 {
    let longer = |bits: i32| (-(2f64.powi(bits)) * passing / partitions as f64).exp();
    1.0 + longer(7) + longer(14)
}

fn records(facts: &Facts) -> u64 {
    facts.records.unwrap_or(facts.bytes / GUESSED_RECORD)
}

fn distinct(facts: &Facts) -> Option<u64> {
    let records = facts.records? as f64;
    Some(to_count(records * facts.distinct_share.clamp(0.0, 1.0)))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate of a count is not negative; the cast saturates"
)]
fn to_count(estimate: f64) -> u64 {
    estimate.ceil() as u64
}
