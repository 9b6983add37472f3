//! Files of every kind: there and back, damaged, hostile, large.

mod damage;
mod golden;
mod hostile;
mod large;
mod mapped;
mod pieces;
mod spec;

use std::fs;
use std::sync::Arc;

use proptest::prelude::*;

use crate::atomic::Overwrite;
use crate::error::Error;
use crate::hash::{KeyHasher, KeyType, Secret};
use crate::identity::{About, Identity, KeptField, Labels};
use crate::normalise::Normalisation;
use crate::sizing::{GrowthPlan, Promise};
use crate::testing::cases;
use crate::traits::{Bits, BitsCount, BitsMut, BitsRemove, Contains};
use crate::{
    AnyFilter, Attachments, BlockWords, Bloom, BloomFilter, Cascade, Classic, ClassicGeometry,
    CounterBits, Counting, CountingGeometry, Deletable, DeletableGeometry, DigestSet, Growable,
    GrowableFilter, Increase, Int, Kind, Overload, SplitGeometry, Static, StaticBuilder, Valued,
    Window, WindowGeometry, WindowSpan,
};

/// A filter to be put into a file, and the secret to read it with.
struct Sample {
    name: &'static str,
    filter: AnyFilter,
    secret: Option<Secret>,
}

fn secret() -> Secret {
    Secret::new(*b"sixteen bytes ok")
}

fn keyed(key_type: KeyType) -> Identity {
    Identity::new(key_type).with_hasher(KeyHasher::Keyed { secret: secret() })
}

fn normalisation() -> Normalisation {
    Normalisation::lines().with_ignore_case(true)
}

fn split(block: BlockWords, regions: u32, blocks: u64) -> SplitGeometry {
    SplitGeometry::new(block, regions, blocks).unwrap()
}

const PROMISE: Promise = Promise {
    items: 5,
    error: 0.01,
};

fn bloom(identity: Identity, geometry: SplitGeometry) -> AnyFilter {
    Bloom::with_geometry(identity, geometry, PROMISE)
        .unwrap()
        .into()
}

fn counting(
    identity: Identity,
    geometry: SplitGeometry,
    counter: CounterBits,
    increase: Increase,
) -> AnyFilter {
    let geometry = CountingGeometry::new(geometry, counter, increase).unwrap();
    Counting::with_geometry(identity, geometry, PROMISE)
        .unwrap()
        .into()
}

/// Digests like those of keys, the same in every run.
fn digests(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(|i| crate::mix_int(i.cast_signed(), 99))
}

fn fill(filter: &mut AnyFilter, count: u64) {
    for digest in digests(count) {
        filter.insert_bits(digest).unwrap();
    }
}

fn decorate(filter: &mut AnyFilter) {
    filter.labels_mut().set("source", "tests, ü").unwrap();
    filter.labels_mut().set("empty", "").unwrap();
    let state = b"\0state\xff".to_vec();
    filter.set_attachment("run", state).unwrap();
}

/// A window of time in which everything is under way: some generations, one
/// that was forgotten before its time, and a pass that is not over.
fn timed_window() -> AnyFilter {
    let identity = Identity::new(KeyType::Bytes).with_hasher(KeyHasher::Portable { seed: 7 });
    let span = WindowSpan::Time {
        ticks: 60,
        overload: Overload::Shorten,
    };
    let geometry = WindowGeometry::new(8, 2, 4, 1).unwrap();
    let promise = Promise {
        items: 24,
        error: 0.5,
    };
    let mut window = Window::with_geometry(identity, span, geometry, promise).unwrap();
    for (now, digest) in (100..).zip(digests(43)) {
        window.advance(now);
        window.insert_bits(digest).unwrap();
    }
    let state = window.state();
    assert!(
        state.shortened > 0 && state.clearing > 0 && state.cleared > 0,
        "{state:?}"
    );
    window.into()
}

/// Keys that came once, twice, and many times, in slots pushed away.
fn counted_keys() -> AnyFilter {
    let geometry = DeletableGeometry::new(64, 3).unwrap();
    let identity = Identity::new(KeyType::Int);
    let mut filter = Deletable::with_geometry(identity, geometry, PROMISE).unwrap();
    for (i, digest) in digests(12).enumerate() {
        for _ in 0..[1, 1, 2, 60][i % 4] {
            filter.insert_bits(digest).unwrap();
        }
    }
    filter.into()
}

