//! Where results go: the standard output, a file that is replaced when all is well, or a
//! file that is written in place and can be relied on up to a length.
//!
//! `encode` compresses, `behind` has that done by another thread; replacing is the library's. What is written is the affair of the
//! verbs; messages do not come this way.

mod behind;
mod encode;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use petal::{AtomicFile, Overwrite, sync_directory};

use crate::compression::Compression;
use crate::os::{FileId, display_name};
use crate::units::format_count;
use behind::Behind;
use encode::Frames;

/// The name that stands for the standard output.
const STDOUT: &str = "-";

/// An error that names its output.
#[derive(Debug)]
pub(crate) struct OutputError {
    name: String,
    fault: OutputFault,
}

/// The kinds of failure.
#[derive(Debug)]
pub(crate) enum OutputFault {
    /// The system refused.
    Io {
        /// What was attempted, such as `create`.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Something else where a file belongs, such as `a directory`.
    NotAFile(&'static str),
    /// Only a regular file can be written in place.
    NotRegular,
    /// A file has fewer bytes than have been written to it.
    Shorter {
        /// The bytes it has.
        has: u64,
        /// The bytes to keep.
        keep: u64,
    },
}

impl OutputFault {
    /// For `map_err`: what the system said to an attempt.
    fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, source }
    }
}

/// The names in the library's errors are left out: [`OutputError`] has one.
impl From<petal::Error> for OutputFault {
    fn from(error: petal::Error) -> Self {
        match error {
            petal::Error::NotAFile { found, .. } => Self::NotAFile(found),
            petal::Error::Io { action, source, .. } => Self::Io { action, source },
            other => Self::Io {
                action: "create",
                source: io::Error::other(other),
            },
        }
    }
}

impl OutputError {
    /// Whether nobody reads the output any more: not a failure, but the end of the work.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(
            &self.fault,
            OutputFault::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe
        )
    }
}

/// Whether an error means that the reader of the output has gone, so that the command
/// should end in silence, with success.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref()
            .is_some_and(OutputError::is_broken_pipe)
    })
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.fault {
            OutputFault::Io { action, source } => {
                write!(f, "cannot {action} {name}: {source}")?;
                match source.kind() {
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                        f.write_str("; free some, or write elsewhere with -o")
                    }
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                        f.write_str("; allow it, or write elsewhere with -o")
                    }
                    _ => Ok(()),
                }
            }
            OutputFault::NotAFile(found) => write!(f, "{name} is {found}; name a file"),
            OutputFault::NotRegular => write!(
                f,
                "{name} is no regular file, so it cannot be continued later; name a file"
            ),
            OutputFault::Shorter { has, keep } => write!(
                f,
                "{name} has {} bytes, but {} were written to it: it has been changed since; \
                 restore it, or begin anew with another state and output",
                format_count(*has),
                format_count(*keep)
            ),
        }
    }
}

/// Without a source: what the system said is part of the text already.
impl Error for OutputError {}

/// An output for bytes.
///
/// [`Output::finish`] must come last: without it a file that was to be replaced stays as it
/// was, and a compressed one stays incomplete. Bytes for the standard output that were
/// written but not flushed are still delivered when this is dropped, if that succeeds.
#[must_use]
pub(crate) struct Output {
    name: String,
    compressed: bool,
    sink: Sink,
    kind: Kind,
    /// Somebody watches: no line may wait.
    is_terminal: bool,
    finished: bool,
}

/// On which thread bytes are compressed and written.
enum Sink {
    Here(Box<Frames>),
    Behind(Behind),
}

impl Sink {
    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Here(frames) => frames.write_all(bytes),
            Self::Behind(behind) => behind.write_all(bytes),
        }
    }

    /// Does something with the frames, in which all bytes so far are.
    fn with<T>(&mut self, act: impl FnOnce(&mut Frames) -> io::Result<T>) -> io::Result<T> {
        match self {
            Self::Here(frames) => act(frames),
            Self::Behind(behind) => act(&mut *behind.settle()?),
        }
    }

    fn abandon(&mut self) {
        match self {
            Self::Here(frames) => frames.abandon(),
            Self::Behind(behind) => behind.abandon(),
        }
    }
}

enum Kind {
    Stream(Option<FileId>),
    Replace(AtomicFile),
    InPlace(FileId),
}

impl Output {
    /// The standard output.
    pub(crate) fn stdout() -> Result<Self, OutputError> {
        Self::stream(io::stdout().as_fd(), "standard output", None)
    }

