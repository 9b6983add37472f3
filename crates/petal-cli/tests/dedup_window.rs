//! `petal dedup --window`.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::process::Stdio;

use crate::support::{Folder, petal, run, run_with};

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut x = *state;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Lines whose last place is known, against what a window printed of them: a
/// repeat within the last `window` lines never, a line from before them and a
/// step always. Returns how often a line was forgotten and how many new ones
/// were wrongly dropped.
fn judge(keys: &[Option<u64>], printed: &[u8], window: usize) -> (u32, u32) {
    let printed = std::str::from_utf8(printed).unwrap();
    let mut printed = printed.lines().peekable();
    let mut last: HashMap<u64, usize> = HashMap::new();
    let (mut forgotten, mut wrong) = (0, 0);
    for (at, key) in keys.iter().enumerate() {
        let Some(key) = key else {
            continue;
        };
        let before = last.insert(*key, at).map(|before| at - before);
        let was_printed = printed.next_if(|line| *line == key.to_string()).is_some();
        match before {
            None => wrong += u32::from(!was_printed),
            Some(lines) if lines <= window => {
                assert!(!was_printed, "line {at} came {lines} lines before");
            }
            Some(lines) if lines >= window + window.div_ceil(14) => {
                wrong += u32::from(!was_printed);
                forgotten += 1;
            }
            Some(_) => {}
        }
    }
    assert_eq!(printed.next(), None);
    (forgotten, wrong)
}

/// Whatever is drawn from few keys and from many: all lines count, also
/// repeats of what is in the window, and those that are left out.
#[test]
fn a_window_of_lines_has_the_last_ones() {
    let mut state = 7;
    let keys: Vec<Option<u64>> = (0..60_000)
        .map(|_| match random(&mut state) % 12 {
            0 => None, // an empty line
            1..5 => Some(random(&mut state) % 60),
            _ => Some(random(&mut state) % 6000),
        })
        .collect();
    let line = |key: &Option<u64>| key.map_or_else(|| "\n".to_owned(), |key| format!("{key}\n"));
    let text: String = keys.iter().map(line).collect();
    for window in [5, 14, 15, 200, 1400, 9001] {
        let mut outputs = Vec::new();
        for threads in ["1", "3"] {
            let flags =
                format!("dedup --window {window} --skip-empty --summary json -p 1e-6 -j {threads}");
            let args: Vec<&str> = flags.split(' ').collect();
            let ran = run_with(&args, text.as_bytes()).ends_with(0);
            let (forgotten, wrong) = judge(&keys, &ran.stdout, window);
            assert!(forgotten > 1000, "{window}: {forgotten}");
            // New lines at up to 1e-6 each; three wrong ones are as rare as 5 sigma.
            assert!(wrong <= 2, "{window}: {wrong}");
            let printed = ran.stdout.iter().filter(|&&byte| byte == b'\n').count();
            assert_eq!(ran.json_count("unique"), printed);
            let keyed = keys.iter().flatten().count();
            assert_eq!(ran.json_count("unique") + ran.json_count("repeated"), keyed);
            assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
            let expected = ran.json("expected_dropped");
            assert!((0.0..0.05).contains(&expected), "{expected}");
            outputs.push(ran.stdout);
        }
        assert_eq!(outputs[0], outputs[1]);
    }
}

/// One line over and over moves a window of lines on as others do.
#[test]
fn repeats_move_a_window_of_lines_on() {
    let text = format!("a\n{}a\n", "beat\n".repeat(2000));
    for (window, printed) in [("1k", "a\nbeat\na\n"), ("2001", "a\nbeat\n")] {
        let ran = run_with(["dedup", "--window", window], text.as_bytes()).ends_with(0);
        assert_eq!(String::from_utf8(ran.stdout).unwrap(), printed, "{window}");
    }
}