/// The keys that the other samples have, for ever.
fn static_keys(identity: Identity, shards: u64, count: u64, error: f64) -> AnyFilter {
    let mut keys: Vec<u64> = digests(count).collect();
    StaticBuilder::sort_distinct(&mut keys, 1);
    let builder = StaticBuilder::with_shards(identity, keys.len() as u64, error, 1, shards);
    let mut builder = builder.unwrap();
    builder.push(&keys).unwrap();
    builder.finish().unwrap().into()
}

/// The same with a value for each key.
fn static_values(identity: Identity, count: u64, error: f64, bits: u32) -> AnyFilter {
    let keys = digests(count).map(|digest| Valued {
        digest,
        value: u16::try_from(digest >> (64 - bits)).unwrap(),
    });
    Static::build_with_values(identity, keys.collect(), error, bits, 1)
        .unwrap()
        .into()
}

/// The same keys as listed ones, and so many others.
fn cascade(identity: Identity, count: u64, others: u64, error: f64) -> AnyFilter {
    let mut listed: Vec<u64> = digests(count).collect();
    let mut others: Vec<u64> = digests(count + others).skip(listed.len()).collect();
    StaticBuilder::sort_distinct(&mut listed, 1);
    StaticBuilder::sort_distinct(&mut others, 1);
    Cascade::build(&identity, &listed, &others, error, 1)
        .unwrap()
        .into()
}

/// Whether a kind is built with all its keys.
const fn is_fixed(kind: Kind) -> bool {
    matches!(kind, Kind::Static | Kind::Cascade)
}

/// A small filter of each kind and shape.
fn samples() -> Vec<Sample> {
    let text = || Identity::new(KeyType::Bytes).with_normalisation(normalisation());
    let plan = GrowthPlan::ceiling(4, 100, 0.05).unwrap();
    let unkeyed = |name, filter| Sample {
        name,
        filter,
        secret: None,
    };
    let with_secret = |name, filter| Sample {
        name,
        filter,
        secret: Some(secret()),
    };
    let mut samples = vec![
        unkeyed("one region", bloom(text(), split(BlockWords::Eight, 1, 1))),
        with_secret(
            "two regions, keyed",
            bloom(keyed(KeyType::Bytes), split(BlockWords::Eight, 2, 3)),
        ),
        unkeyed(
            "half blocks of integers",
            bloom(Identity::new(KeyType::Int), split(BlockWords::Four, 1, 3)),
        ),
        unkeyed(
            "100 bits",
            Classic::with_geometry(text(), ClassicGeometry::new(100, 3).unwrap(), PROMISE)
                .unwrap()
                .into(),
        ),
        with_secret(
            "growable",
            Growable::with_plan(keyed(KeyType::Int), plan)
                .unwrap()
                .into(),
        ),
        unkeyed(
            "digests",
            DigestSet::with_spread(
                text().with_hasher(KeyHasher::Portable { seed: 42 }),
                20,
                0x9e37_79b9_7f4a_7c15,
            )
            .unwrap()
            .into(),
        ),
        unkeyed("window", timed_window()),
        unkeyed("deletable", counted_keys()),
        unkeyed("static", static_keys(text(), 1, 6, 1e-3)),
        unkeyed("static without keys", static_keys(text(), 1, 0, 0.01)),
        unkeyed("static with values", static_values(text(), 6, 0.01, 3)),
        unkeyed("cascade", cascade(text(), 6, 40, 1e-3)),
        with_secret("inverted cascade", cascade(keyed(KeyType::Int), 6, 2, 1.0)),
        with_secret(
            "static in shards",
            static_keys(keyed(KeyType::Int), 3, 6, 0.01),
        ),
        unkeyed(
            "bare",
            bloom(
                Identity::new(KeyType::Bytes),
                split(BlockWords::Eight, 1, 2),
            ),
        ),
        unkeyed(
            "counting",
            counting(
                text(),
                split(BlockWords::Four, 1, 1),
                CounterBits::Four,
                Increase::All,
            ),
        ),
        with_secret(
            "counting with minimal increase",
            counting(
                keyed(KeyType::Int),
                split(BlockWords::Four, 2, 1),
                CounterBits::Eight,
                Increase::Minimal,
            ),
        ),
    ];
    for sample in &mut samples {
        let count = if sample.name == "growable" { 15 } else { 6 };
        if !is_fixed(sample.filter.kind()) {
            fill(&mut sample.filter, count);
        }
        if sample.name == "digests" {
            sample.filter.insert_bits(0).unwrap();
        }
        if sample.name != "bare" {
            decorate(&mut sample.filter);
        }
    }
    let AnyFilter::Growable(growable) = &samples[4].filter else {
        panic!("the fifth sample grows");
    };
    assert_eq!(growable.stages().len(), 3);
    samples
}

