//! A table of redb as a store.
//!
//! Owns the log's table: a row a transaction that brought or removed keys,
//!
//! ```text
//! generation: u64 -> stamp: u64 LE, keys in the table afterwards: u64 LE, new keys: (u32 LE, bytes)*
//! ```

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use redb::{
    Builder, ConcurrencyMode, Database, ReadableDatabase, ReadableTable, ReadableTableMetadata,
    TableDefinition, WriteTransaction,
};

use crate::store::{Change, Mark, Store, Visit, VisitEntry};

type Data<'a> = TableDefinition<'a, &'static [u8], &'static [u8]>;
type Log<'a> = TableDefinition<'a, u64, &'static [u8]>;

/// A table of a [redb](https://docs.rs/redb) database, of byte keys and byte values, with its log
/// in a second table of the name with `.petal-log` behind it.
///
/// The database is opened so that no other process can write to it meanwhile. The table may be
/// read in any way, through [`Self::database`]. It must be written to through the front alone,
/// while the front is open and later: redb has no triggers that could log other writers. As far
/// as others leave another number of keys, that is noticed when a front is opened next, and the
/// filter is rebuilt.
pub struct RedbStore {
    database: Database,
    data: String,
    log: String,
}

/// Bytes of a row before its keys.
const HEAD: usize = 16;

impl RedbStore {
    /// Opens a database, or makes one, and the table in it. The builder says how large the
    /// engine's cache is, for example.
    ///
    /// # Errors
    /// If redb refuses, or the table is of other types.
    pub fn open(
        builder: &mut Builder,
        path: impl AsRef<Path>,
        table: &str,
    ) -> Result<Self, redb::Error> {
        let path = path.as_ref();
        builder.set_concurrency_mode(ConcurrencyMode::ExclusiveWriter);
        if !path.exists() {
            make(builder, path)?;
        }
        let database = builder.create(path)?;
        let store = Self {
            database,
            data: table.to_owned(),
            log: format!("{table}.petal-log"),
        };
        let transaction = store.database.begin_write()?;
        {
            let data = transaction.open_table(store.data())?;
            let mut log = transaction.open_table(store.log())?;
            if log.is_empty()? {
                // No file has this row's stamp, so keys that were there before are no harm.
                append(&mut log, 1, data.len()?, &[])?;
            }
        }
        transaction.commit()?;
        Ok(store)
    }

    /// The database, for reading, and for other tables.
    pub const fn database(&self) -> &Database {
        &self.database
    }

    fn data(&self) -> Data<'_> {
        TableDefinition::new(&self.data)
    }

    fn log(&self) -> Log<'_> {
        TableDefinition::new(&self.log)
    }

    /// Makes the changes and logs them, but does not commit.
    fn change(
        &self,
        transaction: &WriteTransaction,
        changes: &[Change],
        trim: Option<u64>,
    ) -> Result<(), redb::Error> {
        let mut data = transaction.open_table(self.data())?;
        let mut log = transaction.open_table(self.log())?;
        let (last, known) = last_row(&log)?;
        // Counted from the last row's, so that what others did to the table still shows.
        let mut count = known;
        let mut changed = false;
        let mut keys = Vec::new();
        for change in changes {
            match change {
                Change::Put { key, value } => {
                    let is_new = data.insert(key.as_slice(), value.as_slice())?.is_none();
                    if is_new {
                        count = count.wrapping_add(1);
                        changed = true;
                        push_key(&mut keys, key);
                    }
                }
                Change::Remove { key } => {
                    let was_there = data.remove(key.as_slice())?.is_some();
                    if was_there {
                        count = count.wrapping_sub(1);
                        changed = true;
                    }
                }
            }
        }
        if changed {
            append(&mut log, last.generation.saturating_add(1), count, &keys)?;
        }
        if let Some(generation) = trim {
            // The last row stays, whatever is asked.
            log.retain_in(..generation.min(last.generation), |_, _| false)?;
        }
        Ok(())
    }
}

/// Makes an empty database beside its place and then puts it there. A process that is killed
/// while redb makes one in place leaves a file that redb refuses ever after.
fn make(builder: &Builder, path: &Path) -> Result<(), redb::Error> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    // What a killed process has left.
    std::fs::remove_file(&new).or_else(|error| if gone(&error) { Ok(()) } else { Err(error) })?;
    builder.create(&new)?.close()?;
    match std::fs::hard_link(&new, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
        _ => std::fs::remove_file(&new)?, // another process may have been quicker
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    Ok(petal::sync_directory(folder.unwrap_or(Path::new(".")))?)
}

/// A key behind its length. redb takes no key of 4 GiB.
fn push_key(keys: &mut Vec<u8>, key: &[u8]) {
    let len = u32::try_from(key.len()).unwrap_or(u32::MAX);
    keys.extend(len.to_le_bytes());
    keys.extend(key);
}