/// Lines of other parts count as well: with `--part` a window of lines is no longer.
#[test]
fn lines_of_other_parts_move_a_window_of_lines_on() {
    const WINDOW: usize = 2000;
    let mut state = 3;
    let keys: Vec<u64> = (0..20_000).map(|_| random(&mut state) % 6000).collect();
    let text: String = keys.iter().map(|key| format!("{key}\n")).collect();
    let mut of_some_part = 0;
    for part in ["1/3", "2/3", "3/3"] {
        let ran = run_with(["dedup", "--window", "2k", "--part", part], text.as_bytes());
        let printed = ran.ends_with(0).stdout;
        let lines = std::str::from_utf8(&printed).unwrap().lines();
        let of_part: HashSet<u64> = lines.map(|line| line.parse().unwrap()).collect();
        of_some_part += of_part.len();
        let keys: Vec<Option<u64>> = keys
            .iter()
            .map(|key| of_part.contains(key).then_some(*key))
            .collect();
        let (forgotten, wrong) = judge(&keys, &printed, WINDOW);
        assert!(forgotten > 1000 && wrong <= 2, "{forgotten} {wrong}");
    }
    assert_eq!(of_some_part, keys.iter().collect::<HashSet<_>>().len());
}

/// The same by time, with a clock that jumps.
#[test]
fn a_window_of_time_has_what_was_seen_last_within_it() {
    const WINDOW: u64 = 3600;
    let mut state = 5;
    let (mut now, mut text) = (1_700_000_000, String::new());
    let mut expected = Vec::new();
    let mut last: HashMap<u64, u64> = HashMap::new();
    for _ in 0..30_000 {
        now += match random(&mut state) % 1000 {
            0 => 5 * WINDOW,
            1..100 => 60,
            _ => 1,
        };
        let key = random(&mut state) % 3000;
        text += &format!("{now} {key}\n");
        let before = last.insert(key, now).map(|before| now - before);
        expected.push((now, key, before));
    }
    let flags = "dedup --window 1h --time-field 1 --field 2 --summary json --delimiter";
    let args: Vec<&str> = flags.split(' ').chain([" "]).collect();
    let ran = run_with(&args, text.as_bytes()).ends_with(0);
    let printed = String::from_utf8(ran.stdout).unwrap();
    let mut printed = printed.lines().peekable();
    let mut again = 0;
    for (now, key, before) in expected {
        let line = format!("{now} {key}");
        let was_printed = printed.next_if(|printed| **printed == line).is_some();
        match before {
            None => assert!(was_printed, "{line} is new"),
            Some(age) if age <= WINDOW => assert!(!was_printed, "{line}: {age} s after"),
            Some(age) if age > WINDOW + WINDOW.div_ceil(14) => {
                assert!(was_printed, "{line}: {age} s after");
                again += 1;
            }
            Some(_) => {}
        }
    }
    assert_eq!(printed.next(), None);
    assert!(again > 1000, "{again}");
}

#[test]
fn a_repeat_starts_the_window_anew() {
    let folder = Folder::new();
    // Every half hour, for a day; then after two hours.
    let mut text: String = (0..48).map(|i| format!("{},a\n", i * 1800)).collect();
    text += &format!("{},a\n", 47 * 1800 + 7200);
    folder.file("log", text);
    let ran = folder
        .petal("dedup log --window 1h --time-field 1 --field 2 --delimiter ,")
        .ends_with(0);
    assert_eq!(ran.stdout, b"0,a\n91800,a\n");
}

#[test]
fn lines_without_a_time_and_late_ones_are_kept_counted_and_named() {
    let folder = Folder::new();
    folder.file(
        "log",
        "1700000000 a\nyesterday a\n a\n2023-11-14T22:13:21Z a\n\
         1700007200.5 b\n1700007100 b\n1700000000 c\n1700000000 c\n1700007200.5 b\nalone\n",
    );
    let args = [
        "dedup",
        "log",
        "--window",
        "1h",
        "--time-field",
        "1",
        "--field",
        "2",
        "--delimiter",
        " ",
        "--summary",
        "json",
    ];
    let output = petal(args).current_dir(folder.path(".")).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "1700000000 a\nyesterday a\n a\n1700007200.5 b\n1700000000 c\n1700000000 c\nalone\n"
    );
    for words in [
        "warning: log:2: has no readable time: \"yesterday a\"",
        "warning: log:7: is older than the window",
        "\"no_time\":2",
        "\"late\":2",
        "\"no_field\":1",
        "\"unique\":2",
        "\"repeated\":3",
    ] {
        assert!(stderr.contains(words), "{words} is not in {stderr}");
    }
    // At the end it is said how many there were, and what made them late.
    for words in [
        "warning: 2 lines were older than a window of 1 h",
        "sort the input by time",
        "log:5 went ahead by more than a window, to 2023-11-15T00:13:20Z",
    ] {
        assert!(stderr.contains(words), "{words} is not in {stderr}");
    }
    assert_eq!(stderr.matches("warning").count(), 3, "{stderr}");
}

