//! Deletable filters in a chain that grows.
//!
//! Owns which of the filters an item is in. New items go to the last one
//! alone; the others only count further what they have. An item is looked for
//! from the first filter on, by adding and by deleting alike: what an earlier
//! filter has when an item comes it keeps until that is deleted, and what it lacks
//! it never gets any more. So a deletion finds the filter that the item was added
//! to, also where another item of a later filter has the same fingerprint.

use petal::sizing::{GrowthPlan, deletable_for};
use petal::{
    AnyFilter, Contains as _, Count as _, Deletable, Digest, Identity, Insert as _, KeyHasher,
    KeyType, Remove as _,
};

use crate::config;
use crate::engine::Outcome;
use crate::keys::digest_of;

/// What a chain was reserved with, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spec {
    pub(crate) capacity: u64,
    pub(crate) error: f64,
    /// As it was given: 0 for one that does not grow.
    pub(crate) expansion: u32,
    /// Shown alone: a quotient filter has no buckets, and moves nothing in turns.
    pub(crate) bucket_size: u16,
    pub(crate) max_iterations: u16,
    /// Filters that there have been, which decides what the next one is.
    pub(crate) grown: u32,
    pub(crate) inserted: u64,
    pub(crate) deleted: u64,
}

const SPEC_BYTES: usize = 44;

impl Spec {
    /// What is reserved when nothing else is said.
    pub(crate) fn default_one() -> Self {
        let small = |value: i64| u16::try_from(value).unwrap_or(u16::MAX);
        Self {
            // As little as a replica accepts in `CF.RESERVE`.
            capacity: config::CF_INITIAL_SIZE
                .count()
                .max(2 * config::CF_BUCKET_SIZE.count()),
            error: config::CF_ERROR_RATE.get(),
            expansion: u32::try_from(config::CF_EXPANSION_FACTOR.get()).unwrap_or(0),
            bucket_size: small(config::CF_BUCKET_SIZE.get()),
            max_iterations: small(config::CF_MAX_ITERATIONS.get()),
            grown: 0,
            inserted: 0,
            deleted: 0,
        }
    }

    /// Filters of at least twice as many items each, however they are asked for: many equal
    /// ones would cost every question a look at each. The capacity is what
    /// most is known about, so the first filter has most of the error.
    fn plan(&self) -> petal::Result<GrowthPlan> {
        GrowthPlan::ceiling(self.capacity, self.capacity, self.error)?
            .with_factor(self.expansion.max(2))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SPEC_BYTES);
        bytes.extend(self.capacity.to_le_bytes());
        bytes.extend(self.error.to_le_bytes());
        bytes.extend(self.expansion.to_le_bytes());
        bytes.extend(self.bucket_size.to_le_bytes());
        bytes.extend(self.max_iterations.to_le_bytes());
        bytes.extend(self.grown.to_le_bytes());
        bytes.extend(self.inserted.to_le_bytes());
        bytes.extend(self.deleted.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; SPEC_BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| {
            bytes[at..]
                .first_chunk()
                .map_or(0, |word| u64::from_le_bytes(*word))
        };
        let half = |at: usize| {
            bytes[at..]
                .first_chunk()
                .map_or(0, |word| u32::from_le_bytes(*word))
        };
        let quarter = |at: usize| {
            bytes[at..]
                .first_chunk()
                .map_or(0, |word| u16::from_le_bytes(*word))
        };
        let spec = Self {
            capacity: word(0),
            error: f64::from_bits(word(8)),
            expansion: half(16),
            bucket_size: quarter(20),
            max_iterations: quarter(22),
            grown: half(24),
            inserted: word(28),
            deleted: word(36),
        };
        let fits =
            spec.error > 0.0 && spec.error < 1.0 && spec.capacity > 0 && spec.bucket_size > 0;
        fits.then_some(spec)
    }
}

/// Why an item was not added.
#[derive(Debug)]
pub(crate) enum Full {
    /// It does not grow.
    Fixed,
    /// It has as many filters as are allowed.
    Expansions,
    /// The reason why there is no further one.
    Memory(String),
}

/// A chain and what it was reserved with.
#[derive(Debug)]
pub(crate) struct Chain {
    /// Deletable filters, at least one.
    stages: Vec<AnyFilter>,
    pub(crate) spec: Spec,
}

/// Bytes up to which a filter makes room for counts in its place. A larger one would
/// keep clients waiting: then a further filter takes them.
const IN_PLACE: u64 = 1 << 20;

impl Chain {
    /// A new one, whose first filter takes at most `most` bytes.
    pub(crate) fn reserve(spec: Spec, hasher: KeyHasher, most: u64) -> Result<Self, Full> {
        let mut chain = Self {
            stages: Vec::new(),
            spec,
        };
        let identity = Identity::new(KeyType::Bytes).with_hasher(hasher);
        chain.push_stage(identity, most)?;
        Ok(chain)
    }

