//! Filters there and back, damaged and hostile; sizes against their bounds.

mod golden;
mod spec;

use proptest::prelude::*;

use super::*;
use crate::error::FormatError;
use crate::geometry::{BlockWords, SplitGeometry};
use crate::hash::{KeyHasher, KeyType};
use crate::identity::Identity;
use crate::sizing::{GrowthPlan, Promise};
use crate::testing::cases;
use crate::traits::{BitsMut, Contains};
use crate::{
    Bloom, Classic, ClassicGeometry, CounterBits, Counting, DigestSet, Growable, Increase,
};

const PROMISE: Promise = Promise {
    items: 1000,
    error: 0.3,
};

fn ints() -> Identity {
    Identity::new(KeyType::Int)
}

fn insert(filter: &mut AnyFilter, keys: std::ops::Range<u64>, seed: u64) {
    for i in keys {
        let digest = crate::mix_int(i.cast_signed(), seed);
        filter.insert_bits(digest).unwrap();
    }
}

fn bloom(identity: Identity, blocks: u64, regions: u32, keys: u64) -> AnyFilter {
    let geometry = SplitGeometry::new(BlockWords::Eight, regions, blocks).unwrap();
    let mut filter = Bloom::with_geometry(identity, geometry, PROMISE)
        .unwrap()
        .into();
    insert(&mut filter, 0..keys, 1);
    filter
}

fn classic(bits: u64, positions: u32, keys: u64) -> AnyFilter {
    let geometry = ClassicGeometry::new(bits, positions).unwrap();
    let mut filter = Classic::with_geometry(ints(), geometry, PROMISE)
        .unwrap()
        .into();
    insert(&mut filter, 0..keys, 1);
    filter
}

fn growable(keys: u64) -> AnyFilter {
    let plan = GrowthPlan::open(100, 0.01).unwrap();
    let mut filter = Growable::with_plan(ints(), plan).unwrap().into();
    insert(&mut filter, 0..keys, 1);
    filter
}

fn secret() -> Secret {
    Secret::new([9; 16])
}

/// With everything that a file records.
fn decorated() -> AnyFilter {
    let hasher = KeyHasher::Keyed { secret: secret() };
    let mut filter = bloom(ints().with_hasher(hasher), 6, 2, 100);
    filter.labels_mut().set("source", "tests, ü").unwrap();
    filter.set_attachment("run", vec![0, 255]).unwrap();
    filter.set_generation(7);
    filter
}

fn samples() -> Vec<AnyFilter> {
    vec![
        bloom(ints(), 1, 1, 0),
        bloom(ints(), 3, 1, 20),
        decorated(),
        classic(1000, 3, 100),
        classic(1, 1, 1),
        growable(250),
    ]
}

fn entropy_bytes(filter: &AnyFilter) -> f64 {
    let h = |q: f64| if q > 0.0 { -q * q.log2() } else { 0.0 };
    let fill = filter.fill();
    filter.bytes() as f64 * (h(fill) + h(1.0 - fill))
}

/// log2 of the number of ways to choose `k` of `n`, by Stirling's series.
fn log2_choose(n: f64, k: f64) -> f64 {
    let ln_factorial = |x: f64| {
        if x < 2.0 {
            0.0
        } else {
            x * x.ln() - x + 0.5 * (std::f64::consts::TAU * x).ln() + 1.0 / (12.0 * x)
        }
    };
    (ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)) / std::f64::consts::LN_2
}

#[test]
fn packed_filters_come_back_byte_for_byte() {
    for filter in samples() {
        let packed = pack(&filter).unwrap();
        let back = unpack(&packed, Some(&secret())).unwrap();
        assert_eq!(back.to_bytes().unwrap(), filter.to_bytes().unwrap());
        assert_eq!(Contains::about(&back), Contains::about(&filter));
    }
    let keyed = pack(&decorated()).unwrap();
    let error = unpack(&keyed, None).unwrap_err();
    assert!(matches!(error, Error::Secret { .. }), "{error}");
}

/// Keys after which a classic filter has about such a fill.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive count"
)]
fn keys_for(fill: f64, bits: u64, positions: f64) -> u64 {
    (-(-fill).ln_1p() * bits as f64 / positions) as u64
}

