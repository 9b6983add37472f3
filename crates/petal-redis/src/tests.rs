//! Values through their chunks, without a server: there and back, damaged, invented.

use petal::KeyHasher;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use crate::bloom::BloomKey;
use crate::bloom::filter::Filter;
use crate::bloom::spec::{Span, Spec};
use crate::cuckoo::CuckooKey;
use crate::cuckoo::chain::{self, Chain};
use crate::engine::types::Kept;
use crate::engine::{Failure, Outcome};

/// The same cases in every run.
fn cases(count: u32) -> Config {
    Config {
        cases: count,
        rng_seed: RngSeed::Fixed(5),
        failure_persistence: None,
        ..Config::default()
    }
}

const HASHER: KeyHasher = KeyHasher::Portable { seed: 3 };

fn bloom(spec: Spec, keys: u32) -> BloomKey {
    let mut filter = Filter::reserve(spec, HASHER, u64::MAX).unwrap();
    let items: Vec<[u8; 4]> = (0..keys).map(u32::to_le_bytes).collect();
    let items: Vec<&[u8]> = items.iter().map(<[u8; 4]>::as_slice).collect();
    filter.add_all(&items, || 1_000_000, || u64::MAX).unwrap();
    BloomKey::new(filter)
}

fn blooms() -> Vec<BloomKey> {
    let spec = |capacity, expansion, window| Spec {
        capacity,
        expansion,
        window,
        ..Spec::default_one()
    };
    vec![
        bloom(spec(50, 0, None), 40),
        bloom(spec(20, 3, None), 500),
        bloom(spec(50, 2, Some(Span::Keys)), 200),
        bloom(spec(50, 2, Some(Span::Time(5000))), 40),
        bloom(spec(2_000_000, 0, None), 1000), // more than a chunk
        bloom(
            Spec {
                scale_to: 5000,
                ..spec(10, 2, None)
            },
            3000,
        ),
    ]
}

fn cuckoos() -> Vec<CuckooKey> {
    [(100, 0), (100, 500), (2_000_000, 10)]
        .into_iter()
        .map(|(capacity, keys)| {
            let spec = chain::Spec {
                capacity,
                ..chain::Spec::default_one()
            };
            let mut chain = Chain::reserve(spec, HASHER, u64::MAX).unwrap();
            for key in 0u32..keys {
                let digest = chain.digest(&key.to_le_bytes()).unwrap();
                chain.add(digest, || u64::MAX).unwrap().unwrap();
            }
            CuckooKey::new(chain)
        })
        .collect()
}

/// All chunks of a value.
fn chunks<T: Kept>(value: &T) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some(next) = value
        .chunk_after(all.last().map_or(0, |&(place, _)| place))
        .unwrap()
    {
        all.push(next);
    }
    all
}

/// A value of chunks.
fn loaded<T: Kept>(chunks: &[(u64, Vec<u8>)], most: u64) -> Outcome<T> {
    let mut value: Option<T> = None;
    for (place, chunk) in chunks {
        match &mut value {
            None => value = Some(T::begin(chunk, most)?),
            Some(value) => value.push(*place, chunk)?,
        }
    }
    value.ok_or_else(|| "no chunk".into())
}

fn goes_there_and_back<T: Kept>(value: &T) {
    let all = chunks(value);
    assert!(all.len() > 1);
    let again: T = loaded(&all, u64::MAX).unwrap();
    assert_eq!(chunks(&again), all);
    assert_eq!(again.bytes(), value.bytes());
    // Half of it gives back what came, and goes on.
    for end in 1..all.len() {
        let half: T = loaded(&all[..end], u64::MAX).unwrap();
        assert_eq!(chunks(&half), all[..end]);
        let mut again: T = loaded(&chunks(&half), u64::MAX).unwrap();
        for (place, chunk) in &all[end..] {
            again.push(*place, chunk).unwrap();
        }
        assert_eq!(chunks(&again), all);
    }
    let too_large = loaded::<T>(&all, 8);
    assert!(too_large.is_err());
}

#[test]
fn values_go_there_and_back() {
    blooms().iter().for_each(goes_there_and_back);
    cuckoos().iter().for_each(goes_there_and_back);
}

fn damage_is_noticed<T: Kept>(value: &T) {
    let all = chunks(value);
    for (index, (place, chunk)) in all.iter().enumerate() {
        let step = chunk.len() / 400 + 1;
        for at in (0..chunk.len()).step_by(step) {
            let mut damaged = chunk.clone();
            damaged[at] ^= 1 << (at % 8);
            for wrong in [
                damaged.as_slice(),
                &chunk[..at],
                &[chunk.as_slice(), &[0; 8]].concat(),
            ] {
                if index == 0 {
                    assert!(T::begin(wrong, u64::MAX).is_err(), "byte {at}");
                    continue;
                }
                // Refused, and nothing of it is taken.
                if at % (40 * step) == 0 {
                    let mut half: T = loaded(&all[..index], u64::MAX).unwrap();
                    let refused = half.push(*place, wrong);
                    assert!(matches!(refused, Err(Failure::Text(_))), "byte {at}");
                    assert!(half.push(place + 8, chunk).is_err());
                    half.push(*place, chunk).unwrap();
                }
            }
        }
    }
    // Chunks in another order, twice, or of something else.
    for end in 1..all.len() {
        let mut wrong: T = loaded(&all[..end], u64::MAX).unwrap();
        for (at, (place, chunk)) in all.iter().enumerate() {
            if at != end {
                assert!(wrong.push(*place, chunk).is_err());
            }
        }
    }
}

