//! `petal dedup --state`: interruptions, resumption, and what is refused.

use std::collections::HashSet;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::support::{Folder, Ran, feed, first_occurrences, petal, read, run, run_with, urls};

fn dedup(file: &Path, state: &Path, out: Option<&Path>) -> Vec<String> {
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let mut args = vec![
        "dedup".to_owned(),
        text(file),
        "--state".to_owned(),
        text(state),
    ];
    if let Some(out) = out {
        args.extend(["-o".to_owned(), text(out)]);
    }
    args
}

fn verify(state: &Path) -> Ran {
    run(["verify".as_ref(), state.as_os_str()])
}

#[test]
fn a_finished_state_takes_new_input() {
    let folder = Folder::new();
    let state = folder.path("seen.petal");
    let (a, b) = (folder.file("a", "x\ny\nx\n"), folder.file("b", "y\nz\n"));
    let (out_a, out_b) = (folder.path("out_a"), folder.path("out_b"));
    run(dedup(&a, &state, Some(&out_a))).ends_with(0);
    run(dedup(&b, &state, Some(&out_b))).ends_with(0);
    assert_eq!(read(&out_a), b"x\ny\n");
    assert_eq!(read(&out_b), b"z\n");
    assert_eq!(run(dedup(&b, &state, None)).ends_with(0).stdout, b"");
    let ran = run_with(["dedup", "--state", state.to_str().unwrap()], b"z\nw\n").ends_with(0);
    assert_eq!(ran.stdout, b"w\n");
    verify(&state).ends_with(0);
}

#[test]
fn a_finished_run_that_is_repeated_leaves_its_output() {
    let folder = Folder::new();
    let (state, out) = (folder.path("state"), folder.path("out"));
    let a = folder.file("a", "x\ny\nx\n");
    run(dedup(&a, &state, Some(&out))).ends_with(0);
    let ran = run(dedup(&a, &state, Some(&out))).ends_with(0);
    assert!(ran.stderr.contains("nothing to do"), "{}", ran.stderr);
    assert_eq!(read(&out), b"x\ny\n");
}

#[test]
fn a_state_is_used_only_as_it_was_made() {
    let folder = Folder::new();
    let (state, out) = (folder.path("state"), folder.path("out"));
    let a = folder.file("a", "x\ny\n");
    run(dedup(&a, &state, Some(&out))).ends_with(0);
    let with = |more: &[&str]| {
        let mut args = dedup(&a, &state, Some(&out));
        args.extend(more.iter().map(|&arg| arg.to_owned()));
        run(args)
    };
    with(&["--ignore-case"]).refused(&["key options"]);
    with(&["-p", "1e-3"]).refused(&["without -p"]);
    with(&["--part", "1/2"]).refused(&["--part"]);
    with(&["--skip-empty"]).refused(&["--skip-empty"]);
    with(&["-d"]).refused(&["-d"]);
    let secret = folder.file("secret", [7u8; 16]);
    with(&["--secret-file", secret.to_str().unwrap()]).refused(&["state"]);
    let filter = folder.file("garbage", "not a filter");
    run(dedup(&a, &filter, None)).refused(&["not a petal file"]);
    assert_eq!(read(&filter), b"not a filter");
}

#[test]
fn a_full_memory_leaves_output_and_state_complete() {
    let folder = Folder::new();
    let (state, out) = (folder.path("state"), folder.path("out"));
    let text: String = (0..200_000).map(|i| format!("line {i}\n")).collect();
    let file = folder.file("lines", &text);
    let mut args = dedup(&file, &state, Some(&out));
    args.extend(["--memory", "9831K", "--summary", "json"].map(str::to_owned));
    let ran = run(&args).ends_with(2);
    let unique = ran.json_count("unique");
    assert_eq!(read(&out).split(|&byte| byte == b'\n').count(), unique + 1);
    // The state is unfinished: other inputs are refused, the same go on.
    let other = folder.file("other", "x\n");
    run(dedup(&other, &state, Some(&out))).refused(&["unfinished"]);
    run(dedup(&file, &state, None)).refused(&["unfinished"]);
    args.extend(["--when-full", "pass"].map(str::to_owned));
    run(&args).ends_with(0);
    assert!(read(&out) == text.as_bytes());
}

#[test]
fn one_file_has_one_role() {
    let folder = Folder::new();
    let a = folder.file("a", "x\ny\nx\n");
    let (state, out) = (folder.path("state"), folder.path("out"));
    std::os::unix::fs::symlink("a", folder.path("link")).unwrap();
    for output in [&a, &folder.path("link"), &folder.path("./a")] {
        run(dedup(&a, &state, Some(output))).refused(&["input as well"]);
        assert_eq!(read(&a), b"x\ny\nx\n");
    }
    run(dedup(&a, &a, None)).refused(&["--state"]);
    run(dedup(&a, &out, Some(&out))).refused(&["--state"]);
    let twice = |more: &[&str]| {
        let mut args = vec!["dedup", a.to_str().unwrap()];
        args.extend(more);
        run(args)
    };
    let (one, other) = (out.to_str().unwrap(), folder.path("./out"));
    twice(&["-o", one, "--repeats-to", other.to_str().unwrap()]).refused(&["both"]);
    twice(&["--repeats-to", "-"]).refused(&["stdout"]);
    twice(&["-o", "/dev/null", "--repeats-to", "/dev/null"]).ends_with(0);
    assert_eq!(folder.names(), ["a", "link"]);
}

