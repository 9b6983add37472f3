//! Lines to lines: `dedup`, `common` and `except`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{KeyArgs, RecordArgs, RunArgs, SecretArgs};

/// Print the first occurrence of each line, in input order, in bounded memory
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  petal dedup urls.txt -o unique.txt            keep the first of each line
  zcat crawl.gz | petal dedup --as url > new    canonical URLs, from a pipe
  petal dedup today.txt --state seen.petal      only lines not seen on earlier days
  petal dedup big.txt -p 1e-3 --memory 512M     less memory: may drop 1 line in 1000
  petal dedup --exact huge.txt -o unique.txt    exact, files larger than memory
  petal dedup --exact -c huge.txt               how often each line occurs
  tail -f log | petal dedup --window 1h         not what was seen within the last hour",
    after_help = "Without -p, lines are remembered by 64-bit digests while the memory lasts, \
in practice never wrong; after that by a Bloom filter with an error of at most 1e-9. The \
summary states the expected number of distinct lines that were wrongly dropped.

With --state and no -o, lines after the last save are printed again when an interrupted run \
is repeated: delivery is at least once. With -o the file is cut back to the last save first.

With --window a line is dropped if an equal one was seen within the window, whether that was \
printed or not: each repeat starts the window of its line anew, so a line that never pauses for \
so long is printed once. Lines are forgotten in steps of a fourteenth of the window, rounded up, \
up to one step late. A window in lines counts every line of the input: repeats, lines that are \
left out, and those of other parts too. One in \
time is planned for -n distinct lines, evenly spread: if more than a fourteenth of them come in a \
step, the oldest may be forgotten early, with a warning. The time is that of arrival, or what --time-field says, in seconds since \
1970 (such as 1700000000.25) or RFC 3339 (2023-11-14T22:13:20Z); times after 2500 are not \
read. The window ends at the latest time so far. A line that is older than one before it is \
forgotten when its own time says. A line without a readable time is printed and not remembered, \
and so is one whose time lies more than a window before the latest: after a single time far in \
the future that is all that follow. Both are counted, and a warning at the end says how many \
there were, and which line went ahead by more than a window, if one did. The key is the whole line, its time included, \
unless --field says otherwise."
)]
pub(crate) struct DedupArgs {
    /// Files to read, one after the other [default: stdin].
    pub(crate) files: Vec<PathBuf>,

    /// Write to FILE instead of stdout; replaced as a whole at the end.
    /// `.gz`, `.zst` and `.xz` compress.
    #[arg(
        short = 'o',
        long,
        value_name = "FILE",
        help_heading = "Input and output"
    )]
    pub(crate) output: Option<PathBuf>,

    /// Use a Bloom filter from the start, with this error: the share of
    /// distinct lines that may be dropped.
    #[arg(
        short = 'p',
        long = "fpr",
        value_name = "P",
        allow_negative_numbers = true
    )]
    pub(crate) fpr: Option<String>,

    /// With -p: the number of distinct lines to plan for [default: from a
    /// sample of the files; grows for stdin]. With a --window of time: the
    /// most that come within it [default: 10M].
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) items: Option<String>,

    /// Drop only lines that were seen within the last so many lines of the
    /// input (50k, 1M) or stretch of time (90s, 30m, 24h, 7d) [default of -p: 1e-6].
    #[arg(long, value_name = "SPAN", allow_negative_numbers = true)]
    pub(crate) window: Option<String>,

    /// With a --window of time: the time of a line is its field N (from 1),
    /// instead of when it arrives. Needs --delimiter.
    #[arg(long, value_name = "N", requires = "window", requires = "delimiter")]
    pub(crate) time_field: Option<u32>,

    /// Print one line of each group of repeated lines.
    #[arg(short = 'd', long, conflicts_with = "all_repeated")]
    pub(crate) repeated: bool,

    /// Print every repeat: all lines but the first occurrences.
    #[arg(short = 'D', long)]
    pub(crate) all_repeated: bool,

    /// Write every repeat to FILE.
    #[arg(long, value_name = "FILE", help_heading = "Input and output")]
    pub(crate) repeats_to: Option<PathBuf>,

    /// Handle only the lines of part I of N, chosen by their digest: what
    /// one machine cannot hold, N runs or machines can.
    #[arg(long, value_name = "I/N")]
    pub(crate) part: Option<String>,

    /// What to do with new lines when the memory is full [default: stop;
    /// with --window: loosen].
    #[arg(long, value_name = "WHAT")]
    pub(crate) when_full: Option<WhenFull>,

    /// Remember the lines in FILE, so that a later run continues: after an
    /// interruption with the same input, else with further input.
    #[arg(long, value_name = "FILE", help_heading = "Input and output")]
    pub(crate) state: Option<PathBuf>,

    /// Seconds between saves of the state [default: 60, or more where saves
    /// would take over 5 % of the time].
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "state",
        help_heading = "Input and output"
    )]
    pub(crate) save_every: Option<f64>,

    /// Exact, also where the lines do not fit into memory: their fingerprints then go through
    /// temporary files. Needs files that can be read again; stdin is copied to one.
    #[arg(
        long,
        conflicts_with_all = ["fpr", "items", "repeated", "all_repeated", "repeats_to", "part",
                              "when_full", "state", "save_every", "secret_file", "window", "time_field"],
        help_heading = "Exact"
    )]
    pub(crate) exact: bool,

    /// With --exact: print only lines that are never repeated.
    #[arg(short = 'u', long, requires = "exact", help_heading = "Exact")]
    pub(crate) unique: bool,

    /// With --exact: print before each line how often it occurs.
    #[arg(
        short = 'c',
        long,
        requires = "exact",
        conflicts_with = "unique",
        help_heading = "Exact"
    )]
    pub(crate) count: bool,

    #[command(flatten)]
    pub(crate) exact_work: ExactArgs,

    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) records: RecordArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenFull {
    /// End with output and state complete, and exit status 2.
    #[default]
    Stop,
    /// Print on without remembering.
    Pass,
    /// Remember on, and report the error it comes to; with --window, forget
    /// the oldest lines early, and report how short the window has become.
    Loosen,
}

