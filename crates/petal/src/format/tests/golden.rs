//! Files of version 1 that must be read, and written, for ever.
//!
//! They are in `tests/golden`. None is ever written again: what a later
//! petal makes of the same keys must be the same bytes. A new kind or record
//! gets a new file: add it to [`goldens`] and run
//! `cargo test -p petal --lib writes_what_is_missing -- --ignored`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::*;
use crate::normalise::{Field, Form};
use crate::{CounterBits, Counting, Increase, Valued};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn golden_secret() -> Secret {
    Secret::new(std::array::from_fn(|i| u8::try_from(i).unwrap()))
}

fn bytes() -> Identity {
    Identity::new(KeyType::Bytes)
}

fn promise(items: u64, error: f64) -> Promise {
    Promise { items, error }
}

fn sized(identity: Identity, items: u64, error: f64) -> AnyFilter {
    Bloom::sized(identity, promise(items, error))
        .unwrap()
        .into()
}

/// Number `i` of the keys in every file.
fn text(i: u64) -> String {
    format!("https://example.org/{i}")
}

fn integer(i: u64) -> i64 {
    i.cast_signed().wrapping_mul(0x0123_4567_89ab_cdef)
}

fn key_type(filter: &AnyFilter) -> KeyType {
    filter.about().identity().key_type
}

/// A static filter of the first `count` keys.
fn fixed(identity: Identity, count: u64, error: f64, shards: u64) -> AnyFilter {
    let digest = |i| match identity.key_type {
        KeyType::Int => identity.hasher.digest_int(integer(i)),
        KeyType::Bytes => identity.hasher.digest_bytes(text(i).as_bytes()),
    };
    let mut keys: Vec<u64> = (0..count).map(|i| digest(i).bits()).collect();
    StaticBuilder::sort_distinct(&mut keys, 1);
    let mut builder = StaticBuilder::with_shards(identity, count, error, 1, shards).unwrap();
    builder.push(&keys).unwrap();
    builder.finish().unwrap().into()
}

/// The value of key `i` in files that have values of so many bits.
fn value(i: u64, bits: u32) -> u16 {
    u16::try_from((i * 7) & ((1 << bits) - 1)).unwrap()
}

/// A static filter of the first `count` keys with their values.
fn valued(identity: Identity, count: u64, error: f64, bits: u32, shards: u64) -> AnyFilter {
    let digest = |i| match identity.key_type {
        KeyType::Int => identity.hasher.digest_int(integer(i)),
        KeyType::Bytes => identity.hasher.digest_bytes(text(i).as_bytes()),
    };
    let key = |i| Valued {
        digest: digest(i).bits(),
        value: value(i, bits),
    };
    let mut keys: Vec<Valued> = (0..count).map(key).collect();
    StaticBuilder::sort_distinct(&mut keys, 1);
    let mut builder =
        StaticBuilder::valued_with_shards(identity, count, error, bits, 1, shards).unwrap();
    builder.push(&keys).unwrap();
    builder.finish().unwrap().into()
}

/// A cascade of the first `count` keys, with so many that follow as not listed.
fn exact(identity: Identity, count: u64, others: u64, error: f64) -> AnyFilter {
    let digest = |i| match identity.key_type {
        KeyType::Int => identity.hasher.digest_int(integer(i)),
        KeyType::Bytes => identity.hasher.digest_bytes(text(i).as_bytes()),
    };
    let mut listed: Vec<u64> = (0..count).map(|i| digest(i).bits()).collect();
    let mut rest: Vec<u64> = (count..count + others).map(|i| digest(i).bits()).collect();
    StaticBuilder::sort_distinct(&mut listed, 1);
    StaticBuilder::sort_distinct(&mut rest, 1);
    Cascade::build(&identity, &listed, &rest, error, 1)
        .unwrap()
        .into()
}

/// Inserts the first `count` keys, as many as a filter promised to take.
fn with_keys(mut filter: AnyFilter, count: u64) -> AnyFilter {
    if is_fixed(filter.kind()) {
        return filter; // it has them
    }
    for i in 0..count {
        if key_type(&filter) == KeyType::Int {
            filter.insert_int(integer(i)).unwrap();
        } else {
            filter.insert_bytes(text(i).as_bytes()).unwrap();
        }
    }
    filter
}

