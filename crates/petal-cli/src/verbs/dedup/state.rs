//! What survives an interruption: `--state FILE`.
//!
//! Owns the record of how far a run has come, kept as an attachment of the
//! filter in the state file, and the rules by which a later run continues.
//!
//! A state never runs ahead of the output: the output is made durable first,
//! then the state is replaced as a whole. So a run that is repeated cuts the
//! output back to the recorded length and goes on from the recorded place:
//! lines after it are read again and are not yet in the filter.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use petal::{AnyFilter, AtomicFile, Contains, FileLock, Kind, Overwrite};
use serde::{Deserialize, Serialize};

use super::emit::KeptOutputs;
use super::places::{is_stream, output_file};
use super::{Setup, Totals};
use crate::args::DedupArgs;
use crate::os::display_name;
use crate::seen::{Loss, Seen};
use crate::walk::Position;

/// The attachment's name in the filter file.
pub(crate) const ATTACHMENT: &str = "dedup";

/// The version of the record.
const VERSION: u32 = 1;

/// Time between saves, unless they take more than 5 % of it.
const EVERY: Duration = Duration::from_secs(60);
/// The next save waits so many times as long as the last one took.
const PATIENCE: u32 = 20;

/// What the state file records beside the filter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Record {
    version: u32,
    finished: bool,
    inputs: Inputs,
    position: Position,
    /// Paths are kept as text that escapes what is not ASCII: they are only
    /// compared and shown.
    output: Option<String>,
    repeats_to: Option<String>,
    kept: KeptOutputs,
    totals: Totals,
    /// Lines found new, and the expected number dropped, over all runs that
    /// this one continues.
    new: u64,
    dropped: f64,
    /// Flags that a later run must have as well.
    flags: Flags,
}

/// The flags that decide, beside those of the keys, what becomes of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Flags {
    part: Option<String>,
    skip_empty: bool,
    null: bool,
    all_repeated: bool,
}

/// The inputs of a run, by what identifies them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Inputs {
    /// Their number; 0 is stdin.
    count: usize,
    /// A hash of the path, size and time of change of each.
    identity: String,
    /// A hash of the paths alone.
    paths: String,
    /// The first of them, for messages.
    first: Option<String>,
    /// Whether one of them is a stream, which cannot be recognised.
    has_stream: bool,
}

impl Inputs {
    fn of(paths: &[PathBuf]) -> Result<Self> {
        let (mut text, mut names) = (Vec::new(), Vec::new());
        for path in paths {
            if is_stream(path) {
                text.extend(b"stream\0");
                continue;
            }
            let facts = path.metadata().with_context(|| display_name(path))?;
            let path = path.canonicalize().unwrap_or_else(|_| path.clone());
            text.extend(path.as_os_str().as_encoded_bytes());
            names.extend(path.as_os_str().as_encoded_bytes());
            names.push(0);
            let times = (facts.len(), facts.mtime(), facts.mtime_nsec());
            text.extend(format!("\0{times:?}\0").into_bytes());
        }
        let hash = |bytes: &[u8]| {
            let bits = petal::KeyHasher::default().digest_bytes(bytes).bits();
            format!("{bits:016x}")
        };
        Ok(Self {
            count: paths.len(),
            identity: hash(&text),
            paths: hash(&names),
            first: paths.first().map(|path| escaped(path)),
            has_stream: paths.is_empty() || paths.iter().any(|path| is_stream(path)),
        })
    }
}

/// The state of a run; without `--state` it keeps nothing.
pub(super) struct State {
    file: Option<File>,
    record: Record,
    filter: Option<AnyFilter>,
    continues: bool,
    read_again: u64,
}

/// The state file, locked.
struct File {
    path: PathBuf,
    _lock: FileLock,
    /// Time between saves, if the user said it.
    every: Option<Duration>,
    /// When the next save is due; never, if that is past all time.
    due: Option<Instant>,
}

impl State {
    /// Keeps nothing.
    pub(super) fn none() -> Self {
        Self {
            file: None,
            record: Record::default(),
            filter: None,
            continues: false,
            read_again: 0,
        }
    }

    /// Locks the state file and, if it exists, finds out how to go on.
    pub(super) fn open(path: &Path, setup: &Setup, args: &DedupArgs) -> Result<Self> {
        let every = args.save_every.map(Duration::try_from_secs_f64).transpose();
        let every = every.context("--save-every is not a number of seconds")?;
        let lock = FileLock::acquire(path)?;
        let inputs = Inputs::of(&setup.inputs)?;
        if inputs.has_stream && (args.all_repeated || args.repeats_to.is_some()) {
            bail!(
                "after an interruption the lines of a pipe are read again, and cannot be told \
                 from repeats: with --state, give files to -D and --repeats-to"
            );
        }
        let fresh = Record {
            version: VERSION,
            inputs,
            output: absolute(output_file(args.output.as_ref()))?,
            repeats_to: absolute(output_file(args.repeats_to.as_ref()))?,
            flags: Flags {
                part: args.part.clone(),
                skip_empty: args.keys.skip_empty,
                null: args.records.null,
                all_repeated: args.all_repeated,
            },
            ..Record::default()
        };
        let mut state = Self {
            file: Some(File {
                path: path.to_path_buf(),
                _lock: lock,
                every,
                due: Instant::now().checked_add(every.unwrap_or(EVERY)),
            }),
            record: fresh,
            filter: None,
            continues: false,
            read_again: 0,
        };
        if path.try_exists().with_context(|| display_name(path))? {
            state.load(path, setup, args)?;
        }
        Ok(state)
    }

