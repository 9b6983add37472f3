//! Filters of other systems: what their files do not say, `convert` and `lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use petal_interop::lab::LabHash;
use petal_interop::{ClassicProgram, Format, RbloomHash};

use super::{RecordArgs, RunArgs};

/// What the file of another system does not say of itself.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Filters of other systems")]
pub(crate) struct ForeignArgs {
    /// Whose file the filters are, where it cannot be told by looking: guava, spark, dcso,
    /// poppy, bits-and-blooms, redisbloom, parquet, npm, pybloom-live, pyprobables, squid, rbloom
    /// or classic.
    #[arg(long, value_name = "NAME")]
    pub(crate) format: Option<Format>,

    /// Of rbloom: the hash that fills it, sha256, md5, xxh64 or xxh3-128.
    #[arg(long, value_name = "NAME")]
    pub(crate) hash: Option<RbloomHash>,

    /// Of a .parquet file: the column, by its path with dots.
    #[arg(long, value_name = "PATH")]
    pub(crate) column: Option<String>,

    /// Of a .parquet file: only this row group, from 0.
    #[arg(long, value_name = "N")]
    pub(crate) row_group: Option<usize>,

    /// Of classic: the program whose bits were dumped, java-a, java-b, java-c,
    /// url-dedup-c, spider-c, php:M:K or php-old:M:K.
    #[arg(long, value_name = "NAME")]
    pub(crate) program: Option<ClassicProgram>,

    /// Of pybloom-live: made by a release before 4.
    #[arg(long)]
    pub(crate) old_pybloom: bool,
}

/// What a line is to the maker of a filter of another system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ForeignForm {
    /// Text, without the CR of a CRLF; bytes if it is no UTF-8.
    #[default]
    Line,
    /// Bytes, where the maker tells them from text (Python).
    Bytes,
    /// The UTF-16 units of text (Guava's unencodedChars, Java).
    Utf16,
    /// A decimal integer of 32 bits.
    I32,
    /// A decimal integer of 64 bits.
    I64,
    /// A decimal number, as a float of 32 bits (Parquet's FLOAT).
    F32,
    /// A decimal number, as a float of 64 bits (Parquet's DOUBLE).
    F64,
    /// Bytes, as pairs of hexadecimal digits (Parquet's fixed lengths).
    Hex,
}

impl ForeignForm {
    /// The name, as on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Bytes => "bytes",
            Self::Utf16 => "utf16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Hex => "hex",
        }
    }
}

/// Write the filter of one system as another one's
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  petal convert f.bloom.gz -o f.bloom --to dcso          the same bits, not compressed
  petal convert f.bin -o f.json --to bits-and-blooms --encoding json
  petal convert data.parquet --column url --row-group 0 -o url.sbbf --to parquet
  petal convert old.bloom --list keys.txt -o new.bin --to guava",
    after_help = "Bits can be taken over only between formats with the same hash: a filter does \
not know its keys. For another hash give the keys again with --list: the new filter is made for \
as many keys, and the error, of the old one, unless -n and -p say otherwise: those that its file \
says, or that its bits and positions were best for. `--to petal` makes a filter of petal, and the \
old one may be one."
)]
pub(crate) struct ConvertArgs {
    /// The filter.
    pub(crate) filter: PathBuf,

