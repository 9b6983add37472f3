//! What is worked on: inputs whose records can be read again.
//!
//! Owns the traits by which inputs come in, and two simple ones: records in memory, and
//! delimited records of anything that can be opened for reading. Everything else (compression,
//! what of a line is the key) is the caller's.

use std::io::{BufRead, BufReader, Read};

use crate::error::Error;
use crate::fingerprint::{Fingerprint, Fingerprinter};

/// Some records of a source that follow each other.
pub trait Records {
    /// How many.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends one fingerprint for each record, in order: [`Fingerprinter::of`] its key, or
    /// [`Fingerprint::LEFT_OUT`], or [`Fingerprint::UNLIKE_ANY`].
    fn fingerprints(&self, hasher: &Fingerprinter, out: &mut Vec<Fingerprint>);

    /// Calls `take` with the number in the batch and the key of every record that has one:
    /// for [`crate::Options::verify`]. Keys must be equal for equal records and different for
    /// different ones.
    fn keys(&self, take: &mut dyn FnMut(usize, &[u8]));
}

/// What is known of a source before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Facts {
    /// Bytes read by one [`Source::scan`].
    pub bytes: u64,
    /// About how many records it has; `None` if nobody knows.
    pub records: Option<u64>,
    /// About which share of them are distinct, from 0 to 1; 1 in doubt.
    pub distinct_share: f64,
}

/// What looks at each batch of a source.
pub type Visit<'v, B, E> = dyn FnMut(&B) -> Result<(), E> + 'v;

/// An input. It may be read more than once and must give the same records each time.
pub trait Source: Sync {
    /// What it hands out.
    type Batch: Records;
    /// How reading it, or taking the results, fails.
    type Error: From<Error> + Send;

    /// Hands all records to `visit`, in order, in batches; some 1,000 records each suit.
    ///
    /// # Errors
    /// Its own, and those of `visit`.
    fn scan(&self, visit: &mut Visit<'_, Self::Batch, Self::Error>) -> Result<(), Self::Error>;

    /// What is known of it.
    fn facts(&self) -> Facts;
}

/// Records that are in memory: for tests and small sets beside large ones.
///
/// ```
/// # use petal_exact::*;
/// let a = Memory::new(["x", "y", "x"]);
/// let mut kept = Vec::new();
/// let options = Options::new(1 << 20, std::env::temp_dir());
/// Job::new(Operation::Dedup(Which::First), &[a], &options)?.run(&mut |batch, these| {
///     kept.extend(these.indices.iter().map(|&i| batch[i].to_string()));
///     Ok(())
/// })?;
/// assert_eq!(kept, ["x", "y"]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory<T> {
    batches: Vec<Vec<T>>,
}

/// Records a batch of [`Memory`] and [`Delimited`].
const BATCH: usize = 1024;

impl<T: AsRef<[u8]>> Memory<T> {
    /// Of these records.
    pub fn new(records: impl IntoIterator<Item = T>) -> Self {
        let mut records = records.into_iter().peekable();
        let mut batches = Vec::new();
        while records.peek().is_some() {
            batches.push(records.by_ref().take(BATCH).collect());
        }
        Self { batches }
    }
}

impl<T: AsRef<[u8]>> Records for Vec<T> {
    fn len(&self) -> usize {
        self.len()
    }

    fn fingerprints(&self, hasher: &Fingerprinter, out: &mut Vec<Fingerprint>) {
        hasher.append(out, |keys| {
            for record in self {
                keys.push(record.as_ref());
            }
        });
    }

    fn keys(&self, take: &mut dyn FnMut(usize, &[u8])) {
        for (i, record) in self.iter().enumerate() {
            take(i, record.as_ref());
        }
    }
}

impl<T: AsRef<[u8]> + Sync> Source for Memory<T> {
    type Batch = Vec<T>;
    type Error = Error;

    fn scan(&self, visit: &mut Visit<'_, Vec<T>, Error>) -> Result<(), Error> {
        self.batches.iter().try_for_each(visit)
    }

    fn facts(&self) -> Facts {
        Facts {
            bytes: 0,
            records: Some(self.batches.iter().map(|batch| batch.len() as u64).sum()),
            distinct_share: 1.0,
        }
    }
}

/// Records that end with one byte, read from whatever a function opens anew for each pass.
/// A last record without the byte counts.
///
/// ```no_run
/// # use petal_exact::*;
/// use std::fs::File;
/// let urls = Delimited::new(b'\n', || File::open("urls.txt"));
/// ```
#[derive(Debug)]
pub struct Delimited<F> {
    open: F,
    delimiter: u8,
    facts: Facts,
}

impl<F, R> Delimited<F>
where
    F: Fn() -> std::io::Result<R> + Sync,
    R: Read,
{
    /// Of what `open` gives each time.
    pub const fn new(delimiter: u8, open: F) -> Self {
        Self {
            open,
            delimiter,
            facts: Facts {
                bytes: 0,
                records: None,
                distinct_share: 1.0,
            },
        }
    }

    /// The same with facts for the plan.
    #[must_use]
    pub fn with_facts(self, facts: Facts) -> Self {
        Self { facts, ..self }
    }
}

impl<F, R> Source for Delimited<F>
where
    F: Fn() -> std::io::Result<R> + Sync,
    R: Read,
{
    type Batch = Vec<Vec<u8>>;
    type Error = Error;

    fn scan(&self, visit: &mut Visit<'_, Self::Batch, Error>) -> Result<(), Error> {
        let failed = |error| Error::io("read an input", error);
        let mut reader = BufReader::with_capacity(1 << 16, (self.open)().map_err(failed)?);
        let mut batch: Vec<Vec<u8>> = Vec::new();
        loop {
            let mut used = 0;
            while used < BATCH {
                if used == batch.len() {
                    batch.push(Vec::new());
                }
                let record = &mut batch[used];
                record.clear();
                if reader.read_until(self.delimiter, record).map_err(failed)? == 0 {
                    break;
                }
                if record.last() == Some(&self.delimiter) {
                    record.pop();
                }
                used += 1;
            }
            batch.truncate(used);
            if batch.is_empty() {
                return Ok(());
            }
            visit(&batch)?;
        }
    }

    fn facts(&self) -> Facts {
        self.facts
    }
}
