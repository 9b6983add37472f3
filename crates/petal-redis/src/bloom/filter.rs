//! A Bloom filter that is being served.
//!
//! Owns asking and adding, and what it says of itself: for a filter of this
//! library and for a chain of RedisBloom that was taken over. What is full,
//! and why, is decided here; texts for clients are the commands'.

use petal::{AnyFilter, Contains as _, Insert as _, KeyHasher, mask_words};
use petal_interop::{ForeignFilter as _, ForeignKey, RedisBloom};

use super::spec::{Refused, Spec};
use crate::engine::Outcome;
use crate::keys::{digest_of, digests_of};

/// A filter and what it was reserved with.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) body: Body,
    pub(crate) spec: Spec,
}

#[expect(
    clippy::large_enum_variant,
    reason = "the large variant is the usual one"
)]
#[derive(Debug)]
pub(crate) enum Body {
    Own(AnyFilter),
    /// Answers as RedisBloom does, and grows as its own chains do.
    Foreign(RedisBloom),
}

/// Why an item was not added. Those before it were.
#[derive(Debug)]
pub(crate) enum Full {
    /// It does not grow, and has the keys it was made for.
    NonScaling,
    /// It cannot grow further: the reason.
    Growth(String),
}

/// What became of items: whether each changed the filter, up to the first one
/// that was not taken.
#[derive(Debug, Default)]
pub(crate) struct Added {
    pub(crate) changed: Vec<bool>,
    pub(crate) full: Option<Full>,
}

impl Filter {
    /// A new one, of at most `most` bytes.
    pub(crate) fn reserve(spec: Spec, hasher: KeyHasher, most: u64) -> Result<Self, Refused> {
        Ok(Self {
            body: Body::Own(spec.build(hasher, most)?),
            spec,
        })
    }

    /// An empty one that was reserved alike and hashes alike, of at most `most` bytes.
    pub(crate) fn empty_one(&self, most: u64) -> Result<Self, Refused> {
        let hasher = self.own().map(|own| own.about().identity().hasher.clone());
        let spec = Spec {
            items: 0,
            ..self.spec.clone()
        };
        Self::reserve(spec, hasher.unwrap_or_default(), most)
    }

    /// Whether an item may be in it.
    pub(crate) fn contains(&self, item: &[u8], now: impl Fn() -> u64) -> Outcome<bool> {
        match &self.body {
            Body::Own(AnyFilter::Window(_)) => Ok(self.contains_all(&[item], now)?[0] & 1 != 0),
            Body::Own(filter) => Ok(filter.contains_digest(digest_of(filter, item)?)?),
            Body::Foreign(chain) => Ok(chain.contains(ForeignKey::Bytes(item))?),
        }
    }

    /// The same for many: bit `i % 64` of word `i / 64`.
    pub(crate) fn contains_all(&self, items: &[&[u8]], now: impl Fn() -> u64) -> Outcome<Vec<u64>> {
        let mut mask = vec![0; mask_words(items.len()).max(1)];
        match &self.body {
            Body::Own(filter) => {
                let digests = digests_of(filter, items.iter().copied())?;
                match filter {
                    AnyFilter::Window(window) => {
                        window.contains_digests_at(&digests, now(), &mut mask)?;
                    }
                    filter => filter.contains_digests(&digests, &mut mask)?,
                }
            }
            Body::Foreign(chain) => {
                for (i, item) in items.iter().enumerate() {
                    let found = chain.contains(ForeignKey::Bytes(item))?;
                    mask[i / 64] |= u64::from(found) << (i % 64);
                }
            }
        }
        Ok(mask)
    }

    /// Adds items in order, at a time if it is a window, while they fit and the filter
    /// takes no more than `most` bytes. Both are asked for only where they matter.
    ///
    /// # Errors
    /// If nothing is added at all: an item is no key, or the kind takes none.
    pub(crate) fn add_all(
        &mut self,
        items: &[&[u8]],
        now: impl Fn() -> u64,
        most: impl Fn() -> u64,
    ) -> Outcome<Added> {
        if items.is_empty() {
            return Ok(Added::default()); // nor may a window be told the time
        }
        let filter = match &mut self.body {
            Body::Own(filter) => filter,
            Body::Foreign(chain) => return add_foreign(chain, items, &most),
        };
        if matches!(filter, AnyFilter::Static(_)) {
            return Err("ERR the filter takes no items: it is of a fixed set".into());
        }
        let digests = digests_of(filter, items.iter().copied())?;
        let mut added = Added::default();
        if let AnyFilter::Window(window) = filter {
            let mut mask = vec![0; mask_words(items.len())];
            window.insert_digests_at(&digests, now(), &mut mask)?;
            added.changed = bits(&mask, items.len()).collect();
            return Ok(added);
        }
        let room = match filter {
            AnyFilter::Growable(filter) => filter.room(),
            _ => self.spec.capacity.saturating_sub(self.spec.items),
        };
        if items.len() as u64 <= room {
            let mut mask = vec![0; mask_words(items.len())];
            filter.insert_digests(&digests, &mut mask)?;
            added.changed = bits(&mask, items.len()).collect();
        } else {
            for digest in (0..items.len()).filter_map(|i| digests.get(i)) {
                if let Some(full) = self.spec.full(filter, &most)
                    && !filter.contains_digest(digest)?
                {
                    added.full = Some(full);
                    break;
                }
                match filter.insert_digest(digest) {
                    Ok(changed) => {
                        added.changed.push(changed);
                        self.spec.items += u64::from(changed);
                    }
                    Err(error) => {
                        added.full = Some(Full::Growth(error.to_string()));
                        break;
                    }
                }
            }
            return Ok(added);
        }
        self.spec.items += added
            .changed
            .iter()
            .map(|&changed| u64::from(changed))
            .sum::<u64>();
        Ok(added)
    }

