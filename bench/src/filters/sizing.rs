//! The search for the size at which a filter has the wanted error.
//!
//! Owns [`fit`], which knows a filter only as a function from bits a key to a measured error.

/// How far a filter's error may be from the wanted one, as a share of it.
pub(crate) const TOLERANCE: f64 = 0.02;

/// Errors of measuring are of this order: closer than this the search does not aim.
const AIM: f64 = 0.01;

/// Sizes that are tried at most.
const TRIES: usize = 16;

/// A size and the error it has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fit {
    pub(crate) bits_per_key: f64,
    pub(crate) error: f64,
}

impl Fit {
    /// The distance from the wanted error, as the logarithm of their ratio.
    fn off(self, wanted: f64) -> f64 {
        (self.error / wanted).ln()
    }
}

/// Finds the bits a key with an error within [`TOLERANCE`] of `wanted`, starting from those of the
/// textbook filter.
///
/// The logarithm of the error is close to linear in the bits a key, so this is Newton's iteration with
/// the slope of the last two sizes, unless they are so close that noise would decide it.
///
/// # Errors
/// What `measure` returns, or that no tried size was close enough.
pub(crate) fn fit(
    wanted: f64,
    mut measure: impl FnMut(f64) -> Result<f64, String>,
) -> Result<Fit, String> {
    const LN_2_SQUARED: f64 = std::f64::consts::LN_2 * std::f64::consts::LN_2;
    let mut slope = -LN_2_SQUARED;
    let mut bits_per_key = wanted.ln() / slope;
    let mut last: Option<Fit> = None;
    let mut best: Option<Fit> = None;
    for _ in 0..TRIES {
        let fit = Fit {
            bits_per_key,
            error: measure(bits_per_key)?.max(f64::MIN_POSITIVE),
        };
        let off = fit.off(wanted);
        if best.is_none_or(|best| off.abs() < best.off(wanted).abs()) {
            best = Some(fit);
        }
        if off.abs() <= AIM {
            break;
        }
        if let Some(last) = last {
            let step = fit.bits_per_key - last.bits_per_key;
            if step.abs() > 0.02 * bits_per_key {
                // No filter gains more than a factor of two a bit.
                slope = ((off - last.off(wanted)) / step).clamp(-std::f64::consts::LN_2, -0.05);
            }
        }
        last = Some(fit);
        let step = (-off / slope).clamp(-0.3 * bits_per_key, 0.5 * bits_per_key);
        bits_per_key += step;
    }
    match best {
        Some(best) if (best.error / wanted - 1.0).abs() <= TOLERANCE => Ok(best),
        best => Err(format!(
            "no size has an error of {wanted:e}: the nearest of {TRIES} is {best:?}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classic(bits_per_key: f64) -> f64 {
        let k = (bits_per_key * std::f64::consts::LN_2).round().max(1.0);
        (1.0 - (-k / bits_per_key).exp()).powf(k)
    }

    /// Blocks of 256 bits with eight positions each, under a Poisson load.
    fn blocked(bits_per_key: f64) -> f64 {
        let mean = 256.0 / bits_per_key;
        let mut weight = (-mean).exp();
        (0..1000)
            .map(|load| {
                let load = f64::from(load);
                let term = weight * (1.0 - (31.0f64 / 32.0).powf(load)).powi(8);
                weight *= mean / (load + 1.0);
                term
            })
            .sum()
    }

    #[test]
    fn finds_the_size_of_known_filters() {
        for wanted in [0.1, 0.01, 1.0 / 256.0, 1e-3, 1e-6, 1e-9] {
            let mut tries = 0;
            let found = fit(wanted, |bits| {
                tries += 1;
                Ok(classic(bits))
            })
            .unwrap();
            assert!((found.error / wanted - 1.0).abs() <= AIM * 1.01);
            assert_eq!(found.error, classic(found.bits_per_key));
            assert!(tries <= 6, "{tries} tries for {wanted}");
        }
        // As reference implementations of such blocks measure it.
        let found = fit(0.01, |bits| Ok(blocked(bits))).unwrap();
        assert!((found.bits_per_key - 10.53).abs() < 0.05, "{found:?}");
        assert!(fit(1e-5, |bits| Ok(blocked(bits))).is_ok());
    }

    #[test]
    fn noise_does_not_lead_astray() {
        let mut sign = 1.0;
        let found = fit(0.01, |bits| {
            sign = -sign;
            Ok(classic(bits) * (1.0 + 0.015 * sign))
        })
        .unwrap();
        assert!((classic(found.bits_per_key) / 0.01 - 1.0).abs() < 0.03);
    }

    #[test]
    fn an_error_that_no_size_has_is_refused() {
        for constant in [0.0, 0.0038, 1.0] {
            let refused = fit(0.01, |_| Ok(constant)).unwrap_err();
            assert!(
                refused.contains("no size has an error of 1e-2"),
                "{refused}"
            );
        }
        assert_eq!(
            fit(0.01, |_| Err("out of memory".into())),
            Err("out of memory".into())
        );
    }
}
