//! Copies of what can be read only once: pipes and the standard input.
//!
//! A copy is a temporary file without a name, see [`petal_exact::Scratch`]. It holds the decoded
//! lines, so that a damaged input is named before the work begins.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use petal_exact::Scratch;

use crate::input::{Batch, Input, LineOptions, Lines, is_terminal};
use crate::progress::Progress;
use crate::report;

/// A copy.
pub(super) struct Copy {
    file: File,
    pub(super) bytes: u64,
    pub(super) lines: u64,
}

impl Copy {
    /// What it can be opened by, while it lives.
    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }
}

/// Copies an input to a temporary file in a directory.
pub(super) fn spool(
    path: &Path,
    options: &LineOptions,
    directory: &Path,
    quiet: bool,
) -> Result<Copy> {
    if is_terminal(path) && !quiet {
        report::say("petal: reading from the terminal; Ctrl-D ends the input");
    }
    let input = Input::open(path)?;
    let name = input.name().to_owned();
    let why = || format!("{name} can be read only once and is copied");
    let file = Scratch::new(directory)
        .and_then(|scratch| scratch.file())
        .with_context(why)?;
    let mut copy = Copy {
        file,
        bytes: 0,
        lines: 0,
    };
    if std::fs::metadata(copy.path()).is_err() {
        bail!("{name} can be read only once: write it to a file first, and name that");
    }
    let mut progress = Progress::start("copying", None, quiet);
    let mut lines = Lines::new(input, options);
    let mut batch = Batch::new(usize::MAX);
    while lines.next_batch(&mut batch)? {
        let bytes = batch.raw(0..batch.len());
        copy.file.write_all(bytes).with_context(|| {
            format!(
                "cannot copy {name} to a temporary file in {}",
                directory.display()
            )
        })?;
        copy.bytes += bytes.len() as u64;
        copy.lines += batch.len() as u64;
        progress.tick(copy.bytes);
    }
    progress.finish();
    Ok(copy)
}
