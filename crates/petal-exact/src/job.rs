//! An operation from its plan to its last pass.
//!
//! Owns the order of steps, and the passes over sources that several methods share. What a table
//! does is in `memory` and `stream`, what partitions do in `partition`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::Error;
use crate::fingerprint::{Fingerprint, Fingerprinter};
use crate::memory::Ended;
use crate::partition::{Counts, Intake, Join, Spilled, Traffic};
use crate::plan::{Method, Operation, Options, Plan, Question, Shares, Which, candidates};
use crate::prefilter::{Ask, Prefilter};
use crate::scan;
use crate::scratch::Scratch;
use crate::source::{Facts, Records, Source};
use crate::spill::{Run as FingerprintRun, SpillFile, Writer};
use crate::verify;

/// Records of a batch that are handed out.
#[derive(Debug, Clone, Copy)]
pub struct Kept<'a> {
    /// The source of the batch, from 0.
    pub source: usize,
    /// Their numbers in the batch, rising.
    pub indices: &'a [usize],
    /// How often each occurs, with [`Which::Counted`]; else 1.
    pub counts: &'a [u64],
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Records of each source.
    pub records: Vec<u64>,
    /// Records that were handed out.
    pub kept: u64,
    /// How it was done: another method than planned if the memory did not suffice for that.
    pub method: Method,
    /// Bytes written to temporary files.
    pub written: u64,
    /// Bytes read from temporary files.
    pub read: u64,
}

/// Takes what is handed out.
pub type Emit<'e, S> =
    dyn FnMut(&<S as Source>::Batch, &Kept<'_>) -> Result<(), <S as Source>::Error> + 'e;

/// An operation that is planned and can be run.
pub struct Job<'s, S> {
    operation: Operation,
    sources: &'s [S],
    options: Options,
    plan: Plan,
}

impl<S> std::fmt::Debug for Job<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job")
            .field("operation", &self.operation)
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl<'s, S: Source> Job<'s, S> {
    /// Plans an operation. Nothing is read.
    ///
    /// # Errors
    /// If the operation is none for so many sources, or the memory cannot suffice.
    pub fn new(operation: Operation, sources: &'s [S], options: &Options) -> Result<Self, Error> {
        let facts: Vec<Facts> = sources.iter().map(Source::facts).collect();
        let question = Question {
            operation,
            facts: &facts,
            options,
        };
        Ok(Self {
            operation,
            sources,
            options: options.clone(),
            plan: question.plan()?,
        })
    }

    /// What the run will do.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Runs it: calls `emit` for every batch with records to hand out, in the order of the
    /// sources.
    ///
    /// # Errors
    /// Of the sources, of `emit`, and [`Error`]: temporary files are refused where they cannot
    /// be made, before anything is read.
    pub fn run(self, emit: &mut Emit<'_, S>) -> Result<Outcome, S::Error> {
        // A run that needs no files does not need the directory.
        let scratch = if self.plan.disk == 0 {
            Scratch::later(&self.options.directory)
        } else {
            Scratch::new(&self.options.directory)?
        };
        scratch.check_room(self.plan.disk)?;
        let facts: Vec<Facts> = self.sources.iter().map(Source::facts).collect();
        let mut run = Run {
            operation: self.operation,
            sources: self.sources,
            options: self.options,
            hasher: Fingerprinter::random()?,
            scratch,
            method: self.plan.method,
            records: vec![None; facts.len()],
            facts,
            traffic: Traffic::default(),
        };
        let mut out = Selected::new(emit);
        run.all(&mut out)?;
        let kept = out.kept;
        Ok(Outcome {
            records: run.records.iter().map(|count| count.unwrap_or(0)).collect(),
            kept,
            method: run.method,
            written: run.traffic.written.load(Ordering::Relaxed),
            read: run.traffic.read.load(Ordering::Relaxed),
        })
    }
}