    /// Puts together what came.
    pub(crate) fn of_parts(spec: Spec, mut stages: Vec<AnyFilter>) -> Option<Self> {
        let first = stages.first()?.about().identity().clone();
        for stage in &mut stages {
            let same = *stage.about().identity() == first;
            let AnyFilter::Deletable(filter) = stage else {
                return None;
            };
            if !same || filter.about().promise().is_none() {
                return None;
            }
            filter.limit_memory(IN_PLACE);
        }
        Some(Self { stages, spec })
    }

    /// One of a single filter that was made elsewhere.
    pub(crate) fn of_file(filter: AnyFilter) -> Option<Self> {
        let promise = filter.about().promise()?;
        let AnyFilter::Deletable(deletable) = &filter else {
            return None;
        };
        let inserted = deletable
            .iter()
            .fold(0, |sum: u64, (_, count)| sum.saturating_add(count));
        let spec = Spec {
            capacity: promise.items,
            error: promise.error,
            grown: 1,
            inserted,
            ..Spec::default_one()
        };
        Self::of_parts(spec, vec![filter])
    }

    fn push_stage(&mut self, identity: Identity, most: u64) -> Result<(), Full> {
        let memory = |error: petal::Error| Full::Memory(error.to_string());
        let promise = self
            .spec
            .plan()
            .and_then(|plan| plan.stage(self.spec.grown))
            .map_err(memory)?;
        let geometry = deletable_for(promise.items, promise.error, identity.collisions());
        let needed = self
            .bytes()
            .saturating_add(geometry.map_err(memory)?.bytes());
        if needed > most {
            let text = format!("it would take {needed} bytes, filter-max-bytes is {most}");
            return Err(Full::Memory(text));
        }
        let mut filter = Deletable::sized(identity, promise).map_err(memory)?;
        filter.limit_memory(IN_PLACE);
        self.stages.push(filter.into());
        self.spec.grown = self.spec.grown.saturating_add(1);
        Ok(())
    }

    pub(crate) fn stages(&self) -> &[AnyFilter] {
        &self.stages
    }

    /// The filter, if it is alone.
    pub(crate) fn alone(&self) -> Option<&AnyFilter> {
        match self.stages.as_slice() {
            [filter] => Some(filter),
            _ => None,
        }
    }

    /// The digest of an item, for the calls below.
    pub(crate) fn digest(&self, item: &[u8]) -> Outcome<Digest> {
        self.stages.first().map_or_else(
            || Err("ERR no filter".into()),
            |first| digest_of(first, item),
        )
    }

