//! What exact work leaves behind when it is killed, or the disk is full: nothing.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::exact::SCRATCH;
use crate::support::{Folder, numbers, petal, read};

/// Names of files in a directory that look like temporary ones.
fn left_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("petal-exact") || name.contains("petal-tmp"))
        .collect()
}

/// Fifty kills at moments spread over the run; the output is the old one or the whole new one, and
/// the next start leaves no temporary file.
#[test]
fn a_killed_run_leaves_the_old_output_and_no_files() {
    let folder = Folder::new();
    let scratch = tempfile::tempdir_in(SCRATCH).unwrap();
    let a = folder.file("a", numbers(0..200_000));
    let b = folder.file("b", numbers(100_000..300_000));
    let out = folder.path("out");
    let expected = numbers(100_000..200_000).into_bytes();
    let command = || {
        let mut command = petal(["common", "--memory", "200K", "-q"]);
        command
            .args([&a, &b])
            .arg("-o")
            .arg(&out)
            .arg("--tmp")
            .arg(scratch.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    let started = std::time::Instant::now();
    assert!(command().status().unwrap().success());
    let whole = started.elapsed();
    for round in 0..50u32 {
        std::fs::write(&out, "old").unwrap();
        let mut child = command().spawn().unwrap();
        // All over the time that a run takes, in no order.
        std::thread::sleep(whole * (round * 19 % 50) / 50);
        child.kill().unwrap();
        child.wait().unwrap();
        let now = read(&out);
        assert!(now == b"old" || now == expected, "{} bytes", now.len());
    }
    assert!(command().status().unwrap().success());
    assert!(read(&out) == expected);
    assert_eq!(left_in(scratch.path()), [""; 0]);
    assert_eq!(left_in(out.parent().unwrap()), [""; 0]);
}

/// What a system without nameless files would leave is removed by the next start.
#[test]
fn files_of_dead_processes_are_removed_by_the_next_start() {
    let folder = Folder::new();
    let scratch = tempfile::tempdir_in(SCRATCH).unwrap();
    let left = scratch.path().join(".petal-exact-00112233aabbccdd.tmp");
    std::fs::write(&left, "left").unwrap();
    std::fs::write(scratch.path().join("mine"), "mine").unwrap();
    let a = folder.file("a", numbers(0..50_000));
    let ran = petal(["dedup", "--exact", "--memory", "100K", "-q", "--tmp"])
        .arg(scratch.path())
        .arg(&a)
        .output()
        .unwrap();
    assert!(ran.status.success() && ran.stdout == read(&a));
    assert!(!left.exists() && scratch.path().join("mine").exists());
}

/// A disk that becomes full, as files that may not grow: a clear message, the old output.
#[test]
fn a_full_disk_is_named_and_changes_nothing() {
    let folder = Folder::new();
    folder.file("a", numbers(0..100_000));
    folder.file("out", "old");
    for (verb, words) in [
        ("dedup --exact a", "temporary"),
        ("dedup --exact - <a", "temporary"),
    ] {
        let script = format!(
            "trap '' XFSZ; ulimit -f 200; exec {} {verb} --memory 100K -o out --tmp '{SCRATCH}'",
            env!("CARGO_BIN_EXE_petal")
        );
        let ran = Command::new("sh")
            .args(["-c", &script])
            .current_dir(folder.path(""))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{stderr}");
        assert!(
            stderr.contains(words) && stderr.contains("File too large"),
            "{stderr}"
        );
        assert_eq!(read(&folder.path("out")), b"old");
        assert_eq!(folder.names(), ["a", "out"]);
    }
}

/// The output's disk becomes full, one of a megabyte: nothing is left on it but what was there.
#[test]
fn a_full_disk_of_the_output_is_named_and_keeps_the_old_one() {
    let folder = Folder::new();
    folder.file("a", numbers(0..400_000));
    let script = format!(
        "mount -t tmpfs -o size=1m none disk && echo old >disk/out || exit; echo mounted
         {} dedup --exact a --memory 600K -o disk/out --tmp '{SCRATCH}'
         code=$?; ls -A disk; cat disk/out; exit $code",
        env!("CARGO_BIN_EXE_petal")
    );
    std::fs::create_dir(folder.path("disk")).unwrap();
    // A file system that only this command sees.
    let ran = Command::new("unshare")
        .args(["-rm", "sh", "-c", &script])
        .current_dir(folder.path(""))
        .output();
    if let Ok(ran) = ran
        && let Some(seen) = ran.stdout.strip_prefix(b"mounted\n")
    {
        let err = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{err}");
        assert!(err.contains("No space left on device"), "{err}");
        assert_eq!(String::from_utf8_lossy(seen), "out\nold\n");
    }
    // Everywhere, also where the system grants no name space: a device that is always full.
    let mut command = folder.command("dedup --exact a --memory 600K -o /dev/full");
    let ran = command.args(["--tmp", SCRATCH]).output().unwrap();
    let err = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{err}");
    assert!(err.contains("No space left on device"), "{err}");
}

#[test]
fn file_systems_in_memory_are_refused_where_files_are_needed() {
    let folder = Folder::new();
    let kind = Command::new("stat")
        .args(["-fc", "%T", "/dev/shm"])
        .output();
    if !kind.is_ok_and(|kind| kind.stdout.starts_with(b"tmpfs")) {
        return;
    }
    folder.file("a", numbers(0..50_000));
    let ran = folder.petal("dedup --exact a --memory 100K --tmp /dev/shm");
    ran.refused(&["/dev/shm", "in memory", "--tmp"]);
    folder
        .petal("dedup --exact a --memory 64M --tmp /dev/shm")
        .ends_with(0);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new();
    folder.file("a", numbers(0..200_000));
    for memory in ["64M", "200K"] {
        let script = format!(
            "({} dedup --exact a --memory {memory} --tmp '{SCRATCH}' -q; echo $? >&2) | head -1",
            env!("CARGO_BIN_EXE_petal")
        );
        let ran = Command::new("sh")
            .args(["-c", &script])
            .current_dir(folder.path(""))
            .output()
            .unwrap();
        assert_eq!(
            (ran.stdout.as_slice(), ran.stderr.as_slice()),
            (&b"0\n"[..], &b"0\n"[..])
        );
    }
}
