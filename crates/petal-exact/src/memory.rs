//! Answers from a table in memory: each source is read once or twice, nothing is written.
//!
//! Owns what a table remembers for each operation that selects in a pass of its own.
//! Deduplication and difference, which hand out records while they still learn, are in
//! `stream`.

use bytemuck::Pod;

use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::job::{Run, Selected};
use crate::plan::{Operation, Which};
use crate::prefilter::{Ask, Prefilter};
use crate::scan;
use crate::source::Source;
use crate::table::{Full, GROUP, Table};

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Done,
    /// The table was too small; nothing has been handed out.
    TooSmall,
}

/// Calls `each` for every fingerprint that is a key, with the table's slots on their way.
#[inline]
pub(crate) fn grouped<V: Pod>(
    table: &mut Table<V>,
    fingerprints: &[Fingerprint],
    mut each: impl FnMut(&mut Table<V>, usize, Fingerprint) -> Result<(), Full>,
) -> Result<(), (usize, Full)> {
    let mut at = 0;
    for group in fingerprints.chunks(GROUP) {
        table.warm(group);
        for &fingerprint in group {
            if fingerprint.is_key() {
                each(table, at, fingerprint).map_err(|full| (at, full))?;
            }
            at += 1;
        }
    }
    Ok(())
}

/// What stops a pass: the table, or the source.
enum Stop<E> {
    Full,
    Failed(E),
}

impl<E: From<Error>> From<Error> for Stop<E> {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

impl<S: Source> Run<'_, S> {
    /// Records that are in every source: a table of one of the others, whose fingerprints the
    /// rest of the others confirm one after the other; then the first source is read.
    pub(crate) fn in_all(
        &mut self,
        filter: u64,
        out: &mut Selected<'_, S>,
    ) -> Result<Ended, S::Error> {
        let filter = if filter == 0 {
            None
        } else {
            Some(self.filter_of_first(filter)?)
        };
        let expected = self.expected_in_table(filter.as_ref().map_or(0, Prefilter::bytes));
        let budget = self.table_budget(filter.as_ref().map_or(0, Prefilter::bytes));
        let mut table = Table::<u32>::new(expected, budget)?;
        let mut ask = Ask::new();
        let mut passing = Vec::new();
        for (before, index) in (0u32..).zip(self.others_by_size()) {
            let mut full = false;
            let read = self.learn(index, |fingerprints| {
                let mut fingerprints = fingerprints;
                if let Some(filter) = &filter {
                    passing.clear();
                    ask.each(filter, fingerprints, |i| {
                        passing.push(fingerprints[i]);
                        Ok(())
                    })?;
                    fingerprints = &passing;
                }
                let learned = grouped(&mut table, fingerprints, |table, _, fingerprint| {
                    // A value is how many others after the first have confirmed it: those of
                    // the first are not touched.
                    if before == 0 {
                        table.entry(fingerprint)?;
                    } else if let Some(value) = table.get_mut(fingerprint)
                        && *value == before - 1
                    {
                        *value += 1;
                    }
                    Ok(())
                });
                full = learned.is_err();
                if full { Err(Stop::Full) } else { Ok(()) }
            });
            match read {
                Ok(()) => {}
                Err(Stop::Full) => return Ok(Ended::TooSmall),
                Err(Stop::Failed(error)) => return Err(error),
            }
        }
        drop(filter);
        let (all, multi) = (self.others() - 1, self.options.multi);
        self.select_by(0, out, |fingerprints, out| {
            let selected = grouped(&mut table, fingerprints, |table, i, fingerprint| {
                if let Some(value) = table.get_mut(fingerprint)
                    && *value == all
                {
                    out.keep(i, 1);
                    if !multi {
                        *value = u32::MAX;
                    }
                }
                Ok(())
            });
            debug_assert!(selected.is_ok(), "looking up cannot fail");
        })?;
        Ok(Ended::Done)
    }

    /// A filter of the first source.
    fn filter_of_first(&mut self, bytes: u64) -> Result<Prefilter, S::Error> {
        let mut filter = Prefilter::new(self.records_of(0), bytes)?;
        let read = self.learn(0, |fingerprints| Ok(filter.insert(fingerprints)?));
        match read {
            Ok(()) => Ok(filter),
            Err(Stop::Failed(error)) => Err(error),
            // A filter is never full.
            Err(Stop::Full) => Ok(filter),
        }
    }

