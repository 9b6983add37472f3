//! What a Bloom filter was reserved with.

use petal::sizing::{Collisions, DEFAULT_GENERATIONS, GrowthPlan, split_for, window_for};
use petal::{
    AnyFilter, Bloom, Growable, Identity, KeyHasher, KeyType, Overload, Promise, Window, WindowSpan,
};

use crate::config;

/// What a window forgets by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    /// The last keys, as many as the capacity.
    Keys,
    /// Milliseconds.
    Time(u64),
}

/// What a filter was reserved with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spec {
    pub(crate) capacity: u64,
    pub(crate) error: f64,
    /// Times as many keys in each stage as in the one before; 0 for one that
    /// does not grow.
    pub(crate) expansion: u32,
    /// The number of keys that it is to grow to, 0 for none.
    pub(crate) scale_to: u64,
    /// Accepted and shown; how the error is shared out does not depend on it.
    pub(crate) tightening: f64,
    pub(crate) window: Option<Span>,
    /// Insertions that changed a filter that does not count them itself.
    pub(crate) items: u64,
    /// Whether it is being made by a merge that is not over: then it answers nothing.
    pub(crate) merging: bool,
}

/// Why a filter is not made.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It would take more bytes than a key may.
    Limit { needed: u64 },
    /// The library's reason.
    Library(petal::Error),
}

impl From<petal::Error> for Refused {
    fn from(error: petal::Error) -> Self {
        Self::Library(error)
    }
}

const BYTES: usize = 57;

/// Errors above this are silently taken for it, as RedisBloom does.
pub(crate) const MAX_ERROR: f64 = 0.25;

impl Spec {
    /// What is reserved when nothing else is said.
    pub(crate) fn default_one() -> Self {
        Self {
            capacity: config::BF_INITIAL_SIZE.count(),
            error: config::BF_ERROR_RATE.get().min(MAX_ERROR),
            expansion: u32::try_from(config::BF_EXPANSION_FACTOR.get()).unwrap_or(0),
            scale_to: 0,
            tightening: 0.5,
            window: None,
            items: 0,
            merging: false,
        }
    }

    /// That of a filter that was made elsewhere.
    pub(crate) fn of(filter: &AnyFilter) -> Self {
        use petal::Contains as _;
        let about = filter.about();
        let promise = about.promise();
        let mut spec = Self {
            capacity: promise.map_or(0, |promise| promise.items),
            error: promise.map_or(0.0, |promise| promise.error),
            expansion: 0,
            scale_to: 0,
            tightening: 0.5,
            window: None,
            items: about.insertions().unwrap_or(0),
            merging: false,
        };
        match filter {
            AnyFilter::Growable(filter) => {
                let plan = filter.plan();
                spec.capacity = plan.first();
                spec.error = plan.error();
                spec.expansion = plan.factor();
                spec.scale_to = plan.declared_ceiling().unwrap_or(0);
            }
            AnyFilter::Window(window) => {
                spec.window = Some(match window.span() {
                    WindowSpan::Keys => Span::Keys,
                    WindowSpan::Time { ticks, .. } => Span::Time(ticks),
                });
            }
            AnyFilter::Static(filter) => spec.items = filter.len(),
            _ if about.insertions().is_none() => spec.items = whole(filter.estimated_len()),
            _ => {}
        }
        spec
    }

    pub(crate) const fn scales(&self) -> bool {
        self.expansion > 0 && self.window.is_none()
    }

    /// How it grows, if it does. `EXPANSION 1` doubles, as in `CF`: stages that are all as
    /// large as the first share out what error there is after some 200 of them, and each is
    /// looked at by every question.
    pub(crate) fn plan(&self) -> petal::Result<GrowthPlan> {
        let plan = match self.scale_to {
            0 => GrowthPlan::open(self.capacity, self.error)?,
            ceiling => GrowthPlan::ceiling(self.capacity, ceiling.max(self.capacity), self.error)?,
        };
        plan.with_factor(self.expansion.max(2))
    }

    /// Bytes that it takes at first.
    pub(crate) fn first_bytes(&self, collisions: Collisions) -> petal::Result<u64> {
        if self.window.is_some() {
            return Ok(
                window_for(self.capacity, self.error, DEFAULT_GENERATIONS, collisions)?.bytes(),
            );
        }
        let first = match self.scales() {
            true => self.plan()?.stage(0)?,
            false => Promise {
                items: self.capacity,
                error: self.error,
            },
        };
        Ok(split_for(first.items, first.error, collisions)?.bytes())
    }