/// One time far in the future ends the window for what follows; that is told.
#[test]
fn a_time_far_ahead_is_reported() {
    let folder = Folder::new();
    let mut log: String = (0..100)
        .map(|i| format!("{} a\n", 1_700_000_000 + i))
        .collect();
    log += "2300-01-01T00:00:00Z a\n";
    log += &(100..200)
        .map(|i| format!("{} a\n", 1_700_000_000 + i))
        .collect::<String>();
    folder.file("log", log);
    let args = "dedup log --window 10m --time-field 1 --field 2 --summary json --delimiter";
    let args: Vec<&str> = args.split(' ').chain([" "]).collect();
    let output = petal(args).current_dir(folder.path(".")).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        output.stdout.iter().filter(|&&byte| byte == b'\n').count(),
        102
    );
    for words in [
        "\"late\":100",
        "100 lines were older than a window of 10 min",
        "log:101 went ahead",
        "2300-01-01T00:00:00Z",
        "leave the line out",
    ] {
        assert!(stderr.contains(words), "{words} is not in {stderr}");
    }
}

/// Logs of several machines, one after the other or mixed: a line is forgotten
/// when its own time says, not that of the latest line.
#[test]
fn times_out_of_order_are_their_own() {
    const WINDOW: u64 = 600;
    let part = WINDOW.div_ceil(14);
    let mut state = 11;
    let (mut clock, mut latest, mut text) = (1_700_000_000u64, 0, String::new());
    let mut expected = Vec::new();
    let mut last: HashMap<u64, u64> = HashMap::new();
    for _ in 0..20_000 {
        clock += random(&mut state) % 4;
        let back = match random(&mut state) % 4 {
            0 => random(&mut state) % (WINDOW + 50),
            1 => random(&mut state) % 60,
            _ => 0,
        };
        let (time, key) = (clock - back, random(&mut state) % 4000);
        // The window ends at the latest time that was read.
        latest = time.max(latest);
        let back = latest - time;
        text += &format!("{time} {key}\n");
        let before = last.get(&key).map(|before| latest.saturating_sub(*before));
        expected.push((time, key, back, before));
        if back <= WINDOW {
            let newest = last.entry(key).or_insert(0);
            *newest = time.max(*newest);
        }
    }
    for threads in ["1", "4"] {
        let flags = "dedup --window 10m --time-field 1 --field 2 --summary json -j";
        let args: Vec<&str> = flags
            .split(' ')
            .chain([threads, "--delimiter", " "])
            .collect();
        let ran = run_with(&args, text.as_bytes()).ends_with(0);
        let printed = String::from_utf8(ran.stdout.clone()).unwrap();
        let mut printed = printed.lines().peekable();
        let (mut again, mut past) = (0, 0);
        for &(time, key, back, before) in &expected {
            let line = format!("{time} {key}");
            let was_printed = printed.next_if(|printed| **printed == line).is_some();
            match before {
                _ if back > WINDOW => {
                    past += 1;
                    assert!(was_printed, "{line} is from before the window");
                }
                None => assert!(was_printed, "{line} is new"),
                Some(age) if age <= WINDOW => assert!(!was_printed, "{line}: {age} s after"),
                Some(age) if age >= WINDOW + part => {
                    assert!(was_printed, "{line}: {age} s after");
                    again += 1;
                }
                Some(_) => {}
            }
        }
        assert_eq!(printed.next(), None);
        assert!(again > 1000 && past > 100, "{again} {past}");
        assert_eq!(ran.json("late"), f64::from(past));
    }
}

/// The smallest windows: as many lines, no more.
#[test]
fn small_windows_are_exact() {
    let folder = Folder::new();
    folder.file("list", "a\na\nb\na\nb\nb\na\nc\nb\na\n");
    for (window, expected) in [
        (1, "a\nb\na\nb\na\nc\nb\na\n"),
        (2, "a\nb\na\nc\nb\na\n"),
        (3, "a\nb\nc\n"),
    ] {
        let ran = folder
            .petal(&format!("dedup list --window {window} -p 1e-9"))
            .ends_with(0);
        assert_eq!(String::from_utf8(ran.stdout).unwrap(), expected, "{window}");
    }
}

