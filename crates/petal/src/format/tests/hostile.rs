//! Files whose checksums are right and whose contents are not.

use super::*;
use crate::error::FormatError;
use crate::format::MIB;
use crate::format::checksum::{sum, table_bytes};
use crate::format::header::{self, Header};
use crate::format::read::{Front, verify_source};
use crate::format::sections::{HEADER_LEN, Sections};

const HEADER_SUM: usize = HEADER_LEN - 8;

/// Gives the header a right checksum.
fn seal(bytes: &mut [u8]) {
    if let Some(header) = bytes.first_chunk_mut::<{ HEADER_LEN }>() {
        let sum = sum(&header[..HEADER_SUM]).to_le_bytes();
        header[HEADER_SUM..].copy_from_slice(&sum);
    }
}

/// Gives everything right checksums, as far as the lengths make sense.
fn seal_all(bytes: &mut [u8]) {
    let word = |bytes: &[u8], at: usize| {
        let word = bytes.get(at..at + 8)?.first_chunk().copied()?;
        usize::try_from(u64::from_le_bytes(word)).ok()
    };
    let parts = |bytes: &[u8]| {
        let (metadata, payload) = (word(bytes, 96)?, word(bytes, 104)?);
        let (len, table) = (word(bytes, 112)?, word(bytes, 120)?);
        let metadata = bytes.get(HEADER_LEN..HEADER_LEN.checked_add(metadata)?)?;
        let payload = bytes.get(payload..payload.checked_add(len)?)?;
        let sums: Vec<u64> = payload.chunks(MIB).map(sum).collect();
        Some((sum(metadata), table, table_bytes(&sums)))
    };
    if let Some((metadata, at, table)) = parts(bytes) {
        bytes[136..144].copy_from_slice(&metadata.to_le_bytes());
        bytes[144..152].copy_from_slice(&sum(&table).to_le_bytes());
        if let Some(place) = at
            .checked_add(table.len())
            .and_then(|end| bytes.get_mut(at..end))
        {
            place.copy_from_slice(&table);
        }
    }
    seal(bytes);
}

/// The file with other metadata.
fn with_metadata(bytes: &[u8], metadata: &[u8]) -> Vec<u8> {
    let Front { mut header, .. } = Front::read(bytes).unwrap();
    let old = header.sections;
    let payload = &bytes[usize::try_from(old.payload_offset).unwrap()..];
    header.sections = Sections::new(metadata.len() as u64, old.payload_len).unwrap();
    header.metadata_sum = sum(metadata);
    let mut new = header.encode().to_vec();
    new.extend(metadata);
    new.resize(usize::try_from(header.sections.payload_offset).unwrap(), 0);
    new.extend(payload);
    new
}

fn metadata_field(tag: u16, flags: u8, content: &[u8]) -> Vec<u8> {
    let len = u32::try_from(content.len()).unwrap();
    [
        &tag.to_le_bytes()[..],
        &[flags],
        &len.to_le_bytes(),
        content,
    ]
    .concat()
}

fn refused(bytes: &[u8]) -> FormatError {
    let error = AnyFilter::from_bytes(bytes, Some(&secret())).unwrap_err();
    let Error::Format(error) = error else {
        panic!("not a fault of the bytes: {error}");
    };
    error
}

fn sample(name: &str) -> Vec<u8> {
    let mut all = samples().into_iter();
    let found = all.find(|sample| sample.name == name).unwrap();
    found.filter.to_bytes().unwrap()
}

#[test]
fn what_is_unknown_is_named() {
    for (at, value, what) in [
        (10, 0u16, "kind"),
        (10, 999, "kind"),
        (12, 4, "flags"),
        (14, 1, "flags"),
        (16, 2, "hasher"),
        (18, 2, "key type"),
    ] {
        let mut bytes = sample("bare");
        bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        seal(&mut bytes);
        match refused(&bytes) {
            FormatError::Unknown { what: got, .. } => assert_eq!(got, what),
            other => panic!("{what}: {other}"),
        }
    }
    for (version, sealed) in [(0, false), (0, true), (2, false), (2, true)] {
        let mut bytes = sample("bare");
        bytes[8] = version;
        if sealed {
            seal(&mut bytes);
        }
        let error = refused(&bytes);
        let got = u16::from(version);
        assert_eq!(error, FormatError::Version { got, newest: 1 });
        assert!(error.to_string().contains("use a newer petal"), "{error}");
    }
}

