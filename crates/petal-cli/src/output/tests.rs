//! Tests of the outputs, each against a real file system.

use std::fs;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::thread;

use super::*;
use crate::input::{Batch, Input, InputError, LineOptions, Lines};

/// The mode bits of a file.
fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// The names in a directory, in order.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// What a file decodes to.
fn decoded(path: &Path) -> Result<Vec<u8>, InputError> {
    let mut lines = Lines::new(Input::open(path)?, &LineOptions::default());
    let mut batch = Batch::new(100);
    let mut data = Vec::new();
    while lines.next_batch(&mut batch)? {
        data.extend_from_slice(batch.raw(0..batch.len()));
    }
    Ok(data)
}

fn put(path: &Path, data: &[u8]) -> Result<(), OutputError> {
    let mut output = Output::create(path)?;
    output.write(data)?;
    output.finish()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn a_file_appears_when_it_is_finished() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let mut output = Output::create(&path).unwrap();
    output.write(b"a\n").unwrap();
    output.flush().unwrap();
    assert!(!path.exists());
    assert_eq!(output.durable_len().unwrap(), None);
    assert_eq!(output.id(), None);
    output.write(&[b'b'; 1_000_000]).unwrap();
    output.finish().unwrap();
    assert_eq!(
        fs::read(&path).unwrap(),
        [&b"a\n"[..], &[b'b'; 1_000_000]].concat()
    );
    assert_eq!(names(dir.path()), ["out"]);
    let usual = dir.path().join("usual");
    File::create(&usual).unwrap();
    assert_eq!(mode(&path), mode(&usual));
}

#[test]
fn an_earlier_file_is_replaced_as_a_whole_or_not_at_all() {
    for kept in [0o600, 0o640, 0o755] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        fs::write(&path, b"earlier").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(kept)).unwrap();
        let mut output = Output::create(&path).unwrap();
        output.write(&[b'x'; 1_000_000]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"earlier");
        drop(output);
        assert_eq!(fs::read(&path).unwrap(), b"earlier");
        assert_eq!(names(dir.path()), ["out"]);

        let mut output = Output::create(&path).unwrap();
        output.write(b"later").unwrap();
        output.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"later");
        assert_eq!(mode(&path), kept);
        assert_eq!(names(dir.path()), ["out"]);

        // The name is taken by something that cannot be replaced.
        let output = Output::create(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let error = output.finish().unwrap_err().to_string();
        assert!(error.contains("cannot complete"), "{error}");
        assert_eq!(names(dir.path()), ["out"]);
    }
}

#[test]
fn symbolic_links_are_followed() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("sub")).unwrap();
    fs::write(at("sub/real"), b"earlier").unwrap();
    symlink("sub/real", at("link")).unwrap();
    symlink("link", at("link2")).unwrap();
    put(&at("link2"), b"later").unwrap();
    assert_eq!(fs::read(at("sub/real")).unwrap(), b"later");
    // To a name that does not exist yet.
    symlink("sub/new", at("dangling")).unwrap();
    put(&at("dangling"), b"new").unwrap();
    assert_eq!(fs::read(at("sub/new")).unwrap(), b"new");
    assert!(
        ["link", "link2", "dangling"]
            .iter()
            .all(|name| at(name).is_symlink())
    );
    assert_eq!(names(&at("sub")), ["new", "real"]);
    symlink("loop", at("loop")).unwrap();
    assert!(put(&at("loop"), b"x").is_err());
}

