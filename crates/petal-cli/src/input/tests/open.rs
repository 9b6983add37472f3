//! Opening: what is told of an input, moving on in it, and what cannot be read.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::super::error::Fault;
use super::super::{Input, LineOptions, Lines, is_terminal, total_size};
use super::{drain, naive, piped, read, write};
use crate::os::FileId;

#[test]
fn the_facts_of_a_file_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "a", b"1\n2\n");
    let link = dir.path().join("link");
    symlink("a", &link).unwrap();
    let input = Input::open(&link).unwrap();
    assert_eq!(input.name(), link.to_str().unwrap());
    assert_eq!(input.size(), Some(4));
    assert_eq!(input.id(), FileId::of(&fs::metadata(&path).unwrap()));
    assert!(!is_terminal(&path));
    assert_eq!(input.compression(), None);
}

#[test]
fn the_facts_of_a_pipe_are_few() {
    let input = piped(|pipe| pipe.write_all(b"x").unwrap());
    assert_eq!(input.size(), None);
    let (records, error) = drain(&mut Lines::new(input, &LineOptions::default()), 9);
    assert!(error.is_none());
    assert_eq!(records, naive(b"x", b'\n'));
}

#[test]
fn a_pipe_by_name_has_no_size() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"a\n").unwrap();
    drop(writer);
    use std::os::fd::AsRawFd;
    let input = Input::open(Path::new(&format!("/dev/fd/{}", reader.as_raw_fd()))).unwrap();
    assert_eq!(input.size(), None);
}

#[test]
fn what_is_no_readable_file_is_one_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("mis\nsing");
    for (path, why) in [
        (dir.path(), "is a directory; name a file"),
        (&missing, "cannot open: No such file or directory"),
        (Path::new(""), "cannot open: No such file or directory"),
    ] {
        let message = read(path).unwrap_err().to_string();
        assert!(message.contains(why), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
    let locked = write(dir.path(), "locked", b"x");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    // Root may read it all the same.
    if File::open(&locked).is_err() {
        let message = read(&locked).unwrap_err().to_string();
        assert!(
            message.contains("cannot open: Permission denied"),
            "{message}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_failing_read_is_an_error() {
    // Nothing is mapped at address 0.
    let message = read(Path::new("/proc/self/mem")).unwrap_err().to_string();
    assert!(
        message.starts_with("/proc/self/mem: cannot read on at byte 0: "),
        "{message}"
    );
}

#[test]
fn skipping_comes_to_the_same_records_however_it_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let mut data = Vec::new();
    for i in 0..60_000u32 {
        writeln!(data, "line {i}").unwrap();
    }
    let records = naive(&data, b'\n');
    let zstd = zstd::encode_all(&data[..], 1).unwrap();
    let plain = write(dir.path(), "plain", &data);
    let packed = write(dir.path(), "packed", &zstd);
    for skipped in [0usize, 1, 7, 15_000, 40_000, 59_999, 60_000] {
        let offset = if skipped == 0 {
            0
        } else {
            records[skipped - 1].2
        };
        let for_pipe = data.clone();
        let inputs = [
            Input::open(&plain).unwrap(),
            Input::open(&packed).unwrap(),
            // The reader may have enough before all is written.
            piped(move |pipe| drop(pipe.write_all(&for_pipe))),
        ];
        for mut input in inputs {
            // In two steps, so that the second starts in the middle.
            input.skip(offset / 3).unwrap();
            input.skip(offset - offset / 3).unwrap();
            let (rest, error) = drain(&mut Lines::new(input, &LineOptions::default()), 1000);
            assert!(error.is_none());
            assert_eq!(rest, records[skipped..]);
        }
    }
    let end = data.len() as u64;
    for path in [&plain, &packed] {
        for beyond in [end + 1, u64::MAX] {
            let mut input = Input::open(path).unwrap();
            input.skip(3).unwrap();
            let error = input.skip(beyond - 3).unwrap_err();
            assert!(
                matches!(error.fault, Fault::Short { wanted, has } if wanted == beyond && has == end),
                "{error}"
            );
        }
    }
}

#[test]
fn a_part_of_a_file_that_was_read_before_does_not_count() {
    use std::io::{Seek, SeekFrom};
    let dir = tempfile::tempdir().unwrap();
    let mut file = File::open(write(dir.path(), "a", b"before\nafter\n")).unwrap();
    file.seek(SeekFrom::Start(7)).unwrap();
    let mut input = Input::from_file(file, "standard input", None).unwrap();
    assert_eq!(input.size(), Some(6));
    assert!(input.skip(7).is_err());
}

#[test]
fn sizes_add_up_if_all_are_known() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (
        write(dir.path(), "a", b"12"),
        write(dir.path(), "b", b"345"),
    );
    assert_eq!(total_size(&[a.clone(), b.clone()]), Some(5));
    assert_eq!(total_size(&[]), None);
    for unknown in ["-", "/dev/null", "/missing"] {
        assert_eq!(total_size(&[a.clone(), unknown.into(), b.clone()]), None);
    }
}

#[test]
fn a_name_that_speaks_of_compression_on_an_empty_file_is_suspicious() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a.gz", "a.zst", "a.xz"] {
        let error = read(&write(dir.path(), name, b"")).unwrap_err().to_string();
        assert!(error.contains("cut short"), "{error}");
        // Text under such a name is text.
        assert_eq!(
            read(&write(dir.path(), name, b"x\n")).unwrap(),
            naive(b"x\n", b'\n')
        );
    }
    assert!(read(&write(dir.path(), "a", b"")).unwrap().is_empty());
}
