//! Many threads against the one-writer filter, which is the specification.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::AnyFilter;
use crate::error::Error;
use crate::geometry::BlockWords;
use crate::hash::{Int, KeyType, mix_int};
use crate::sizing::split_error;
use crate::traits::{BitsMut, Insert, Merge, mask_words};

const fn shared_by_threads<T: Send + Sync>() {}
const _: () = shared_by_threads::<ConcurrentBloomFilter>();

fn int_identity() -> Identity {
    Identity::new(KeyType::Int)
}

fn sized(items: u64, error: f64) -> ConcurrentBloom {
    ConcurrentBloom::sized(int_identity(), Promise { items, error }).unwrap()
}

/// The digests of integer keys.
fn digests(keys: impl IntoIterator<Item = i64>) -> Digests {
    let mut digests = Digests::new(KeyHasher::default(), KeyType::Int);
    for key in keys {
        digests.push_int(key).unwrap();
    }
    digests
}

/// The bits that one writer sets for the same keys.
fn sequential(like: &ConcurrentBloom, keys: impl IntoIterator<Item = i64>) -> Bloom {
    let promise = like.about().promise().unwrap();
    let mut filter = Bloom::with_geometry(int_identity(), like.geometry(), promise).unwrap();
    let digests = digests(keys);
    let mut mask = vec![0; mask_words(digests.len())];
    filter.insert_digests(&digests, &mut mask).unwrap();
    filter
}

