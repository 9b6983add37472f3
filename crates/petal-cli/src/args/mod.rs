//! The command line: every verb, flag and help text, and nothing else.
//!
//! Completions and the man page are generated from these definitions. What a
//! flag means is decided where it is used: lines to keys in `keys`, values in
//! `params`, each verb in its own file. Here are what several verbs share, and
//! those without flags of their own.

mod ask;
mod build;
mod dedup;
mod foreign;
mod wire;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use ask::{CheckArgs, InfoArgs, PlanArgs, PlanTable, VerifyArgs};
pub(crate) use build::{AddArgs, BuildArgs, BuildKind, MergeArgs, RemoveArgs};
pub(crate) use dedup::{CommonArgs, DedupArgs, ExactArgs, ExceptArgs, WhenFull};
pub(crate) use foreign::{
    ConvertArgs, EncodingArg, Experiment, ForeignArgs, ForeignForm, KeyKindArg, LabArgs,
    LabClassicArgs, LabHashArgs,
};
pub(crate) use wire::{ApplyDeltaArgs, DeltaArgs, PackArgs, ShrinkArgs, TargetArgs, UnpackArgs};

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
    Shrink(ShrinkArgs),
    Pack(PackArgs),
    Unpack(UnpackArgs),
    Delta(DeltaArgs),
    ApplyDelta(ApplyDeltaArgs),
    Info(InfoArgs),
    Verify(VerifyArgs),
    Plan(PlanArgs),
    Convert(ConvertArgs),
    Lab(LabArgs),
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

    /// The key is field N (from 1) of the line. Lines that lack it are
    /// counted; `dedup` and `except` print them.
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
    /// The bytes of the line, without the CR of a CRLF (with -0: all of them).
    Line,
    /// The canonical form of a URL: host case, default port, dot segments,
    /// percent-encoding, fragment. Other lines are compared as they are.
    Url,
    /// The first run of hex digits, in any case (`HASH:count`, `sha1sum`).
    Hex,
    /// A decimal integer of 64 bits.
    Int,
    /// An IPv4 address in dotted decimal, compared as a number. `dedup` keeps those
    /// in an exact bitmap, of 520 MiB at most, if half of --memory is 16 MiB or more
    /// and neither -p, --state, --secret-file nor --window is given.
    Ipv4,
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
