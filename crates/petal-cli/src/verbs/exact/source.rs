//! Files as sources of the library: lines to fingerprints, with progress.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::Context;
use petal::normalise::{Normal, Normalisation};
use petal_exact::{Facts, Fingerprint, Fingerprinter, Records, Source, Visit};

use crate::input::{Batch, Input, LineOptions, Lines};
use crate::keys::KeyCounts;
use crate::os::{FileId, Stamp, display_name};
use crate::output::Output;
use crate::progress::Progress;
use crate::sample;

use super::spool::Copy;

/// Lines a batch, as for the other verbs.
const BATCH: usize = 1024;

/// What makes two lines equal.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    normalisation: Normalisation,
    skip_empty: bool,
    /// Every line has a key that is a part of it.
    plain: bool,
}

/// What a line is compared by.
pub(super) enum Key<'a> {
    Bytes(&'a [u8]),
    Int([u8; 8]),
    /// Nothing: it equals no other line.
    None,
    /// It is left out.
    LeftOut,
}

impl Rules {
    pub(super) fn new(normalisation: Normalisation, skip_empty: bool) -> Self {
        Self {
            plain: normalisation.is_plain() && !skip_empty,
            normalisation,
            skip_empty,
        }
    }

    /// The key of a line; counts lines that have none.
    pub(super) fn key<'a>(
        &self,
        line: &'a [u8],
        scratch: &'a mut Vec<u8>,
        counts: &mut KeyCounts,
    ) -> Key<'a> {
        if self.skip_empty && matches!(line, b"" | b"\r") {
            counts.empty += 1;
            return Key::LeftOut;
        }
        match self.normalisation.apply(line, scratch) {
            Normal::Key(key) => Key::Bytes(key),
            Normal::Int(key) => Key::Int(key.to_le_bytes()),
            Normal::NotUrl(key) => {
                counts.not_url += 1;
                Key::Bytes(key)
            }
            Normal::NoField => {
                counts.no_field += 1;
                Key::None
            }
            Normal::Bad(_) => {
                counts.bad += 1;
                Key::None
            }
        }
    }
}

/// Progress over all sources and passes, and the output they must not be.
pub(super) struct Reading {
    output: Option<FileId>,
    quiet: bool,
    done: AtomicU64,
    progress: Mutex<Option<Progress>>,
}

impl Reading {
    pub(super) fn new(output: &Output, quiet: bool) -> Self {
        Self {
            output: output.id(),
            quiet: quiet || output.is_terminal(),
            done: AtomicU64::new(0),
            progress: Mutex::new(None),
        }
    }

    /// Starts the clock for so many bytes.
    pub(super) fn begin(&self, bytes: u64) {
        let progress = Progress::start("reading", Some(bytes), self.quiet);
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
    }

    fn tick(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // Who finds it busy has nothing new to tell.
        if let Ok(mut progress) = self.progress.try_lock()
            && let Some(progress) = progress.as_mut()
        {
            progress.tick(done);
        }
    }

    pub(super) fn end(&self) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(progress) = progress.take() {
            progress.finish();
        }
    }

    /// Bytes read of all files so far.
    pub(super) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

/// A file, or the copy of what cannot be read twice.
pub(super) struct FileSource {
    path: PathBuf,
    /// Keeps the file of `path` alive.
    _copy: Option<Copy>,
    options: LineOptions,
    pub(super) rules: Rules,
    facts: Facts,
    reading: Arc<Reading>,
    /// Of one pass.
    counts: Mutex<KeyCounts>,
    /// What the file was when it was read first.
    first: Arc<OnceLock<Stamp>>,
}

impl FileSource {
    pub(super) fn of_file(
        path: &Path,
        options: &LineOptions,
        rules: Rules,
        reading: Arc<Reading>,
    ) -> Self {
        let estimate = sample::estimate_paths(&[path.to_owned()], options.terminator);
        let facts = Facts {
            bytes: path.metadata().map_or(0, |facts| facts.len()),
            records: estimate.as_ref().map(|estimate| estimate.lines),
            distinct_share: estimate.map_or(1.0, |estimate| estimate.distinct_share),
        };
        Self::new(path.to_owned(), None, facts, options, rules, reading)
    }

    pub(super) fn of_copy(
        copy: Copy,
        options: &LineOptions,
        rules: Rules,
        reading: Arc<Reading>,
    ) -> Self {
        let facts = Facts {
            bytes: copy.bytes,
            records: Some(copy.lines),
            distinct_share: 1.0,
        };
        Self::new(copy.path(), Some(copy), facts, options, rules, reading)
    }

