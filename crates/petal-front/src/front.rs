//! The front: a filter in memory, its file, and the order in which filter, store and file change.
//!
//! Owns [`Front`]. What the file holds is [`crate::file`]'s, what is logged the store's.

use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use petal::{AnyFilter, FileLock, Secret};

use crate::error::{Error, Result};
use crate::file;
use crate::over::Over;
use crate::store::{Batch, Change, Mark, Store, VisitEntry};

/// How a front is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// What the filter is over.
    pub over: Over,
    /// Keys (and rows, if it is over both) that are expected. More are taken, at a higher price
    /// in bits a key; [`Front::rebuild`] makes a filter for as many as there are.
    pub items: u64,
    /// The share of absent keys that are looked up in the store in vain, at most.
    pub error: f64,
    /// For stores whose absent keys strangers may choose: without a secret they can find keys that
    /// are always looked up. The filter's file does not contain it.
    pub secret: Option<Secret>,
    /// New keys after which the filter is saved: what an open after a crash has to catch up with,
    /// at most, besides the last batch.
    pub save_every: u64,
}

impl Default for Options {
    /// A million whole keys, an error of 1 %, saved every 100,000 new keys.
    fn default() -> Self {
        Self {
            over: Over::Keys,
            items: 1_000_000,
            error: 0.01,
            secret: None,
            save_every: 100_000,
        }
    }
}

/// How the filter came to be as fresh as the store when the front was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Opened {
    /// The file stood at the store's mark.
    UpToDate,
    /// The file stood at an earlier one.
    CaughtUp {
        /// Keys that were added from the log.
        keys: u64,
    },
    /// From the keys of the table.
    Rebuilt {
        /// Keys that there were.
        keys: u64,
        /// Why the file was of no use.
        why: String,
    },
}

/// How a front stands.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Status {
    /// How it was opened.
    pub opened: Opened,
    /// Bytes of the filter in memory, without its small head.
    pub filter_bytes: u64,
    /// Stages of the filter, each of which an absent key is asked in: more than two are a reason
    /// for [`Front::rebuild`].
    pub stages: usize,
    /// The share of absent keys that are looked up in vain, now, from the filter's bits.
    pub error_now: f64,
    /// Puts since the filter was saved.
    pub unsaved: u64,
    /// Why the filter could not be saved the last time, if so. The log grows meanwhile, and
    /// nothing is lost; it is tried again at every write.
    pub save_error: Option<String>,
}

/// A store with a filter before it.
///
/// One front at a time has a filter's file, by the lock on `FILE.lock`. Readers share it freely;
/// writes wait for each other.
pub struct Front<S> {
    store: S,
    path: PathBuf,
    options: Options,
    opened: Opened,
    filter: RwLock<Filter>,
    writer: Mutex<Writer>,
    _lock: FileLock,
}

/// What is asked.
struct Filter {
    /// Has every key of every committed transaction, and those of the one that is being written.
    keys: AnyFilter,
    /// Whether that is not sure: then all keys may be there.
    is_blind: bool,
}

impl Filter {
    const fn new(keys: AnyFilter) -> Self {
        Self {
            keys,
            is_blind: false,
        }
    }
}

/// What writes share: held from before a filter gets keys until the store has committed them.
#[derive(Debug, Default)]
struct Writer {
    /// Puts since the last save.
    unsaved: u64,
    /// The generation that the durable file has, until the log was trimmed to it.
    trim: Option<u64>,
    save_error: Option<String>,
}

/// Keys that enter the filter while readers wait.
const CHUNK: usize = 1024;

impl<S: Store> Front<S> {
    /// Opens a front: reads the filter's file, and catches up from the store's log or rebuilds
    /// from its keys, so that the filter has every key of the store.
    ///
    /// # Errors
    /// If another front has the file, the store refuses, the options are not those of a filter
    /// (no keys, an error that is not between 1e-11 and 1), or the memory cannot be had. A file
    /// that is missing or damaged is no error.
    pub fn open(store: S, filter: impl AsRef<Path>, options: Options) -> Result<Self, S::Error> {
        let path = filter.as_ref().to_path_buf();
        let lock = FileLock::acquire(&path)?;
        let (filter, opened) = match caught_up(&store, &path, &options)? {
            Ok(found) => found,
            Err(why) => {
                // Keys that are in no row of the log may be the reason: no other file may be
                // caught up from it, either.
                store.restart_log().map_err(Error::Store)?;
                let (filter, keys) = from_keys(&store, &options)?;
                (filter, Opened::Rebuilt { keys, why })
            }
        };
        let front = Self {
            store,
            path,
            options,
            opened,
            filter: RwLock::new(Filter::new(filter)),
            writer: Mutex::default(),
            _lock: lock,
        };
        if front.opened != Opened::UpToDate {
            front.save_if_possible(&mut front.writer());
        }
        Ok(front)
    }

