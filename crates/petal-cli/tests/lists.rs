//! Filters of lists that do not change: values, and cascades of two lists.

use crate::support::{Folder, read};

fn lines(range: std::ops::Range<u64>) -> String {
    range.map(|i| format!("line {i}\n")).collect()
}

#[test]
fn a_cascade_is_exact_for_both_lists() {
    let folder = Folder::new();
    folder.file("deny", lines(0..30_000) + "line 7\n");
    folder.file("allow", lines(30_000..90_000));
    folder.file("other", lines(1_000_000..1_200_000));
    for (name, error, most_bits) in [("a", "1e-3", 10.3), ("b", "1", 3.2), ("c", "1e-6", 20.4)] {
        let line = format!(
            "build deny -o {name} --kind cascade --not-listed allow -p {error} --summary json"
        );
        let ran = folder.petal(&line).ends_with(0);
        assert_eq!(ran.json_count("lines"), 90_001);
        assert_eq!(ran.json_count("keys"), 30_000);
        assert_eq!(ran.json_count("not_listed"), 60_000);
        assert_eq!(ran.json_count("repeated"), 1);
        assert!(ran.json("bits_per_key") < most_bits, "{}", ran.stderr);
        folder.petal(&format!("verify {name}")).ends_with(0);
        for mapped in ["", "--mapped"] {
            let ran = folder
                .petal(&format!("check -c {mapped} {name} deny"))
                .ends_with(0);
            assert_eq!(ran.stdout, b"30001\n");
            let ran = folder
                .petal(&format!("check -c {mapped} {name} allow"))
                .ends_with(1);
            assert_eq!(ran.stdout, b"0\n");
        }
        let ran = folder.petal(&format!("check {name} other"));
        let found = ran.stdout.iter().filter(|&&byte| byte == b'\n').count() as f64;
        let info = folder.json(&format!("info --json {name}"));
        let expected = info["error_now"].as_f64().unwrap() * 200_000.0;
        assert!(
            (found - expected).abs() <= 5.0 * expected.sqrt() + 2.0,
            "{found}, {expected}"
        );
        assert_eq!(info["kind"], "cascade");
        assert_eq!(info["distinct"], 30_000);
        assert_eq!(info["geometry"]["not_listed"], 60_000);
        assert_eq!(info["over_capacity"], false);
    }
    let ran = folder.petal("add a other").ends_with(2);
    assert!(ran.stderr.contains("cascade"), "{}", ran.stderr);
}

#[test]
fn cascades_are_the_same_whatever_the_memory_order_and_threads() {
    let folder = Folder::new();
    folder.file("deny", lines(0..150_000));
    folder.file("yned", lines(75_000..150_000) + &lines(0..80_000));
    folder.file("allow", lines(150_000..450_000));
    let build = |list: &str, name: &str, more: &str| {
        let line = format!("build {list} -o {name} --kind cascade --not-listed allow {more}");
        folder.petal(&format!("{line} -p 1e-3")).ends_with(0);
        read(&folder.path(name))
    };
    let filter = build("deny", "a", "-j1");
    assert!(filter == build("yned", "b", "-j2"));
    // About 100,000 digests of each list fit: the others go to a file and come back.
    assert!(filter == build("yned", "c", "-j1 --memory 36M"));
    let ran = folder.petal("check -c a deny").ends_with(0);
    assert_eq!(ran.stdout, b"150000\n");
    folder.petal("check -c a allow").ends_with(1);
}

#[test]
fn most_of_a_list_listed_is_small_where_the_error_allows_it() {
    let folder = Folder::new();
    folder.file("deny", lines(0..60_000));
    folder.file("allow", lines(60_000..61_000));
    let bytes = |error: &str| {
        let line = format!("build deny -o {error} --kind cascade --not-listed allow -p {error}");
        folder
            .petal(&format!("{line} --summary json"))
            .ends_with(0)
            .json("bytes")
    };
    assert!(bytes("0.01") > 6.6 * 60_000.0 / 8.0);
    assert!(bytes("1") < 9.0 * 1000.0 / 8.0);
    let info = folder.json("info --json 1");
    assert_eq!(info["geometry"]["inverted"], true);
    let ran = folder.petal("check -c 1 deny").ends_with(0);
    assert_eq!(ran.stdout, b"60000\n");
    folder.petal("check -c 1 allow").ends_with(1);
}