    pub(crate) fn contains(&self, digest: Digest) -> Outcome<bool> {
        for stage in &self.stages {
            if stage.contains_digest(digest)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How often an item was added, less how often it was deleted.
    pub(crate) fn count(&self, digest: Digest) -> Outcome<u64> {
        let mut sum = 0u64;
        for stage in &self.stages {
            sum = sum.saturating_add(stage.count_digest(digest)?);
        }
        Ok(sum)
    }

    /// Adds an item once more, if the chain then takes at most `most` bytes, which is asked
    /// for only when it grows.
    pub(crate) fn add(
        &mut self,
        digest: Digest,
        most: impl Fn() -> u64,
    ) -> Outcome<Result<(), Full>> {
        for stage in &mut self.stages {
            if stage.contains_digest(digest)? && insert(stage, digest)? {
                self.spec.inserted += 1;
                return Ok(Ok(()));
            }
        }
        if let Some(last) = self.stages.last_mut()
            && room(last) > 0
            && insert(last, digest)?
        {
            self.spec.inserted += 1;
            return Ok(Ok(()));
        }
        if self.spec.expansion == 0 {
            return Ok(Err(Full::Fixed));
        }
        // What a master or the append-only file has accepted is accepted.
        let obeys = most() == u64::MAX;
        if !obeys && self.stages.len() as u64 > config::CF_MAX_EXPANSIONS.count() {
            return Ok(Err(Full::Expansions));
        }
        let Some(identity) = self
            .stages
            .first()
            .map(|stage| stage.about().identity().clone())
        else {
            return Ok(Err(Full::Fixed));
        };
        if let Err(full) = self.push_stage(identity, most()) {
            return Ok(Err(full));
        }
        if let Some(last) = self.stages.last_mut()
            && insert(last, digest)?
        {
            self.spec.inserted += 1;
            return Ok(Ok(()));
        }
        Ok(Err(Full::Memory(
            "an empty filter takes no item".to_owned(),
        )))
    }

    /// Undoes one addition of an item. False if it is certainly absent.
    pub(crate) fn delete(&mut self, digest: Digest) -> Outcome<bool> {
        for stage in &mut self.stages {
            if stage.contains_digest(digest)? && stage.remove_digest(digest)? {
                self.spec.inserted = self.spec.inserted.saturating_sub(1);
                self.spec.deleted += 1;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Drops empty filters but for the last one, which takes new items. True if
    /// there were some.
    pub(crate) fn compact(&mut self) -> bool {
        let before = self.stages.len();
        let last = before.saturating_sub(1);
        let mut index = 0;
        self.stages.retain(|stage| {
            index += 1;
            index > last || !is_empty(stage)
        });
        self.stages.len() < before
    }

    /// Slots of all filters.
    pub(crate) fn slots(&self) -> u64 {
        let slots = |stage: &AnyFilter| match stage {
            AnyFilter::Deletable(filter) => filter.geometry().slots(),
            _ => 0,
        };
        self.stages.iter().map(slots).sum()
    }

    /// Bytes of its bits.
    pub(crate) fn bytes(&self) -> u64 {
        self.stages.iter().map(AnyFilter::bytes).sum()
    }

    /// The chance that an absent item is found, as the chain stands.
    pub(crate) fn error_now(&self) -> f64 {
        let missed = |stage: &AnyFilter| 1.0 - stage.error_now();
        1.0 - self.stages.iter().map(missed).product::<f64>()
    }
}

/// Adds to a filter. False if it has no slots for that.
fn insert(stage: &mut AnyFilter, digest: Digest) -> Outcome<bool> {
    match stage.insert_digest(digest) {
        Ok(_) => Ok(true),
        Err(petal::Error::Full { .. } | petal::Error::TooLarge { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Distinct items that a filter takes and keeps its error.
fn room(stage: &AnyFilter) -> u64 {
    stage.room().unwrap_or(0)
}

fn is_empty(stage: &AnyFilter) -> bool {
    matches!(stage, AnyFilter::Deletable(filter) if filter.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(capacity: u64, error: f64, expansion: u32) -> Chain {
        let spec = Spec {
            capacity,
            error,
            expansion,
            ..Spec::default_one()
        };
        Chain::reserve(spec, KeyHasher::Portable { seed: 7 }, u64::MAX).unwrap()
    }

    fn digest(chain: &Chain, key: u32) -> Digest {
        chain.digest(&key.to_le_bytes()).unwrap()
    }

    fn add(chain: &mut Chain, key: u32) {
        let digest = digest(chain, key);
        chain.add(digest, || u64::MAX).unwrap().unwrap();
    }

    /// In a chain with as many collisions of fingerprints as this nothing that
    /// is in it is missed, whatever is deleted.
    #[test]
    fn deletions_find_the_filter_of_the_addition() {
        let mut chain = chain(50, 0.25, 2);
        for key in 0..5000 {
            add(&mut chain, key);
        }
        assert!(chain.stages().len() > 5);
        for key in (0..5000).step_by(2) {
            let digest = digest(&chain, key);
            assert!(chain.delete(digest).unwrap());
        }
        for key in (1..5000).step_by(2) {
            assert!(chain.contains(digest(&chain, key)).unwrap(), "{key}");
        }
        for key in (1..5000).step_by(2) {
            let digest = digest(&chain, key);
            assert!(chain.delete(digest).unwrap());
        }
        assert_eq!((chain.spec.inserted, chain.spec.deleted), (0, 5000));
        assert!(chain.stages().iter().all(is_empty));
        assert!(chain.compact());
        assert_eq!(chain.stages().len(), 1);
    }

    #[test]
    fn duplicates_do_not_make_it_grow() {
        let mut chain = chain(1000, 0.01, 2);
        let bytes = chain.bytes();
        for key in 0..10 {
            let digest = digest(&chain, key);
            for _ in 0..10_000 {
                chain.add(digest, || u64::MAX).unwrap().unwrap();
            }
            assert_eq!(chain.count(digest).unwrap(), 10_000);
        }
        assert_eq!(chain.stages().len(), 1);
        assert_eq!(chain.bytes(), bytes);
    }

    #[test]
    fn what_does_not_grow_is_full_and_keeps_its_items() {
        let mut chain = chain(100, 0.001, 0);
        for key in 0..100 {
            add(&mut chain, key);
        }
        let digest = (200..300)
            .map(|key| digest(&chain, key))
            .find(|&d| !chain.contains(d).unwrap());
        let full = chain.add(digest.unwrap(), || u64::MAX).unwrap();
        assert!(matches!(full, Err(Full::Fixed)));
        assert!((0..100).all(|key| {
            chain
                .contains(super::Chain::digest(&chain, &key_bytes(key)).unwrap())
                .unwrap()
        }));
    }

    fn key_bytes(key: u32) -> [u8; 4] {
        key.to_le_bytes()
    }

    #[test]
    fn the_error_is_kept_while_it_grows() {
        let mut chain = chain(100, 0.01, 1);
        for key in 0..20_000 {
            add(&mut chain, key);
        }
        let hits = (100_000..200_000)
            .filter(|&key| chain.contains(digest(&chain, key)).unwrap())
            .count() as f64;
        assert!(hits <= 1000.0 + 5.0 * 1000f64.sqrt(), "{hits}");
        assert!(chain.error_now() <= 0.01);
    }

    #[test]
    fn a_description_is_read_as_it_was_written() {
        let spec = Spec {
            inserted: 3,
            deleted: 4,
            grown: 2,
            ..Spec::default_one()
        };
        assert_eq!(Spec::decode(&spec.encode()), Some(spec.clone()));
        assert_eq!(Spec::decode(&spec.encode()[1..]), None);
        assert_eq!(Spec::decode(&[0; SPEC_BYTES]), None);
    }
}
