//! A table of fingerprints with a value each, in a fixed amount of memory.
//!
//! Owns the open addressing: linear probing in the order of the low halves, at most three
//! quarters full. Fingerprints are under a key that nobody knows, so no choice of records makes
//! them pile up. What a value means is the caller's.

use bytemuck::Pod;
use memmap2::MmapMut;

use crate::error::Error;
use crate::fingerprint::Fingerprint;

/// A table is at most so full, as in `petal::DigestSet`.
const FULL_NUM: u64 = 3;
const FULL_DEN: u64 = 4;

/// Slots of the smallest table.
const LEAST_SLOTS: u64 = 16;

/// Fingerprints whose slots are under way at once.
pub(crate) const GROUP: usize = 32;

/// Bytes of a fingerprint.
const SLOT: u64 = size_of::<Fingerprint>() as u64;

/// The table is as large as it may be, and full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

/// A map from fingerprints of keys to values.
pub(crate) struct Table<V> {
    /// A slot of zero is empty.
    slots: Pages<Fingerprint>,
    values: Pages<V>,
    used: u64,
    /// Most fingerprints before it has to grow.
    room: u64,
    /// Bytes it may take, the old table included while it grows.
    budget: u64,
}

/// Zeroed elements, in pages of 2 MiB where the system has them.
struct Pages<T> {
    /// None for elements without a size.
    map: Option<MmapMut>,
    /// Those.
    sizeless: Vec<T>,
}

impl<T: Pod> Pages<T> {
    fn zeroed(count: usize) -> Result<Self, Error> {
        let bytes = count.saturating_mul(size_of::<T>());
        if bytes == 0 {
            return Ok(Self {
                map: None,
                sizeless: vec![T::zeroed(); count],
            });
        }
        let map = MmapMut::map_anon(bytes).map_err(|error| {
            Error::io(format!("get {bytes} bytes of memory for a table"), error)
        })?;
        // Advice only: a system without huge pages is merely slower.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Self {
            map: Some(map),
            sizeless: Vec::new(),
        })
    }

    #[inline]
    fn get(&self) -> &[T] {
        match &self.map {
            Some(map) => bytemuck::cast_slice(map),
            None => &self.sizeless,
        }
    }

    #[inline]
    fn get_mut(&mut self) -> &mut [T] {
        match &mut self.map {
            Some(map) => bytemuck::cast_slice_mut(map),
            None => &mut self.sizeless,
        }
    }
}

/// Where the search for a fingerprint begins.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the product's high half is below the number of slots, which is a usize"
)]
const fn home(fingerprint: Fingerprint, slots: usize) -> usize {
    ((fingerprint.low as u128 * slots as u128) >> 64) as usize
}

/// The slot that has a fingerprint, or the empty one where it belongs.
#[inline]
fn find(slots: &[Fingerprint], fingerprint: Fingerprint) -> usize {
    let mut at = home(fingerprint, slots.len());
    loop {
        let slot = slots[at];
        if slot == fingerprint || slot == Fingerprint::LEFT_OUT {
            return at;
        }
        at += 1;
        if at == slots.len() {
            at = 0;
        }
    }
}

const fn most_in(slots: u64) -> u64 {
    slots / FULL_DEN * FULL_NUM + slots % FULL_DEN * FULL_NUM / FULL_DEN
}

/// The least slots that take so many fingerprints.
const fn slots_for(fingerprints: u64) -> u64 {
    let slots = (fingerprints / FULL_NUM + 1).saturating_mul(FULL_DEN);
    if slots < LEAST_SLOTS {
        LEAST_SLOTS
    } else {
        slots
    }
}

impl<V: Pod> Table<V> {
    /// Bytes of a slot with its value.
    const fn slot_bytes() -> u64 {
        SLOT + size_of::<V>() as u64
    }

    /// Bytes that a table for so many fingerprints takes.
    pub(crate) const fn bytes_for(fingerprints: u64) -> u64 {
        slots_for(fingerprints).saturating_mul(Self::slot_bytes())
    }

    /// Fingerprints that a table of so many bytes takes.
    pub(crate) const fn most_for(bytes: u64) -> u64 {
        most_in(bytes / Self::slot_bytes())
    }

    /// For `expected` fingerprints if they fit into `budget` bytes, else for as many as do. It
    /// grows when more come, within the budget.
    pub(crate) fn new(expected: u64, budget: u64) -> Result<Self, Error> {
        let most = (budget / Self::slot_bytes()).max(LEAST_SLOTS);
        Self::with_slots(slots_for(expected).min(most), budget)
    }

