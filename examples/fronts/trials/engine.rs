//! The engines that are tried.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;
use petal_front::{RedbStore, SqliteStore, Store};

/// By name, as a flag takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Named {
    Redb,
    Sqlite,
}

impl Named {
    pub(crate) const ALL: [Self; 2] = [Self::Redb, Self::Sqlite];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Redb => "redb",
            Self::Sqlite => "sqlite",
        }
    }
}

pub(crate) trait Engine: Store + Sized {
    fn open(path: &Path, cache_bytes: usize) -> Result<Self>;

    /// Of a store that is closed.
    fn files(path: &Path) -> Vec<PathBuf>;
}

impl Engine for RedbStore {
    fn open(path: &Path, cache_bytes: usize) -> Result<Self> {
        let mut builder = redb::Builder::new();
        Ok(Self::open(
            builder.set_cache_size(cache_bytes),
            path,
            "keys",
        )?)
    }

    fn files(path: &Path) -> Vec<PathBuf> {
        vec![path.to_path_buf()]
    }
}

impl Engine for SqliteStore {
    fn open(path: &Path, cache_bytes: usize) -> Result<Self> {
        Ok(Self::open(path, "keys", cache_bytes as u64)?)
    }

    fn files(path: &Path) -> Vec<PathBuf> {
        let wal = PathBuf::from(format!("{}-wal", path.display()));
        vec![path.to_path_buf(), wal]
    }
}
