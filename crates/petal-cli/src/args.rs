//! The command line: every verb, flag and help text, and nothing else.
//!
//! Completions and the man page are generated from these definitions. What a
//! flag means is decided where it is used: lines to keys in `keys`, memory
//! in `memory`, each verb in its own file.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Have I seen this line? De-duplicate, build, check and merge sets that are
/// too large to keep.
#[derive(Debug, Parser)]
#[command(
    name = "petal",
    version,
    max_term_width = 100,
    subcommand_value_name = "VERB",
    subcommand_help_heading = "Verbs",
    before_help = "Examples:
  petal dedup urls.txt -o unique.txt      the first occurrence of each line, in order
  petal common a.txt b.txt                the lines that are in both, whatever their size
  petal build hashes.txt -o known.petal   make a filter of a list
  petal check known.petal mine.txt        print the lines that are in it
  petal plan -n 1G -p 1e-6                what would a filter of 10^9 keys take?",
    after_help = "Files may be plain, gzip, zstd or xz. `-` is stdin. \
                  Exit status: 0 done or found, 1 nothing found (check), 2 error."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Dedup(DedupArgs),
    Build(BuildArgs),
    Add(AddArgs),
    Remove(RemoveArgs),
    Check(CheckArgs),
    Common(CommonArgs),
    Except(ExceptArgs),
    Merge(MergeArgs),
    Info(InfoArgs),
    Verify(VerifyArgs),
    Plan(PlanArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// How a line becomes a key. A filter records these, so that a later check
/// cannot ask another question.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Keys")]
pub(crate) struct KeyArgs {
    /// What a line is: compare canonical URLs, hex digests or integers
    /// instead of the bytes of the line.
    #[arg(long = "as", value_name = "FORM", default_value = "line")]
    pub(crate) form: Form,

    /// Ignore case of ASCII letters.
    #[arg(long)]
    pub(crate) ignore_case: bool,

    /// The key is field N (from 1) of the line. A line that lacks it is kept
    /// and counted.
    #[arg(long, value_name = "N", requires = "delimiter")]
    pub(crate) field: Option<u32>,

    /// The byte between fields: one character, or \t.
    #[arg(long, value_name = "C")]
    pub(crate) delimiter: Option<String>,

    /// With `--as url`: drop query parameters of this name; `utm_*` drops
    /// all that begin with `utm_`. May be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) strip_param: Vec<String>,

    /// Leave empty lines out.
    #[arg(long)]
    pub(crate) skip_empty: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// The bytes of the line, without the CR of a CRLF.
    Line,
    /// The canonical form of a URL: host case, default port, dot segments,
    /// percent-encoding, fragment. Other lines are compared as they are.
    Url,
    /// The first run of hex digits, in any case (`HASH:count`, `sha1sum`).
    Hex,
    /// A decimal integer of 64 bits.
    Int,
}

/// Reading records.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Input and output")]
pub(crate) struct RecordArgs {
    /// Records end with NUL instead of a newline.
    #[arg(short = '0', long = "null")]
    pub(crate) null: bool,
}

/// The secret of keyed filters.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Keys")]
pub(crate) struct SecretArgs {
    /// Hash keys under the secret in FILE (16 bytes, or 32 hex digits): for
    /// keys that strangers choose. The filter does not contain it.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
}

/// Resources and reports.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct RunArgs {
    /// Memory to use at most, such as 512M or 4G [default: a quarter of what
    /// this process may use].
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Threads that read, hash and judge lines [default: one for each core].
    /// Output and filters are the same for every number. With 2 or more, a
    /// further thread compresses and writes; more than 8 are not used.
    #[arg(short = 'j', long = "threads", value_name = "N")]
    pub(crate) threads: Option<usize>,

    /// No progress, plan or summary on stderr; errors only.
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,

    /// The summary on stderr.
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) summary: Summary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Summary {
    /// For people.
    Text,
    /// One line of JSON.
    Json,
    /// None.
    None,
}

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
so long is printed once. Lines are forgotten in steps of a fourteenth of the window: a line is \
never forgotten early, and up to that much late. A window in lines counts the distinct ones of \
each fourteenth. The time is that of arrival, or what --time-field says, in seconds since \
1970 (such as 1700000000.25) or RFC 3339 (2023-11-14T22:13:20Z); times after 2500 are not \
read. A line without a readable time is printed and not remembered, and so is one whose time \
lies more than a window before the latest. The key is the whole line, its time included, \
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

    /// Drop only lines that were seen within the last so many lines (50k, 1M)
    /// or stretch of time (90s, 30m, 24h, 7d) [default of -p: 1e-6].
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
                              "when_full", "state", "secret_file"],
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