#[test]
fn reserved_bytes_must_be_zero() {
    for at in (20..24).chain(152..HEADER_SUM) {
        let mut bytes = sample("bare");
        bytes[at] = 1;
        seal(&mut bytes);
        assert!(refused(&bytes).to_string().contains("reserved"), "{at}");
    }
    for (name, at) in [
        ("bare", 72),
        ("100 bits", 64),
        ("digests", 72),
        ("growable", 56),
    ] {
        let mut bytes = sample(name);
        bytes[at] = 1;
        seal(&mut bytes);
        assert!(refused(&bytes).to_string().contains("geometry"), "{name}");
    }
    let mut bytes = sample("one region");
    let payload = Front::read(bytes.as_slice())
        .unwrap()
        .header
        .sections
        .payload_offset;
    bytes[usize::try_from(payload).unwrap() - 1] = 1;
    assert!(refused(&bytes).to_string().contains("padding"));
}

/// A header that claims more than there is: an error before any memory is
/// asked for (which would be refused with another error).
#[test]
fn claimed_sizes_take_no_memory() {
    let huge = Classic::with_geometry(
        Identity::new(KeyType::Bytes),
        ClassicGeometry::new(100, 1).unwrap(),
        PROMISE,
    )
    .unwrap();
    let bytes = AnyFilter::from(huge).to_bytes().unwrap();
    let Front { mut header, .. } = Front::read(bytes.as_slice()).unwrap();
    header.geometry = header::Geometry::Classic(ClassicGeometry::new(1 << 63, 1).unwrap());
    header.sections = Sections::new(0, 1 << 60).unwrap();
    let mut forged = header.encode().to_vec();
    forged.resize(bytes.len(), 0);
    let expected = header.sections.file_len;
    let got = bytes.len() as u64;
    assert_eq!(refused(&forged), FormatError::Length { expected, got });
    let length = FormatError::Length {
        expected: 192,
        got: 64,
    };
    assert_eq!(refused(&forged[..64]), length);

    // Each number of each header, made large, alone.
    for name in samples().iter().map(|sample| sample.name) {
        for at in (24..HEADER_SUM).step_by(8) {
            for value in [1 << 32, 1 << 40, 1 << 60, 1 << 63, u64::MAX - 7, u64::MAX] {
                let mut bytes = sample(name);
                bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
                seal(&mut bytes);
                if let Err(error) = AnyFilter::from_bytes(&bytes, Some(&secret())) {
                    assert!(
                        matches!(error, Error::Format(_) | Error::Secret { .. }),
                        "{name}: {value} at {at}: {error}"
                    );
                } else {
                    // Seed, n, p, insertions and generation may be anything
                    // (as a p, the smaller of these numbers are tiny).
                    // No key, no columns: any number of them.
                    let free = (name == "static without keys" && at == 56)
                        // Others of a cascade: they are in no word.
                        || (name.contains("cascade") && at == 48);
                    assert!(
                        free || [24, 32, 40, 80, 88].contains(&at),
                        "{name}: {value} at {at}"
                    );
                }
            }
        }
    }
}