#[test]
fn a_pipe_is_never_taken_for_one_that_was_finished() {
    let folder = Folder::new();
    let (state, out) = (folder.path("state"), folder.path("out"));
    let args = dedup(Path::new("-"), &state, Some(&out));
    run_with(&args, b"x\ny\n").ends_with(0);
    run_with(&args, b"y\nz\n").refused(&["name another output"]);
    assert_eq!(read(&out), b"x\ny\n");
    let args = dedup(Path::new("-"), &state, Some(&folder.path("out2")));
    run_with(&args, b"y\nz\n").ends_with(0);
    assert_eq!(read(&folder.path("out2")), b"z\n");
    let more = ["-D".to_owned()];
    run_with(args.iter().chain(&more), b"y\n").refused(&["pipe"]);
}

#[test]
fn a_dash_is_stdout_with_a_state_too() {
    let folder = Folder::new();
    let a = folder.file("a", "x\nx\n");
    let state = folder.path("state");
    let ran = run(dedup(&a, &state, Some(Path::new("-")))).ends_with(0);
    assert_eq!(ran.stdout, b"x\n");
    assert_eq!(folder.names(), ["a", "state", "state.lock"]);
}

#[test]
fn names_of_any_bytes_and_odd_intervals_are_fine() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    let odd = folder.path("").join(std::ffi::OsStr::from_bytes(b"a\xff"));
    std::fs::write(&odd, "x\nx\n").unwrap();
    let state = folder.path("state");
    for every in ["1e19", "0", "1e-9", "0.5"] {
        let ran = run([
            "dedup".as_ref(),
            odd.as_os_str(),
            "--state".as_ref(),
            state.as_os_str(),
            "--save-every".as_ref(),
            every.as_ref(),
        ]);
        ran.ends_with(0);
    }
    for every in ["-1", "NaN", "inf", "x"] {
        let every = format!("--save-every={every}");
        let args = [
            "dedup",
            odd.to_str().unwrap_or("-"),
            "--state",
            state.to_str().unwrap(),
            &every,
        ];
        assert_eq!(run(args).code, Some(2));
    }
}

#[test]
fn the_output_of_a_finished_run_is_not_emptied() {
    let folder = Folder::new();
    let (state, out) = (folder.path("state"), folder.path("out"));
    let a = folder.file("a", "x\ny\n");
    run(dedup(&a, &state, Some(&out))).ends_with(0);
    std::fs::write(&a, "x\ny\nz\n").unwrap();
    run(dedup(&a, &state, Some(&out))).refused(&["name another output"]);
    assert_eq!(read(&out), b"x\ny\n");
    // Other files are another run, and its output a new one.
    let b = folder.file("b", "y\nw\n");
    run(dedup(&b, &state, Some(&out))).ends_with(0);
    assert_eq!(read(&out), b"w\n");
    std::fs::remove_file(&out).unwrap();
    run(dedup(&b, &state, Some(&out))).refused(&["not be printed again"]);
}

#[test]
fn a_pipe_that_is_read_again_is_counted_once() {
    let folder = Folder::new();
    let (state, out) = (folder.path("state"), folder.path("out"));
    let text = read(&urls()).repeat(3);
    let mut args = dedup(Path::new("-"), &state, Some(&out));
    let (mut kills, mut round) = (0, 0);
    while kills < 10 {
        let ended = run_and_kill(&args, Some(&text), round, &mut Vec::new());
        if let Some(code) = ended {
            // 2 after a kill that met the run after its last save: it had
            // finished, and its output is not emptied.
            assert!(code == 0 || code == 2, "{code}");
            assert!(read(&out) == first_occurrences(&text));
            run_with(&args, &text).refused(&["name another output"]);
            assert!(read(&out) == first_occurrences(&text));
            std::fs::remove_file(&state).unwrap();
        } else {
            kills += 1;
        }
        round += 1;
    }
    args.extend(["--summary".to_owned(), "json".to_owned()]);
    let ran = run_with(&args, &text);
    if ran.code == Some(0) {
        let lines = text.iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!(ran.json_count("lines"), lines);
        assert_eq!(ran.json_count("unique") + ran.json_count("repeated"), lines);
    }
    assert!(read(&out) == first_occurrences(&text));
}

