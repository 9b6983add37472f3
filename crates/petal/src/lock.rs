//! One writer at a time: the lock on `FILE.lock`.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::atomic::resolve_links;
use crate::error::{Error, Result};

/// Held by the one writer of a file: a [`crate::MappedWriter`], or a program
/// that reads a filter, changes it and saves it again. Released when it is
/// dropped or its process ends. The lock file stays: removing it would let two
/// writers hold the locks of two files of one name.
#[derive(Debug)]
pub struct FileLock {
    file: File,
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing alone would not do: a child process between fork and exec
        // has the descriptor as well, and with it the lock.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

impl FileLock {
    /// Takes the lock on `FILE.lock` for a file, which need not exist, without
    /// waiting. Symbolic links to the file are followed.
    ///
    /// # Errors
    /// [`Error::Locked`] if another writer has it, be it of this process;
    /// [`Error::Io`] if the lock file cannot be made.
    pub fn acquire(path: impl AsRef<Path>) -> Result<Self> {
        let path = lock_path(&resolve_links(path.as_ref())?);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(no_surprises())
            .open(&path)
            .map_err(|error| Error::io("create the lock file", Some(&path), error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { file }),
            Err(Errno::WOULDBLOCK) => Err(Error::Locked { lock: path }),
            Err(error) => Err(Error::io("lock", Some(&path), error.into())),
        }
    }
}

/// `FILE.lock` for `FILE`.
fn lock_path(target: &Path) -> PathBuf {
    let mut path = target.as_os_str().to_owned();
    path.push(".lock");
    path.into()
}

/// Neither follow a link that somebody put there, nor wait for a pipe.
fn no_surprises() -> i32 {
    i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_writer_is_told_which_file_is_held() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("filter");
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("filter", &link).unwrap();
        let first = FileLock::acquire(&path).unwrap();
        for name in [&path, &link] {
            let error = FileLock::acquire(name).unwrap_err();
            assert!(error.to_string().contains("filter.lock"), "{error}");
            assert!(matches!(error, Error::Locked { .. }));
        }
        drop(first);
        FileLock::acquire(&link).unwrap();
        assert!(directory.path().join("filter.lock").exists());
        assert!(!directory.path().join("link.lock").exists());
    }

    #[test]
    fn a_dropped_lock_is_free_while_children_are_started() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("filter");
        std::thread::scope(|scope| {
            let spawner = scope.spawn(|| {
                for _ in 0..200 {
                    std::process::Command::new("true").status().unwrap();
                }
            });
            while !spawner.is_finished() {
                drop(FileLock::acquire(&path).unwrap());
            }
        });
    }
}
