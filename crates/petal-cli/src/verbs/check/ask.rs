//! What one or several filters say of a batch of lines.
//!
//! Owns the filters that are asked, the counts of their answers, and how
//! many of the hits are expected to be false.

use std::ops::AddAssign;
use std::path::PathBuf;

use anyhow::Result;
use petal::sizing;
use petal::{AnyFilter, Contains, Count, Identity};

use petal_interop::ForeignFilter;

use super::allow::Allowed;
use super::others::Others;
use crate::foreign::LineKeys;
use crate::input::{Batch, LineOptions};
use crate::keys::{KeyedLines, Keys, NoKey};
use crate::mask;
use crate::walk::Prepare;

/// Blocks of each region that are looked at for the error of a mapped
/// filter, and places they are taken from.
const SAMPLE_BLOCKS: u64 = 1024;
const SAMPLE_PLACES: u32 = 16;

/// Counts of lines.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) lines: u64,
    pub(super) hits: u64,
    /// Empty lines that do not count.
    pub(super) left_out: u64,
    /// Lines of which no filter was asked: they have no key.
    pub(super) no_key: u64,
    /// Lines that would be hits, but are exceptions.
    pub(super) allowed: u64,
}

impl Counts {
    /// Lines that some filter was asked about, but for exceptions.
    pub(super) const fn asked(self) -> u64 {
        self.lines - self.left_out - self.no_key - self.allowed
    }

    /// Lines that are in no filter, but for exceptions.
    pub(super) const fn absent(self) -> u64 {
        self.lines - self.left_out - self.hits - self.allowed
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.lines += more.lines;
        self.hits += more.hits;
        self.left_out += more.left_out;
        self.no_key += more.no_key;
        self.allowed += more.allowed;
    }
}

/// What the filters say of the lines of a batch: a buffer that is used again.
pub(super) struct Answers {
    /// The digests of each group.
    keyed: Vec<KeyedLines>,
    /// Lines that are in some filter.
    pub(super) hits: Vec<u64>,
    /// Lines that do not count: they are empty.
    pub(super) left_out: Vec<u64>,
    /// The first of the filters that have it, for each line that is a hit;
    /// empty unless it is asked for.
    pub(super) first: Vec<usize>,
    /// The number of each line that is asked for; empty if none is.
    pub(super) numbers: Vec<u64>,
    values: Vec<Option<u16>>,
    /// Lines that have a key under some filter.
    pub(super) asked: Vec<u64>,
    /// What one filter says of digests, and of lines.
    digests: Vec<u64>,
    lines: Vec<u64>,
    pub(super) counts: Counts,
}

impl Answers {
    /// For each group of filters: lines that were asked as they are, though
    /// the filters are of URLs.
    pub(super) fn not_url(&self) -> impl Iterator<Item = u64> {
        self.keyed.iter().map(|keyed| keyed.counts().not_url)
    }
}

/// Filters whose keys are the same.
struct Group {
    identity: Identity,
    keys: Keys,
    /// For each filter its number among all, and its place.
    filters: Vec<(usize, usize)>,
    /// Lines that are never hits.
    allowed: Option<Allowed>,
}

/// A number for each line that is a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    None,
    /// How often it was added.
    Times,
    /// The value that it came with.
    Values,
}

/// The filters that are asked.
pub(super) struct Asked {
    filters: Vec<AnyFilter>,
    groups: Vec<Group>,
    others: Others,
    skip_empty: bool,
    names_first: bool,
    numbers: Numbers,
}

impl Asked {
    /// No filter yet. With `names_first` the answers say which filter has a
    /// line.
    pub(super) const fn new(skip_empty: bool, names_first: bool, numbers: Numbers) -> Self {
        Self {
            filters: Vec::new(),
            groups: Vec::new(),
            others: Others::new(),
            skip_empty,
            names_first,
            numbers,
        }
    }

    /// Whether making a key of a line copies it, for some filter.
    pub(super) fn copies_lines(&self) -> bool {
        let plain = |group: &Group| group.identity.normalisation.is_plain();
        !self.groups.iter().all(plain)
    }

    /// Takes a further filter, after those there are.
    pub(super) fn add(&mut self, filter: AnyFilter) {
        let place = self.filters.len();
        let number = place + self.others.len();
        let identity = filter.about().identity();
        match self.groups.iter_mut().find(|g| g.identity == *identity) {
            Some(group) => group.filters.push((number, place)),
            None => self.groups.push(Group {
                identity: identity.clone(),
                keys: Keys::new(identity.clone(), self.skip_empty, None),
                filters: vec![(number, place)],
                allowed: None,
            }),
        }
        self.filters.push(filter);
    }