    /// A file, or the standard output for `-`, compressed if the name ends in `.gz`, `.zst`
    /// or `.xz`.
    ///
    /// A regular file appears under its name, or takes the place of an earlier one, only
    /// when [`Output::finish`] succeeds, as an [`AtomicFile`] does. Anything else than a
    /// regular file is written to at once. Errors: a directory, a file that may not be
    /// written, a directory in which no file may be created.
    pub(crate) fn create(path: &Path) -> Result<Self, OutputError> {
        if path.as_os_str() == STDOUT {
            return Self::stdout();
        }
        let name = display_name(path);
        Self::refuse_filter(path, &name)?;
        let format = Compression::from_name(path);
        let error = |fault| OutputError {
            name: name.clone(),
            fault,
        };
        if let Ok(facts) = fs::metadata(path) {
            // /dev/stdout, wherever that leads: opening it anew would write over what is there.
            for fd in [io::stdout().as_fd(), io::stderr().as_fd()] {
                let known = fd.try_clone_to_owned().map(File::from);
                let known = known.and_then(|file| file.metadata());
                let known = known.map_err(OutputFault::io("examine")).map_err(error)?;
                if FileId::of(&known) == FileId::of(&facts) {
                    return Self::stream(fd, &name, format);
                }
            }
            if !facts.is_file() && !facts.is_dir() {
                let file = OpenOptions::new().write(true).open(path);
                let file = file.map_err(OutputFault::io("open")).map_err(error)?;
                return Self::stream(file.as_fd(), &name, format);
            }
        }
        let create = || -> Result<_, OutputFault> {
            let new = AtomicFile::create(path, Overwrite::Replace)?;
            let file = new.file().try_clone().map_err(OutputFault::io("create"))?;
            Ok((file, new))
        };
        let (file, new) = create().map_err(error)?;
        Ok(Self::new(name, file, format, true, Kind::Replace(new)))
    }

    /// Refuses to write text over a filter: only the verbs that make filters
    /// replace one, with `--force`.
    fn refuse_filter(path: &Path, name: &str) -> Result<(), OutputError> {
        let is_regular = fs::metadata(path).is_ok_and(|facts| facts.is_file());
        if is_regular && petal::inspect(path).is_ok() {
            return Err(OutputError {
                name: name.to_owned(),
                fault: OutputFault::NotAFile("a filter, which text does not replace"),
            });
        }
        Ok(())
    }

    /// A regular file that is written in place, compressed by its name as in
    /// [`Output::create`]: a new one, or emptied, if `keep` is None; else the existing one,
    /// cut to its first `keep` bytes and appended to. `keep` is what
    /// [`Output::durable_len`] has told.
    pub(crate) fn in_place(path: &Path, keep: Option<u64>) -> Result<Self, OutputError> {
        let open = || -> Result<_, OutputFault> {
            match fs::metadata(path) {
                Ok(facts) if facts.is_dir() => return Err(OutputFault::NotAFile("a directory")),
                Ok(facts) if !facts.is_file() => return Err(OutputFault::NotRegular),
                _ => {}
            }
            let mut file = OpenOptions::new()
                .write(true)
                .create(keep.is_none())
                .truncate(keep.is_none())
                .open(path)
                .map_err(OutputFault::io("open"))?;
            let facts = file.metadata().map_err(OutputFault::io("open"))?;
            if let Some(keep) = keep {
                let has = facts.len();
                if has < keep {
                    return Err(OutputFault::Shorter { has, keep });
                }
                file.set_len(keep).map_err(OutputFault::io("shorten"))?;
                file.seek(SeekFrom::End(0))
                    .map_err(OutputFault::io("append to"))?;
            } else {
                let real = fs::canonicalize(path).map_err(OutputFault::io("open"))?;
                sync_directory(real.parent().unwrap_or(&real))
                    .map_err(OutputFault::io("create"))?;
            }
            Ok((file, FileId::of(&facts)))
        };
        let name = display_name(path);
        Self::refuse_filter(path, &name)?;
        let (file, id) = match open() {
            Ok(opened) => opened,
            Err(fault) => return Err(OutputError { name, fault }),
        };
        let format = Compression::from_name(path);
        let empty = keep.is_none_or(|keep| keep == 0);
        Ok(Self::new(name, file, format, empty, Kind::InPlace(id)))
    }

    fn stream(
        fd: BorrowedFd<'_>,
        name: &str,
        format: Option<Compression>,
    ) -> Result<Self, OutputError> {
        let open = || {
            let file = File::from(fd.try_clone_to_owned()?);
            let id = file.metadata().ok().filter(fs::Metadata::is_file);
            Ok((file, id.map(|facts| FileId::of(&facts))))
        };
        let name = name.to_owned();
        match open().map_err(OutputFault::io("open")) {
            Ok((file, id)) => Ok(Self::new(name, file, format, true, Kind::Stream(id))),
            Err(fault) => Err(OutputError { name, fault }),
        }
    }

