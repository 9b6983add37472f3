//! Filters that are made and changed: `build`, `add`, `remove`, `merge`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{ForeignArgs, KeyArgs, RecordArgs, RunArgs, SecretArgs};

/// Make a filter from lists of lines
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  petal build hashes.txt -o known.petal                  error 1e-6, keys counted for you
  petal build *.txt.gz -o seen.petal -p 1e-3 -n 100M     a size of your own
  petal build sums -o known.petal --as hex --label hash=sha1
  petal build users.txt -o users.petal --kind deletable  can forget: `petal remove`
  petal build log -o seen.petal --kind window --window 1M
  petal build leaked.txt -o leaked.petal --kind static   smallest, nothing to be added
  petal build deny.txt -o deny.petal --kind cascade --not-listed customers.txt
  petal build today.txt -o today.petal --like monday.petal",
    after_help = "Without -n the distinct keys are counted first: by their digests while the \
memory lasts, else by reading the files twice. The filter is then as large as they need and no \
larger; give -n if keys will be added later. Kinds that count repeats read the files twice.

With --like the filter has the shape of another one, so that the two merge, and the next \
generation, so that `petal delta` can tell which is newer. A Bloom filter has q * 2^s blocks a \
region, 256 <= q < 512 (any number below 512), and `petal shrink` folds it at least s times.

A window in time (--window 24h) goes by the clock: all lines of a run arrive when it starts. \
Later runs of add and check forget what has left the window by then."
)]
pub(crate) struct BuildArgs {
    /// Files to read [default: stdin].
    pub(crate) files: Vec<PathBuf>,

    /// The filter to write.
    #[arg(
        short = 'o',
        long,
        value_name = "FILTER",
        help_heading = "Input and output"
    )]
    pub(crate) output: PathBuf,

    /// Replace an existing filter.
    #[arg(long, help_heading = "Input and output")]
    pub(crate) force: bool,

    /// The error: the share of absent keys that will be reported as present.
    #[arg(
        short = 'p',
        long = "fpr",
        value_name = "P",
        allow_negative_numbers = true,
        default_value = "1e-6"
    )]
    pub(crate) fpr: String,

    /// The number of distinct keys to plan for [default: they are counted].
    /// Repeats are not among them, also where they are counted.
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) items: Option<String>,

    /// The kind of filter.
    #[arg(long, value_name = "KIND", default_value = "bloom")]
    pub(crate) kind: BuildKind,

    /// Take everything from this filter but its keys: the kind, the shape, n
    /// and p, and how lines become keys. A keyed one needs its --secret-file.
    #[arg(
        long,
        value_name = "FILTER",
        conflicts_with_all = [
            "fpr", "items", "kind", "positions", "counter_bits", "minimal", "window", "form", "ignore_case",
            "field", "delimiter", "strip_param",
        ]
    )]
    pub(crate) like: Option<PathBuf>,

    /// With --kind classic: bits that a key sets, 1 to 64 [default: as many as
    /// make the filter smallest]. Fewer make it larger, and smaller when it is
    /// packed: see `petal plan --wire`.
    #[arg(short = 'k', long, value_name = "K", allow_negative_numbers = true)]
    pub(crate) positions: Option<u32>,

    /// With --kind counting: bits of a counter, 4, 8 or 16 [default: 4]. It
    /// counts to 15, 255 or 65535, and one that has come there never goes down.
    #[arg(long, value_name = "BITS")]
    pub(crate) counter_bits: Option<u32>,

    /// With --kind counting: an insertion increases only the least of its
    /// counters. Counts are nearer to the truth; nothing can be removed.
    #[arg(long)]
    pub(crate) minimal: bool,

    /// With --kind window: how much it remembers, in lines that are added (50k, 1M;
    /// one that repeats within a fourteenth of them counts once) or time
    /// (90s, 30m, 24h, 7d). A window of time needs -n: the most distinct lines
    /// that come within it, evenly spread.
    #[arg(long, value_name = "SPAN", allow_negative_numbers = true)]
    pub(crate) window: Option<String>,

    /// Lines that `--as` cannot read are left out and counted, instead of
    /// being an error.
    #[arg(long)]
    pub(crate) skip_bad: bool,

    /// With --kind cascade: a list of lines that are never found. May be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) not_listed: Vec<PathBuf>,

    /// With --kind static: field N (from 1) of each line is a number up to 65535 that is kept with
    /// the key, in as many bits as the largest one needs: `check --values` prints it.
    #[arg(long, value_name = "N")]
    pub(crate) value_field: Option<u32>,

    /// With --kind static and cascade: where temporary files are made if the memory does not suffice; not on
    /// a file system in memory. Nothing is left of them [default: beside -o].
    #[arg(long, value_name = "DIR", help_heading = "Performance")]
    pub(crate) tmp: Option<PathBuf>,

    /// A label to record, such as `source=...`. May be given several times.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) label: Vec<String>,

    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) records: RecordArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BuildKind {
    /// Split blocks: the default.
    Bloom,
    /// The textbook filter: 5 % smaller, several times slower.
    Classic,
    /// Grows with its keys.
    Growable,
    /// The digests themselves: 10.7 to 21.4 bytes a key, error n/2^64. The
    /// order of the table is random: two files of the same keys differ.
    Digests,
    /// A counter for every bit: lines can be removed, and their repeats are
    /// counted. 4 times the size of bloom with counters of 4 bits.
    Counting,
    /// Fingerprints with counts: lines can be removed, and their repeats are
    /// counted, in about twice the memory if most lines come twice. A quarter
    /// smaller than bloom at 1e-6 where these are few.
    Deletable,
    /// Forgets what is older than --window.
    Window,
    /// The smallest, of keys that do not change: 1.003 times what theory allows, a third less
    /// than bloom. Nothing can be added.
    Static,
    /// Exact for the lines of two lists, this and --not-listed: a line of the first is always found,
    /// one of the other never. -p is for lines of neither; -p 1 leaves them to chance, which
    /// can be the smallest by far. Nothing can be added.
    Cascade,
}