#[test]
fn what_cannot_be_written_is_one_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("sub")).unwrap();
    symlink("sub", at("link")).unwrap();
    let (directory, missing) = ("is a directory; name a file", "No such file or directory");
    for (path, when_new, when_kept) in [
        (at("sub"), directory, directory),
        (at("link"), directory, directory),
        (at(".."), directory, directory),
        (at("new/"), directory, missing),
        (at("missing/out"), missing, missing),
        (PathBuf::new(), missing, missing),
    ] {
        let new = put(&path, b"x").unwrap_err();
        let kept = Output::in_place(&path, Some(0)).err().unwrap();
        for (error, why) in [(new, when_new), (kept, when_kept)] {
            let message = error.to_string();
            assert!(message.contains(why), "{message}");
            assert!(message.contains(&display_name(&path)), "{message}");
            assert!(!error.is_broken_pipe());
        }
    }
    assert_eq!(names(dir.path()), ["link", "sub"]);
    if !is_root() {
        fs::write(at("locked"), b"x").unwrap();
        fs::set_permissions(at("locked"), fs::Permissions::from_mode(0o444)).unwrap();
        let message = put(&at("locked"), b"y").unwrap_err().to_string();
        assert!(
            message.starts_with("cannot replace /") && message.contains("locked: Permission"),
            "{message}"
        );
        assert!(message.contains("; allow it"), "{message}");
        fs::set_permissions(at("sub"), fs::Permissions::from_mode(0o555)).unwrap();
        let message = put(&at("sub/out"), b"y").unwrap_err().to_string();
        assert!(
            message.contains("temporary file beside") && message.contains("out: Permission"),
            "{message}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["full", "full.gz", "full.zst", "full.xz"] {
        let path = dir.path().join(name);
        symlink("/dev/full", &path).unwrap();
        let mut output = Output::create(&path).unwrap();
        let mut data = 1u64;
        let mut written = Ok(());
        for _ in 0..200_000 {
            data = data.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            written = written.and_then(|()| output.write(&data.to_le_bytes()[3..]));
        }
        let error = written.and_then(|()| output.finish()).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains(name) && message.contains("No space left"),
            "{message}"
        );
        assert!(message.contains("; free some"), "{message}");
        assert!(!error.is_broken_pipe());
    }
    // Little data fails too, only later.
    let path = dir.path().join("full");
    assert!(put(&path, b"x").is_err());
    let mut output = Output::create(&path).unwrap();
    output.write(b"x").unwrap();
    assert!(output.flush().is_err());
}

#[test]
fn a_reader_that_went_away_is_recognised() {
    use anyhow::Context;
    for format in [None, Some(Compression::Zstd)] {
        let (reader, writer) = io::pipe().unwrap();
        let mut output = Output::stream(writer.as_fd(), "pipe", format).unwrap();
        drop(reader);
        output.write(b"x").unwrap();
        let error = output.finish().unwrap_err();
        assert!(error.is_broken_pipe());
        let error = Err::<(), _>(error).context("while writing").unwrap_err();
        assert!(is_broken_pipe(&error));
    }
    // A pipe to somewhere else is not the output.
    let other = io::Error::from(io::ErrorKind::BrokenPipe);
    assert!(!is_broken_pipe(&anyhow::Error::from(other)));
}

#[test]
fn what_is_no_regular_file_is_written_to() {
    put(Path::new("/dev/null"), b"x").unwrap();
    let (mut reader, writer) = io::pipe().unwrap();
    let by_name = PathBuf::from(format!("/dev/fd/{}", writer.as_raw_fd()));
    let mut output = Output::create(&by_name).unwrap();
    drop(writer);
    assert!(output.id().is_none() && !output.is_terminal());
    output.write(b"through").unwrap();
    assert_eq!(output.durable_len().unwrap(), None);
    let mut first = [0; 7];
    reader.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"through");
    output.write(b" the pipe").unwrap();
    output.finish().unwrap();
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, " the pipe");
}

#[test]
fn a_stream_without_blocking_is_waited_for() {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let (mut reader, writer) = io::pipe().unwrap();
    fcntl_setfl(&writer, fcntl_getfl(&writer).unwrap() | OFlags::NONBLOCK).unwrap();
    let mut output = Output::stream(writer.as_fd(), "pipe", None).unwrap();
    drop(writer);
    let data = vec![b'x'; 3_000_000];
    let reading = thread::spawn(move || {
        let mut all = Vec::new();
        reader.read_to_end(&mut all).unwrap();
        all
    });
    output.write(&data).unwrap();
    output.finish().unwrap();
    assert!(reading.join().unwrap() == data);
}

#[test]
fn a_stream_that_is_given_up_delivers_what_it_has_but_never_looks_complete() {
    for format in [
        None,
        Some(Compression::Gzip),
        Some(Compression::Xz),
        Some(Compression::Zstd),
    ] {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut output = Output::stream(writer.as_fd(), "pipe", format).unwrap();
        drop(writer);
        output.write(b"first\n").unwrap();
        output.flush().unwrap();
        output.write(b"second\n").unwrap();
        drop(output);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("got");
        let mut got = Vec::new();
        reader.read_to_end(&mut got).unwrap();
        fs::write(&path, &got).unwrap();
        if format.is_none() {
            assert_eq!(got, b"first\nsecond\n");
        } else {
            let error = decoded(&path).unwrap_err().to_string();
            assert!(error.contains("cut short"), "{error}");
        }
    }
}

