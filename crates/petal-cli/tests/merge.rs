//! `petal merge`.

use std::os::unix::fs::PermissionsExt;

use crate::support::{Folder, numbers, read};

#[test]
fn the_union_has_the_keys_of_all() {
    let folder = Folder::new();
    for (name, range) in [("a", 0..100), ("b", 100..200), ("c", 200..300)] {
        folder.file(&format!("{name}.txt"), numbers(range));
        folder
            .petal(&format!("build {name}.txt -n 1000 -o {name}"))
            .ends_with(0);
    }
    let ran = folder.petal("merge a b -o ab --summary json").ends_with(0);
    // The count is an estimate, and it is there: the capacity still holds.
    assert!((190.0..=210.0).contains(&ran.json("estimated_keys")));
    assert_eq!(ran.json("capacity"), 1000.0);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    let all = folder
        .petal("merge a b c -o abc --summary json")
        .ends_with(0);
    assert!((290.0..=310.0).contains(&all.json("estimated_keys")));
    let found = folder.petal("check -c abc a.txt b.txt c.txt").ends_with(0);
    assert_eq!(found.stdout, b"300\n");
    let info = folder.json("info --json ab");
    assert_eq!(info["distinct"], serde_json::Value::Null);
    assert!((190..=210).contains(&info["estimated_keys"].as_u64().unwrap()));

    // A filter of unknown count still refuses what is too much.
    folder.file("much", numbers(1000..3000));
    folder.petal("add ab much").refused(&["1,000 keys"]);
    folder.petal("add ab c.txt").ends_with(0);
}