/// Add the lines of lists to a filter
#[derive(Debug, Args)]
#[command(before_help = "Example:
  petal add known.petal more.txt")]
pub(crate) struct AddArgs {
    /// The filter to extend. It is replaced as a whole at the end.
    pub(crate) filter: PathBuf,

    /// Files to read [default: stdin].
    pub(crate) files: Vec<PathBuf>,

    /// Add even beyond the number of keys the filter was made for; its error
    /// then rises above what was promised.
    #[arg(long)]
    pub(crate) overfill: bool,

    /// Lines that the filter's `--as` cannot read are left out and counted.
    #[arg(long)]
    pub(crate) skip_bad: bool,

    /// Take a file whose writer in place was interrupted: the keys of its
    /// last generation are all there.
    #[arg(long)]
    pub(crate) recover: bool,

    /// Leave empty lines out.
    #[arg(long, help_heading = "Keys")]
    pub(crate) skip_empty: bool,

    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) records: RecordArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Take the lines of lists out of a filter
#[derive(Debug, Args)]
#[command(
    before_help = "Example:
  petal remove users.petal left.txt",
    after_help = "For filters of the kinds `counting` (without --minimal) and `deletable`. A line \
is taken out once for each time that it comes in the lists; one that the filter shows to be \
absent is left alone and counted, and so is one that came as often as its counters can say (15 \
times with 4 bits): it is there for good.

Remove only lines that were added, and no more often than they were. A line that never was, but \
is falsely found, is removed as well, and takes with it what belongs to other lines: these may \
then be missed."
)]
pub(crate) struct RemoveArgs {
    /// The filter to change. It is replaced as a whole at the end.
    pub(crate) filter: PathBuf,

    /// Files to read [default: stdin].
    pub(crate) files: Vec<PathBuf>,

    /// Lines that the filter's `--as` cannot read are left out and counted.
    #[arg(long)]
    pub(crate) skip_bad: bool,

    /// Leave empty lines out.
    #[arg(long, help_heading = "Keys")]
    pub(crate) skip_empty: bool,

    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) records: RecordArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Join filters of the same shape
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  petal merge monday.petal tuesday.petal -o both.petal
  petal merge --intersection a.petal b.petal -o common.petal")]
pub(crate) struct MergeArgs {
    /// Two filters or more.
    #[arg(required = true, num_args = 2..)]
    pub(crate) filters: Vec<PathBuf>,

    /// The filter to write.
    #[arg(
        short = 'o',
        long,
        value_name = "FILTER",
        help_heading = "Input and output"
    )]
    pub(crate) output: PathBuf,

    /// Keep what all filters have, instead of what any has.
    #[arg(long)]
    pub(crate) intersection: bool,

    /// Replace an existing filter.
    #[arg(long, help_heading = "Input and output")]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) foreign: ForeignArgs,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}
