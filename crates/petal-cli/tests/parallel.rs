//! `-j`: whatever the number of threads, the same bytes, files, counts and
//! errors.

use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;

use crate::support::{Folder, Ran, feed, numbers, petal, read, run_with, urls};

const THREADS: [usize; 4] = [1, 2, 3, 8];

/// The contents of some files, where they exist.
type Files = Vec<Option<Vec<u8>>>;

/// Runs a line for every number of threads, each in the same folder, and
/// checks that all came to the same: status, stdout, summary and the files
/// named, which are removed in between. Returns the first run.
#[track_caller]
fn same(folder: &Folder, line: &str, stdin: &[u8], files: &[&str]) -> Ran {
    let mut first: Option<(Ran, String, Files)> = None;
    for threads in THREADS {
        for name in files {
            let _ = std::fs::remove_file(folder.path(name));
        }
        let ran = folder.petal_with(&format!("{line} -j{threads} --summary json"), stdin);
        let said = without_the_changeable(&ran.stderr);
        let made: Files = files
            .iter()
            .map(|name| std::fs::read(folder.path(name)).ok())
            .collect();
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        match &first {
            None => first = Some((ran, said, made)),
            Some((expected, words, before)) => {
                assert_eq!(
                    ran.code, expected.code,
                    "{line} -j{threads}: {}",
                    ran.stderr
                );
                assert!(ran.stdout == expected.stdout, "{line} -j{threads}: stdout");
                assert_eq!(&said, words, "{line} -j{threads}");
                assert!(made == *before, "{line} -j{threads}: files");
            }
        }
    }
    first.unwrap().0
}

/// What was said, without the time, the memory, and what is estimated from
/// a table that is spread at random.
fn without_the_changeable(stderr: &str) -> String {
    let mut said = String::new();
    for line in stderr.lines() {
        match serde_json::from_str::<serde_json::Value>(line) {
            Ok(mut summary) if summary.is_object() => {
                let summary = summary.as_object_mut().unwrap();
                for key in ["seconds", "peak_memory"] {
                    summary.remove(key);
                }
                said += &serde_json::to_string(summary).unwrap();
            }
            _ => said += line,
        }
        said.push('\n');
    }
    said
}

/// Lists of many batches: with repeats, empty lines, lines of some kilobytes
/// and a last one without its newline; one of them compressed.
fn lists(folder: &Folder) {
    let mut text = String::new();
    for i in 0..20_000u64 {
        match i % 1000 {
            7 => text += "\n",
            9 => text += &"long ".repeat(500),
            _ => text += &format!("http://host{}.example/{},field\n", i % 77, i * i % 40_009),
        }
    }
    text += "no newline at the end";
    folder.file("a", &text);
    folder.file("b", numbers(0..15_000).repeat(2));
    folder.file("c.zst", zstd::encode_all(text.as_bytes(), 1).unwrap());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(numbers(10_000..25_000).as_bytes()).unwrap();
    folder.file("d.gz", gzip.finish().unwrap());
    folder.file("empty", "");
    let times: String = (0..9000u64)
        .map(|i| format!("{}.{:03},{}\n", i / 500, i * 2 % 1000, i * i % 3001))
        .collect();
    folder.file("times", times);
}

#[test]
fn dedup_is_the_same_for_every_number_of_threads() {
    let folder = Folder::new();
    lists(&folder);
    let all = "a b c.zst empty d.gz a";
    for flags in [
        "",
        "-p 1e-3",
        "-p .1 -n 20k --when-full pass",
        "-p .1 -n 10k",
        "-p .1 -n 10k --when-full loosen",
        "-d",
        "-D",
        "--as url --skip-empty",
        "--part 2/3",
        "--field 2 --delimiter , --ignore-case",
        "--as int",
        "--window 3k",
        "--window 3k -p .1 --as url --skip-empty -D",
        "--window 1h -n 300k --part 2/3",
        "--window 5s --time-field 1 --field 2 --delimiter , --memory 16M",
        "--window 5s --time-field 1 --delimiter , -n 2k --when-full pass",
    ] {
        let line = format!("dedup {all} {flags}");
        same(&folder, &line, b"", &[]);
        same(
            &folder,
            &format!("{line} -o out --repeats-to repeats"),
            b"",
            &["out", "repeats"],
        );
    }
    for flags in ["", "-n 700", "-n 700 --when-full stop"] {
        let line = format!("dedup times times --window 3s --time-field 1 --delimiter , {flags}");
        same(&folder, &format!("{line} --field 2"), b"", &[]);
    }
    for output in ["out.gz", "out.zst", "out.xz"] {
        same(&folder, &format!("dedup {all} -o {output}"), b"", &[output]);
    }
    let stdin = read(&folder.path("a"));
    same(&folder, "dedup", &stdin, &[]);
    same(&folder, "dedup b - d.gz", &stdin, &[]);
    same(&folder, "dedup", b"", &[]);
    same(&folder, "dedup -0", b"a\0b\0a\0\nc", &[]);
}