/// Working on files larger than memory.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Exact")]
pub(crate) struct ExactArgs {
    /// Where temporary files are made if the memory does not suffice; not on a file system in
    /// memory. Nothing is left of them [default: beside -o, else $TMPDIR, else /var/tmp].
    #[arg(long, value_name = "DIR")]
    pub(crate) tmp: Option<PathBuf>,

    /// Compare the bytes of lines with equal 128-bit fingerprints as well, which reads all files
    /// once more.
    #[arg(long)]
    pub(crate) verify: bool,
}

/// Print the lines that are in all of several files, exactly
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  petal common a.txt b.txt -o both.txt          lines of a.txt that are also in b.txt
  petal common *.txt.gz --at-least 3            lines that are in three of them or more
  petal common a.txt b.txt --memory 4G --tmp /disk/tmp",
    after_help = "Lines come once each, in the order of the first file (with --at-least: of their \
first occurrence). The files may be larger than memory; the plan is printed first."
)]
pub(crate) struct CommonArgs {
    /// Two files or more; `-` is stdin.
    #[arg(required = true, num_args = 2..)]
    pub(crate) files: Vec<PathBuf>,

    /// Print lines that are in at least K of the files [default: in all].
    #[arg(long, value_name = "K")]
    pub(crate) at_least: Option<usize>,

    #[command(flatten)]
    pub(crate) sets: SetArgs,
}

/// Print the lines of the first file that are in none of the others, exactly
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  petal except a.txt b.txt -o only-in-a.txt
  petal except all.txt done-1.gz done-2.gz      what is left to do",
    after_help = "Lines come once each, in the order of the first file. The files may be larger \
than memory; the plan is printed first."
)]
pub(crate) struct ExceptArgs {
    /// The file whose lines are wanted, and those whose are not; `-` is stdin.
    #[arg(required = true, num_args = 2..)]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) sets: SetArgs,
}

/// What `common` and `except` have in common.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// Print every occurrence in the first file that has the line, instead of the first alone.
    #[arg(long)]
    pub(crate) multi: bool,

    /// Write to FILE instead of stdout; replaced as a whole at the end.
    /// `.gz`, `.zst` and `.xz` compress.
    #[arg(
        short = 'o',
        long,
        value_name = "FILE",
        help_heading = "Input and output"
    )]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) exact_work: ExactArgs,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    #[command(flatten)]
    pub(crate) records: RecordArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}
