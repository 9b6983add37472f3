//! What several makers' sizings have in common. Their roundings, which differ,
//! stand with their formats.

use std::f64::consts::LN_2;

use crate::error::{Error, Result};

/// `-n ln p / (ln 2)^2`, in the order of operations that the makers share.
pub(crate) fn ideal_bits(items: u64, error: f64) -> f64 {
    -(items as f64) * error.ln() / (LN_2 * LN_2)
}

/// Toward zero; what does not fit becomes the largest or 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturating is what is wanted, and documented"
)]
pub(crate) const fn truncate(value: f64) -> u64 {
    value as u64
}

/// Refuses an error that no maker accepts.
pub(crate) fn check_error(error: f64) -> Result<()> {
    if error > 0.0 && error < 1.0 {
        return Ok(());
    }
    Err(Error::parameter("p", error, "use an error between 0 and 1"))
}
