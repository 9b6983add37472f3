//! Small things the input and the output both need from the operating system:
//! names fit for a message, the identity of a file, patience with descriptors
//! that do not block.

use std::fs::Metadata;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What tells one file from another, whatever names lead to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The identity of the file these facts belong to.
    pub(crate) fn of(facts: &Metadata) -> Self {
        Self {
            device: facts.dev(),
            inode: facts.ino(),
        }
    }
}

/// What can be read only once, if that is what a path, or `-`, leads to.
pub(crate) fn pipe(path: &Path) -> Option<FileId> {
    let is_stdin = path.as_os_str() == "-";
    let path = if is_stdin {
        Path::new("/dev/stdin")
    } else {
        path
    };
    let facts = path.metadata().ok()?;
    let kind = facts.file_type();
    (is_stdin || kind.is_fifo() || kind.is_socket()).then(|| FileId::of(&facts))
}

/// What changes when somebody writes to a file or puts another in its place.
///
/// Writes through a memory mapping show when the system says so, at the latest
/// when they are written back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    id: FileId,
    bytes: u64,
    modified: (i64, i64),
}

impl Stamp {
    /// The stamp of the file these facts belong to.
    pub(crate) fn of(facts: &Metadata) -> Self {
        Self {
            id: FileId::of(facts),
            bytes: facts.len(),
            modified: (facts.mtime(), facts.mtime_nsec()),
        }
    }

    /// The size of the file.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The file that has it.
    pub(crate) const fn id(&self) -> FileId {
        self.id
    }
}

/// A path as one line of text: control characters are escaped, bytes that are no UTF-8 replaced.
pub(crate) fn display_name(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        return "(empty name)".to_owned();
    }
    let mut name = String::new();
    for c in path.to_string_lossy().chars() {
        if c.is_control() {
            name.extend(c.escape_default());
        } else {
            name.push(c);
        }
    }
    name
}

/// Repeats a read or a write that a signal broke off, and waits where the descriptor was
/// left in non-blocking mode by whoever shares it with us.
pub(crate) fn persevere<T>(
    fd: &impl AsFd,
    wait_for: PollFlags,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    loop {
        match attempt() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                match poll(&mut [PollFd::new(fd, wait_for)], None) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(e) => return Err(e.into()),
                }
            }
            done => return done,
        }
    }
}

/// Whether a read would not wait; true for files, and in case of doubt.
pub(crate) fn is_readable(fd: &impl AsFd) -> bool {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&now)).map_or(true, |ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn names_stay_on_one_line() {
        assert_eq!(display_name(Path::new("")), "(empty name)");
        assert_eq!(display_name(Path::new("a b.txt")), "a b.txt");
        assert_eq!(display_name(Path::new("a\nb\x1b[31m")), "a\\nb\\u{1b}[31m");
        assert_eq!(display_name(Path::new("ü")), "ü");
    }

    #[test]
    fn a_descriptor_that_does_not_block_is_waited_for() {
        let (mut reader, mut writer) = io::pipe().unwrap();
        let flags = rustix::fs::fcntl_getfl(&reader).unwrap();
        rustix::fs::fcntl_setfl(&reader, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
        let late = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            writer.write_all(b"late").unwrap();
        });
        let mut buffer = [0; 8];
        let fd = reader.try_clone().unwrap();
        let read = persevere(&fd, PollFlags::IN, || reader.read(&mut buffer)).unwrap();
        assert_eq!(&buffer[..read], b"late");
        late.join().unwrap();
    }
}
