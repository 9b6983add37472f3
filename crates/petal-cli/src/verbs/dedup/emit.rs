//! Where lines go: to the output, to the file of repeats, or nowhere.
//!
//! Owns the outputs of a run and the choice of lines for each; how lines are
//! copied is [`crate::copy`]'s.

use anyhow::{Result, bail};
use petal::{Digests, mask_words};

use crate::args::DedupArgs;
use crate::copy::LineCopier;
use crate::input::{Batch, Input};
use crate::output::Output;
use crate::seen::{Seen, bit};

use super::places::output_file;

/// What is known of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Its first occurrence.
    New,
    /// A later occurrence; whether it is the first later one.
    Repeat { first: bool },
    /// It has no key and is neither.
    Kept,
    /// It is not to be seen at all.
    LeftOut,
}

/// Which lines the output wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    FirstOccurrences,
    OneOfEachRepeated,
    Repeats,
}

impl Wants {
    const fn takes(self, verdict: Verdict) -> bool {
        match (self, verdict) {
            (Self::FirstOccurrences, Verdict::New | Verdict::Kept)
            | (Self::Repeats, Verdict::Repeat { .. }) => true,
            (Self::OneOfEachRepeated, Verdict::Repeat { first }) => first,
            _ => false,
        }
    }
}

/// What an output had at the last save, to be continued from there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Kept {
    /// Its length in bytes; `None` if it is not a file.
    pub(super) length: Option<u64>,
    /// Whether its last line lacks its terminator.
    pub(super) open_line: bool,
}

/// The outputs at the last save.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct KeptOutputs {
    pub(super) main: Kept,
    pub(super) repeats: Option<Kept>,
}

/// One output and the lines it wants.
struct Sink {
    copier: LineCopier,
    wants: Wants,
}

impl Sink {
    fn line(&mut self, batch: &Batch, line: usize, verdict: Verdict) -> Result<()> {
        if self.wants.takes(verdict) {
            self.copier.line(batch, line)?;
        }
        Ok(())
    }

    fn durable(&mut self) -> Result<Kept> {
        Ok(Kept {
            length: self.copier.output().durable_len()?,
            open_line: self.copier.has_open_line(),
        })
    }
}

/// All outputs of a run.
pub(super) struct Emit {
    main: Sink,
    repeats: Option<Sink>,
}

impl Emit {
    /// Opens them: with a state in place, to go on where it left them.
    pub(super) fn open(
        args: &DedupArgs,
        terminator: u8,
        kept: Option<KeptOutputs>,
    ) -> Result<Self> {
        let open = |path: &std::path::Path, kept: Option<Kept>| {
            if args.state.is_some() {
                Output::in_place(path, kept.and_then(|kept| kept.length))
            } else {
                Output::create(path)
            }
        };
        let main = kept.map(|kept| kept.main);
        let wants = if args.repeated {
            Wants::OneOfEachRepeated
        } else if args.all_repeated {
            Wants::Repeats
        } else {
            Wants::FirstOccurrences
        };
        let sink = |output, wants, kept: Option<Kept>| Sink {
            copier: LineCopier::new(output, terminator)
                .after_open_line(kept.is_some_and(|kept| kept.open_line)),
            wants,
        };
        let output = match output_file(args.output.as_ref()) {
            Some(path) => open(path, main)?,
            None => Output::stdout()?,
        };
        let repeats = match (&args.repeats_to, output_file(args.repeats_to.as_ref())) {
            (None, _) => None,
            (Some(_), file) => {
                let kept = kept.and_then(|kept| kept.repeats);
                let output = match file {
                    Some(path) => open(path, kept)?,
                    None => Output::stdout()?,
                };
                Some(sink(output, Wants::Repeats, kept))
            }
        };
        Ok(Self {
            main: sink(output, wants, main),
            repeats,
        })
    }

    /// Refuses to read what is being written at the same time.
    pub(super) fn refuse_input(&mut self, input: &Input) -> Result<()> {
        let sinks = [Some(&mut self.main), self.repeats.as_mut()];
        for sink in sinks.into_iter().flatten() {
            if sink.copier.output().id() == Some(input.id()) {
                bail!(
                    "{} is the input and the output at the same time: write to another file",
                    input.name()
                );
            }
        }
        Ok(())
    }

    /// Whether lines appear on a terminal, where progress would be in the way.
    pub(super) fn is_terminal(&mut self) -> bool {
        self.main.copier.output().is_terminal()
    }

    /// Takes the next line of a batch.
    pub(super) fn line(&mut self, batch: &Batch, line: usize, verdict: Verdict) -> Result<()> {
        self.main.line(batch, line, verdict)?;
        if let Some(repeats) = &mut self.repeats {
            repeats.line(batch, line, verdict)?;
        }
        Ok(())
    }

    /// Copies what waits, before the batch goes.
    pub(super) fn end_batch(&mut self, batch: &Batch) -> Result<()> {
        self.main.copier.end_batch(batch)?;
        if let Some(repeats) = &mut self.repeats {
            repeats.copier.end_batch(batch)?;
        }
        Ok(())
    }

    /// Hands on what was written, for a reader who must not wait.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.main.copier.output().flush()?;
        if let Some(repeats) = &mut self.repeats {
            repeats.copier.output().flush()?;
        }
        Ok(())
    }

    /// Makes durable what was written.
    pub(super) fn durable(&mut self) -> Result<KeptOutputs> {
        Ok(KeptOutputs {
            main: self.main.durable()?,
            repeats: self.repeats.as_mut().map(Sink::durable).transpose()?,
        })
    }

    /// Completes the outputs.
    pub(super) fn finish(self) -> Result<()> {
        if let Some(repeats) = self.repeats {
            repeats.copier.finish()?;
        }
        self.main.copier.finish()
    }
}

/// The memory of printed repeats, for one line of each repeated group.
#[derive(Debug)]
pub(super) struct Reported {
    seen: Seen,
    /// The repeats of a batch, their numbers in it, and the answers.
    repeats: Digests,
    numbers: Vec<usize>,
    answers: Vec<u64>,
    first: Vec<u64>,
}

impl Reported {
    /// Around an empty memory, for batches of digests like these.
    pub(super) fn new(seen: Seen, digests: &Digests) -> Self {
        let mut repeats = digests.clone();
        repeats.clear();
        Self {
            seen,
            repeats,
            numbers: Vec::new(),
            answers: Vec::new(),
            first: Vec::new(),
        }
    }

    /// Takes the digests of a batch that are not fresh.
    pub(super) fn take(&mut self, digests: &Digests, fresh: &[u64]) -> Result<()> {
        self.repeats.clear();
        self.numbers.clear();
        for i in (0..digests.len()).filter(|&i| !bit(fresh, i)) {
            self.repeats.extend_from(digests, i..i + 1)?;
            self.numbers.push(i);
        }
        self.answers.resize(mask_words(self.numbers.len()), 0);
        self.seen.take(&self.repeats, &mut self.answers)?;
        self.first.clear();
        self.first.resize(mask_words(digests.len()), 0);
        for (answer, &i) in self.numbers.iter().enumerate() {
            self.first[i / 64] |= u64::from(bit(&self.answers, answer)) << (i % 64);
        }
        Ok(())
    }

    /// Whether digest `i` of the last batch is the first repeat of its group.
    pub(super) fn is_first(&self, i: usize) -> bool {
        bit(&self.first, i)
    }
}
