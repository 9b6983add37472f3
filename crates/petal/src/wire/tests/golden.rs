//! Packed filters and deltas of version 1 that must be read, and written, for
//! ever.
//!
//! They are in `tests/golden-wire` and are made of the filters in
//! `tests/golden`, with their keys. None is ever written again. A new one is
//! added to [`goldens`] and written by
//! `cargo test -p petal --lib writes_what_is_missing -- --ignored`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

fn path_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden-wire")
        .join(name)
        .with_extension("petalw")
}

fn filter(name: &str) -> AnyFilter {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let secret = Secret::new(std::array::from_fn(|i| u8::try_from(i).unwrap()));
    AnyFilter::open(folder.join(name).with_extension("petal"), Some(&secret)).unwrap()
}

/// Name of the file, what it is made of, and its bytes.
fn goldens() -> Vec<(String, AnyFilter, Option<AnyFilter>, Vec<u8>)> {
    let mut goldens = Vec::new();
    // Half full; a tenth; with labels; a keyed one; bits that are no whole
    // word; stages; no bit at all.
    for name in [
        "bloom-half-block",
        "bloom-folds",
        "bloom-1-region",
        "bloom-3-regions",
        "classic",
        "growable",
        "bloom-empty",
    ] {
        let filter = filter(name);
        let bytes = pack(&filter).unwrap();
        goldens.push((format!("packed-{name}"), filter, None, bytes));
    }
    // Few changes; many; new stages.
    for (name, more) in [("bloom-folds", 5), ("classic", 60), ("growable", 300)] {
        let old = filter(name);
        let mut new = filter(name);
        insert(&mut new, 0..more, 77);
        new.set_generation(2);
        let bytes = delta(&old, &new).unwrap();
        goldens.push((format!("delta-{name}"), new, Some(old), bytes));
    }
    goldens
}

#[test]
fn golden_files_are_written_and_read() {
    for (name, filter, old, bytes) in goldens() {
        let golden = fs::read(path_of(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(golden == bytes, "{name}");
        let hasher = Bits::meta(&filter).identity().hasher.clone();
        let secret = match &hasher {
            KeyHasher::Keyed { secret } => Some(secret),
            KeyHasher::Portable { .. } => None,
        };
        let back = match old {
            None => unpack(&golden, secret),
            Some(old) => apply_delta(&old, &golden),
        };
        assert!(
            back.unwrap().to_bytes().unwrap() == filter.to_bytes().unwrap(),
            "{name}"
        );
    }
}

#[test]
fn every_golden_file_is_tested() {
    let there: BTreeSet<_> = fs::read_dir(path_of("x").parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let tested = goldens().iter().map(|(name, ..)| path_of(name)).collect();
    assert_eq!(there, tested);
}

#[test]
#[ignore = "writes files, but none that is there"]
fn writes_what_is_missing() {
    fs::create_dir_all(path_of("x").parent().unwrap()).unwrap();
    for (name, _, _, bytes) in goldens() {
        if !path_of(&name).exists() {
            fs::write(path_of(&name), bytes).unwrap();
        }
    }
}