    fn load(&mut self, path: &Path, setup: &Setup, args: &DedupArgs) -> Result<()> {
        let name = display_name(path);
        let secret = match &setup.identity.hasher {
            petal::KeyHasher::Keyed { secret } => Some(secret),
            petal::KeyHasher::Portable { .. } => None,
        };
        let filter = AnyFilter::open(path, secret).with_context(|| format!("state {name}"))?;
        let about = Contains::about(&filter);
        let Some(bytes) = about.attachment(ATTACHMENT) else {
            bail!(
                "{name} is a filter, but not the state of a dedup run: name another file, \
                 or drop the lines it has with `petal check -v {name}`"
            );
        };
        let old: Record = serde_json::from_slice(bytes)
            .with_context(|| format!("state {name}: its record cannot be read"))?;
        if old.version != VERSION {
            bail!(
                "state {name}: its record has version {}, this petal knows {VERSION}: \
                 use the petal that wrote it, or begin anew with another state",
                old.version
            );
        }
        if about.identity() != &setup.identity {
            bail!(
                "state {name} was made with other key options: {} ({}); this run has {} ({}). \
                 Use the same ones, or begin anew with another state",
                about.identity().normalisation,
                about.identity().hasher,
                setup.identity.normalisation,
                setup.identity.hasher
            );
        }
        let mut flags = old.flags.clone();
        if old.finished {
            // How lines end and which are printed is for each run to say.
            flags.null = self.record.flags.null;
            flags.all_repeated = self.record.flags.all_repeated;
        }
        if flags != self.record.flags {
            bail!(
                "state {name} was made with another --part, --skip-empty, -0 or -D: use the \
                 same, or begin anew with another state"
            );
        }
        check_error(&filter, setup.error, path)?;
        if old.finished {
            self.continues = false;
            // Its keys stay; lines, output and losses are those of a new run.
            self.record.new = old.new;
            self.record.dropped = old.dropped;
            self.after_finished(&old, args, path)?;
        } else {
            self.check_same(&old, path)?;
            self.continues = true;
            self.record = old;
            let at = self.record.position.input;
            if setup.inputs.get(at).is_none_or(|path| is_stream(path))
                && self.record.inputs.has_stream
            {
                // A stream is read from its beginning: what was done of it is
                // in the filter, and is recognised.
                self.record.position.offset = 0;
                if at == 0 {
                    // All of it is counted again.
                    self.record.totals = Totals::default();
                    self.read_again = self.record.new;
                }
            }
        }
        self.filter = Some(filter);
        Ok(())
    }

    /// A finished run whose output is named again: done if nothing differs, a
    /// new run if the inputs are other files, and else refused, since an
    /// output that starts anew would lose what it has.
    fn after_finished(&mut self, old: &Record, args: &DedupArgs, path: &Path) -> Result<()> {
        let Some(output) = output_file(args.output.as_ref()) else {
            return Ok(());
        };
        if old.output != self.record.output {
            return Ok(());
        }
        let length = output.metadata().ok().map(|facts| facts.len());
        let repeats_are_there = output_file(args.repeats_to.as_ref()).is_none_or(Path::exists);
        let inputs = &self.record.inputs;
        let same = old.inputs == *inputs && !inputs.has_stream;
        if same
            && length == old.kept.main.length
            && old.repeats_to == self.record.repeats_to
            && repeats_are_there
        {
            self.record.finished = true;
            return Ok(());
        }
        let has_lines = length.is_some_and(|length| length > 0);
        if same || has_lines && (inputs.has_stream || old.inputs.paths == inputs.paths) {
            bail!(
                "{} is the output of the finished run of state {}, whose lines would not be \
                 printed again: name another output, or remove state and output to begin anew",
                display_name(output),
                display_name(path)
            );
        }
        Ok(())
    }