    /// Takes a further filter of another system, whose lines are such keys.
    pub(super) fn add_other(&mut self, filter: Box<dyn ForeignFilter>, keys: LineKeys) {
        let number = self.filters.len() + self.others.len();
        self.others.add(number, filter, keys);
    }

    /// Takes lists of lines that are never hits, after all filters, which together may take so many
    /// bytes.
    pub(super) fn allow(
        &mut self,
        lists: &[PathBuf],
        options: &LineOptions,
        most: u64,
    ) -> Result<()> {
        let each = most / self.groups.len().max(1) as u64;
        for group in &mut self.groups {
            let normalisation = &group.identity.normalisation;
            group.allowed = Some(Allowed::read(lists, normalisation, options, each)?);
        }
        Ok(())
    }

    /// Takes back the hits that are exceptions; how many.
    fn take_back(&self, batch: &Batch, hits: &mut [u64]) -> u64 {
        let mut exceptions = Vec::new();
        for line in mask::runs(hits, batch.len()).flatten() {
            let is_exception = self.groups.iter().any(|group| {
                let has =
                    |allowed: &Allowed| allowed.has(&group.identity.normalisation, batch.get(line));
                group.allowed.as_ref().is_some_and(has)
            });
            if is_exception {
                exceptions.push(line);
            }
        }
        for line in &exceptions {
            hits[line / 64] &= !(1 << (line % 64));
        }
        exceptions.len() as u64
    }

    /// Whether all filters are petal's own.
    pub(super) const fn is_all_petal(&self) -> bool {
        self.others.len() == 0
    }

    /// Asks the filters of a group.
    fn ask(
        &self,
        group: &Group,
        keyed: &KeyedLines,
        lines: usize,
        into: &mut Answers,
    ) -> Result<()> {
        let digests = keyed.digests();
        let Answers {
            hits,
            left_out,
            first,
            numbers,
            values,
            asked,
            digests: mask,
            lines: by_line,
            ..
        } = into;
        mask::clear(mask, digests.len());
        mask::invert(mask, digests.len());
        keyed.by_line(mask, lines, by_line);
        mask::unite(asked, by_line);
        for &(line, why) in keyed.without() {
            if why == NoKey::Empty {
                left_out[line / 64] |= 1 << (line % 64);
            }
        }
        for &(number, place) in &group.filters {
            self.filters[place].contains_digests(digests, mask)?;
            keyed.by_line(mask, lines, by_line);
            if self.names_first {
                for line in mask::runs(by_line, lines).flatten() {
                    first[line] = first[line].min(number);
                }
            }
            mask::unite(hits, by_line);
            if let (Numbers::Values, AnyFilter::Static(filter)) =
                (self.numbers, &self.filters[place])
            {
                filter.values(digests, values)?;
                let found = mask::runs(mask, digests.len()).flatten();
                for (line, digest) in mask::runs(by_line, lines).flatten().zip(found) {
                    numbers[line] = values[digest].map_or(0, u64::from);
                }
            }
            if self.numbers == Numbers::Times {
                let found = mask::runs(mask, digests.len()).flatten();
                for (line, digest) in mask::runs(by_line, lines).flatten().zip(found) {
                    if let Some(digest) = digests.get(digest) {
                        let count = self.filters[place].count_digest(digest)?;
                        numbers[line] = count.max(numbers[line]);
                    }
                }
            }
        }
        Ok(())
    }

    /// The count that means "so often or more", where counts are asked for.
    pub(super) fn most_times(&self) -> Option<u64> {
        let most = |filter: &AnyFilter| match filter {
            AnyFilter::Counting(counting) => counting.geometry().counter().max(),
            _ => u64::MAX,
        };
        self.filters
            .iter()
            .map(most)
            .min()
            .filter(|_| self.numbers == Numbers::Times)
    }

    /// The chance that an absent line is a hit in any of the filters. Of
    /// mapped filters only samples are read.
    pub(super) fn error(&self, mapped: bool) -> f64 {
        let misses = self.filters.iter().map(|filter| {
            1.0 - if mapped {
                sampled_error(filter)
            } else {
                filter.error_now()
            }
        });
        1.0 - misses.product::<f64>() * self.others.missed()
    }
}

