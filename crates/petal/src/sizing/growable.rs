//! The stages of a filter that grows.
//!
//! Owns how the error of a [`GrowthPlan`] is shared out among stages that
//! double (or grow by another factor), so that all of them together never pass it. The geometry of a
//! stage is [`super::split_for`]'s, the chain of filters the growable
//! filter's.
//!
//! A question asks every stage, so a chain errs with at most the sum of the
//! stages' errors. Halving the error of a stage costs each of its keys
//! about a bit and a half, so a given sum is best shared in proportion to
//! the keys of the stages (Lagrange): small stages get small errors. That
//! needs to know how many stages there will be, hence the declared ceiling.
//! Compare Almeida, Baquero, Preguica and Hutchison, "Scalable Bloom
//! filters" (2007), for the geometric rule.

use super::{MAX_ITEMS, MIN_ERROR, Promise, check_error, check_items};
use crate::error::{Error, Result};

/// Without a ceiling stage `i` gets this share of the error, times
/// [`OPEN_RATIO`]`^i`; all together less than the whole.
const OPEN_SHARE: f64 = 0.1;
const OPEN_RATIO: f64 = 0.9;

/// The share of the error that all stages up to the ceiling have. With it, a
/// chain of eleven full stages at 1 % takes at most 1.345 times the bits of one
/// filter; with 7/8 it would be up to 1.351, so 1.35 would not always hold.
const BELOW_CEILING: f64 = 0.9;

/// Stage `j` past the ceiling gets `(1 - r) r^j` of the rest. A ceiling is
/// declared because it is thought to hold, so the first two or three of these
/// stages matter, each with twice the keys of the one before. Over one, two,
/// three and four of them, the mean of log2(1/share) over the keys is 1.00,
/// 1.67, 2.43 and 3.27 for r = 1/2, and 1.32, 1.81, 2.37 and 2.99 for
/// r = 0.6; at r = 0.9 it is 3.32, 3.42, 3.54 and 3.67. So
/// 0.6 is never more than a third of a bit from the best of the three.
const PAST_RATIO: f64 = 0.6;

/// Each stage is for so many times the keys of the one before.
const DOUBLING: u32 = 2;

/// Most stages up to a ceiling: a small factor and a far ceiling need more.
const MAX_STAGES: u32 = 1000;

/// How a growing filter shares out its error among stages, each for twice
/// the keys of the one before, or another multiple of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GrowthPlan {
    first: u64,
    factor: u32,
    error: f64,
    ceiling: Option<Ceiling>,
}

/// A declared number of keys, and the stages that make it up.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ceiling {
    items: u64,
    stages: u32,
}

impl GrowthPlan {
    /// Growth without a known end: stage `i` is for `first * 2^i` keys and
    /// gets `0.1 * 0.9^i` of `error`.
    ///
    /// # Errors
    /// If `first` is 0 or above [`MAX_ITEMS`], or `error` is not from
    /// 10 * [`MIN_ERROR`] up to, but not including, 1.
    pub fn open(first: u64, error: f64) -> Result<Self> {
        check_items(first)?;
        check_error(error)?;
        if error * OPEN_SHARE < MIN_ERROR {
            return Err(too_small(error, MIN_ERROR / OPEN_SHARE));
        }
        Ok(Self {
            first,
            factor: DOUBLING,
            error,
            ceiling: None,
        })
    }

    /// The same for stages that are each `factor` times as large as the one
    /// before. With 1 all are equal: a question then soon asks many stages, and
    /// their shares of the error get small.
    ///
    /// # Errors
    /// If `factor` is 0 or above [`Self::MAX_FACTOR`], or with this factor
    /// there are too many stages up to the ceiling or the error is too small to be
    /// shared among them.
    pub fn with_factor(self, factor: u32) -> Result<Self> {
        if factor == 0 || factor > Self::MAX_FACTOR {
            let expected = format!("use 1 to {}", Self::MAX_FACTOR);
            return Err(Error::parameter("growth factor", factor, expected));
        }
        match self.ceiling {
            None => Ok(Self { factor, ..self }),
            Some(ceiling) => Self::to_ceiling(self.first, ceiling.items, self.error, factor),
        }
    }

    /// Growth from `first` keys to about `ceiling`. Stage `i` is for
    /// `first * 2^i` keys; the last one up to the ceiling takes what is left,
    /// between a quarter and one and a half times as many. They share nine
    /// tenths of `error` in proportion to their keys. Growth past the ceiling
    /// goes on and shares the rest, at a higher price a key.
    ///
    /// # Errors
    /// If `first` is 0, `ceiling` is below `first` or above [`MAX_ITEMS`], or
    /// `error` is not below 1 or is too small to be shared (the text names
    /// the least, at most 10^-10).
    pub fn ceiling(first: u64, ceiling: u64, error: f64) -> Result<Self> {
        Self::to_ceiling(first, ceiling, error, DOUBLING)
    }