#[test]
fn more_keys_than_the_filters_are_for_are_warned_of() {
    let folder = Folder::new();
    for (name, range) in [("a", 0..60), ("b", 60..120), ("c", 30..90)] {
        folder.file(&format!("{name}.txt"), numbers(range));
        folder
            .petal(&format!("build {name}.txt -n 100 -o {name}"))
            .ends_with(0);
    }
    let ran = folder.petal("merge a b -o ab --summary json").ends_with(0);
    assert!((110.0..=130.0).contains(&ran.json("estimated_keys")));
    assert!(
        ran.stderr.contains("warning: ab holds about"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("made for 100"), "{}", ran.stderr);
    assert!(ran.json("error") > 1e-6);
    // Keys of both count once.
    let ran = folder.petal("merge a c -o ac --summary json").ends_with(0);
    assert!((85.0..=95.0).contains(&ran.json("estimated_keys")));
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
}

#[test]
fn the_intersection_has_the_keys_of_both() {
    let folder = Folder::new();
    folder.file("a.txt", numbers(0..600));
    folder.file("b.txt", numbers(400..1000));
    for name in ["a", "b"] {
        folder
            .petal(&format!("build {name}.txt -n 1000 -o {name}"))
            .ends_with(0);
    }
    folder
        .petal("merge --intersection a b -o both")
        .ends_with(0);
    folder.file("lines", numbers(0..1000));
    let found = folder.petal("check both lines").ends_with(0);
    assert_eq!(found.stdout, numbers(400..600).into_bytes());
}

#[test]
fn digests_and_classic_filters_are_joined_too() {
    let folder = Folder::new();
    folder.file("a.txt", numbers(0..100));
    folder.file("b.txt", numbers(50..150));
    folder.file("lines", numbers(0..200));
    for kind in ["classic", "digests"] {
        for name in ["a", "b"] {
            let line = format!("build {name}.txt -n 1000 -o {name}.{kind} --kind {kind}");
            folder.petal(&line).ends_with(0);
        }
        let line = format!("merge a.{kind} b.{kind} -o ab.{kind}");
        folder.petal(&line).ends_with(0);
        let found = folder.petal(&format!("check ab.{kind} lines")).ends_with(0);
        assert_eq!(found.stdout, numbers(0..150).into_bytes());
    }
}

/// Where filters differ in what decides the answers, both values are named.
#[test]
fn filters_that_do_not_fit_together_are_refused() {
    let folder = Folder::new();
    folder.file("list", numbers(0..50));
    let secret = folder.file("secret", "000102030405060708090a0b0c0d0e0f");
    std::fs::set_permissions(secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    for (name, flags) in [
        ("plain", "-n 50"),
        ("larger", "-n 62500"),
        ("classic", "-n 50 --kind classic"),
        ("growable", "-n 50 --kind growable"),
        ("digests", "-n 50 --kind digests"),
        ("folded", "-n 50 --ignore-case"),
        ("ints", "-n 50 --as int"),
        ("keyed", "-n 50 --secret-file secret"),
    ] {
        folder
            .petal(&format!("build list -o {name} {flags}"))
            .ends_with(0);
    }
    for (line, words) in [
        ("plain larger", &["plain and larger", "geometry"][..]),
        ("plain classic", &["kind differs", "bloom", "classic"]),
        ("plain growable", &["kind differs", "growable"]),
        ("digests plain", &["kind differs", "digests"]),
        (
            "plain folded",
            &["normalisation differs", "--as line", "--ignore-case"],
        ),
        ("plain ints", &["key type differs", "bytes", "int"]),
        (
            "plain keyed --secret-file secret",
            &["hasher differs", "portable", "keyed"],
        ),
        ("plain keyed", &["keyed: ", "--secret-file"]),
        ("growable growable", &["growable", "union"]),
        (
            "digests digests --intersection",
            &["digests", "intersection"],
        ),
        ("plain missing", &["missing"]),
        ("plain list", &["list: not a petal file"]),
        ("plain", &["2"]),
    ] {
        folder.petal(&format!("merge {line} -o out")).refused(words);
        assert!(!folder.path("out").exists(), "{line}");
    }
}

#[test]
fn a_filter_is_replaced_on_request_only() {
    let folder = Folder::new();
    folder.file("list", numbers(0..50));
    folder.petal("build list -n 100 -o a").ends_with(0);
    folder.petal("build list -n 100 -o b").ends_with(0);
    let before = read(&folder.path("a"));
    folder
        .petal("merge a b -o a")
        .refused(&["a exists", "--force"]);
    assert_eq!(read(&folder.path("a")), before);
    folder.petal("merge a b -o a --force").ends_with(0);
    folder.petal("verify a").ends_with(0);
    folder
        .petal("merge a b -o no/such/file")
        .refused(&["no/such"]);
    assert_eq!(folder.names(), ["a", "b", "list"]);
}

#[test]
fn counts_add_up_and_windows_stay_apart() {
    let folder = Folder::new();
    folder.file("a", numbers(0..600));
    folder.file("b", numbers(400..1000));
    for kind in ["counting", "deletable"] {
        for list in ["a", "b"] {
            folder
                .petal(&format!(
                    "build {list} -o f{list} --force --kind {kind} -n 1500"
                ))
                .ends_with(0);
        }
        let ran = folder
            .petal("merge fa fb -o both --force --summary json")
            .ends_with(0);
        assert!((ran.json("estimated_keys") - 1000.0).abs() < 80.0);
        let counts = folder.petal("check --times both a").ends_with(0).stdout;
        let twice = counts
            .split(|&byte| byte == b'\n')
            .filter(|line| line.starts_with(b"2\t"));
        assert_eq!(twice.count(), 200);
        folder
            .petal("merge --intersection fa fb -o common --force")
            .ends_with(0);
        let common = folder.petal("check common a").ends_with(0);
        assert_eq!(common.stdout, numbers(400..600).as_bytes());
        folder.petal("verify both common").ends_with(0);
    }
    for list in ["a", "b"] {
        folder
            .petal(&format!("build {list} -o f{list} --force --kind deletable"))
            .ends_with(0);
    }
    // Repeats take slots of their own, further lines have none.
    folder.petal("merge fa fa -o double").ends_with(0);
    folder
        .petal("merge fa fb -o new")
        .refused(&["fa and fb", "larger -n"]);
    folder
        .petal("build a -o w --kind window --window 100")
        .ends_with(0);
    folder
        .petal("merge w w -o new")
        .refused(&["windows are not merged", "-f B"]);
    assert!(!folder.path("new").exists());
}
