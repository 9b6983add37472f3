//! What one or several filters say of a batch of lines.
//!
//! Owns the filters that are asked, the counts of their answers, and how
//! many of the hits are expected to be false.

use anyhow::Result;
use petal::sizing;
use petal::{AnyFilter, Contains, Identity, mask_words};

use crate::input::Batch;
use crate::keys::{Keys, NoKey};
use crate::seen::bit;

/// Blocks of each region that are looked at for the error of a mapped
/// filter, and places they are taken from.
const SAMPLE_BLOCKS: u64 = 1024;
const SAMPLE_PLACES: u32 = 16;

/// What is known of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// In this filter, the first of those that have it.
    In(usize),
    /// In none.
    Absent,
    /// Empty, and empty lines do not count.
    LeftOut,
}

/// Counts of lines.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) lines: u64,
    pub(super) hits: u64,
    /// Empty lines that do not count.
    pub(super) left_out: u64,
    /// Lines of which no filter was asked: they have no key.
    pub(super) no_key: u64,
}

impl Counts {
    /// Lines that some filter was asked about.
    pub(super) const fn asked(self) -> u64 {
        self.lines - self.left_out - self.no_key
    }

    /// Lines that are in no filter.
    pub(super) const fn absent(self) -> u64 {
        self.lines - self.left_out - self.hits
    }
}

/// Filters whose keys are the same, and the digests they are asked for.
struct Group {
    identity: Identity,
    keys: Keys,
    /// Numbers of the filters.
    filters: Vec<usize>,
    /// The line of each digest.
    lines: Vec<usize>,
}

/// The filters that are asked.
pub(super) struct Asked {
    filters: Vec<AnyFilter>,
    groups: Vec<Group>,
    skip_empty: bool,
    counts: Counts,
    answers: Vec<Answer>,
    /// Whether a line has a key under some filter.
    keyed: Vec<bool>,
    mask: Vec<u64>,
}

impl Asked {
    pub(super) const fn new(skip_empty: bool) -> Self {
        Self {
            filters: Vec::new(),
            groups: Vec::new(),
            skip_empty,
            counts: Counts {
                lines: 0,
                hits: 0,
                left_out: 0,
                no_key: 0,
            },
            answers: Vec::new(),
            keyed: Vec::new(),
            mask: Vec::new(),
        }
    }

    /// Takes a further filter, after those there are.
    pub(super) fn add(&mut self, filter: AnyFilter) {
        let number = self.filters.len();
        let identity = filter.about().identity();
        match self.groups.iter_mut().find(|g| g.identity == *identity) {
            Some(group) => group.filters.push(number),
            None => self.groups.push(Group {
                identity: identity.clone(),
                keys: Keys::new(identity.clone(), self.skip_empty, None),
                filters: vec![number],
                lines: Vec::new(),
            }),
        }
        self.filters.push(filter);
    }

    /// The answers for the lines of a batch.
    pub(super) fn read(&mut self, batch: &Batch) -> Result<&[Answer]> {
        self.answers.clear();
        self.answers.resize(batch.len(), Answer::Absent);
        self.keyed.clear();
        self.keyed.resize(batch.len(), false);
        for group in &mut self.groups {
            group.keys.read(batch)?;
            let mut without = group.keys.without().iter().peekable();
            group.lines.clear();
            for line in 0..batch.len() {
                match without.next_if(|(at, _)| *at == line) {
                    Some((_, NoKey::Empty)) => self.answers[line] = Answer::LeftOut,
                    Some(_) => {}
                    None => {
                        self.keyed[line] = true;
                        group.lines.push(line);
                    }
                }
            }
            let digests = group.keys.digests();
            self.mask.resize(mask_words(digests.len()), 0);
            for &number in &group.filters {
                self.filters[number].contains_digests(digests, &mut self.mask)?;
                for (i, &line) in group.lines.iter().enumerate() {
                    if !bit(&self.mask, i) {
                        continue;
                    }
                    let answer = &mut self.answers[line];
                    *answer = match *answer {
                        Answer::In(earlier) => Answer::In(earlier.min(number)),
                        _ => Answer::In(number),
                    };
                }
            }
        }
        self.counts.lines += batch.len() as u64;
        for (answer, keyed) in self.answers.iter().zip(&self.keyed) {
            match answer {
                Answer::In(_) => self.counts.hits += 1,
                Answer::LeftOut => self.counts.left_out += 1,
                Answer::Absent if !keyed => self.counts.no_key += 1,
                Answer::Absent => {}
            }
        }
        Ok(&self.answers)
    }

    /// Counts of all lines so far.
    pub(super) const fn counts(&self) -> Counts {
        self.counts
    }

    /// Lines that were asked as they are, though a filter is of URLs.
    pub(super) fn not_url(&self) -> u64 {
        let counts = self.groups.iter().map(|group| group.keys.counts().not_url);
        counts.max().unwrap_or(0)
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
        1.0 - misses.product::<f64>()
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
