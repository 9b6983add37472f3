//! Partitions of fingerprints on disk, compared one by one.
//!
//! Owns the way from sources to runs of fingerprints (`Intake`), the comparison of one partition
//! (`Join`), again in smaller parts where it does not fit, and the counts that come of it. Which
//! records are kept comes out as bitmaps over their numbers; who reads the sources, before and
//! after, is `job`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::bitmap::Bitmap;
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::plan::{NUMBER_BITS, Operation, Which, table_share};
use crate::prefilter::{Ask, Prefilter};
use crate::scratch::Scratch;
use crate::spill::{Entries, Run, SpillFile, Writer};
use crate::table::{Full, GROUP, Table};

/// What is remembered of the records with one fingerprint: the first of them (see [`first`]), and
/// by operation how many there are; the last source with one (from 1) times 2^32 and how many
/// sources have one; or whether one is excluded.
pub(crate) type Group = [u64; 2];

/// Where a record is: the number of its source and its own number in it.
const fn first(source: usize, number: u64) -> u64 {
    (source as u64) << NUMBER_BITS | number
}

/// The other way round.
pub(crate) fn place(first: u64) -> (usize, u64) {
    let source = usize::try_from(first >> NUMBER_BITS).unwrap_or(usize::MAX);
    (source, first & ((1 << NUMBER_BITS) - 1))
}

/// A source whose fingerprints are on disk.
pub(crate) struct Spilled {
    /// One for each partition.
    pub(crate) runs: Vec<Run>,
    /// Records that are kept whatever the partitions say, and room for all others; empty if its
    /// records have no numbers.
    pub(crate) kept: Bitmap,
    /// Records it has.
    pub(crate) records: u64,
}

/// Takes the fingerprints of one source to disk.
pub(crate) struct Intake<'f> {
    writer: Writer<'f>,
    /// Whether its records may be kept, and so need numbers.
    numbered: bool,
    /// Whether records that are unlike any other are kept.
    keeps_unlike: bool,
    kept: Vec<u64>,
    records: u64,
}

impl<'f> Intake<'f> {
    pub(crate) const fn new(writer: Writer<'f>, numbered: bool, operation: Operation) -> Self {
        Self {
            writer,
            numbered,
            keeps_unlike: numbered && !matches!(operation, Operation::Common { .. }),
            kept: Vec::new(),
            records: 0,
        }
    }

    /// Takes all of a batch.
    pub(crate) fn take(&mut self, fingerprints: &[Fingerprint]) -> Result<(), Error> {
        for (i, &fingerprint) in fingerprints.iter().enumerate() {
            self.one(i, fingerprint)?;
        }
        self.end_batch(fingerprints.len())
    }

    /// Takes those of a batch that may be in a filter. Only for an operation that does not keep
    /// what is in one source alone.
    pub(crate) fn take_passing(
        &mut self,
        fingerprints: &[Fingerprint],
        filter: &Prefilter,
        ask: &mut Ask,
    ) -> Result<(), Error> {
        ask.each(filter, fingerprints, |i| self.one(i, fingerprints[i]))?;
        self.end_batch(fingerprints.len())
    }

    /// Takes one of a batch, by its number in it.
    #[inline]
    fn one(&mut self, at: usize, fingerprint: Fingerprint) -> Result<(), Error> {
        let number = self.records + at as u64;
        if fingerprint.is_key() {
            self.writer.push(fingerprint, number)?;
        } else if self.keeps_unlike && fingerprint == Fingerprint::UNLIKE_ANY {
            let word = usize::try_from(number / 64).unwrap_or(usize::MAX);
            if self.kept.len() <= word {
                self.kept.resize(word + 1, 0);
            }
            self.kept[word] |= 1 << (number % 64);
        }
        Ok(())
    }

    fn end_batch(&mut self, records: usize) -> Result<(), Error> {
        self.records += records as u64;
        if self.records >> NUMBER_BITS != 0 {
            return Err(Error::Parameter {
                name: "number of records",
                got: self.records,
                expected: format!("fewer than 2^{NUMBER_BITS} in one source"),
            });
        }
        Ok(())
    }

    /// Passes over records whose fate is known.
    pub(crate) const fn skip(&mut self, records: u64) {
        self.records += records;
    }

