//! `petal remove`, and the kinds it works on from `build` to `check --times`.

use crate::support::{Folder, Ran, numbers, read};

const FORGETFUL: [&str; 2] = ["counting", "deletable"];

/// Counts of `check --times`, for every line of a list.
#[track_caller]
fn times(folder: &Folder, filter: &str, list: &str) -> Vec<(u64, String)> {
    let ran = folder.petal(&format!("check --times {filter} {list}"));
    let text = String::from_utf8(ran.stdout).unwrap();
    text.lines()
        .map(|line| {
            let (count, line) = line.split_once('\t').unwrap();
            (count.parse().unwrap(), line.to_owned())
        })
        .collect()
}

#[test]
fn what_is_removed_as_often_as_added_is_gone_and_nothing_else() {
    let folder = Folder::new();
    folder.file("list", [numbers(0..2000), numbers(0..500)].concat());
    folder.file("left", [numbers(0..100), numbers(600..1000)].concat());
    folder.file("all", numbers(0..2000));
    for kind in FORGETFUL {
        let build = format!("build list -o {kind} --kind {kind} --summary json");
        let ran = folder.petal(&build).ends_with(0);
        assert_eq!((ran.json("keys"), ran.json("repeated")), (2000.0, 500.0));
        let ran = folder.petal(&format!("remove {kind} left --summary json"));
        let ran = ran.ends_with(0);
        assert!(ran.stdout.is_empty());
        assert_eq!(ran.json("lines"), 500.0);
        assert_eq!((ran.json("removed"), ran.json("absent")), (500.0, 0.0));
        // At 1e-6 none of 400 absent lines is found.
        let expected: Vec<(u64, String)> = (0..2000)
            .map(|i| {
                (
                    1 + u64::from(i < 500) - u64::from(i < 100 || (600..1000).contains(&i)),
                    i,
                )
            })
            .filter(|&(count, _)| count > 0)
            .map(|(count, i)| (count, i.to_string()))
            .collect();
        assert_eq!(times(&folder, kind, "all"), expected);
        folder.petal(&format!("verify {kind}")).ends_with(0);
        // What is absent is left alone, and the file with it.
        let before = read(&folder.path(kind));
        folder.file("absent", numbers(600..1000));
        let ran = folder.petal(&format!("remove {kind} absent --summary json"));
        let ran = ran.ends_with(0);
        assert_eq!((ran.json("removed"), ran.json("absent")), (0.0, 400.0));
        assert_eq!(read(&folder.path(kind)), before);
        // All of it: then it is empty.
        folder.file(
            "rest",
            numbers(0..600) + &numbers(1000..2000) + &numbers(100..500),
        );
        let ran = folder.petal(&format!("remove {kind} rest --summary json"));
        assert_eq!(ran.ends_with(0).json("removed"), 2000.0);
        assert_eq!(folder.json(&format!("info --json {kind}"))["fill"], 0.0);
        folder.petal(&format!("check {kind} all")).ends_with(1);
    }
}

#[test]
fn rules_of_the_filter_hold_for_removal() {
    let folder = Folder::new();
    folder.file("list", "A,Some\nB,Other\n\nno field\n");
    for kind in FORGETFUL {
        let rules = "--field 2 --delimiter , --ignore-case --skip-empty";
        folder
            .petal(&format!("build list -o {kind} --kind {kind} {rules}"))
            .ends_with(0);
        let ran = folder
            .petal_with(
                &format!("remove {kind} --skip-empty --summary json"),
                b"x,SOME\r\n\nnothing\ny,absent\n",
            )
            .ends_with(0);
        assert_eq!((ran.json("removed"), ran.json("absent")), (1.0, 1.0));
        assert_eq!((ran.json("empty"), ran.json("no_field")), (1.0, 1.0));
        let left = folder.petal(&format!("check {kind} list")).ends_with(0);
        assert_eq!(left.stdout, b"B,Other\n");
    }
    folder.file("sums", "abcdef0123456789\n");
    folder
        .petal("build sums -o hex --kind deletable --as hex")
        .ends_with(0);
    let before = read(&folder.path("hex"));
    folder
        .petal_with("remove hex", b"ABCDEF0123456789\nabc\n")
        .refused(&["standard input:2", "--skip-bad"]);
    assert_eq!(read(&folder.path("hex")), before);
    let ran = folder.petal_with(
        "remove hex --skip-bad --summary json",
        b"ABCDEF0123456789\nabc\n",
    );
    assert_eq!(ran.ends_with(0).json("removed"), 1.0);
}

#[test]
fn filters_that_cannot_forget_say_what_to_do() {
    let folder = Folder::new();
    folder.file("list", "a\n");
    for (kind, words) in [
        ("bloom", &["kind bloom", "--kind deletable"][..]),
        ("classic", &["kind classic", "--kind deletable"]),
        ("growable", &["kind growable", "--kind deletable"]),
        ("digests", &["kind digests", "--kind deletable"]),
        ("window --window 10", &["window", "by themselves"]),
        ("counting --minimal", &["--minimal"]),
    ] {
        let build = format!("build list -o f --force --kind {kind}");
        folder.petal(&build).ends_with(0);
        let before = read(&folder.path("f"));
        folder.petal("remove f list").refused(words);
        assert_eq!(read(&folder.path("f")), before);
        if !kind.starts_with("counting") {
            folder
                .petal("check --times f list")
                .refused(&["does not count", "--kind counting"]);
        }
    }
    for (line, words) in [
        ("remove missing list", &["missing"][..]),
        ("remove list list", &["two names"]),
        ("remove f f", &["two names"]),
        ("remove f missing", &["missing"]),
    ] {
        folder.petal(line).refused(words);
    }
}

