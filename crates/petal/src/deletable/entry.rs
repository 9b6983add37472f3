//! A remainder and its count, as the slots that hold them.
//!
//! Owns the code of counts. In a run the remainders ascend, so that a repeat
//! of one cannot be another: it begins a count.
//!
//! ```text
//! x              once
//! x x            twice
//! x x x digits   three times and as often as the digits say
//! ```
//!
//! Digits are groups of slots with at least 4 bits, lowest group first; the
//! high bit of a group says that another follows, the last one is not 0 unless
//! it is the only one. So a count takes slots in the order of its logarithm.

/// Slots that hold the largest count in the narrowest slots: three, and 22
/// groups of 4.
pub(super) const MOST_SLOTS: usize = 91;

/// A remainder in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) remainder: u64,
    pub(super) count: u64,
    /// Slots that it takes.
    pub(super) len: usize,
    /// Whether these are the slots that [`encode`] makes.
    pub(super) canonical: bool,
}

/// Slots of a group of digits, and the bits of its number.
const fn group(remainder_bits: u32) -> (usize, u32) {
    match remainder_bits {
        1 => (4, 3),
        2 => (2, 3),
        3 => (2, 5),
        bits => (1, bits - 1),
    }
}

/// Reads the entry that begins a run of slots, of which there are `left` (at
/// least 1). Whatever they hold, it takes at most [`MOST_SLOTS`] of them.
#[inline]
pub(super) fn decode(remainder_bits: u32, left: usize, slot: impl Fn(usize) -> u64) -> Entry {
    let remainder = slot(0);
    let repeats = (1..left.min(3))
        .take_while(|&i| slot(i) == remainder)
        .count();
    let mut entry = Entry {
        remainder,
        count: 1 + repeats as u64,
        len: 1 + repeats,
        canonical: true,
    };
    if repeats == 2 {
        decode_digits(remainder_bits, left, slot, &mut entry);
    }
    entry
}

#[cold]
fn decode_digits(remainder_bits: u32, left: usize, slot: impl Fn(usize) -> u64, entry: &mut Entry) {
    let (slots, bits) = group(remainder_bits);
    let (mut more, mut shift) = (0u64, 0u32);
    loop {
        if entry.len + slots > left || shift >= 64 {
            entry.canonical = false;
            break;
        }
        let mut digits = 0;
        for (i, shift) in (0..slots).zip((0u32..).map(|i| i * remainder_bits)) {
            digits |= slot(entry.len + i) << shift;
        }
        entry.len += slots;
        let number = digits & ((1 << bits) - 1);
        let placed = number << shift;
        entry.canonical &= placed >> shift == number;
        more |= placed;
        if digits >> bits == 0 {
            entry.canonical &= number != 0 || shift == 0;
            break;
        }
        shift += bits;
    }
    match more.checked_add(3) {
        Some(count) => entry.count = count,
        None => {
            entry.canonical = false;
            entry.count = u64::MAX;
        }
    }
}

/// The slots of an entry; how many there are of them.
pub(super) fn encode(
    remainder_bits: u32,
    remainder: u64,
    count: u64,
    slots: &mut [u64; MOST_SLOTS],
) -> usize {
    let Some(mut more) = count.checked_sub(3) else {
        let len = usize::try_from(count).unwrap_or(0);
        slots[..len].fill(remainder);
        return len;
    };
    slots[..3].fill(remainder);
    let (group, bits) = group(remainder_bits);
    let mask = u64::MAX >> (64 - remainder_bits);
    let mut len = 3;
    loop {
        let mut digits = more & ((1 << bits) - 1);
        more >>= bits;
        if more > 0 {
            digits |= 1 << bits;
        }
        for slot in &mut slots[len..len + group] {
            *slot = digits & mask;
            digits >>= remainder_bits;
        }
        len += group;
        if more == 0 {
            return len;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(crate::testing::cases(2000))]
        #[test]
        fn counts_are_read_as_written(
            bits in 1u32..=56,
            remainder: u64,
            count in prop_oneof![1u64..40, any::<u64>(), Just(u64::MAX), (0u32..64).prop_map(|b| 1 << b)],
        ) {
            prop_assume!(count > 0);
            let remainder = remainder & (u64::MAX >> (64 - bits));
            let mut slots = [0; MOST_SLOTS];
            let len = encode(bits, remainder, count, &mut slots);
            prop_assert!(slots[..len].iter().all(|slot| slot >> bits == 0));
            let entry = decode(bits, len, |i| slots[i]);
            prop_assert_eq!(entry, Entry { remainder, count, len, canonical: true });
            // In the order of the logarithm.
            let digits = 64 - count.leading_zeros() as usize;
            prop_assert!(len <= 7 + 4 * digits / 3);
            prop_assert!(bits < 7 || len <= 4 + digits / 6);
        }

        #[test]
        fn any_slots_are_an_entry(
            bits in 1u32..=56,
            slots in proptest::collection::vec(any::<u64>(), 1..100),
            same: bool,
        ) {
            let mask = u64::MAX >> (64 - bits);
            let slot = |i: usize| if same && i < 3 { slots[0] & mask } else { slots[i] & mask };
            let entry = decode(bits, slots.len(), slot);
            prop_assert!((1..=MOST_SLOTS.min(slots.len())).contains(&entry.len));
            prop_assert!(entry.count >= 1);
            if entry.canonical {
                let mut again = [0; MOST_SLOTS];
                let len = encode(bits, entry.remainder, entry.count, &mut again);
                prop_assert_eq!(len, entry.len);
                prop_assert!((0..len).all(|i| again[i] == slot(i)));
            }
        }
    }
}
