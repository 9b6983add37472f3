//! Filters of more than 2^32 and of more than 2^35 bits. Their files are
//! sparse, and the few keys touch few pages.

use std::os::unix::fs::MetadataExt;

use super::*;
use crate::format::mapped::{MappedGeometry, MappedWriter};
use crate::traits::Insert;
use crate::words::Words;
use crate::{Static, StaticGeometry};

/// Digests of keys, and some whose block is the last of all or among the last.
fn spread_digests() -> Vec<u64> {
    digests(12)
        .chain((0..8).map(|i| u64::MAX - (i << 40)))
        .collect()
}

/// All keys are found, and nothing else is: an index that lost its high bits
/// would set bits that other keys ask about.
fn assert_answers(filter: &AnyFilter, keys: &[u64]) {
    assert!(keys.iter().all(|&digest| filter.contains_bits(digest)));
    for &digest in keys {
        // The same place in a smaller filter.
        for fold in 1..4 {
            assert!(!filter.contains_bits(digest >> fold));
        }
    }
    assert!(
        digests(200)
            .skip(12)
            .all(|digest| !filter.contains_bits(digest))
    );
}

fn last_word(filter: &AnyFilter, digest: u64) -> u64 {
    match filter {
        AnyFilter::Bloom(filter) => filter.block_starts(digest).max().unwrap() as u64,
        AnyFilter::Classic(filter) => filter.word_indices(digest).max().unwrap() as u64,
        _ => panic!("not a filter of this test"),
    }
}

#[test]
fn more_than_2_to_32_bits() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    let geometry = split(BlockWords::Eight, 1, 257 << 15);
    assert!(geometry.bits() > 1 << 32);
    let mut filter = bloom(Identity::new(KeyType::Int), geometry);
    let keys = spread_digests();
    for &digest in &keys {
        assert!(filter.insert_bits(digest).unwrap());
    }
    assert!(last_word(&filter, u64::MAX) * 64 >= 1 << 32);
    assert_answers(&filter, &keys);
    filter.save(&path, Overwrite::Refuse).unwrap();
    let on_disk = fs::metadata(&path).unwrap();
    assert!(on_disk.len() > 1 << 29);
    assert!(
        on_disk.blocks() * 512 < 64 << 20,
        "{} blocks",
        on_disk.blocks()
    );
    drop(filter);
    assert_answers(&AnyFilter::open(&path, None).unwrap(), &keys);
    assert_answers(&AnyFilter::open_mapped(&path, None).unwrap(), &keys);
    crate::verify(&path).unwrap();
}

/// Made and filled in place, as a filter beyond memory is.
fn build_in_place(geometry: MappedGeometry, bits: u64) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    let identity = Identity::new(KeyType::Int);
    let about = About::new(identity.clone(), Some(PROMISE));
    // Without the check of the room that the filter might take once full.
    let mut writer =
        MappedWriter::create_sparse(&path, about, geometry, Overwrite::Refuse, |_, _| Ok(()))
            .unwrap();
    let keys = spread_digests();
    for &digest in &keys {
        assert!(writer.insert_bits(digest).unwrap());
    }
    let set = {
        let mut set = DigestSet::new(identity).unwrap();
        keys.iter().for_each(|&digest| {
            set.insert_bits(digest).unwrap();
        });
        set
    };
    let insert: &mut dyn Insert = &mut writer;
    set.pour_into(insert).unwrap();
    writer.commit().unwrap();
    drop(writer);

    let on_disk = fs::metadata(&path).unwrap();
    assert!(on_disk.len() > bits / 8);
    assert!(
        on_disk.blocks() * 512 < 256 << 20,
        "{} blocks",
        on_disk.blocks()
    );
    let filter = AnyFilter::open_mapped(&path, None).unwrap();
    let last = keys.iter().map(|&digest| last_word(&filter, digest)).max();
    assert!(last.unwrap() * 64 >= bits);
    assert_eq!(
        Contains::about(&filter).insertions(),
        Some(keys.len() as u64)
    );
    assert_answers(&filter, &keys);
    crate::verify(&path).unwrap();
    match AnyFilter::open(&path, None) {
        Ok(filter) => assert_answers(&filter, &keys),
        // Holes take no memory, but a small machine refuses the size.
        Err(error) => assert!(matches!(error, Error::TooLarge { .. }), "{error}"),
    }
}

#[test]
fn more_than_2_to_35_bits_in_place() {
    build_in_place(split(BlockWords::Eight, 1, 257 << 18).into(), 1 << 35);
}

#[test]
fn more_than_2_to_32_bits_of_a_classic_filter_in_place() {
    let geometry = ClassicGeometry::new(6_000_000_001, 3).unwrap();
    build_in_place(geometry.into(), 1 << 32);
}

/// The table is all zeros but for the slots at which a few keys start: with one column, that is
/// what decides about them.
#[test]
fn more_than_2_to_32_slots_of_a_static_filter() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    let blocks = (1 << 26) + 9;
    let mut about = About::new(Identity::new(KeyType::Int), Some(PROMISE));
    about.insertions = Some(5);
    let mut words = Words::zeroed(blocks.into()).unwrap();
    let mut last = 0;
    for digest in spread_digests() {
        let (_, [(start, coefficients, fingerprint), _]) =
            crate::ribbon::example_rows(digest, 1, [blocks.into(), 1]);
        let slots = u128::from(blocks) * 64 - 63;
        assert_eq!(u128::from(start), (u128::from(digest) * slots) >> 64);
        assert_eq!(coefficients & 1, 1);
        let word = usize::try_from(start / 64).unwrap();
        words.get_mut().unwrap()[word] |= (fingerprint & 1) << (start % 64);
        last = last.max(start);
    }
    assert!(last > 1 << 32);
    let zeros = Words::zeroed(blocks.into()).unwrap();
    let geometry = StaticGeometry::of_blocks(blocks);
    let empty = Static::from_parts(about.clone(), geometry, zeros).unwrap();
    let filter = AnyFilter::from(Static::from_parts(about, geometry, words).unwrap());
    let assert_answers = |filter: &AnyFilter| {
        let mut wrong = 0;
        for digest in spread_digests() {
            assert!(filter.contains_bits(digest), "{digest:x}");
            wrong += u32::from(!empty.contains_bits(digest));
        }
        assert!(wrong > 5, "{wrong} keys are not where the table is 0");
    };
    assert_answers(&filter);
    filter.save(&path, Overwrite::Refuse).unwrap();
    drop(filter);
    assert_answers(&AnyFilter::open_mapped(&path, None).unwrap());
    crate::verify(&path).unwrap();
}