    /// An unfinished run goes on only with the same inputs and outputs.
    fn check_same(&self, old: &Record, path: &Path) -> Result<()> {
        let name = display_name(path);
        let show = |path: &Option<String>| path.clone().unwrap_or_else(|| "stdout".to_owned());
        let way_out = format!(
            "finish that run first, or begin anew with another state (or remove {name}, \
             which forgets its lines)"
        );
        if old.inputs != self.record.inputs {
            let first = old.inputs.first.as_deref().unwrap_or("stdin");
            bail!(
                "state {name} is of an unfinished run over {} input(s), the first of them {first}; \
                 these inputs are others, or have changed since: {way_out}",
                old.inputs.count.max(1)
            );
        }
        if old.output != self.record.output || old.repeats_to != self.record.repeats_to {
            bail!(
                "state {name} is of an unfinished run that writes to {}, and its repeats to {}: \
                 name the same files; or {way_out}",
                show(&old.output),
                show(&old.repeats_to)
            );
        }
        Ok(())
    }

    /// Whether there is a state file to be saved.
    pub(super) const fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    /// Whether a finished state is asked for the same inputs and outputs
    /// again, and these are as it left them.
    pub(super) const fn is_done(&self) -> bool {
        self.record.finished
    }

    /// Lines of a stream that were new before it was interrupted: as many
    /// first readings will be met as repeats.
    pub(super) const fn read_again(&self) -> u64 {
        self.read_again
    }

    /// The filter of the earlier run, once.
    pub(super) fn take_filter(&mut self) -> Option<AnyFilter> {
        self.record.finished = false;
        self.filter.take()
    }

    /// The losses of the runs that this one continues.
    pub(super) fn loss(&self) -> Loss {
        if self.continues {
            Loss::resumed(self.record.new, self.record.dropped)
        } else {
            Loss::default()
        }
    }

    /// What an interrupted run had counted.
    pub(super) fn totals(&self) -> Totals {
        self.record.totals
    }

    /// What the outputs had at the last save of an interrupted run.
    pub(super) fn kept_outputs(&self) -> Option<KeptOutputs> {
        self.continues.then_some(self.record.kept)
    }

    /// Where to go on.
    pub(super) const fn position(&self) -> Position {
        self.record.position
    }

    /// Notes how far the run has come.
    pub(super) const fn moved_to(&mut self, position: Position) {
        self.record.position = position;
    }

    /// Refuses a place that cannot be written to or will not hold the state,
    /// before the work begins: at a save the old and the new one exist.
    pub(super) fn check_room(&self, bytes: u64) -> Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let has = file.path.metadata().map_or(0, |facts| facts.len());
        let trial = AtomicFile::create(&file.path, Overwrite::Replace)?;
        let needed = bytes.saturating_mul(2).saturating_sub(has);
        trial
            .check_room(needed)
            .context("for the state; free some, use less --memory, or keep the state elsewhere")
    }

    /// Whether it is time for a save.
    pub(super) fn is_due(&self) -> bool {
        self.file
            .as_ref()
            .and_then(|file| file.due)
            .is_some_and(|due| Instant::now() >= due)
    }

    /// Replaces the state file. The outputs were made durable before, in the
    /// time since `started`.
    pub(super) fn save(
        &mut self,
        seen: &mut Seen,
        totals: Totals,
        (new, dropped): (u64, f64),
        kept: KeptOutputs,
        finished: bool,
        started: Instant,
    ) -> Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        self.record.finished = finished;
        self.record.totals = totals;
        self.record.new = new;
        self.record.dropped = dropped;
        self.record.kept = kept;
        let bytes = serde_json::to_vec(&self.record)?;
        let Some(filter) = seen.filter_mut() else {
            bail!("a state keeps digests"); // not reached: it was planned so
        };
        filter.set_attachment(ATTACHMENT, bytes)?;
        filter
            .save(&file.path, Overwrite::Replace)
            .with_context(|| format!("state {}", display_name(&file.path)))?;
        let wait = file
            .every
            .unwrap_or_else(|| EVERY.max(started.elapsed() * PATIENCE));
        file.due = Instant::now().checked_add(wait);
        Ok(())
    }
}

/// An error asked for must be the one the state was made with.
fn check_error(filter: &AnyFilter, asked: Option<f64>, path: &Path) -> Result<()> {
    let Some(asked) = asked else {
        return Ok(());
    };
    let made_with = match filter {
        AnyFilter::Growable(filter) => Some(filter.plan().error()),
        filter if filter.kind() == Kind::DigestSet => None,
        filter => Contains::about(filter)
            .promise()
            .map(|promise| promise.error),
    };
    if made_with != Some(asked) {
        let made_with = made_with.map_or_else(
            || "without -p".to_owned(),
            |error| format!("with -p {error:e}"),
        );
        bail!(
            "state {} was made {made_with}: leave -p out, or begin anew with another state",
            display_name(path)
        );
    }
    Ok(())
}

/// The path from the root, so that a later run may start elsewhere.
fn absolute(path: Option<&Path>) -> Result<Option<String>> {
    path.map(|path| {
        let path = std::path::absolute(path).with_context(|| display_name(path))?;
        Ok(escaped(&path))
    })
    .transpose()
}

/// A path as text, whatever its bytes.
fn escaped(path: &Path) -> String {
    path.as_os_str()
        .as_encoded_bytes()
        .escape_ascii()
        .to_string()
}
