//! Tests of the input as a whole: files in, records out.

mod decode;
mod lines;
mod open;

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::{Batch, Input, InputError, LineOptions, Lines};

/// A record, whether it had its terminator, and the offset after it.
type Record = (Vec<u8>, bool, u64);

/// Splits as simply as possible: what `Lines` must agree with.
fn naive(data: &[u8], terminator: u8) -> Vec<Record> {
    let mut records = Vec::new();
    let mut record = Vec::new();
    for (i, &byte) in data.iter().enumerate() {
        if byte == terminator {
            records.push((std::mem::take(&mut record), true, i as u64 + 1));
        } else {
            record.push(byte);
        }
    }
    if !record.is_empty() {
        records.push((record, false, data.len() as u64));
    }
    records
}

/// Reads all that comes before the end or an error, and checks that a batch agrees with
/// itself.
fn drain(lines: &mut Lines, max_records: usize) -> (Vec<Record>, Option<InputError>) {
    let mut records = Vec::new();
    let mut batch = Batch::new(max_records);
    loop {
        match lines.next_batch(&mut batch) {
            Err(e) => {
                assert!(batch.is_empty());
                // An error stays an error.
                assert!(lines.next_batch(&mut batch).is_err());
                return (records, Some(e));
            }
            Ok(false) => {
                assert!(batch.is_empty());
                assert!(!lines.next_batch(&mut batch).unwrap());
                return (records, None);
            }
            Ok(true) => {}
        }
        assert!((1..=max_records).contains(&batch.len()));
        assert_eq!(batch.iter().len(), batch.len());
        let mut all = Vec::new();
        for (i, record) in batch.iter().enumerate() {
            assert_eq!(record, batch.get(i));
            let raw = batch.raw(i..i + 1);
            assert_eq!(&raw[..record.len()], record);
            assert_eq!(
                raw.len() - record.len(),
                usize::from(batch.is_terminated(i))
            );
            all.extend_from_slice(raw);
            records.push((record.to_vec(), batch.is_terminated(i), batch.end_offset(i)));
        }
        assert_eq!(batch.raw(0..batch.len()), all);
        assert!(batch.raw(batch.len()..batch.len()).is_empty());
    }
}

/// All records of a file.
fn read(path: &Path) -> Result<Vec<Record>, InputError> {
    read_with(path, &LineOptions::default())
}

fn read_with(path: &Path, options: &LineOptions) -> Result<Vec<Record>, InputError> {
    let mut lines = Lines::new(Input::open(path)?, options);
    let (records, error) = drain(&mut lines, 100);
    error.map_or(Ok(records), Err)
}

/// The bytes that a file decodes to, as far as it does, and the error that ended it. The
/// terminator does not occur in what the tests compress.
fn decode(path: &Path) -> (Vec<u8>, Option<InputError>) {
    let mut input = match Input::open(path) {
        Ok(input) => input,
        Err(e) => return (Vec::new(), Some(e)),
    };
    let mut data = Vec::new();
    let mut buffer = [0; 1000];
    loop {
        match super::decode::Source::read(&mut input.decoder, &mut buffer) {
            Ok(0) => return (data, None),
            Ok(read) => data.extend_from_slice(&buffer[..read]),
            Err(fault) => {
                return (
                    data,
                    Some(InputError {
                        name: input.name,
                        fault,
                    }),
                );
            }
        }
    }
}

fn write(dir: &Path, name: &str, data: &[u8]) -> std::path::PathBuf {
    let path = dir.join(name);
    fs::write(&path, data).unwrap();
    path
}

/// An input that reads from a pipe, into which `feed` writes on another thread.
fn piped(feed: impl FnOnce(&mut dyn Write) + Send + 'static) -> Input {
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::thread::spawn(move || feed(&mut writer));
    Input::from_file(File::from(OwnedFd::from(reader)), "pipe", None).unwrap()
}
