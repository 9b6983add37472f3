//! Files that appear under their name only when they are whole.
//!
//! Owns [`AtomicFile`]: contents written beside the target, made durable and
//! given its name by `commit`. It does not know what is written: filters and
//! text are the same to it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::fstatvfs;
use rustix::io::Errno;

use crate::error::{Error, Result, not_a_file};

/// What becomes of a file that has the name already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// It stays, and the new one is refused.
    Refuse,
    /// The new one takes its place.
    Replace,
}

/// End of the name of every temporary file.
const SUFFIX: &str = ".petal-tmp";
/// Hexadecimal digits before it.
const DIGITS: usize = 16;
/// Bytes that a file name may have on every common file system.
const NAME_MAX: usize = 255;
/// Links that are followed from a name to its file, as many as Linux follows.
const MAX_LINKS: usize = 40;
/// Random names that are tried.
const MAX_TRIES: usize = 100;

/// A file that appears under its name when it is complete and durable. Until
/// [`Self::commit`] has done that, an earlier file of the name is untouched.
/// Dropped without a commit, it is gone.
///
/// It is written without a name where the file system can do that, so that
/// nothing is left of it if the process is killed; elsewhere, and for the moment
/// in which it replaces another, under a hidden name (`.NAME.….petal-tmp`) in the
/// same directory. What a killed process leaves under such a name is removed when
/// a file for the same target is made next.
///
/// The new file has the permissions of the one it replaces, and its owner and
/// group as far as the system allows; else the permissions that the umask
/// leaves. A symbolic link goes on pointing to the file it names.
///
/// ```
/// use std::io::Write;
/// use petal::{AtomicFile, Overwrite};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("out.txt");
/// let mut out = AtomicFile::create(&path, Overwrite::Replace)?;
/// out.write_all(b"all or nothing\n")?;
/// assert!(!path.exists());
/// out.commit()?;
/// assert_eq!(std::fs::read(&path)?, b"all or nothing\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    /// The name it has meanwhile, if it has one.
    temporary: Option<PathBuf>,
    target: PathBuf,
    overwrite: Overwrite,
}

impl AtomicFile {
    /// Makes an empty file without a name, or with a temporary one.
    ///
    /// # Errors
    /// If the target exists and is not to be replaced, may not be written to,
    /// or is something else than a regular file, or if no file can be made in
    /// its directory.
    pub fn create(target: impl AsRef<Path>, overwrite: Overwrite) -> Result<Self> {
        Self::create_as(target.as_ref(), overwrite, unnamed)
    }

    /// [`Self::create`] with a way to get a file without a name.
    fn create_as(
        path: &Path,
        overwrite: Overwrite,
        unnamed: impl FnOnce(&Path) -> Option<File>,
    ) -> Result<Self> {
        if overwrite == Overwrite::Refuse && fs::symlink_metadata(path).is_ok() {
            return Err(Error::Exists {
                path: path.to_path_buf(),
            });
        }
        if path.as_os_str().is_empty() {
            return Err(Error::io("create", Some(path), Errno::NOENT.into()));
        }
        let target = resolve_links(path)?;
        // Asked of the path: what a link below /proc says is no name to be asked.
        let previous = match fs::metadata(path) {
            Ok(found) if found.is_file() => Some(found),
            Ok(found) => return Err(not_a_file(path, found.file_type())),
            Err(_) => None,
        };
        let is_directory = path.as_os_str().as_bytes().ends_with(b"/");
        if is_directory || target.file_name().is_none() {
            return Err(Error::NotAFile {
                path: path.to_path_buf(),
                found: "a directory",
            });
        }
        if previous.is_some() {
            // Renaming would get past a protection that is meant.
            OpenOptions::new()
                .write(true)
                .open(&target)
                .map_err(|error| Error::io("replace", Some(path), error))?;
        }
        let (file, temporary) = match unnamed(directory_of(&target)) {
            Some(file) => (file, None),
            None => {
                let (file, name) = with_random_name(&target, create_new).map_err(|error| {
                    Error::io("create a temporary file beside", Some(path), error)
                })?;
                (file, Some(name))
            }
        };
        // Shows others that it is in use; where there are no locks, nothing is removed.
        let _ = file.try_lock();
        remove_left(&target);
        let new = Self {
            file,
            temporary,
            target,
            overwrite,
        };
        if let Some(previous) = previous {
            new.resemble(&previous)
                .map_err(|error| new.error("set the permissions of", error))?;
        }
        Ok(new)
    }