/// Mean and its standard error.
fn mean_and_error(sample: &[f64]) -> (f64, f64) {
    let count = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / count;
    let variance = sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

/// Eight threads insert an eighth of a million keys each, singly or in
/// batches: none is lost, and the bits are those of one thread.
#[test]
fn eight_threads_lose_no_key() {
    const EACH: i64 = 125_000;
    for error in [0.1, 0.01, 1e-6] {
        let filter = sized(1_000_000, error);
        let new: u64 = thread::scope(|scope| {
            let run = |thread: i64| {
                let filter = &filter;
                move || {
                    let mut new = 0;
                    let mut mask = [0; mask_words(1000)];
                    let keys: Vec<i64> = (thread * EACH..(thread + 1) * EACH).collect();
                    for chunk in keys.chunks(1000) {
                        let digests = digests(chunk.iter().copied());
                        if thread % 2 == 0 {
                            filter.insert_digests(&digests, &mut mask).unwrap();
                            new += mask.iter().map(|m| u64::from(m.count_ones())).sum::<u64>();
                        } else {
                            for &bits in digests.bits() {
                                new += u64::from(filter.insert_bits(bits));
                            }
                        }
                    }
                    new
                }
            };
            let threads: Vec<_> = (0..8).map(|thread| scope.spawn(run(thread))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert_eq!(filter.insertions(), Some(new));
        let all = digests(0..8 * EACH);
        let mut mask = vec![0; mask_words(all.len())];
        filter.contains_digests(&all, &mut mask).unwrap();
        assert!(mask.iter().all(|&word| word == u64::MAX));
        let expected = sequential(&filter, 0..8 * EACH);
        assert_eq!(filter.fill(), expected.fill());
        assert_eq!(filter.estimated_len(), expected.estimated_len());
        let frozen = filter.into_frozen();
        assert!(frozen == expected);
        assert_eq!(frozen.about().insertions(), Some(new));
    }
}

/// All threads insert the same keys at the same time. Whatever bit there is
/// was set by a call that said "new", so the keys that some call said "new"
/// for are enough to set all of them.
#[test]
fn of_many_insertions_of_a_key_one_says_new_unless_others_cover_it() {
    const KEYS: i64 = 50_000;
    let filter = sized(KEYS.cast_unsigned(), 0.01);
    let barrier = std::sync::Barrier::new(4);
    let new_for: Vec<HashSet<i64>> = thread::scope(|scope| {
        let run = |backwards: bool| {
            let (filter, barrier) = (&filter, &barrier);
            move || {
                barrier.wait();
                (0..KEYS)
                    .map(|i| if backwards { KEYS - 1 - i } else { i })
                    .filter(|&key| filter.insert_bits(mix_int(key, 0)))
                    .collect()
            }
        };
        let threads: Vec<_> = [false, false, true, true]
            .map(|backwards| scope.spawn(run(backwards)))
            .into();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let calls: usize = new_for.iter().map(HashSet::len).sum();
    assert_eq!(filter.insertions(), Some(calls as u64));
    let new: HashSet<i64> = new_for.into_iter().flatten().collect();
    let frozen = filter.into_frozen();
    let all = ConcurrentBloom::sized(int_identity(), frozen.about().promise().unwrap()).unwrap();
    assert!(frozen == sequential(&all, 0..KEYS));
    assert!(frozen == sequential(&all, new.iter().copied()));
}

/// A thread that learns of a key through a channel or a flag finds it.
#[test]
fn who_learned_of_a_key_finds_it() {
    let filter = sized(200_000, 0.01);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (send, receive) = mpsc::channel::<Vec<i64>>();
        let (filter, done) = (&filter, &done);
        for thread in 0..2 {
            let send = send.clone();
            scope.spawn(move || {
                for chunk in 0..100 {
                    let start = (thread * 100 + chunk) * 1000;
                    let keys: Vec<i64> = (start..start + 1000).collect();
                    for &key in &keys {
                        filter.insert_bits(mix_int(key, 0));
                    }
                    send.send(keys).unwrap();
                }
            });
        }
        drop(send);
        scope.spawn(move || {
            for keys in receive {
                assert!(
                    keys.iter()
                        .all(|&key| filter.contains_bits(mix_int(key, 0)))
                );
            }
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        scope.spawn(move || {
            while !done.load(std::sync::atomic::Ordering::Acquire) {
                thread::yield_now();
            }
            assert!((0..200_000).all(|key| filter.contains_bits(mix_int(key, 0))));
        });
    });
}

/// The promise holds for filters that threads filled: the mean over seeds is
/// at most p, and that of its computed expectation, within 5 sigma.
#[test]
fn the_error_is_at_most_what_was_asked() {
    for (items, error) in [(1000u64, 0.05), (1000, 0.01), (50_000, 1e-3)] {
        let mut rates = Vec::new();
        let mut expected = 0.0;
        for seed in 0..100 {
            let filter = sized(items, error);
            expected = split_error(filter.geometry(), items, int_identity().collisions());
            let n = i64::try_from(items).unwrap();
            thread::scope(|scope| {
                for thread in 0..2 {
                    let filter = &filter;
                    scope.spawn(move || {
                        for key in (0..n).filter(|key| key % 2 == thread) {
                            filter.insert_bits(mix_int(key, seed));
                        }
                    });
                }
            });
            let hits = (n..n + 50_000)
                .filter(|&key| filter.contains_bits(mix_int(key, seed)))
                .count();
            rates.push(hits as f64 / 50_000.0);
        }
        let (mean, sigma) = mean_and_error(&rates);
        assert!(mean <= error + 5.0 * sigma, "{error}: {mean} +- {sigma}");
        assert!(
            (mean - expected).abs() <= 5.0 * sigma,
            "{expected}: {mean} +- {sigma}"
        );
    }
}

proptest! {
    #![proptest_config(crate::testing::cases(256))]
    /// Called by one thread, it answers as the filter for one writer does.
    #[test]
    fn one_thread_gets_the_answers_of_the_plain_filter(
        inserted in proptest::collection::vec(0i64..500, 0..400),
        asked in proptest::collection::vec(any::<i64>(), 0..400),
        regions in 1u32..=4,
        half: bool,
        blocks in prop_oneof![1u64..512, Just(20_480u64)],
    ) {
        let block = if half { BlockWords::Four } else { BlockWords::Eight };
        let geometry = SplitGeometry::new(block, regions, blocks).unwrap();
        let promise = Promise { items: 1, error: 0.5 };
        let empty = || Bloom::with_geometry(int_identity(), geometry, promise).unwrap();
        let mut plain = empty();
        let single = empty().into_concurrent().unwrap();
        let batched = empty().into_concurrent().unwrap();
        let keys = digests(inserted.iter().copied());
        let mut mask = vec![u64::MAX; mask_words(keys.len())];
        batched.insert_digests(&keys, &mut mask).unwrap();
        for (i, &bits) in keys.bits().iter().enumerate() {
            let changed = plain.insert_bits(bits).unwrap();
            prop_assert_eq!(changed, single.insert_bits(bits));
            prop_assert_eq!(changed, mask[i / 64] >> (i % 64) & 1 == 1);
        }
        prop_assert_eq!(plain.about().insertions(), single.insertions());
        prop_assert_eq!(plain.about().insertions(), batched.insertions());
        let questions = digests(inserted.iter().chain(&asked).copied());
        let mut expected = vec![0; mask_words(questions.len())];
        let mut answers = vec![u64::MAX; mask_words(questions.len())];
        plain.contains_digests(&questions, &mut expected).unwrap();
        batched.contains_digests(&questions, &mut answers).unwrap();
        prop_assert_eq!(&expected, &answers);
        for (i, &bits) in questions.bits().iter().enumerate() {
            prop_assert_eq!(single.contains_bits(bits), expected[i / 64] >> (i % 64) & 1 == 1);
        }
        prop_assert_eq!(plain.fill(), single.fill());
        prop_assert!(single.into_frozen() == plain);
        prop_assert!(batched.into_frozen() == plain);
    }
}

/// There and back: bits, labels, promise and count stay, and the words do not
/// move, on the heap or in a mapping.
#[test]
fn freezing_copies_nothing_and_keeps_everything() {
    for items in [100u64, 1_000_000] {
        let mut filter =
            BloomFilter::<Int>::with_hasher(items, 0.01, KeyHasher::default()).unwrap();
        filter.labels_mut().set("source", "test").unwrap();
        filter.insert(&1).unwrap();
        let place = filter.words().get().as_ptr().addr();
        let filter = filter.into_concurrent().unwrap();
        assert_eq!(filter.about().insertions(), None);
        assert_eq!(filter.insertions(), Some(1));
        assert!(filter.contains(&1) && filter.insert(&2) && !filter.insert(&2));
        let filter = filter.into_frozen();
        assert_eq!(filter.words().get().as_ptr().addr(), place);
        assert_eq!(filter.about().insertions(), Some(2));
        assert_eq!(filter.about().labels().get("source"), Some("test"));
        assert_eq!(filter.about().promise().unwrap().items, items);
        assert!(filter.contains(&1) && filter.contains(&2));
    }
}

#[test]
fn an_unknown_count_stays_unknown() {
    let mut union = sized(100, 0.01).into_frozen();
    union.union_with(&sized(100, 0.01).into_frozen()).unwrap();
    let filter = union.into_concurrent().unwrap();
    assert!(filter.insert_bits(7));
    assert_eq!(filter.insertions(), None);
    assert_eq!(filter.into_frozen().about().insertions(), None);
}

/// A filter in a mapped file is copied: the file never changes.
#[test]
fn a_mapped_file_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mapped.petal");
    let filter = ConcurrentBloomFilter::<Int>::new_for(sized(1000, 0.01)).unwrap();
    assert!(filter.insert(&1));
    filter
        .into_frozen()
        .save(&path, crate::Overwrite::Refuse)
        .unwrap();
    let before = std::fs::read(&path).unwrap();
    let AnyFilter::Bloom(mapped) = AnyFilter::open_mapped(&path, None).unwrap() else {
        panic!("another kind of filter");
    };
    let filter = mapped.into_concurrent().unwrap();
    for key in 0..1000 {
        filter.insert_bits(mix_int(key, 0));
    }
    assert!((0..1000).all(|key| filter.contains_bits(mix_int(key, 0))));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn wrong_digests_short_masks_and_impossible_sizes_are_errors() {
    let filter = sized(100, 0.01);
    let other = KeyHasher::Portable { seed: 1 };
    let error = filter.insert_digest(other.digest_int(1)).unwrap_err();
    assert!(matches!(error, Error::Mismatch { .. }), "{error}");
    assert!(filter.contains_digest(other.digest_int(1)).is_err());
    let strange = Digests::new(other, KeyType::Int);
    assert!(filter.insert_digests(&strange, &mut []).is_err());
    let error = filter
        .insert_digests(&digests(0..65), &mut [0])
        .unwrap_err();
    assert!(matches!(error, Error::Parameter { .. }), "{error}");
    assert_eq!((filter.fill(), filter.insertions()), (0.0, Some(0)));
    assert!(
        filter
            .insert_digest(KeyHasher::default().digest_int(1))
            .unwrap()
    );
    for (items, error) in [
        (0, 0.01),
        (1, 0.0),
        (1, 1.0),
        (1, f64::NAN),
        (u64::MAX, 0.01),
    ] {
        assert!(ConcurrentBloomFilter::new(items, error).is_err());
    }
    assert!(ConcurrentBloomFilter::new(1_000_000_000_000, 0.01).is_err());
    let ints = ConcurrentBloomFilter::<Bytes>::new_for(filter).unwrap_err();
    assert!(matches!(ints, Error::Mismatch { .. }), "{ints}");
}
