//! `petal info` and `petal verify`.

use std::os::unix::fs::PermissionsExt;
use std::time::{SystemTime, UNIX_EPOCH};

use petal::{Overload, Overwrite, WindowFilter};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::support::{Folder, numbers, read};

#[test]
fn a_filter_says_what_it_is() {
    let folder = Folder::new();
    folder.file("list", numbers(0..1000));
    folder
        .petal("build list -o f -p 0.001 --ignore-case --label source=here")
        .ends_with(0);
    let info = folder.json("info --json f");
    for (key, value) in [
        ("kind", Value::from("bloom")),
        ("key_type", "bytes".into()),
        ("hasher", "portable".into()),
        ("seed", 0.into()),
        ("check_value", Value::Null),
        ("normalisation", "--as line --ignore-case".into()),
        ("items", 1000.into()),
        ("promised_error", 0.001.into()),
        ("generation", 1.into()),
        ("dirty", false.into()),
        ("over_capacity", false.into()),
        ("format_version", petal::FORMAT_VERSION.into()),
    ] {
        assert_eq!(info[key], value, "{key}");
    }
    assert_eq!(info["labels"]["source"], "here");
    let file = read(&folder.path("f"));
    assert_eq!(info["file_bytes"], file.len());
    let sum: String = Sha256::digest(&file)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert_eq!(info["sha256"], sum);
    // The keys, from the words alone, within 3 %.
    let keys = info["estimated_keys"].as_f64().unwrap();
    assert!((970.0..=1030.0).contains(&keys), "{keys}");
    assert!((0.2..0.6).contains(&info["fill"].as_f64().unwrap()));
    assert!(info["error_at_capacity"].as_f64().unwrap() <= 0.001);

    let text = folder.petal("info f").ends_with(0).stdout;
    let text = String::from_utf8(text).unwrap();
    for part in [
        "f\n  kind",
        "source=here",
        "1,000 keys at an error of 0.001",
        "SHA-256",
        &sum,
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn every_kind_is_described() {
    let folder = Folder::new();
    folder.file("list", numbers(0..5000));
    for (kind, key) in [
        ("bloom", "regions"),
        ("classic", "k"),
        ("growable", "stages"),
        ("digests", "slots"),
        ("counting", "counter_bits"),
        ("deletable", "remainder_bits"),
        ("window --window 5k", "generations"),
    ] {
        let flags = kind;
        let kind = kind.split(' ').next().unwrap();
        folder
            .petal(&format!("build list -o {kind} --kind {flags}"))
            .ends_with(0);
        let info = folder.json(&format!("info --json {kind}"));
        assert_eq!(info["kind"], kind);
        assert_eq!(info["over_capacity"], false, "{kind}");
        if !matches!(kind, "digests") {
            assert!(info["error_at_capacity"].as_f64().unwrap() <= 1e-6);
        }
        assert!(info["geometry"][key].as_u64() > Some(0), "{info}");
        // One meaning each.
        let counted = match kind {
            "counting" => "insertions",
            "window" => "new_keys",
            _ => "distinct",
        };
        for name in ["distinct", "insertions", "new_keys"] {
            let count = info[name].as_u64();
            assert_eq!(count.is_some(), name == counted, "{kind}: {info}");
            assert!(count.is_none_or(|count| (4990..=5000).contains(&count)));
        }
        let keys = info["estimated_keys"].as_f64().unwrap();
        assert!((4850.0..=5150.0).contains(&keys), "{kind}: {keys}");
        // One filter of this size scatters by some 4 % around its promise.
        assert!(info["error_now"].as_f64().unwrap() <= 1.2e-6);
    }
}

/// A window of an hour by the clock, told a key so long ago.
fn window_of_an_hour(folder: &Folder, name: &str, minutes_ago: u64, label: bool) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = u64::try_from(since.as_millis()).unwrap() - minutes_ago * 60_000;
    let mut window = WindowFilter::timed(3_600_000, 1000, 1e-6, Overload::Shorten).unwrap();
    window.insert_at("key", now).unwrap();
    if label {
        window.labels_mut().set("clock", "unix-ms").unwrap();
    }
    window.save(folder.path(name), Overwrite::Refuse).unwrap();
}

#[test]
fn a_window_says_how_far_it_reaches() {
    let folder = Folder::new();
    window_of_an_hour(&folder, "recent", 30, true);
    window_of_an_hour(&folder, "old", 90, true);
    window_of_an_hour(&folder, "unknown", 90, false);
    // What has left the window is not found, also by a filter that nobody
    // told the time.
    for flags in ["", "--mapped"] {
        let check = |name: &str| folder.petal_with(&format!("check {flags} {name}"), b"key\n");
        check("recent").ends_with(0);
        check("old").ends_with(1);
        let ran = check("unknown").ends_with(0);
        assert!(
            ran.stderr
                .contains("warning: unknown: the label clock=unix-ms is missing")
        );
    }
    let info = folder.json("info --json recent");
    assert_eq!(info["window_ticks"], 3_600_000);
    assert_eq!(
        (&info["window"], &info["generations"]),
        (&"1 h".into(), &1.into())
    );
    assert_eq!(
        (&info["shortened"], &info["oldest_age"]),
        (&0.into(), &0.into())
    );
    let text = String::from_utf8(folder.petal("info recent unknown").ends_with(0).stdout).unwrap();
    for part in [
        " 1 h\n",
        "time told last",
        "Z\n",
        "3,600,000 ticks",
        "tick 1,",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    // Later lines go by the clock.
    let ran = folder
        .petal_with("add old --summary json", b"key\nother\n")
        .ends_with(0);
    assert_eq!((ran.json("added"), ran.json("keys")), (2.0, 2.0));
    folder.petal_with("check old", b"key\n").ends_with(0);
    let ran = folder
        .petal_with("add recent --summary json", b"key\n")
        .ends_with(0);
    assert_eq!((ran.json("added"), ran.json("present")), (0.0, 1.0));
    let age = folder.json("info --json recent")["oldest_age"]
        .as_u64()
        .unwrap();
    assert!((1_800_000..3_600_000).contains(&age), "{age}");
    // More than it takes: the oldest go early, and that is said.
    folder.file("many", numbers(0..3000));
    let ran = folder.petal("add recent many").ends_with(0);
    assert!(
        ran.stderr.contains("warning: recent: more lines came"),
        "{}",
        ran.stderr
    );
    assert!(folder.json("info --json recent")["shortened"].as_u64() > Some(10));
}

/// A filter all of whose bits are set holds an unknown number of keys, not
/// NaN or infinity of them.
#[test]
fn a_saturated_filter_has_no_estimate() {
    let folder = Folder::new();
    folder.file("one", "1\n");
    folder.file("many", numbers(0..10_000));
    folder.petal("build one -o f -p 0.1").ends_with(0);
    folder.petal("add f many --overfill").ends_with(0);
    let info = folder.json("info --json f");
    assert_eq!(info["fill"], 1.0);
    assert_eq!(info["estimated_keys"], Value::Null);
    assert_eq!(info["error_now"], 1.0);
    assert_eq!(info["over_capacity"], true);
    let text = String::from_utf8(folder.petal("info f").ends_with(0).stdout).unwrap();
    assert!(text.contains("unknown (every bit is set)"), "{text}");
    // A check with it does not claim to know, either.
    let ran = folder.petal("check f many -c --summary json").ends_with(0);
    assert_eq!(ran.json("expected_false"), 10_000.0);
}

#[test]
fn no_secret_is_needed_to_look() {
    let folder = Folder::new();
    folder.file("list", numbers(0..1000));
    let secret = folder.file("secret", "000102030405060708090a0b0c0d0e0f");
    std::fs::set_permissions(secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    folder
        .petal("build list -o f --secret-file secret")
        .ends_with(0);
    let info = folder.json("info --json f");
    assert_eq!(info["hasher"], "keyed");
    assert_eq!(info["check_value"].as_str().map(str::len), Some(16));
    assert_eq!(info["seed"], Value::Null);
    let keys = info["estimated_keys"].as_f64().unwrap();
    assert!((970.0..=1030.0).contains(&keys), "{keys}");
    folder.petal("verify f").ends_with(0);
}

#[test]
fn files_that_are_no_filters_are_named_and_the_next_is_shown() {
    let folder = Folder::new();
    folder.file("list", numbers(0..100));
    folder.petal("build list -o f").ends_with(0);
    let mut damaged = read(&folder.path("f"));
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    folder.file("damaged", &damaged);
    folder.file("redis", b"REDIS0009\xfa");
    for line in [
        "info missing redis damaged . f",
        "verify missing redis damaged . f",
    ] {
        let ran = folder.petal(line).ends_with(2);
        let errors: Vec<&str> = ran.stderr.lines().collect();
        assert_eq!(errors.len(), 4, "{errors:?}");
        for (error, words) in errors.iter().zip([
            "missing",
            "redis: not a petal file",
            "damaged: damaged: the checksum of the payload",
            "a directory",
        ]) {
            assert!(
                error.starts_with("petal: ") && error.contains(words),
                "{error}"
            );
        }
        let text = String::from_utf8(ran.stdout).unwrap();
        assert!(text.starts_with('f'), "{text}");
    }
    let ran = folder.petal("info --json damaged f").ends_with(2);
    let line: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(line["file"], "f");
}

#[test]
fn verify_says_which_files_are_whole() {
    let folder = Folder::new();
    folder.file("list", numbers(0..100));
    for name in ["a", "b"] {
        folder.petal(&format!("build list -o {name}")).ends_with(0);
    }
    let ran = folder.petal("verify a b").ends_with(0);
    assert_eq!(ran.stdout, b"a: OK\nb: OK\n");
    assert_eq!(ran.stderr, "");
    let ran = folder.petal("verify -q a b").ends_with(0);
    assert!(ran.stdout.is_empty() && ran.stderr.is_empty());
    folder.petal("verify").ends_with(2);
    folder.petal("info").ends_with(2);
}

#[test]
fn every_flip_and_every_cut_is_found() {
    let folder = Folder::new();
    folder.file("list", "a\nb\nc\n");
    folder.petal("build list -o f --label a=b").ends_with(0);
    let whole = read(&folder.path("f"));
    // Many files in few runs: each gets its line.
    let mut names = Vec::new();
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        folder.file(&format!("flip{at}"), flipped);
        folder.file(&format!("cut{at}"), &whole[..at]);
        names.extend([format!("flip{at}"), format!("cut{at}")]);
    }
    for some in names.chunks(100) {
        let ran = folder
            .petal(&format!("verify {}", some.join(" ")))
            .ends_with(2);
        assert_eq!(ran.stdout.escape_ascii().to_string(), "");
        assert_eq!(ran.stderr.lines().count(), some.len());
    }
}