    /// Takes over owner, group and permissions.
    fn resemble(&self, previous: &Metadata) -> io::Result<()> {
        let own = self.file.metadata()?;
        if (own.uid(), own.gid()) != (previous.uid(), previous.gid()) {
            // Only root may give files away, but a group is often allowed.
            let _ = fchown(&self.file, None, Some(previous.gid()));
            let _ = fchown(&self.file, Some(previous.uid()), None);
        }
        let mode = Permissions::from_mode(previous.mode() & 0o777);
        self.file.set_permissions(mode)
    }

    /// The file, to be written to.
    #[must_use]
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// The name under which the file will appear, links followed.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Refuses to go on if the file system has less than `bytes` free. A file
    /// system that does not tell is trusted.
    ///
    /// # Errors
    /// [`Error::NoRoom`].
    pub fn check_room(&self, bytes: u64) -> Result<()> {
        let Ok(system) = fstatvfs(&self.file) else {
            return Ok(());
        };
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        if system.f_blocks > 0 && free < bytes {
            return Err(Error::NoRoom {
                path: self.target.clone(),
                needed: bytes,
                free,
            });
        }
        Ok(())
    }

    /// Makes the file durable and gives it its name.
    ///
    /// # Errors
    /// If a file of that name has appeared meanwhile and is not to be
    /// replaced, or the system refuses. The new file is gone then, and the
    /// earlier one, if any, is as it was, unless it was the last step that
    /// failed: making the new name durable.
    pub fn commit(mut self) -> Result<()> {
        self.file
            .sync_all()
            .map_err(|error| self.error("write", error))?;
        self.give_name().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::Exists {
                path: self.target.clone(),
            },
            _ => self.error("complete", error),
        })?;
        self.temporary = None;
        sync_directory(directory_of(&self.target)).map_err(|error| self.error("write", error))
    }

    fn give_name(&mut self) -> io::Result<()> {
        let temporary = match (&self.temporary, self.overwrite) {
            (Some(temporary), _) => temporary,
            (None, Overwrite::Refuse) => return link(&self.file, &self.target),
            // A link cannot replace a file: a name in between is needed.
            (None, Overwrite::Replace) => {
                let ((), name) = with_random_name(&self.target, |name| link(&self.file, name))?;
                self.temporary.insert(name)
            }
        };
        match self.overwrite {
            Overwrite::Replace => fs::rename(temporary, &self.target),
            Overwrite::Refuse => rename_new(temporary, &self.target),
        }
    }

    fn error(&self, action: &'static str, source: io::Error) -> Error {
        Error::io(action, Some(&self.target), source)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Nobody can be told.
            let _ = fs::remove_file(temporary);
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// The file that a path names, which need not exist: symbolic links in its
/// last component followed.
pub(crate) fn resolve_links(path: &Path) -> Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            // An absolute link replaces the whole path.
            Ok(link) => path = directory_of(&path).join(link),
            Err(_) => return Ok(path),
        }
    }
    Err(Error::io("follow", Some(&path), Errno::LOOP.into()))
}

/// The directory of a file.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// The beginning of the hidden names beside a target.
fn prefix_of(target: &Path) -> Vec<u8> {
    let name = target.file_name().unwrap_or_default().as_bytes();
    let kept = &name[..name.len().min(NAME_MAX - 2 - DIGITS - SUFFIX.len())];
    [b".", kept, b"."].concat()
}

