//! The calls that run once a key or once a batch allocate nothing.

use allocation_counter::measure;
use petal::{
    BloomFilter, ConcurrentBloomFilter, DigestSet, Digests, Identity, Insert, Int, KeyHasher,
    KeyType, mask_words,
};

const KEYS: usize = 10_000;

/// Allocations in a run.
fn allocations(run: impl FnOnce()) -> u64 {
    measure(run).count_total
}

#[test]
fn the_count_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1]))), 1);
}

#[test]
fn bloom_filters_allocate_nothing_a_call() {
    let mut mask = [0; mask_words(KEYS)];
    let ints: Vec<i64> = (0..).take(KEYS).collect();
    let texts: Vec<String> = ints
        .iter()
        .map(|i| format!("https://example.org/{i}"))
        .collect();
    // One that is asked as it lies in the cache, and one whose lines are fetched.
    for items in [10_000, 3_000_000] {
        let hasher = KeyHasher::default();
        let mut filter = BloomFilter::<Int>::with_hasher(items, 0.01, hasher.clone()).unwrap();
        let shared = ConcurrentBloomFilter::<Int>::with_hasher(items, 0.01, hasher).unwrap();
        let mut of_bytes = BloomFilter::new(items, 1e-9).unwrap();
        let run = || {
            filter.insert(&7).unwrap();
            filter.insert_batch(&ints, &mut mask).unwrap();
            assert!(filter.contains(&7));
            filter.contains_batch(&ints, &mut mask).unwrap();
            shared.insert(&7);
            shared.insert_batch(&ints, &mut mask).unwrap();
            shared.contains_batch(&ints, &mut mask).unwrap();
            of_bytes.insert_batch(&texts, &mut mask).unwrap();
            of_bytes.contains_batch(&texts, &mut mask).unwrap();
        };
        assert_eq!(allocations(run), 0);
    }
}

#[test]
fn a_digest_set_with_room_allocates_nothing() {
    let mut set = DigestSet::with_slots(Identity::new(KeyType::Int), 4 * KEYS as u64).unwrap();
    let mut digests = Digests::new(KeyHasher::default(), KeyType::Int);
    for key in (0..).take(KEYS) {
        digests.push_int(key).unwrap();
    }
    let mut mask = [0; mask_words(KEYS)];
    assert_eq!(
        allocations(|| set.insert_digests(&digests, &mut mask).unwrap()),
        0
    );
}
