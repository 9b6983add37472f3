//! The classic comparison: ways to tell which lines of a list came before.
//!
//! Owns the ways ([`Way`]) and how one of them is measured ([`measure`]). Each runs in a process of
//! its own, so that its memory is that of nothing else: starting these, and the table, is
//! `bin/classic.rs`.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Instant;

use md5::{Digest, Md5};
use petal::BloomFilter;
use roaring::RoaringBitmap;
use rusqlite::{Connection, params};

/// Bytes that are read at a time.
const BUFFER: usize = 1 << 18;

/// What is remembered of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing: what reading alone takes.
    Reading,
    /// A table of a database, SQLite, with the line as its primary key; on disk.
    Database,
    /// A hash set of the lines.
    Strings,
    /// A hash set of their MD5 sums, 16 bytes each.
    Md5Sums,
    /// A bitmap in which each line has one bit.
    SingleHash,
    /// petal's Bloom filter.
    Bloom,
    /// An exact bitmap of all 32-bit integers, compressed: for lines that are such numbers.
    Bitmap,
}

impl Way {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 7] = [
        Self::Reading,
        Self::Database,
        Self::Strings,
        Self::Md5Sums,
        Self::SingleHash,
        Self::Bloom,
        Self::Bitmap,
    ];

    /// What the arguments call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Database => "database",
            Self::Strings => "strings",
            Self::Md5Sums => "md5",
            Self::SingleHash => "single-hash",
            Self::Bloom => "bloom",
            Self::Bitmap => "bitmap",
        }
    }

    /// What the table calls it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Reading => "nothing (reading alone)",
            Self::Database => "database (SQLite, primary key)",
            Self::Strings => "hash set of strings",
            Self::Md5Sums => "hash set of MD5 sums",
            Self::SingleHash => "bitmap, one hash",
            Self::Bloom => "Bloom filter (petal)",
            Self::Bitmap => "exact bitmap (roaring)",
        }
    }

    /// The way of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.name() == name)
    }

    /// Whether no line is ever wrongly taken for a repeat (of MD5 sums: in practice).
    #[must_use]
    pub const fn is_exact(self) -> bool {
        matches!(
            self,
            Self::Database | Self::Strings | Self::Md5Sums | Self::Bitmap
        )
    }
}

/// What is given to a way beside the list.
#[derive(Clone, Debug)]
pub struct Given {
    /// Distinct lines of the list, which the ways with an error are made for.
    pub distinct: u64,
    /// Their error.
    pub error: f64,
    /// Where a database is put.
    pub folder: PathBuf,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Lines of the list.
    pub lines: u64,
    /// How many of them were taken for new.
    pub new: u64,
    /// Wall time in seconds, reading included.
    pub seconds: f64,
    /// By how much the memory of the process has grown at most, in bytes.
    pub memory: u64,
    /// Bytes on disk.
    pub disk: u64,
}

/// Something that remembers lines.
trait Seen {
    /// Remembers a line; whether it was new.
    fn insert(&mut self, line: &[u8]) -> Result<bool, String>;

    /// Bytes on disk, after all lines.
    fn finish(&mut self) -> Result<u64, String> {
        Ok(0)
    }
}

/// Runs a list through a way.
///
/// # Errors
/// A message if the list cannot be read, a line is not of the way's kind, or there is no memory.
pub fn measure(way: Way, list: &Path, given: &Given) -> Result<Outcome, String> {
    let start = Instant::now();
    let before = resident()?;
    let mut seen = make(way, given)?;
    let (mut lines, mut new) = (0, 0);
    each_line(list, |line| {
        lines += 1;
        new += u64::from(seen.insert(line)?);
        Ok(())
    })?;
    let disk = seen.finish()?;
    Ok(Outcome {
        lines,
        new,
        seconds: start.elapsed().as_secs_f64(),
        memory: peak_resident()?.saturating_sub(before),
        disk,
    })
}

