//! `petal build`.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::support::{Folder, numbers, read};

const KINDS: [&str; 4] = ["bloom", "classic", "growable", "digests"];

/// That a filter has every line of a list.
#[track_caller]
fn assert_has_all(folder: &Folder, filter: &str, list: &str) {
    let missing = folder
        .petal(&format!("check -v {filter} {list}"))
        .ends_with(1);
    assert_eq!(missing.stdout.escape_ascii().to_string(), "");
}

#[test]
fn keys_are_counted_and_all_are_found() {
    let folder = Folder::new();
    let text = [numbers(0..3000), numbers(1000..5000)].concat();
    folder.file("list", &text);
    for kind in KINDS {
        let out = format!("{kind}.petal");
        let ran = folder
            .petal(&format!("build list -o {out} --kind {kind} --summary json"))
            .ends_with(0);
        assert!(ran.stdout.is_empty());
        assert_eq!(ran.json("lines"), 7000.0);
        assert_eq!(ran.json("keys"), 5000.0);
        assert_eq!(ran.json("repeated"), 2000.0);
        // One filter of this size scatters by some 4 % around its promise.
        assert!(ran.json("error") <= 1.2e-6, "{kind}");
        assert_has_all(&folder, &out, "list");
        let info = folder.json(&format!("info --json {out}"));
        assert_eq!(info["kind"], kind);
        if matches!(kind, "bloom" | "classic") {
            assert_eq!(info["items"], 5000);
            assert_eq!(info["promised_error"], 1e-6);
        }
    }
}

#[test]
fn four_keys_make_a_small_file() {
    let folder = Folder::new();
    folder.file("list", "one\ntwo\nthree\nfour\n");
    for kind in KINDS {
        folder
            .petal(&format!("build list -o {kind} --kind {kind}"))
            .ends_with(0);
        let bytes = read(&folder.path(kind)).len();
        assert!(bytes < 1024, "{kind}: {bytes}");
        assert_has_all(&folder, kind, "list");
    }
}

#[test]
fn short_and_empty_lines_are_keys() {
    let folder = Folder::new();
    folder.file("list", b"\na\n\0\na\0\n");
    folder.petal("build list -o f --summary json").ends_with(0);
    assert_has_all(&folder, "f", "list");
    let others = folder
        .petal_with("check f", b"b\n\0\0\n\0a\n \na\0\0")
        .ends_with(1);
    assert!(others.stdout.is_empty());

    // Records that end with NUL: two empty ones, and a line feed.
    folder.file("nul", b"\0x\n\0\0y");
    let ran = folder
        .petal("build -0 nul -o g --summary json")
        .ends_with(0);
    assert_eq!((ran.json("lines"), ran.json("keys")), (4.0, 3.0));
    let found = folder.petal_with("check -0 g", b"x\n\0x\0y\0").ends_with(0);
    assert_eq!(found.stdout, b"x\n\0y\0");

    let skipped = folder.petal("build list -o h --skip-empty --summary json");
    assert_eq!(skipped.ends_with(0).json("empty"), 1.0);
    folder.petal_with("check h", b"\n").ends_with(1);
}

/// Small filters of a large error lost keys elsewhere.
#[test]
fn seventeen_urls_are_all_found() {
    let folder = Folder::new();
    let urls: String = (0..17)
        .map(|i| format!("https://www.example.com/watch?v={:x}\n", i * 7_919 + 1))
        .collect();
    folder.file("urls", urls);
    for kind in KINDS {
        folder
            .petal(&format!("build urls -o {kind} -p 0.04 --kind {kind}"))
            .ends_with(0);
        assert_has_all(&folder, kind, "urls");
    }
}

#[test]
fn exactly_as_many_keys_as_declared_are_taken() {
    let folder = Folder::new();
    folder.file("list", numbers(0..42_000));
    let ran = folder
        .petal("build list -n 42000 -p 1e-9 -o full --summary json")
        .ends_with(0);
    assert_eq!(ran.json("keys"), 42_000.0);
    assert!(ran.json("error") <= 1e-9);
    folder
        .petal("build list -n 41999 -p 1e-9 -o over")
        .refused(&[
            "list, up to line",
            "41,999 distinct keys",
            "-n",
            "nothing was written",
        ]);
    folder
        .petal("build list -n 41999 --kind digests -o over")
        .refused(&["41,999 distinct keys"]);
    // A growable filter goes beyond.
    folder
        .petal("build list -n 1000 -p 1e-6 --kind growable -o grown")
        .ends_with(0);
    assert_has_all(&folder, "grown", "list");
    let error = folder.json("info --json grown")["error_now"]
        .as_f64()
        .unwrap();
    assert!(error <= 1e-6, "{error}");
    assert_eq!(folder.names(), ["full", "grown", "list"]);
}