#[test]
fn cascades_of_few_lines_and_none() {
    let folder = Folder::new();
    folder.file("none", "");
    folder.file("one", "a\na\n");
    folder.file("two", "b\n");
    for (listed, others) in [
        ("none", "none"),
        ("one", "none"),
        ("none", "two"),
        ("one", "two"),
    ] {
        for error in ["1", "1e-6"] {
            let line = format!(
                "build {listed} -o f --force --kind cascade --not-listed {others} -p {error}"
            );
            folder.petal(&line).ends_with(0);
            folder.petal("verify f").ends_with(0);
            folder.petal("info f").ends_with(0);
            if listed == "one" {
                folder.petal("check f one").ends_with(0);
            }
            if others == "two" || (listed, error) == ("none", "1e-6") {
                folder.petal("check f two").ends_with(1);
            }
        }
    }
    // Other forms of key, under one reading for both lists.
    folder.file("sums", "0123456789abcdef0123456789ABCDEF  file\n");
    folder.file("more", "ffffffffffffffffffffffffffffffff\n");
    folder
        .petal("build sums -o g --kind cascade --not-listed more --as hex")
        .ends_with(0);
    folder
        .petal_with("check g", b"0123456789ABCDEF0123456789abcdef\n")
        .ends_with(0);
    folder.file("numbers", "7\n-3\n");
    folder
        .petal("build numbers -o h --kind cascade --not-listed two --as int")
        .refused(&["two:1"]);
    folder.file("others", "8\n");
    folder
        .petal("build numbers -o h --kind cascade --not-listed others --as int")
        .ends_with(0);
    folder.petal_with("check -c h", b"+7\n8\n").ends_with(0);
    folder
        .petal("build sums -o i --kind cascade --not-listed numbers --as hex")
        .refused(&["numbers:1"]);
    for refused in [
        "build one -o x --kind cascade",
        "build one -o x --not-listed two",
        "build one -o x --kind cascade --not-listed two -n 10",
        "build one -o x --kind cascade --not-listed missing",
        "build one -o x --kind cascade --not-listed two -p 1.5",
        "build one -o two --force --kind cascade --not-listed two",
        "build -o x --kind cascade --not-listed -",
        "build one -o x --kind cascade --not-listed two --value-field 2 --field 1 --delimiter ,",
        "build one -o x -p 1",
    ] {
        folder.petal(refused).refused(&[]);
        assert!(!folder.path("x").exists(), "{refused}");
    }
}

#[test]
fn a_line_of_both_lists_is_named() {
    let folder = Folder::new();
    folder.file("deny", lines(0..5000));
    folder.file(
        "allow",
        lines(5000..6000) + "LINE 1234\n" + &lines(6000..9000),
    );
    let build = "build deny -o x --kind cascade --not-listed allow";
    folder.petal(build).ends_with(0);
    folder
        .petal(&format!("{build} --force --ignore-case"))
        .refused(&[
            "deny:1235 and allow:1001",
            "\"line 1234\"",
            "as listed and as not listed",
        ]);
    folder
        .petal_with(
            "build - -o y --kind cascade --not-listed allow --ignore-case",
            b"line 1234\n",
        )
        .refused(&["its digest is", "put the lists into files"]);
    // Whatever its name, it would be empty the second time.
    for (listed, not_listed) in [("-", "-"), ("/dev/stdin", "-"), ("-", "/dev/stdin")] {
        folder
            .petal_with(
                &format!("build {listed} -o y --kind cascade --not-listed {not_listed}"),
                b"both\n",
            )
            .refused(&["both lists", "only once"]);
    }
    // Two different lines with one digest: they begin with the bytes of XXH3's own secret.
    let with = |middle: &[u8]| {
        [
            b"\xb8\xfe\x6c\x39\x23\xa4\x4b\xbe",
            middle,
            &[b'x'; 16],
            b"\n",
        ]
        .concat()
    };
    folder.file("a", with(b"one key."));
    folder.file("b", with(b"another!"));
    folder.file("secret", "0123456789abcdef0123456789abcdef");
    let build = "build a -o y --kind cascade --not-listed b";
    folder
        .petal(build)
        .refused(&["different keys with the same digest", "--secret-file"]);
    assert!(!folder.path("y").exists());
    folder
        .petal(&format!("{build} --secret-file secret"))
        .ends_with(0);
    folder.petal("check y a --secret-file secret").ends_with(0);
    folder.petal("check y b --secret-file secret").ends_with(1);
}

