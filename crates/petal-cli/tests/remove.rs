//! `petal remove`, and the kinds it works on from `build` to `check --times`.

use std::process::Command;

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
            let ran = ran.ends_with(0);
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

/// A deletable filter for the distinct lines takes them whatever their counts, at
/// the error that was asked for; only more distinct ones are refused.
#[test]
fn a_deletable_filter_is_for_distinct_lines() {
    let folder = Folder::new();
    folder.file("twice", numbers(0..5000).repeat(2));
    let hot: String = (0..5000).map(|i| format!("hot\n{i}\n")).collect();
    folder.file("half", hot);
    folder.file("plain", numbers(0..5000));
    for (list, distinct) in [("twice", 5000), ("half", 5001)] {
        for p in ["0.2", "0.01", "1e-4", "1e-6"] {
            let line = format!(
                "build {list} -o f --force --kind deletable -p {p} -n {distinct} --summary json"
            );
            let ran = folder.petal(&line).ends_with(0);
            // At 0.2, which is 0.01 in truth, some are falsely seen.
            let keys = ran.json("keys");
            assert!((4900.0..=f64::from(distinct)).contains(&keys), "{keys}");
            let p: f64 = p.parse().unwrap();
            assert!(ran.json("error") <= p);
            let info = folder.json("info --json f");
            assert_eq!(info["items"], distinct);
            assert_eq!(info["over_capacity"], false);
            assert!(info["error_at_capacity"].as_f64().unwrap() <= p);
        }
    }
    let counts = times(&folder, "f", "plain");
    assert!(counts.iter().all(|(count, _)| *count == 1) && counts.len() == 5000);
    folder.file("ask", "hot\n");
    assert_eq!(times(&folder, "f", "ask"), [(5000, "hot".to_owned())]);
    // All of it three times more.
    for _ in 0..3 {
        folder.petal("add f plain").ends_with(0);
    }
    let counts = times(&folder, "f", "plain");
    assert!(counts.iter().all(|(count, _)| *count == 4));
    // Another line is one too many.
    folder.petal_with("add f", b"another\n").refused(&[
        "made for 5,001 keys",
        "nothing was written",
        "-n",
    ]);
    // Many more find no slot, with or without leave.
    folder
        .petal("build plain -o h --kind deletable -n 5000")
        .ends_with(0);
    let more = numbers(5000..9000);
    for flags in ["", "--overfill"] {
        folder
            .petal_with(&format!("add h {flags}"), more.as_bytes())
            .refused(&[
                "h: more than the 5,000 distinct keys",
                "nothing was written",
                "-n",
            ]);
    }
    // Where the memory does not hold the counts that is said.
    folder.file("many", numbers(0..600_000));
    folder
        .petal("build many -o g --kind deletable -n 600k")
        .ends_with(0);
    let before = read(&folder.path("g"));
    folder.petal("add g many --memory 10800K").refused(&[
        "g: to count the repeats",
        "--memory",
        "nothing was written",
    ]);
    assert_eq!(read(&folder.path("g")), before);
    // Without the flag a quarter of what the process may use is the bound.
    let command = format!(
        "ulimit -v 49152; exec {} add g many -j1",
        env!("CARGO_BIN_EXE_petal")
    );
    let output = Command::new("sh")
        .args(["-c", &command])
        .current_dir(folder.path("."))
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("the memory budget is 12.0 MiB: allow more with --memory"),
        "{stderr}"
    );
    assert_eq!(read(&folder.path("g")), before);
    folder.petal("add g many").ends_with(0);
    folder.petal("remove g many").ends_with(0);
    let ran = folder.petal("merge g g -o both").ends_with(0);
    assert!(
        ran.stderr.contains("different fingerprints   600,0"),
        "{}",
        ran.stderr
    );
}

/// The plan names what will be held at most, with the counts of repeats.
#[test]
fn the_plan_of_a_deletable_filter_counts_its_doubling() {
    let folder = Folder::new();
    folder.file("list", numbers(0..1000));
    let line = "build list -o f --force --kind deletable -n 600k";
    for (memory, words) in [
        ("64M", "; counts of repeats take it to at most 33."),
        ("14200K", "; counts of repeats take it to at most 4.8 MiB"),
        ("10800K", "; the memory holds no counts beyond that size"),
    ] {
        let ran = folder
            .petal(&format!("{line} --memory {memory}"))
            .ends_with(0);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    let ran = folder.petal("build list -o f --force -n 600k").ends_with(0);
    assert!(!ran.stderr.contains("repeats take"), "{}", ran.stderr);
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

/// What came as often as counters can say is there for good, and is not said to be
/// removed.
#[test]
fn lines_at_a_saturated_counter_are_told_apart() {
    let folder = Folder::new();
    folder.file("list", "hot\n".repeat(20) + "twice\ntwice\nonce\n");
    folder
        .petal("build list -o f --kind counting -n 100")
        .ends_with(0);
    let insertions = folder.json("info --json f")["insertions"].clone();
    assert_eq!(insertions, 23);
    let ran = folder
        .petal_with(
            "remove f --summary json",
            b"hot\nhot\ntwice\nonce\nonce\nno\n",
        )
        .ends_with(0);
    assert_eq!((ran.json("removed"), ran.json("stuck")), (2.0, 2.0));
    assert_eq!(ran.json("absent"), 2.0);
    assert_eq!(folder.json("info --json f")["insertions"], 21);
    // Nothing but stuck lines leaves the file as it is.
    let before = read(&folder.path("f"));
    let ran = folder.petal_with("remove f", b"hot\n").ends_with(0);
    assert!(ran.stderr.contains("there for good"), "{}", ran.stderr);
    assert_eq!(read(&folder.path("f")), before);
    // With enough bits none is.
    folder
        .petal("build list -o g --kind counting -n 100 --counter-bits 8")
        .ends_with(0);
    let ran = folder
        .petal_with("remove g --summary json", "hot\n".repeat(21).as_bytes())
        .ends_with(0);
    assert_eq!((ran.json("removed"), ran.json("stuck")), (20.0, 0.0));
    assert_eq!(ran.json("absent"), 1.0);
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
