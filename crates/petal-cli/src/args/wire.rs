//! Filters made small, to be sent: `shrink`, `pack`, `unpack`, `delta`,
//! `apply-delta`.

use std::path::PathBuf;

use clap::Args;

use super::{RunArgs, SecretArgs};

/// Refit a filter to the keys it holds
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  petal shrink roomy.petal -o small.petal        same error, room for what is in it
  petal shrink roomy.petal -o small.petal -p 1e-3",
    after_help = "For filters of the kinds bloom, classic and growable. The filter is folded to \
half its size as often as its error allows: the result is, bit for bit, the one of that size that \
the same lines would have made, so it merges with `petal build --like small.petal`. A filter \
folds as long as its number of blocks (of bits, if it is classic) is even; `petal build` makes \
bloom filters of q * 2^s blocks a region, 256 <= q < 512, which fold at least s times."
)]
pub(crate) struct ShrinkArgs {
    /// The filter to read.
    pub(crate) filter: PathBuf,

    #[command(flatten)]
    pub(crate) target: TargetArgs,

    /// The error that it is to keep [default: the one it was made for].
    #[arg(
        short = 'p',
        long = "fpr",
        value_name = "P",
        allow_negative_numbers = true
    )]
    pub(crate) fpr: Option<String>,

    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Where a file goes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Input and output")]
pub(crate) struct TargetArgs {
    /// The file to write.
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Replace an existing file.
    #[arg(long)]
    pub(crate) force: bool,
}

/// Pack a filter for sending
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  petal pack digest.petal -o digest.petalw
  petal plan --wire 900K --memory 4M -n 1M       a filter that packs best",
    after_help = "For filters of the kinds bloom, classic and growable. A filter whose bits are \
half set does not get smaller; one that is emptier does, to within 1 % of the entropy of its \
bits: `petal shrink` it first if it was made for more keys than it holds, or plan \
a large one with few positions. The secret of a keyed filter is not needed."
)]
pub(crate) struct PackArgs {
    /// The filter to read.
    pub(crate) filter: PathBuf,

    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Make a filter of a packed one
#[derive(Debug, Args)]
#[command(before_help = "Example:
  petal unpack digest.petalw -o digest.petal     the very file that was packed")]
pub(crate) struct UnpackArgs {
    /// The packed filter to read.
    pub(crate) packed: PathBuf,

    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Write what has changed from one version of a filter to the next
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  petal build new.txt -o tuesday.petal --like monday.petal
  petal delta monday.petal tuesday.petal -o tuesday.petald",
    after_help = "For filters of the kinds bloom, classic and growable, of the same shape and \
keys. The new one is of a later generation: `build --like` counts it, and so do `add` and \
`remove`. The secret of keyed filters is not needed."
)]
pub(crate) struct DeltaArgs {
    /// The filter that the other side has.
    pub(crate) old: PathBuf,

    /// The filter that it is to have.
    pub(crate) new: PathBuf,

    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Make the next version of a filter by a delta
#[derive(Debug, Args)]
#[command(
    before_help = "Example:
  petal apply-delta monday.petal tuesday.petald -o tuesday.petal",
    after_help = "The result is, byte for byte, the filter that the delta was made of. A delta \
for another filter, or out of order, is refused. With --force the output may be the old filter."
)]
pub(crate) struct ApplyDeltaArgs {
    /// The filter that is there.
    pub(crate) old: PathBuf,

    /// What has changed since.
    pub(crate) delta: PathBuf,

    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}
