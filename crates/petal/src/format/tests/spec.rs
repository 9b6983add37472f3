//! `FORMAT.md` says what the code does: its vectors and examples are computed
//! here, and each must stand in the text as it is.

use std::fmt::Write;

use super::*;
use crate::geometry::{block_of, lanes, next_region};

const FORMAT: &str = include_str!("../../../../../FORMAT.md");

/// Fails with the text that is missing.
fn assert_stated(block: &str) {
    assert!(FORMAT.contains(block), "FORMAT.md lacks:\n{block}");
}

const KEYS: [&[u8]; 4] = [b"", b"a", b"https://example.org/", &[0xff; 300]];
const KEY_NAMES: [&str; 4] = ["(empty)", "`a`", "`https://example.org/`", "300 × `ff`"];

#[test]
fn hashes_of_bytes_are_stated() {
    let mut rows = String::new();
    for (key, name) in KEYS.into_iter().zip(KEY_NAMES) {
        for seed in [0, 1, u64::MAX] {
            let digest = KeyHasher::Portable { seed }.digest_bytes(key).bits();
            writeln!(rows, "| {name} | `{seed:x}` | `{digest:016x}` |").unwrap();
        }
    }
    assert_stated(&rows);
    // Known from the xxHash project's own test vectors.
    let xxh3 = |key: &[u8]| KeyHasher::default().digest_bytes(key).bits();
    assert_eq!(xxh3(b""), 0x2d06_8005_38d3_94c2);
    assert_eq!(xxh3(b"a"), 0xe6c6_32b6_1e96_4e1f);
}

#[test]
fn hashes_of_integers_are_stated() {
    let mut rows = String::new();
    for key in [0, 1, -1, 42, i64::MIN, i64::MAX] {
        for seed in [0, 1] {
            let digest = crate::mix_int(key, seed);
            writeln!(rows, "| {key} | `{seed:x}` | `{digest:016x}` |").unwrap();
        }
    }
    assert_stated(&rows);
}

#[test]
fn keyed_hashes_are_stated() {
    let secret = Secret::new(std::array::from_fn(|i| u8::try_from(i).unwrap()));
    let check = secret.check_value();
    let hasher = KeyHasher::Keyed { secret };
    let mut rows = String::new();
    for (key, name) in KEYS.into_iter().zip(KEY_NAMES) {
        let digest = hasher.digest_bytes(key).bits();
        writeln!(rows, "| bytes {name} | `{digest:016x}` |").unwrap();
    }
    for key in [0, -1, 42] {
        let digest = hasher.digest_int(key).bits();
        writeln!(rows, "| integer {key} | `{digest:016x}` |").unwrap();
    }
    writeln!(rows, "| check value | `{check:016x}` |").unwrap();
    assert_stated(&rows);
    // The first of the published vectors of SipHash-1-3 under this key.
    assert_eq!(hasher.digest_bytes(b"").bits(), 0xabac_0158_050f_c4dc);
}

#[test]
fn the_split_block_example_is_stated() {
    let blocks = 300;
    let mut state = KeyHasher::default()
        .digest_bytes(b"https://example.org/")
        .bits();
    let mut lines = String::new();
    let mut filter = Bloom::with_geometry(
        Identity::new(KeyType::Bytes),
        split(BlockWords::Eight, 2, blocks),
        PROMISE,
    )
    .unwrap();
    filter.insert_bits(state).unwrap();
    for region in 0..2u64 {
        let (block, lanes) = (block_of(state, blocks), lanes(state));
        let first = (region * blocks + block) * 8;
        writeln!(lines, "region {region}: x     = {state:016x}").unwrap();
        writeln!(
            lines,
            "          block = {block}, so words {first} to {}",
            first + 7
        )
        .unwrap();
        writeln!(lines, "          lanes = {lanes:016x}").unwrap();
        let bits: Vec<u64> = (0..8).map(|i| lanes >> (58 - 6 * i) & 63).collect();
        writeln!(lines, "          bits    {bits:?}").unwrap();
        // The words say the same.
        for (word, &bit) in (first..).zip(&bits) {
            let word = usize::try_from(word).unwrap();
            assert_eq!(filter.words().get()[word], 1 << bit);
        }
        state = next_region(state);
    }
    assert_stated(&lines);
}

