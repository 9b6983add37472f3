//! `petal pack`, `unpack`, `delta`, `apply-delta`.

use crate::support::{Folder, numbers, read};

#[test]
fn a_packed_filter_comes_back_byte_for_byte() {
    let folder = Folder::new();
    folder.file("list", numbers(0..20_000));
    folder
        .petal("build list -n 400k -p 0.01 -o a --label source=x")
        .ends_with(0);
    let ran = folder.petal("pack a -o packed --summary json").ends_with(0);
    assert!(ran.json("share") < 0.4, "{}", ran.stderr);
    assert_eq!(ran.json("bytes"), read(&folder.path("packed")).len() as f64);
    folder.petal("unpack packed -o back").ends_with(0);
    assert!(read(&folder.path("a")) == read(&folder.path("back")));

    folder
        .petal("pack a -o packed")
        .refused(&["packed", "--force"]);
    folder.petal("pack a -o packed --force -q").ends_with(0);
    folder
        .petal("unpack a -o out")
        .refused(&["a: neither a packed filter nor a delta"]);
    folder
        .petal("check packed list")
        .refused(&["packed", "petal unpack"]);
    folder.petal("pack missing -o out").refused(&["missing"]);
    folder
        .petal("pack a -o out --memory 1K")
        .refused(&["--memory 1K"]);
    folder
        .petal("build list -o set --kind digests")
        .ends_with(0);
    folder
        .petal("pack set -o out")
        .refused(&["set", "digests", "packing"]);

    assert_eq!(
        folder.petal("verify packed").ends_with(0).stdout,
        b"packed: OK\n"
    );
    let info = folder.json("info --json packed");
    assert_eq!(info["content"], "packed");
    assert_eq!(info["kind"], "bloom");
    let mut bytes = read(&folder.path("packed"));
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    folder.file("damaged", &bytes);
    folder
        .petal("verify damaged")
        .refused(&["damaged", "checksum"]);
    folder
        .petal("unpack damaged -o out")
        .refused(&["damaged", "checksum"]);
    folder.file("cut", &bytes[..middle]);
    folder
        .petal("unpack cut -o out")
        .refused(&["cut", "truncated"]);
    assert!(!folder.path("out").exists());
}

#[test]
fn versions_are_followed_by_deltas_in_order() {
    let folder = Folder::new();
    folder.file("one", numbers(0..20_000));
    folder.file("two", numbers(500..20_500));
    folder.file("more", numbers(30_000..30_100));
    folder.petal("build one -n 25k -p 1e-3 -o v1").ends_with(0);
    folder.petal("build two --like v1 -o v2").ends_with(0);
    std::fs::copy(folder.path("v2"), folder.path("v3")).unwrap();
    folder.petal("add v3 more").ends_with(0);

    folder.petal("delta v1 v2 -o d12").ends_with(0);
    let ran = folder
        .petal("delta v2 v3 -o d23 --summary json")
        .ends_with(0);
    assert!(ran.json("share") < 0.1, "{}", ran.stderr);
    folder.petal("apply-delta v1 d12 -o mine").ends_with(0);
    assert!(read(&folder.path("mine")) == read(&folder.path("v2")));
    // In place.
    folder
        .petal("apply-delta mine d23 -o mine")
        .refused(&["mine", "--force"]);
    folder
        .petal("apply-delta mine d23 -o mine --force")
        .ends_with(0);
    assert!(read(&folder.path("mine")) == read(&folder.path("v3")));

    folder
        .petal("apply-delta v1 d23 -o out")
        .refused(&["v1 and d23", "2 to 3", "in order"]);
    folder
        .petal("apply-delta v3 d23 -o out")
        .refused(&["applied already"]);
    folder.petal("build one --like v1 -o other").ends_with(0);
    folder
        .petal("apply-delta other d23 -o out")
        .refused(&["another filter"]);
    folder
        .petal("delta v2 v1 -o out")
        .refused(&["later generation", "--like"]);
    folder
        .petal("delta v2 v2 -o out")
        .refused(&["later generation"]);
    folder.petal("build one -o small").ends_with(0);
    folder
        .petal("delta small v2 -o out")
        .refused(&["small and v2", "geometry"]);
    folder
        .petal("apply-delta v1 v2 -o out")
        .refused(&["neither"]);
    folder
        .petal("unpack d12 -o out")
        .refused(&["d12", "apply-delta"]);
    folder
        .petal("delta v1 missing -o out")
        .refused(&["missing"]);
    let info = folder.json("info --json d23");
    assert_eq!(info["content"], "delta");
    assert_eq!(
        (&info["from_generation"], &info["generation"]),
        (&2.into(), &3.into())
    );
    assert!(!folder.path("out").exists());
}