#[test]
fn a_state_is_the_same_for_every_number_of_threads() {
    let folder = Folder::new();
    lists(&folder);
    // With -p: a table of digests is spread at random, in the file as well.
    let filter = "dedup a b d.gz -p 1e-3 --state s -o out";
    same(&folder, filter, b"", &["s", "out", "s.lock"]);
    // Full in the middle: the same lines, then the same end.
    let full = "dedup a b d.gz -p .1 -n 10k --state s -o out";
    let ran = same(&folder, full, b"", &["s", "out", "s.lock"]);
    ran.refused(&["full"]);
}

#[test]
fn filters_and_answers_are_the_same_for_every_number_of_threads() {
    let folder = Folder::new();
    lists(&folder);
    for flags in [
        "",
        "-n 200k",
        "-n 10k",
        "--kind growable",
        "--kind classic",
        "--as url --skip-empty",
        "--as hex --skip-bad",
        "--as hex",
        "--as int --skip-bad",
        "--memory 10M",
        "--kind counting",
        "--kind deletable",
        "--kind window --window 5k",
    ] {
        let line = format!("build a b c.zst empty d.gz -p 0.01 -o f --force {flags}");
        same(&folder, &line, b"", &["f"]);
    }
    folder
        .petal("build b -p .05 -n 200k -o f --force")
        .ends_with(0);
    let before = read(&folder.path("f"));
    let mut after = Vec::new();
    for threads in THREADS {
        folder.file("f", &before);
        folder
            .petal(&format!("add f a d.gz -j{threads}"))
            .ends_with(0);
        after.push(read(&folder.path("f")));
    }
    assert!(after[0] != before && after.iter().all(|file| *file == after[0]));

    folder.petal("build a -p .01 --as url -o g").ends_with(0);
    for flags in [
        "",
        "-v",
        "-c",
        "-H -f g",
        "-f g -v",
        "--skip-empty -f g",
        "--mapped",
    ] {
        let line = format!("check f a d.gz c.zst {flags}");
        same(&folder, &line, b"", &[]);
        same(
            &folder,
            &format!("check f {flags} -o out.gz"),
            b"7\n\n8\nx",
            &["out.gz"],
        );
    }
    same(&folder, "check f empty", b"", &[]).ends_with(1);
    for kind in ["counting", "deletable"] {
        folder
            .petal(&format!("build a a b -o h --force --kind {kind}"))
            .ends_with(0);
        same(&folder, "check --times h a d.gz c.zst", b"", &[]);
        let before = read(&folder.path("h"));
        let mut after = Vec::new();
        for threads in THREADS {
            folder.file("h", &before);
            folder
                .petal(&format!("remove h a d.gz -j{threads}"))
                .ends_with(0);
            after.push(read(&folder.path("h")));
        }
        assert!(after[0] != before && after.iter().all(|file| *file == after[0]));
    }
}

#[test]
fn lines_of_any_length_are_the_same_for_every_number_of_threads() {
    let folder = Folder::new();
    let mut text = Vec::new();
    for i in 0..40u8 {
        text.extend(vec![b'a' + i % 3; usize::from(i % 5) * 150_000]);
        text.push(b'\n');
        text.extend(format!("short {}\n", i % 7).as_bytes());
    }
    folder.file("long", &text);
    let ran = same(&folder, "dedup long --memory 16M", b"", &[]);
    assert!(ran.ends_with(0).stdout.len() > 1_000_000);
    same(&folder, "dedup -D --memory 16M", &text, &[]);
    // Too long for the memory, after lines that are not.
    text.extend(vec![b'x'; 3 << 20]);
    folder.file("long", &text);
    let ran = same(&folder, "dedup long --memory 16M", b"", &[]);
    ran.refused(&["long", "--memory"]);
}