/// Chunks of two filters are not put together, though places and checksums are right.
#[test]
fn chunks_of_two_filters_are_told_apart() {
    let of = |seed, capacity| {
        let spec = Spec {
            capacity,
            expansion: 0,
            ..Spec::default_one()
        };
        let hasher = KeyHasher::Portable { seed };
        let mut filter = Filter::reserve(spec, hasher, u64::MAX).unwrap();
        filter.add_all(&[b"x"], || 0, || u64::MAX).unwrap();
        BloomKey::new(filter)
    };
    let one = chunks(&of(1, 2_000_000));
    for other in [of(2, 2_000_000), of(1, 2_500_000)] {
        let other = chunks(&other);
        let mut half: BloomKey = loaded(&one[..3], u64::MAX).unwrap();
        assert_eq!(other[3].0, one[3].0);
        let refused = half.push(other[3].0, &other[3].1).unwrap_err();
        assert!(
            refused.text().contains("of another filter"),
            "{}",
            refused.text()
        );
        half.push(one[3].0, &one[3].1).unwrap();
    }
    // What was added between two chunks is no other filter.
    let mut grown = of(1, 2_000_000);
    grown
        .change(|filter| filter.add_all(&[b"y"], || 0, || u64::MAX))
        .unwrap();
    let mut half: BloomKey = loaded(&one[..3], u64::MAX).unwrap();
    for (place, chunk) in &chunks(&grown)[3..] {
        half.push(*place, chunk).unwrap();
    }
    assert!(half.ready().is_some());
}

#[test]
fn damaged_chunks_are_refused_and_nothing_is_taken() {
    blooms().iter().for_each(damage_is_noticed);
    cuckoos().iter().for_each(damage_is_noticed);
}

/// Whatever comes, there is an answer: driven by the tests below.
fn load_anything<T: Kept>(chunks: &[Vec<u8>]) {
    let mut value: Option<T> = None;
    let mut place = 0;
    for chunk in chunks {
        place += chunk.len() as u64;
        match &mut value {
            None => value = T::begin(chunk, 1 << 20).ok(),
            Some(value) => {
                // Both ways of counting: with a checksum, and without.
                let _ = value.push(place.saturating_sub(7), chunk);
                let _ = value.push(place + 1, chunk);
            }
        }
        if let Some(value) = &value {
            let _ = value.chunk_after(0);
            let _ = value.chunk_after(place);
            let _ = value.bytes();
        }
    }
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn any_bytes_are_answered(
        start in prop_oneof![
            Just(Vec::new()),
            Just(b"\x89petal\r\n\x01\x00".to_vec()),
            Just([&[0; 16][..], b"petalBF1"].concat()),
            Just([&[0; 16][..], b"petalCF1"].concat()),
            // The head of a chain of RedisBloom with one link.
            Just([0u64.to_le_bytes().as_slice(), &[1, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0]].concat()),
        ],
        chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 1..5),
    ) {
        let mut chunks = chunks;
        chunks[0] = [start, chunks[0].clone()].concat();
        load_anything::<BloomKey>(&chunks);
        load_anything::<CuckooKey>(&chunks);
    }

    /// Right checksums over wrong contents: what a checksum cannot tell.
    #[test]
    fn wrong_contents_under_right_checksums_are_answered(
        which in 0usize..3,
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 0u32..8), 1..20),
        deletable: bool,
    ) {
        let mut all = if deletable {
            chunks(&cuckoos()[which % 2])
        } else {
            chunks(&blooms()[which])
        };
        let (identity, _) = crate::frame::unseal(1, &all[0].1).unwrap();
        for (index, bit) in flips {
            let chunk = index.index(all.len());
            let (place, sealed) = &mut all[chunk];
            let mut data = sealed[16..].to_vec();
            let at = index.index(data.len());
            data[at] ^= 1 << bit;
            *sealed = crate::frame::seal(*place, identity, &data);
        }
        let sealed: Vec<Vec<u8>> = all.iter().map(|(_, chunk)| chunk.clone()).collect();
        load_anything::<BloomKey>(&sealed);
        load_anything::<CuckooKey>(&sealed);
        if let Ok(value) = loaded::<BloomKey>(&all, u64::MAX)
            && let Some(filter) = value.ready()
        {
            let _ = filter.contains(b"x", || 5);
        }
        if let Ok(value) = loaded::<CuckooKey>(&all, u64::MAX)
            && let Ok(chain) = value.chain()
        {
            let digest = chain.digest(b"x").unwrap();
            let _ = (chain.contains(digest), chain.count(digest));
        }
    }
}