    fn with_slots(slots: u64, budget: u64) -> Result<Self, Error> {
        let count = usize::try_from(slots).unwrap_or(usize::MAX);
        Ok(Self {
            slots: Pages::zeroed(count)?,
            values: Pages::zeroed(count)?,
            used: 0,
            room: most_in(slots),
            budget,
        })
    }

    /// How many fingerprints it has.
    #[cfg(test)]
    pub(crate) const fn len(&self) -> u64 {
        self.used
    }

    /// Brings the slots of a few fingerprints into the cache: all loads are under way at once.
    #[inline]
    pub(crate) fn warm(&self, fingerprints: &[Fingerprint]) {
        let slots = self.slots.get();
        let mut seen = 0;
        for &fingerprint in fingerprints {
            seen ^= slots[home(fingerprint, slots.len())].low;
        }
        std::hint::black_box(seen);
    }

    /// The value of a fingerprint.
    #[inline]
    pub(crate) fn get_mut(&mut self, fingerprint: Fingerprint) -> Option<&mut V> {
        let slots = self.slots.get();
        let at = find(slots, fingerprint);
        (slots[at] == fingerprint).then(|| &mut self.values.get_mut()[at])
    }

    /// The value of a fingerprint, and whether it is new.
    #[inline]
    pub(crate) fn entry(&mut self, fingerprint: Fingerprint) -> Result<(bool, &mut V), Full> {
        let slots = self.slots.get_mut();
        let mut at = find(slots, fingerprint);
        if slots[at] == fingerprint {
            return Ok((false, &mut self.values.get_mut()[at]));
        }
        if self.used == self.room {
            self.grow()?;
            at = find(self.slots.get(), fingerprint);
        }
        self.slots.get_mut()[at] = fingerprint;
        self.used += 1;
        Ok((true, &mut self.values.get_mut()[at]))
    }

    /// Takes twice the slots, or as many more as the budget allows.
    #[cold]
    fn grow(&mut self) -> Result<(), Full> {
        let now = self.slots.get().len() as u64;
        let both = self.budget / Self::slot_bytes();
        let slots = now.saturating_mul(2).min(both.saturating_sub(now));
        // Less is not worth the work of moving.
        if slots < now + now / 4 {
            return Err(Full);
        }
        let mut larger = Self::with_slots(slots, self.budget).map_err(|_| Full)?;
        for (fingerprint, value) in self.iter() {
            let slots = larger.slots.get_mut();
            let at = find(slots, fingerprint);
            slots[at] = fingerprint;
            larger.values.get_mut()[at] = value;
        }
        larger.used = self.used;
        *self = larger;
        Ok(())
    }

    /// All fingerprints and their values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Fingerprint, V)> {
        let slots = self.slots.get().iter().copied();
        let pairs = slots.zip(self.values.get().iter().copied());
        pairs.filter(|(slot, _)| *slot != Fingerprint::LEFT_OUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn fingerprints() -> impl Strategy<Value = Fingerprint> {
        // Few distinct ones, and such as all want the last slots.
        let halves = (1u64..9, prop_oneof![0u64..5, Just(u64::MAX), any::<u64>()]);
        halves.prop_map(|(high, low)| Fingerprint { high, low })
    }

    proptest! {
        #[test]
        fn it_is_a_map_until_it_is_full(
            all in proptest::collection::vec(fingerprints(), 0..400),
            expected in 0u64..100,
            budget in 0u64..9000,
        ) {
            let mut table = Table::<u32>::new(expected, budget).unwrap();
            let mut model = HashMap::new();
            for &fingerprint in &all {
                let key = (fingerprint.high, fingerprint.low);
                prop_assert_eq!(table.get_mut(fingerprint).copied(), model.get(&key).copied());
                match table.entry(fingerprint) {
                    Ok((new, value)) => {
                        prop_assert_eq!(new, !model.contains_key(&key));
                        *value += 1;
                        *model.entry(key).or_insert(0) += 1;
                    }
                    Err(Full) => prop_assert!(!model.contains_key(&key)),
                }
                prop_assert_eq!(table.len(), model.len() as u64);
            }
            let found: HashMap<_, _> = table.iter().map(|(f, v)| ((f.high, f.low), v)).collect();
            prop_assert_eq!(found, model);
            let bytes = table.slots.get().len() as u64 * 20;
            prop_assert!(bytes <= budget.max(LEAST_SLOTS * 20), "{bytes} {budget}");
        }
    }

    #[test]
    fn sizes_agree_with_each_other() {
        for count in (0..2000).chain([1 << 40, u64::MAX]) {
            assert!(most_in(slots_for(count)) >= count.min(1 << 60));
            let bytes = Table::<u64>::bytes_for(count.min(1 << 50));
            assert!(
                Table::<u64>::most_for(bytes) >= count.min(1 << 50),
                "{count}"
            );
        }
    }
}