#[test]
fn an_error_in_the_middle_comes_after_the_same_lines() {
    let folder = Folder::new();
    lists(&folder);
    let whole = read(&folder.path("c.zst"));
    folder.file("cut.zst", &whole[..whole.len() / 2]);
    let ran = same(&folder, "dedup a cut.zst b", b"", &[]);
    assert!(!ran.stdout.is_empty());
    ran.refused(&["cut.zst"]);
    same(&folder, "dedup a cut.zst b -o out", b"", &["out"]).refused(&["cut.zst"]);
    assert!(!folder.path("out").exists());
    same(&folder, "build a cut.zst -o f", b"", &["f"]).refused(&["cut.zst"]);
    assert!(!folder.path("f").exists());
    folder.petal("build b -o g").ends_with(0);
    same(&folder, "check g a b cut.zst a", b"", &[]).refused(&["cut.zst"]);
    // What is there when the run begins and cannot be read when its turn comes.
    std::os::unix::fs::symlink("/proc/self/mem", folder.path("unreadable")).unwrap();
    let ran = same(&folder, "dedup b unreadable a", b"", &[]);
    assert_eq!(ran.stdout, numbers(0..15_000).as_bytes());
    ran.refused(&["unreadable"]);
}

#[test]
fn a_gone_reader_ends_every_number_of_threads_in_silence() {
    let text: Vec<u8> = numbers(0..400_000).into_bytes();
    for threads in THREADS {
        let mut child = petal(["dedup", "-q", "-j", &threads.to_string()])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        feed(&mut child, text.clone());
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 10]).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

/// A slow pipe: every line appears when it has come, not when the next does;
/// and an end is an end, though the pipe stays open.
#[test]
fn lines_of_a_slow_pipe_do_not_wait_for_the_next() {
    for threads in THREADS {
        let mut child = petal([
            "dedup",
            "-q",
            "-p",
            ".01",
            "-n",
            "2",
            "-j",
            &threads.to_string(),
        ])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        for line in [b"one\n", b"two\n"] {
            stdin.write_all(line).unwrap();
            let mut got = [0; 4];
            stdout.read_exact(&mut got).unwrap();
            assert_eq!(&got, line);
        }
        // The memory is full, and the run ends while its reader waits for more.
        stdin.write_all(b"three\n").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(2));
        drop(stdin);
    }
}

/// The plan is kept on several threads: the peak that it announces, with the
/// tenth that a kernel counts in other ways.
#[test]
fn the_memory_is_the_planned_one_on_several_threads() {
    let folder = Folder::new();
    folder.file("many", numbers(0..700_000));
    // Lines as long as they may be, while the tables fill: both count.
    let mut long = Vec::new();
    for i in 0..24u8 {
        long.extend(numbers(u64::from(i) * 60_000..(u64::from(i) + 1) * 60_000).as_bytes());
        long.extend(vec![b'!' + i; (2 << 20) - 1]);
        long.push(b'\n');
    }
    folder.file("long", &long);
    // The same for keys that are copies of the lines.
    let urls: Vec<u8> = (0..24u8)
        .flat_map(|i| {
            [
                b"HTTP://Example.com/".to_vec(),
                vec![b'a' + i; 400_000],
                b"\n".to_vec(),
            ]
            .concat()
        })
        .collect();
    folder.file("urls", urls);
    let mebi = f64::from(1 << 20);
    for threads in ["1", "2", "4", "8"] {
        for (flags, most) in [
            ("many --memory 24M", 24.0),
            ("many --memory 24M -p 1e-3", 24.0),
            ("many --memory 12M", 12.0),
            ("many --memory 24M -d", 24.0),
            ("many --memory 24M --window 1h -n 2500k", 24.0),
        ] {
            let line = format!("dedup {flags} --when-full pass -j {threads} --summary json");
            let peak = folder.petal(&line).ends_with(0).json("peak_memory");
            assert!(peak <= 1.1 * most * mebi, "{line}: {peak}");
        }
        for flags in [
            "long --memory 32M",
            "long --memory 32M -p 1e-3",
            "urls urls --as url --memory 32M",
        ] {
            let line = format!("dedup {flags} --when-full pass -j {threads} --summary json");
            let peak = folder.petal(&line).ends_with(0).json("peak_memory");
            assert!(peak <= 1.1 * 32.0 * mebi, "{line}: {peak}");
        }
        let line =
            format!("common long urls long many --memory 128M -o both -j {threads} --summary json");
        let peak = folder.petal(&line).ends_with(0).json("peak_memory");
        assert!(peak <= 1.1 * 128.0 * mebi, "{line}: {peak}");
        let line = format!("build many -o f --force --memory 24M -j {threads} --summary json");
        let peak = folder.petal(&line).ends_with(0).json("peak_memory");
        assert!(peak <= 1.1 * 24.0 * mebi, "{line}: {peak}");
    }
}

#[test]
fn a_real_list_is_the_same_for_every_number_of_threads() {
    let text = read(Path::new(&urls()));
    let outputs: Vec<Vec<u8>> = THREADS
        .iter()
        .map(|threads| {
            run_with(["dedup", "-j", &threads.to_string()], &text)
                .ends_with(0)
                .stdout
        })
        .collect();
    assert!(outputs.iter().all(|output| *output == outputs[0]));
}
