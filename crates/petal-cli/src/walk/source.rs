//! The batches of several inputs, one after the other.
//!
//! Owns opening the inputs in turn, and the place of each batch. It is read
//! by one thread at a time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};

use super::{Place, Position, Unit, Walk};
use crate::input::{Input, LineOptions, Lines, is_terminal};
use crate::os::FileId;
use crate::report;

/// See the module.
pub(super) struct Source {
    files: Arc<[PathBuf]>,
    options: LineOptions,
    outputs: Vec<FileId>,
    quiet: bool,
    /// The next input to open, and how much of it to skip.
    next: Position,
    /// The one that is open.
    lines: Option<Lines>,
    place: Place,
    size: Option<u64>,
    /// The sizes of the inputs before it.
    before: u64,
    /// From this input on all are regular files.
    prompt_from: usize,
}

impl Source {
    pub(super) fn new(walk: &Walk) -> Self {
        let is_regular = |path: &PathBuf| path.as_os_str() != "-" && path.is_file();
        let prompt_from = match walk.files.iter().rposition(|path| !is_regular(path)) {
            Some(last) => last + 1,
            None if walk.files.is_empty() => usize::MAX,
            None => 0,
        };
        Self {
            prompt_from,
            files: Arc::clone(&walk.files),
            options: walk.options.clone(),
            outputs: walk.outputs.clone(),
            quiet: walk.quiet,
            next: walk.from,
            lines: None,
            place: Place {
                input: walk.from.input,
                name: Arc::from(""),
                line: 1,
            },
            size: None,
            before: 0,
        }
    }

    /// Reads the next batch; false after the last one of the last input.
    pub(super) fn next<R>(&mut self, unit: &mut Unit<R>) -> Result<bool> {
        loop {
            if let Some(lines) = &mut self.lines {
                if lines.next_batch(&mut unit.batch)? {
                    unit.place = self.place.clone();
                    unit.consumed = self.before + lines.consumed();
                    self.place.line += unit.batch.len() as u64;
                    return Ok(true);
                }
                self.before += self.size.unwrap_or(0);
                self.lines = None;
            }
            if self.next.input >= self.files.len().max(1) {
                return Ok(false);
            }
            self.open()?;
        }
    }

    fn open(&mut self) -> Result<()> {
        let Position { input: at, offset } = self.next;
        let path = self.files.get(at).map_or(Path::new("-"), PathBuf::as_path);
        if is_terminal(path) && !self.quiet {
            report::say("petal: reading from the terminal; Ctrl-D ends the input");
        }
        let mut input = Input::open(path)?;
        if self.outputs.contains(&input.id()) {
            bail!(
                "{} is the input and the output at the same time: write to another file",
                input.name()
            );
        }
        if offset > 0 {
            input.skip(offset)?;
        }
        self.size = input.size();
        self.place = Place {
            input: at,
            name: Arc::from(input.name()),
            line: 1,
        };
        self.lines = Some(Lines::new(input, &self.options));
        self.next = Position {
            input: at + 1,
            offset: 0,
        };
        Ok(())
    }

    /// Whether the next batch has to be waited for.
    pub(super) fn is_idle(&self) -> bool {
        self.lines.as_ref().is_some_and(Lines::is_idle)
    }

    /// Whether reading never waits for somebody who may not come: the input
    /// at hand is a regular file, and so are those that follow.
    pub(super) fn is_prompt(&self) -> bool {
        (self.lines.is_none() || self.size.is_some()) && self.next.input >= self.prompt_from
    }
}
