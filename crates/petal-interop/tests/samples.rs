//! Files that the real software made: recognised, and answered as it does.

use petal_interop::{Count, Counted, recognise};

use crate::support::{Sample, folder, rows, samples};

#[test]
fn all_recorded_answers_are_given() {
    let samples = samples();
    for sample in &samples {
        let filter = sample.open();
        for member in sample.members() {
            let found = sample
                .form
                .key(&member, |key| filter.contains(key))
                .unwrap();
            assert!(found, "{}: {member}", sample.path.display());
        }
        let mut found = sample.nonmembers();
        found.retain(|line| sample.form.key(line, |key| filter.contains(key)).unwrap());
        assert_eq!(found, sample.positives(), "{}", sample.path.display());
    }
    // None was overlooked.
    assert_eq!(samples.len(), SAMPLES);
}

/// Files under `vectors/foreign`.
const SAMPLES: usize = 26;

#[test]
fn files_are_known_by_their_bytes() {
    for sample in samples() {
        let expected = sample.open().format();
        let bytes = sample.bytes();
        if !bytes.starts_with(&[0x1f, 0x8b]) {
            let known = recognise(&bytes);
            assert_eq!(known, Some(expected), "{}", sample.path.display());
        }
    }
    for nothing in [
        &b""[..],
        b"1",
        b"member-0000\nmember-0001\n",
        &[0; 64],
        &[1; 64],
        b"{}",
    ] {
        assert_eq!(recognise(nothing), None, "{nothing:?}");
    }
}

#[test]
fn what_was_read_is_written_back() {
    for sample in samples() {
        let filter = sample.open();
        let bytes = sample.bytes();
        let written = filter.to_bytes().unwrap();
        if bytes.starts_with(&[0x1f, 0x8b]) {
            // Compressors differ.
            assert!(
                written.starts_with(&[0x1f, 0x8b]),
                "{}",
                sample.path.display()
            );
            let again = petal_interop::read(written, &sample.options).unwrap();
            assert_eq!(plain(&*again), plain(&*filter));
        } else {
            assert!(written == bytes, "{}", sample.path.display());
        }
    }
}

fn plain(filter: &dyn petal_interop::ForeignFilter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.write_as(filter.encodings()[0], &mut bytes).unwrap();
    bytes
}

fn named(system: &str, name: &str) -> Sample {
    let mut all = samples();
    all.retain(|sample| sample.system == system && sample.name == name);
    all.swap_remove(0)
}

#[test]
fn parameters_are_those_that_the_makers_report() {
    for row in rows(&folder("guava").join("samples.tsv")) {
        let filter = named("guava", &row[0]).open();
        let parameters = filter.parameters();
        assert_eq!(parameters.positions.to_string(), row[4], "{}", row[0]);
        assert_eq!(parameters.bits.to_string(), row[5], "{}", row[0]);
        let ones = filter.fill() * parameters.bits as f64;
        assert_eq!(ones.round().to_string(), row[6], "{}", row[0]);
        // approximateElementCount
        let estimate = filter.estimated_len().unwrap();
        assert_eq!(estimate.round().to_string(), row[11], "{}", row[0]);
    }
    for row in rows(&folder("dcso").join("samples.tsv")) {
        let name = row[0].replace(".bloom", "").replace(".gz", "");
        let filter = named("dcso", &name).open();
        let parameters = filter.parameters();
        assert_eq!(parameters.items.unwrap().to_string(), row[1], "{name}");
        let count = Count {
            keys: row[2].parse().unwrap(),
            counted: Counted::NewKeys,
        };
        assert_eq!(filter.count(), Some(count), "{name}");
        assert_eq!(parameters.error, row[3].parse().ok(), "{name}");
        assert_eq!(parameters.bits.to_string(), row[4], "{name}");
        assert_eq!(parameters.positions.to_string(), row[5], "{name}");
    }
    for row in rows(&folder("bits-and-blooms").join("samples.tsv")) {
        let parameters = named("bits-and-blooms", &row[0]).open().parameters();
        assert_eq!(parameters.bits.to_string(), row[1], "{}", row[0]);
        assert_eq!(parameters.positions.to_string(), row[2], "{}", row[0]);
    }
}

/// An absent key is found as often as `error_now` says: within 5 sigma.
#[test]
fn errors_are_as_estimated() {
    for sample in samples() {
        let filter = sample.open();
        let (tried, found) = (sample.nonmembers().len(), sample.positives().len());
        let error = filter.error_now();
        let expected = error * tried as f64;
        let sigma = (expected * (1.0 - error)).sqrt();
        let far = (found as f64 - expected).abs();
        assert!(
            far <= 5.0 * sigma + 1.0,
            "{}: {found} found, {expected} expected",
            sample.path.display()
        );
    }
}
