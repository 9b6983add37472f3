//! `--kind static`: a filter of keys that are all known.
//!
//! Owns the digests until they can be built into a filter in ascending order: in memory while it
//! lasts, else in sorted runs in a temporary file. What a static filter is, is the library's.
//!
//! ```text
//! lines ─▶ digests ─▶ memory full: sort, drop repeats ─▶ still full: a run in the file
//!                     end of input: sort, merge the runs ─▶ count ─▶ merge again ─▶ build
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use petal::{Identity, StaticBuilder};
use petal_exact::Scratch;

use super::fill::{Fill, Filled};
use crate::input::Batch;
use crate::keys::KeyedLines;
use crate::report;
use crate::units::{format_count, format_size};
use crate::walk::{Flow, Place};

/// Memory that building takes beside the filter, for each thread.
const BUILDING: u64 = 16 << 20;

/// Digests of a run that are in memory while the runs are merged, at most.
const MERGED: usize = 1 << 16;

/// Fewer digests than this are not worth a run.
const LEAST_RUN: usize = 1 << 10;

impl Fill<'_> {
    /// Reads the lists once and builds a filter of their keys.
    pub(super) fn fixed(&mut self) -> Result<Filled> {
        let threads = self.walk.threads;
        let most = self.most_digests(threads)?;
        let plan = format!(
            "memory at most {}: up to {} digests are sorted there, more of them in a temporary file",
            format_size(self.budget),
            format_count(most as u64),
        );
        report::plan(&self.args.run, &plan);
        let directory = self.scratch_directory();
        let mut sorter = Sorter::new(most, threads, directory);
        let intake = &mut self.intake;
        let keys = intake.keys();
        self.walk.each(
            &keys,
            &mut |batch: &Batch, keyed: &mut KeyedLines, place: &Place| {
                intake.take(batch, keyed, place)?;
                sorter.take(keyed.digests().bits())?;
                Ok(Flow::GoOn)
            },
        )?;
        intake.refuse_bad()?;
        let sorted = sorter.finish()?;
        let keys = sorted.count()?;
        let identity = intake.identity().clone();
        let bytes = StaticBuilder::expected_bytes(&identity, keys, self.error)?;
        let plan = format!(
            "a static filter of about {} for {} keys at an error of {}",
            format_size(bytes),
            format_count(keys),
            report::probability(self.error),
        );
        report::plan(&self.args.run, &plan);
        if bytes.saturating_add(BUILDING * threads as u64) > self.usable {
            bail!(
                "the filter needs {}, the memory budget is {}: allow more with --memory, or \
                 accept a larger error with -p",
                format_size(bytes.saturating_add(BUILDING * threads as u64)),
                format_size(self.budget)
            );
        }
        let mut builder = StaticBuilder::new(identity, keys, self.error, threads)?;
        sorted.each(&mut |digests| Ok(builder.push(digests)?))?;
        drop(sorted);
        Ok(Filled {
            filter: builder.finish()?.into(),
            keys,
        })
    }

    /// Digests that fit the memory, beside the filter that is made of them.
    fn most_digests(&self, threads: usize) -> Result<usize> {
        let free = self.usable.saturating_sub(BUILDING * threads as u64);
        // Bits a digest of a filter that is not small.
        let sample = 1 << 20;
        let identity = Identity::new(petal::KeyType::Int);
        let filter = StaticBuilder::expected_bytes(&identity, sample, self.error)?;
        let each = 8.0 + filter as f64 / sample as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive count; the cast saturates"
        )]
        let most = (free as f64 / each) as usize;
        if most < LEAST_RUN {
            bail!(
                "a memory of {} is too little: allow more with --memory",
                format_size(self.budget)
            );
        }
        Ok(most)
    }

    /// Where temporary files go: where the filter goes, unless --tmp says so.
    fn scratch_directory(&self) -> PathBuf {
        if let Some(directory) = &self.args.tmp {
            return directory.clone();
        }
        match self.args.output.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => ".".into(),
        }
    }
}

/// Takes digests in any order.
struct Sorter {
    digests: Vec<u64>,
    /// Digests that are in memory at most.
    most: usize,
    threads: usize,
    directory: PathBuf,
    spilled: Option<File>,
    /// Digests of each run in the file.
    runs: Vec<usize>,
}

impl Sorter {
    const fn new(most: usize, threads: usize, directory: PathBuf) -> Self {
        Self {
            digests: Vec::new(),
            most,
            threads,
            directory,
            spilled: None,
            runs: Vec::new(),
        }
    }

    fn take(&mut self, mut digests: &[u64]) -> Result<()> {
        while !digests.is_empty() {
            if self.digests.len() == self.most {
                self.make_room()?;
            }
            if self.digests.len() == self.digests.capacity() {
                let double = self.digests.len().max(LEAST_RUN / 2);
                let more = double.min(self.most - self.digests.len());
                self.digests
                    .try_reserve_exact(more)
                    .context("no memory for the digests: give less with --memory")?;
            }
            let room = self.digests.capacity().min(self.most) - self.digests.len();
            let (now, later) = digests.split_at(digests.len().min(room));
            self.digests.extend_from_slice(now);
            digests = later;
        }
        Ok(())
    }