/// Name of the file, filter, and how many keys it has.
fn goldens() -> Vec<(&'static str, AnyFilter, u64)> {
    let ints = |seed| Identity::new(KeyType::Int).with_hasher(KeyHasher::Portable { seed });
    let keyed = bytes().with_hasher(KeyHasher::Keyed {
        secret: golden_secret(),
    });
    let mut labelled = sized(bytes(), 100, 1e-3);
    labelled.labels_mut().set("source", "example, ü").unwrap();
    labelled.set_attachment("run", b"\0\xff".to_vec()).unwrap();
    let field = Field {
        number: 2,
        delimiter: b'\t',
    };
    let hex = Normalisation::default()
        .with_form(Form::Hex { digits: Some(40) })
        .unwrap();
    let lines = Normalisation::lines()
        .with_cr_trimmed(true)
        .with_ignore_case(true)
        .with_field(field)
        .unwrap();
    let classic = Classic::sized(bytes(), promise(100, 0.01)).unwrap();
    let free = GrowthPlan::open(8, 0.01).unwrap();
    let ceiling = GrowthPlan::ceiling(8, 100, 0.01).unwrap();
    let counting = |identity, counter, increase| {
        AnyFilter::from(Counting::sized(identity, promise(50, 0.01), counter, increase).unwrap())
    };
    let window = |identity, span| {
        AnyFilter::from(Window::sized(identity, span, promise(50, 0.01), 6).unwrap())
    };
    let ticks = WindowSpan::Time {
        ticks: 60,
        overload: Overload::Refuse,
    };
    let deletable = Deletable::sized(ints(3), promise(100, 0.01)).unwrap();
    let set = DigestSet::with_spread(bytes(), 100, 0x9e37_79b9_7f4a_7c15).unwrap();
    vec![
        ("bloom-half-block", sized(bytes(), 100, 0.2), 100),
        ("bloom-1-region", labelled, 100),
        ("bloom-2-regions", sized(bytes(), 100, 1e-6), 100),
        ("bloom-3-regions", sized(keyed, 100, 1e-9), 100),
        ("bloom-4-regions", sized(ints(0), 100, 1e-12), 100),
        ("bloom-folds", sized(ints(u64::MAX), 20_000, 0.1), 2_000),
        ("bloom-empty", sized(bytes(), 1, 0.5), 0),
        (
            "bloom-fields",
            sized(bytes().with_normalisation(lines), 10, 0.01),
            10,
        ),
        (
            "bloom-hex",
            sized(bytes().with_normalisation(hex), 10, 0.01),
            10,
        ),
        ("classic", classic.into(), 100),
        (
            "growable",
            Growable::with_plan(bytes(), free).unwrap().into(),
            100,
        ),
        (
            "growable-ceiling",
            Growable::with_plan(ints(7), ceiling).unwrap().into(),
            100,
        ),
        ("digests", set.into(), 100),
        (
            "counting",
            counting(bytes(), CounterBits::Four, Increase::All),
            50,
        ),
        (
            "counting-minimal",
            counting(ints(0), CounterBits::Sixteen, Increase::Minimal),
            50,
        ),
        ("window-keys", window(bytes(), WindowSpan::Keys), 40),
        ("window-time", window(ints(0), ticks), 8),
        // Some of the keys twice.
        ("deletable", with_keys(deletable.into(), 10), 90),
        ("static", fixed(bytes(), 100, 1.0 / 256.0, 1), 100),
        ("static-empty", fixed(bytes(), 0, 0.01, 1), 0),
        // Fractions of a column, keys bumped once and twice, several shards.
        ("static-bumped", fixed(ints(0), 9000, 0.01, 1), 9000),
        ("static-shards", fixed(ints(9), 2000, 1e-6, 3), 2000),
        ("cascade", exact(bytes(), 100, 4000, 1e-3), 100),
        ("cascade-smallest", exact(ints(5), 300, 20_000, 1.0), 300),
        ("cascade-inverted", exact(bytes(), 900, 70, 1.0), 900),
        ("cascade-empty", exact(bytes(), 0, 0, 0.5), 0),
        ("static-values", valued(bytes(), 500, 0.01, 3, 1), 500),
        ("static-values-16", valued(ints(2), 600, 1e-12, 16, 2), 600),
        ("static-values-only", valued(bytes(), 300, 1.0, 1, 1), 300),
    ]
    .into_iter()
    .map(|(name, filter, count)| (name, with_keys(filter, count), count))
    .collect()
}

fn path_of(name: &str) -> PathBuf {
    folder().join(name).with_extension("petal")
}

fn read(name: &str) -> Vec<u8> {
    let path = path_of(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn secret_of(filter: &AnyFilter) -> Option<Secret> {
    match &filter.about().identity().hasher {
        KeyHasher::Keyed { secret } => Some(secret.clone()),
        KeyHasher::Portable { .. } => None,
    }
}

#[test]
fn the_same_keys_give_the_same_file() {
    for (name, filter, _) in goldens() {
        assert!(filter.to_bytes().unwrap() == read(name), "{name}");
    }
}

#[test]
fn golden_files_are_read() {
    for (name, filter, count) in goldens() {
        let opened = AnyFilter::open(path_of(name), secret_of(&filter).as_ref()).unwrap();
        assert!(opened.to_bytes().unwrap() == read(name), "{name}");
        for i in 0..count {
            let seen = match key_type(&opened) {
                KeyType::Int => opened.contains_int(integer(i)),
                KeyType::Bytes => opened.contains_bytes(text(i).as_bytes()),
            };
            assert!(seen.unwrap(), "{name}: {i}");
        }
        if let AnyFilter::Cascade(cascade) = &opened {
            for i in count..count + cascade.not_listed() {
                let seen = match key_type(&opened) {
                    KeyType::Int => opened.contains_int(integer(i)),
                    KeyType::Bytes => opened.contains_bytes(text(i).as_bytes()),
                };
                assert!(!seen.unwrap(), "{name}: {i}");
            }
        }
        for i in 0..count {
            if let AnyFilter::Static(opened) = &opened {
                let hasher = &filter.about().identity().hasher;
                let digest = match key_type(&filter) {
                    KeyType::Int => hasher.digest_int(integer(i)),
                    KeyType::Bytes => hasher.digest_bytes(text(i).as_bytes()),
                };
                let bits = opened.value_bits();
                assert_eq!(opened.value(digest).unwrap(), Some(value(i, bits)));
            }
        }
        assert_eq!(crate::verify(path_of(name)).unwrap().version, 1, "{name}");
    }
}

#[test]
fn every_golden_file_is_tested() {
    let there: BTreeSet<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let tested = goldens().iter().map(|&(name, ..)| path_of(name)).collect();
    assert_eq!(there, tested);
}

#[test]
#[ignore = "writes files, but none that is there"]
fn writes_what_is_missing() {
    fs::create_dir_all(folder()).unwrap();
    for (name, filter, _) in goldens() {
        if !path_of(name).exists() {
            filter.save(path_of(name), Overwrite::Refuse).unwrap();
        }
    }
}