/// Lines of a burst that is more than planned.
#[test]
fn a_full_window_does_what_it_is_told() {
    let folder = Folder::new();
    let text: String = (0..3000).map(|i| format!("5,{i}\n")).collect();
    folder.file("burst", text.clone() + &text);
    let line =
        "dedup burst --window 1h --time-field 1 --field 2 --delimiter , -n 1400 --summary json";
    // 14 generations and the one that is being filled, of 100 each.
    let ran = folder.petal(&format!("{line} --when-full stop"));
    let stopped = ran.refused(&["window of 1 h is full", "1,400", "-n", "--when-full"]);
    assert_eq!(stopped.stdout, &text.as_bytes()[..stopped.stdout.len()]);
    assert_eq!(stopped.json("lines"), 1500.0);
    assert_eq!(stopped.json("unique"), 1500.0);

    let passed = folder
        .petal(&format!("{line} --when-full pass"))
        .ends_with(0);
    assert_eq!(passed.json("unique"), 4500.0);
    assert_eq!(passed.json("repeated"), 1500.0);
    assert!(passed.json("passed") >= 3000.0);
    assert!(!passed.stderr.contains("warning"));

    for flags in ["", " --when-full loosen"] {
        let short = folder.petal(&format!("{line}{flags}")).ends_with(0);
        assert!(
            short.stderr.contains("warning: more than the 1,400"),
            "{}",
            short.stderr
        );
        assert_eq!(short.json("unique"), 6000.0);
        assert!(short.json("shortened") > 30.0);
        assert_eq!(short.json("shortest"), 0.0);
    }
    // Room comes back with time.
    let later: String = (0..6000).map(|i| format!("{},{i}\n", 10 * i)).collect();
    folder.file("slow", later);
    let ran = folder
        .petal("dedup slow --window 1h --time-field 1 --field 2 --delimiter , -n 1400 --when-full stop --summary json")
        .ends_with(0);
    assert_eq!((ran.json("unique"), ran.json("passed")), (6000.0, 0.0));
}

/// A line that is in a newer generation than its own time's takes no room, so a
/// full window neither stops at it nor counts it as not remembered.
#[test]
fn a_late_repeat_does_not_fill_a_window() {
    let folder = Folder::new();
    // 14 generations and the one that is being filled, of 100 each: all full.
    let first: String = (0..100).map(|i| format!("5,{i}\n")).collect();
    let rest: String = (100..1500).map(|i| format!("300,{i}\n")).collect();
    let line = "dedup log --window 1h --time-field 1 --field 2 --delimiter , -n 1400 \
                --summary json --when-full";
    // Of the newest generation, of one between, and of the oldest, each at a time of the oldest.
    let repeats = "6,1499\n7,700\n8,5\n";
    folder.file("log", format!("{first}{rest}{repeats}"));
    let ran = folder.petal(&format!("{line} stop")).ends_with(0);
    assert_eq!(ran.stdout, format!("{first}{rest}").as_bytes());
    assert_eq!(ran.json("repeated"), 3.0);
    let ran = folder.petal(&format!("{line} pass")).ends_with(0);
    assert_eq!((ran.json("repeated"), ran.json("passed")), (3.0, 0.0));
    // A new one stops it, whatever its time, and so does one that would have to be
    // remembered for longer than its generation is.
    for last in ["9,new", "300,new", "300,5"] {
        folder.file("log", format!("{first}{rest}{repeats}{last}\n"));
        let ran = folder.petal(&format!("{line} stop"));
        let ran = ran.refused(&["window of 1 h is full"]);
        assert_eq!(ran.stdout, format!("{first}{rest}").as_bytes(), "{last}");
        assert_eq!(ran.json("lines"), 1503.0);
    }
}

/// Also in a full window a repeat starts the window of its line anew.
#[test]
fn repeats_in_a_full_window_are_remembered() {
    let folder = Folder::new();
    let burst: String = (0..1500).map(|i| format!("5,{i}\n")).collect();
    folder.file("log", format!("{burst}200,1499\n3799,1499\n"));
    let line = "dedup log --window 1h --time-field 1 --field 2 --delimiter , -n 1400 --when-full";
    for what in ["stop", "pass", "loosen"] {
        let ran = folder.petal(&format!("{line} {what}")).ends_with(0);
        assert_eq!(ran.stdout, burst.as_bytes(), "{what}");
    }
}