#[test]
fn repeats_are_counted_and_cost_no_room() {
    let folder = Folder::new();
    folder.file("list", numbers(0..1000));
    for kind in FORGETFUL {
        folder
            .petal(&format!("build list -o {kind} --kind {kind} -n 1500"))
            .ends_with(0);
        for round in 2..5u64 {
            let ran = folder.petal(&format!("add {kind} list --summary json"));
            let ran = match (kind, round) {
                // A second and a third time take slots: 1500 were planned.
                ("deletable", 2..) => {
                    ran.refused(&["slots are full", "repeats", "larger -n"]);
                    break;
                }
                _ => ran.ends_with(0),
            };
            assert_eq!((ran.json("added"), ran.json("present")), (0.0, 1000.0));
            assert!((ran.json("keys") - 1000.0).abs() < 80.0);
            assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
            let counts = times(&folder, kind, "list");
            assert!(counts.iter().filter(|(count, _)| *count == round).count() > 990);
            assert!(counts.iter().all(|(count, _)| *count >= round));
        }
        let info = folder.json(&format!("info --json {kind}"));
        assert_eq!(info["over_capacity"], false);
    }
    // With their number unknown they are counted, and have room.
    folder.file("thrice", numbers(0..1000).repeat(3));
    for kind in FORGETFUL {
        let build = format!("build thrice -o f --force --kind {kind} --summary json");
        let ran = folder.petal(&build).ends_with(0);
        assert_eq!((ran.json("keys"), ran.json("repeated")), (1000.0, 2000.0));
        assert!(
            times(&folder, "f", "list")
                .iter()
                .all(|(count, _)| *count == 3)
        );
        folder
            .petal_with(&format!("build -o new --kind {kind}"), b"a\n")
            .refused(&["read twice", "-n"]);
        folder
            .petal_with(
                &format!("build -o g --force --kind {kind} -n 2"),
                b"a\na\nb\n",
            )
            .ends_with(0);
        folder
            .petal_with(&format!("build -o h --kind {kind} -n 2"), b"a\na\nb\nc\n")
            .refused(&["more than 2 distinct keys"]);
    }
}

/// Past n: refused before writing, but for what an estimate may be wrong by.
#[test]
fn a_counting_filter_takes_the_keys_it_was_made_for() {
    let folder = Folder::new();
    folder.file("list", numbers(0..1000));
    folder.file("to n", numbers(1000..2000));
    folder.file("more", numbers(1000..2200));
    folder
        .petal("build list -o f --kind counting -n 2000")
        .ends_with(0);
    folder.petal("add f more").refused(&[
        "made for 2,000 keys",
        "nothing was written",
        "--overfill",
    ]);
    let to_n = numbers(1000..2000);
    let ran = folder.petal_with("add f", to_n.as_bytes()).ends_with(0);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    assert_eq!(folder.json("info --json f")["over_capacity"], false);
    let ran = folder.petal("add f more --overfill").ends_with(0);
    assert!(
        ran.stderr.contains("warning: f holds about"),
        "{}",
        ran.stderr
    );
    assert_eq!(folder.json("info --json f")["over_capacity"], true);
}

fn refused_build(folder: &Folder, flags: &str) -> Ran {
    folder.petal(&format!("build list -o new {flags}"))
}

#[test]
fn options_belong_to_their_kind() {
    let folder = Folder::new();
    folder.file("list", "a\n");
    for (flags, words) in [
        ("--minimal", &["--kind counting"][..]),
        ("--counter-bits 8 --kind deletable", &["--kind counting"]),
        ("--counter-bits 5 --kind counting", &["4, 8 or 16"]),
        ("--window 10", &["--kind window"]),
        ("--kind window", &["needs --window"]),
        ("--kind window --window 1h", &["-n"]),
        ("--kind window --window 10 -n 5", &["leave -n out"]),
        (
            "--kind window --window 0",
            &["--window", "nothing is within it"],
        ),
        ("--kind window --window 5x", &["unknown unit"]),
        ("--kind window --window 1h -n 5 --label clock=x", &["clock"]),
        ("--kind window --window 1G --memory 64M", &["--memory"]),
        ("--kind counting -n 1G --memory 64M", &["--memory"]),
    ] {
        refused_build(&folder, flags).refused(words);
    }
    assert_eq!(folder.names(), ["list"]);
}

#[test]
fn wide_counters_count_further_and_say_where_they_end() {
    let folder = Folder::new();
    folder.file("list", "a\n".repeat(300) + "b\n");
    for (flags, most, saturated) in [
        ("", 15, 1.0),
        ("--counter-bits 8", 255, 1.0),
        ("--counter-bits 16", 300, 0.0),
        ("--counter-bits 16 --minimal", 300, 0.0),
    ] {
        folder
            .petal(&format!("build list -o f --force --kind counting {flags}"))
            .ends_with(0);
        folder.file("ask", "b\na\nc\n");
        let ran = folder
            .petal("check --times f ask --summary json")
            .ends_with(0);
        assert_eq!(ran.stdout, format!("1\tb\n{most}\ta\n").as_bytes());
        assert_eq!(ran.json("saturated"), saturated);
        let info = folder.json("info --json f");
        assert_eq!(info["saturated"].as_u64() > Some(0), saturated > 0.0);
        assert_eq!(info["geometry"]["minimal"], flags.contains("minimal"));
        assert_eq!(info["insertions"], 301);
    }
}