    fn new(name: String, file: File, format: Option<Compression>, empty: bool, kind: Kind) -> Self {
        let is_terminal = file.is_terminal();
        let compressed = format.is_some();
        let sink = Sink::Here(Box::new(Frames::new(file, format, empty)));
        Self {
            name,
            compressed,
            sink,
            kind,
            is_terminal,
            finished: false,
        }
    }

    /// Has bytes compressed and written by a thread of its own, if there may be more than
    /// one: what is written is the same. Not on a terminal, where no line may wait.
    pub(crate) fn write_behind(mut self, threads: usize) -> Self {
        if threads < 2 || self.is_terminal {
            return self;
        }
        let none = Sink::Here(Box::new(Frames::lost()));
        self.sink = match std::mem::replace(&mut self.sink, none) {
            Sink::Here(frames) => match Behind::new(frames) {
                Ok(behind) => Sink::Behind(behind),
                Err(frames) => Sink::Here(frames),
            },
            behind @ Sink::Behind(_) => behind,
        };
        self
    }

    /// Takes all of `bytes`. They are collected and written in large pieces; on a terminal
    /// they appear at once if a line is complete.
    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        let mut done = self.sink.write_all(bytes);
        if self.is_terminal && done.is_ok() && memchr::memchr(b'\n', bytes).is_some() {
            done = self.sink.with(Frames::flush);
        }
        done.map_err(|source| self.not_written(source))
    }

    /// Brings all bytes so far to the system: for a reader who must not wait. A compressed
    /// file has none, and would depend on the moment.
    pub(crate) fn flush(&mut self) -> Result<(), OutputError> {
        if self.compressed && !matches!(self.kind, Kind::Stream(_)) {
            return Ok(());
        }
        self.sink
            .with(Frames::flush)
            .map_err(|source| self.not_written(source))
    }

    /// Makes all bytes so far durable, in a file written in place, and tells the length the
    /// file then has. A compressed file is complete at that length: what comes later begins
    /// a new member. None for any other output, whose bytes are only flushed.
    pub(crate) fn durable_len(&mut self) -> Result<Option<u64>, OutputError> {
        if !matches!(self.kind, Kind::InPlace(_)) {
            return self.flush().map(|()| None);
        }
        let durable = |frames: &mut Frames| {
            frames.end_frame()?;
            let file = frames.file()?;
            file.sync_all()?;
            Ok(file.metadata()?.len())
        };
        self.sink
            .with(durable)
            .map(Some)
            .map_err(|source| self.not_written(source))
    }

    /// Writes what is left and completes the output: a file to be replaced is replaced,
    /// durably; one written in place is durable; a compressed one is complete, also without
    /// any bytes.
    pub(crate) fn finish(mut self) -> Result<(), OutputError> {
        self.sink
            .with(Frames::end_frame)
            .map_err(|source| self.not_written(source))?;
        self.finished = true;
        let kind = std::mem::replace(&mut self.kind, Kind::Stream(None));
        match kind {
            Kind::Stream(_) => Ok(()),
            Kind::InPlace(_) => {
                let done = self.sink.with(|frames| frames.file()?.sync_all());
                done.map_err(|source| self.not_written(source))
            }
            Kind::Replace(new) => new.commit().map_err(|error| self.error(error.into())),
        }
    }

    /// Whether it goes to a terminal, where progress would be in the way.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// The identity of a regular file that changes while it is written: an input with the
    /// same would never end, or lose what it has. None for one that is replaced at the end.
    pub(crate) fn id(&self) -> Option<FileId> {
        match &self.kind {
            Kind::Stream(id) => *id,
            Kind::InPlace(id) => Some(*id),
            Kind::Replace(_) => None,
        }
    }

    fn error(&self, fault: OutputFault) -> OutputError {
        OutputError {
            name: self.name.clone(),
            fault,
        }
    }

    fn not_written(&self, source: io::Error) -> OutputError {
        self.error(OutputFault::Io {
            action: "write",
            source,
        })
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        if self.compressed || !matches!(self.kind, Kind::Stream(_)) {
            // A reader must not take for whole what is not, nor a file be written for nothing.
            self.sink.abandon();
        } else {
            // Whoever fails to read it need not be told: there is an error already.
            let _ = self.sink.with(Frames::flush);
        }
    }
}