    /// The filter, if it is one of this library.
    pub(crate) const fn own(&self) -> Option<&AnyFilter> {
        match &self.body {
            Body::Own(filter) => Some(filter),
            Body::Foreign(_) => None,
        }
    }

    /// Adds a single item to a filter of the usual kinds, without the buffers of a
    /// batch: whether it changed the filter. `None` for other kinds.
    pub(crate) fn add_one(
        &mut self,
        item: &[u8],
        most: impl Fn() -> u64,
    ) -> Outcome<Option<Result<bool, Full>>> {
        let Body::Own(filter @ (AnyFilter::Bloom(_) | AnyFilter::Growable(_))) = &mut self.body
        else {
            return Ok(None);
        };
        let digest = digest_of(filter, item)?;
        if let Some(full) = self.spec.full(filter, &most)
            && !filter.contains_digest(digest)?
        {
            return Ok(Some(Err(full)));
        }
        Ok(Some(match filter.insert_digest(digest) {
            Ok(changed) => {
                self.spec.items += u64::from(changed);
                Ok(changed)
            }
            Err(error) => Err(Full::Growth(error.to_string())),
        }))
    }

    /// Keys that it takes before it grows, or is full.
    pub(crate) fn capacity(&self) -> u64 {
        match &self.body {
            Body::Own(AnyFilter::Growable(filter)) => {
                let keys = filter
                    .stages()
                    .iter()
                    .filter_map(|stage| stage.about().promise());
                keys.map(|promise| promise.items).sum()
            }
            Body::Own(_) => self.spec.capacity,
            Body::Foreign(chain) => chain.parameters().items.unwrap_or(0),
        }
    }

    /// Keys that were added and changed it.
    pub(crate) fn items(&self) -> u64 {
        match &self.body {
            Body::Own(AnyFilter::Window(window)) => window.held(),
            Body::Own(_) => self.spec.items,
            Body::Foreign(chain) => chain.count().map_or(0, |count| count.keys),
        }
    }

    /// Filters in the chain.
    pub(crate) fn stages(&self) -> usize {
        match &self.body {
            Body::Own(AnyFilter::Growable(filter)) => filter.stages().len(),
            Body::Own(_) => 1,
            Body::Foreign(chain) => chain.links(),
        }
    }

    /// Times as many keys in each stage as in the one before, if it grows.
    pub(crate) fn expansion(&self) -> Option<u32> {
        match &self.body {
            Body::Own(_) => Some(self.spec.expansion).filter(|_| self.spec.scales()),
            Body::Foreign(chain) => chain.growth(),
        }
    }

    /// Bytes of its bits.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.body {
            Body::Own(filter) => filter.bytes(),
            Body::Foreign(chain) => chain.bytes(),
        }
    }
}

impl Spec {
    /// Why a filter takes no new key, if it does not.
    fn full(&self, filter: &AnyFilter, most: &impl Fn() -> u64) -> Option<Full> {
        let AnyFilter::Growable(filter) = filter else {
            return (self.items >= self.capacity).then_some(Full::NonScaling);
        };
        if filter.room() > 0 {
            return None;
        }
        match filter.next_stage_bytes() {
            Ok(next) => over(filter.bytes().saturating_add(next), most()),
            Err(error) => Some(Full::Growth(error.to_string())),
        }
    }
}

/// Whether so many bytes are too many.
fn over(needed: u64, most: u64) -> Option<Full> {
    (needed > most).then(|| {
        Full::Growth(format!(
            "it would take {needed} bytes: filter-max-bytes is {most}"
        ))
    })
}

fn add_foreign(chain: &mut RedisBloom, items: &[&[u8]], most: &impl Fn() -> u64) -> Outcome<Added> {
    let mut added = Added::default();
    for item in items {
        let key = ForeignKey::Bytes(item);
        if chain.room() == 0
            && let Some(next) = chain.next_link_bytes()
            && let Some(full) = over(chain.bytes().saturating_add(next), most())
            && !chain.contains(key)?
        {
            added.full = Some(full);
            break;
        }
        match chain.insert(key) {
            Ok(changed) => added.changed.push(changed),
            Err(petal_interop::Error::Full { .. }) => {
                added.full = Some(Full::NonScaling);
                break;
            }
            Err(error) => {
                added.full = Some(Full::Growth(error.to_string()));
                break;
            }
        }
    }
    Ok(added)
}

/// The first bits of a mask.
pub(crate) fn bits(mask: &[u64], count: usize) -> impl Iterator<Item = bool> {
    (0..count).map(|i| mask[i / 64] >> (i % 64) & 1 != 0)
}
