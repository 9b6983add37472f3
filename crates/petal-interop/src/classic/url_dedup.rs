//! A run of the program that removes duplicate URLs from a file, as it runs,
//! and what the right answers would have been.
//!
//! What the program does: `while (!feof(in)) { fgets(line, 256, in); … }` on a
//! buffer that nobody clears, six hashes of what `strlen` sees, all of a line's
//! bits set one after another.

use std::collections::HashSet;
use std::fmt;

use twox_hash::XxHash3_128;

use super::{ClassicFilter, ClassicProgram};
use crate::error::{Error, Result};
use crate::key::ForeignKey;

/// Bytes that `fgets(line, 256, in)` reads at most.
const PIECE: usize = 255;

/// What came of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UrlDedupRun {
    /// Lines as the program counts them.
    pub total: u64,
    /// Those that it takes for new.
    pub unique: u64,
    /// Those that it takes for repeats.
    pub repeated: u64,
    /// The file of repeats that it writes.
    pub duplicates: Vec<u8>,
    /// Whether it dies of a division by zero, and so prints no counts. What it
    /// counted until then is above; the file of repeats may be cut off.
    pub crashed: bool,
    /// The right counts: lines, different lines, repeats.
    pub correct: [u64; 3],
    /// Where it goes wrong, in the order of the file.
    pub differences: Vec<Difference>,
}

/// A place where the program goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// The file is empty: the program hashes a buffer that it never filled.
    /// Builds differ; this run takes it for a crash.
    Uninitialised,
    /// The last piece is counted twice, since the end of the file is noticed
    /// only by a read that fails.
    CountedTwice {
        /// The line, from 1.
        line: u64,
    },
    /// A line of more than 254 bytes is counted as so many URLs.
    Split {
        /// The line, from 1.
        line: u64,
        /// How many pieces.
        pieces: u64,
    },
    /// A byte 0 hides the rest of the line.
    Hidden {
        /// The line, from 1.
        line: u64,
    },
    /// A line that starts with a byte 0 has no length to divide by.
    DividedByZero {
        /// The line, from 1.
        line: u64,
    },
    /// The last line has no line feed, and so is another text than the same line
    /// before it.
    NotMatched {
        /// The line, from 1.
        line: u64,
    },
    /// A different line is taken for a repeat: all its bits were set.
    FalseRepeat {
        /// The line, from 1.
        line: u64,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uninitialised => write!(
                f,
                "the file is empty: the program hashes a buffer that it never filled \
                 (one build dies of a division by zero, another counts one URL)"
            ),
            Self::CountedTwice { line } => write!(
                f,
                "line {line}, the last one, is counted once more, as a repeat: the end of the \
                 file is noticed only by a read that fails, and its result is not looked at"
            ),
            Self::Split { line, pieces } => write!(
                f,
                "line {line} is longer than the buffer of 255 bytes: it is counted as {pieces} URLs"
            ),
            Self::Hidden { line } => write!(
                f,
                "line {line} has a byte 0: what follows it, the line feed too, is not looked at"
            ),
            Self::DividedByZero { line } => write!(
                f,
                "line {line} has a length of 0 for the program: it dies of a division by zero"
            ),
            Self::NotMatched { line } => write!(
                f,
                "line {line}, the last one, has no line feed, which belongs to the text that is \
                 hashed: the same line before it is another one"
            ),
            Self::FalseRepeat { line } => write!(
                f,
                "line {line} is new and taken for a repeat: all six bits were set (two of the \
                 hashes are below 255, so four have to tell)"
            ),
        }
    }
}

/// Runs the program on a file. Of the right answer, a line is what stands
/// between line feeds; a carriage return belongs to it. Different texts are told
/// apart by 128 bits of XXH3, so that a line takes some tens of bytes, however
/// long it is.
///
/// # Errors
/// If the memory for the program's 48 MB of bits cannot be had.
pub fn run_url_dedup(program: ClassicProgram, file: &[u8]) -> Result<UrlDedupRun> {
    if !matches!(program, ClassicProgram::UrlDedupC(_)) {
        return Err(Error::parameter(
            "program",
            program,
            "this run is of url-dedup-c",
        ));
    }
    let mut run = Run {
        filter: ClassicFilter::new(program)?,
        seen: HashSet::new(),
        result: UrlDedupRun::default(),
        buffer: Vec::new(),
    };
    run.correct(file);
    run.go(file)?;
    Ok(run.result)
}

