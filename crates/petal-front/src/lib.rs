//! A filter in front of a key-value store, kept exactly as fresh as the store.
//!
//! ```
//! # #[cfg(feature = "redb")] {
//! use petal_front::{Batch, Front, Options, RedbStore};
//! # let folder = tempfile::tempdir()?;
//! # let (data, filter) = (folder.path().join("data.redb"), folder.path().join("data.petal"));
//!
//! let store = RedbStore::open(&mut redb::Builder::new(), &data, "pages")?;
//! let front = Front::open(store, &filter, Options::default())?;
//!
//! let mut batch = Batch::new();
//! batch.put("org.example/title", "Example");
//! front.write(&batch)?;
//!
//! assert_eq!(front.get("org.example/title")?.as_deref(), Some(&b"Example"[..]));
//! assert_eq!(front.get("org.example/author")?, None); // without a look at the store
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is promised
//!
//! * **Never a wrong "absent".** [`Front::get`] says so without asking the store only if the key
//!   is in no committed transaction: after a crash at any moment, with a filter file that is
//!   missing, damaged, of yesterday or of another store, and with a store that was set back to
//!   yesterday. Conditions: keys reach the table through the front or, in SQLite, in any way at
//!   all; see [`RedbStore`] and [`SqliteStore`].
//! * **The error is kept.** Of absent keys a share of at most [`Options::error`] is looked up in
//!   the store in vain, however many keys there are. Removed keys count as present until
//!   [`Front::rebuild`].
//! * **A commit costs no further wait for the disk.** New keys are also written to a log in the
//!   store, in the same transaction; the filter's file is saved from time to time.
//!
//! # How
//!
//! ```text
//!   write:  key ─▶ filter in memory ─▶ [ data, log row (generation, stamp, keys) ] commit
//!   save:   filter ─▶ file, with (generation, stamp) ─▶ later transaction trims the log
//!   open:   file's (generation, stamp) in the log?  yes: add the keys of later rows
//!                                                   no:  rebuild from the keys of the table
//! ```
//!
//! The filter has a key before the store commits it, so that no reader sees the key in the store
//! and not in the filter. The log is trimmed only behind what a durable file holds. A generation
//! alone would not do: a store that was set back and went on has other keys under the same
//! number. So each row of the log has a random stamp, and a file is caught up only from the row
//! that has its own.

mod error;
mod file;
mod front;
mod over;
#[cfg(feature = "redb")]
mod redb_store;
#[cfg(feature = "sqlite")]
mod sqlite_store;
mod store;

pub use error::{Error, Result};
pub use front::{Front, Opened, Options, Status};
pub use over::Over;
#[cfg(feature = "redb")]
pub use redb_store::RedbStore;
#[cfg(feature = "sqlite")]
pub use sqlite_store::SqliteStore;
pub use store::{Batch, Change, Mark, Store, Visit, VisitEntry};
