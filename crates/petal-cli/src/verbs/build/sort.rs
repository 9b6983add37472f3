//! Keys into ascending order of their digests, each once, in any memory.
//!
//! Owns the records until they can be built into a filter: in memory while it lasts, else in
//! sorted runs in a temporary file. What is built of them is not known here.
//!
//! ```text
//! lines ─▶ records ─▶ memory full: sort, drop repeats ─▶ still full: a run in the file
//!                     end of input: sort, merge the runs ─▶ count ─▶ merge again ─▶ build
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use petal::{DigestSource, Entry, StaticBuilder, Valued};
use petal_exact::Scratch;

/// Records of a run that are in memory while the runs are merged, at most.
const MERGED: usize = 1 << 16;

/// Fewer records than this are not worth a run.
pub(super) const LEAST_RUN: usize = 1 << 10;

/// A digest, alone or with a value, that can be in a file for a while.
pub(super) trait Record: Entry + Ord {
    /// Bytes in a file.
    const BYTES: usize;
    fn write(self, into: &mut Vec<u8>);
    fn read(bytes: &[u8]) -> Self;
}

/// The first bytes of a record.
fn digest_of(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |digest| u64::from_le_bytes(*digest))
}

impl Record for u64 {
    const BYTES: usize = 8;

    fn write(self, into: &mut Vec<u8>) {
        into.extend(self.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        digest_of(bytes)
    }
}

impl Record for Valued {
    const BYTES: usize = 10;

    fn write(self, into: &mut Vec<u8>) {
        into.extend(self.digest.to_le_bytes());
        into.extend(self.value.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        let value = bytes.last_chunk();
        Self {
            digest: digest_of(bytes),
            value: value.map_or(0, |value| u16::from_le_bytes(*value)),
        }
    }
}

/// Takes records in any order.
pub(super) struct Sorter<E> {
    records: Vec<E>,
    /// Records that are in memory at most.
    most: usize,
    threads: usize,
    directory: PathBuf,
    spilled: Option<File>,
    /// Records of each run in the file.
    runs: Vec<usize>,
}

impl<E: Record> Sorter<E> {
    pub(super) const fn new(most: usize, threads: usize, directory: PathBuf) -> Self {
        Self {
            records: Vec::new(),
            most,
            threads,
            directory,
            spilled: None,
            runs: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, mut records: &[E]) -> Result<()> {
        while !records.is_empty() {
            if self.records.len() == self.most {
                self.make_room()?;
            }
            if self.records.len() == self.records.capacity() {
                let double = self.records.len().max(LEAST_RUN / 2);
                let more = double.min(self.most - self.records.len());
                self.records
                    .try_reserve_exact(more)
                    .context("no memory for the digests: give less with --memory")?;
            }
            let room = self.records.capacity().min(self.most) - self.records.len();
            let (now, later) = records.split_at(records.len().min(room));
            self.records.extend_from_slice(now);
            records = later;
        }
        Ok(())
    }

    /// Drops repeats, and writes the rest away if these were few.
    fn make_room(&mut self) -> Result<()> {
        StaticBuilder::sort_distinct(&mut self.records, self.threads);
        if self.records.len() > self.most / 2 {
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
        let mut offset = (self.runs.iter().sum::<usize>() * E::BYTES) as u64;
        let mut bytes = Vec::with_capacity(self.records.len().min(MERGED) * E::BYTES);
        for part in self.records.chunks(MERGED) {
            bytes.clear();
            for record in part {
                record.write(&mut bytes);
            }
            file.write_all_at(&bytes, offset).with_context(why)?;
            offset += bytes.len() as u64;
        }
        self.spilled = Some(file);
        self.runs.push(self.records.len());
        self.records.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Sorted<E>> {
        StaticBuilder::sort_distinct(&mut self.records, self.threads);
        if self.spilled.is_some() {
            self.spill()?;
            self.records = Vec::new();
        }
        let mut sorted = Sorted {
            count: self.records.len() as u64,
            place: match self.spilled {
                Some(file) => Stored::InFile {
                    file,
                    runs: self.runs,
                    buffer: MERGED.min(self.most),
                    directory: self.directory,
                },
                None => Stored::InMemory(self.records),
            },
        };
        if let Stored::InFile { .. } = sorted.place {
            let mut count = 0;
            for part in sorted.parts() {
                count += part?.len() as u64;
            }
            sorted.count = count;
        }
        Ok(sorted)
    }
}

/// All records, each once, in ascending order.
pub(super) struct Sorted<E> {
    count: u64,
    place: Stored<E>,
}

enum Stored<E> {
    InMemory(Vec<E>),
    InFile {
        file: File,
        runs: Vec<usize>,
        /// Records of all runs that are in memory at most.
        buffer: usize,
        directory: PathBuf,
    },
}

impl<E: Record> Sorted<E> {
    /// How many there are.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// All of them, in parts.
    pub(super) fn parts(&self) -> Box<dyn Iterator<Item = petal::Result<Vec<E>>> + '_> {
        match &self.place {
            Stored::InMemory(records) => {
                Box::new(records.chunks(MERGED).map(|part| Ok(part.to_vec())))
            }
            Stored::InFile {
                file,
                runs,
                buffer,
                directory,
            } => {
                let mut start = 0;
                let readers = runs.iter().map(|&len| {
                    let reader = Reader {
                        file,
                        next: start,
                        end: start + len as u64,
                        most: (buffer * 16 / runs.len()).clamp(16, MERGED),
                        records: Vec::new().into_iter(),
                    };
                    start = reader.end;
                    reader
                });
                let merge = Merge {
                    readers: readers.collect(),
                    heads: None,
                    last: None,
                };
                Box::new(merge.map(|part| {
                    part.map_err(|source| petal::Error::Io {
                        action: "read digests back from a temporary file in",
                        path: Some(directory.clone()),
                        source,
                    })
                }))
            }
        }
    }
}

impl DigestSource for Sorted<u64> {
    fn count(&self) -> u64 {
        self.count
    }

    fn parts(&self) -> Box<dyn Iterator<Item = petal::Result<Vec<u64>>> + '_> {
        self.parts()
    }
}

/// Several runs as one.
struct Merge<'a, E> {
    readers: Vec<Reader<'a, E>>,
    /// The first record of each run; not known yet at the beginning.
    heads: Option<BinaryHeap<Reverse<(E, usize)>>>,
    last: Option<E>,
}

impl<E: Record> Merge<'_, E> {
    fn part(&mut self) -> std::io::Result<Vec<E>> {
        if self.heads.is_none() {
            let mut heads = BinaryHeap::with_capacity(self.readers.len());
            for (number, reader) in self.readers.iter_mut().enumerate() {
                if let Some(record) = reader.next()? {
                    heads.push(Reverse((record, number)));
                }
            }
            self.heads = Some(heads);
        }
        let heads = self.heads.get_or_insert_default();
        let mut out = Vec::with_capacity(MERGED);
        while out.len() < MERGED
            && let Some(Reverse((record, number))) = heads.pop()
        {
            if self.last != Some(record) {
                self.last = Some(record);
                out.push(record);
            }
            if let Some(record) = self.readers[number].next()? {
                heads.push(Reverse((record, number)));
            }
        }
        Ok(out)
    }
}

impl<E: Record> Iterator for Merge<'_, E> {
    type Item = std::io::Result<Vec<E>>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.part() {
            Ok(part) if part.is_empty() => None,
            part => Some(part),
        }
    }
}

