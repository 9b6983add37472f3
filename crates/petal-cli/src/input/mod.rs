//! Where records come from: files, the standard input, compressed or not.
//!
//! `Input` opens one of them and tells what is known of it; `Lines` splits it into
//! records. Below: `raw` reads bytes as stored, `codec` and `decode` make them what they
//! mean, `blocks` cuts them into whole records, which lie in a `buffer`. Nothing here knows what the records are
//! for, or on which thread they are read.

mod blocks;
mod buffer;
mod codec;
mod decode;
mod error;
mod lines;
mod raw;
mod scan;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, IsTerminal, Seek};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use error::Fault;
pub(crate) use error::InputError;
pub(crate) use lines::{BLOCK, Batch, LineOptions, Lines};

use crate::compression::Compression;
use crate::os::{FileId, Stamp, display_name};
use decode::Decoder;
use raw::Raw;

/// log2 of [`WINDOW_LIMIT`].
const WINDOW_LOG_LIMIT: u32 = 27;

/// The most memory a decoder may take for its window, which a file can ask for: what
/// `zstd -d` and every preset of `xz` allow.
pub(crate) const WINDOW_LIMIT: u64 = 1 << WINDOW_LOG_LIMIT;

/// The name that stands for the standard input.
const STDIN: &str = "-";

/// An opened input, at some offset of its decoded bytes.
pub(crate) struct Input {
    name: String,
    size: Option<u64>,
    stamp: Stamp,
    decoder: Decoder,
}

impl Input {
    /// Opens a file, or the standard input for `-`, and looks at its first bytes: a pipe
    /// is waited for.
    ///
    /// Errors: no such file, no permission, a directory, a failing read, a file that is cut
    /// short within its first bytes.
    pub(crate) fn open(path: &Path) -> Result<Self, InputError> {
        if path.as_os_str() == STDIN {
            return Self::stdin();
        }
        let name = display_name(path);
        match File::open(path) {
            Ok(file) => Self::from_file(file, &name, Compression::from_name(path)),
            Err(e) => Err(InputError {
                name,
                fault: Fault::Open(e),
            }),
        }
    }

    /// The standard input.
    pub(crate) fn stdin() -> Result<Self, InputError> {
        let name = "standard input";
        // Not through `io::stdin`, whose small buffer every byte would pass.
        let file = io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .map_err(|e| InputError {
                name: name.to_owned(),
                fault: Fault::Open(e),
            })?;
        Self::from_file(File::from(file), name, None)
    }

    fn from_file(file: File, name: &str, named: Option<Compression>) -> Result<Self, InputError> {
        let error = |fault| InputError {
            name: name.to_owned(),
            fault,
        };
        let facts = file.metadata().map_err(|e| error(Fault::Open(e)))?;
        if facts.is_dir() {
            return Err(error(Fault::Directory));
        }
        let mut size = None;
        if facts.is_file() {
            // The standard input may be a file of which somebody has read a part.
            let start = (&file)
                .stream_position()
                .map_err(|e| error(Fault::Open(e)))?;
            size = Some(facts.len().saturating_sub(start));
        }

        let decoder = Decoder::new(Raw::new(file), named).map_err(error)?;
        Ok(Self {
            name: name.to_owned(),
            size,
            stamp: Stamp::of(&facts),
            decoder,
        })
    }

    /// The name for messages: one line of text.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The bytes to read, compressed if it is, for a regular file, also as standard input.
    pub(crate) fn size(&self) -> Option<u64> {
        self.size
    }

    /// What tells this file from others, to see whether it is also the output.
    pub(crate) fn id(&self) -> FileId {
        self.stamp.id()
    }

    /// What tells whether it has changed, as of its opening.
    pub(crate) fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// The format it is decoded from, if any.
    #[cfg(test)]
    pub(crate) fn compression(&self) -> Option<Compression> {
        self.decoder.format()
    }

    /// Moves on by `bytes` decoded bytes: at once in a plain regular file, else by reading.
    /// An error if there are fewer, see [`Fault::Short`].
    pub(crate) fn skip(&mut self, bytes: u64) -> Result<(), InputError> {
        let left = self
            .size
            .map(|size| size.saturating_sub(self.decoder.decoded()));
        self.decoder.skip(bytes, left).map_err(|fault| InputError {
            name: self.name.clone(),
            fault,
        })
    }
}

/// Whether opening this input will wait for somebody to type, who may have to be told.
pub(crate) fn is_terminal(path: &Path) -> bool {
    path.as_os_str() == STDIN && io::stdin().is_terminal()
}

/// The sum of the sizes of `paths`, as far as reading them all goes: None if one of them is
/// no regular file (or not there, which opening it will tell). None for no path at all.
pub(crate) fn total_size(paths: &[PathBuf]) -> Option<u64> {
    if paths.is_empty() {
        return None;
    }
    paths.iter().try_fold(0u64, |sum, path| {
        if path.as_os_str() == STDIN {
            return None;
        }
        let facts = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        sum.checked_add(facts.len())
    })
}
