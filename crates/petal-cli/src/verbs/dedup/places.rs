//! Which files a run reads and writes, and that no two of them are one.
//!
//! Owns the check, made before anything is opened for writing: an output
//! that is written in place would otherwise empty what is still to be read.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::args::DedupArgs;
use crate::os::{FileId, display_name};

/// The path of an output, unless it is stdout.
pub(super) fn output_file(path: Option<&PathBuf>) -> Option<&Path> {
    path.map(PathBuf::as_path)
        .filter(|path| path.as_os_str() != "-")
}

/// Whether an input can be read only once: stdin, a pipe, a terminal.
pub(super) fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-" || path.metadata().is_ok_and(|facts| !facts.is_file())
}

/// What a path leads to, whether it exists or not.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    File(FileId),
    /// Nothing yet: the resolved directory and the name in it.
    Nothing(PathBuf),
}

impl Place {
    fn of(path: &Path) -> Self {
        match path.metadata() {
            Ok(facts) => Self::File(FileId::of(&facts)),
            Err(_) => {
                let directory = match path.parent() {
                    Some(parent) if parent != Path::new("") => parent,
                    _ => Path::new("."),
                };
                let directory = directory
                    .canonicalize()
                    .unwrap_or_else(|_| directory.to_path_buf());
                Self::Nothing(directory.join(path.file_name().unwrap_or_default()))
            }
        }
    }

    fn of_stdout() -> Option<Self> {
        let fd = io::stdout().as_fd().try_clone_to_owned().ok()?;
        let facts = std::fs::File::from(fd).metadata().ok()?;
        Some(Self::File(FileId::of(&facts)))
    }
}

/// Refuses a run in which one file has two roles. What replaces a file as a
/// whole at the end may have been read before; the null device may be
/// everything at once.
pub(super) fn check(args: &DedupArgs) -> Result<()> {
    let output = output_file(args.output.as_ref());
    let repeats = output_file(args.repeats_to.as_ref());
    let mut written: Vec<(&str, String, Option<Place>)> = Vec::new();
    let mut claim = |role: &'static str, name: String, place: Option<Place>| -> Result<()> {
        let null = Path::new("/dev/null")
            .metadata()
            .ok()
            .map(|facts| Place::File(FileId::of(&facts)));
        if place == null {
            return Ok(());
        }
        if let Some((other, _, _)) = written.iter().find(|(_, _, taken)| *taken == place) {
            bail!("{role} and {other} are both {name}: name two files");
        }
        written.push((role, name, place));
        Ok(())
    };
    match output {
        Some(path) => claim("-o", display_name(path), Some(Place::of(path)))?,
        None => claim("stdout", "stdout".to_owned(), Place::of_stdout())?,
    }
    if args.repeats_to.is_some() {
        match repeats {
            Some(path) => claim("--repeats-to", display_name(path), Some(Place::of(path)))?,
            None => claim("--repeats-to", "stdout".to_owned(), Place::of_stdout())?,
        }
    }
    if let Some(state) = &args.state {
        claim("--state", display_name(state), Some(Place::of(state)))?;
    }
    for input in args.files.iter().filter(|path| path.as_os_str() != "-") {
        let place = Some(Place::of(input));
        let taken = written.iter().find(|(role, _, taken)| {
            // Replaced as a whole when the input has been read.
            let replaced = args.state.is_none() && (*role == "-o" || *role == "--repeats-to");
            *taken == place && !replaced
        });
        if let Some((role, name, _)) = taken {
            bail!("{role} is {name}, which is an input as well: write to another file");
        }
    }
    Ok(())
}