#[test]
fn contradictions_are_refused() {
    for (name, at, value, what) in [
        ("bare", 32, 0, "n is 0"),
        ("bare", 40, 1f64.to_bits(), "p is 1.0"),
        ("bare", 40, f64::NAN.to_bits(), "p is NaN"),
        ("bare", 40, (-0.5f64).to_bits(), "p is -0.5"),
        ("bare", 48, 5, "words a block"),
        ("bare", 56, 0, "geometry"),
        ("bare", 56, 2, "length of the payload"),
        ("bare", 64, 513, "geometry"),
        ("bare", 104, 256, "offset of the payload"),
        ("bare", 112, 64, "offset of the checksum table"),
        ("bare", 128, 5000, "length of the file"),
        ("100 bits", 56, 65, "geometry"),
        ("100 bits", 48, 65, "bits behind the last one"),
        ("digests", 48, 19, "length of the payload"),
        ("digests", 56, 2, "spread"),
        ("digests", 64, 2, "digest 0"),
        ("digests", 80, 3, "insertions"),
        ("growable", 48, 2, "stages"),
        ("growable", 80, 3, "insertions"),
        ("counting", 48, 5, "words a block"),
        ("counting", 48, 8, "length of the payload"),
        ("counting", 56, 0, "geometry"),
        ("counting", 64, 1 << 54, "at most 2^63 bits, 4 a counter"),
        ("counting", 64, 2, "length of the payload"),
        ("counting", 72, 0, "bits a counter"),
        ("counting", 72, 5, "bits a counter"),
        ("counting", 72, 256, "bits a counter"),
        ("counting", 72, 512 + 4, "bits a counter"),
        ("counting", 72, 8, "length of the payload"),
        ("counting", 72, 256 + 16, "length of the payload"),
        ("window", 32, 4, "window"),
        ("deletable", 48, 0, "geometry"),
        ("deletable", 48, 130, "length of the payload"),
        ("deletable", 48, 1 << 62, "geometry"),
        ("deletable", 56, 4, "length of the payload"),
        ("deletable", 56, 57, "geometry"),
        ("deletable", 64, 7, "used slots"),
        ("deletable", 80, 3, "insertions"),
        ("static", 48, 0, "shards"),
        ("static", 48, 2, "length of the payload"),
        ("static", 56, 63, "columns"),
        ("static", 56, 1 << 8, "length of the payload"),
        ("static", 56, 10 | 1 << 8, "length of the payload"),
        ("static", 56, 1 << 16, "columns"),
        ("static", 56, 1 << 31, "columns"),
        ("static", 56, 17 << 8, "columns"),
        ("static", 56, 47 | 16 << 8, "columns"),
        ("static with values", 56, 9, "length of the payload"),
        ("cascade", 56, 2, "inverted"),
        ("cascade", 64, 1 << 59, "words of a filter"),
        ("cascade", 64, 11, "words of a filter"),
        ("cascade", 64, 0, "length of the payload"),
        ("cascade", 72, u64::MAX, "words of a filter"),
        ("cascade", 72, 2, "length of the payload"),
        ("static", 56, 9 << 32, "length of the payload"),
        ("static", 64, 0, "length of the payload"),
        ("static", 64, 1 << 32, "blocks of a layer"),
        ("static", 64, 2, "length of the payload"),
        ("static", 72, 1, "blocks of a layer"),
        ("static without keys", 64, 1, "length of the payload"),
        ("static in shards", 48, u64::MAX, "shards"),
        ("static in shards", 48, 2, "first word of a shard"),
        ("static in shards", 56, 5, "words of the shards"),
        ("static in shards", 64, 1, "length of the payload"),
        ("static in shards", 64, u64::MAX, "words"),
        ("static in shards", 72, 1, "geometry"),
        ("window", 48, 12, "geometry"),
        ("window", 48, 1 << 35, "geometry"),
        ("window", 56, 33, "geometry"),
        ("window", 56, 1, "length of the payload"),
        ("window", 64, 3, "geometry"),
        ("window", 72, 0, "geometry"),
    ] {
        let mut bytes = sample(name);
        bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
        seal(&mut bytes);
        let error = refused(&bytes).to_string();
        assert!(error.contains(what), "{name}, {at}: {error}");
    }
    // A deletable filter always knows them.
    let mut bytes = sample("deletable");
    bytes[12] = 2;
    bytes[80..88].fill(0);
    seal(&mut bytes);
    assert!(refused(&bytes).to_string().contains("insertions"));
    // Unknown insertions have no number.
    let mut bytes = sample("bare");
    bytes[12] = 2;
    seal(&mut bytes);
    assert!(refused(&bytes).to_string().contains("insertions"));
}

#[test]
fn bits_where_none_may_be_are_refused() {
    // Behind the last of 100 bits, and between the stages.
    let bytes = sample("100 bits");
    let front = Front::read(bytes.as_slice()).unwrap();
    let payload = usize::try_from(front.header.sections.payload_offset).unwrap();
    for (byte, bad) in [(12, 0x10), (12, 0x80), (13, 1), (15, 0x80)] {
        let mut bytes = bytes.clone();
        bytes[payload + byte] |= bad;
        seal_all(&mut bytes);
        assert!(refused(&bytes).to_string().contains("behind the last"));
        assert!(verify_source(bytes.as_slice()).is_err());
    }

    let stage = |blocks| crate::StageRecord {
        promise: PROMISE,
        insertions: 0,
        geometry: split(BlockWords::Four, 1, blocks),
    };
    let growth = crate::format::metadata::Growth {
        plan: GrowthPlan::open(4, 0.5).unwrap(),
        stages: vec![stage(1), stage(3)],
    };
    let geometry = header::Geometry::Growable { stages: 2 };
    let runs = crate::format::payload::Runs::new(&geometry, Some(&growth)).unwrap();
    assert_eq!(runs.len(), 64 + 96);
    let mut payload = [0; 160];
    for at in 0..160 {
        payload[at] = 1;
        assert_eq!(
            runs.check(0, &payload).is_err(),
            (32..64).contains(&at),
            "{at}"
        );
        // The same in two parts.
        let halves =
            runs.check(0, &payload[..48]).is_err() || runs.check(48, &payload[48..]).is_err();
        assert_eq!(halves, (32..64).contains(&at), "{at}");
        payload[at] = 0;
    }
}