    pub(crate) fn finish(self) -> Result<Spilled, Error> {
        Ok(Spilled {
            runs: self.writer.finish()?,
            kept: Bitmap::new(self.kept, if self.numbered { self.records } else { 0 }),
            records: self.records,
        })
    }
}

/// Part of a partition: the entries of one source.
struct Input<'r> {
    /// `None` for fingerprints that were handed out already.
    source: Option<usize>,
    run: std::borrow::Cow<'r, Run>,
}

/// Compares partitions and sets the bits of what is kept.
pub(crate) struct Join<'a> {
    pub(crate) operation: Operation,
    pub(crate) multi: bool,
    /// All sources; the first `candidates` of them have numbers and bitmaps.
    pub(crate) sources: &'a [Spilled],
    pub(crate) candidates: usize,
    /// Fingerprints that were handed out already, one run for each partition.
    pub(crate) excluded: &'a [Run],
    pub(crate) scratch: &'a Scratch,
    /// Bytes for each thread.
    pub(crate) memory: u64,
    pub(crate) counts: Option<&'a Counts>,
    pub(crate) traffic: &'a Traffic,
}

/// Bytes that went to and came from temporary files.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) written: AtomicU64,
    pub(crate) read: AtomicU64,
}

impl Traffic {
    pub(crate) fn add(&self, file: &SpillFile) {
        self.written.fetch_add(file.written(), Ordering::Relaxed);
        self.read.fetch_add(file.read(), Ordering::Relaxed);
    }
}