    /// The value of a key. The store is asked only if the filter has the key.
    ///
    /// # Errors
    /// If the store refuses.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, S::Error> {
        let key = key.as_ref();
        if !self.may_contain(key) {
            return Ok(None);
        }
        self.store.get(key).map_err(Error::Store)
    }

    /// Whether the store may have a key: false only if no committed transaction has it. For
    /// queries of one's own.
    #[inline]
    pub fn may_contain(&self, key: impl AsRef<[u8]>) -> bool {
        self.has(self.options.over.entry(key.as_ref()))
    }

    /// Visits the keys of a row and their values in ascending order. The store is asked only if
    /// the filter is over keys alone or has the row. A key that is the row itself, without a
    /// delimiter, is not of the row.
    ///
    /// # Errors
    /// If the store refuses, or the filter is not over rows.
    pub fn row(&self, row: impl AsRef<[u8]>, visit: &mut VisitEntry<'_>) -> Result<(), S::Error> {
        let Some(prefix) = self.options.over.prefix(row.as_ref()) else {
            return Err(Error::Filter(petal::Error::Unsupported {
                operation: "asking for a row",
                kind: "front over whole keys",
            }));
        };
        if !self.has(&prefix) {
            return Ok(());
        }
        self.store.scan(&prefix, visit).map_err(Error::Store)
    }

    /// Whether the store may have a key of a row: always true if the filter is not over rows.
    pub fn may_contain_row(&self, row: impl AsRef<[u8]>) -> bool {
        let prefix = self.options.over.prefix(row.as_ref());
        prefix.is_none_or(|prefix| self.has(&prefix))
    }

    /// Makes changes in one transaction. Readers see all of them when this returns, and none
    /// before the store has committed.
    ///
    /// # Errors
    /// If the store refuses, or the filter cannot grow; nothing is written then, as far as the
    /// store says. That the filter's file cannot be saved is no error: see
    /// [`Status::save_error`].
    pub fn write(&self, batch: &Batch) -> Result<(), S::Error> {
        let mut writer = self.writer();
        let puts = batch.changes().iter().filter_map(|change| match change {
            Change::Put { key, .. } => Some(key.as_slice()),
            Change::Remove { .. } => None,
        });
        let puts: Vec<_> = puts.collect();
        for keys in puts.chunks(CHUNK) {
            let mut filter = self.filter_mut();
            for key in keys {
                insert(&mut filter.keys, self.options.over, key)?;
            }
        }
        // If this fails, the filter has keys that the store has not: that is no harm.
        self.store
            .apply(batch.changes(), writer.trim)
            .map_err(Error::Store)?;
        writer.trim = None;
        writer.unsaved += puts.len() as u64;
        if writer.unsaved >= self.options.save_every {
            self.save_if_possible(&mut writer);
        }
        Ok(())
    }

    /// Saves the filter's file, atomically and durably.
    ///
    /// # Errors
    /// If the file system or the store refuses. The file is the last one then.
    pub fn save(&self) -> Result<(), S::Error> {
        self.save_as(&mut self.writer())
    }

    /// Makes a new filter of the keys that there are, for as many and a quarter more: after many
    /// removals, or when there are several stages. Writes wait meanwhile, readers do not.
    ///
    /// # Errors
    /// If the store refuses, the memory for a second filter cannot be had, or the file cannot be
    /// saved. The filter in memory is good in each case.
    pub fn rebuild(&self) -> Result<(), S::Error> {
        let mut writer = self.writer();
        let (fresh, _) = from_keys(&self.store, &self.options)?;
        *self.filter_mut() = Filter::new(fresh);
        self.save_as(&mut writer)
    }

    /// Lets a function change the store in ways of its own, such as SQL, and catches up with
    /// what it did. Readers wait meanwhile. With a [`crate::RedbStore`], which has no triggers, the filter
    /// is rebuilt if the number of keys has changed; do not put new keys in the place of removed ones
    /// there.
    ///
    /// # Errors
    /// If the store refuses to be caught up with, or the filter cannot grow. The front says
    /// "absent" of no key then, until [`Self::rebuild`].
    pub fn change<R>(&self, run: impl FnOnce(&S) -> R) -> Result<R, S::Error> {
        let mut writer = self.writer();
        let before = self.store.mark().map_err(Error::Store)?;
        let mut filter = self.filter_mut();
        filter.is_blind = true; // should the function panic
        let result = run(&self.store);
        let over = self.options.over;
        match catch_up(&self.store, &mut filter.keys, over, before)? {
            Some((_, keys)) => writer.unsaved += keys,
            None => {
                self.store.restart_log().map_err(Error::Store)?;
                let (fresh, keys) = from_keys(&self.store, &self.options)?;
                filter.keys = fresh;
                writer.unsaved += keys;
            }
        }
        filter.is_blind = false;
        Ok(result)
    }

    /// The store, for reading in ways of one's own. To change it, see [`Self::change`].
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// How it stands. Reads all of the filter, for its error.
    pub fn status(&self) -> Status {
        let writer = self.writer();
        let filter = &self.filter().keys;
        Status {
            opened: self.opened.clone(),
            filter_bytes: filter.bytes(),
            stages: match filter {
                AnyFilter::Growable(filter) => filter.stages().len(),
                _ => 1,
            },
            error_now: filter.error_now(),
            unsaved: writer.unsaved,
            save_error: writer.save_error.clone(),
        }
    }

    #[inline]
    fn has(&self, entry: &[u8]) -> bool {
        let filter = self.filter();
        // A filter of byte keys does not refuse them; if it did, the store would be asked.
        filter.is_blind || filter.keys.contains_bytes(entry).unwrap_or(true)
    }

    fn filter(&self) -> RwLockReadGuard<'_, Filter> {
        self.filter.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn filter_mut(&self) -> RwLockWriteGuard<'_, Filter> {
        self.filter.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// With the writer held nothing is committed, and the filter has all that is.
    fn save_as(&self, writer: &mut Writer) -> Result<(), S::Error> {
        let mark = self.store.mark().map_err(Error::Store)?;
        file::set_mark(&mut self.filter_mut().keys, &self.options, mark)?;
        let filter = self.filter();
        if filter.is_blind {
            // A file that lacks keys must not stand at a mark that has them.
            return Err(Error::Filter(petal::Error::Unsupported {
                operation: "saving",
                kind: "front that has to be rebuilt",
            }));
        }
        file::save(&filter.keys, &self.path)?;
        *writer = Writer {
            trim: Some(mark.generation),
            ..Writer::default()
        };
        Ok(())
    }

    fn save_if_possible(&self, writer: &mut Writer) {
        if let Err(error) = self.save_as(writer) {
            writer.save_error = Some(error.to_string());
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for Front<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front")
            .field("store", &self.store)
            .field("path", &self.path)
            .field("opened", &self.opened)
            .finish_non_exhaustive()
    }
}

