//! Files that the real software made: recognised, and answered as it does.

use petal_interop::{Count, Counted, ForeignKey, ParquetFilters, ReadOptions, recognise};

use crate::support::{Form, Sample, folder, lines, rows, samples};

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
const SAMPLES: usize = 79;

#[test]
fn files_are_known_by_their_bytes() {
    for sample in samples() {
        let expected = sample.open().format();
        let bytes = sample.bytes();
        if sample.tells() && !bytes.starts_with(&[0x1f, 0x8b]) {
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
            // Compressors differ, and only DCSO's format has one of its own.
            assert_eq!(
                written.starts_with(&[0x1f, 0x8b]),
                sample.system == "dcso",
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
        // Start values of its hashes are 31 apart, which is far from random: twice
        // the error of a counting filter.
        if sample.system == "pyprobables" {
            continue;
        }
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

#[test]
fn every_column_and_row_group_of_a_parquet_file_answers() {
    for row in rows(&folder("parquet").join("samples.tsv")) {
        let (file, group, column) = (&row[0], row[1].parse::<usize>().unwrap(), &row[2]);
        let path = folder("parquet").join(format!("{file}.parquet"));
        let options = ReadOptions::new().column(column).row_group(group);
        if row[3] == "none" {
            let error = petal_interop::open(&path, &options).unwrap_err();
            assert!(error.to_string().contains("Bloom filters: s"), "{error}");
            continue;
        }
        let filter = petal_interop::open(&path, &options).unwrap();
        let form = match column.as_str() {
            "i32" => Form::I32,
            "i64" => Form::I64,
            "f64" => Form::F64,
            "f32" => Form::F32,
            "fixed8" => Form::Fixed8,
            _ => Form::Text,
        };
        let asked = |line: &String| form.key(line, |key| filter.contains(key)).unwrap();
        let members = lines(&folder("parquet").join(form.list("members")));
        let members = match row[7].as_str() {
            "100" => &members[100 * group..100 * (group + 1)],
            _ => &members,
        };
        assert!(members.iter().all(asked), "{row:?}");
        let nonmembers = lines(&folder("parquet").join(form.list("nonmembers")));
        let found: Vec<_> = nonmembers.into_iter().filter(asked).collect();
        assert_eq!(found.len().to_string(), row[10], "{row:?}");
        let name = format!("{file}_rg{group}_{column}");
        if let Ok(positives) =
            std::fs::read_to_string(folder("parquet").join(format!("{name}.positives.txt")))
        {
            assert_eq!(found, positives.lines().collect::<Vec<_>>(), "{row:?}");
            let alone = std::fs::read(folder("parquet").join(format!("{name}.bloom"))).unwrap();
            assert!(filter.to_bytes().unwrap() == alone, "{row:?}");
        }
    }
}

#[test]
fn all_row_groups_of_a_column_are_asked() {
    let path = folder("parquet").join("pyarrow_2rg_zstd.parquet");
    // Only one column has filters.
    let filter = petal_interop::open(path, &ReadOptions::new()).unwrap();
    let filters: &ParquetFilters = filter.downcast_ref().unwrap();
    assert_eq!(filters.column(), "s");
    assert_eq!(filters.row_groups().collect::<Vec<_>>(), [0, 1]);
    for member in lines(&folder("parquet").join("members.txt")) {
        assert!(filter.contains(ForeignKey::Text(&member)).unwrap());
    }
    let error = filter.contains(ForeignKey::I64(1)).unwrap_err();
    assert!(
        error.to_string().contains("as the column stores"),
        "{error}"
    );
}