/// Make a filter from lists of lines
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  petal build hashes.txt -o known.petal                  error 1e-6, keys counted for you
  petal build *.txt.gz -o seen.petal -p 1e-3 -n 100M     a size of your own
  petal build sums -o known.petal --as hex --label hash=sha1
  petal build users.txt -o users.petal --kind deletable  can forget: `petal remove`
  petal build log -o seen.petal --kind window --window 1M",
    after_help = "Without -n the distinct keys are counted first: by their digests while the \
memory lasts, else by reading the files twice. The filter is then as large as they need and no \
larger; give -n if keys will be added later. Kinds that count repeats read the files twice.

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
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) items: Option<String>,

    /// The kind of filter.
    #[arg(long, value_name = "KIND", default_value = "bloom")]
    pub(crate) kind: BuildKind,

    /// With --kind counting: bits of a counter, 4, 8 or 16 [default: 4]. It
    /// counts to 15, 255 or 65535, and one that has come there never goes down.
    #[arg(long, value_name = "BITS")]
    pub(crate) counter_bits: Option<u32>,

    /// With --kind counting: an insertion increases only the least of its
    /// counters. Counts are nearer to the truth; nothing can be removed.
    #[arg(long)]
    pub(crate) minimal: bool,

    /// With --kind window: how much it remembers, in lines (50k, 1M) or time
    /// (90s, 30m, 24h, 7d). A window of time needs -n: the most distinct lines
    /// that come within it.
    #[arg(long, value_name = "SPAN", allow_negative_numbers = true)]
    pub(crate) window: Option<String>,

    /// Lines that `--as` cannot read are left out and counted, instead of
    /// being an error.
    #[arg(long)]
    pub(crate) skip_bad: bool,

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
    /// counted. A quarter smaller than bloom at 1e-6 where these are few.
    Deletable,
    /// Forgets what is older than --window.
    Window,
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
absent is left alone and counted.

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

/// Print the lines that are in a filter
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  petal check known.petal mine.txt              lines that are in the filter
  petal check -v known.petal mine.txt           lines that are not
  petal check a.petal -f b.petal -H mine.txt    in any of them, and which
  petal check -c known.petal mine.txt           only their number
  petal check --times users.petal mine.txt      before each, how often it was added",
    after_help = "How a line becomes a key (--as, --ignore-case, --field, ...) comes from the \
filter. The summary says about how many hits are expected to be false: a line that was never \
added is a hit with the probability of the filter's error.

A count of --times is never below the truth, up to the most that a counter holds (15, 255 or \
65535: that often or more), and above it as rarely as an absent line is found. A filter of a \
window of time is asked as it stands at the start of the run."
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
    /// that count: of the kinds `counting` and `deletable`.
    #[arg(long, conflicts_with_all = ["invert", "with_name", "count", "more_filters"])]
    pub(crate) times: bool,

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

    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) records: RecordArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
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
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Show what a filter is: kind, labels, fill, error
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  petal info known.petal
  petal info --json known.petal")]
pub(crate) struct InfoArgs {
    /// The filters.
    #[arg(required = true)]
    pub(crate) filters: Vec<PathBuf>,

    /// One line of JSON for each.
    #[arg(long)]
    pub(crate) json: bool,
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
}

/// Work out sizes and errors: give any two of n, p, m and k
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  petal plan -n 100M -p 1e-6         bytes for 10^8 keys
  petal plan -n 100M -m 256M         the error in that much memory
  petal plan -m 1G -p 1e-3           the keys that fit
  petal plan --table                 cost of each kind at usual errors
  petal plan -n 100M --plot fpr.svg  error against size")]
pub(crate) struct PlanArgs {
    /// Distinct keys, such as 50k, 2M, 1G (times 1000).
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) items: Option<String>,

    /// The error, from 0.5 down to 1e-12.
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

    /// Print the cost of every kind at the usual errors.
    #[arg(long, conflicts_with_all = ["fpr", "bytes", "positions"])]
    pub(crate) table: bool,

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

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(before_help = "Example:
  petal completions bash > /etc/bash_completion.d/petal")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

/// Print the man page
#[derive(Debug, Args)]
#[command(before_help = "Example:
  petal man > petal.1")]
pub(crate) struct ManArgs {}