#[test]
fn packed_filters_are_within_one_percent_of_their_entropy() {
    // 64 KiB and about 1.5 MiB, at these fills: 1 - (1 - 1/m)^(k n).
    for (bits, fills) in [
        (1u64 << 19, &[0.05f64, 0.1, 0.25, 0.5, 0.75, 0.9][..]),
        (1 << 23, &[0.01, 0.1, 0.3, 0.5, 0.99]),
        (3 << 22, &[0.01, 0.1]),
    ] {
        for &fill in fills {
            let keys = keys_for(fill, bits, 4.0);
            let filter = classic(bits, 4, keys);
            let (packed, least) = (pack(&filter).unwrap().len(), entropy_bytes(&filter));
            assert!(
                packed as f64 <= 1.01 * least,
                "{bits} bits at {fill}: {packed} bytes of {least}"
            );
        }
    }
    for blocks in [1024, 2048, 20_480] {
        // Ten per cent, and what it was made for.
        for keys in [blocks * 27 / 4, blocks * 51] {
            let filter = bloom(ints(), blocks, 1, keys);
            let (packed, least) = (pack(&filter).unwrap().len(), entropy_bytes(&filter));
            assert!(
                packed as f64 <= 1.01 * least,
                "{blocks} blocks: {packed} of {least}"
            );
        }
    }
}

#[test]
fn every_flip_and_truncation_is_refused() {
    let old = bloom(ints(), 3, 1, 20);
    let mut new = bloom(ints(), 3, 1, 30);
    new.set_generation(2);
    let change = delta(&old, &new).unwrap();
    assert_eq!(
        apply_delta(&old, &change).unwrap().to_bytes().unwrap(),
        new.to_bytes().unwrap()
    );
    let refused =
        |bytes: &[u8]| unpack(bytes, Some(&secret())).is_err() && apply_delta(&old, bytes).is_err();
    for bytes in [
        pack(&decorated()).unwrap(),
        pack(&growable(250)).unwrap(),
        change,
    ] {
        let mut bytes = bytes;
        for at in 0..bytes.len() {
            for bit in 0..8 {
                bytes[at] ^= 1 << bit;
                assert!(refused(&bytes), "bit {bit} of byte {at}");
                bytes[at] ^= 1 << bit;
            }
            assert!(refused(&bytes[..at]), "cut to {at}");
        }
        for more in [1, 8, 100] {
            let mut longer = bytes.clone();
            longer.resize(bytes.len() + more, 0);
            assert!(refused(&longer), "{more} more");
        }
    }
}

/// Makes the checksum right again.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() - 8);
    container::seal(bytes)
}

#[test]
fn damage_under_a_right_checksum_is_an_error_or_another_filter() {
    let old = bloom(ints(), 3, 1, 20);
    let mut new = bloom(ints(), 3, 1, 30);
    new.set_generation(2);
    let (packed, change) = (pack(&new).unwrap(), delta(&old, &new).unwrap());
    let whole = new.to_bytes().unwrap();
    for (bytes, open) in [
        (
            packed,
            &(|bytes: &[u8]| unpack(bytes, None)) as &dyn Fn(&[u8]) -> Result<AnyFilter>,
        ),
        (change, &|bytes: &[u8]| apply_delta(&old, bytes)),
    ] {
        for at in (8..16).chain(24..bytes.len() - 8) {
            for xor in [1, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= xor;
                if let Ok(filter) = open(&resealed(bytes)) {
                    // What describes the filter may say anything that fits; its
                    // words have a checksum of their own. The last byte of a
                    // coded run may be another one that means the same.
                    let same = filter.to_bytes().unwrap() == whole;
                    assert_eq!(same, !(24..112).contains(&at), "{at}");
                }
            }
        }
    }
}

#[test]
fn sizes_that_the_bytes_do_not_justify_are_refused_before_memory_is_taken() {
    let mut bytes = pack(&bloom(ints(), 256, 1, 0)).unwrap();
    // The blocks a region are the third geometry word: at 24 + 40 + 16.
    for blocks in [1u64 << 30, 1 << 40, 1 << 52] {
        bytes[80..88].copy_from_slice(&blocks.to_le_bytes());
        let error = unpack(&resealed(bytes.clone()), None).unwrap_err();
        assert!(
            matches!(error, Error::Format(FormatError::Field { .. })),
            "{error}"
        );
    }
}

#[test]
fn an_empty_filter_of_a_gibibyte_is_some_kilobytes() {
    let filter = bloom(ints(), 1 << 24, 1, 5);
    let packed = pack(&filter).unwrap();
    assert!(packed.len() < 9000, "{}", packed.len());
    let back = unpack(&packed, None).unwrap();
    assert!(Contains::about(&back) == Contains::about(&filter));
}

