//! Where lines go: to the output, to the file of repeats, or nowhere.
//!
//! Owns the outputs of a run and the choice of lines for each; how lines are
//! copied is [`crate::copy`]'s.

use anyhow::Result;
use petal::Digests;

use crate::args::DedupArgs;
use crate::copy::LineCopier;
use crate::input::Batch;
use crate::mask;
use crate::os::FileId;
use crate::output::Output;
use crate::params;
use crate::seen::Seen;

use super::places::output_file;

/// What is known of the lines of a batch: a mask for each. Lines that are left
/// out are in none.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    /// First occurrences, and lines that are kept because they have no key.
    pub(super) new: Vec<u64>,
    /// Later occurrences.
    pub(super) repeats: Vec<u64>,
    /// Repeats that are the first of their group, where [`Reported`] tells.
    pub(super) first_repeats: Vec<u64>,
}

/// Which lines the output wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    FirstOccurrences,
    OneOfEachRepeated,
    Repeats,
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
    fn batch(&mut self, batch: &Batch, verdicts: &Verdicts) -> Result<()> {
        self.copier.lines(
            batch,
            match self.wants {
                Wants::FirstOccurrences => &verdicts.new,
                Wants::OneOfEachRepeated => &verdicts.first_repeats,
                Wants::Repeats => &verdicts.repeats,
            },
        )
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
        let threads = params::threads(args.run.threads);
        let main = kept.map(|kept| kept.main);
        let wants = if args.repeated {
            Wants::OneOfEachRepeated
        } else if args.all_repeated {
            Wants::Repeats
        } else {
            Wants::FirstOccurrences
        };
        let sink = |output, wants, kept: Option<Kept>| Sink {
            copier: LineCopier::new(Output::write_behind(output, threads), terminator)
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

    /// The files that are written, which cannot be read meanwhile.
    pub(super) fn ids(&mut self) -> Vec<FileId> {
        let sinks = [Some(&mut self.main), self.repeats.as_mut()];
        let ids = sinks.into_iter().flatten();
        ids.filter_map(|sink| sink.copier.output().id()).collect()
    }

    /// Whether lines appear on a terminal, where progress would be in the way.
    pub(super) fn is_terminal(&mut self) -> bool {
        self.main.copier.output().is_terminal()
    }

    /// Takes a batch.
    pub(super) fn batch(&mut self, batch: &Batch, verdicts: &Verdicts) -> Result<()> {
        self.main.batch(batch, verdicts)?;
        if let Some(repeats) = &mut self.repeats {
            repeats.batch(batch, verdicts)?;
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
    /// The repeats of a batch, and whether each is the first of its group.
    repeats: Digests,
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
            first: Vec::new(),
        }
    }

    /// Takes the digests of a batch whose bits in `old` are set; sets the bits
    /// of `first` for those that are the first of their group.
    pub(super) fn take(
        &mut self,
        digests: &Digests,
        old: &[u64],
        first: &mut Vec<u64>,
    ) -> Result<()> {
        self.repeats.clear();
        for run in mask::runs(old, digests.len()) {
            self.repeats.extend_from(digests, run)?;
        }
        mask::clear(&mut self.first, self.repeats.len());
        self.seen.take(&self.repeats, &mut self.first)?;
        mask::clear(first, digests.len());
        let mut done = 0;
        for run in mask::runs(old, digests.len()) {
            mask::copy(first, run.start, &self.first, done, run.len());
            done += run.len();
        }
        Ok(())
    }
}