#[test]
fn the_file_is_the_same_for_every_number_of_threads() {
    let folder = Folder::new();
    // A large error, so that what is counted depends on the order.
    folder.file(
        "list",
        [numbers(0..30_000), numbers(9_000..40_000)].concat(),
    );
    for kind in ["bloom", "classic", "growable"] {
        for more in ["", "-n 40k"] {
            let mut files = Vec::new();
            for threads in [1, 2, 7, 7] {
                let line =
                    format!("build list -o f --force -p 0.3 --kind {kind} {more} -j {threads}");
                folder.petal(&line).ends_with(0);
                files.push(read(&folder.path("f")));
            }
            assert!(
                files.windows(2).all(|pair| pair[0] == pair[1]),
                "{kind} {more}"
            );
        }
    }
}

#[test]
fn an_existing_filter_is_refused_before_anything_is_read() {
    let folder = Folder::new();
    folder.file("f", "precious");
    // Nothing is ever written to this stdin, and it stays open.
    let mut child = folder
        .command("build -o f")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take();
    let status = child.wait().unwrap();
    drop(stdin);
    assert_eq!(status.code(), Some(2));
    folder.petal("build -o f").refused(&["f exists", "--force"]);
    assert_eq!(read(&folder.path("f")), b"precious");
    folder.petal_with("build -o f --force", b"a\n").ends_with(0);
    folder.petal_with("check f", b"a\n").ends_with(0);
    assert_eq!(folder.names(), ["f"]);
}

#[test]
fn keys_that_outgrow_the_memory_are_counted_in_a_pass_of_their_own() {
    let folder = Folder::new();
    let text = numbers(0..60_000);
    folder.file("list", &text);
    let ran = folder
        .petal("build list -o f --memory 9831K --summary json")
        .ends_with(0);
    assert_eq!((ran.json("lines"), ran.json("keys")), (60_000.0, 60_000.0));
    assert!(ran.json("error") <= 1e-6);
    assert_has_all(&folder, "f", "list");
    let items = folder.json("info --json f")["items"].as_u64().unwrap();
    assert!((60_000..60_010).contains(&items), "{items}");

    // A pipe cannot be read twice.
    folder
        .petal_with("build -o g --memory 9831K", text.as_bytes())
        .refused(&["-n", "--memory", "a file"]);
    folder
        .petal_with("build -o g --memory 9831K -n 60k", text.as_bytes())
        .ends_with(0);
    // Nor can more be counted than the second filter holds.
    folder.file("more", numbers(0..400_000));
    folder
        .petal("build more -o h --memory 9831K")
        .refused(&["cannot be counted", "-n"]);
    // And what is counted may be too much for the filter that was asked for.
    folder
        .petal("build more -o h --memory 9831K --kind digests")
        .refused(&["--memory", "nothing was written"]);
    assert_eq!(folder.names(), ["f", "g", "list", "more"]);
}

#[test]
fn sizes_that_no_memory_holds_are_refused_with_the_bytes() {
    let folder = Folder::new();
    folder.file("list", "a\n");
    for (line, words) in [
        (
            "-n 1T -p 1e-6",
            &["3.5 TiB", "memory budget", "--memory"][..],
        ),
        ("-n 10G -p 1e-4 --memory 1G", &["23.5 GiB", "1.0 GiB"]),
        ("-n 10G -p 1e-4 --memory 1G --kind classic", &["22.3 GiB"]),
        ("-n 10G --memory 1G --kind digests", &["99.3 GiB"]),
        ("-n 10000000000000 -p .001", &["10^12", "parts"]),
        ("-n 18446744073709551615 -p .001", &["10^12"]),
        ("--memory 1M", &["--memory", "10.0 MiB or more"]),
        ("--memory 0", &["--memory"]),
        ("--memory lots", &["--memory", "`lots`"]),
    ] {
        folder
            .petal(&format!("build list -o f {line}"))
            .refused(words);
    }
    // Claimed with a budget beyond the machine, the library still refuses.
    folder
        .petal("build list -o f -n 1T -p 1e-6 --memory 100T")
        .refused(&["this process may use"]);
    assert_eq!(folder.names(), ["list"]);
}

