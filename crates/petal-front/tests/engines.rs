//! What the tests share: both engines behind one trait, fronts on them, and the one question that
//! matters.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use petal_front::{Front, Options, RedbStore, SqliteStore, Store};

/// An engine that tests run on.
pub(crate) trait Engine: Store + std::fmt::Debug {
    fn open(path: &Path) -> Self;
    /// The store's files, to be copied while it is closed.
    fn files(path: &Path) -> Vec<PathBuf>;
}

impl Engine for RedbStore {
    fn open(path: &Path) -> Self {
        Self::open(redb::Builder::new().set_cache_size(8 << 20), path, "keys").unwrap()
    }

    fn files(path: &Path) -> Vec<PathBuf> {
        vec![path.to_path_buf()]
    }
}

impl Engine for SqliteStore {
    fn open(path: &Path) -> Self {
        Self::open(path, "keys", 8 << 20).unwrap()
    }

    fn files(path: &Path) -> Vec<PathBuf> {
        let beside = |end: &str| PathBuf::from(format!("{}{end}", path.display()));
        vec![path.to_path_buf(), beside("-wal")]
    }
}

/// A folder with a store and a filter.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    pub(crate) fn filter(&self) -> PathBuf {
        self.folder.path().join("filter.petal")
    }

    pub(crate) fn front<S: Engine>(&self, options: Options) -> Front<S> {
        Front::open(S::open(&self.store()), self.filter(), options).unwrap()
    }

    /// The store's files as they are.
    pub(crate) fn keep_store<S: Engine>(&self) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        let files = S::files(&self.store());
        files
            .into_iter()
            .map(|path| (path.clone(), std::fs::read(path).ok()))
            .collect()
    }

    pub(crate) fn put_back(kept: &[(PathBuf, Option<Vec<u8>>)]) {
        for (path, bytes) in kept {
            match bytes {
                Some(bytes) => std::fs::write(path, bytes).unwrap(),
                None => drop(std::fs::remove_file(path)),
            }
        }
    }
}

/// Options for a few keys with an error that tests can neglect.
pub(crate) fn small() -> Options {
    Options {
        items: 1000,
        error: 1e-9,
        save_every: u64::MAX,
        ..Options::default()
    }
}

/// Panics if the front would say "absent" of a key that its store has. Returns the keys.
pub(crate) fn check_all<S: Store>(front: &Front<S>) -> u64 {
    let mut keys = Vec::new();
    front
        .store()
        .keys(&mut |key| {
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        })
        .unwrap();
    for key in &keys {
        assert!(front.get(key).unwrap().is_some(), "wrong absent: {key:?}");
    }
    keys.len() as u64
}

/// Makes the same test for each engine.
macro_rules! on_both {
    ($($(#[$attribute:meta])* $name:ident;)*) => {
        mod redb_has {
            $($(#[$attribute])* #[test] fn $name() { super::$name::<petal_front::RedbStore>(); })*
        }
        mod sqlite_has {
            $($(#[$attribute])* #[test] fn $name() { super::$name::<petal_front::SqliteStore>(); })*
        }
    };
}
pub(crate) use on_both;
