//! Damaged and forged files: an error or an answer, never a panic, and never
//! more memory than twice the decompressed file and a MiB.

use std::io::Read;

use allocation_counter::measure;
use petal_interop::{ForeignKey, Format, ReadOptions, read, recognise};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::support::{Sample, samples};

/// Bytes that reading may take beyond twice the file.
const SLACK: u64 = 1 << 20;

/// How much of a file is damaged.
#[derive(Clone, Copy, PartialEq)]
enum Extent {
    /// Of files up to 2500 bytes every place, of longer ones every place of both
    /// ends and a sample of the middle.
    Sampled,
    Everywhere,
}

/// The length once decompressed, as far as that goes.
fn decoded_len(bytes: &[u8]) -> u64 {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return bytes.len() as u64;
    }
    let mut decoded = Vec::new();
    // What comes before the damage counts.
    let _ = flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut decoded);
    decoded.len().max(bytes.len()) as u64
}

/// Reads bytes and uses what they turn out to be.
fn survive(bytes: &[u8], options: &ReadOptions) {
    let limit = 2 * decoded_len(bytes) + SLACK;
    let copy = bytes.to_vec();
    let mut filter = None;
    let info = measure(|| filter = read(copy, options).ok());
    assert!(
        info.bytes_max <= limit,
        "{} bytes for {}",
        info.bytes_max,
        bytes.len()
    );
    let _ = recognise(bytes);
    let Some(mut filter) = filter else { return };
    let _ = (filter.parameters(), filter.count(), filter.fill());
    let (error, _) = (filter.error_now(), filter.estimated_len());
    assert!((0.0..=1.0).contains(&error), "{error}");
    for key in [
        ForeignKey::Text("member-0000"),
        ForeignKey::Bytes(b"\xff\x00"),
        ForeignKey::I64(7),
        ForeignKey::Utf16(&[0xd800]),
    ] {
        let _ = filter.contains(key);
        if filter.insert(key).is_ok() {
            assert!(filter.contains(key).unwrap(), "{key:?} was lost");
        }
    }
    // A forged growth makes the next part of a chain as large as it says.
    if filter.parameters().bits / 8 > limit {
        return;
    }
    // What is written can be read.
    if let Ok(written) = filter.to_bytes() {
        let options = options.clone().format(filter.format());
        if let Err(error) = read(written, &options) {
            panic!("{}: {error}", filter.format());
        }
    }
}

/// Places to damage.
fn places(len: usize, extent: Extent) -> Vec<usize> {
    if len <= 2500 || extent == Extent::Everywhere {
        return (0..len).collect();
    }
    let ends = (0..160).chain(len - 160..len);
    let middle = (160..len - 160).step_by(len / 150 + 1);
    ends.chain(middle).collect()
}

fn damage(sample: &Sample, extent: Extent) {
    let bytes = sample.bytes();
    let format = sample.open().format();
    let named = sample.options.clone().format(format);
    for place in places(bytes.len(), extent) {
        for options in [&sample.options, &named] {
            survive(&bytes[..place], options);
        }
        let mut flipped = bytes.clone();
        for bit in 0..8 {
            flipped[place] ^= 1 << bit;
            // Taken for what it was even if it no longer looks like it.
            survive(&flipped, &named);
            flipped[place] ^= 1 << bit;
        }
    }
    let mut longer = bytes;
    longer.extend_from_slice(b"more");
    survive(&longer, &named);
}

#[test]
fn damaged_samples_are_survived() {
    for sample in samples() {
        damage(&sample, Extent::Sampled);
    }
}

#[test]
#[ignore = "takes minutes: ./test long"]
fn samples_damaged_at_every_place_are_survived() {
    for sample in samples() {
        damage(&sample, Extent::Everywhere);
    }
}

/// Damages .parquet files: their footers and filters, and as much as asked of the rest.
fn damage_parquet(extent: Extent) {
    for file in [
        "pyarrow",
        "pyarrow_overfull",
        "pyarrow_2rg_zstd",
        "parquet_java",
    ] {
        let path = crate::support::folder("parquet").join(format!("{file}.parquet"));
        let bytes = std::fs::read(path).unwrap();
        let options = ReadOptions::new().column("s");
        let tail = bytes.len().saturating_sub(1500);
        let step = if extent == Extent::Everywhere { 1 } else { 97 };
        for place in (0..tail).step_by(step).chain(tail..bytes.len()) {
            survive(&bytes[..place], &options);
            let mut flipped = bytes.clone();
            for bit in 0..8 {
                flipped[place] ^= 1 << bit;
                survive(&flipped, &options);
                flipped[place] ^= 1 << bit;
            }
        }
    }
}

#[test]
fn damaged_parquet_files_are_survived() {
    damage_parquet(Extent::Sampled);
}

#[test]
#[ignore = "takes minutes: ./test long"]
fn parquet_files_damaged_at_every_place_are_survived() {
    damage_parquet(Extent::Everywhere);
}

#[test]
fn a_truncated_file_is_no_filter() {
    for sample in samples() {
        let bytes = sample.bytes();
        let named = sample.options.clone().format(sample.open().format());
        // Attached bytes may be cut off unseen, and rbloom's bits go to the end.
        if sample.system == "rbloom" {
            continue;
        }
        if ["plain_with_data", "flor_n201_p0.03"].contains(&sample.name.as_str()) {
            continue;
        }
        for cut in [1, 8, bytes.len() / 2, bytes.len()] {
            let short = bytes[..bytes.len() - cut].to_vec();
            assert!(
                read(short, &named).is_err(),
                "{} - {cut}",
                sample.path.display()
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        rng_seed: RngSeed::Fixed(20_261_130),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survive(&bytes, &ReadOptions::new());
        for format in Format::ALL {
            survive(&bytes, &ReadOptions::new().format(format));
        }
    }

    /// A header of small and huge words, of either order.
    #[test]
    fn forged_headers_are_survived(
        words in prop::collection::vec(
            prop_oneof![
                0u64..300,
                Just(u64::MAX),
                Just(1 << 63),
                Just(1 << 40),
                Just(0.01f64.to_bits()),
                any::<u64>(),
            ],
            1..9,
        ),
        big in any::<bool>(),
        body in 0usize..100,
    ) {
        let each = words.iter().flat_map(|word| if big { word.to_be_bytes() } else { word.to_le_bytes() });
        let bytes: Vec<u8> = each.chain(std::iter::repeat_n(0xff, body)).collect();
        survive(&bytes, &ReadOptions::new());
        for format in Format::ALL {
            survive(&bytes, &ReadOptions::new().format(format));
        }
    }
}

/// Bytes that decompress to more than their header accounts for.
#[test]
fn a_bomb_is_not_unpacked() {
    use std::io::Write;
    let sample = samples()
        .into_iter()
        .find(|sample| sample.name == "plain_n200_p0.03")
        .unwrap();
    let mut head = sample.bytes();
    head.truncate(300);
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    bomb.write_all(&head).unwrap();
    for _ in 0..66 {
        bomb.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    let info = measure(|| {
        let error = read(bomb, &ReadOptions::new()).unwrap_err();
        assert!(error.to_string().contains("go on past"), "{error}");
    });
    assert!(info.bytes_max < SLACK, "{}", info.bytes_max);
}