#[test]
fn the_window_example_is_stated() {
    let lines = 300;
    let shape = WindowGeometry::new(16, 2, 2, lines).unwrap();
    let identity = Identity::new(KeyType::Bytes);
    let mut filter = Window::with_geometry(identity, WindowSpan::Keys, shape, PROMISE).unwrap();
    let mut state = KeyHasher::default()
        .digest_bytes(b"https://example.org/")
        .bits();
    filter.insert_bits(state).unwrap();
    let mut text = String::new();
    for region in 0..2u64 {
        let (line, lanes) = (block_of(state, lines), lanes(state));
        let first = (region * lines + line) * 8;
        let positions = [lanes >> 60, 16 + (lanes << 6 >> 60)];
        writeln!(text, "region {region}: x     = {state:016x}").unwrap();
        writeln!(
            text,
            "          line  = {line}, so words {first} to {}",
            first + 7
        )
        .unwrap();
        writeln!(text, "          positions {positions:?}").unwrap();
        // The words say the same.
        for at in 0..32 {
            let word = usize::try_from(first + at / 4).unwrap();
            let lanes = filter.words().get()[word] >> (16 * (at % 4)) & 0xffff;
            assert_eq!(lanes, u64::from(positions.contains(&at)));
        }
        state = next_region(state);
    }
    assert_stated(&text);
}

#[test]
fn the_deletable_example_is_stated() {
    let shape = DeletableGeometry::new(300, 7).unwrap();
    let mut filter =
        Deletable::with_geometry(Identity::new(KeyType::Bytes), shape, PROMISE).unwrap();
    let digest = KeyHasher::default().digest_bytes(b"https://example.org/");
    for _ in 0..100 {
        filter.insert_bits(digest.bits()).unwrap();
    }
    let product = u128::from(digest.bits()) * 300;
    let quotient = usize::try_from(product >> 64).unwrap();
    let remainder = u64::try_from((product >> 57) & 127).unwrap();
    assert_eq!(
        filter.fingerprint(digest).unwrap(),
        (quotient as u64) << 7 | remainder
    );
    let (block, place) = (quotient / 64, quotient % 64);
    let words = &filter.words().get()[1 + block * 9..][..9];
    assert_eq!(words[0], 1 << place);
    assert_eq!(words[1], 1 << (place + 4));
    let slot = |i: usize| {
        (0..7).fold(0, |value, bit| {
            let at = (place + i) * 7 + bit;
            value | (words[2 + at / 64] >> (at % 64) & 1) << bit
        })
    };
    let slots: Vec<u64> = (0..5).map(slot).collect();
    assert_stated(&format!(
        "digest     = {:016x}\nquotient   = {quotient}, in block {block}\n\
         remainder  = {remainder}\nslots {quotient}  = {slots:?}\n",
        digest.bits()
    ));
    assert_eq!(filter.geometry().words(), 9 * 9 + 2);
}

#[test]
fn the_static_example_is_stated() {
    let digest = KeyHasher::default().digest_bytes(b"https://example.org/");
    let mut text = format!("digest = {:016x}\n", digest.bits());
    let (shard, rows) = crate::ribbon::example_rows(digest.bits(), 3, [40, 2]);
    writeln!(text, "shard  = {shard}").unwrap();
    for (layer, (start, coefficients, fingerprint)) in rows.into_iter().enumerate() {
        writeln!(
            text,
            "layer {layer}: start {start}, coefficients {coefficients:016x}, \
             fingerprint {fingerprint:016x}"
        )
        .unwrap();
    }
    assert_stated(&text);
}

/// One key, whose answer is computed by the text and not by the kernels.
#[test]
fn a_static_filter_has_the_parities_it_should_have() {
    let digest = KeyHasher::default().digest_bytes(b"https://example.org/");
    let identity = Identity::new(KeyType::Bytes);
    let filter = crate::Static::build(identity, vec![digest.bits()], 1e-3, 1).unwrap();
    let (_, rows) = crate::ribbon::example_rows(digest.bits(), 1, [1, 1]);
    let (start, coefficients, fingerprint) = rows[0];
    assert_eq!(start, 0);
    let words = filter.words().get();
    assert_eq!(words.len(), 10);
    for (column, word) in words.iter().enumerate() {
        let parity = (word & coefficients).count_ones() & 1;
        assert_eq!(u64::from(parity), fingerprint >> column & 1, "{column}");
    }
}