#[test]
fn a_state_that_the_memory_does_not_hold_is_refused() {
    let folder = Folder::new();
    let state = folder.path("state");
    let text: String = (0..300_000).map(|i| format!("line {i}\n")).collect();
    let file = folder.file("lines", &text);
    run(dedup(&file, &state, None)).ends_with(0);
    let mut args = dedup(&file, &state, None);
    args.extend(["--memory", "9831K"].map(str::to_owned));
    run(&args).refused(&["--memory"]);
}

#[test]
fn a_second_run_on_one_state_is_refused() {
    let folder = Folder::new();
    let state = folder.path("state");
    let mut first = petal(["dedup".as_ref(), "--state".as_ref(), state.as_os_str()])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = first.stdin.take().unwrap();
    // Once the first one has read more than a pipe holds, it has the lock.
    stdin.write_all(&b"a line\n".repeat(100_000)).unwrap();
    run_with(
        ["dedup".as_ref(), "--state".as_ref(), state.as_os_str()],
        b"x\n",
    )
    .refused(&["lock"]);
    drop(stdin);
    assert!(first.wait_with_output().unwrap().status.success());
}

/// Kills a run at a moment of its own for each round, on one to three threads;
/// its exit status if it ended by itself.
fn run_and_kill(
    args: &[String],
    stdin: Option<&[u8]>,
    round: u32,
    out: &mut Vec<u8>,
) -> Option<i32> {
    // Saves all the time, so that kills meet them.
    let threads = (1 + round % 3).to_string();
    let often = ["--save-every", "0", "-j", &threads].map(str::to_owned);
    let mut command = petal(args.iter().chain(&often));
    if stdin.is_some() {
        command.stdin(Stdio::piped());
    }
    let mut child = command.spawn().unwrap();
    if let Some(bytes) = stdin {
        feed(&mut child, bytes.to_vec());
    }
    let mut stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut stdout, &mut bytes).unwrap();
        bytes
    });
    std::thread::sleep(moment(round));
    let _ = child.kill();
    let status = child.wait().unwrap();
    out.extend(reader.join().unwrap());
    assert!(status.signal().is_none_or(|signal| signal == 9), "{status}");
    status.code()
}

/// Milliseconds for kill number `i`: spread over the run, and different for
/// each (multiples of the golden ratio).
fn moment(i: u32) -> Duration {
    let fraction = (f64::from(i) * 0.618_033_988_749_894_8).fract();
    Duration::from_secs_f64(fraction * 0.06)
}

#[test]
fn fifty_kills_with_an_output_lose_and_repeat_nothing() {
    let folder = Folder::new();
    let (state, out) = (folder.path("state"), folder.path("out"));
    let text = read(&urls()).repeat(3);
    let file = folder.file("urls", &text);
    let args = dedup(&file, &state, Some(&out));
    let (mut kills, mut finished, mut round) = (0, 0, 0);
    while kills < 25 {
        let ended = run_and_kill(&args, None, round, &mut Vec::new());
        round += 1;
        assert!(round < 2000, "{kills} kills only");
        if state.exists() {
            verify(&state).ends_with(0);
        }
        if let Some(code) = ended {
            assert_eq!(code, 0);
            assert!(read(&out) == first_occurrences(&text));
            std::fs::remove_file(&state).unwrap();
            finished += 1;
        } else {
            kills += 1;
        }
    }
    // The last one is brought to its end undisturbed.
    run(&args).ends_with(0);
    assert!(
        read(&out) == first_occurrences(&text),
        "{finished} runs finished"
    );
}

#[test]
fn fifty_kills_without_an_output_lose_nothing() {
    let folder = Folder::new();
    let state = folder.path("state");
    let text = read(&urls()).repeat(3);
    let file = folder.file("urls", &text);
    for from_pipe in [false, true] {
        let _ = std::fs::remove_file(&state);
        let args = if from_pipe {
            vec![
                "dedup".to_owned(),
                "--state".to_owned(),
                state.to_str().unwrap().to_owned(),
            ]
        } else {
            dedup(&file, &state, None)
        };
        let stdin = from_pipe.then_some(text.as_slice());
        let mut joined = Vec::new();
        let (mut kills, mut round) = (0, 0);
        while kills < 13 {
            if let Some(code) = run_and_kill(&args, stdin, round, &mut joined) {
                assert_eq!(code, 0);
                std::fs::remove_file(&state).unwrap();
            } else {
                kills += 1;
            }
            round += 1;
            assert!(round < 2000, "{kills} kills only");
            if state.exists() {
                verify(&state).ends_with(0);
            }
        }
        let last = match stdin {
            Some(bytes) => run_with(&args, bytes),
            None => run(&args),
        };
        joined.extend(last.ends_with(0).stdout);
        let lines = |text: &[u8]| -> HashSet<Vec<u8>> {
            text.split_inclusive(|&byte| byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect()
        };
        let missing = lines(&text).difference(&lines(&joined)).count();
        assert_eq!(missing, 0, "from a pipe: {from_pipe}");
    }
}