/// Both give the same answers and have the same description and bytes.
fn assert_same(a: &AnyFilter, b: &AnyFilter) {
    assert_eq!(a.kind(), b.kind());
    assert_eq!(Contains::about(a), Contains::about(b));
    assert_eq!(a.bytes(), b.bytes());
    for digest in digests(300).chain([0, u64::MAX]) {
        assert_eq!(a.contains_bits(digest), b.contains_bits(digest));
        if let (AnyFilter::Static(a), AnyFilter::Static(b)) = (a, b) {
            assert_eq!(a.value_of_bits(digest), b.value_of_bits(digest));
        }
    }
    assert_eq!(a.to_bytes().unwrap(), b.to_bytes().unwrap());
}

/// Through every way out and in.
fn assert_round_trip(filter: &AnyFilter, secret: Option<&Secret>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    filter.save(&path, Overwrite::Refuse).unwrap();
    let bytes = filter.to_bytes().unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes);
    for read in [
        AnyFilter::open(&path, secret),
        AnyFilter::open_mapped(&path, secret),
        AnyFilter::from_bytes(&bytes, secret),
        AnyFilter::from_shared(bytes.as_slice().into(), secret),
    ] {
        assert_same(filter, &read.unwrap());
    }
    let info = super::verify(&path).unwrap();
    assert_eq!(info, super::inspect(&path).unwrap());
    let about = Contains::about(filter);
    assert_eq!(info.kind, filter.kind());
    assert_eq!(info.promise, about.promise());
    assert_eq!(info.insertions, about.insertions());
    assert_eq!(info.labels, *about.labels());
    assert_eq!(info.attachments, *about.attachments());
    assert_eq!(info.normalisation, about.identity().normalisation);
    assert_eq!(info.key_type, about.identity().key_type);
    assert_eq!(info.file_bytes, bytes.len() as u64);
}

#[test]
fn files_hold_what_the_filters_were() {
    for sample in samples() {
        assert_round_trip(&sample.filter, sample.secret.as_ref());
    }
}

#[test]
fn every_field_of_the_description_is_kept() {
    let mut filter = bloom(keyed(KeyType::Int), split(BlockWords::Eight, 3, 5));
    decorate(&mut filter);
    *filter.meta_mut() = About {
        identity: keyed(KeyType::Int).with_normalisation(normalisation()),
        promise: None,
        labels: filter.meta().labels.clone(),
        attachments: filter.meta().attachments.clone(),
        insertions: None,
        generation: 77,
        kept: vec![
            KeptField {
                tag: 900,
                bytes: b"of a later version".to_vec(),
            },
            KeptField {
                tag: 901,
                bytes: Vec::new(),
            },
        ],
    };
    assert_round_trip(&filter, Some(&secret()));
}

#[test]
fn four_keys_make_a_small_file() {
    let mut filter = BloomFilter::new(4, 1e-6).unwrap();
    for key in ["a", "b", "c", "d"] {
        filter.insert(key).unwrap();
    }
    let bytes = AnyFilter::from(filter.into_inner()).to_bytes().unwrap();
    assert!(bytes.len() <= 512, "{}", bytes.len());
}

