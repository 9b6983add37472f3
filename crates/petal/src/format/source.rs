//! Where the bytes of a file come from: the file, or memory.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::error::{Error, Result, not_a_file};

/// Bytes at offsets.
pub(super) trait Source {
    /// How many there are.
    fn len(&self) -> u64;

    /// `len` bytes at an offset, in place or read into `scratch`. The caller
    /// has checked that they are there.
    fn read<'a>(&'a self, offset: u64, len: usize, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]>;

    /// Whether these bytes are known to be zeros that take no room. Never
    /// true without cause; false where it cannot be found out.
    fn is_hole(&self, offset: u64, len: usize) -> bool;
}

impl Source for [u8] {
    fn len(&self) -> u64 {
        Self::len(self) as u64
    }

    fn read<'a>(&'a self, offset: u64, len: usize, _: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        usize::try_from(offset)
            .ok()
            .and_then(|start| self.get(start..start.checked_add(len)?))
            .ok_or_else(|| Error::io("read", None, std::io::ErrorKind::UnexpectedEof.into()))
    }

    fn is_hole(&self, _: u64, _: usize) -> bool {
        false
    }
}

/// An open regular file.
#[derive(Debug)]
pub(super) struct FileSource {
    pub(super) file: File,
    pub(super) path: PathBuf,
    len: u64,
}

impl FileSource {
    /// Opens a regular file for reading, and for writing if `write`.
    ///
    /// # Errors
    /// If there is none or it may not be opened, or if it is something else,
    /// such as a directory. A pipe without a writer is not waited for.
    pub(super) fn open(path: &Path, write: bool) -> Result<Self> {
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
        let opened = OpenOptions::new()
            .read(true)
            .write(write)
            .custom_flags(flags)
            .open(path);
        let file = match opened {
            Ok(file) => file,
            // Asking why would be too late: say what is there instead.
            Err(error) => {
                return Err(match std::fs::metadata(path) {
                    Ok(found) if !found.is_file() => not_a_file(path, found.file_type()),
                    _ => Error::io("open", Some(path), error),
                });
            }
        };
        let metadata = file
            .metadata()
            .map_err(|error| Error::io("inspect", Some(path), error))?;
        if !metadata.is_file() {
            return Err(not_a_file(path, metadata.file_type()));
        }
        Ok(Self {
            file,
            path: path.to_path_buf(),
            len: metadata.len(),
        })
    }
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read<'a>(&'a self, offset: u64, len: usize, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        scratch.resize(len, 0);
        self.file
            .read_exact_at(scratch, offset)
            .map_err(|error| Error::io("read", Some(&self.path), error))?;
        Ok(scratch)
    }

    #[cfg(target_os = "linux")]
    fn is_hole(&self, offset: u64, len: usize) -> bool {
        // Moves the file's position, which nothing here uses.
        match rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Data(offset)) {
            Ok(data) => data >= offset.saturating_add(len as u64),
            Err(error) => error == rustix::io::Errno::NXIO,
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn is_hole(&self, _: u64, _: usize) -> bool {
        false
    }
}