/// Removes what killed processes have left of files for a target. A living one
/// holds the lock of its file. Nobody can be told of a failure.
fn remove_left(target: &Path) {
    let prefix = prefix_of(target);
    let is_ours = |name: &OsStr| {
        let digits = name
            .as_bytes()
            .strip_prefix(&prefix[..])
            .and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
        digits.is_some_and(|d| d.len() == DIGITS && d.iter().all(u8::is_ascii_hexdigit))
    };
    let Ok(entries) = fs::read_dir(directory_of(target)) else {
        return;
    };
    for entry in entries
        .flatten()
        .filter(|entry| is_ours(&entry.file_name()))
    {
        // A link or a pipe of such a name is somebody else's.
        if entry.file_type().is_ok_and(|kind| kind.is_file())
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Calls `make` with hidden names beside the target until it does not say
/// that there is one already.
fn with_random_name<T>(
    target: &Path,
    mut make: impl FnMut(&Path) -> io::Result<T>,
) -> io::Result<(T, PathBuf)> {
    let prefix = prefix_of(target);
    let mut tries = 0;
    loop {
        let random = RandomState::new().hash_one(tries);
        let random = format!("{random:016x}{SUFFIX}");
        let name = [&prefix[..], random.as_bytes()].concat();
        let path = directory_of(target).join(OsString::from_vec(name));
        tries += 1;
        match make(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < MAX_TRIES => {}
            made => return Ok((made?, path)),
        }
    }
}

/// A new file that is readable and writable.
fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
}

/// A new file without a name in a directory, if that is possible here and it
/// can be given a name later.
#[cfg(target_os = "linux")]
fn unnamed(directory: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(open(directory, flags, Mode::from_raw_mode(0o666)).ok()?);
    fs::metadata(path_of(&file)).ok()?;
    Some(file)
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_: &Path) -> Option<File> {
    None
}

/// Gives an open file a name that is not taken.
fn link(file: &File, name: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    Ok(linkat(
        CWD,
        path_of(file),
        CWD,
        name,
        AtFlags::SYMLINK_FOLLOW,
    )?)
}

/// What a file without a name can be called in this process.
fn path_of(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Renames a file unless the new name is taken.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            // The file system does not know the flag.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            done => return Ok(done?),
        }
    }
    fs::hard_link(from, to)?;
    fs::remove_file(from)
}