struct Run {
    filter: ClassicFilter,
    /// Texts that were hashed, to tell a false repeat.
    seen: HashSet<u128>,
    result: UrlDedupRun,
    /// The program's, as far as it was filled.
    buffer: Vec<u8>,
}

impl Run {
    fn correct(&mut self, file: &[u8]) {
        let mut total = 0u64;
        let different: HashSet<u128> = lines(file)
            .inspect(|_| total += 1)
            .map(XxHash3_128::oneshot)
            .collect();
        let unique = different.len() as u64;
        self.result.correct = [total, unique, total - unique];
    }

    fn go(&mut self, file: &[u8]) -> Result<()> {
        let mut rest = file;
        let (mut line, mut pieces) = (1, 0);
        let mut end_noticed = false;
        while !end_noticed && !self.result.crashed {
            if rest.is_empty() {
                // The read fails and leaves the buffer as it is.
                if file.is_empty() {
                    self.result.differences.push(Difference::Uninitialised);
                    self.result.crashed = true;
                    return Ok(());
                }
                let line = line - u64::from(pieces == 0);
                self.result
                    .differences
                    .push(Difference::CountedTwice { line });
                self.process(line, true)?;
                break;
            }
            let room = &rest[..rest.len().min(PIECE)];
            let feed = room.iter().position(|&byte| byte == b'\n');
            let piece = feed.map_or(room, |at| &room[..=at]);
            end_noticed = feed.is_none() && piece.len() < PIECE;
            rest = &rest[piece.len()..];
            self.buffer.clear();
            self.buffer.extend_from_slice(piece);
            pieces += 1;
            let last = feed.is_some() || rest.is_empty();
            if last && pieces > 1 {
                self.result
                    .differences
                    .push(Difference::Split { line, pieces });
            }
            if end_noticed && pieces == 1 && self.had_with_feed(file, piece) {
                self.result
                    .differences
                    .push(Difference::NotMatched { line });
            }
            self.process(line, false)?;
            if feed.is_some() {
                line += 1;
                pieces = 0;
            }
        }
        Ok(())
    }

    /// Whether the same line stands before the last one, with its line feed.
    fn had_with_feed(&self, file: &[u8], last: &[u8]) -> bool {
        lines(&file[..file.len() - last.len()]).any(|line| line == last)
    }

    /// One round of the loop, on what is in the buffer.
    fn process(&mut self, line: u64, again: bool) -> Result<()> {
        let shown = self.buffer.split(|&byte| byte == 0).next().unwrap_or(&[]);
        let text = shown.to_vec();
        if text.len() < self.buffer.len() && !again {
            self.result.differences.push(Difference::Hidden { line });
        }
        if text.is_empty() {
            self.result
                .differences
                .push(Difference::DividedByZero { line });
            self.result.crashed = true;
            return Ok(());
        }
        let positions = self.filter.program().positions(ForeignKey::Bytes(&text))?;
        let repeat = self.filter.test_and_set(&positions) == positions.len();
        self.result.total += 1;
        if repeat {
            self.result.repeated += 1;
            self.result.duplicates.extend_from_slice(&text);
        } else {
            self.result.unique += 1;
        }
        if self.seen.insert(XxHash3_128::oneshot(&text)) && repeat {
            self.result
                .differences
                .push(Difference::FalseRepeat { line });
        }
        Ok(())
    }
}

/// What stands between line feeds; a last one ends the last line.
fn lines(file: &[u8]) -> impl Iterator<Item = &[u8]> {
    let file = file
        .strip_suffix(b"\n")
        .map_or((!file.is_empty()).then_some(file), Some);
    file.into_iter()
        .flat_map(|file| file.split(|&byte| byte == b'\n'))
}