#[test]
fn typed_filters_are_saved_and_opened() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    let mut filter = GrowableFilter::<Int>::with_hasher(
        GrowthPlan::open(10, 0.01).unwrap(),
        KeyHasher::default(),
    )
    .unwrap();
    for key in 0..100 {
        filter.insert(&key).unwrap();
    }
    filter.save(&path, Overwrite::Refuse).unwrap();
    let again = filter.save(&path, Overwrite::Refuse).unwrap_err();
    assert!(matches!(again, Error::Exists { .. }), "{again}");
    filter.save(&path, Overwrite::Replace).unwrap();
    let mut read = GrowableFilter::<Int>::open(&path, None).unwrap();
    assert!((0..100).all(|key| read.contains(&key)));
    // It goes on growing where it was.
    for key in 0..200 {
        filter.insert(&key).unwrap();
        read.insert(&key).unwrap();
    }
    let (a, b) = (filter.into_inner().into(), read.into_inner().into());
    assert_same(&a, &b);
    for wrong in [
        GrowableFilter::<crate::Bytes>::open(&path, None).err(),
        BloomFilter::<Int>::open(&path, None).err(),
    ] {
        assert!(matches!(wrong, Some(Error::Mismatch { .. })), "{wrong:?}");
    }
}

#[test]
fn secrets_are_asked_for_and_never_written() {
    let filter = bloom(keyed(KeyType::Bytes), split(BlockWords::Eight, 1, 1));
    let bytes = filter.to_bytes().unwrap();
    assert!(!bytes.windows(16).any(|run| run == b"sixteen bytes ok"));
    let missing = AnyFilter::from_bytes(&bytes, None).unwrap_err();
    assert!(missing.to_string().contains("give the secret"), "{missing}");
    let other = Secret::new([1; 16]);
    let wrong = AnyFilter::from_bytes(&bytes, Some(&other)).unwrap_err();
    for check in [secret().check_value(), other.check_value()] {
        assert!(
            wrong.to_string().contains(&format!("{check:016x}")),
            "{wrong}"
        );
    }
    // Inspecting and verifying need none, and an unneeded one does no harm.
    super::read::verify_source(bytes.as_slice()).unwrap();
    let open = bloom(Identity::new(KeyType::Int), split(BlockWords::Eight, 1, 1));
    AnyFilter::from_bytes(&open.to_bytes().unwrap(), Some(&other)).unwrap();
}

#[test]
fn files_are_measured_without_their_secret() {
    let directory = tempfile::tempdir().unwrap();
    for sample in samples() {
        let path = directory.path().join(sample.name);
        sample.filter.save(&path, Overwrite::Refuse).unwrap();
        let measure = crate::measure(&path).unwrap();
        assert_eq!(measure.fill, sample.filter.fill(), "{}", sample.name);
        assert_eq!(measure.estimated_len, sample.filter.estimated_len());
        assert_eq!(measure.error_now, sample.filter.error_now());
    }
}

#[test]
fn shared_and_mapped_filters_are_read_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    let filter = bloom(
        Identity::new(KeyType::Int),
        split(BlockWords::Eight, 1, 600),
    );
    filter.save(&path, Overwrite::Refuse).unwrap();
    let bytes: Arc<[u8]> = fs::read(&path).unwrap().into();
    for filter in [
        AnyFilter::open_mapped(&path, None),
        AnyFilter::from_shared(bytes, None),
    ] {
        let error = filter.unwrap().insert_int(1).unwrap_err();
        assert!(matches!(error, Error::ReadOnly), "{error}");
    }
    AnyFilter::open(&path, None).unwrap().insert_int(1).unwrap();
}

#[test]
fn what_is_no_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), rustix::fs::Mode::RWXU).unwrap();
    fs::write(path("empty"), "").unwrap();
    fs::write(path("text"), "https://example.org/\n").unwrap();
    fs::write(path("short"), "ab").unwrap();
    for (name, expected) in [
        (".", "is a directory"),
        ("pipe", "is a pipe"),
        (
            "empty",
            "truncated: the file should have 192 bytes and has 0",
        ),
        ("text", "not a petal file: it starts with https://"),
        ("short", "not a petal file: it starts with ab"),
        ("missing", "No such file"),
    ] {
        let path = path(name);
        for error in [
            AnyFilter::open(&path, None).err(),
            AnyFilter::open_mapped(&path, None).err(),
            super::inspect(&path).err(),
            super::verify(&path).err(),
            crate::MappedWriter::open(&path, None).err(),
        ] {
            let error = error.unwrap().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        }
    }
    assert!(!path("missing.lock").exists());
}