/// The error of a filter from a part of its words.
fn sampled_error(filter: &AnyFilter) -> f64 {
    let places = (0..SAMPLE_PLACES).map(|i| f64::from(i) / f64::from(SAMPLE_PLACES));
    let mean =
        |at: &dyn Fn(f64) -> f64| places.clone().map(at).sum::<f64>() / f64::from(SAMPLE_PLACES);
    let collisions = filter.about().identity().collisions();
    let keys = filter.about().insertions();
    let words = match (filter, keys) {
        (AnyFilter::Bloom(bloom), _) => mean(&|at| bloom.sampled_error(SAMPLE_BLOCKS, at)),
        (AnyFilter::Growable(grown), _) => mean(&|at| grown.sampled_error(SAMPLE_BLOCKS, at)),
        (AnyFilter::Classic(classic), Some(keys)) => {
            let (bits, hashes) = (classic.geometry().bits(), classic.geometry().positions());
            let never = sizing::Collisions::Never;
            sizing::classic_error(keys, bits, hashes, never).unwrap_or(1.0)
        }
        // Nothing to go by but all of the words.
        _ => return filter.error_now(),
    };
    words + collisions.probability(keys.unwrap_or(0)) * (1.0 - words)
}

/// How many of the hits are expected to be false. With `f` the error, of
/// the lines that are truly absent a share `1 - f` is answered "absent"; so
/// there are about `(asked - hits) / (1 - f)`, and a share `f` of these are
/// hits. It cannot be more than the hits there are.
pub(super) fn expected_false(asked: u64, hits: u64, error: f64) -> f64 {
    let misses = asked.saturating_sub(hits) as f64;
    if error >= 1.0 {
        return hits as f64;
    }
    (misses * error / (1.0 - error)).min(hits as f64)
}

impl Prepare for Asked {
    type Ready = Answers;

    fn buffer(&self) -> Answers {
        Answers {
            keyed: self
                .groups
                .iter()
                .map(|group| group.keys.buffer())
                .collect(),
            hits: Vec::new(),
            left_out: Vec::new(),
            first: Vec::new(),
            numbers: Vec::new(),
            values: Vec::new(),
            asked: Vec::new(),
            digests: Vec::new(),
            lines: Vec::new(),
            counts: Counts::default(),
        }
    }

    fn prepare(&self, batch: &Batch, answers: &mut Answers) -> Result<()> {
        let lines = batch.len();
        mask::clear(&mut answers.hits, lines);
        mask::clear(&mut answers.left_out, lines);
        mask::clear(&mut answers.asked, lines);
        answers.first.clear();
        if self.names_first {
            answers.first.resize(lines, usize::MAX);
        }
        answers.numbers.clear();
        if self.numbers != Numbers::None {
            answers.numbers.resize(lines, 0);
        }
        let mut keyed = std::mem::take(&mut answers.keyed);
        for (group, keyed) in self.groups.iter().zip(&mut keyed) {
            group.keys.read(batch, keyed)?;
            self.ask(group, keyed, lines, answers)?;
        }
        answers.keyed = keyed;
        self.others.ask(
            batch,
            self.skip_empty,
            self.names_first,
            self.numbers == Numbers::Times,
            answers,
        )?;
        let allowed = if self.groups.iter().any(|group| group.allowed.is_some()) {
            self.take_back(batch, &mut answers.hits)
        } else {
            0
        };
        let left_out = mask::count(&answers.left_out);
        answers.counts = Counts {
            lines: lines as u64,
            hits: mask::count(&answers.hits),
            left_out,
            no_key: lines as u64 - left_out - mask::count(&answers.asked),
            allowed,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate is one of absent lines, not of hits: 1000 absent lines with
    /// 10 false hits are 1 %, however few hits are true.
    #[test]
    fn false_hits_are_a_share_of_the_absent_lines() {
        assert!((expected_false(1000, 10, 0.01) - 10.0).abs() < 1e-9);
        assert!((expected_false(2000, 1010, 0.01) - 10.0).abs() < 1e-9);
        assert_eq!(expected_false(10, 0, 0.5), 0.0);
        assert_eq!(expected_false(10, 10, 1.0), 10.0);
        assert_eq!(expected_false(0, 0, 0.5), 0.0);
    }
}
