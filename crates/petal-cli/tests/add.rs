//! `petal add`.

use petal::sizing::{self, Collisions};
use petal::{AnyFilter, MappedWriter};

use crate::support::{Folder, numbers, read};

#[test]
fn keys_are_added_up_to_the_number_the_filter_is_for() {
    let folder = Folder::new();
    folder.file("some", numbers(0..1000));
    folder.file("more", numbers(500..2000));
    folder.petal("build some -n 2000 -o f").ends_with(0);
    let ran = folder.petal("add f more --summary json").ends_with(0);
    assert_eq!((ran.json("added"), ran.json("present")), (1000.0, 500.0));
    assert_eq!((ran.json("keys"), ran.json("capacity")), (2000.0, 2000.0));
    assert!(ran.json("error") <= 1e-6);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    let all = folder.petal("check -c f some more").ends_with(0);
    assert_eq!(all.stdout, b"2500\n");

    // Full: what is there already costs nothing, one more is refused.
    let before = read(&folder.path("f"));
    let ran = folder.petal("add f some more --summary json").ends_with(0);
    assert_eq!((ran.json("added"), ran.json("present")), (0.0, 2500.0));
    folder.petal_with("add f", b"7\nnew\n").refused(&[
        "standard input, up to line 2",
        "made for 2,000 keys",
        "nothing was written",
        "--overfill",
    ]);
    assert_eq!(read(&folder.path("f")), before);
    // Making it full was no reason for a warning; one more is.
    let ran = folder
        .petal_with("add f --overfill", b"7\nnew\n")
        .ends_with(0);
    assert!(
        ran.stderr
            .contains("warning: f holds more keys than the 2,000"),
        "{}",
        ran.stderr
    );
    folder.petal_with("check f", b"new\n").ends_with(0);
}

/// A filter for 5000 keys that takes 100,000 answers "yes" to everything;
/// others do so without a word.
#[test]
fn an_overfilled_filter_says_so() {
    let folder = Folder::new();
    folder.file("few", numbers(0..5000));
    folder.file("many", numbers(0..100_000));
    folder.petal("build few -p 0.01 -o f").ends_with(0);
    folder.petal("add f many").refused(&["5,000 keys"]);
    let ran = folder
        .petal("add f many --overfill --summary json")
        .ends_with(0);
    assert!(ran.json("error") > 0.9);
    assert!(ran.stderr.contains("warning"), "{}", ran.stderr);
    let info = folder.json("info --json f");
    assert_eq!(info["over_capacity"], true);
    assert!(info["error_now"].as_f64() > Some(0.9));
}

/// Five per cent more keys than n at a small p: the error is a multiple.
#[test]
fn the_error_of_a_wrong_n_is_reported_from_the_fill() {
    let folder = Folder::new();
    folder.file("list", numbers(0..100_000));
    folder.file("start", "0\n");
    folder
        .petal("build start -n 95000 -p 1e-6 -o f")
        .ends_with(0);
    let ran = folder
        .petal("add f list --overfill --summary json")
        .ends_with(0);
    let error = ran.json("error");
    assert!((1.3e-6..2.5e-6).contains(&error), "{error}");
    let shape = sizing::split_for(95_000, 1e-6, Collisions::Digest64).unwrap();
    let expected = sizing::split_error(shape, 100_000, Collisions::Digest64);
    assert!((error / expected - 1.0).abs() < 0.05, "{error} {expected}");
}

#[test]
fn filters_that_grow_take_any_number() {
    let folder = Folder::new();
    folder.file("some", numbers(0..100));
    folder.file("more", numbers(0..50_000));
    for kind in ["growable", "digests"] {
        folder
            .petal(&format!("build some -o {kind} --kind {kind}"))
            .ends_with(0);
        let ran = folder
            .petal(&format!("add {kind} more --summary json"))
            .ends_with(0);
        assert!((49_898.0..=49_900.0).contains(&ran.json("added")), "{kind}");
        assert!(ran.json("error") <= 1e-6);
        let all = folder.petal(&format!("check -c {kind} more")).ends_with(0);
        assert_eq!(all.stdout, b"50000\n");
    }
}