#[test]
fn the_name_asks_for_compression() {
    let dir = tempfile::tempdir().unwrap();
    let data = b"line\n".repeat(100_000);
    for (name, mark) in [
        ("a.gz", &[0x1f, 0x8b][..]),
        ("a.zst", &[0x28, 0xb5, 0x2f, 0xfd]),
        ("a.xz", b"\xfd7zXZ\0"),
        ("a.txt", b"line"),
    ] {
        let path = dir.path().join(name);
        put(&path, &data).unwrap();
        let file = fs::read(&path).unwrap();
        assert!(file.starts_with(mark), "{name}");
        assert!(file.len() < 10_000 || name == "a.txt", "{name}");
        assert!(decoded(&path).unwrap() == data);
        // Reproducible: no time, no name inside.
        put(&path, &data).unwrap();
        assert!(fs::read(&path).unwrap() == file);

        put(&path, b"").unwrap();
        assert!(decoded(&path).unwrap().is_empty());
        assert_eq!(fs::read(&path).unwrap().is_empty(), name == "a.txt");
    }
}

#[test]
fn a_file_in_place_can_be_relied_on_up_to_each_durable_length() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "a.gz", "a.zst", "a.xz"] {
        let path = dir.path().join(name);
        fs::write(&path, b"of an earlier run, longer than what follows now").unwrap();
        let mut output = Output::in_place(&path, None).unwrap();
        assert_eq!(output.id(), Some(FileId::of(&fs::metadata(&path).unwrap())));
        let mut lengths = vec![(output.durable_len().unwrap().unwrap(), Vec::new())];
        let mut data = Vec::new();
        for part in 0..4u32 {
            for line in 0..10 * part {
                let line = format!("part {part} line {line}\n");
                output.write(line.as_bytes()).unwrap();
                data.extend(line.as_bytes());
            }
            let len = output.durable_len().unwrap().unwrap();
            assert_eq!(len, fs::metadata(&path).unwrap().len());
            assert!(decoded(&path).unwrap() == data);
            // Nothing new, nothing written.
            assert_eq!(output.durable_len().unwrap(), Some(len));
            lengths.push((len, data.clone()));
        }
        // The run dies: what came after the last save is of no account.
        output.write(b"lost\n").unwrap();
        output.flush().unwrap();
        drop(output);
        for (len, data) in lengths.into_iter().rev() {
            let mut output = Output::in_place(&path, Some(len)).unwrap();
            output.write(b"and on\n").unwrap();
            output.finish().unwrap();
            assert!(
                decoded(&path).unwrap() == [&data[..], b"and on\n"].concat(),
                "{name}"
            );
            assert!(fs::metadata(&path).unwrap().len() > len);
        }
    }
    assert_eq!(names(dir.path()), ["a", "a.gz", "a.xz", "a.zst"]);
}

#[test]
fn a_file_in_place_without_any_bytes_still_decodes() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "a.gz", "a.zst", "a.xz"] {
        let path = dir.path().join(name);
        Output::in_place(&path, None).unwrap().finish().unwrap();
        assert!(decoded(&path).unwrap().is_empty());
        Output::in_place(&path, Some(0)).unwrap().finish().unwrap();
        assert!(decoded(&path).unwrap().is_empty());
    }
}

#[test]
fn a_file_that_cannot_be_continued_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    fs::write(&path, b"12345").unwrap();
    let message = Output::in_place(&path, Some(6)).err().unwrap().to_string();
    assert!(
        message.contains("has 5 bytes, but 6 were written"),
        "{message}"
    );
    assert_eq!(fs::read(&path).unwrap(), b"12345");
    let missing = Output::in_place(&dir.path().join("missing"), Some(0))
        .err()
        .unwrap();
    assert!(
        missing.to_string().contains("missing: No such file"),
        "{missing}"
    );
    let device = Output::in_place(Path::new("/dev/null"), None)
        .err()
        .unwrap();
    assert!(
        device.to_string().contains("is no regular file"),
        "{device}"
    );
    assert_eq!(names(dir.path()), ["out"]);
}

#[test]
fn bytes_for_the_terminal_do_not_wait_for_more() {
    let (mut reader, writer) = io::pipe().unwrap();
    let mut output = Output::stream(writer.as_fd(), "terminal", None).unwrap();
    output.is_terminal = true;
    output.write(b"half a li").unwrap();
    output.write(b"ne\n").unwrap();
    let mut line = [0; 12];
    reader.read_exact(&mut line).unwrap();
    assert_eq!(&line, b"half a line\n");
    output.finish().unwrap();
}