#[test]
fn metadata_of_a_later_version_is_kept_or_refused() {
    let bytes = sample("bare");
    let label = |name: &str, value: &str| {
        let len = u16::try_from(name.len()).unwrap();
        let content = [&len.to_le_bytes()[..], name.as_bytes(), value.as_bytes()].concat();
        metadata_field(3, 0, &content)
    };
    // A field before and one behind a label; written back, known ones first.
    let late = [
        metadata_field(700, 0, b"later"),
        label("a", "b"),
        metadata_field(700, 0, b""),
    ];
    let with = with_metadata(&bytes, &late.concat());
    let filter = AnyFilter::from_bytes(&with, None).unwrap();
    assert_eq!(Contains::about(&filter).labels().get("a"), Some("b"));
    let back = filter.to_bytes().unwrap();
    let canonical = [late[1].clone(), late[0].clone(), late[2].clone()].concat();
    assert_eq!(back, with_metadata(&bytes, &canonical));

    for (metadata, what) in [
        (metadata_field(700, 1, b"later"), "metadata field 700"),
        (
            metadata_field(700, 2, b"later"),
            "flags of a metadata field",
        ),
        (
            metadata_field(3, 2, b"\x01\0ab"),
            "flags of a metadata field",
        ),
        (
            [label("a", "b"), label("a", "c")].concat(),
            "each name once",
        ),
        (label("", "b"), "a valid label"),
        (label("a=b", "b"), "a valid label"),
        (metadata_field(3, 0, b"\x01"), "label"),
        (metadata_field(3, 0, b"\x09\0a"), "label"),
        (metadata_field(3, 0, b"\x01\0\xff"), "UTF-8"),
        (metadata_field(3, 0, b"\x01\0a\xff"), "UTF-8"),
        (metadata_field(4, 0, b"\0\0x"), "a valid attachment"),
        (metadata_field(2, 1, &[0; 24]), "growth"),
        (vec![3], "metadata"),
        (vec![3, 0, 0, 255, 255, 255, 255], "metadata"),
        (vec![3, 0, 0, 9, 0, 0, 0, 1], "metadata"),
    ] {
        let error = refused(&with_metadata(&bytes, &metadata)).to_string();
        assert!(error.contains(what), "{what}: {error}");
    }
    // A growable filter without its stages, or twice.
    let bytes = sample("growable");
    let error = refused(&with_metadata(&bytes, &[])).to_string();
    assert!(error.contains("growth"), "{error}");
    let growth = {
        let Front { metadata, .. } = Front::read(bytes.as_slice()).unwrap();
        let mut about = About::new(Identity::new(KeyType::Int), None);
        about.labels = Labels::default();
        crate::format::metadata::encode(&about, metadata.growth.as_ref(), None).unwrap()
    };
    let error = refused(&with_metadata(&bytes, &growth.repeat(2))).to_string();
    assert!(error.contains("twice"), "{error}");
    for cut in 8..growth.len() {
        let content = &growth[7..cut];
        refused(&with_metadata(&bytes, &metadata_field(2, 1, content)));
    }
}

/// Every bit of a quotient filter has one right value, as its keys are the
/// same: all others are refused, but are no danger to who maps them.
#[test]
fn slots_that_are_no_quotient_filter_are_refused() {
    let bytes = sample("deletable");
    let front = Front::read(bytes.as_slice()).unwrap();
    let start = usize::try_from(front.header.sections.payload_offset).unwrap();
    let end = start + usize::try_from(front.header.sections.payload_len).unwrap();
    let mut refusals = 0;
    for at in start..end {
        for bit in 0..8 {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << bit;
            seal_all(&mut bytes);
            // A changed bit of a remainder or a count can be another filter.
            refusals += u32::from(AnyFilter::from_bytes(&bytes, None).is_err());
            open_whatever(&bytes);
        }
    }
    let bits = u32::try_from((end - start) * 8).unwrap();
    assert!(refusals > bits - 40 * 3, "{refusals} of {bits}");
}

