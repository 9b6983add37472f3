//! What is no filter, or no whole one: said for what it is, and before it is
//! read or unpacked.

use std::io::Write;

use allocation_counter::measure;
use petal_interop::{
    ClassicProgram, Format, RawBits, RbloomHash, ReadOptions, open, read, recognise,
};

use crate::support::samples;

fn sample(name: &str) -> Vec<u8> {
    let found = samples().into_iter().find(|sample| sample.name == name);
    found.unwrap().bytes()
}

fn why(bytes: Vec<u8>, options: &ReadOptions) -> String {
    read(bytes, options).unwrap_err().to_string()
}

fn gzip(parts: &[&[u8]]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for part in parts {
        out.write_all(part).unwrap();
    }
    out.finish().unwrap()
}

/// A file of so many bytes that are not on the disk, after some that are.
fn sparse(folder: &tempfile::TempDir, head: &[u8], len: u64) -> std::path::PathBuf {
    let path = folder.path().join("sparse");
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(head).unwrap();
    file.set_len(len).unwrap();
    path
}

#[test]
fn compressed_data_of_no_format_are_not_unpacked() {
    let zeros = vec![0; 32 << 20];
    let named = ReadOptions::new().format(Format::Guava);
    for (options, text) in [
        (&ReadOptions::new(), "not a filter of a known system"),
        (&named, "guava"),
    ] {
        let bytes = gzip(&[&zeros]);
        let info = measure(|| {
            let error = why(bytes, options);
            assert!(error.contains(text), "{error}");
        });
        assert!(info.bytes_max < 1 << 20, "{}", info.bytes_max);
    }
}

#[test]
fn memory_bounds_what_is_unpacked_and_what_is_read() {
    // Guava's header for 16 MiB.
    let head = [1, 5, 0, 0x20, 0, 0];
    let zeros = vec![0; 16 << 20];
    let bytes = gzip(&[&head, &zeros]);
    let options = ReadOptions::new().memory(8 << 20);
    assert!(read(bytes.clone(), &ReadOptions::new().memory(64 << 20)).is_ok());
    let info = measure(|| {
        let error = why(bytes, &options);
        assert!(error.contains("memory allows"), "{error}");
    });
    assert!(info.bytes_max < 1 << 20, "{}", info.bytes_max);

    let folder = tempfile::tempdir().unwrap();
    let path = sparse(&folder, &head, 6 + (16 << 20));
    let info = measure(|| {
        let error = open(&path, &options).unwrap_err().to_string();
        assert!(error.contains("allow more"), "{error}");
    });
    assert!(info.bytes_max < 1 << 20, "{}", info.bytes_max);
    assert!(open(&path, &ReadOptions::new()).is_ok());
}

#[test]
fn a_file_of_a_wrong_format_is_not_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = sparse(&folder, b"", 3 << 30);
    for format in Format::ALL {
        let options = ReadOptions::new()
            .rbloom_hash(RbloomHash::Sha256)
            .classic(ClassicProgram::JavaA, RawBits::default())
            .format(format);
        let info = measure(|| assert!(open(&path, &options).is_err(), "{format}"));
        assert!(info.bytes_max < 1 << 20, "{format}: {}", info.bytes_max);
    }
    let info = measure(|| assert!(open(&path, &ReadOptions::new()).is_err()));
    assert!(info.bytes_max < 1 << 20, "{}", info.bytes_max);
}

/// The header of one format, cut off, is not that of another.
#[test]
fn a_file_that_is_cut_off_is_of_its_own_format() {
    let mut told = 0;
    for sample in samples() {
        let whole = sample.bytes();
        if recognise(&whole).is_none() {
            continue;
        }
        let format = sample.open().format();
        for len in (0..whole.len().min(200)).chain([whole.len() - 1]) {
            let cut = &whole[..len];
            assert!(
                recognise(cut).is_none_or(|found| found == format),
                "{}: {len} bytes are of {:?}",
                sample.path.display(),
                recognise(cut)
            );
        }
        // Those are told by their end, or have bytes attached that may be cut off.
        let by_end = format == Format::Pyprobables
            || ["plain_with_data", "flor_n201_p0.03"].contains(&sample.name.as_str());
        if by_end || whole.starts_with(b"{") || whole.starts_with(&[0x1f, 0x8b]) {
            continue;
        }
        let error = why(whole[..whole.len() - 1].to_vec(), &ReadOptions::new());
        assert!(
            error.contains(&format!("filter of {format}")) && error.contains("there are"),
            "{}: {error}",
            sample.path.display()
        );
        told += 1;
    }
    assert!(told > 20, "{told}");

    let head = sample("plain_n200_p0.03")[..32].to_vec();
    let error = why(head, &ReadOptions::new());
    assert!(
        error.contains("dcso") && error.contains("48 bytes and there are 32"),
        "{error}"
    );
}

#[test]
fn a_wrong_field_of_json_is_named() {
    let text = String::from_utf8(sample("bloom_n200_p0.03")).unwrap();
    for (from, to, parts) in [
        (
            "\"_nbHashes\":",
            "\"_nbHashes\":-",
            ["_nbHashes is -", "0 or more"],
        ),
        (
            "\"_size\":",
            "\"_size\":\"x\",\"was\":",
            ["_size is \"x\"", "integer"],
        ),
        (
            "\"_filter\":",
            "\"filter\":",
            ["_filter is missing", "bit set"],
        ),
        (
            "\"BloomFilter\"",
            "\"CuckooBloomFilter\"",
            ["type is Cuckoo", "CountingBloomFilter"],
        ),
        (
            "\"content\":\"",
            "\"content\":\"*",
            ["bit set is", "base64"],
        ),
        (
            "\"_seed\":",
            "\"_seed\":1.5,\"was\":",
            ["_seed is 1.5", "an integer"],
        ),
    ] {
        assert!(text.contains(from), "{from}");
        let error = why(text.replacen(from, to, 1).into_bytes(), &ReadOptions::new());
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    let error = why(text.as_bytes()[..100].to_vec(), &ReadOptions::new());
    assert!(
        error.contains("npm") && error.contains("cut off"),
        "{error}"
    );
}

/// The least raw bits that can be a program's.
#[test]
fn raw_bits_are_as_long_as_the_program_has() {
    let short = vec![1; 1000];
    for program in ["url-dedup-c", "spider-c", "php:100000:3"] {
        let options = ReadOptions::new()
            .format(Format::Classic)
            .classic(program.parse().unwrap(), RawBits::default());
        assert!(why(short.clone(), &options).contains("there are 1000"));
    }
    let options = ReadOptions::new()
        .format(Format::Classic)
        .classic(ClassicProgram::JavaA, RawBits::default());
    // Java's BitSet drops zeros at its end, and only there.
    assert!(read(short.clone(), &options).is_ok());
    let ended = [short, vec![0; 8]].concat();
    assert!(why(ended, &options).contains("there are 1008"));
}