/// Calls `take` for each line of a list, without its end.
///
/// # Errors
/// If the list cannot be read, or as `take`.
pub fn each_line(
    list: &Path,
    mut take: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), String> {
    let refused = |error| format!("cannot read {}: {error}", list.display());
    let mut file = BufReader::with_capacity(BUFFER, File::open(list).map_err(refused)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if file.read_until(b'\n', &mut line).map_err(refused)? == 0 {
            return Ok(());
        }
        take(line.strip_suffix(b"\n").unwrap_or(&line))?;
    }
}

fn make(way: Way, given: &Given) -> Result<Box<dyn Seen>, String> {
    Ok(match way {
        Way::Reading => Box::new(Nothing),
        Way::Database => Box::new(Database::create(&given.folder)?),
        Way::Strings => Box::new(Strings(HashSet::new())),
        Way::Md5Sums => Box::new(Md5Sums(HashSet::new())),
        Way::SingleHash => Box::new(SingleHash::for_keys(given.distinct, given.error)?),
        Way::Bloom => {
            let filter = BloomFilter::new(given.distinct.max(1), given.error);
            Box::new(Bloom(filter.map_err(|error| error.to_string())?))
        }
        Way::Bitmap => Box::new(Bitmap(RoaringBitmap::new())),
    })
}

struct Nothing;

impl Seen for Nothing {
    fn insert(&mut self, _line: &[u8]) -> Result<bool, String> {
        Ok(true)
    }
}

/// As fast as it goes: one transaction, nothing waits for the disk, and no journal.
struct Database {
    connection: Connection,
    file: PathBuf,
}

impl Database {
    fn create(folder: &Path) -> Result<Self, String> {
        let file = folder.join("classic.sqlite");
        let create = || -> rusqlite::Result<Connection> {
            let connection = Connection::open(&file)?;
            connection.execute_batch(
                "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
                 CREATE TABLE seen (line BLOB PRIMARY KEY) WITHOUT ROWID;
                 BEGIN;",
            )?;
            Ok(connection)
        };
        let connection = create().map_err(refused)?;
        Ok(Self { connection, file })
    }
}

fn refused(error: rusqlite::Error) -> String {
    format!("SQLite: {error}")
}

impl Seen for Database {
    fn insert(&mut self, line: &[u8]) -> Result<bool, String> {
        let mut insert = self
            .connection
            .prepare_cached("INSERT OR IGNORE INTO seen VALUES (?1)")
            .map_err(refused)?;
        Ok(insert.execute(params![line]).map_err(refused)? == 1)
    }

    fn finish(&mut self) -> Result<u64, String> {
        self.connection.execute_batch("COMMIT;").map_err(refused)?;
        let facts = fs::metadata(&self.file);
        let bytes = facts.map_err(|error| format!("cannot see the database: {error}"))?;
        Ok(bytes.len())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // It is in a folder that goes with the run.
        let _ = fs::remove_file(&self.file);
    }
}

struct Strings(HashSet<Box<[u8]>>);

impl Seen for Strings {
    fn insert(&mut self, line: &[u8]) -> Result<bool, String> {
        Ok(!self.0.contains(line) && self.0.insert(line.into()))
    }
}

struct Md5Sums(HashSet<[u8; 16]>);

impl Seen for Md5Sums {
    fn insert(&mut self, line: &[u8]) -> Result<bool, String> {
        Ok(self.0.insert(Md5::digest(line).into()))
    }
}

/// One bit a line: of `m` bits a share `1 - e^(-n/m)` is set by `n` lines, which is the error.
struct SingleHash {
    words: Vec<u64>,
    bits: u64,
}

impl SingleHash {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number of bits; the cast saturates"
    )]
    fn for_keys(keys: u64, error: f64) -> Result<Self, String> {
        let bits = ((keys.max(1) as f64 / -(-error).ln_1p()).ceil() as u64).max(64);
        let mut words = Vec::new();
        let count = usize::try_from(bits.div_ceil(64)).unwrap_or(usize::MAX);
        words
            .try_reserve_exact(count)
            .map_err(|_| format!("no memory for a bitmap of {bits} bits"))?;
        words.resize(count, 0);
        Ok(Self { words, bits })
    }
}