#[test]
fn lines_of_another_form_are_refused() {
    let folder = Folder::new();
    folder.file("list", "abcdef0123456789\n");
    folder.petal("build list -n 10 -o f --as hex").ends_with(0);
    let before = read(&folder.path("f"));
    folder
        .petal_with("add f", b"abcdef0123456780\nabcdef01\n")
        .refused(&["standard input:2: 8 hex digits, expected 16", "--skip-bad"]);
    assert_eq!(read(&folder.path("f")), before);
    let ran = folder.petal_with(
        "add f --skip-bad --summary json",
        b"ABCDEF0123456780\nabcdef01\n",
    );
    let ran = ran.ends_with(0);
    assert_eq!((ran.json("added"), ran.json("bad")), (1.0, 1.0));
}

#[test]
fn a_second_writer_is_told_to_wait() {
    let folder = Folder::new();
    folder.file("list", "a\n");
    folder.petal("build list -n 10 -o f").ends_with(0);
    let lock = petal::FileLock::acquire(folder.path("f")).unwrap();
    folder
        .petal_with("add f", b"b\n")
        .refused(&["f.lock", "wait"]);
    drop(lock);
    folder.petal_with("add f", b"b\n").ends_with(0);
}

#[test]
fn an_interrupted_writer_is_recovered_on_request() {
    let folder = Folder::new();
    folder.file("list", "a\n");
    folder.petal("build list -n 1000 -o f").ends_with(0);
    let path = folder.path("f");
    let mut writer = MappedWriter::open(&path, None).unwrap();
    for key in 0..100u32 {
        writer.insert_bytes(&key.to_le_bytes()).unwrap();
    }
    // As if the process had been killed: nothing is committed.
    drop(writer);
    assert!(AnyFilter::open(&path, None).is_err());
    folder
        .petal_with("check f", b"a\n")
        .refused(&["f: ", "interrupted", "--recover"]);
    folder.petal_with("add f", b"b\n").refused(&["interrupted"]);
    folder.petal("verify f").refused(&["interrupted"]);
    assert_eq!(folder.json("info --json f")["dirty"], true);
    let ran = folder.petal_with("add f --recover", b"b\n").ends_with(0);
    assert!(
        ran.stderr.contains("warning: f: recovered"),
        "{}",
        ran.stderr
    );
    let found = folder.petal_with("check f", b"a\nb\n").ends_with(0);
    assert_eq!(found.stdout, b"a\nb\n");
    folder.petal("verify f").ends_with(0);
    // On a clean file the flag changes nothing.
    let ran = folder.petal_with("add f --recover", b"c\n").ends_with(0);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
}

#[test]
fn what_is_no_filter_stays_as_it_is() {
    let folder = Folder::new();
    folder.file("list", "a\n");
    folder.petal("build list -n 10 -o f").ends_with(0);
    let whole = read(&folder.path("f"));
    folder.file("cut", &whole[..whole.len() - 1]);
    for (line, words) in [
        ("add missing list", &["missing"][..]),
        ("add list list", &["list", "two names"]),
        ("add . list", &["a directory"]),
        ("add cut list", &["cut: truncated"]),
        ("add f missing", &["missing"]),
        ("add f .", &["is a directory"]),
        ("add f f", &["two names"]),
        ("add f list --memory 1M", &["--memory"]),
    ] {
        folder.petal(line).refused(words);
    }
    folder.file("text", "some text that is no filter\n");
    folder
        .petal("add text list")
        .refused(&["text: not a petal file"]);
    assert_eq!(read(&folder.path("f")), whole);
    assert_eq!(folder.names(), ["cut", "f", "list", "text"]);
}
