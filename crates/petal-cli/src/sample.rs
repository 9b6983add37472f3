//! How many lines the input has, from a look at a few places.
//!
//! Owns the estimate. Only plain regular files can be sampled: of a pipe or
//! a compressed file nothing is known beforehand.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::compression::{Compression, Sniff};

/// Places that are looked at in all files together, and bytes at each.
const PLACES: u64 = 64;
const BYTES: usize = 32 << 10;

/// Records that are compared with each other: half a megabyte of digests.
const RECORDS: usize = 1 << 16;

/// What a sample says about the input.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Estimate {
    /// Records in all files together.
    pub(crate) lines: u64,
    /// Share of distinct records in the sample: near 1 unless repeats are
    /// frequent. It says nothing about rare repeats.
    pub(crate) distinct_share: f64,
}

/// Share of distinct records in a sample from which on most records of the
/// input are taken to be distinct.
const MOSTLY_DISTINCT: f64 = 0.8;

impl Estimate {
    /// Whether a table is best made for all records at once.
    pub(crate) fn is_mostly_distinct(&self) -> bool {
        self.distinct_share >= MOSTLY_DISTINCT
    }

    /// The same for one of so many equal parts of the lines.
    pub(crate) const fn divided_by(self, parts: u64) -> Self {
        Self {
            lines: self.lines.div_ceil(parts),
            ..self
        }
    }
}

/// Looks at files of plain records that end with `terminator`. `None` if
/// there is no file, or if one of them is compressed, no regular file, or
/// cannot be read, which is told by whoever reads it next.
pub(crate) fn estimate_paths(paths: &[PathBuf], terminator: u8) -> Option<Estimate> {
    let mut sizes = Vec::new();
    for path in paths {
        sizes.push(plain_file(path)?.metadata().ok()?.len());
    }
    let total: u64 = sizes.iter().sum();
    if paths.is_empty() {
        return None;
    }
    let mut sample = Sample::new(terminator);
    // Places spread over all bytes, as if the files were one.
    let stride = total.div_ceil(PLACES).max(1);
    let (mut file, mut start) = (0, 0);
    let mut open: Option<(usize, File)> = None;
    for place in (0..total).step_by(usize::try_from(stride).ok()?) {
        while start + sizes.get(file)? <= place {
            start += sizes[file];
            file += 1;
        }
        if open.as_ref().is_none_or(|(number, _)| *number != file) {
            open = Some((file, File::open(&paths[file]).ok()?));
        }
        let (_, file) = open.as_ref()?;
        sample.look(file, place - start, stride).ok()?;
    }
    Some(sample.estimate(total, paths.len()))
}

/// Opens a regular file that is not compressed.
fn plain_file(path: &Path) -> Option<File> {
    if path.as_os_str() == "-" || !path.metadata().ok()?.is_file() {
        return None;
    }
    let file = File::open(path).ok()?;
    let mut head = [0; Compression::LONGEST_MARK];
    let got = read_up_to(&file, &mut head, 0).ok()?;
    matches!(Compression::sniff(&head[..got]), Sniff::Plain).then_some(file)
}

/// What was seen at the places so far.
struct Sample {
    terminator: u8,
    buffer: Vec<u8>,
    bytes: u64,
    ends: u64,
    /// Of the records that are whole, so far as there is room.
    digests: Vec<u64>,
}

impl Sample {
    fn new(terminator: u8) -> Self {
        Self {
            terminator,
            buffer: vec![0; BYTES],
            bytes: 0,
            ends: 0,
            digests: Vec::with_capacity(RECORDS),
        }
    }

    /// Reads at most `most` bytes at a place.
    fn look(&mut self, file: &File, at: u64, most: u64) -> io::Result<()> {
        let wanted = BYTES.min(usize::try_from(most).unwrap_or(BYTES));
        let got = read_up_to(file, &mut self.buffer[..wanted], at)?;
        let chunk = &self.buffer[..got];
        self.bytes += got as u64;
        self.ends += memchr::memchr_iter(self.terminator, chunk).count() as u64;
        // The first and the last piece may be parts of records.
        let mut whole = chunk.split(|&byte| byte == self.terminator);
        whole.next();
        whole.next_back();
        let room = RECORDS - self.digests.len();
        let digests = whole.map(|record| petal::KeyHasher::default().digest_bytes(record).bits());
        self.digests.extend(digests.take(room));
        Ok(())
    }

    fn estimate(mut self, total: u64, files: usize) -> Estimate {
        let share = if self.bytes == 0 {
            0.0
        } else {
            self.ends as f64 / self.bytes as f64
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate of a count is not negative; the cast saturates"
        )]
        let ends = (share * total as f64).ceil() as u64;
        let sampled = self.digests.len();
        self.digests.sort_unstable();
        self.digests.dedup();
        Estimate {
            // Each file may have a last record without a terminator.
            lines: ends.saturating_add(files as u64),
            distinct_share: if sampled == 0 {
                1.0
            } else {
                self.digests.len() as f64 / sampled as f64
            },
        }
    }
}

/// Reads at a place until the buffer is full or the file ends.
fn read_up_to(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match file.read_at(&mut buffer[got..], at + got as u64) {
            Ok(0) => break,
            Ok(bytes) => got += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(files: &[&[u8]]) -> Estimate {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..files.len())
            .map(|i| folder.path().join(i.to_string()))
            .collect();
        for (path, bytes) in paths.iter().zip(files) {
            std::fs::write(path, bytes).unwrap();
        }
        estimate_paths(&paths, b'\n').unwrap()
    }

    #[test]
    fn small_files_are_counted() {
        assert_eq!(estimate(&[b""]).lines, 1);
        assert_eq!(estimate(&[b"a"]).lines, 1);
        assert_eq!(estimate(&[b"a\nb\nc\n"]).lines, 4);
        assert_eq!(estimate(&[b"a\nb\n", b"", b"c\0d\n"]).lines, 6);
    }

    #[test]
    fn large_files_are_estimated_however_they_are_cut() {
        let text: String = (0..700_000).map(|i| format!("line number {i}\n")).collect();
        let whole = estimate(&[text.as_bytes()]);
        assert!(whole.lines.abs_diff(700_000) < 7000, "{whole:?}");
        assert!(whole.distinct_share > 0.99);
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(300_000).collect();
        let cut = estimate(&pieces);
        assert!(cut.lines.abs_diff(700_000) < 7000, "{cut:?}");
    }

    #[test]
    fn frequent_repeats_are_seen() {
        let text = "the same line\n".repeat(100_000);
        assert!(estimate(&[text.as_bytes()]).distinct_share < 0.01);
    }

    #[test]
    fn what_is_not_plain_is_not_estimated() {
        let folder = tempfile::tempdir().unwrap();
        let packed = folder.path().join("packed");
        std::fs::write(&packed, [0x1f, 0x8b, 8, 0]).unwrap();
        for paths in [vec![], vec![packed], vec![folder.path().join("missing")]] {
            assert_eq!(estimate_paths(&paths, b'\n'), None);
        }
        assert_eq!(estimate_paths(&["-".into()], b'\n'), None);
    }
}