#[test]
fn wrong_parameters_are_refused() {
    let folder = Folder::new();
    folder.file("list", "a\n");
    folder.file("other", "b\n");
    for (line, words) in [
        ("list -o f -p 0", &["-p 0", "between 0 and 1"][..]),
        ("list -o f -p 1", &["-p 1", "between 0 and 1"]),
        ("list -o f -p 2", &["did you mean 0.02"]),
        ("list -o f -p 5", &["did you mean 0.05"]),
        ("list -o f -p -0.1", &["-p -0.1", "between 0 and 1"]),
        ("list -o f -p NaN", &["-p NaN", "between 0 and 1"]),
        ("list -o f -p inf", &["-p inf", "between 0 and 1"]),
        ("list -o f -p 1e-13", &["1e-12 or more"]),
        ("list -o f -p x", &["-p \"x\""]),
        ("list -o f -n 0", &["-n 0", "at least 1"]),
        ("list -o f -n -3", &["-3", "negative"]),
        ("list -o f -n 1T -p 1e-9", &["64-bit digests"]),
        ("list -o f --kind cuckoo", &["cuckoo", "bloom"]),
        (
            "list -o f --field 0 --delimiter ,",
            &["field", "counted from 1"],
        ),
        ("list -o f --field -1 --delimiter ,", &["-1"]),
        ("list -o f --field 2", &["--delimiter"]),
        ("list -o f --delimiter ,", &["--field"]),
        (
            "list -o f --field 2 --delimiter ::",
            &["--delimiter", "one byte"],
        ),
        (
            "list -o f --field 2 --delimiter é",
            &["--delimiter", "one byte"],
        ),
        ("list -o f --strip-param utm_*", &["--as url"]),
        ("list -o f --as url --strip-param a*b", &["strip-param"]),
        ("list -o f --as sha", &["sha", "hex"]),
        ("list -o f --label nothing", &["label", "name=value"]),
        ("list -o f --label =x", &["label"]),
        ("list -o f --label a=1 --label a=2", &["a=2", "before"]),
        ("list -o f -j x", &["x"]),
        ("list", &["--output"]),
        ("missing -o f", &["missing"]),
        (". -o f", &["is a directory"]),
        ("list other missing -o f", &["missing"]),
        ("list -o .", &["is a directory"]),
        ("list -o -", &["-o -", "file"]),
        ("list -o no/such/f", &["no/such"]),
        ("list -o list/f", &["list/f"]),
        ("list -o list --force", &["list", "two names"]),
        ("list -o /dev/full --force", &["/dev/full"]),
        ("list -o f --secret-file missing", &["secret file missing"]),
        (
            "list -o f --secret-file list",
            &["secret file list", "expected"],
        ),
    ] {
        folder.petal(&format!("build {line}")).refused(words);
    }
    assert_eq!(folder.names(), ["list", "other"]);
    assert_eq!(read(&folder.path("list")), b"a\n");
}