/// A row of the log without its generation, and whatever else it says.
struct Row<'a> {
    stamp: u64,
    count: u64,
    keys: &'a [u8],
}

/// Splits a row; `None` if it was not written by a front.
fn row(bytes: &[u8]) -> Option<Row<'_>> {
    let (stamp, rest) = bytes.split_first_chunk()?;
    let (count, keys) = rest.split_first_chunk()?;
    Some(Row {
        stamp: u64::from_le_bytes(*stamp),
        count: u64::from_le_bytes(*count),
        keys,
    })
}

fn append(
    log: &mut redb::Table<'_, u64, &'static [u8]>,
    generation: u64,
    count: u64,
    keys: &[u8],
) -> Result<(), redb::StorageError> {
    let mut bytes = Vec::with_capacity(HEAD + keys.len());
    bytes.extend(Mark::fresh(generation).stamp.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend(keys);
    log.insert(generation, bytes.as_slice())?;
    Ok(())
}

/// The last row: its mark, and the keys that the table had after it.
fn last_row(
    log: &impl ReadableTable<u64, &'static [u8]>,
) -> Result<(Mark, u64), redb::StorageError> {
    let Some((generation, bytes)) = log.last()? else {
        // Somebody emptied it: a mark that no file has.
        return Ok((Mark::fresh(0), 0));
    };
    let generation = generation.value();
    Ok(match row(bytes.value()) {
        Some(Row { stamp, count, .. }) => (Mark { generation, stamp }, count),
        None => (Mark::fresh(generation), 0),
    })
}

/// Visits the keys of a row. False if it breaks off.
fn visit_keys(mut keys: &[u8], visit: &mut Visit<'_>) -> bool {
    while let Some((len, rest)) = keys.split_first_chunk() {
        let len = usize::try_from(u32::from_le_bytes(*len)).unwrap_or(usize::MAX);
        let Some((key, rest)) = rest.split_at_checked(len) else {
            return false;
        };
        if visit(key).is_break() {
            return true;
        }
        keys = rest;
    }
    keys.is_empty()
}

impl Store for RedbStore {
    type Error = redb::Error;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, redb::Error> {
        let data = self.database.begin_read()?.open_table(self.data())?;
        let value = data.get(key)?;
        Ok(value.map(|value| value.value().to_vec()))
    }

    fn scan(&self, prefix: &[u8], visit: &mut VisitEntry<'_>) -> Result<(), redb::Error> {
        let data = self.database.begin_read()?.open_table(self.data())?;
        for entry in data.range(prefix..)? {
            let (key, value) = entry?;
            if !key.value().starts_with(prefix) || visit(key.value(), value.value()).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn keys(&self, visit: &mut Visit<'_>) -> Result<(), redb::Error> {
        self.scan(&[], &mut |key, _| visit(key))
    }

    fn apply(&self, changes: &[Change], trim: Option<u64>) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        self.change(&transaction, changes, trim)?;
        transaction.commit()?;
        Ok(())
    }

    fn mark(&self) -> Result<Mark, redb::Error> {
        let log = self.database.begin_read()?.open_table(self.log())?;
        Ok(last_row(&log)?.0)
    }

    fn keys_since(&self, mark: Mark, visit: &mut Visit<'_>) -> Result<Option<Mark>, redb::Error> {
        let transaction = self.database.begin_read()?;
        let log = transaction.open_table(self.log())?;
        let stamp = log.get(mark.generation)?;
        let stamp = stamp.as_ref().and_then(|bytes| row(bytes.value()));
        if stamp.is_none_or(|row| row.stamp != mark.stamp) {
            return Ok(None);
        }
        for entry in log.range(mark.generation..)?.skip(1) {
            let (_, bytes) = entry?;
            let Some(row) = row(bytes.value()) else {
                return Ok(None);
            };
            if !visit_keys(row.keys, visit) {
                return Ok(None);
            }
        }
        let (last, count) = last_row(&log)?;
        let really = transaction.open_table(self.data())?.len()?;
        Ok((count == really).then_some(last))
    }

    fn restart_log(&self) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        {
            let data = transaction.open_table(self.data())?;
            let mut log = transaction.open_table(self.log())?;
            let (last, _) = last_row(&log)?;
            log.retain(|_, _| false)?;
            append(
                &mut log,
                last.generation.saturating_add(1),
                data.len()?,
                &[],
            )?;
        }
        transaction.commit()?;
        Ok(())
    }

    fn len_hint(&self) -> Result<u64, redb::Error> {
        let data = self.database.begin_read()?.open_table(self.data())?;
        Ok(data.len()?)
    }
}

impl fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbStore")
            .field("data", &self.data)
            .field("log", &self.log)
            .finish_non_exhaustive()
    }
}