#[test]
fn values_are_kept_and_printed() {
    let folder = Folder::new();
    let line = |i: u64| format!("key {i},{}\n", i * 37 % 1000);
    let list: String = (0..20_000).chain(0..100).map(line).collect();
    folder.file("list", &list);
    let build = "build list --kind static -p 1e-6 --field 1 --delimiter , --value-field 2";
    let ran = folder
        .petal(&format!("{build} -o f --summary json"))
        .ends_with(0);
    assert_eq!(
        (ran.json_count("keys"), ran.json_count("repeated")),
        (20_000, 100)
    );
    // 10 bits of a value, and log2(1e6).
    assert!(ran.json("bits_per_key") < 29.94 * 1.02, "{}", ran.stderr);
    let info = folder.json("info --json f");
    assert_eq!(info["geometry"]["value_bits"], 10);
    assert!(
        folder
            .petal("info f")
            .stdout
            .windows(13)
            .any(|text| text == b"10 of a value")
    );
    let asked: String = (19_000..22_000).map(|i| format!("key {i}\n")).collect();
    let expected: String = (19_000..20_000)
        .map(|i| format!("{}\tkey {i}\n", i * 37 % 1000))
        .collect();
    for more in ["", "-j1", "--mapped"] {
        let ran = folder.petal_with(&format!("check --values f {more}"), asked.as_bytes());
        assert_eq!(
            String::from_utf8(ran.ends_with(0).stdout).unwrap(),
            expected
        );
    }
    // With so little memory, they go to a file with their digests.
    let list: String = (0..1_000_000).map(line).collect();
    folder.file("long", &list);
    for (name, more) in [("a", "-j2"), ("b", "-j1 --memory 44M")] {
        folder
            .petal(&format!(
                "build long -o {name} --kind static -p 0.1 --field 1 --delimiter , --value-field 2 {more}"
            ))
            .ends_with(0);
    }
    assert!(read(&folder.path("a")) == read(&folder.path("b")));
}

#[test]
fn lines_without_a_value_and_with_two_are_named() {
    let folder = Folder::new();
    folder.file("list", "a,1\nb,x\nc\nd,70000\r\ne,5\r\n");
    let build = |list: &str| {
        format!("build {list} -o f --force --kind static --field 1 --delimiter , --value-field 2")
    };
    folder
        .petal(&build("list"))
        .refused(&["list:2", "field 2", "\"x\"", "--skip-bad"]);
    let ran = folder
        .petal(&format!("{} --skip-bad --summary json", build("list")))
        .ends_with(0);
    assert_eq!((ran.json_count("keys"), ran.json_count("no_value")), (2, 3));
    assert_eq!(ran.json_count("repeated"), 0);
    let ran = folder
        .petal_with("check --values f", b"a\nb\ne\n")
        .ends_with(0);
    assert_eq!(ran.stdout, b"1\ta\n5\te\n");
    folder.file("twice", "a,1\nb,2\na,1\nb,3\n");
    folder
        .petal(&build("twice"))
        .refused(&["twice:2 and twice:4", "the value 2", "the value 3"]);
    folder
        .petal_with(&build("-"), b"b,2\nb,3\n")
        .refused(&["its digest is"]);
    folder.file("one", "a\n");
    folder.petal("build one -o g --kind static").ends_with(0);
    folder
        .petal("check --values g one")
        .refused(&["--value-field"]);
    for refused in [
        "build list -o x --kind static --value-field 2",
        "build list -o x --kind static --field 1 --delimiter , --value-field 1",
        "build list -o x --kind static --field 1 --delimiter , --value-field 0",
        "build list -o x --field 1 --delimiter , --value-field 2",
        "check --values --times f one",
    ] {
        folder.petal(refused).refused(&[]);
        assert!(!folder.path("x").exists(), "{refused}");
    }
}

#[test]
fn fixed_filters_use_the_threads_that_the_memory_suffices_for() {
    let folder = Folder::new();
    folder.file("list", lines(0..2000));
    folder
        .petal("build list -o few --kind static -j 99 --memory 200M")
        .ends_with(0);
    folder
        .petal("build list -o one --kind static -j 1 --memory 200M")
        .ends_with(0);
    let file = |name| std::fs::read(folder.path(name)).unwrap();
    assert_eq!(file("few"), file("one"));
    folder.file("many", lines(0..700_000));
    for threads in [1, 2, 4] {
        let line = format!(
            "build many -o f --force --kind static -j {threads} --memory 64M --summary json"
        );
        let peak = folder.petal(&line).ends_with(0).json("peak_memory");
        assert!(peak <= 64.0 * 1024.0 * 1024.0, "{threads}: {peak}");
    }
    // The remedy is one.
    for kind in ["static", "cascade --not-listed other"] {
        folder.file("other", lines(5000..5010));
        let build =
            |memory| format!("build list -o f --force --kind {kind} -j 7 --memory {memory}");
        let refused = folder.petal(&build("20M".to_owned())).ends_with(2);
        let told = refused.stderr.split("allow ").nth(1).unwrap();
        let least: f64 = told.split(' ').next().unwrap().parse().unwrap();
        assert!((21.0..100.0).contains(&least), "{told}");
        folder.petal(&build(format!("{least}M"))).ends_with(0);
    }
}