#[test]
fn a_folder_that_takes_no_files_is_named() {
    let folder = Folder::new();
    folder.file("list", "a\n");
    let locked = folder.path("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o555)).unwrap();
    // The administrator may write all the same: /proc takes files of nobody.
    let target = match std::fs::write(locked.join("probe"), "") {
        Ok(()) => "/proc/f",
        Err(_) => "locked/f",
    };
    folder
        .petal(&format!("build list -o {target}"))
        .refused(&[target]);
}

#[test]
fn hex_digests_are_one_key_in_any_case_and_length_is_recorded() {
    let folder = Folder::new();
    let upper = "ABCDEF0123456789ABCDEF0123456789ABCDEF01";
    let lower = upper.to_lowercase();
    folder.file("list", format!("{upper}:12\r\n"));
    folder
        .petal("build list -o f --as hex --label hash=sha1")
        .ends_with(0);
    for line in [
        upper,
        &lower,
        &format!("{lower}  file.txt"),
        &format!("SHA1 (x) = {upper}"),
    ] {
        let found = folder.petal_with("check f", line.as_bytes()).ends_with(0);
        assert_eq!(found.stdout, line.as_bytes());
    }
    let info = folder.json("info --json f");
    assert_eq!(info["labels"]["hash"], "sha1");
    assert_eq!(info["normalisation"], "--as hex (40 digits)");

    // Another length, and no hex at all: named with their line.
    folder.file("mixed", format!("{lower}\n\n{}\n{upper}\n", &lower[..32]));
    folder.petal("build mixed -o g --as hex").refused(&[
        "mixed:2:",
        "2 lines are not of the form --as hex (40 digits)",
        "--skip-bad",
    ]);
    folder.file("short", format!("{lower}\n{}\n", &lower[..32]));
    folder
        .petal("build short -o g --as hex")
        .refused(&["short:2: 32 hex digits, expected 40", "1 line is not"]);
    let ran = folder
        .petal("build mixed -o g --as hex --skip-bad --summary json")
        .ends_with(0);
    assert_eq!((ran.json("bad"), ran.json("keys")), (2.0, 1.0));
    assert_eq!(ran.json("repeated"), 1.0);

    // The first key decides, wherever it stands.
    folder.file("late", format!("# a comment\n{}\n{lower}\n", &lower[..32]));
    let ran = folder
        .petal("build late -o h --as hex --skip-bad --summary json")
        .ends_with(0);
    assert_eq!((ran.json("bad"), ran.json("keys")), (2.0, 1.0));
    assert_eq!(
        folder.json("info --json h")["normalisation"],
        "--as hex (32 digits)"
    );
    assert_eq!(
        folder.names(),
        ["f", "g", "h", "late", "list", "mixed", "short"]
    );
}

#[test]
fn input_of_the_wrong_form_is_given_up_after_a_while() {
    let folder = Folder::new();
    folder.file("list", "no hash\n".repeat(200_000));
    folder
        .petal("build list -o f --as hex")
        .refused(&["list:1:", "or more lines are not"]);
    assert_eq!(folder.names(), ["list"]);
}

#[test]
fn integers_are_compared_as_numbers() {
    let folder = Folder::new();
    folder.file("list", "7\n-9223372036854775808\n");
    folder.petal("build list -o f --as int").ends_with(0);
    let found = folder.petal_with("check f", b"007\n+7\n 7 \n8\nseven\n-9223372036854775808\n");
    assert_eq!(
        found.ends_with(0).stdout,
        b"007\n+7\n 7 \n-9223372036854775808\n"
    );
    assert_eq!(folder.json("info --json f")["key_type"], "int");
    for (line, why) in [
        ("seven", "not a decimal integer"),
        ("9223372036854775808", "an integer outside of"),
        ("", "not a decimal integer"),
    ] {
        folder.file("bad", format!("1\n{line}\n"));
        folder
            .petal("build bad -o g --as int")
            .refused(&[&format!("bad:2: {why}")]);
    }
}

#[test]
fn the_flags_of_build_are_the_flags_of_check() {
    let folder = Folder::new();
    folder.file("list", "1,Alice\n2,BOB\n3\n");
    let ran = folder
        .petal("build list -o f --ignore-case --field 2 --delimiter , --summary json")
        .ends_with(0);
    assert_eq!((ran.json("keys"), ran.json("no_field")), (2.0, 1.0));
    let found = folder
        .petal_with("check f", b"9,alice\n9,Bob,x\nalice\n9,carol\n")
        .ends_with(0);
    assert_eq!(found.stdout, b"9,alice\n9,Bob,x\n");

    folder.file(
        "urls",
        "HTTP://Example.org:80/a/../b?utm_source=x&k=1#top\nnot a url\n",
    );
    let ran = folder
        .petal("build urls -o u --as url --strip-param utm_* --summary json")
        .ends_with(0);
    assert_eq!(ran.json("not_url"), 1.0);
    let found = folder.petal_with(
        "check u",
        b"http://example.org/b?k=1\nnot a url\nNot a url\n",
    );
    assert_eq!(
        found.ends_with(0).stdout,
        b"http://example.org/b?k=1\nnot a url\n"
    );
}

#[test]
fn keyed_filters_need_their_secret() {
    let folder = Folder::new();
    let secret = |name: &str, text: &str| {
        let path = folder.file(name, text);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    secret("right", "000102030405060708090a0b0c0d0e0f\n");
    secret("wrong", "000102030405060708090a0b0c0d0e00\n");
    folder.file("list", numbers(0..100));
    folder
        .petal("build list -o f --secret-file right")
        .ends_with(0);
    let found = folder
        .petal("check f list --secret-file right -c")
        .ends_with(0);
    assert_eq!(found.stdout, b"100\n");
    folder
        .petal("check f list")
        .refused(&["f: ", "keyed", "--secret-file"]);
    folder
        .petal("check f list --secret-file wrong")
        .refused(&["another secret", "--secret-file"]);
    // The file holds a check value and not the secret.
    let file = read(&folder.path("f"));
    let bytes: Vec<u8> = (0..16).collect();
    assert!(!file.windows(16).any(|window| window == bytes));
}

#[test]
fn compressed_lists_are_read_and_damaged_ones_refused() {
    let folder = Folder::new();
    let text = numbers(0..20_000);
    folder.file("plain", &text);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    folder.file("list.gz", &gzip);
    folder.petal("build plain -o a").ends_with(0);
    folder.petal("build list.gz -o b").ends_with(0);
    assert_eq!(read(&folder.path("a")), read(&folder.path("b")));
    folder.file("cut.gz", &gzip[..gzip.len() - 100]);
    folder
        .petal("build cut.gz -o c")
        .refused(&["cut.gz", "cut short"]);
    assert_eq!(folder.names(), ["a", "b", "cut.gz", "list.gz", "plain"]);
}

#[test]
fn an_empty_list_makes_a_filter_of_nothing() {
    let folder = Folder::new();
    folder.file("list", "");
    for kind in KINDS {
        for more in ["", "-n 10"] {
            let ran = folder
                .petal(&format!(
                    "build list -o {kind} --force --kind {kind} {more} --summary json"
                ))
                .ends_with(0);
            assert_eq!((ran.json("keys"), ran.json("error")), (0.0, 0.0), "{kind}");
            folder
                .petal_with(&format!("check {kind}"), b"\na\n")
                .ends_with(1);
        }
    }
}

#[test]
fn what_is_said_is_a_matter_of_flags() {
    let folder = Folder::new();
    folder.file("list", "a\n");
    let said = |flags: &str| {
        let ran = folder
            .petal(&format!("build list -o f --force {flags}"))
            .ends_with(0);
        assert!(ran.stdout.is_empty());
        ran.stderr
    };
    assert!(said("").contains("plan:") && said("").contains("distinct keys  "));
    assert_eq!(said("-q"), "");
    assert_eq!(said("--summary none"), "");
    assert_eq!(said("--summary json").lines().count(), 1);
}

#[test]
fn static_filters_are_the_same_whatever_the_memory_order_and_threads() {
    let folder = Folder::new();
    let keys: u64 = 1_000_000;
    folder.file("list", numbers(0..keys));
    folder.file("other", numbers(500_000..keys) + &numbers(0..600_000));
    let build = |list: &str, name: &str, more: &str| {
        let line = format!("build {list} -o {name} --kind static -p 1e-3 --summary json {more}");
        let ran = folder.petal(&line).ends_with(0);
        assert_eq!(ran.json_count("keys"), 1_000_000);
        // 9.97 bits are the least there can be.
        assert!(ran.json("bits_per_key") < 10.02, "{}", ran.stderr);
        assert!((ran.json("error") - 1e-3).abs() < 1e-5);
        read(&folder.path(name))
    };
    let filter = build("list", "a", "-j1");
    // The digests of so many keys do not fit: they go to a file and come back.
    assert!(filter == build("other", "b", "-j1 --memory 34M"));
    assert!(filter == build("other", "c", "-j2"));
    folder.petal("verify a").ends_with(0);
    let ran = folder.petal("check -c a list").ends_with(0);
    assert_eq!(ran.stdout, b"1000000\n");
    folder.file("absent", numbers(keys..2 * keys));
    let ran = folder.petal("check -c a absent").ends_with(0);
    let found: f64 = String::from_utf8(ran.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    // Five standard deviations.
    assert!((found - 1000.0).abs() < 5.0 * 1000f64.sqrt(), "{found}");
}

#[test]
fn static_filters_of_few_keys_and_none() {
    let folder = Folder::new();
    folder.file("none", "");
    folder.file("one", "a\na\n");
    for (list, keys) in [("none", 0), ("one", 1)] {
        let build = format!("build {list} -o {list}.petal --kind static --summary json");
        let ran = folder.petal(&build).ends_with(0);
        assert_eq!(ran.json_count("keys"), keys);
        let info = folder.json(&format!("info --json {list}.petal"));
        assert_eq!(info["kind"], "static");
        assert_eq!(info["distinct"], keys);
        assert_eq!(info["over_capacity"], false);
    }
    folder.petal("check one.petal one").ends_with(0);
    folder.petal("check none.petal one").ends_with(1);
    let ran = folder.petal("add one.petal one").ends_with(2);
    assert!(ran.stderr.contains("static"), "{}", ran.stderr);
    for refused in [
        "build one -o x --kind static -n 10",
        "build one -o x --tmp .",
        "build one -o x --kind static --memory 8M",
        "build one -o x --kind static -p 0",
        "merge one.petal one.petal -o x",
    ] {
        let ran = folder.petal(refused).ends_with(2);
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty());
        assert!(!folder.path("x").exists(), "{refused}");
    }
}