    /// Records that are in enough sources: all are remembered, then read again.
    pub(crate) fn in_some(
        &mut self,
        at_least: usize,
        out: &mut Selected<'_, S>,
    ) -> Result<Ended, S::Error> {
        // The last source with the record, from 1, and how many have it.
        const LAST: u32 = 16;
        const HANDED_OUT: u32 = 0xffff;
        let needed = u32::try_from(at_least).unwrap_or(u32::MAX);
        let mut table = Table::<u32>::new(self.expected_in_table(0), self.table_budget(0))?;
        for (source, index) in (1u32..).zip(0..self.sources.len()) {
            let ended = self.remember(&mut table, index, |value| {
                if *value >> LAST != source {
                    *value = source << LAST | ((*value & 0xffff) + 1);
                }
            })?;
            if ended == Ended::TooSmall {
                return Ok(ended);
            }
        }
        let multi = self.options.multi;
        for (source, index) in (0u32..).zip(0..self.candidates()) {
            self.select_by(index, out, |fingerprints, out| {
                let selected = grouped(&mut table, fingerprints, |table, i, fingerprint| {
                    let Some(value) = table.get_mut(fingerprint) else {
                        return Ok(());
                    };
                    let (last, count) = (*value >> LAST, *value & 0xffff);
                    if last == HANDED_OUT {
                        if multi && count == source {
                            out.keep(i, 1);
                        }
                    } else if count >= needed {
                        out.keep(i, 1);
                        *value = HANDED_OUT << LAST | source;
                    }
                    Ok(())
                });
                debug_assert!(selected.is_ok(), "looking up cannot fail");
            })?;
        }
        Ok(Ended::Done)
    }

    /// Records that occur once, or the first of each with the number of all.
    pub(crate) fn counted(
        &mut self,
        which: Which,
        out: &mut Selected<'_, S>,
    ) -> Result<Ended, S::Error> {
        let mut table = Table::<u64>::new(self.expected_in_table(0), self.table_budget(0))?;
        for index in 0..self.sources.len() {
            let ended = self.remember(&mut table, index, |value| *value += 1)?;
            if ended == Ended::TooSmall {
                return Ok(ended);
            }
        }
        for index in 0..self.sources.len() {
            self.select_by(index, out, |fingerprints, out| {
                for (at, group) in (0..).step_by(GROUP).zip(fingerprints.chunks(GROUP)) {
                    table.warm(group);
                    for (i, &fingerprint) in (at..).zip(group) {
                        if fingerprint == Fingerprint::UNLIKE_ANY {
                            out.keep(i, 1);
                        } else if let Some(count) = table.get_mut(fingerprint) {
                            if which == Which::Counted && *count > 0 {
                                out.keep(i, std::mem::take(count));
                            } else if which == Which::NeverRepeated && *count == 1 {
                                out.keep(i, 1);
                            }
                        }
                    }
                }
            })?;
        }
        Ok(Ended::Done)
    }

    /// Notes all fingerprints of a source in a table.
    fn remember<V: Pod>(
        &mut self,
        table: &mut Table<V>,
        index: usize,
        mut note: impl FnMut(&mut V),
    ) -> Result<Ended, S::Error> {
        let read = self.learn(index, |fingerprints| {
            grouped(table, fingerprints, |table, _, fingerprint| {
                note(table.entry(fingerprint)?.1);
                Ok(())
            })
            .map_err(|_| Stop::Full)
        });
        match read {
            Ok(()) => Ok(Ended::Done),
            Err(Stop::Full) => Ok(Ended::TooSmall),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    /// Reads a source whose records are not wanted in this pass.
    fn learn(
        &mut self,
        index: usize,
        mut take: impl FnMut(&[Fingerprint]) -> Result<(), Stop<S::Error>>,
    ) -> Result<(), Stop<S::Error>> {
        let mut full = false;
        let threads = self.options.threads;
        let read = scan::fingerprints(&self.sources[index], &self.hasher, threads, |portion| {
            match take(portion) {
                Ok(()) => Ok(()),
                Err(Stop::Failed(error)) => Err(error),
                Err(Stop::Full) => {
                    full = true;
                    // Any error ends the pass; this one is not told to anybody.
                    Err(Error::io("go on", std::io::ErrorKind::OutOfMemory).into())
                }
            }
        });
        match read {
            Err(_) if full => Err(Stop::Full),
            Err(error) => Err(Stop::Failed(error)),
            Ok(records) => Ok(self.has_read(index, records)?),
        }
    }

    /// Whether the operation is answered here.
    pub(crate) fn in_table(
        &mut self,
        filter: u64,
        out: &mut Selected<'_, S>,
    ) -> Result<Ended, S::Error> {
        match self.operation {
            Operation::Dedup(Which::First) | Operation::Except => {
                self.stream(out)?;
                Ok(Ended::Done)
            }
            Operation::Dedup(which) => self.counted(which, out),
            Operation::Common { at_least } if at_least < self.sources.len() => {
                self.in_some(at_least, out)
            }
            // In all of one source: its distinct records.
            Operation::Common { .. } if self.sources.len() == 1 => self.in_some(1, out),
            Operation::Common { .. } => self.in_all(filter, out),
        }
    }
}
