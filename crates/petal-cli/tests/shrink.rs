//! `petal shrink`, and `petal build --like`.

use crate::support::{Folder, numbers, read};

#[test]
fn a_shrunk_filter_is_the_one_that_would_have_been_built() {
    let folder = Folder::new();
    folder.file("list", numbers(0..30_000));
    folder
        .petal("build list -n 1M -p 1e-4 -o roomy --label a=b")
        .ends_with(0);
    let ran = folder
        .petal("shrink roomy -o small --summary json")
        .ends_with(0);
    assert!(ran.json("bytes") * 30.0 <= ran.json("bytes_before"));
    assert!(ran.json("error") <= 1e-4 && ran.json("capacity") >= 30_000.0);
    let found = folder.petal("check -c small list").ends_with(0);
    assert_eq!(found.stdout, b"30000\n");
    // Built of that shape: other labels and generation, the same bits.
    folder
        .petal("build list --like small -o built")
        .ends_with(0);
    let (small, built) = (
        folder.json("info --json small"),
        folder.json("info --json built"),
    );
    assert_eq!(small["geometry"], built["geometry"]);
    assert_eq!(small["fill"], built["fill"]);
    assert_eq!(small["items"], built["items"]);
    assert_eq!(small["labels"]["a"], "b");
    assert_eq!(built["generation"], 2);
    let payload = |name: &str| {
        let bytes = read(&folder.path(name));
        let length = small["payload_bytes"].as_u64().unwrap() + 8;
        bytes[bytes.len() - usize::try_from(length).unwrap()..].to_vec()
    };
    assert!(payload("small") == payload("built"));
    folder.petal("merge small built -o both").ends_with(0);
    assert!(payload("both") == payload("built"));

    let ran = folder
        .petal("shrink roomy -o smaller -p 0.05 --summary json")
        .ends_with(0);
    assert!(ran.json("bytes") < small["payload_bytes"].as_f64().unwrap());
    assert!(ran.json("error") <= 0.05);
}

#[test]
fn what_cannot_shrink_is_refused_and_nothing_is_written() {
    let folder = Folder::new();
    folder.file("list", numbers(0..100));
    folder
        .petal("build list -o set --kind digests")
        .ends_with(0);
    folder.petal("build list -o full -p 0.01").ends_with(0);
    folder
        .petal("dedup list --state state -p 0.01")
        .ends_with(0);
    folder.file("there", "text");
    folder
        .petal("shrink set -o out")
        .refused(&["set", "digests", "shrinking"]);
    folder
        .petal("shrink full -o out -p 1e-9")
        .refused(&["full", "p = 1e-9", "too many keys"]);
    folder.petal("shrink full -o out -p 2").refused(&["-p 2"]);
    folder
        .petal("shrink state -o out")
        .refused(&["state of `petal dedup`"]);
    folder
        .petal("shrink full -o there")
        .refused(&["there", "--force"]);
    folder
        .petal("shrink full -o out --memory 1K")
        .refused(&["--memory 1K"]);
    assert!(!folder.path("out").exists());
    assert_eq!(read(&folder.path("there")), b"text");
    folder.petal("shrink full -o there --force").ends_with(0);
    folder.petal("check -c there list").ends_with(0);
}

#[test]
fn filters_like_another_merge_with_it_whatever_its_kind_and_keys() {
    let folder = Folder::new();
    folder.file("a", numbers(0..50));
    folder.file("b", numbers(50..100));
    for (name, flags) in [
        ("bloom", "--ignore-case -p 1e-3"),
        ("classic", "--as int --kind classic"),
        ("counting", "--kind counting --counter-bits 8 -p 0.01"),
        ("deletable", "--kind deletable -p 0.01"),
    ] {
        folder
            .petal(&format!("build a -n 100 -o {name} {flags}"))
            .ends_with(0);
        folder
            .petal(&format!("build b --like {name} -o more.{name}"))
            .ends_with(0);
        folder
            .petal(&format!("merge {name} more.{name} -o both.{name}"))
            .ends_with(0);
        let found = folder
            .petal(&format!("check -c both.{name} a b"))
            .ends_with(0);
        assert_eq!(found.stdout, b"100\n", "{name}");
    }
    folder
        .petal("build a --kind growable -n 100 -o grows")
        .ends_with(0);
    folder
        .petal("build b --like grows -o out")
        .refused(&["grows", "--like", "growable"]);
    folder
        .petal("build b --like missing -o out")
        .refused(&["missing"]);
    folder
        .petal("build b --like bloom -n 5 -o out")
        .refused(&["--like", "cannot be used with"]);
    folder
        .petal("build b --like bloom --as url -o out")
        .refused(&["--like"]);
    folder.file("many", numbers(0..200));
    folder
        .petal("build many --like bloom -o out")
        .refused(&["more than 100"]);
    assert!(!folder.path("out").exists());
}