/// The same with a value, whose columns come first, under high bits of the coefficients' z.
#[test]
fn values_are_where_they_should_be() {
    let digest = KeyHasher::default().digest_bytes(b"https://example.org/");
    let key = crate::Valued {
        digest: digest.bits(),
        value: 0b101,
    };
    let identity = Identity::new(KeyType::Bytes);
    let filter = crate::Static::build_with_values(identity, vec![key], 0.25, 3, 1).unwrap();
    let (_, rows) = crate::ribbon::example_rows(digest.bits(), 1, [1, 1]);
    let (_, coefficients, fingerprint) = rows[0];
    let z = (digest.bits() ^ digest.bits() >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let words = filter.words().get();
    assert_eq!(words.len(), 5);
    let mut value = 0;
    for (column, word) in words.iter().enumerate() {
        let parity = u64::from((word & coefficients).count_ones() & 1);
        if column < 3 {
            value |= (parity ^ z >> (61 + column) & 1) << column;
        } else {
            assert_eq!(parity, fingerprint >> (column - 3) & 1, "{column}");
        }
    }
    assert_eq!(value, 0b101);
}

#[test]
fn the_classic_example_is_stated() {
    let digest = KeyHasher::default()
        .digest_bytes(b"https://example.org/")
        .bits();
    let shape = ClassicGeometry::new(1000, 5).unwrap();
    let mut filter = Classic::with_geometry(Identity::new(KeyType::Bytes), shape, PROMISE).unwrap();
    filter.insert_bits(digest).unwrap();
    let words = filter.words().get();
    let set: Vec<usize> = (0..1000)
        .filter(|bit| words[bit / 64] >> (bit % 64) & 1 == 1)
        .collect();
    assert_stated(&format!("positions, sorted: {set:?}"));
}

#[test]
fn the_counting_example_is_stated() {
    let shape = split(BlockWords::Eight, 2, 300);
    let mut filter = counting(
        Identity::new(KeyType::Bytes),
        shape,
        CounterBits::Four,
        Increase::All,
    );
    for _ in 0..2 {
        filter.insert_bytes(b"https://example.org/").unwrap();
    }
    let AnyFilter::Counting(filter) = filter else {
        panic!("a counting filter");
    };
    let mut lines = String::new();
    for (at, word) in filter.words().get().iter().enumerate() {
        if *word != 0 {
            writeln!(lines, "{at}: {word:016x}").unwrap();
        }
    }
    assert_stated(&lines);
}

#[test]
fn the_table_example_is_stated() {
    let identity = Identity::new(KeyType::Bytes);
    let mut set = DigestSet::with_spread(identity, 8, 0x9e37_79b9_7f4a_7c15).unwrap();
    let mut lines = String::new();
    for key in ["a", "b", "c", "d"] {
        let digest = KeyHasher::default().digest_bytes(key.as_bytes()).bits();
        set.insert_bits(digest).unwrap();
        let first = block_of(digest.wrapping_mul(set.spread()), 8);
        let place = set.words().get().iter().position(|&slot| slot == digest);
        writeln!(
            lines,
            "{key}  digest {digest:016x}  first slot {first}  found in {}",
            place.unwrap()
        )
        .unwrap();
    }
    assert_stated(&lines);
}

#[test]
fn a_whole_file_is_stated() {
    let mut filter: AnyFilter = Bloom::with_geometry(
        Identity::new(KeyType::Bytes),
        split(BlockWords::Eight, 1, 1),
        Promise {
            items: 4,
            error: 0.001,
        },
    )
    .unwrap()
    .into();
    filter.insert_bytes(b"a").unwrap();
    filter.labels_mut().set("source", "example").unwrap();
    let bytes = filter.to_bytes().unwrap();
    let mut dump = String::new();
    for (line, chunk) in bytes.chunks(16).enumerate() {
        let hex: Vec<String> = chunk.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(dump, "{:04x}  {}", line * 16, hex.join(" ")).unwrap();
    }
    assert_stated(&dump);
}

#[test]
fn numbers_of_the_layout_are_stated() {
    for text in [
        format!("version of the format: {}", crate::FORMAT_VERSION),
        format!(
            "The header has {} bytes",
            crate::format::sections::HEADER_LEN
        ),
        format!("at most {} bytes", crate::format::MAX_METADATA),
        format!("Labels take at most {} bytes", Labels::MAX_BYTES),
        format!("attachments at most {} bytes", Attachments::MAX_BYTES),
        format!("one for each {} bytes", crate::format::MIB),
    ] {
        assert_stated(&text);
    }
}