    fn new(
        path: PathBuf,
        copy: Option<Copy>,
        facts: Facts,
        options: &LineOptions,
        rules: Rules,
        reading: Arc<Reading>,
    ) -> Self {
        Self {
            path,
            _copy: copy,
            options: options.clone(),
            rules,
            facts,
            reading,
            counts: Mutex::default(),
            first: Arc::default(),
        }
    }

    /// Refuses a file that is not what was read first. What one pass found there may not be what
    /// the next one looks for.
    fn check(&self, now: Stamp) -> anyhow::Result<()> {
        if *self.first.get_or_init(|| now) != now {
            anyhow::bail!(
                "{} has changed between two readings, so the answer would be wrong: begin again \
                 when nobody writes to it",
                display_name(&self.path)
            );
        }
        Ok(())
    }

    /// Makes this the same file as another source: it must not change between the two.
    pub(super) fn same_as(&mut self, other: &Self) {
        self.first = Arc::clone(&other.first);
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) const fn terminator(&self) -> u8 {
        self.options.terminator
    }

    /// Lines by what their key was.
    pub(super) fn counts(&self) -> KeyCounts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes read of all sources so far.
    pub(super) fn bytes_read(&self) -> u64 {
        self.reading.done()
    }
}

impl Source for FileSource {
    type Batch = LineBatch;
    type Error = anyhow::Error;

    fn scan(&self, visit: &mut Visit<'_, LineBatch, anyhow::Error>) -> anyhow::Result<()> {
        let input = Input::open(&self.path)?;
        if self.reading.output == Some(input.id()) {
            anyhow::bail!(
                "{} is the input and the output at the same time: write to another file",
                input.name()
            );
        }
        let again = self.first.get().is_some();
        let stamp = input.stamp();
        self.check(stamp)?;
        let mut lines = Lines::new(input, &self.options);
        let mut batch = LineBatch {
            lines: Batch::new(BATCH),
            rules: self.rules.clone(),
            counts: Cell::default(),
            hashed: Cell::new(false),
        };
        let mut told = 0;
        while lines.next_batch(&mut batch.lines)? {
            visit(&batch)?;
            let consumed = lines.consumed();
            self.reading.tick(consumed - told);
            told = consumed;
        }
        self.reading.tick(lines.consumed() - told);
        // What is read once may grow meanwhile, as logs do. It may not lose what was to be read.
        let facts = self.path.metadata();
        let now = Stamp::of(&facts.with_context(|| display_name(&self.path))?);
        if again || now.bytes() < stamp.bytes() {
            self.check(now)?;
        }
        if batch.hashed.get() {
            *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = batch.counts.get();
        }
        Ok(())
    }

    fn facts(&self) -> Facts {
        self.facts
    }
}

/// Lines and what makes them equal.
pub(super) struct LineBatch {
    lines: Batch,
    rules: Rules,
    counts: Cell<KeyCounts>,
    /// Whether fingerprints were wanted: not in a pass that only selects.
    hashed: Cell<bool>,
}

impl LineBatch {
    pub(super) const fn lines(&self) -> &Batch {
        &self.lines
    }
}

impl Records for LineBatch {
    fn len(&self) -> usize {
        self.lines.len()
    }

    fn fingerprints(&self, hasher: &Fingerprinter, out: &mut Vec<Fingerprint>) {
        if self.rules.plain {
            let normalisation = &self.rules.normalisation;
            hasher.append(out, |keys| {
                for line in self.lines.iter() {
                    keys.push(normalisation.trim(line));
                }
            });
            return;
        }
        let mut scratch = Vec::new();
        let mut counts = self.counts.get();
        hasher.append(out, |keys| {
            for line in self.lines.iter() {
                match self.rules.key(line, &mut scratch, &mut counts) {
                    Key::Bytes(key) => keys.push(key),
                    Key::Int(key) => keys.push(&key),
                    Key::None => keys.push_value(Fingerprint::UNLIKE_ANY),
                    Key::LeftOut => keys.push_value(Fingerprint::LEFT_OUT),
                }
            }
        });
        self.counts.set(counts);
        self.hashed.set(true);
    }

    fn keys(&self, take: &mut dyn FnMut(usize, &[u8])) {
        let mut scratch = Vec::new();
        let mut counts = KeyCounts::default();
        for (i, line) in self.lines.iter().enumerate() {
            match self.rules.key(line, &mut scratch, &mut counts) {
                Key::Bytes(key) => take(i, key),
                Key::Int(key) => take(i, &key),
                Key::None | Key::LeftOut => {}
            }
        }
    }
}