#[test]
fn repeats_go_where_they_are_asked_for() {
    let folder = Folder::new();
    folder.file("list", "a\nb\na\nc\nb\n");
    let ran = folder
        .petal("dedup list --window 10 --repeats-to again -o out")
        .ends_with(0);
    assert!(ran.stdout.is_empty());
    assert_eq!(std::fs::read(folder.path("out")).unwrap(), b"a\nb\nc\n");
    assert_eq!(std::fs::read(folder.path("again")).unwrap(), b"a\nb\n");
    let ran = folder.petal("dedup list --window 1h -D").ends_with(0);
    assert_eq!(ran.stdout, b"a\nb\n");
}

/// `tail -f log | petal dedup --window 1h`: a line is there before the next
/// one comes, however long that takes.
#[test]
fn lines_of_an_open_pipe_appear_while_it_idles() {
    for threads in ["1", "2", "8"] {
        for span in ["1h", "1000"] {
            let mut child = petal(["dedup", "-q", "--window", span, "-j", threads])
                .stdin(Stdio::piped())
                .spawn()
                .unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let mut stdout = child.stdout.take().unwrap();
            for (line, expected) in [
                ("one\n", "one\n"),
                ("one\ntwo\n", "two\n"),
                ("two\n3\n", "3\n"),
            ] {
                stdin.write_all(line.as_bytes()).unwrap();
                let mut got = vec![0; expected.len()];
                stdout.read_exact(&mut got).unwrap();
                assert_eq!(got, expected.as_bytes());
            }
            drop(stdin);
            assert_eq!(child.wait().unwrap().code(), Some(0));
        }
    }
}

/// A reader that goes away ends the run, and a killed one leaves no output
/// that looks complete.
#[test]
fn a_killed_run_leaves_the_old_output() {
    let folder = Folder::new();
    folder.file("out", "old\n");
    let mut child = folder
        .command("dedup -q --window 1h -o out")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"new\n").unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(std::fs::read(folder.path("out")).unwrap(), b"old\n");
}

#[test]
fn what_does_not_go_with_a_window_is_refused() {
    let folder = Folder::new();
    folder.file("list", "1,a\n");
    for (flags, words) in [
        ("--window 0", &["--window", "nothing is within it"][..]),
        ("--window 5x", &["unknown unit", "24h"]),
        ("--window=-1h", &["must not be negative"]),
        ("--window 1h --state s", &["--state", "--window"]),
        ("--window 1h -d", &["-d", "-D"]),
        ("--window 10 -n 5", &["-n", "window of time"]),
        ("--window 10 --when-full pass", &["--when-full"]),
        (
            "--window 10 --time-field 1 --delimiter ,",
            &["--time-field"],
        ),
        (
            "--window 1h --time-field 0 --delimiter ,",
            &["counted from 1"],
        ),
        ("--window 1h --time-field 1 --delimiter ,,", &["one byte"]),
        ("--window 1h --time-field 1", &["--delimiter"]),
        ("--time-field 1 --delimiter ,", &["--window"]),
        ("--delimiter ,", &["--field"]),
        ("-n 5", &["-p"]),
        ("--window 1h --delimiter ,", &["--field"]),
        ("--window 1T -p 1e-12", &["1e-12"]),
        (
            "--window 10G --memory 64M",
            &["memory budget", "shorter --window"],
        ),
        ("--window 1h -n 1G --memory 64M", &["smaller -n"]),
        ("--window 1h -p 2", &["-p"]),
        ("--window 1h missing", &["missing"]),
        ("--window 1h -o list --repeats-to list", &["list"]),
    ] {
        folder.petal(&format!("dedup list {flags}")).refused(words);
    }
    assert_eq!(folder.names(), ["list"]);
    // What is not said is made to fit.
    let ran = folder.petal("dedup list --window 1h --memory 16M --summary json");
    let capacity = ran.ends_with(0).json("capacity");
    assert!((1e5..1e7).contains(&capacity), "{capacity}");
}

#[test]
fn the_plan_is_shown() {
    let ran = run(["dedup", "--window", "24h", "-n", "1M"]).ends_with(0);
    assert!(
        ran.stderr
            .contains("MiB: a window over the last 24 h, up to 1,000,000 distinct"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("an error of 1e-6"), "{}", ran.stderr);
}