#[test]
fn what_is_packed_is_not_taken_for_a_filter_nor_the_other_way_around() {
    let filter = bloom(ints(), 3, 1, 20);
    let packed = pack(&filter).unwrap();
    let error = AnyFilter::from_bytes(&packed, None)
        .unwrap_err()
        .to_string();
    assert!(error.contains("petal unpack"), "{error}");
    let error = unpack(&filter.to_bytes().unwrap(), None)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("neither a packed filter nor a delta"),
        "{error}"
    );
    let error = apply_delta(&filter, &packed).unwrap_err().to_string();
    assert!(error.contains("petal unpack"), "{error}");
    for other in ["", "\x09petl", "text"] {
        assert!(unpack(other.as_bytes(), None).is_err());
    }
}

#[test]
fn kinds_whose_bits_are_not_independent_are_refused() {
    let set = DigestSet::with_slots(ints(), 8).unwrap().into();
    let counting: AnyFilter = Counting::sized(ints(), PROMISE, CounterBits::Four, Increase::All)
        .unwrap()
        .into();
    for filter in [set, counting] {
        let error = pack(&filter).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Unsupported {
                    operation: "packing",
                    ..
                }
            ),
            "{error}"
        );
        let error = delta(&filter, &filter).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Unsupported {
                    operation: "deltas",
                    ..
                }
            ),
            "{error}"
        );
    }
}

#[test]
fn deltas_are_within_five_percent_of_the_positions_that_changed() {
    let blocks = 8192; // half a MiB
    let full = blocks * 51;
    for (keys, more) in [
        (full, full / 100),
        (full, full / 10),
        (full / 4, full / 50),
        (0, full / 4),
    ] {
        let old = bloom(ints(), blocks, 1, keys);
        let mut new = bloom(ints(), blocks, 1, keys);
        insert(&mut new, keys..keys + more, 1);
        new.set_generation(2);
        let bits = (blocks * 512) as f64;
        let changed = (new.fill() - old.fill()) * bits;
        let bytes = delta(&old, &new).unwrap();
        let bound = log2_choose(bits, changed) / 8.0;
        assert!(
            bytes.len() as f64 <= 1.05 * bound,
            "{keys} and {more}: {} of {bound}",
            bytes.len()
        );
        let back = apply_delta(&old, &bytes).unwrap();
        assert_eq!(back.to_bytes().unwrap(), new.to_bytes().unwrap());
    }
}

#[test]
fn deltas_tell_cleared_bits_as_well_and_new_stages() {
    let generations = |mut old: AnyFilter, mut new: AnyFilter| {
        old.set_generation(3);
        new.set_generation(9);
        let bytes = delta(&old, &new).unwrap();
        let back = apply_delta(&old, &bytes).unwrap();
        assert_eq!(back.to_bytes().unwrap(), new.to_bytes().unwrap());
    };
    generations(bloom(ints(), 600, 2, 9000), bloom(ints(), 600, 2, 10));
    generations(classic(12_345, 3, 2000), classic(12_345, 3, 2500));
    // Two MiB and a bit, one of which has all bits set.
    generations(bloom(ints(), 32_768 + 128, 1, 100_000), {
        let mut filter = bloom(ints(), 32_768 + 128, 1, 0);
        let AnyFilter::Bloom(inner) = &mut filter else {
            unreachable!()
        };
        let mut words = crate::words::Words::zeroed(inner.geometry().words()).unwrap();
        words.get_mut().unwrap()[..131_072].fill(u64::MAX);
        *inner = Bloom::from_parts(Bits::meta(inner).clone(), inner.geometry(), words);
        filter
    });
    generations(growable(90), growable(700));
    let (mut old, new) = (growable(700), growable(90));
    old.set_generation(0);
    assert!(matches!(delta(&old, &new), Err(Error::Mismatch { .. })));
}