    /// Bytes that it takes when it has grown to the number of keys that was
    /// declared.
    pub(crate) fn scaled_bytes(&self, collisions: Collisions) -> petal::Result<u64> {
        let plan = self.plan()?;
        let (mut keys, mut bytes) = (0u64, 0u64);
        for index in 0.. {
            let stage = plan.stage(index)?;
            bytes = bytes.saturating_add(split_for(stage.items, stage.error, collisions)?.bytes());
            keys = keys.saturating_add(stage.items);
            if keys >= self.scale_to {
                break;
            }
        }
        Ok(bytes)
    }

    /// The empty filter, if it takes at most `most` bytes.
    pub(crate) fn build(&self, hasher: KeyHasher, most: u64) -> Result<AnyFilter, Refused> {
        let identity = Identity::new(KeyType::Bytes).with_hasher(hasher);
        let needed = self.first_bytes(identity.collisions())?;
        if needed > most {
            return Err(Refused::Limit { needed });
        }
        let promise = Promise {
            items: self.capacity,
            error: self.error,
        };
        Ok(match self.window {
            Some(span) => {
                let span = match span {
                    Span::Keys => WindowSpan::Keys,
                    Span::Time(ticks) => WindowSpan::Time {
                        ticks,
                        overload: Overload::Shorten,
                    },
                };
                Window::sized(identity, span, promise, DEFAULT_GENERATIONS)?.into()
            }
            None if self.scales() => Growable::with_plan(identity, self.plan()?)?.into(),
            None => Bloom::sized(identity, promise)?.into(),
        })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.extend(self.capacity.to_le_bytes());
        bytes.extend(self.error.to_le_bytes());
        bytes.extend(self.expansion.to_le_bytes());
        bytes.extend(self.scale_to.to_le_bytes());
        bytes.extend(self.tightening.to_le_bytes());
        bytes.extend(self.items.to_le_bytes());
        let (span, ticks) = match self.window {
            None => (0u8, 0),
            Some(Span::Keys) => (1, 0),
            Some(Span::Time(ticks)) => (2, ticks),
        };
        bytes.push(span);
        bytes.extend(ticks.to_le_bytes());
        bytes.push(self.merging.into());
        bytes.extend([0; 3]); // for later
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| {
            bytes[at..]
                .first_chunk()
                .map_or(0, |word| u64::from_le_bytes(*word))
        };
        let expansion = bytes[16..]
            .first_chunk()
            .map_or(0, |word| u32::from_le_bytes(*word));
        let window = match (bytes[44], word(45)) {
            (0, 0) => None,
            (1, 0) => Some(Span::Keys),
            (2, ticks) if ticks > 0 => Some(Span::Time(ticks)),
            _ => return None,
        };
        let spec = Self {
            capacity: word(0),
            error: f64::from_bits(word(8)),
            expansion,
            scale_to: word(20),
            tightening: f64::from_bits(word(28)),
            items: word(36),
            window,
            merging: bytes[53] == 1,
        };
        let share = |value: f64| (0.0..=1.0).contains(&value);
        (bytes[53] <= 1 && bytes[54..] == [0; 3] && share(spec.error) && share(spec.tightening))
            .then_some(spec)
    }
}

/// A count that was estimated.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate of a count is not negative; the cast saturates"
)]
pub(crate) fn whole(estimate: f64) -> u64 {
    estimate.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_first_stages_do_not_end_growth() {
        for expansion in [1, 2] {
            let spec = Spec {
                capacity: 1,
                expansion,
                ..Spec::default_one()
            };
            // To as many keys as any filter is for: 2^39 of them.
            let last = spec.plan().unwrap().stage(38);
            assert!(last.is_ok(), "{last:?}");
            assert_eq!(spec.plan().unwrap().stage(10).unwrap().items, 1024);
        }
    }

    #[test]
    fn a_description_is_read_as_it_was_written() {
        for window in [None, Some(Span::Keys), Some(Span::Time(60_000))] {
            let spec = Spec {
                window,
                merging: window.is_none(),
                scale_to: 5,
                items: 7,
                ..Spec::default_one()
            };
            let bytes = spec.encode();
            assert_eq!(Spec::decode(&bytes), Some(spec));
            assert_eq!(Spec::decode(&bytes[1..]), None);
        }
        let mut bytes = Spec::default_one().encode();
        bytes[44] = 3;
        assert_eq!(Spec::decode(&bytes), None);
    }
}
