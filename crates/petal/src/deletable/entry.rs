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

/// How many slots a count takes: those that [`encode`] fills. One for each
/// time at first; a count of three takes one more (in slots of 2 and 3 bits one
/// of three and four, at most two more; in slots of one bit those from three to
/// six, at most four more). Others take no more than their number, and large
/// ones about its logarithm.
pub(super) fn slots(remainder_bits: u32, count: u64) -> u64 {
    let Some(more) = count.checked_sub(3) else {
        return count;
    };
    let (group, bits) = group(remainder_bits);
    let digits = (u64::BITS - more.leading_zeros()).div_ceil(bits).max(1);
    3 + group as u64 * u64::from(digits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Inserting a key again never takes more slots than as many other keys,
    /// but for the few counts that begin digits.
    #[test]
    fn a_count_takes_no_more_slots_than_its_number() {
        for (bits, exceptions, most) in [
            (1, 3..=6, 4),
            (2, 3..=4, 2),
            (3, 3..=4, 2),
            (4, 3..=3, 1),
            (7, 3..=3, 1),
            (20, 3..=3, 1),
            (56, 3..=3, 1),
        ] {
            let powers = (20..64).flat_map(|log| {
                let power = 1u64 << log;
                [power - 1, power, power + 1, power + 2, power + 3]
            });
            let mut before = 0;
            for count in (1..1 << 20).chain(powers).chain([u64::MAX]) {
                let slots = slots(bits, count);
                assert!(slots >= before, "{bits} bits, {count}");
                before = slots;
                if exceptions.contains(&count) {
                    assert!(slots <= count + most, "{bits} bits, {count}");
                } else {
                    assert!(slots <= count, "{bits} bits, {count}");
                }
            }
            assert!(before <= MOST_SLOTS as u64);
        }
    }

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
            prop_assert_eq!(super::slots(bits, count), len as u64);
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