/// Why filling a table ended early.
enum Stop {
    Full,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Full> for Stop {
    fn from(_: Full) -> Self {
        Self::Full
    }
}

impl Join<'_> {
    /// Compares all of 2^`bits` partitions on so many threads.
    pub(crate) fn all(&self, file: &SpillFile, bits: u32, threads: usize) -> Result<(), Error> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut entries = Entries::default();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >> bits != 0 {
                    return Ok(());
                }
                let excluded = self.excluded.get(index).map(|run| (None, run));
                let runs = self.sources.iter().enumerate();
                let inputs: Vec<Input<'_>> = runs
                    .map(|(i, source)| (Some(i), &source.runs[index]))
                    .chain(excluded)
                    .map(|(source, run)| Input {
                        source,
                        run: std::borrow::Cow::Borrowed(run),
                    })
                    .collect();
                self.part(file, &inputs, bits, &mut entries)
                    .inspect_err(|_| next.store(1 << bits, Ordering::Relaxed))?;
            }
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut done = work();
            for other in others {
                let other = other
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                done = done.and(other);
            }
            done
        })
    }

    /// Compares one partition, `used` bits of whose fingerprints are equal.
    fn part(
        &self,
        file: &SpillFile,
        inputs: &[Input<'_>],
        used: u32,
        entries: &mut Entries,
    ) -> Result<(), Error> {
        let kept = inputs
            .iter()
            .filter(|input| self.is_candidate(input.source));
        let most: u64 = kept.map(|input| input.run.entries).sum();
        if most == 0 {
            return Ok(());
        }
        let budget = table_share(self.operation, self.memory);
        let mut table = Table::new(most, budget)?;
        match self.fill(&mut table, file, inputs, entries) {
            Ok(()) => self.conclude(&table).and_then(|()| {
                if self.multi {
                    self.every_occurrence(&mut table, file, inputs, entries)?;
                }
                Ok(())
            }),
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::Full) => {
                drop(table);
                self.smaller(file, inputs, used, most, entries)
            }
        }
    }

    fn is_candidate(&self, source: Option<usize>) -> bool {
        source.is_some_and(|source| source < self.candidates)
    }

    fn fill(
        &self,
        table: &mut Table<Group>,
        file: &SpillFile,
        inputs: &[Input<'_>],
        entries: &mut Entries,
    ) -> Result<(), Stop> {
        for input in inputs {
            let candidate = self.is_candidate(input.source);
            let source = input.source.unwrap_or(usize::MAX);
            input
                .run
                .each::<Stop>(file, candidate, entries, |entries| {
                    for start in (0..entries.fingerprints.len()).step_by(GROUP) {
                        let end = (start + GROUP).min(entries.fingerprints.len());
                        let group = &entries.fingerprints[start..end];
                        table.warm(group);
                        for (i, &fingerprint) in group.iter().enumerate() {
                            if candidate {
                                let number = entries.numbers[start + i];
                                let (new, value) = table.entry(fingerprint)?;
                                if new {
                                    value[0] = first(source, number);
                                }
                                self.count(source, new, value);
                            } else if let Some(value) = table.get_mut(fingerprint) {
                                self.mark(source, value);
                            }
                        }
                    }
                    Ok(())
                })?;
        }
        Ok(())
    }

    /// Counts an occurrence in a source whose records may be kept.
    #[inline]
    fn count(&self, source: usize, new: bool, value: &mut Group) {
        match self.operation {
            Operation::Dedup(Which::First) | Operation::Except => {}
            Operation::Dedup(_) => value[1] += 1,
            Operation::Common { .. } => {
                if new {
                    value[1] = 0;
                }
                in_source(source, value);
            }
        }
    }

    /// Counts an occurrence elsewhere.
    #[inline]
    fn mark(&self, source: usize, value: &mut Group) {
        match self.operation {
            Operation::Common { .. } => in_source(source, value),
            Operation::Dedup(_) | Operation::Except => value[1] = 1,
        }
    }

    /// Whether records of a group are kept.
    const fn keeps(&self, value: Group) -> bool {
        match self.operation {
            Operation::Dedup(Which::First) | Operation::Except => value[1] == 0,
            Operation::Dedup(Which::NeverRepeated) => value[1] == 1,
            Operation::Dedup(Which::Counted) => true,
            Operation::Common { at_least } => value[1] & 0xffff_ffff >= at_least as u64,
        }
    }

    /// Keeps the first record of each group that is to be kept, and its count.
    fn conclude(&self, table: &Table<Group>) -> Result<(), Error> {
        let mut counts = Vec::new();
        for (_, value) in table.iter().filter(|(_, value)| self.keeps(*value)) {
            let (source, number) = place(value[0]);
            if !self.multi {
                self.sources[source].kept.set(number);
            }
            if self.counts.is_some() && value[1] > 1 {
                counts.push(value);
            }
        }
        match self.counts {
            Some(all) => all.add(counts),
            None => Ok(()),
        }
    }

    /// Keeps all records of a group in the first source that has one.
    fn every_occurrence(
        &self,
        table: &mut Table<Group>,
        file: &SpillFile,
        inputs: &[Input<'_>],
        entries: &mut Entries,
    ) -> Result<(), Error> {
        for input in inputs
            .iter()
            .filter(|input| self.is_candidate(input.source))
        {
            input.run.each(file, true, entries, |entries| {
                let records = entries.fingerprints.iter().zip(&entries.numbers);
                for (&fingerprint, &number) in records {
                    if let Some(value) = table.get_mut(fingerprint)
                        && let (source, _) = place(value[0])
                        && input.source == Some(source)
                        && self.keeps(*value)
                    {
                        self.sources[source].kept.set(number);
                    }
                }
                Ok::<(), Error>(())
            })?;
        }
        Ok(())
    }

    /// Compares a partition that is too large in parts, by the next bits of its fingerprints.
    fn smaller(
        &self,
        file: &SpillFile,
        inputs: &[Input<'_>],
        used: u32,
        most: u64,
        entries: &mut Entries,
    ) -> Result<(), Error> {
        let room = Table::<Group>::most_for(table_share(self.operation, self.memory)).max(1);
        let buffers = self.memory / 2;
        let wanted = u64::BITS - (most / room).leading_zeros() + 1;
        let bits = (1..=8.min(wanted.max(1)))
            .rev()
            .find(|&bits| Writer::least_memory(bits) <= buffers)
            .unwrap_or(1);
        if used + bits > u64::BITS {
            // Distinct fingerprints that agree in 64 bits and fill a table: not by chance.
            return Err(Error::NoMemory {
                needed: Table::<Group>::bytes_for(most),
                allowed: self.memory,
                what: "a partition that cannot be divided",
            });
        }
        let parts = SpillFile::new(self.scratch)?;
        let mut divided: Vec<Vec<Run>> = Vec::new();
        for input in inputs {
            let numbered = self.is_candidate(input.source);
            let mut writer = Writer::new(&parts, used, bits, numbered, buffers);
            input.run.each(file, numbered, entries, |entries| {
                for (i, &fingerprint) in entries.fingerprints.iter().enumerate() {
                    writer.push(fingerprint, entries.numbers.get(i).copied().unwrap_or(0))?;
                }
                Ok::<(), Error>(())
            })?;
            divided.push(writer.finish()?);
        }
        for part in 0..1 << bits {
            let inputs: Vec<Input<'_>> = inputs
                .iter()
                .zip(&divided)
                .map(|(input, runs)| Input {
                    source: input.source,
                    run: std::borrow::Cow::Borrowed(&runs[part]),
                })
                .collect();
            self.part(&parts, &inputs, used + bits, entries)?;
        }
        self.traffic.add(&parts);
        Ok(())
    }
}

/// Counts a source once, sources coming in order.
#[inline]
fn in_source(source: usize, value: &mut Group) {
    let source = source as u64 + 1;
    if value[1] >> 32 != source {
        value[1] = source << 32 | ((value[1] & 0xffff_ffff) + 1);
    }
}

/// Counts above 1 of records that are kept, on disk, in runs sorted by place.
pub(crate) struct Counts {
    file: SpillFile,
    /// Where each run begins and how many pairs it has.
    runs: Mutex<Vec<(u64, usize)>>,
}

impl Counts {
    pub(crate) fn new(scratch: &Scratch) -> Result<Self, Error> {
        Ok(Self {
            file: SpillFile::new(scratch)?,
            runs: Mutex::default(),
        })
    }

    fn add(&self, mut counts: Vec<Group>) -> Result<(), Error> {
        if counts.is_empty() {
            return Ok(());
        }
        counts.sort_unstable();
        let offset = self.file.append(bytemuck::cast_slice(&counts))?;
        let mut runs = self.runs.lock().unwrap_or_else(|e| e.into_inner());
        runs.push((offset, counts.len()));
        Ok(())
    }

    /// All of them in order, with so many bytes for buffers.
    pub(crate) fn merge(&self, memory: u64) -> Result<Merge<'_>, Error> {
        let runs = self.runs.lock().unwrap_or_else(|e| e.into_inner());
        let pairs = memory / 16 / (runs.len() as u64).max(1);
        let mut merge = Merge {
            file: &self.file,
            at_once: usize::try_from(pairs.clamp(4, 4096)).unwrap_or(4),
            cursors: Vec::new(),
            heads: BinaryHeap::new(),
        };
        for &(offset, left) in runs.iter() {
            merge.cursors.push(Cursor {
                offset,
                left,
                buffer: Vec::new(),
            });
            merge.advance(merge.cursors.len() - 1)?;
        }
        Ok(merge)
    }

    pub(crate) const fn file(&self) -> &SpillFile {
        &self.file
    }
}

struct Cursor {
    offset: u64,
    left: usize,
    /// Pairs that were read, the next one last.
    buffer: Vec<Group>,
}

/// Counts in the order of the records.
pub(crate) struct Merge<'c> {
    file: &'c SpillFile,
    at_once: usize,
    cursors: Vec<Cursor>,
    heads: BinaryHeap<Reverse<(Group, usize)>>,
}

impl Merge<'_> {
    /// The count of a kept record; they must be asked for in order.
    pub(crate) fn count(&mut self, source: usize, number: u64) -> Result<u64, Error> {
        match self.heads.peek() {
            Some(&Reverse((pair, cursor))) if pair[0] == first(source, number) => {
                self.heads.pop();
                self.advance(cursor)?;
                Ok(pair[1])
            }
            _ => Ok(1),
        }
    }

    fn advance(&mut self, index: usize) -> Result<(), Error> {
        let cursor = &mut self.cursors[index];
        if cursor.buffer.is_empty() && cursor.left > 0 {
            cursor.buffer.resize(cursor.left.min(self.at_once), [0; 2]);
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut cursor.buffer);
            self.file.read_at(bytes, cursor.offset)?;
            cursor.offset += bytes.len() as u64;
            cursor.left -= cursor.buffer.len();
            cursor.buffer.reverse();
        }
        if let Some(pair) = cursor.buffer.pop() {
            self.heads.push(Reverse((pair, index)));
        }
        Ok(())
    }
}
