//! Filters of other systems among those that are asked.

use anyhow::Result;
use petal_interop::ForeignFilter;

use super::ask::Answers;
use crate::foreign::LineKeys;
use crate::input::Batch;

/// One of them.
struct Other {
    /// Its number among all filters.
    number: usize,
    filter: Box<dyn ForeignFilter>,
    keys: LineKeys,
}

/// All of them.
pub(super) struct Others {
    all: Vec<Other>,
}

impl Others {
    pub(super) const fn new() -> Self {
        Self { all: Vec::new() }
    }

    pub(super) const fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn add(&mut self, number: usize, filter: Box<dyn ForeignFilter>, keys: LineKeys) {
        self.all.push(Other {
            number,
            filter,
            keys,
        });
    }

    /// The chance that none of them has an absent line.
    pub(super) fn missed(&self) -> f64 {
        let missed = |other: &Other| 1.0 - other.filter.error_now();
        self.all.iter().map(missed).product()
    }

    /// Adds what they say of the lines of a batch.
    pub(super) fn ask(
        &self,
        batch: &Batch,
        skip_empty: bool,
        names_first: bool,
        counts_times: bool,
        answers: &mut Answers,
    ) -> Result<()> {
        let mut units = Vec::new();
        for other in &self.all {
            for (line, bytes) in batch.iter().enumerate() {
                let (word, bit) = (line / 64, 1 << (line % 64));
                if skip_empty && matches!(bytes, b"" | b"\r") {
                    answers.left_out[word] |= bit;
                    continue;
                }
                let asked = other.keys.of(bytes, &mut units, |key| {
                    if counts_times {
                        other.filter.times(key)
                    } else {
                        other.filter.contains(key).map(u64::from)
                    }
                });
                let Some(times) = asked.transpose()? else {
                    continue;
                };
                answers.asked[word] |= bit;
                if times > 0 {
                    if counts_times {
                        answers.numbers[line] = times;
                    }
                    answers.hits[word] |= bit;
                    if names_first {
                        answers.first[line] = answers.first[line].min(other.number);
                    }
                }
            }
        }
        Ok(())
    }
}
