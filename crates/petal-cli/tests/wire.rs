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

#[test]
fn what_is_planned_for_the_wire_is_what_is_sent() {
    let folder = Folder::new();
    folder.file("list", numbers(0..50_000));
    let plan = folder.json("plan -n 50k --wire 60K --memory 400K --json");
    let best = &plan["best"];
    // Ample memory: fewer positions than log2(1/p).
    assert_eq!(best["hashes"], 2);
    assert!(best["bytes"].as_u64().unwrap() <= 400 << 10);
    for row in plan["plans"].as_array().unwrap() {
        assert!(row["error"].as_f64() >= best["error"].as_f64());
    }
    let text = folder
        .petal("plan -n 50k --wire 60K --memory 400K")
        .ends_with(0)
        .stdout;
    let text = String::from_utf8(text).unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("petal build"))
        .unwrap();
    let line = line["petal ".len()..].replace("LIST", "list");
    let ran = folder.petal(&format!("{line} --summary json")).ends_with(0);
    let planned = best["error"].as_f64().unwrap();
    assert!(
        (ran.json("error") / planned - 1.0).abs() < 0.1,
        "{}",
        ran.stderr
    );
    let sent = folder
        .petal("pack F -o sent --summary json")
        .ends_with(0)
        .json("bytes");
    let planned = best["wire_bytes"].as_f64().unwrap();
    assert!(
        sent <= 60.0 * 1024.0 && (sent / planned - 1.0).abs() < 0.01,
        "{sent}"
    );

    let tight = folder.json("plan -n 50k --wire 60K --memory 60K --json");
    assert!(tight["best"]["hashes"].as_u64().unwrap() >= 6, "{tight}");
    let three = folder.json("plan -n 50k --wire 60K -k 3 --json");
    assert_eq!(three["plans"].as_array().unwrap().len(), 1);
    // No error below that which `build` takes.
    let roomy = folder.json("plan -n 1000 --wire 1M --json");
    assert!(roomy["best"]["error"].as_f64().unwrap() >= 1e-12, "{roomy}");
    folder
        .petal("plan -n 1M --wire 1M -k 2 --memory 1K")
        .refused(&["--wire", "--memory", "-k 2"]);
    folder.petal("plan --wire 60K").refused(&["--wire", "-n"]);
    folder
        .petal("plan -n 1M --wire 20")
        .refused(&["on the wire"]);
    folder
        .petal("plan -n 1M --wire 20 -k 2")
        .refused(&["--wire 20", "-k 2"]);
    folder
        .petal("plan -n 1M --wire 1M -p 0.1")
        .refused(&["--wire"]);
    folder
        .petal("build list -o out -k 3")
        .refused(&["-k", "--kind classic"]);
    folder
        .petal("build list -o out --kind classic -k 65")
        .refused(&["k = 65"]);
}