/// The file's filter with the keys that came since; or why there is none.
fn caught_up<S: Store>(
    store: &S,
    path: &Path,
    options: &Options,
) -> Result<std::result::Result<(AnyFilter, Opened), String>, S::Error> {
    let (mut filter, mark) = match file::load(path, options) {
        Ok(found) => found,
        Err(why) => return Ok(Err(why)),
    };
    Ok(match catch_up(store, &mut filter, options.over, mark)? {
        None => Err("the store's log does not go back to the filter".to_owned()),
        Some((now, _)) if now == mark => Ok((filter, Opened::UpToDate)),
        Some((_, keys)) => Ok((filter, Opened::CaughtUp { keys })),
    })
}

/// Adds the keys of the log after a mark: the mark of its end, and how many there were. `None` if
/// the log cannot say.
fn catch_up<S: Store>(
    store: &S,
    filter: &mut AnyFilter,
    over: Over,
    since: Mark,
) -> Result<Option<(Mark, u64)>, S::Error> {
    let mut keys = 0;
    let mut added = Ok(());
    let now = store
        .keys_since(since, &mut |key| {
            keys += 1;
            added = insert(filter, over, key);
            go_on(&added)
        })
        .map_err(Error::Store)?;
    added?;
    Ok(now.map(|now| (now, keys)))
}

/// A filter of all keys, and their number.
fn from_keys<S: Store>(store: &S, options: &Options) -> Result<(AnyFilter, u64), S::Error> {
    let expected = store.len_hint().map_err(Error::Store)?;
    let mut filter = file::empty(options, expected.saturating_add(expected / 4))?;
    let mut keys = 0;
    let mut added = Ok(());
    store
        .keys(&mut |key| {
            keys += 1;
            added = insert(&mut filter, options.over, key);
            go_on(&added)
        })
        .map_err(Error::Store)?;
    added?;
    Ok((filter, keys))
}

fn insert(filter: &mut AnyFilter, over: Over, key: &[u8]) -> petal::Result<()> {
    for entry in over.entries(key) {
        filter.insert_bytes(entry)?;
    }
    Ok(())
}

const fn go_on(added: &petal::Result<()>) -> ControlFlow<()> {
    match added {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}
