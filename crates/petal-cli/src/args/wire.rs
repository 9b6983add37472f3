//! Filters made small, to be sent: `shrink`.

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
