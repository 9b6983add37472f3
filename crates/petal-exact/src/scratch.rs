//! Temporary files that leave nothing behind.
//!
//! Owns where they are made and what is refused there. A file has no name from the start where
//! the system can do that; elsewhere its name is removed as soon as it is open, and what a
//! process killed in between has left is removed by the next one. So nothing has to be done on
//! success, failure or a signal: the system frees a file with its last descriptor.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock, statvfs};

use crate::error::Error;

/// How the name of a temporary file begins and ends, where it has one for a moment.
const PREFIX: &str = ".petal-exact-";
const SUFFIX: &str = ".tmp";

/// A directory for temporary files.
#[derive(Debug, Clone)]
pub struct Scratch {
    directory: PathBuf,
    /// Whether it was looked at.
    checked: bool,
}

impl Scratch {
    /// In a directory. What a killed process has left there is removed.
    ///
    /// # Errors
    /// If it is no directory, or on a file system in memory (tmpfs, ramfs): files there would
    /// take the memory that they are to save.
    pub fn new(directory: impl Into<PathBuf>) -> Result<Self, Error> {
        let mut directory = directory.into();
        if directory.as_os_str().is_empty() {
            directory.push(".");
        }
        let failed = |error| {
            Error::io(
                format!("use {} for temporary files", directory.display()),
                error,
            )
        };
        if !fs::metadata(&directory).map_err(failed)?.is_dir() {
            return Err(failed(io::ErrorKind::NotADirectory.into()));
        }
        if is_in_memory(&directory) {
            return Err(Error::MemoryFileSystem { directory });
        }
        remove_left(&directory);
        Ok(Self {
            directory,
            checked: true,
        })
    }

    /// In a directory that will probably not be needed: it is looked at with the first file.
    pub(crate) fn later(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            checked: false,
        }
    }

    /// A new empty file, readable and writable, that is gone when it is closed.
    ///
    /// # Errors
    /// If none can be made in the directory.
    pub fn file(&self) -> Result<File, Error> {
        if !self.checked {
            return Self::new(&self.directory)?.file();
        }
        unnamed(&self.directory)
            .map_or_else(|| self.named(), Ok)
            .map_err(|error| {
                let place = self.directory.display();
                Error::io(format!("create a temporary file in {place}"), error)
            })
    }

    /// A file whose name is removed at once.
    fn named(&self) -> io::Result<File> {
        loop {
            let random = RandomState::new().hash_one(0);
            let path = self
                .directory
                .join(format!("{PREFIX}{random:016x}{SUFFIX}"));
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path);
            match file {
                Ok(file) => {
                    // Whoever cleans up may have been faster: then the name is gone already.
                    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
                    return match fs::remove_file(&path) {
                        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                        _ => Ok(file),
                    };
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Refuses to go on if fewer than `bytes` bytes are free. A file system that does not tell is
    /// trusted.
    pub(crate) fn check_room(&self, bytes: u64) -> Result<(), Error> {
        let Ok(system) = statvfs(&self.directory) else {
            return Ok(());
        };
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        if system.f_blocks > 0 && free < bytes {
            return Err(Error::NoRoom {
                directory: self.directory.clone(),
                needed: bytes,
                free,
            });
        }
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn unnamed(directory: &Path) -> Option<File> {
    use rustix::fs::{Mode, open};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    open(directory, flags, Mode::from_raw_mode(0o600))
        .ok()
        .map(File::from)
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_: &Path) -> Option<File> {
    None
}

/// Whether files in a directory are kept in memory.
#[cfg(target_os = "linux")]
fn is_in_memory(directory: &Path) -> bool {
    // statfs(2): TMPFS_MAGIC, RAMFS_MAGIC, HUGETLBFS_MAGIC.
    const IN_MEMORY: [u32; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];
    rustix::fs::statfs(directory).is_ok_and(|system| {
        IN_MEMORY.iter().any(|&magic| {
            // Some machines sign-extend the number.
            u32::try_from(system.f_type & 0xffff_ffff).is_ok_and(|kind| kind == magic)
        })
    })
}

#[cfg(not(target_os = "linux"))]
fn is_in_memory(_: &Path) -> bool {
    false
}

/// Removes named files of processes that were killed. Nobody else can be told of a failure.
fn remove_left(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries
        .flatten()
        .filter(|entry| is_ours(&entry.file_name()))
    {
        let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(entry.path());
        // A living process holds the lock.
        if let Ok(file) = opened
            && file.metadata().is_ok_and(|facts| facts.is_file())
            && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_ours(name: &OsStr) -> bool {
    let middle = name
        .as_bytes()
        .strip_prefix(PREFIX.as_bytes())
        .and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
    middle.is_some_and(|m| m.len() == 16 && m.iter().all(u8::is_ascii_hexdigit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// A scratch wherever tests run, be it in memory.
    fn scratch(directory: &Path) -> Scratch {
        Scratch {
            directory: directory.to_owned(),
            checked: true,
        }
    }

    #[test]
    fn files_have_no_name() {
        let directory = tempfile::tempdir().unwrap();
        let scratch = scratch(directory.path());
        for make in [Scratch::file, |s: &Scratch| Ok(s.named().unwrap())] {
            let mut file = make(&scratch).unwrap();
            assert_eq!(names(directory.path()), [""; 0]);
            file.write_all(b"text").unwrap();
            file.rewind().unwrap();
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "text");
        }
    }

    #[test]
    fn only_files_of_dead_processes_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let (dead, living) = (
            ".petal-exact-0123456789abcdef.tmp",
            ".petal-exact-0000000000000000.tmp",
        );
        for name in [dead, living, "other", ".petal-exact-0123.tmp"] {
            fs::write(at(name), "x").unwrap();
        }
        std::os::unix::fs::symlink("other", at(".petal-exact-1111111111111111.tmp")).unwrap();
        let file = File::open(at(living)).unwrap();
        flock(&file, FlockOperation::LockExclusive).unwrap();
        remove_left(directory.path());
        assert!(!at(dead).exists());
        assert_eq!(names(directory.path()).len(), 4);
    }

    #[test]
    fn memory_and_missing_directories_are_refused() {
        let error = Scratch::new("/no such directory").unwrap_err().to_string();
        assert!(error.contains("no such directory"), "{error}");
        if Path::new("/dev/shm").is_dir() && is_in_memory(Path::new("/dev/shm")) {
            let error = Scratch::new("/dev/shm").unwrap_err().to_string();
            assert!(
                error.contains("/dev/shm") && error.contains("--tmp"),
                "{error}"
            );
        }
        let directory = tempfile::tempdir().unwrap();
        let error = scratch(directory.path()).check_room(u64::MAX).unwrap_err();
        assert!(error.to_string().contains("are free"), "{error}");
        scratch(directory.path()).check_room(1).unwrap();
    }
}
