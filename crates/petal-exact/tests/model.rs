//! What operations must answer, the simple way, and how to ask them.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use petal_exact::*;

/// A record; the two values without a key are records of their own here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    Key(Vec<u8>),
    UnlikeAny,
    LeftOut,
}

/// Records with facts that may be wrong.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub(crate) records: Vec<Record>,
    pub(crate) claimed: Option<u64>,
    pub(crate) batch: usize,
}

pub(crate) struct Batch(Vec<Record>);

impl Records for Batch {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn fingerprints(&self, hasher: &Fingerprinter, out: &mut Vec<Fingerprint>) {
        out.extend(self.0.iter().map(|record| match record {
            Record::Key(key) => hasher.of(key),
            Record::UnlikeAny => Fingerprint::UNLIKE_ANY,
            Record::LeftOut => Fingerprint::LEFT_OUT,
        }));
    }

    fn keys(&self, take: &mut dyn FnMut(usize, &[u8])) {
        for (i, record) in self.0.iter().enumerate() {
            if let Record::Key(key) = record {
                take(i, key);
            }
        }
    }
}

impl Source for Input {
    type Batch = Batch;
    type Error = Error;

    fn scan(&self, visit: &mut Visit<'_, Batch, Error>) -> Result<(), Error> {
        for batch in self.records.chunks(self.batch) {
            visit(&Batch(batch.to_vec()))?;
        }
        Ok(())
    }

    fn facts(&self) -> Facts {
        Facts {
            bytes: self.records.len() as u64 * 20,
            records: self.claimed,
            distinct_share: 1.0,
        }
    }
}

/// A record that was handed out: its source, the record, its count.
pub(crate) type Answer = (usize, Record, u64);

/// Runs an operation.
pub(crate) fn answers(
    operation: Operation,
    inputs: &[Input],
    options: &Options,
) -> Result<(Vec<Answer>, Outcome), Error> {
    let mut answers = Vec::new();
    let outcome = Job::new(operation, inputs, options)?.run(&mut |batch, kept| {
        assert!(kept.indices.is_sorted());
        for (&index, &count) in kept.indices.iter().zip(kept.counts) {
            answers.push((kept.source, batch.0[index].clone(), count));
        }
        Ok(())
    })?;
    assert_eq!(outcome.kept, answers.len() as u64);
    Ok((answers, outcome))
}

/// What they must be.
pub(crate) fn expected(operation: Operation, inputs: &[Input], multi: bool) -> Vec<Answer> {
    let mut sources: HashMap<&[u8], BTreeSet<usize>> = HashMap::new();
    let mut counts: HashMap<&[u8], u64> = HashMap::new();
    for (index, input) in inputs.iter().enumerate() {
        for record in &input.records {
            if let Record::Key(key) = record {
                sources.entry(key).or_default().insert(index);
                *counts.entry(key).or_default() += 1;
            }
        }
    }
    let mut seen: HashMap<&[u8], usize> = HashMap::new();
    let mut answers = Vec::new();
    for (index, input) in inputs.iter().enumerate() {
        for record in &input.records {
            let key = match record {
                Record::LeftOut => continue,
                Record::UnlikeAny => {
                    let kept = match operation {
                        Operation::Dedup(_) => true,
                        Operation::Common { .. } => false,
                        Operation::Except => index == 0,
                    };
                    if kept {
                        answers.push((index, Record::UnlikeAny, 1));
                    }
                    continue;
                }
                Record::Key(key) => key.as_slice(),
            };
            let first = *seen.entry(key).or_insert(index);
            let is_first = !answers.iter().any(|(_, r, _)| r == record);
            let again = multi && first == index;
            let (wanted, count) = match operation {
                Operation::Dedup(Which::First) => (is_first, 1),
                Operation::Dedup(Which::NeverRepeated) => (counts[key] == 1, 1),
                Operation::Dedup(Which::Counted) => (is_first, counts[key]),
                Operation::Common { at_least } => {
                    (sources[key].len() >= at_least && (is_first || again), 1)
                }
                Operation::Except => (
                    index == 0 && sources[key].len() == 1 && (is_first || again),
                    1,
                ),
            };
            if wanted {
                answers.push((index, record.clone(), count));
            }
        }
    }
    answers
}

/// Options for so much memory, with temporary files in the build's folder: the system's may be
/// in memory.
pub(crate) fn options(memory: u64) -> Options {
    Options::new(memory, Path::new(env!("CARGO_TARGET_TMPDIR")))
}

pub(crate) fn key(text: impl std::fmt::Display) -> Record {
    Record::Key(text.to_string().into_bytes())
}

pub(crate) fn input(records: impl IntoIterator<Item = Record>) -> Input {
    let records: Vec<Record> = records.into_iter().collect();
    Input {
        claimed: Some(records.len() as u64),
        records,
        batch: 100,
    }
}