/// Mapping looks at no slot, and still reports no more of them in use than there are.
#[test]
fn slots_in_use_are_no_more_than_there_are() {
    let bytes = sample("deletable");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deletable");
    let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let (slots, used, keys) = (word(48), word(64), word(80));
    assert!(keys > 0 && keys <= used && used < slots);
    for (at, value) in [
        (64, slots + 1),
        (64, keys - 1),
        (80, used + 1),
        (64, u64::MAX),
    ] {
        let mut bytes = bytes.clone();
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        seal(&mut bytes);
        fs::write(&path, &bytes).unwrap();
        let error = AnyFilter::open_mapped(&path, None).unwrap_err().to_string();
        assert!(error.contains("used slots"), "{at}: {error}");
        assert!(AnyFilter::from_bytes(&bytes, None).is_err());
    }
}

/// Where the shards are is refused unless it fits, and is no danger.
#[test]
fn directories_that_do_not_fit_are_refused() {
    let bytes = sample("static in shards");
    let front = Front::read(bytes.as_slice()).unwrap();
    let start = usize::try_from(front.header.sections.payload_offset).unwrap();
    for at in start..start + 3 * 24 {
        for bit in 0..8 {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << bit;
            seal_all(&mut bytes);
            let error = AnyFilter::from_bytes(&bytes, Some(&secret())).unwrap_err();
            assert!(matches!(error, Error::Format(_)), "{at}, {bit}: {error}");
            open_whatever(&bytes);
        }
    }
}

/// The shapes of a cascade's filters are refused unless they fit, and are no danger.
#[test]
fn shapes_that_do_not_fit_are_refused() {
    for name in ["cascade", "inverted cascade"] {
        let bytes = sample(name);
        let front = Front::read(bytes.as_slice()).unwrap();
        let start = usize::try_from(front.header.sections.payload_offset).unwrap();
        let mut refusals = 0;
        for at in start..start + 64 {
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << bit;
                seal_all(&mut bytes);
                open_whatever(&bytes);
                if let Err(error) = AnyFilter::from_bytes(&bytes, Some(&secret())) {
                    assert!(matches!(error, Error::Format(_)), "{error}");
                    refusals += 1;
                }
            }
        }
        // Another share of keys with a further column can be another filter.
        assert!(refusals >= 512 - 32, "{name}: {refusals}");
    }
}

/// Every number of a window's state, made impossible.
#[test]
fn impossible_windows_are_refused() {
    let bytes = sample("window");
    let Front { metadata, .. } = Front::read(bytes.as_slice()).unwrap();
    let state = metadata.window.unwrap();
    let about = About::new(Identity::new(KeyType::Bytes), None);
    let encoded = |state: &crate::window::RingState| {
        crate::format::metadata::encode(&about, None, Some(state)).unwrap()
    };
    let with = |change: &dyn Fn(&mut crate::window::RingState)| {
        let mut other = state.clone();
        change(&mut other);
        with_metadata(&bytes, &encoded(&other))
    };
    assert!(AnyFilter::from_bytes(&with(&|_| ()), None).is_ok());
    let lanes = 8 - u32::try_from(state.generations.len()).unwrap();
    let changes: [&dyn Fn(&mut crate::window::RingState); 13] = [
        &|s| s.filling = 8,
        &|s| s.filling = u32::MAX,
        &|s| s.expired = lanes + 1 - s.clearing,
        &|s| s.expired = u32::MAX,
        &|s| s.clearing = u32::MAX,
        &|s| s.clearing = 0,
        &|s| s.cleared = 16,
        &|s| s.generations.clear(),
        &|s| s.generations.extend([s.generations[0]; 8]),
        &|s| s.generations.reverse(),
        &|s| s.generations[0].keys = 5,
        &|s| s.now = s.generations[0].last - 1,
        &|s| s.generations[0].first = s.generations[0].last + 1,
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let error = refused(&with(change)).to_string();
        assert!(
            error.contains("window is an impossible state"),
            "{i}: {error}"
        );
    }
    for (metadata, what) in [
        (Vec::new(), "window"),
        (encoded(&state).repeat(2), "twice"),
        (metadata_field(6, 1, &[0; 52]), "window"),
        (metadata_field(6, 1, &[3; 53]), "span of the window"),
        (metadata_field(6, 1, &[0; 60]), "window"),
    ] {
        let error = refused(&with_metadata(&bytes, &metadata)).to_string();
        assert!(error.contains(what), "{what}: {error}");
    }
    // In a filter of another kind.
    let error = refused(&with_metadata(&sample("bare"), &encoded(&state)));
    assert!(error.to_string().contains("no other kind"), "{error}");
    // Whatever else it says, the window goes on without harm.
    let mut now = with(&|s| s.now = u64::MAX);
    open_whatever(&now);
    now = with(&|s| {
        s.clearing = 8 - u32::try_from(s.generations.len()).unwrap();
        s.expired = 0;
        s.generations[0].keys = 4;
    });
    open_whatever(&now);
    let mut filter = AnyFilter::from_bytes(&now, None).unwrap();
    for digest in digests(100) {
        let _ = filter.insert_bits(digest);
    }
}