    /// Drops repeats, and writes the rest away if these were few.
    fn make_room(&mut self) -> Result<()> {
        StaticBuilder::sort_distinct(&mut self.digests, self.threads);
        if self.digests.len() > self.most / 2 {
            self.spill()?;
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        let why = || format!("cannot write digests to {}", self.directory.display());
        let file = match self.spilled.take() {
            Some(file) => file,
            None => Scratch::new(&self.directory)
                .and_then(|scratch| scratch.file())
                .with_context(why)?,
        };
        let mut offset = self.runs.iter().sum::<usize>() as u64 * 8;
        for part in self.digests.chunks(MERGED) {
            let bytes: Vec<u8> = part
                .iter()
                .flat_map(|digest| digest.to_le_bytes())
                .collect();
            file.write_all_at(&bytes, offset).with_context(why)?;
            offset += bytes.len() as u64;
        }
        self.spilled = Some(file);
        self.runs.push(self.digests.len());
        self.digests.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<Sorted> {
        StaticBuilder::sort_distinct(&mut self.digests, self.threads);
        if self.spilled.is_some() {
            self.spill()?;
            self.digests = Vec::new();
        }
        Ok(match self.spilled {
            Some(file) => Sorted::InFile {
                file,
                runs: self.runs,
                buffer: MERGED.min(self.most),
            },
            None => Sorted::InMemory(self.digests),
        })
    }
}

/// All digests, each once, in ascending order.
enum Sorted {
    InMemory(Vec<u64>),
    InFile {
        file: File,
        runs: Vec<usize>,
        /// Digests of all runs that are in memory at most.
        buffer: usize,
    },
}

impl Sorted {
    fn count(&self) -> Result<u64> {
        if let Self::InMemory(digests) = self {
            return Ok(digests.len() as u64);
        }
        let mut count = 0;
        self.each(&mut |digests| {
            count += digests.len() as u64;
            Ok(())
        })?;
        Ok(count)
    }

    /// Calls `take` for the digests in turn.
    fn each(&self, take: &mut dyn FnMut(&[u64]) -> Result<()>) -> Result<()> {
        let (file, runs, buffer) = match self {
            Self::InMemory(digests) => return take(digests),
            Self::InFile { file, runs, buffer } => (file, runs, *buffer),
        };
        let mut start = 0;
        let mut readers = Vec::with_capacity(runs.len());
        let mut heads = BinaryHeap::with_capacity(runs.len());
        for (number, &len) in runs.iter().enumerate() {
            let mut reader = Reader {
                file,
                next: start,
                end: start + len as u64,
                most: (buffer * 16 / runs.len()).clamp(16, MERGED),
                digests: Vec::new().into_iter(),
            };
            start = reader.end;
            if let Some(digest) = reader.next()? {
                heads.push(Reverse((digest, number)));
            }
            readers.push(reader);
        }
        let mut out = Vec::with_capacity(MERGED);
        let mut last = None;
        while let Some(Reverse((digest, number))) = heads.pop() {
            if last != Some(digest) {
                last = Some(digest);
                out.push(digest);
                if out.len() == MERGED {
                    take(&out)?;
                    out.clear();
                }
            }
            if let Some(digest) = readers[number].next()? {
                heads.push(Reverse((digest, number)));
            }
        }
        take(&out)
    }
}

/// Reads a run.
struct Reader<'a> {
    file: &'a File,
    /// The digest of the file that is read next.
    next: u64,
    end: u64,
    /// Digests that are read at a time.
    most: usize,
    digests: std::vec::IntoIter<u64>,
}

impl Reader<'_> {
    fn next(&mut self) -> Result<Option<u64>> {
        if let Some(digest) = self.digests.next() {
            return Ok(Some(digest));
        }
        let left = usize::try_from(self.end - self.next).unwrap_or(usize::MAX);
        let mut bytes = vec![0; left.min(self.most) * 8];
        self.file
            .read_exact_at(&mut bytes, self.next * 8)
            .context("cannot read digests back from the temporary file")?;
        let words = bytes.as_chunks::<8>().0;
        self.next += words.len() as u64;
        let digests: Vec<u64> = words.iter().map(|&word| u64::from_le_bytes(word)).collect();
        self.digests = digests.into_iter();
        Ok(self.digests.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_out_is_sorted_and_distinct_in_any_memory() {
        let folder = tempfile::tempdir().unwrap();
        let digest = |i: u64| petal::mix_int((i % 9000).cast_signed(), 1);
        let digests: Vec<u64> = (0..20_000).map(digest).collect();
        let mut expected = digests.clone();
        expected.sort_unstable();
        expected.dedup();
        for most in [1024, 1500, 4000, 9000, 12_000, 100_000] {
            let mut sorter = Sorter::new(most, 2, folder.path().to_owned());
            for part in digests.chunks(700) {
                sorter.take(part).unwrap();
                assert!(sorter.digests.capacity() <= most.max(LEAST_RUN));
            }
            let spills = !sorter.runs.is_empty();
            assert_eq!(spills, most < 9000 * 2 - 1, "{most}");
            let sorted = sorter.finish().unwrap();
            let mut got = Vec::new();
            sorted
                .each(&mut |part| {
                    got.extend_from_slice(part);
                    Ok(())
                })
                .unwrap();
            assert_eq!(got, expected, "{most}");
            assert_eq!(sorted.count().unwrap(), 9000);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
