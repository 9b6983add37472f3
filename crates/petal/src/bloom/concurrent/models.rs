//! A few threads in every order that their accesses may take, and with every
//! value that each load may return, tried by loom. What the ordinary tests
//! meet by luck is certain here; but blocks and runs have to be small.
//!
//! ```console
//! $ CARGO_TARGET_DIR=target/loom RUSTFLAGS="--cfg loom" cargo test -p petal --lib models
//! ```

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool as Observed, AtomicUsize as Tally};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU64};
use loom::thread;

use super::*;
use crate::arch::atomic::{contains_in, insert_in};
use crate::geometry::{BlockWords, lane_bit, lanes};
use crate::hash::KeyType;
use crate::traits::BitsMut;

/// The digest that chooses these lanes in the first two words of its block.
fn digest(first: u64, second: u64) -> u64 {
    // Newton's iteration for the inverse of the odd multiplier.
    let multiplier = lanes(1);
    let inverse = (0..6).fold(multiplier, |x, _| {
        x.wrapping_mul(2u64.wrapping_sub(multiplier.wrapping_mul(x)))
    });
    (first << 58 | second << 52).wrapping_mul(inverse)
}

#[test]
fn digests_choose_their_lanes() {
    let lanes = lanes(digest(5, 63));
    assert_eq!((lane_bit(lanes, 0), lane_bit(lanes, 1)), (1 << 5, 1 << 63));
}

/// Tries all runs in which threads are interrupted at most so many times while
/// they could go on; all runs at all if there is no such bound. Three threads
/// have too many of them.
fn model(interruptions: Option<usize>, run: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = interruptions;
    model.check(run);
}

/// One block of two words.
type Block = Arc<[AtomicU64; 2]>;

fn empty() -> Block {
    Arc::new([AtomicU64::new(0), AtomicU64::new(0)])
}

/// Inserts each digest in a thread of its own. The answers, and the words
/// when all threads have ended.
fn insert_at_once<const N: usize>(digests: [u64; N]) -> ([bool; N], [u64; 2]) {
    let block = empty();
    let threads = digests.map(|digest| {
        let block = block.clone();
        thread::spawn(move || insert_in::<2, 1>(&*block, 1, digest))
    });
    let new = threads.map(|thread| thread.join().unwrap());
    for digest in digests {
        assert!(contains_in::<2, 1>(&*block, 1, digest));
    }
    (new, [block[0].load(Relaxed), block[1].load(Relaxed)])
}

#[test]
fn two_insertions_of_one_key() {
    static SHARED: Observed = Observed::new(false);
    model(None, || {
        let (new, words) = insert_at_once([digest(3, 7); 2]);
        assert!(new.contains(&true));
        assert_eq!(words, [1 << 3, 1 << 7]);
        if new == [true, true] {
            SHARED.store(true, Relaxed);
        }
    });
    // The documentation says that this can happen.
    assert!(SHARED.load(Relaxed));
}

#[test]
fn three_insertions_of_one_key() {
    model(Some(3), || {
        let (new, words) = insert_at_once([digest(3, 7); 3]);
        assert!(new.contains(&true));
        // Each "new" is for a bit that this call changed, and there are two.
        assert!(new.contains(&false));
        assert_eq!(words, [1 << 3, 1 << 7]);
    });
}

#[test]
fn two_keys_that_share_a_bit() {
    model(None, || {
        let (new, words) = insert_at_once([digest(0, 0), digest(0, 1)]);
        assert_eq!(new, [true; 2]);
        assert_eq!(words, [1, 0b11]);
    });
}

#[test]
fn a_key_that_two_others_cover() {
    static NEW: Tally = Tally::new(0);
    static SEEN: Tally = Tally::new(0);
    model(Some(3), || {
        let ([covered, second, third], words) =
            insert_at_once([digest(0, 0), digest(0, 1), digest(1, 0)]);
        // Each of these has a bit of its own.
        assert!(second && third);
        assert_eq!(words, [0b11, 0b11]);
        let tally = if covered { &NEW } else { &SEEN };
        tally.fetch_add(1, Relaxed);
    });
    assert!(NEW.load(Relaxed) > 0 && SEEN.load(Relaxed) > 0);
}

#[test]
fn two_insertions_of_a_key_and_one_that_shares_a_bit() {
    model(Some(3), || {
        let ([first, second, other], words) =
            insert_at_once([digest(0, 0), digest(0, 0), digest(0, 1)]);
        assert!((first || second) && other);
        assert_eq!(words, [1, 0b11]);
    });
}

/// A thread inserts a key and raises a flag, while another inserts a key that
/// shares a bit. Whoever sees the flag asks for the key.
fn insert_and_tell(tell: std::sync::atomic::Ordering, learn: std::sync::atomic::Ordering) {
    model(Some(3), move || {
        let block = empty();
        let told = Arc::new(AtomicBool::new(false));
        let other = {
            let block = block.clone();
            thread::spawn(move || insert_in::<2, 1>(&*block, 1, digest(0, 1)))
        };
        let teller = {
            let (block, told) = (block.clone(), told.clone());
            thread::spawn(move || {
                insert_in::<2, 1>(&*block, 1, digest(0, 0));
                assert!(contains_in::<2, 1>(&*block, 1, digest(0, 0)));
                told.store(true, tell);
            })
        };
        if told.load(learn) {
            assert!(contains_in::<2, 1>(&*block, 1, digest(0, 0)));
            assert!(!insert_in::<2, 1>(&*block, 1, digest(0, 0)));
        }
        assert!(other.join().unwrap());
        teller.join().unwrap();
    });
}

#[test]
fn who_learned_of_a_key_finds_it() {
    insert_and_tell(Release, Acquire);
}

/// The condition in the documentation is needed, and the models see it.
#[test]
#[should_panic(expected = "contains_in")]
fn without_synchronisation_a_key_may_be_missing() {
    insert_and_tell(Relaxed, Relaxed);
}

/// The whole filter, with its count, from making to freezing: one half
/// block.
#[test]
fn a_filter_that_two_threads_fill_is_that_of_one() {
    model(Some(2), || {
        let empty = || {
            let geometry = SplitGeometry::new(BlockWords::Four, 1, 1).unwrap();
            let promise = Promise {
                items: 1,
                error: 0.5,
            };
            Bloom::with_geometry(Identity::new(KeyType::Int), geometry, promise).unwrap()
        };
        let keys = [digest(0, 0), digest(0, 1)];
        let filter = Arc::new(empty().into_concurrent().unwrap());
        let threads = [false, true].map(|batched| {
            let filter = filter.clone();
            thread::spawn(move || {
                if !batched {
                    return keys.map(|key| filter.insert_bits(key));
                }
                let mut mask = [0];
                filter.insert_all_bits(&keys, &mut mask);
                [mask[0] & 1 == 1, mask[0] & 2 == 2]
            })
        });
        let [one, two] = threads.map(|thread| thread.join().unwrap());
        assert!((one[0] || two[0]) && (one[1] || two[1]));
        let new = [one, two].concat().iter().filter(|&&new| new).count();
        let frozen = Arc::try_unwrap(filter).unwrap().into_frozen();
        assert_eq!(frozen.about().insertions(), Some(new as u64));
        let mut sequential = empty();
        for key in keys {
            sequential.insert_bits(key).unwrap();
        }
        assert!(frozen == sequential);
    });
}