#[test]
fn dirty_files_are_refused_by_name() {
    let mut bytes = sample("bare");
    bytes[12] = 1;
    seal(&mut bytes);
    assert_eq!(refused(&bytes), FormatError::Dirty { generation: 1 });
    assert!(verify_source(bytes.as_slice()).is_err());
    assert!(AnyFilter::from_shared(bytes.as_slice().into(), None).is_err());
    let Front { header, .. } = Front::read(bytes.as_slice()).unwrap();
    assert!(header.dirty);
}

/// Any bytes are a filter or an error; a filter answers and can be written.
fn open_whatever(bytes: &[u8]) {
    let _ = Front::read(bytes);
    let _ = verify_source(bytes);
    for filter in [
        AnyFilter::from_bytes(bytes, Some(&secret())),
        AnyFilter::from_shared(bytes.into(), Some(&secret())),
    ] {
        match filter {
            Ok(mut filter) => {
                for digest in [0, 1, u64::MAX, 1 << 40] {
                    filter.contains_bits(digest);
                    let _ = filter.count_bits(digest);
                    let _ = filter.insert_bits(digest);
                    let _ = filter.remove_bits(digest);
                }
                let _ = (filter.fill(), filter.error_now(), filter.estimated_len());
                filter.to_bytes().unwrap();
            }
            Err(Error::TooLarge { .. }) => panic!("memory was asked for"),
            Err(_) => {}
        }
    }
}

proptest! {
    #![proptest_config(cases(2000))]
    #[test]
    fn random_bytes_are_no_danger(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..600),
        petal: bool,
    ) {
        if petal && bytes.len() >= 10 {
            bytes[..8].copy_from_slice(&header::MAGIC);
            bytes[8..10].copy_from_slice(&[0, 0]);
            seal(&mut bytes);
        }
        open_whatever(&bytes);
    }

    #[test]
    fn mutated_files_are_no_danger(
        which in 0..samples().len(),
        // In the front half of the time: the payload can hold anything.
        changes in proptest::collection::vec((any::<u16>(), any::<u8>(), any::<bool>()), 1..5),
        resize in proptest::option::weighted(0.2, 0usize..3000),
        sealed in 0u8..4,
    ) {
        let mut bytes = samples()[which].filter.to_bytes().unwrap();
        for (at, value, front) in changes {
            let range = if front { 400.min(bytes.len()) } else { bytes.len() };
            let at = usize::from(at) % range;
            bytes[at] = value;
        }
        if let Some(len) = resize {
            bytes.resize(len, 0);
        }
        if sealed == 1 {
            seal(&mut bytes);
        } else if sealed > 1 {
            seal_all(&mut bytes);
        }
        open_whatever(&bytes);
    }
}

/// The header is read back as it was, whatever it says.
#[test]
fn headers_are_read_as_written() {
    for sample in samples() {
        let bytes = sample.filter.to_bytes().unwrap();
        let Front { header, .. } = Front::read(bytes.as_slice()).unwrap();
        let encoded = header.encode();
        assert_eq!(encoded, bytes[..HEADER_LEN]);
        let decoded = Header::decode(&encoded, bytes.len() as u64).unwrap();
        assert_eq!(decoded, header);
    }
}