    fn to_ceiling(first: u64, ceiling: u64, error: f64, factor: u32) -> Result<Self> {
        check_items(first)?;
        check_items(ceiling)?;
        check_error(error)?;
        if ceiling < first {
            return Err(Error::parameter(
                "ceiling",
                ceiling,
                format!("use at least the {first} keys of the first stage"),
            ));
        }
        // Stages while what is left after one is at least half of it: so the
        // last is neither tiny nor much larger than its place.
        let mut stages = 1;
        let mut nominal = first;
        let mut left = ceiling;
        while left - nominal.min(left) > nominal / 2 {
            left -= nominal;
            nominal = nominal.saturating_mul(factor.into());
            stages += 1;
            if stages > MAX_STAGES {
                return Err(Error::parameter(
                    "ceiling",
                    ceiling,
                    format!("more than {MAX_STAGES} stages: start larger or grow faster"),
                ));
            }
        }
        // Half of the shared part for what every stage gets at least.
        let least = 2.0 * MIN_ERROR * f64::from(stages) / BELOW_CEILING;
        let least = least.max(MIN_ERROR / ((1.0 - BELOW_CEILING) * (1.0 - PAST_RATIO)));
        if error < least {
            return Err(too_small(error, least));
        }
        Ok(Self {
            first,
            factor,
            error,
            ceiling: Some(Ceiling {
                items: ceiling,
                stages,
            }),
        })
    }

    /// Keys of the first stage.
    #[must_use]
    pub const fn first(self) -> u64 {
        self.first
    }

    /// Largest growth factor.
    pub const MAX_FACTOR: u32 = 1 << 16;

    /// Keys of a stage as a multiple of those of the stage before: 2 unless
    /// [`Self::with_factor`] said otherwise.
    #[must_use]
    pub const fn factor(self) -> u32 {
        self.factor
    }

    /// The most that all stages together may err.
    #[must_use]
    pub const fn error(self) -> f64 {
        self.error
    }

    /// The declared ceiling, if there is one.
    #[must_use]
    pub fn declared_ceiling(self) -> Option<u64> {
        self.ceiling.map(|ceiling| ceiling.items)
    }

    /// Keys and error of stage `index`, counted from 0. The errors of all
    /// stages sum up to at most [`Self::error`], however many there are.
    ///
    /// # Errors
    /// Where growth ends: if the stages up to this one are for more than
    /// [`MAX_ITEMS`] keys, or its error would be below [`MIN_ERROR`].
    pub fn stage(self, index: u32) -> Result<Promise> {
        // Keys of this stage, and of all earlier ones, if none is cut short by the ceiling.
        let nominal = self.nominal(index);
        let before = nominal.and_then(|_| self.nominal_before(index));
        let (items, before, error) = match (self.ceiling, before, nominal) {
            (_, None, _) | (_, _, None) => return Err(self.at_its_end(index)),
            (None, Some(before), Some(items)) => {
                let error = self.error
                    * OPEN_SHARE
                    * OPEN_RATIO.powi(i32::try_from(index).unwrap_or(i32::MAX));
                (items, before, error)
            }
            (Some(ceiling), Some(before), Some(nominal)) if index < ceiling.stages => {
                let all = u128::from(ceiling.items);
                let items = if index + 1 == ceiling.stages {
                    all - before
                } else {
                    nominal
                };
                // What no stage goes below, plus a share of the rest.
                let shared = self.error * BELOW_CEILING - MIN_ERROR * f64::from(ceiling.stages);
                let error = MIN_ERROR + shared * (items as f64 / all as f64);
                (items, before, error)
            }
            (Some(ceiling), Some(before), Some(items)) => {
                let past = index - ceiling.stages;
                let below = self.nominal_before(ceiling.stages).unwrap_or(0);
                let before = u128::from(ceiling.items) + (before - below);
                let share = (1.0 - PAST_RATIO) * PAST_RATIO.powi(past as i32);
                (items, before, self.error * (1.0 - BELOW_CEILING) * share)
            }
        };
        match u64::try_from(items) {
            Ok(items)
                if before + u128::from(items) <= u128::from(MAX_ITEMS) && error >= MIN_ERROR =>
            {
                Ok(Promise { items, error })
            }
            _ => Err(self.at_its_end(index)),
        }
    }

    /// Keys of stage `index` if the ceiling does not cut it short; `None` far
    /// beyond what a plan can have.
    fn nominal(self, index: u32) -> Option<u128> {
        let power = u128::from(self.factor).checked_pow(index)?;
        u128::from(self.first).checked_mul(power)
    }

    /// The same of all stages before it.
    fn nominal_before(self, index: u32) -> Option<u128> {
        match self.factor {
            1 => u128::from(self.first).checked_mul(index.into()),
            factor => {
                Some((self.nominal(index)? - u128::from(self.first)) / u128::from(factor - 1))
            }
        }
    }

    fn at_its_end(self, index: u32) -> Error {
        Error::parameter(
            "stage",
            index,
            format!(
                "a filter that started with {} keys and p = {:?} cannot grow further: \
                 build one that starts larger",
                self.first, self.error
            ),
        )
    }
}

fn too_small(error: f64, least: f64) -> Error {
    Error::parameter(
        "p",
        format!("{error:?}"),
        format!("a growing filter shares it among its stages: use {least:e} or more"),
    )
}
