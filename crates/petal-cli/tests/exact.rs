//! `common`, `except` and `dedup --exact` against `sort`, `comm`, `uniq` and `awk`.

use std::os::unix::fs::FileExt;
use std::process::Command;

use crate::support::{Folder, Ran, numbers, urls};

/// Where temporary files go: the system's folder for them may be in memory.
pub(crate) const SCRATCH: &str = env!("CARGO_TARGET_TMPDIR");

/// Runs the command with temporary files in the build's folder.
#[track_caller]
fn petal(folder: &Folder, line: &str) -> Ran {
    let output = folder.command(line).args(["--tmp", SCRATCH]).output();
    let output = output.unwrap();
    Ran {
        code: output.status.code(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// What a line of shell prints in the folder.
#[track_caller]
fn sh(folder: &Folder, script: &str) -> Vec<u8> {
    let output = Command::new("sh")
        .args(["-ec", script])
        .env("LC_ALL", "C")
        .current_dir(folder.path(""))
        .output()
        .unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
    output.stdout
}

fn sorted(bytes: &[u8]) -> Vec<&[u8]> {
    let whole = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let mut lines: Vec<&[u8]> = whole.split(|&byte| byte == b'\n').collect();
    if bytes.is_empty() {
        lines.clear();
    }
    lines.sort_unstable();
    lines
}

/// From memory that suffices to such as makes many partitions of partitions.
const MEMORIES: [&str; 3] = ["256M", "300K", "40K"];

/// All operations on two files, in every amount of memory, beside the tools of the system.
#[track_caller]
fn agrees_with_the_system(folder: &Folder, a: &str, b: &str, memories: &[&str]) {
    let first = sh(folder, &format!("awk '!seen[$0]++' {a}"));
    let counts = sh(folder, &format!("sort {a} | uniq -c"));
    let once = sh(folder, &format!("sort {a} | uniq -u"));
    let pair =
        |comm| format!("sort -u {a} >a.sorted; sort -u {b} >b.sorted; {comm} a.sorted b.sorted");
    let both = sh(folder, &pair("comm -12"));
    let only = sh(folder, &pair("comm -23"));
    let all = sh(folder, &format!("sort -u {a} {b}"));
    for memory in memories {
        for threads in [1, 2] {
            let run = |verb: &str| {
                let line = format!("{verb} --memory {memory} -j {threads} -q");
                petal(folder, &line).ends_with(0).stdout
            };
            let ours = run(&format!("dedup --exact {a}"));
            // awk ends a last line that was not ended.
            let ended = ours.strip_suffix(b"\n").unwrap_or(&ours);
            assert!(
                ended == first.strip_suffix(b"\n").unwrap_or(&first),
                "{a} {memory}"
            );
            assert!(
                sorted(&run(&format!("dedup --exact -c {a}"))) == sorted(&counts),
                "{a}"
            );
            assert!(
                sorted(&run(&format!("dedup --exact -u {a}"))) == sorted(&once),
                "{a}"
            );
            assert!(
                sorted(&run(&format!("common {a} {b}"))) == sorted(&both),
                "{a} {b}"
            );
            assert!(
                sorted(&run(&format!("except {a} {b}"))) == sorted(&only),
                "{a} {b}"
            );
            let union = run(&format!("common --at-least 1 {a} {b}"));
            assert!(sorted(&union) == sorted(&all), "{a} {b} {memory}");
        }
    }
}

#[test]
fn generated_files() {
    let folder = Folder::new();
    let lines = |salt: u64| -> String {
        (0..30_000u64)
            .map(|i| {
                let n = (i * 7919 + salt).wrapping_mul(i % 97 + 1) % 20_000;
                format!("http://example.org/{n}/{}\n", "x".repeat((n % 40) as usize))
            })
            .collect()
    };
    folder.file("a", lines(1));
    folder.file("b", lines(500));
    agrees_with_the_system(&folder, "a", "b", &MEMORIES);
}

#[test]
fn a_real_file() {
    let folder = Folder::new();
    std::fs::copy(urls(), folder.path("a")).unwrap();
    sh(&folder, "awk 'NR % 3 == 0' a | tac >b");
    agrees_with_the_system(&folder, "a", "b", &MEMORIES[..2]);
}

#[test]
fn nasty_files() {
    let folder = Folder::new();
    let hot: String = (0..20_000)
        .map(|i| {
            if i % 2 == 0 {
                "hot\n".to_owned()
            } else {
                format!("{i}\n")
            }
        })
        .collect();
    let files: [(&str, Vec<u8>); 9] = [
        ("empty", Vec::new()),
        ("one", b"1\n".to_vec()),
        ("open", b"1\n2\n1\n3".to_vec()),
        ("equal", b"same\n".repeat(20_000)),
        ("numbers", numbers(0..12_000).into_bytes()),
        ("others", numbers(50_000..62_000).into_bytes()),
        ("hot", hot.into_bytes()),
        (
            "bytes",
            (0..=255)
                .flat_map(|byte| [byte, b'\n'])
                .filter(|&b| b != b'\r')
                .collect(),
        ),
        ("empty-lines", b"\n\n\xff\xfe\n\n\x80\n".to_vec()),
    ];
    for (name, bytes) in &files {
        folder.file(name, bytes);
    }
    for (a, b) in [
        ("empty", "one"),
        ("one", "empty"),
        ("one", "open"),
        ("open", "one"),
        ("equal", "equal"),
        ("numbers", "others"),
        ("numbers", "numbers"),
        ("hot", "numbers"),
        ("equal", "hot"),
        ("bytes", "empty-lines"),
    ] {
        agrees_with_the_system(&folder, a, b, &["64M", "40K"]);
    }
}

#[test]
fn lines_of_one_byte_and_of_ten_megabytes() {
    let folder = Folder::new();
    let long = "y".repeat(10 << 20);
    folder.file("a", format!("a\n{long}\nb\n{long}x\na\n"));
    folder.file("b", format!("{long}\nb\nb"));
    let both = petal(&folder, "common a b --memory 384M")
        .ends_with(0)
        .stdout;
    assert!(both == format!("{long}\nb\n").into_bytes());
    let only = petal(&folder, "except a b --verify --memory 384M")
        .ends_with(0)
        .stdout;
    assert!(only == format!("a\n{long}x\n").into_bytes());
    // Lines are not cut, whatever the memory: what does not fit is refused.
    petal(&folder, "common a b --memory 8M").refused(&["longer than", "--memory"]);
}

#[test]
fn crlf_is_compared_without_the_cr_and_printed_as_it_came() {
    let folder = Folder::new();
    folder.file("dos", "a\r\nb\r\na\n");
    folder.file("unix", "a\nc\n");
    assert_eq!(
        petal(&folder, "common dos unix").ends_with(0).stdout,
        b"a\r\n"
    );
    assert_eq!(
        petal(&folder, "except dos unix").ends_with(0).stdout,
        b"b\r\n"
    );
    assert_eq!(
        petal(&folder, "dedup --exact dos").ends_with(0).stdout,
        b"a\r\nb\r\n"
    );
}

#[test]
fn three_files_and_at_least_two() {
    let folder = Folder::new();
    folder.file("a", "1\n2\n3\n2\n");
    folder.file("b", "4\n3\n2\n4\n");
    folder.file("c", "5\n4\n3\n");
    for memory in ["64M", "40K"] {
        let run = |line: &str| {
            let ran = petal(&folder, &format!("{line} --memory {memory} -q"));
            String::from_utf8(ran.ends_with(0).stdout).unwrap()
        };
        assert_eq!(run("common a b c"), "3\n");
        assert_eq!(run("common a b c --at-least 2"), "2\n3\n4\n");
        assert_eq!(run("common a b c --at-least 2 --multi"), "2\n3\n2\n4\n4\n");
        assert_eq!(run("common a b --multi"), "2\n3\n2\n");
        assert_eq!(run("except a c --multi"), "1\n2\n2\n");
        assert_eq!(run("except b a c"), "");
        assert_eq!(run("dedup --exact a b c"), "1\n2\n3\n4\n5\n");
        assert_eq!(
            run("dedup --exact -c a b"),
            "      1 1\n      3 2\n      2 3\n      2 4\n"
        );
        assert_eq!(run("dedup --exact -u a b c"), "1\n5\n");
    }
}

#[test]
fn keys_are_compared_as_the_flags_say() {
    let folder = Folder::new();
    folder.file("a", "1;Ann\n2;Bob\nno field\n3;Eve\n");
    folder.file("b", "x;ANN\nno field\ny;eve\n");
    let line = "common a b --field 2 --delimiter ; --ignore-case --summary json";
    let ran = petal(&folder, line).ends_with(0);
    assert_eq!(ran.stdout, b"1;Ann\n3;Eve\n");
    assert_eq!(ran.json_count("no_field"), 2);
    let line = "except a b --field 2 --delimiter ; --ignore-case";
    // A line without the field is in no other file.
    assert_eq!(
        petal(&folder, line).ends_with(0).stdout,
        b"2;Bob\nno field\n"
    );
    folder.file("u", "http://EXAMPLE.org/a\n\nhttp://example.org:80/a#x\n");
    let ran = petal(&folder, "dedup --exact --as url --skip-empty u").ends_with(0);
    assert_eq!(ran.stdout, b"http://EXAMPLE.org/a\n");
    folder.file("i", "7\n+7\n007\n8\n");
    assert_eq!(
        petal(&folder, "dedup --exact --as int i --verify")
            .ends_with(0)
            .stdout,
        b"7\n8\n"
    );
}

#[test]
fn pipes_are_copied_and_compressed_files_read_again() {
    let folder = Folder::new();
    folder.file("a", numbers(0..30_000));
    sh(
        &folder,
        "gzip -k a; seq 20000 40000 | gzip >>a.gz; seq 100 200 >b",
    );
    for memory in ["64M", "40K"] {
        let line = format!("except a.gz b --memory {memory}");
        let left = petal(&folder, &line).ends_with(0).stdout;
        assert!(left == sh(&folder, "seq 0 99; seq 201 40000"));
        let script = format!(
            "zcat a.gz | {} common - b --memory {memory} --tmp '{SCRATCH}' -q",
            env!("CARGO_BIN_EXE_petal")
        );
        assert!(sh(&folder, &script) == sh(&folder, "cat b"));
    }
    petal(&folder, "common - - ").refused(&["standard input", "twice"]);
    sh(&folder, "head -c 20000 a.gz >cut.gz");
    petal(&folder, "except b cut.gz -o out").refused(&["cut.gz"]);
    assert!(!folder.path("out").exists());
}

#[test]
fn the_plan_comes_first_and_the_summary_last() {
    let folder = Folder::new();
    sh(&folder, "seq 0 2 120000 >a; seq 0 3 180000 >b");
    let ran = petal(&folder, "common a b --memory 300K").ends_with(0);
    let plan = ran.stderr.find("petal: plan: ").unwrap();
    assert!(ran.stderr.contains("partitions on disk"), "{}", ran.stderr);
    assert!(plan < ran.stderr.find("printed").unwrap());
    let ran = petal(&folder, "common a b --memory 300K --summary json").ends_with(0);
    assert_eq!(ran.json_count("printed"), 20_001);
    assert_eq!(ran.json_count("lines"), 120_002);
    let traffic = ["bytes", "temporary_written", "temporary_read"];
    let traffic: usize = traffic.iter().map(|key| ran.json_count(key)).sum();
    let planned = ran.json("planned");
    assert!(
        (traffic as f64 / planned - 1.0).abs() < 0.15,
        "{traffic} of {planned}"
    );
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    let folder = Folder::new();
    folder.file("a", "1\n");
    folder.file("b", "1\n");
    for (line, words) in [
        ("dedup --exact a -p 0.1", &["--fpr"][..]),
        ("dedup --exact a --window 5", &["--window"]),
        ("dedup -u a", &["--exact"]),
        ("dedup -c a", &["--exact"]),
        ("dedup --exact -u -c a", &["--count"]),
        ("dedup --verify a", &["--exact"]),
        ("common a", &["FILES"]),
        ("common a b --at-least 3", &["--at-least 3", "1 to 2"]),
        ("common a missing", &["missing"]),
        ("except a b --memory 9K", &["memory"]),
    ] {
        petal(&folder, line).refused(words);
    }
}

/// One pass remembers what the next one looks for: both must read the same.
#[test]
fn a_file_that_is_changed_between_passes_is_refused() {
    let folder = Folder::new();
    folder.file("a", numbers(0..300_000));
    folder.file("b", numbers(150_000..450_000));
    folder.file("out", "precious");
    for line in [
        "common a b --memory 400K -o out",
        "except a b --memory 400K -o out",
        "dedup --exact -u a --memory 400K -o out",
        // Each name of it is read once.
        "except a a --memory 400K -o out",
    ] {
        let mut child = folder
            .command(line)
            .args(["--tmp", SCRATCH])
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let a = std::fs::OpenOptions::new()
            .write(true)
            .open(folder.path("a"))
            .unwrap();
        let mut changes = 0u8;
        while child.try_wait().unwrap().is_none() {
            // The first line, 0, becomes another digit: as long as it was.
            a.write_all_at(&[b'0' + changes % 10], 0).unwrap();
            changes = changes.wrapping_add(1);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(text.contains("a has changed"), "{line}: {text}");
        assert_eq!(std::fs::read(folder.path("out")).unwrap(), b"precious");
    }
}

#[test]
fn what_can_be_read_only_once_is_refused_a_second_time() {
    let folder = Folder::new();
    for line in ["common - -", "common - /dev/stdin", "except /dev/stdin -"] {
        let output = folder
            .command(line)
            .stdin(std::process::Stdio::piped())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(text.contains("named twice"), "{line}: {text}");
    }
    // A pipe with a name, of which nobody has the other end.
    sh(&folder, "mkfifo pipe");
    petal(&folder, "common pipe pipe").refused(&["pipe", "named twice"]);
}

/// The remedy names a --memory that suffices.
#[test]
fn a_memory_that_is_too_small_is_refused_with_one_that_suffices() {
    let folder = Folder::new();
    folder.file("a", numbers(0..200_000));
    let ran = petal(&folder, "common a a --memory 64K");
    ran.refused(&["--memory 64.0 KiB", "97.6 KiB or more"]);
    petal(&folder, "common a a --memory 98K").ends_with(0);
}