#[test]
fn deltas_apply_in_order_to_the_filter_they_are_of() {
    let version = |generation, keys| {
        let mut filter = bloom(ints(), 300, 1, keys);
        filter.set_generation(generation);
        filter
    };
    let versions: Vec<AnyFilter> = (1..5).map(|g| version(g, g * 1000)).collect();
    let deltas: Vec<Vec<u8>> = versions
        .windows(2)
        .map(|pair| delta(&pair[0], &pair[1]).unwrap())
        .collect();
    let mut mine = version(1, 1000);
    for (delta, expected) in deltas.iter().zip(&versions[1..]) {
        mine = apply_delta(&mine, delta).unwrap();
        assert_eq!(mine.to_bytes().unwrap(), expected.to_bytes().unwrap());
    }
    let text = |filter: &AnyFilter, delta: &[u8]| {
        let error = apply_delta(filter, delta).unwrap_err();
        assert!(matches!(error, Error::OutOfOrder { .. }), "{error}");
        error.to_string()
    };
    assert!(text(&versions[0], &deltas[1]).contains("in order"));
    assert!(text(&versions[2], &deltas[1]).contains("applied already"));
    assert!(text(&versions[3], &deltas[0]).contains("applied already"));
    let error = apply_delta(&version(2, 2001), &deltas[1]).unwrap_err();
    assert!(matches!(error, Error::WrongBase { .. }), "{error}");
    // Not a later generation.
    for generation in [1, 0] {
        let error = delta(&versions[0], &version(generation, 5)).unwrap_err();
        assert!(error.to_string().contains("later generation"), "{error}");
    }
    let keyed = ints().with_hasher(KeyHasher::Portable { seed: 5 });
    let mut other = bloom(keyed, 300, 1, 10);
    other.set_generation(2);
    assert!(matches!(
        delta(&versions[0], &other),
        Err(Error::Mismatch { .. })
    ));
    let mut larger = bloom(ints(), 301, 1, 10);
    larger.set_generation(2);
    assert!(matches!(
        delta(&versions[0], &larger),
        Err(Error::Mismatch { .. })
    ));
}

#[test]
fn files_are_packed_and_changed_without_their_secret() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let old = decorated();
    let mut new = decorated();
    insert(&mut new, 100..150, 1);
    new.set_generation(8);
    old.save(path("old"), Overwrite::Refuse).unwrap();
    new.save(path("new"), Overwrite::Refuse).unwrap();
    let read = |name: &str| std::fs::read(path(name)).unwrap();

    let bytes = pack_file(path("old"), path("packed"), Overwrite::Refuse).unwrap();
    assert_eq!(read("packed"), pack(&old).unwrap());
    let info = inspect(path("packed")).unwrap();
    assert_eq!((info.content, info.generation), (WireContent::Packed, 7));
    assert_eq!(
        (info.bytes, info.filter_bytes),
        (bytes, read("old").len() as u64)
    );
    unpack_file(path("packed"), path("back"), Overwrite::Refuse).unwrap();
    assert_eq!(read("back"), read("old"));

    delta_file(path("old"), path("new"), path("delta"), Overwrite::Refuse).unwrap();
    assert_eq!(read("delta"), delta(&old, &new).unwrap());
    let info = inspect(path("delta")).unwrap();
    assert_eq!(
        (info.content, info.generation),
        (WireContent::Delta { from: 7 }, 8)
    );
    apply_delta_file(path("old"), path("delta"), path("out"), Overwrite::Refuse).unwrap();
    assert_eq!(read("out"), read("new"));
    let error = pack_file(path("old"), path("packed"), Overwrite::Refuse).unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error}");
    let error = inspect(path("old")).unwrap_err().to_string();
    assert!(error.contains("neither"), "{error}");
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn any_filters_come_back(
        blocks in 1u64..1500,
        regions in 1u32..=4,
        before in 0u64..5000,
        after in 0u64..5000,
    ) {
        let blocks = crate::geometry::round_up_blocks(blocks).unwrap();
        let old = bloom(ints(), blocks, regions, before);
        let packed = pack(&old).unwrap();
        let mut new = unpack(&packed, None).unwrap();
        prop_assert_eq!(new.to_bytes().unwrap(), old.to_bytes().unwrap());
        insert(&mut new, 0..after, 2);
        new.set_generation(2);
        let change = delta(&old, &new).unwrap();
        let back = apply_delta(&old, &change).unwrap();
        prop_assert_eq!(back.to_bytes().unwrap(), new.to_bytes().unwrap());
    }

    #[test]
    fn any_bytes_are_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..300), sealed: bool) {
        let filter = bloom(ints(), 2, 1, 3);
        if sealed && bytes.len() > 24 {
            let lead = pack(&filter).unwrap();
            bytes[..12].copy_from_slice(&lead[..12]);
            bytes = container::seal(bytes);
        }
        prop_assert!(unpack(&bytes, None).is_err());
        prop_assert!(apply_delta(&filter, &bytes).is_err());
    }
}