/// What is handed out of the batch at hand.
pub(crate) struct Selected<'e, S: Source> {
    emit: &'e mut Emit<'e, S>,
    indices: Vec<usize>,
    counts: Vec<u64>,
    kept: u64,
}

impl<'e, S: Source> Selected<'e, S> {
    fn new(emit: &'e mut Emit<'e, S>) -> Self {
        Self {
            emit,
            indices: Vec::new(),
            counts: Vec::new(),
            kept: 0,
        }
    }

    pub(crate) fn begin(&mut self) {
        self.indices.clear();
        self.counts.clear();
    }

    /// Hands out a record of the batch, by its number in it.
    #[inline]
    pub(crate) fn keep(&mut self, index: usize, count: u64) {
        self.indices.push(index);
        self.counts.push(count);
    }

    pub(crate) fn end(&mut self, batch: &S::Batch, source: usize) -> Result<(), S::Error> {
        if self.indices.is_empty() {
            return Ok(());
        }
        self.kept += self.indices.len() as u64;
        let kept = Kept {
            source,
            indices: &self.indices,
            counts: &self.counts,
        };
        (self.emit)(batch, &kept)
    }
}

/// A run under way.
pub(crate) struct Run<'s, S> {
    pub(crate) operation: Operation,
    pub(crate) sources: &'s [S],
    pub(crate) options: Options,
    pub(crate) hasher: Fingerprinter,
    pub(crate) scratch: Scratch,
    pub(crate) method: Method,
    facts: Vec<Facts>,
    /// Records of each source, once it was read.
    records: Vec<Option<u64>>,
    pub(crate) traffic: Traffic,
}