/// What could not be read again is refused before anything is written.
#[test]
fn filters_that_no_file_can_hold_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    for promise in [
        (0, 0.5),
        (5, 0.0),
        (5, 1.0),
        (5, -0.1),
        (5, f64::NAN),
        (5, f64::INFINITY),
    ] {
        let promise = Promise {
            items: promise.0,
            error: promise.1,
        };
        let identity = Identity::new(KeyType::Int);
        let geometry = split(BlockWords::Eight, 1, 1);
        let filter: AnyFilter = Bloom::with_geometry(identity, geometry, promise)
            .unwrap()
            .into();
        let error = filter.save(&path, Overwrite::Refuse).unwrap_err();
        assert!(matches!(error, Error::Parameter { .. }), "{error}");
    }
    let mut filter = bloom(Identity::new(KeyType::Int), split(BlockWords::Eight, 1, 1));
    filter.meta_mut().kept.push(KeptField {
        tag: 900,
        bytes: vec![0; 64 << 10],
    });
    let error = filter.save(&path, Overwrite::Refuse).unwrap_err();
    assert!(error.to_string().contains("metadata"), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// What can be set can be saved: the limits of labels, attachments and
/// normalisation together stay below that of the metadata.
#[test]
fn the_most_metadata_fits() {
    use crate::normalise::MAX_ENCODED_BYTES;
    let plan = GrowthPlan::open(1, 0.5).unwrap();
    let mut growth = 0;
    while plan.stage(growth).is_ok() {
        growth += 1;
    }
    let growth = 7 + 24 + 48 * u64::from(growth);
    let all = Labels::MAX_BYTES + Attachments::MAX_BYTES + 7 + MAX_ENCODED_BYTES;
    assert!(all as u64 + growth <= super::MAX_METADATA);

    let mut filter = bloom(Identity::new(KeyType::Int), split(BlockWords::Eight, 1, 1));
    let mut name = 0;
    while filter.labels_mut().set(&format!("{name}"), "").is_ok() {
        name += 1;
    }
    assert!(name > 1000);
    while filter
        .set_attachment(&format!("{name}"), Vec::new())
        .is_ok()
    {
        name += 1;
    }
    assert_round_trip(&filter, None);
}

/// What a random filter is made of.
#[derive(Debug, Clone)]
struct Recipe {
    kind: Kind,
    shape: (bool, u32, u64, u64, u32),
    seed: Option<u64>,
    key_type: KeyType,
    normalised: bool,
    promise: (u64, f64),
    labels: Vec<(String, String)>,
    attachments: Vec<(String, Vec<u8>)>,
    digests: Vec<u64>,
    insertions_known: bool,
    generation: u64,
}

fn recipes() -> impl Strategy<Value = Recipe> {
    let kinds = [
        Kind::DigestSet,
        Kind::Bloom,
        Kind::Classic,
        Kind::Growable,
        Kind::Counting,
        Kind::Window,
        Kind::Deletable,
        Kind::Static,
        Kind::Cascade,
    ];
    let name = "[a-zäß_. -]{1,12}";
    let texts = proptest::collection::vec((name, "\\PC{0,20}"), 0..4);
    let attachments = proptest::collection::vec((name, any::<Vec<u8>>()), 0..4);
    (
        (
            proptest::sample::select(kinds.to_vec()),
            (any::<bool>(), 1u32..=4, 1u64..512, 1u64..5000, 1u32..=64),
            proptest::option::of(any::<u64>()),
            any::<bool>(),
            any::<bool>(),
        ),
        (1..=u64::MAX, 1e-12..0.9999f64),
        texts,
        attachments,
        proptest::collection::vec(prop_oneof![any::<u64>(), 0u64..3], 0..200),
        any::<bool>(),
        any::<u64>(),
    )
        .prop_map(
            |(
                (kind, shape, seed, int, normalised),
                promise,
                labels,
                attachments,
                digests,
                insertions_known,
                generation,
            )| Recipe {
                kind,
                shape,
                seed,
                key_type: if int { KeyType::Int } else { KeyType::Bytes },
                normalised,
                promise,
                labels,
                attachments,
                digests,
                insertions_known,
                generation,
            },
        )
}

impl Recipe {
    fn make(&self) -> Sample {
        let hasher = match self.seed {
            Some(seed) => KeyHasher::Portable { seed },
            None => KeyHasher::Keyed { secret: secret() },
        };
        let mut identity = Identity::new(self.key_type).with_hasher(hasher);
        if self.normalised {
            identity = identity.with_normalisation(normalisation());
        }
        let (half, regions, blocks, bits, positions) = self.shape;
        let promise = Promise {
            items: self.promise.0,
            error: self.promise.1,
        };
        let block = if half {
            BlockWords::Four
        } else {
            BlockWords::Eight
        };
        let mut filter: AnyFilter = match self.kind {
            Kind::DigestSet => DigestSet::with_slots(identity, 3 + blocks).unwrap().into(),
            Kind::Bloom => Bloom::with_geometry(identity, split(block, regions, blocks), promise)
                .unwrap()
                .into(),
            Kind::Classic => {
                let shape = ClassicGeometry::new(bits, positions).unwrap();
                Classic::with_geometry(identity, shape, promise)
                    .unwrap()
                    .into()
            }
            Kind::Deletable => {
                let geometry = DeletableGeometry::new(300 + bits, 1 + positions / 2).unwrap();
                Deletable::with_geometry(identity, geometry, promise)
                    .unwrap()
                    .into()
            }
            Kind::Static => {
                let mut keys = self.digests.clone();
                StaticBuilder::sort_distinct(&mut keys, 1);
                let (count, error) = (keys.len() as u64, promise.error.max(1e-9));
                let shards = u64::from(regions);
                let mut builder =
                    StaticBuilder::with_shards(identity, count, error, 1, shards).unwrap();
                builder.push(&keys).unwrap();
                builder.finish().unwrap().into()
            }
            Kind::Cascade => {
                let mut keys = self.digests.clone();
                StaticBuilder::sort_distinct(&mut keys, 1);
                let others = (0..bits).map(|i| crate::mix_int(i.cast_signed(), 1));
                let mut others: Vec<u64> = others.filter(|key| !keys.contains(key)).collect();
                StaticBuilder::sort_distinct(&mut others, 1);
                let error = if half { 1.0 } else { promise.error.max(1e-9) };
                Cascade::build(&identity, &keys, &others, error, 1)
                    .unwrap()
                    .into()
            }
            Kind::Window => {
                let lanes = 4 << regions;
                let geometry =
                    WindowGeometry::new(lanes, positions / 2 + 1, 1 << (bits % 3), blocks);
                let span = match bits % 3 {
                    0 => WindowSpan::Keys,
                    1 => WindowSpan::Time {
                        ticks: bits,
                        overload: Overload::Shorten,
                    },
                    _ => WindowSpan::Time {
                        ticks: bits,
                        overload: Overload::Refuse,
                    },
                };
                let promise = Promise {
                    items: 10_000 + bits,
                    ..promise
                };
                let mut window =
                    Window::with_geometry(identity, span, geometry.unwrap(), promise).unwrap();
                window.advance(self.generation);
                window.into()
            }
            Kind::Growable => {
                let plan = GrowthPlan::open(1 + blocks / 10, 0.3).unwrap();
                Growable::with_plan(identity, plan).unwrap().into()
            }
            Kind::Counting => {
                let counter = [CounterBits::Four, CounterBits::Eight, CounterBits::Sixteen]
                    [positions as usize % 3];
                let increase = [Increase::All, Increase::Minimal][positions as usize % 2];
                counting(identity, split(block, regions, blocks), counter, increase)
            }
        };
        for (name, value) in &self.labels {
            filter.labels_mut().set(name, value).unwrap();
        }
        for (name, bytes) in &self.attachments {
            filter.set_attachment(name, bytes.clone()).unwrap();
        }
        for &digest in &self.digests {
            if is_fixed(self.kind) {
                assert!(filter.insert_bits(digest).is_err());
                assert!(filter.contains_bits(digest));
            } else {
                filter.insert_bits(digest).unwrap();
            }
        }
        let about = filter.meta_mut();
        about.generation = self.generation;
        // Those of a deletable or fixed filter always are.
        let always = self.kind == Kind::Deletable || is_fixed(self.kind);
        if !self.insertions_known && !always {
            about.insertions = None;
        }
        Sample {
            name: "random",
            filter,
            secret: self.seed.is_none().then(secret),
        }
    }
}

proptest! {
    #![proptest_config(cases(64))]
    #[test]
    fn random_filters_survive_a_file(recipe in recipes()) {
        let sample = recipe.make();
        assert_round_trip(&sample.filter, sample.secret.as_ref());
    }
}
