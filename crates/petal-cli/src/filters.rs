//! Filters that come from files and go to files.
//!
//! Owns the messages: every error names its file and the flag that helps.
//! What a file is, is the library's.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use petal::{AnyFilter, AtomicFile, Error, Overwrite, Secret};

use crate::os::display_name;
use crate::units::format_size;

/// Reads a filter into memory and verifies it.
pub(crate) fn open(path: &Path, secret: Option<&Secret>) -> Result<AnyFilter> {
    AnyFilter::open(path, secret).map_err(|error| named(path, error))
}

/// Maps a filter without reading it.
pub(crate) fn open_mapped(path: &Path, secret: Option<&Secret>) -> Result<AnyFilter> {
    AnyFilter::open_mapped(path, secret).map_err(|error| named(path, error))
}

/// Refuses filters that an explicit `--memory` does not hold. Without the
/// flag the library refuses what this process may not use.
pub(crate) fn check_budget(paths: &[&Path], memory: Option<&str>, remedy: &str) -> Result<()> {
    let Some(text) = memory else {
        return Ok(());
    };
    let budget = crate::params::size("--memory", text)?;
    let mut needed = crate::seen::OVERHEAD;
    for path in paths {
        let info = petal::inspect(path).map_err(|error| named(path, error))?;
        needed = needed.saturating_add(info.payload_bytes);
    }
    if needed > budget {
        bail!(
            "--memory {text} is too little: the filters and petal itself need {}; {remedy}",
            format_size(needed)
        );
    }
    Ok(())
}

/// An error of the library with the name of the file and what to do.
pub(crate) fn named(path: &Path, error: Error) -> anyhow::Error {
    let has_name = matches!(
        error,
        Error::Io { path: Some(_), .. }
            | Error::NotAFile { .. }
            | Error::Exists { .. }
            | Error::NoRoom { .. }
            | Error::Locked { .. }
    );
    let remedy = match error {
        Error::Secret { .. } => "with --secret-file",
        Error::Exists { .. } => "with --force",
        Error::Format(petal::FormatError::Dirty { .. }) => "with `petal add --recover`",
        _ => "",
    };
    let mut text = error.to_string();
    if !remedy.is_empty() {
        text = format!("{text} ({remedy})");
    }
    if !has_name {
        text = format!("{}: {text}", display_name(path));
    }
    anyhow!(text)
}

/// What a filter will be saved as, or why it cannot be: found out before
/// any input is read.
pub(crate) fn check_target(path: &Path, force: bool) -> Result<Overwrite> {
    if path.as_os_str() == "-" {
        bail!("-o -: a filter is written to a file, as a whole: give it a name");
    }
    if path.is_dir() {
        bail!("{} is a directory: name a file", display_name(path));
    }
    let overwrite = if force {
        Overwrite::Replace
    } else {
        Overwrite::Refuse
    };
    // Made and dropped: whether the directory takes a file is known now.
    AtomicFile::create(path, overwrite).map_err(|error| named(path, error))?;
    Ok(overwrite)
}