    /// The file to write.
    #[arg(
        short = 'o',
        long,
        value_name = "FILE",
        help_heading = "Input and output"
    )]
    pub(crate) output: PathBuf,

    /// Replace an existing file.
    #[arg(long, help_heading = "Input and output")]
    pub(crate) force: bool,

    /// The format to write: a name as for --format, or petal [default: that of
    /// the filter].
    #[arg(long, value_name = "NAME")]
    pub(crate) to: Option<String>,

    /// How it is written down, where there are several ways.
    #[arg(long, value_name = "WAY")]
    pub(crate) encoding: Option<EncodingArg>,

    /// Build it anew from the lines of FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) list: Vec<PathBuf>,

    /// Keys that the new filter is made for.
    #[arg(short = 'n', long, value_name = "N", requires = "list")]
    pub(crate) items: Option<String>,

    /// Error that it is made for.
    #[arg(short = 'p', long = "fpr", value_name = "P", requires = "list")]
    pub(crate) fpr: Option<String>,

    /// What a line of the list is to the maker of the new filter.
    #[arg(long = "as", value_name = "FORM", default_value = "line")]
    pub(crate) form: ForeignForm,

    /// Leave out lines of the list that are not of the form.
    #[arg(long, requires = "list")]
    pub(crate) skip_bad: bool,

    #[command(flatten)]
    pub(crate) foreign: ForeignArgs,
    #[command(flatten)]
    pub(crate) records: RecordArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EncodingArg {
    /// The maker's usual file.
    Plain,
    /// Compressed (dcso).
    Gzip,
    /// JSON (bits-and-blooms, npm).
    Json,
    /// Hexadecimal (pyprobables).
    Hex,
}

/// Look into hashes and classic programs
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  petal lab hash weighted-sum xxh3           how good they are for a Bloom filter
  petal lab classic url-dedup-c urls.txt     what that program makes of a file, and why")]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) experiment: Experiment,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Experiment {
    Hash(LabHashArgs),
    Classic(LabClassicArgs),
}

/// Measure how good hashes are for a Bloom filter
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  petal lab hash                                  all hashes on short strings
  petal lab hash weighted-sum xxh3 --plot e.svg   error over load, against theory
  petal lab hash --keys urls.txt --json",
    after_help = "Every second key is inserted, the others are asked for. Position i of a key is \
the hash of the key with one byte i behind it, modulo m; the weighted sum takes its seed i. In \
the table: the error at full load as a multiple of theory, (1 - e^(-kn/m))^k; the worst bit's \
distance from one half (fair: up to five standard deviations); pairs of keys with one hash, and \
what chance would give; the time for a key."
)]
pub(crate) struct LabHashArgs {
    /// The hashes, such as weighted-sum, bkdr, crc32, md5, fnv-1a, murmur3, xxh3, siphash
    /// [default: all].
    pub(crate) hashes: Vec<LabHash>,

    /// Keys from the lines of FILE, each once.
    #[arg(long, value_name = "FILE", conflicts_with = "generate")]
    pub(crate) keys: Option<PathBuf>,

    /// Keys that are made up.
    #[arg(long, value_name = "KIND", default_value = "short")]
    pub(crate) generate: KeyKindArg,

    /// How many keys are inserted, at most, and asked for.
    #[arg(short = 'n', long, value_name = "N", default_value = "20k")]
    pub(crate) items: String,

    /// Bits of the filter a key.
    #[arg(long, value_name = "BITS", default_value_t = 10)]
    pub(crate) bits_per_key: u64,

    /// Positions a key.
    #[arg(short = 'k', long, value_name = "K", default_value_t = 7)]
    pub(crate) positions: u32,

    /// One line of JSON for each hash.
    #[arg(long)]
    pub(crate) json: bool,

    /// Draw error over load into FILE, an SVG picture.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyKindArg {
    /// 0, 1, 2, … as 8 bytes, the highest first.
    BigEndian,
    /// The same, the lowest first.
    LittleEndian,
    /// URLs that differ in a number.
    Urls,
    /// Strings of three to five letters.
    Short,
}

/// Run a classic program on a file and explain what it gets wrong
#[derive(Debug, Args)]
#[command(
    before_help = "Example:
  petal lab classic url-dedup-c urls.txt -o repeats.txt",
    after_help = "The answers are those of the program as it was published, bugs included: its \
counts and the right ones, then a line for each place where it goes wrong."
)]
pub(crate) struct LabClassicArgs {
    /// The program: url-dedup-c.
    pub(crate) program: ClassicProgram,

    /// The file that it would read, or - for stdin.
    pub(crate) file: PathBuf,

    /// Write the file of repeats that it would write.
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Bytes above 127 are positive numbers, as on ARM.
    #[arg(long)]
    pub(crate) unsigned_char: bool,

    /// One line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