/// Reads a run.
struct Reader<'a, E> {
    file: &'a File,
    /// The record of the file that is read next.
    next: u64,
    end: u64,
    /// Records that are read at a time.
    most: usize,
    records: std::vec::IntoIter<E>,
}

impl<E: Record> Reader<'_, E> {
    fn next(&mut self) -> std::io::Result<Option<E>> {
        if let Some(record) = self.records.next() {
            return Ok(Some(record));
        }
        let left = usize::try_from(self.end - self.next).unwrap_or(usize::MAX);
        let mut bytes = vec![0; left.min(self.most) * E::BYTES];
        self.file
            .read_exact_at(&mut bytes, self.next * E::BYTES as u64)?;
        let records: Vec<E> = bytes.chunks_exact(E::BYTES).map(E::read).collect();
        self.next += records.len() as u64;
        self.records = records.into_iter();
        Ok(self.records.next())
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
                assert!(sorter.records.capacity() <= most.max(LEAST_RUN));
            }
            let spills = !sorter.runs.is_empty();
            assert_eq!(spills, most < 9000 * 2 - 1, "{most}");
            let sorted = sorter.finish().unwrap();
            let got: Vec<u64> = sorted.parts().flat_map(petal::Result::unwrap).collect();
            assert_eq!(got, expected, "{most}");
            assert_eq!(sorted.count(), 9000);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn values_stay_with_their_digests() {
        let folder = tempfile::tempdir().unwrap();
        let record = |i: u64| Valued {
            digest: petal::mix_int((i % 5000).cast_signed(), 2),
            value: u16::try_from(i % 5000).unwrap() * 13,
        };
        for most in [1024, 100_000] {
            let mut sorter = Sorter::new(most, 2, folder.path().to_owned());
            let records: Vec<Valued> = (0..12_000).map(record).collect();
            sorter.take(&records).unwrap();
            let sorted = sorter.finish().unwrap();
            let mut got: Vec<Valued> = sorted.parts().flat_map(petal::Result::unwrap).collect();
            assert!(got.is_sorted());
            got.sort_by_key(|record| record.value / 13);
            assert!(got.into_iter().eq((0..5000).map(record)));
        }
    }
}