/// Makes the names in a directory durable, such as that of a file that was made
/// there by other means than [`AtomicFile`].
///
/// # Errors
/// If the system fails to. That a file system does not offer it, or that the
/// directory may not be read, is none.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    // A directory that may not be read can still be written to.
    let Ok(opened) = File::open(directory) else {
        return Ok(());
    };
    match opened.sync_all() {
        // Some file systems do not offer it.
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names in a directory, sorted.
    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn write(path: &Path, overwrite: Overwrite, text: &str) -> Result<()> {
        let mut file = AtomicFile::create(path, overwrite)?;
        file.write_all(text.as_bytes()).unwrap();
        file.commit()
    }

    /// With and without a file system that has files without names.
    fn both_ways() -> [fn(&Path, Overwrite) -> Result<AtomicFile>; 2] {
        [
            |path, overwrite| AtomicFile::create_as(path, overwrite, unnamed),
            |path, overwrite| AtomicFile::create_as(path, overwrite, |_| None),
        ]
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        for create in both_ways() {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("a");
            let mut file = create(&path, Overwrite::Refuse).unwrap();
            file.write_all(b"half").unwrap();
            // What a kill would leave behind.
            let left = usize::from(file.temporary.is_some());
            assert_eq!(names(directory.path()).len(), left);
            assert!(!path.exists());
            drop(file);
            assert_eq!(names(directory.path()), [""; 0]);

            for (text, overwrite) in [
                ("one", Overwrite::Refuse),
                ("two", Overwrite::Replace),
                ("three", Overwrite::Replace),
            ] {
                let mut file = create(&path, overwrite).unwrap();
                file.write_all(text.as_bytes()).unwrap();
                file.commit().unwrap();
                assert_eq!(fs::read_to_string(&path).unwrap(), text);
                let mut file = create(&path, Overwrite::Replace).unwrap();
                file.write_all(b"half").unwrap();
                drop(file);
                assert_eq!(fs::read_to_string(&path).unwrap(), text);
                assert_eq!(names(directory.path()), ["a"]);
            }
            // The name is taken by something that cannot be replaced.
            let file = create(&path, Overwrite::Replace).unwrap();
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
            let error = file.commit().unwrap_err();
            assert!(error.to_string().contains("cannot complete"), "{error}");
            assert_eq!(names(directory.path()), ["a"]);
        }
    }

    /// A kill between getting a hidden name and replacing the target.
    #[test]
    fn what_a_killed_process_has_left_is_removed_and_nothing_else() {
        for create in both_ways() {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("a");
            let left = directory.path().join(".a.0123456789abcdef.petal-tmp");
            fs::write(&left, "left").unwrap();
            let others = [
                ".a.0123456789abcde.petal-tmp",
                ".a.0123456789abcdeg.petal-tmp",
                ".ab.0123456789abcdef.petal-tmp",
                "a.0123456789abcdef.petal-tmp",
            ];
            for name in others {
                fs::write(directory.path().join(name), "theirs").unwrap();
            }
            // One that is being written stays.
            let living = AtomicFile::create_as(&path, Overwrite::Replace, |_| None).unwrap();
            let in_use = living.temporary.clone().unwrap();
            assert!(!left.exists());
            fs::write(&left, "left").unwrap();
            let file = create(&path, Overwrite::Replace).unwrap();
            assert!(!left.exists() && in_use.exists());
            file.commit().unwrap();
            living.commit().unwrap();
            assert_eq!(names(directory.path()).len(), 1 + others.len());
        }
    }

    #[test]
    fn an_existing_file_is_refused_early_and_late() {
        for create in both_ways() {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("a");
            let mut late = create(&path, Overwrite::Refuse).unwrap();
            late.write_all(b"late").unwrap();
            fs::write(&path, "first").unwrap();
            assert!(matches!(late.commit(), Err(Error::Exists { .. })));
            let early = create(&path, Overwrite::Refuse).unwrap_err();
            assert!(matches!(early, Error::Exists { .. }), "{early}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "first");
            assert_eq!(names(directory.path()), ["a"]);
        }
    }

    #[test]
    fn permissions_are_those_of_the_replaced_file() {
        for create in both_ways() {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("a");
            let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
            let plain = directory.path().join("plain");
            File::create(&plain).unwrap();
            let new = create(&path, Overwrite::Refuse).unwrap();
            new.commit().unwrap();
            assert_eq!(mode(&path), mode(&plain));
            fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
            let new = create(&path, Overwrite::Replace).unwrap();
            assert_eq!(new.file().metadata().unwrap().mode() & 0o777, 0o640);
            new.commit().unwrap();
            assert_eq!(mode(&path), 0o640);
            // Root may write to everything.
            fs::set_permissions(&path, Permissions::from_mode(0o440)).unwrap();
            if OpenOptions::new().write(true).open(&path).is_err() {
                let error = create(&path, Overwrite::Replace).unwrap_err();
                assert!(error.to_string().contains("cannot replace"), "{error}");
            }
        }
    }

    #[test]
    fn links_are_followed_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("inner/file", &link).unwrap();
        assert!(matches!(
            write(&link, Overwrite::Refuse, "x"),
            Err(Error::Exists { .. })
        ));
        write(&link, Overwrite::Replace, "one").unwrap();
        write(&link, Overwrite::Replace, "two").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(inner.join("file")).unwrap(), "two");
        assert_eq!(names(&inner), ["file"]);
        let circle = directory.path().join("circle");
        std::os::unix::fs::symlink("circle", &circle).unwrap();
        assert!(write(&circle, Overwrite::Replace, "x").is_err());
    }

    #[test]
    fn only_regular_files_are_replaced() {
        let directory = tempfile::tempdir().unwrap();
        for (path, what) in [
            (directory.path(), "a directory"),
            (Path::new("/dev/null"), "a device"),
            (Path::new(".."), "a directory"),
            (Path::new("/"), "a directory"),
        ] {
            let error = AtomicFile::create(path, Overwrite::Replace).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
        }
        let slash = directory.path().join("new/");
        let error = AtomicFile::create(&slash, Overwrite::Replace).unwrap_err();
        assert!(error.to_string().contains("a directory"), "{error}");
        for missing in [directory.path().join("no/such"), PathBuf::new()] {
            let error = AtomicFile::create(&missing, Overwrite::Replace).unwrap_err();
            let expected = format!("{}: No such file", missing.display());
            assert!(error.to_string().contains(&expected), "{error}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_has_lost_its_name_is_not_replaced() {
        use std::os::fd::AsRawFd;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let file = File::create(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let by_number = format!("/dev/fd/{}", file.as_raw_fd());
        let error = AtomicFile::create(by_number, Overwrite::Replace).unwrap_err();
        assert!(error.to_string().contains("cannot replace"), "{error}");
        assert_eq!(names(directory.path()), [""; 0]);
    }

    #[test]
    fn long_names_have_temporary_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("n".repeat(NAME_MAX));
        for create in both_ways() {
            let mut file = create(&path, Overwrite::Replace).unwrap();
            file.write_all(b"x").unwrap();
            file.commit().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "x");
        }
        assert_eq!(names(directory.path()).len(), 1);
    }

    #[test]
    fn room_is_checked() {
        let directory = tempfile::tempdir().unwrap();
        let file = AtomicFile::create(directory.path().join("a"), Overwrite::Refuse).unwrap();
        file.check_room(0).unwrap();
        let error = file.check_room(u64::MAX).unwrap_err();
        assert!(
            error.to_string().contains("18446744073709551615"),
            "{error}"
        );
        assert!(matches!(error, Error::NoRoom { .. }));
    }
}
