//! Flags and lists that do not fit a filter of another system, and what can be
//! said of a damaged one.

use std::io::Write;
use std::path::Path;

use crate::support::{Folder, read};

fn sample(path: &str) -> String {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../petal-interop/tests/vectors");
    let path = vectors.join("foreign").join(path);
    path.to_str().unwrap().to_owned()
}

#[test]
fn lines_that_are_no_keys_are_refused_as_build_refuses_them() {
    let folder = Folder::new();
    folder.file("words", "one\ntwo\n");
    folder.file("mixed", "1\ntwo\n3\n");
    let guava = sample("guava/mitz64_int_n200_p0.03.bin");
    for flags in ["", "-q"] {
        folder
            .petal(&format!(
                "convert {guava} --list words --as i32 --to guava -o new {flags}"
            ))
            .refused(&[
                "words:1",
                "i32",
                "\"one\"",
                "nothing was written",
                "--skip-bad",
            ]);
        assert!(!folder.path("new").exists());
    }
    folder
        .petal(&format!("convert {guava} --list mixed --as i32 -o new"))
        .refused(&["mixed:2", "\"two\""]);
    let ran = folder.petal(&format!(
        "convert {guava} --list mixed --as i32 --skip-bad -o new"
    ));
    let ran = ran.ends_with(0);
    assert!(ran.stderr.contains("not of the form"), "{}", ran.stderr);
    let found = folder.petal_with("check new --as i32 -c", b"1\n3\n");
    assert_eq!(found.ends_with(0).stdout, b"2\n");
}

#[test]
fn flags_of_another_format_are_refused() {
    let folder = Folder::new();
    folder.file("list", "a\n");
    folder.petal("build list -o own -q").ends_with(0);
    let guava = sample("guava/mitz64_utf8_n200_p0.03.bin");
    for (flag, of) in [
        ("--column x", "parquet"),
        ("--row-group 0", "parquet"),
        ("--hash md5", "rbloom"),
        ("--program java-a", "classic"),
        ("--old-pybloom", "pybloom-live"),
    ] {
        let name = flag.split(' ').next().unwrap();
        for (file, is) in [(guava.as_str(), "guava"), ("own", "petal")] {
            for verb in [
                format!("info {file}"),
                format!("verify {file}"),
                format!("check {file} list"),
                format!("merge {file} {file} -o out"),
            ] {
                folder
                    .petal(&format!("{verb} {flag}"))
                    .refused(&[name, of, is]);
            }
        }
        folder
            .petal(&format!("convert {guava} -o out {flag}"))
            .refused(&[name, of, "guava"]);
    }
    // One of several is enough.
    let parquet = sample("parquet/pyarrow.parquet");
    folder.file("asked", "nobody at all\n");
    folder
        .petal(&format!("check {guava} -f {parquet} --column s asked -q"))
        .ends_with(1);
}

#[test]
fn verify_says_what_cannot_be_seen() {
    let folder = Folder::new();
    let whole = read(Path::new(&sample("rbloom/sha256_n200_p0.03.bloom")));
    folder.file("cut", &whole[..whole.len() - 1]);
    let ran = folder.petal("verify cut --format rbloom --hash sha256");
    let text = String::from_utf8(ran.ends_with(0).stdout).unwrap();
    assert!(
        text.contains("cut off") && text.contains("looks whole"),
        "{text}"
    );
    // What has a length is refused, under the name that was given.
    let whole = read(Path::new(&sample("dcso/plain_n200_p0.03.bloom")));
    folder.file("cut", &whole[..whole.len() - 1]);
    folder.petal("verify cut").refused(&["dcso", "there are"]);
    let ran = folder.petal("verify cut --format poppy");
    let ran = ran.refused(&["poppy", "there are"]);
    assert!(!ran.stderr.contains("dcso"), "{}", ran.stderr);
    folder.file("cut", &whole[..32]);
    folder.petal("verify cut").refused(&["dcso", "48 bytes"]);
}

/// Zeros that are small on the disk are not unpacked past the memory.
#[test]
fn compressed_files_keep_to_the_memory() {
    let folder = Folder::new();
    folder.file("list", "a\n");
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(&[1, 5, 0, 0x40, 0, 0]).unwrap();
    out.write_all(&vec![0; 32 << 20]).unwrap();
    folder.file("guava.gz", out.finish().unwrap());
    folder
        .petal("check guava.gz list --memory 16M")
        .refused(&["guava.gz", "memory allows"]);
    folder.petal("check guava.gz list").ends_with(1);
}

/// Columns of floats are asked by their bits, as Parquet's hash takes them.
#[test]
fn floats_and_fixed_lengths_are_keys() {
    let folder = Folder::new();
    folder.file("list", "x\n");
    folder.file("floats", "1.5\n-0.25\n");
    let parquet = sample("parquet/pyarrow.parquet");
    let asked = folder.petal(&format!(
        "convert {parquet} --column i32 --list floats --as f32 --to parquet -n 10 -p 0.01 -o f32"
    ));
    asked.ends_with(0);
    let found = folder.petal("check f32 --as f32 -c floats").ends_with(0);
    assert_eq!(found.stdout, b"2\n");
    // The same bits, little-endian.
    let found = folder.petal_with("check f32 --as hex -c", b"0000c03f\n000080be\n");
    assert_eq!(found.ends_with(0).stdout, b"2\n");
    folder.petal("check f32 --as f64 -c floats").ends_with(1);
}

#[test]
fn a_classic_run_reads_stdin() {
    let folder = Folder::new();
    folder.file("list", "a\nb\na\n");
    let from_file = folder.petal("lab classic url-dedup-c list").ends_with(0);
    let from_stdin = folder.petal_with("lab classic url-dedup-c -", b"a\nb\na\n");
    assert_eq!(from_stdin.ends_with(0).stdout, from_file.stdout);
}

#[test]
fn wrong_numbers_of_a_lab_are_named_together() {
    let folder = Folder::new();
    folder
        .petal("lab hash xxh3 -n 1 -k 0 --bits-per-key 0")
        .refused(&["-n 1: 50 to", "-k 0: use 1 to 64", "--bits-per-key 0"]);
    folder.petal("lab hash xxh3 -n 50").ends_with(0);
}

#[test]
fn a_pipe_is_not_waited_for() {
    let folder = Folder::new();
    let made = std::process::Command::new("mkfifo")
        .arg(folder.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    for flags in ["", "--format guava"] {
        folder
            .petal(&format!("info pipe {flags}"))
            .refused(&["is a pipe", "write it to a file first"]);
    }
}
