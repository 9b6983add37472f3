//! A table of SQLite as a store.
//!
//! Owns the table, its log and the triggers that keep the log, whoever writes:
//!
//! ```text
//! NAME            key BLOB PRIMARY KEY, value BLOB
//! NAME_petal_log  generation INTEGER PRIMARY KEY, stamp INTEGER, key BLOB: a row a new key
//! ```

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, OptionalExtension, Row, TransactionBehavior, params};

use crate::store::{Change, Mark, Store, Visit, VisitEntry};

/// A table `(key BLOB PRIMARY KEY, value BLOB)` of a SQLite database, with its log in a second
/// table of the name with `_petal_log` behind it.
///
/// Triggers log every new key in the transaction that brings it. So any program may write to the
/// table while no front has it open, such as `sqlite3` or a migration: its keys are caught up with.
/// While the front is open it has the database to itself (`locking_mode=EXCLUSIVE`); others get
/// `database is locked`. Keys that are not blobs are refused by the table.
pub struct SqliteStore {
    connection: Mutex<Connection>,
    sql: Sql,
}

/// The statements for one table.
#[derive(Debug)]
struct Sql {
    /// What is made: the tables, then the triggers by name.
    tables: [String; 2],
    triggers: [(String, String); 2],
    first_row: String,
    forget: String,
    get: String,
    scan: String,
    keys: String,
    put: String,
    remove: String,
    trim: String,
    last: String,
    stamp: String,
    since: String,
    count: String,
}

impl Sql {
    fn new(table: &str) -> Self {
        let quoted = |name: String| format!("\"{}\"", name.replace('"', "\"\""));
        let data = quoted(table.to_owned());
        let log = quoted(format!("{table}_petal_log"));
        let trigger = |event: &str, clause: &str| {
            let name = format!("{table}_petal_{event}");
            let sql = format!(
                "CREATE TRIGGER {} AFTER {clause} ON {data} BEGIN INSERT INTO {log}(key) \
                 VALUES (new.key); END",
                quoted(name.clone())
            );
            (name, sql)
        };
        Self {
            tables: [
                format!(
                    "CREATE TABLE IF NOT EXISTS {data} (key BLOB PRIMARY KEY NOT NULL \
                     CHECK (typeof(key) = 'blob'), value BLOB NOT NULL) WITHOUT ROWID"
                ),
                // Without a rowid of its own the next generation is one more than the largest.
                format!(
                    "CREATE TABLE IF NOT EXISTS {log} (generation INTEGER PRIMARY KEY, \
                     stamp INTEGER NOT NULL DEFAULT (random()), key BLOB)"
                ),
            ],
            triggers: [
                trigger("insert", "INSERT"),
                trigger("update", "UPDATE OF key"),
            ],
            first_row: format!("INSERT INTO {log}(key) VALUES (NULL)"),
            forget: format!(
                "DELETE FROM {log} WHERE generation < (SELECT max(generation) FROM {log})"
            ),
            get: format!("SELECT value FROM {data} WHERE key = ?1"),
            scan: format!("SELECT key, value FROM {data} WHERE key >= ?1 ORDER BY key"),
            keys: format!("SELECT key FROM {data}"),
            put: format!(
                "INSERT INTO {data}(key, value) VALUES (?1, ?2) \
                 ON CONFLICT(key) DO UPDATE SET value = excluded.value"
            ),
            remove: format!("DELETE FROM {data} WHERE key = ?1"),
            trim: format!(
                "DELETE FROM {log} WHERE generation < min(?1, (SELECT max(generation) FROM {log}))"
            ),
            last: format!("SELECT generation, stamp FROM {log} ORDER BY generation DESC LIMIT 1"),
            stamp: format!("SELECT stamp FROM {log} WHERE generation = ?1"),
            since: format!(
                "SELECT generation, stamp, key FROM {log} WHERE generation > ?1 ORDER BY generation"
            ),
            count: format!("SELECT count(*) FROM {data}"),
        }
    }
}

impl SqliteStore {
    /// Opens a database, or makes one, and the table in it, with a cache of at most so many
    /// bytes. Commits are durable: the write-ahead log is synchronised at each.
    ///
    /// # Errors
    /// If SQLite refuses, another connection has the database, or a table of the name has other
    /// columns.
    pub fn open(path: impl AsRef<Path>, table: &str, cache_bytes: u64) -> Result<Self, Error> {
        let connection = Connection::open(path)?;
        // Before anything is read, so that there is no shared index that others could join.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        let kib = i64::try_from(cache_bytes / 1024).unwrap_or(i64::MAX);
        connection.pragma_update(None, "cache_size", -kib)?;
        let store = Self {
            connection: Mutex::new(connection),
            sql: Sql::new(table),
        };
        store.prepare()?;
        Ok(store)
    }

