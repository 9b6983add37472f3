//! Filters that are asked and described: `check`, `info`, `verify`, `plan`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{ForeignArgs, ForeignForm, RecordArgs, RunArgs, SecretArgs};

/// Print the lines that are in a filter
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  petal check known.petal mine.txt              lines that are in the filter
  petal check -v known.petal mine.txt           lines that are not
  petal check a.petal -f b.petal -H mine.txt    in any of them, and which
  petal check -c known.petal mine.txt           only their number
  petal check deny.petal --allow customers.txt mail.txt  those of the list never
  petal check --times users.petal mine.txt      before each, how often it was added
  petal check --values leaks.petal mine.txt     before each, the value that it came with",
    after_help = "How a line becomes a key (--as, --ignore-case, --field, ...) comes from the \
filter. The summary says about how many hits are expected to be false: a line that was never \
added is a hit with the probability of the filter's error.

A count of --times is never below the truth, up to the most that a counter holds (15, 255 or \
65535: that often or more), and above it as rarely as an absent line is found. A filter of a \
window of time is asked as it stands at the start of the run.

A filter of two lists (--kind cascade) is exact for the lines of both; its error, and the hits expected \
to be false, are of lines that are in neither."
)]
pub(crate) struct CheckArgs {
    /// The filter to ask.
    pub(crate) filter: PathBuf,

    /// Files to read [default: stdin].
    pub(crate) files: Vec<PathBuf>,

    /// A further filter: a line that is in any of them counts. May be given
    /// several times.
    #[arg(short = 'f', long = "filter", value_name = "FILTER")]
    pub(crate) more_filters: Vec<PathBuf>,

    /// Lines of LIST count as not in any filter: exact exceptions, such as customers beside a deny
    /// list. Their keys are taken as those of other lines. May be given several times.
    #[arg(long, value_name = "LIST")]
    pub(crate) allow: Vec<PathBuf>,

    /// Print the lines that are not in the filter.
    #[arg(short = 'v', long)]
    pub(crate) invert: bool,

    /// Print the name of the first filter that has the line, and a tab,
    /// before it.
    #[arg(short = 'H', long, conflicts_with = "invert")]
    pub(crate) with_name: bool,

    /// Print only the number of lines.
    #[arg(short = 'c', long, conflicts_with = "with_name")]
    pub(crate) count: bool,

    /// Print how often each line was added, and a tab, before it. For filters
    /// that count: of the kinds `counting` and `deletable`, and the counting ones of
    /// npm and pyprobables.
    #[arg(long, conflicts_with_all = ["invert", "with_name", "count", "more_filters"])]
    pub(crate) times: bool,

    /// Print the value that each line came with, and a tab, before it. For filters built with
    /// --value-field.
    #[arg(long, conflicts_with_all = ["invert", "with_name", "count", "more_filters", "times"])]
    pub(crate) values: bool,

    /// Map the filter instead of reading all of it first: starts at once, and
    /// does not verify its checksums.
    #[arg(long)]
    pub(crate) mapped: bool,

    /// Write to FILE instead of stdout.
    #[arg(
        short = 'o',
        long,
        value_name = "FILE",
        help_heading = "Input and output"
    )]
    pub(crate) output: Option<PathBuf>,

    /// Leave empty lines out.
    #[arg(long, help_heading = "Keys")]
    pub(crate) skip_empty: bool,

    /// What a line is to the makers of filters of other systems [default: line].
    #[arg(
        long = "as",
        value_name = "FORM",
        help_heading = "Filters of other systems"
    )]
    pub(crate) form: Option<ForeignForm>,

    #[command(flatten)]
    pub(crate) foreign: ForeignArgs,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) records: RecordArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Show what a filter is: kind, labels, fill, error
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  petal info known.petal
  petal info --json known.petal",
    after_help = "In JSON `distinct` is the number of distinct keys, less those that were falsely \
seen when they came; `insertions`, of counting filters, is that of all insertions, repeats too, less \
removals; `new_keys`, of windows, is how many were new, of all time. Each is null where the filter \
does not count that; `estimated_keys` is always an estimate of the distinct keys in it, also where it is exact."
)]
pub(crate) struct InfoArgs {
    /// The filters.
    #[arg(required = true)]
    pub(crate) filters: Vec<PathBuf>,

    /// One line of JSON for each.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) foreign: ForeignArgs,
}

/// Read whole filters and check every checksum
#[derive(Debug, Args)]
#[command(before_help = "Example:
  petal verify *.petal")]
pub(crate) struct VerifyArgs {
    /// The filters.
    #[arg(required = true)]
    pub(crate) filters: Vec<PathBuf>,

    /// Print nothing for intact files.
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) foreign: ForeignArgs,
}

/// Work out sizes and errors: give any two of n, p, m and k
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  petal plan -n 100M -p 1e-6         bytes for 10^8 keys
  petal plan -n 100M -m 256M         the error in that much memory
  petal plan -m 1G -p 1e-3           the keys that fit
  petal plan -n 1M --wire 1M --memory 8M   the filter that packs best
  petal plan --table                 error of the textbook filter by m/n and k
  petal plan --table cost            cost of each kind at usual errors
  petal plan -n 100M --plot fpr.svg  error against size")]
pub(crate) struct PlanArgs {
    /// Distinct keys, such as 50k, 2M, 1G (times 1000).
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) items: Option<String>,

    /// The error, below 1 and down to 1e-12.
    #[arg(
        short = 'p',
        long = "fpr",
        value_name = "P",
        allow_negative_numbers = true
    )]
    pub(crate) fpr: Option<String>,

    /// Memory, such as 64M or 1G (times 1024).
    #[arg(short = 'm', long = "bytes", value_name = "SIZE")]
    pub(crate) bytes: Option<String>,

    /// Positions a key (classic filters only).
    #[arg(short = 'k', long, value_name = "K", allow_negative_numbers = true)]
    pub(crate) positions: Option<u32>,

    /// Bytes that the packed filter may take on the wire: finds the classic
    /// filter with the least error that fits them, and `--memory` unpacked.
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["fpr", "bytes", "table", "plot"])]
    pub(crate) wire: Option<String>,

    /// Print the published table of the errors of the textbook filter by m/n and
    /// k; or, as `--table cost`, the cost of every kind at the usual errors.
    #[arg(
        long,
        value_name = "WHICH",
        num_args = 0..=1,
        default_missing_value = "classic",
        conflicts_with_all = ["fpr", "bytes", "positions"]
    )]
    pub(crate) table: Option<PlanTable>,

    /// Memory of the machine that is to hold the filter [default: what this
    /// process may use].
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Keys are integers: they share no digests.
    #[arg(long)]
    pub(crate) int: bool,

    /// JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,

    /// Draw error against size into FILE, an SVG picture.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanTable {
    /// (1 - e^(-k n/m))^k for m/n from 2 to 32 and k from 1 to 24, tab-separated.
    Classic,
    /// Bits a key of every kind at the usual errors.
    Cost,
}