impl Seen for SingleHash {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "below the bits, which are in memory"
    )]
    fn insert(&mut self, line: &[u8]) -> Result<bool, String> {
        let digest = petal::KeyHasher::default().digest_bytes(line).bits();
        let bit = ((u128::from(digest) * u128::from(self.bits)) >> 64) as usize;
        let word = &mut self.words[bit / 64];
        let before = *word;
        *word |= 1 << (bit % 64);
        Ok(*word != before)
    }
}

struct Bloom(BloomFilter);

impl Seen for Bloom {
    fn insert(&mut self, line: &[u8]) -> Result<bool, String> {
        self.0.insert(line).map_err(|error| error.to_string())
    }
}

struct Bitmap(RoaringBitmap);

impl Seen for Bitmap {
    fn insert(&mut self, line: &[u8]) -> Result<bool, String> {
        match integer(line) {
            Some(number) => Ok(self.0.insert(number)),
            None => Err(format!("not a 32-bit integer: {}", line.escape_ascii())),
        }
    }
}

/// The 32-bit integer that a line is: in decimal, or an IPv4 address.
#[must_use]
pub fn integer(line: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(line).ok()?;
    let address = || text.parse::<std::net::Ipv4Addr>().ok().map(u32::from);
    text.parse().ok().or_else(address)
}

/// The memory of this process now.
fn resident() -> Result<u64, String> {
    status("VmRSS:")
}

/// The most it has been.
fn peak_resident() -> Result<u64, String> {
    status("VmHWM:")
}

/// A figure of `/proc/self/status`, which are in KiB, in bytes.
fn status(name: &str) -> Result<u64, String> {
    let text = fs::read_to_string("/proc/self/status")
        .map_err(|error| format!("cannot read /proc/self/status: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| format!("/proc/self/status has no {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(folder: &Path) -> Given {
        Given {
            distinct: 5000,
            error: 0.01,
            folder: folder.to_owned(),
        }
    }

    fn list(name: &str, line: impl Fn(u32) -> String) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("petal-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let text: String = (0..15_000u32).map(|i| line(i * 7 % 5000) + "\n").collect();
        fs::write(folder.join("list"), text).unwrap();
        folder
    }

    #[test]
    fn exact_ways_find_all_and_others_miss_few() {
        let folder = list("classic", |i| i.to_string());
        for way in Way::ALL {
            assert_eq!(Way::from_name(way.name()), Some(way));
            let outcome = measure(way, &folder.join("list"), &given(&folder)).unwrap();
            assert_eq!(outcome.lines, 15_000);
            match way {
                Way::Reading => assert_eq!(outcome.new, 15_000),
                way if way.is_exact() => assert_eq!(outcome.new, 5000, "{way:?}"),
                // About half of 1 % of 5000 were new when less was there; 25 + 5 sigma at most.
                _ => assert!((4950..5000).contains(&outcome.new), "{way:?}: {outcome:?}"),
            }
            assert_eq!(outcome.disk > 0, way == Way::Database);
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn lines_that_are_no_integers_are_refused_by_the_bitmap() {
        let folder = list("classic-text", |i| format!("line {i}"));
        let error = measure(Way::Bitmap, &folder.join("list"), &given(&folder)).unwrap_err();
        assert!(error.contains("not a 32-bit integer: line 0"), "{error}");
        fs::remove_dir_all(folder).unwrap();
        for (line, number) in [
            ("7", Some(7)),
            ("4294967295", Some(u32::MAX)),
            ("4294967296", None),
            ("1.2.3.4", Some(0x0102_0304)),
            ("", None),
            ("-1", None),
        ] {
            assert_eq!(integer(line.as_bytes()), number, "{line}");
        }
    }
}