    /// Makes what is missing. A log whose triggers were not there may lack keys: then no older
    /// filter is caught up from it.
    fn prepare(&self) -> Result<(), Error> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for sql in &self.sql.tables {
            transaction.execute(sql, [])?;
        }
        let mut whole = transaction
            .query_row(&self.sql.last, [], |_| Ok(()))
            .optional()?
            .is_some();
        for (name, sql) in &self.sql.triggers {
            let found = "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = ?1";
            let found: Option<String> = transaction
                .query_row(found, [name], |row| row.get(0))
                .optional()?;
            if found.as_deref() == Some(sql) {
                continue;
            }
            if found.is_some() {
                let quoted = name.replace('"', "\"\"");
                transaction.execute(&format!("DROP TRIGGER \"{quoted}\""), [])?;
            }
            transaction.execute(sql, [])?;
            whole = false;
        }
        if !whole {
            transaction.execute(&self.sql.first_row, [])?;
            transaction.execute(&self.sql.forget, [])?;
        }
        transaction.commit()
    }

    /// Runs something on the connection, such as a query of one's own. What writes to the table
    /// is to be run by [`crate::Front::change`].
    pub fn with_connection<R>(&self, run: impl FnOnce(&mut Connection) -> R) -> R {
        run(&mut self.connection())
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The mark in the first two columns of a row.
fn mark_of(row: &Row<'_>) -> Result<Mark, Error> {
    let number = |index| row.get::<_, i64>(index).map(i64::cast_unsigned);
    Ok(Mark {
        generation: number(0)?,
        stamp: number(1)?,
    })
}

/// The bytes of a column; those of no key for what is neither blob nor text.
fn bytes_of<'a>(row: &'a Row<'_>, index: usize) -> Result<Option<&'a [u8]>, Error> {
    Ok(match row.get_ref(index)? {
        ValueRef::Blob(bytes) | ValueRef::Text(bytes) => Some(bytes),
        _ => None,
    })
}

impl Store for SqliteStore {
    type Error = Error;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let connection = self.connection();
        let mut get = connection.prepare_cached(&self.sql.get)?;
        get.query_row([key], |row| {
            Ok(bytes_of(row, 0)?.unwrap_or_default().to_vec())
        })
        .optional()
    }

    fn scan(&self, prefix: &[u8], visit: &mut VisitEntry<'_>) -> Result<(), Error> {
        let connection = self.connection();
        let mut scan = connection.prepare_cached(&self.sql.scan)?;
        let mut rows = scan.query([prefix])?;
        while let Some(row) = rows.next()? {
            let key = bytes_of(row, 0)?.unwrap_or_default();
            let value = bytes_of(row, 1)?.unwrap_or_default();
            if !key.starts_with(prefix) || visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn keys(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        let connection = self.connection();
        let mut keys = connection.prepare_cached(&self.sql.keys)?;
        let mut rows = keys.query([])?;
        while let Some(row) = rows.next()? {
            if visit(bytes_of(row, 0)?.unwrap_or_default()).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn apply(&self, changes: &[Change], trim: Option<u64>) -> Result<(), Error> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut put = transaction.prepare_cached(&self.sql.put)?;
            let mut remove = transaction.prepare_cached(&self.sql.remove)?;
            for change in changes {
                match change {
                    Change::Put { key, value } => put.execute(params![key, value])?,
                    Change::Remove { key } => remove.execute([key])?,
                };
            }
            if let Some(generation) = trim {
                let mut trim = transaction.prepare_cached(&self.sql.trim)?;
                trim.execute([generation.cast_signed()])?;
            }
        }
        transaction.commit()
    }

    fn mark(&self) -> Result<Mark, Error> {
        let connection = self.connection();
        let mut last = connection.prepare_cached(&self.sql.last)?;
        let mark = last.query_row([], mark_of).optional()?;
        // Of a log that somebody emptied: one that no file has.
        Ok(mark.unwrap_or_else(|| Mark::fresh(0)))
    }

    fn keys_since(&self, mark: Mark, visit: &mut Visit<'_>) -> Result<Option<Mark>, Error> {
        let connection = self.connection();
        let generation = mark.generation.cast_signed();
        let stamp = connection
            .prepare_cached(&self.sql.stamp)?
            .query_row([generation], |row| row.get::<_, i64>(0))
            .optional()?;
        if stamp != Some(mark.stamp.cast_signed()) {
            return Ok(None);
        }
        let mut last = mark;
        let mut since = connection.prepare_cached(&self.sql.since)?;
        let mut rows = since.query([generation])?;
        while let Some(row) = rows.next()? {
            last = mark_of(row)?;
            // Rows without a key only begin a log.
            if let Some(key) = bytes_of(row, 2)?
                && visit(key).is_break()
            {
                break;
            }
        }
        Ok(Some(last))
    }

    fn restart_log(&self) -> Result<(), Error> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute(&self.sql.first_row, [])?;
        transaction.execute(&self.sql.forget, [])?;
        transaction.commit()
    }

    fn len_hint(&self) -> Result<u64, Error> {
        let connection = self.connection();
        let count: i64 = connection.query_row(&self.sql.count, [], |row| row.get(0))?;
        Ok(count.max(0).cast_unsigned())
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("get", &self.sql.get)
            .finish_non_exhaustive()
    }
}