impl<S: Source> Run<'_, S> {
    fn all(&mut self, out: &mut Selected<'_, S>) -> Result<(), S::Error> {
        if self.options.verify {
            let (sources, memory) = (self.sources, self.options.memory);
            verify::check(sources, &self.hasher, memory, &self.scratch, &self.traffic)?;
        }
        let ended = match self.method {
            Method::Memory => self.in_table(0, out)?,
            Method::Filtered { filter } => self.in_table(filter, out)?,
            Method::Partitions { .. } => Ended::TooSmall,
        };
        if ended == Ended::Done {
            return Ok(());
        }
        if !matches!(self.method, Method::Partitions { .. }) {
            // What a table was too small for, by estimates that were wrong.
            for (facts, records) in self.facts.iter_mut().zip(&self.records) {
                facts.records = records.or(facts.records);
            }
            let options = Options {
                overlap: None,
                ..self.options.clone()
            };
            let question = Question {
                operation: self.operation,
                facts: &self.facts,
                options: &options,
            };
            let plan = question.partitions()?;
            self.scratch.check_room(plan.disk)?;
            self.method = plan.method;
        }
        self.in_partitions(out)
    }

    /// The first sources, whose records may be handed out.
    pub(crate) fn candidates(&self) -> usize {
        candidates(self.operation, self.sources.len())
    }

    /// Number of sources but the first.
    pub(crate) fn others(&self) -> u32 {
        u32::try_from(self.sources.len() - 1).unwrap_or(u32::MAX)
    }

    /// Sources but the first, from the smallest to the largest.
    pub(crate) fn others_by_size(&self) -> Vec<usize> {
        let mut others: Vec<usize> = (1..self.sources.len()).collect();
        others.sort_by_key(|&index| self.records_of(index));
        others
    }

    /// About how many records a source has.
    pub(crate) fn records_of(&self, index: usize) -> u64 {
        let facts = &self.facts[index];
        self.records[index]
            .or(facts.records)
            .unwrap_or(facts.bytes / 16)
    }

    fn question(&self) -> Question<'_> {
        Question {
            operation: self.operation,
            facts: &self.facts,
            options: &self.options,
        }
    }

    /// Fingerprints to make a table for; few if nobody knows, since it grows.
    pub(crate) fn expected_in_table(&self, filter: u64) -> u64 {
        if filter == 0 {
            return self.question().in_table().unwrap_or(0);
        }
        self.question().passing(filter)
    }

    /// Bytes for a table beside a filter.
    pub(crate) fn table_budget(&self, filter: u64) -> u64 {
        Shares::of(self.options.memory).table.saturating_sub(filter)
    }

    /// log2 of the partitions to change over to when a table is full.
    pub(crate) fn bits_when_full(&self) -> u32 {
        let most = crate::plan::most_bits(self.options.memory / 16);
        let planned = match self.question().partitions().map(|plan| plan.method) {
            Ok(Method::Partitions { bits, .. }) => bits,
            _ => 0,
        };
        // A full table means that more came than was expected.
        planned.max(6).min(most)
    }

    /// Notes how many records a source has; refuses one that has changed.
    pub(crate) fn has_read(&mut self, index: usize, records: u64) -> Result<(), Error> {
        match self.records[index].replace(records) {
            Some(before) if before != records => Err(Error::Changed {
                source: index,
                before,
                now: records,
            }),
            _ => Ok(()),
        }
    }

    /// Reads a source and hands out what `choose` keeps of each batch.
    pub(crate) fn select_by(
        &mut self,
        index: usize,
        out: &mut Selected<'_, S>,
        mut choose: impl FnMut(&[Fingerprint], &mut Selected<'_, S>),
    ) -> Result<(), S::Error> {
        let sources = self.sources;
        let records = scan::batches(&sources[index], &self.hasher, |batch, fingerprints| {
            out.begin();
            choose(fingerprints, out);
            out.end(batch, index)
        })?;
        Ok(self.has_read(index, records)?)
    }

    /// Everything by partitions.
    fn in_partitions(&mut self, out: &mut Selected<'_, S>) -> Result<(), S::Error> {
        let Method::Partitions { bits, filter } = self.method else {
            return Ok(());
        };
        let file = SpillFile::new(&self.scratch)?;
        let spilled = if filter == 0 {
            self.spill_all(&file, bits)?
        } else {
            self.spill_filtered(&file, bits, filter)?
        };
        for (index, source) in spilled.iter().enumerate() {
            self.has_read(index, source.records)?;
        }
        let counts = match self.operation {
            Operation::Dedup(Which::Counted) => Some(Counts::new(&self.scratch)?),
            _ => None,
        };
        self.compare(&file, bits, &spilled, &[], counts.as_ref())?;
        self.traffic.add(&file);
        // The disk is free again before the output takes room.
        drop(file);
        self.select_kept(0, &spilled, counts.as_ref(), out)?;
        if let Some(counts) = &counts {
            self.traffic.add(counts.file());
        }
        Ok(())
    }

    /// Writes the fingerprints of all sources, several at once.
    fn spill_all(&self, file: &SpillFile, bits: u32) -> Result<Vec<Spilled>, S::Error> {
        let sources = self.sources.len();
        let threads = self.options.threads.clamp(1, sources);
        let buffers = Shares::of(self.options.memory).buffers / threads as u64;
        let candidates = self.candidates();
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<Option<Spilled>>> =
            Mutex::new(std::iter::repeat_with(|| None).take(sources).collect());
        let work = || -> Result<(), S::Error> {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= sources {
                    return Ok(());
                }
                let numbered = index < candidates;
                let writer = Writer::new(file, 0, bits, numbered, buffers);
                let mut intake = Intake::new(writer, numbered, self.operation);
                let take =
                    |_: &S::Batch, fingerprints: &[Fingerprint]| Ok(intake.take(fingerprints)?);
                scan::batches(&self.sources[index], &self.hasher, take)
                    .inspect_err(|_| next.store(sources, Ordering::Relaxed))?;
                let spilled = intake.finish()?;
                done.lock().unwrap_or_else(|e| e.into_inner())[index] = Some(spilled);
            }
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut ended = work();
            for other in others {
                let other = other
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                ended = ended.and(other);
            }
            ended
        })?;
        let done = done.into_inner().unwrap_or_else(|e| e.into_inner());
        // Every one is there, since every thread ended well.
        Ok(done.into_iter().flatten().collect())
    }

    /// Writes the fingerprints of one other source, and of the rest what is in a filter of it.
    fn spill_filtered(
        &self,
        file: &SpillFile,
        bits: u32,
        bytes: u64,
    ) -> Result<Vec<Spilled>, S::Error> {
        let mut order = self.others_by_size();
        order.push(0);
        let mut filter = Prefilter::new(self.records_of(order[0]), bytes)?;
        let mut ask = Ask::new();
        let mut done: Vec<Option<Spilled>> = Vec::new();
        done.resize_with(self.sources.len(), || None);
        for (turn, &index) in order.iter().enumerate() {
            let buffers = Shares::of(self.options.memory).buffers;
            let writer = Writer::new(file, 0, bits, index == 0, buffers);
            let mut intake = Intake::new(writer, index == 0, self.operation);
            let threads = self.options.threads;
            scan::fingerprints(
                &self.sources[index],
                &self.hasher,
                threads,
                |fingerprints| {
                    if turn == 0 {
                        filter.insert(fingerprints)?;
                        intake.take(fingerprints)?;
                    } else {
                        intake.take_passing(fingerprints, &filter, &mut ask)?;
                    }
                    Ok(())
                },
            )?;
            done[index] = Some(intake.finish()?);
        }
        Ok(done.into_iter().flatten().collect())
    }

    /// Compares partitions; the bitmaps of the sources say what is kept.
    pub(crate) fn compare(
        &self,
        file: &SpillFile,
        bits: u32,
        sources: &[Spilled],
        excluded: &[FingerprintRun],
        counts: Option<&Counts>,
    ) -> Result<(), Error> {
        let bitmaps: u64 = sources.iter().map(|source| source.kept.bytes()).sum();
        let allowed = self.options.memory;
        if bitmaps > allowed / 2 {
            return Err(Error::NoMemory {
                needed: bitmaps * 2,
                allowed,
                what: "one bit for each record, with as much again for the work,",
            });
        }
        let threads = self.options.threads.max(1);
        let join = Join {
            operation: self.operation,
            multi: self.options.multi && !matches!(self.operation, Operation::Dedup(_)),
            sources,
            candidates: self.candidates(),
            excluded,
            scratch: &self.scratch,
            memory: (allowed - bitmaps) / threads as u64,
            counts,
            traffic: &self.traffic,
        };
        join.all(file, bits, threads)
    }

    /// Reads sources once more and hands out the records whose bit is set.
    pub(crate) fn select_kept(
        &mut self,
        from: usize,
        spilled: &[Spilled],
        counts: Option<&Counts>,
        out: &mut Selected<'_, S>,
    ) -> Result<(), S::Error> {
        let mut counts = counts
            .map(|counts| counts.merge(Shares::of(self.options.memory).buffers))
            .transpose()?;
        for (index, source) in spilled
            .iter()
            .enumerate()
            .take(self.candidates())
            .skip(from)
        {
            let mut number = 0;
            let sources = self.sources;
            sources[index].scan(&mut |batch| {
                out.begin();
                for i in 0..batch.len() {
                    if source.kept.get(number) {
                        let count = match &mut counts {
                            Some(counts) => counts.count(index, number)?,
                            None => 1,
                        };
                        out.keep(i, count);
                    }
                    number += 1;
                }
                if number > source.records {
                    // Not at the end: a source that grows would be read for ever.
                    return Ok(self.has_read(index, number)?);
                }
                out.end(batch, index)
            })?;
            self.has_read(index, number)?;
        }
        Ok(())
    }
}
