//! Records handed out in the pass in which they are seen first: deduplication and difference.
//!
//! Owns the change from the table to partitions when the memory is full: what the table knows has
//! been handed out or is in another source, and goes to disk as excluded; the rest of the records
//! follows, and is selected in a last pass.

use std::cell::OnceCell;

use crate::bitmap::Bitmap;
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::job::{Run, Selected};
use crate::memory::grouped;
use crate::partition::{Intake, Spilled};
use crate::plan::{Operation, Shares};
use crate::scan;
use crate::scratch::Scratch;
use crate::source::{Records, Source};
use crate::spill::{Run as FingerprintRun, SpillFile, Writer};
use crate::table::{GROUP, Table};

/// Fingerprints that are not to be handed out again: a table, then files.
struct Known<'f> {
    table: Option<Table<()>>,
    excluded: Option<Writer<'f>>,
    bits: u32,
    memory: u64,
    scratch: &'f Scratch,
    file: &'f OnceCell<SpillFile>,
}

impl<'f> Known<'f> {
    fn file(&self) -> Result<&'f SpillFile, Error> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = SpillFile::new(self.scratch)?;
        Ok(self.file.get_or_init(|| file))
    }

    /// Takes fingerprints that are never handed out.
    fn exclude(&mut self, fingerprints: &[Fingerprint]) -> Result<(), Error> {
        let mut rest = fingerprints;
        if let Some(table) = &mut self.table {
            let learned = grouped(table, rest, |table, _, fingerprint| {
                table.entry(fingerprint).map(|_| ())
            });
            let Err((at, _)) = learned else {
                return Ok(());
            };
            rest = &rest[at..];
            self.go_to_disk()?;
        }
        if let Some(writer) = &mut self.excluded {
            for &fingerprint in rest.iter().filter(|fingerprint| fingerprint.is_key()) {
                writer.push(fingerprint, 0)?;
            }
        }
        Ok(())
    }

    /// Moves the table to disk.
    fn go_to_disk(&mut self) -> Result<(), Error> {
        let file = self.file()?;
        let buffers = self.memory / 16;
        let mut writer = Writer::new(file, 0, self.bits, false, buffers);
        for (fingerprint, ()) in self.table.take().iter().flat_map(Table::iter) {
            writer.push(fingerprint, 0)?;
        }
        self.excluded = Some(writer);
        Ok(())
    }

    fn intake(&self, operation: Operation) -> Result<Intake<'f>, Error> {
        let buffers = Shares::of(self.memory).buffers;
        let writer = Writer::new(self.file()?, 0, self.bits, true, buffers);
        Ok(Intake::new(writer, true, operation))
    }
}

impl<S: Source> Run<'_, S> {
    /// [`crate::Which::First`] and [`Operation::Except`].
    pub(crate) fn stream(&mut self, out: &mut Selected<'_, S>) -> Result<(), S::Error> {
        let file = OnceCell::new();
        let scratch = self.scratch.clone();
        let mut known = Known {
            table: Some(Table::new(self.expected_in_table(0), self.table_budget(0))?),
            excluded: None,
            bits: self.bits_when_full(),
            memory: self.options.memory,
            scratch: &scratch,
            file: &file,
        };
        let threads = self.options.threads;
        for index in self.candidates()..self.sources.len() {
            let source = &self.sources[index];
            let records = scan::fingerprints(source, &self.hasher, threads, |fingerprints| {
                Ok(known.exclude(fingerprints)?)
            })?;
            self.has_read(index, records)?;
        }
        let mut spilled = Vec::new();
        for index in 0..self.candidates() {
            spilled.push(self.stream_one(index, &mut known, out)?);
        }
        if let Some(writer) = known.excluded.take() {
            let excluded = writer.finish()?;
            let file = known.file()?;
            let bits = known.bits;
            drop(known.table.take());
            let from = spilled.iter().position(|source| !source.kept.is_empty());
            self.compare(file, bits, &spilled, &excluded, None)?;
            self.traffic.add(file);
            self.select_kept(from.unwrap_or(0), &spilled, None, out)?;
        }
        Ok(())
    }

    /// Reads one source, hands out what is new for as long as the table has room, and takes the
    /// rest to disk.
    fn stream_one(
        &mut self,
        index: usize,
        known: &mut Known<'_>,
        out: &mut Selected<'_, S>,
    ) -> Result<Spilled, S::Error> {
        let multi = self.options.multi && self.operation == Operation::Except;
        let operation = self.operation;
        let mut intake = None;
        if known.table.is_none() {
            intake = Some(known.intake(operation)?);
        }
        let mut before = 0u64;
        let sources = self.sources;
        let records = scan::batches(&sources[index], &self.hasher, |batch, fingerprints| {
            let mut rest = fingerprints;
            if let Some(table) = &mut known.table {
                out.begin();
                let mut full = None;
                let mut at = 0;
                'batch: for group in fingerprints.chunks(GROUP) {
                    table.warm(group);
                    for &fingerprint in group {
                        if fingerprint.is_key() {
                            let new = if multi {
                                Ok(table.get_mut(fingerprint).is_none())
                            } else {
                                table.entry(fingerprint).map(|(new, _)| new)
                            };
                            match new {
                                Ok(true) => out.keep(at, 1),
                                Ok(false) => {}
                                Err(_) => {
                                    full = Some(at);
                                    break 'batch;
                                }
                            }
                        } else if fingerprint == Fingerprint::UNLIKE_ANY {
                            out.keep(at, 1);
                        }
                        at += 1;
                    }
                }
                out.end(batch, index)?;
                let Some(at) = full else {
                    before += batch.len() as u64;
                    return Ok(());
                };
                known.go_to_disk()?;
                let mut anew = known.intake(operation)?;
                anew.skip(before + at as u64);
                intake = Some(anew);
                rest = &rest[at..];
            }
            if let Some(intake) = &mut intake {
                intake.take(rest)?;
            }
            Ok(())
        })?;
        self.has_read(index, records)?;
        match intake {
            Some(intake) => Ok(intake.finish()?),
            None => Ok(Spilled {
                runs: vec![FingerprintRun::default(); 1 << known.bits],
                kept: Bitmap::default(),
                records,
            }),
        }
    }
}
