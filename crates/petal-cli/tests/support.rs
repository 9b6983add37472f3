//! Runs the command, and makes the files it is run on.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The command with nothing but these arguments: no terminal, stdin empty.
pub(crate) fn petal<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_petal"));
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What a run of the command came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// That it ended with a status, or everything it said.
    #[track_caller]
    pub(crate) fn ends_with(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "stderr: {}\nstdout: {} bytes",
            self.stderr,
            self.stdout.len()
        );
        self
    }

    /// That it was refused: status 2, one line on stderr that has all these
    /// words, and no panic.
    #[track_caller]
    pub(crate) fn refused(self, words: &[&str]) -> Self {
        let ran = self.ends_with(2);
        let errors: Vec<&str> = ran
            .stderr
            .lines()
            .filter(|line| line.starts_with("petal: "))
            .filter(|line| !["plan", "warning"].iter().any(|w| line[7..].starts_with(w)))
            .collect();
        assert!(
            errors.len() == 1 || ran.stderr.starts_with("error: "),
            "{}",
            ran.stderr
        );
        for word in words {
            assert!(
                ran.stderr.contains(word),
                "{word:?} is not in: {}",
                ran.stderr
            );
        }
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        ran
    }

    /// A count of the JSON summary.
    #[track_caller]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count that a float holds exactly"
    )]
    pub(crate) fn json_count(&self, key: &str) -> usize {
        self.json(key) as usize
    }

    /// A number of the JSON summary.
    #[track_caller]
    pub(crate) fn json(&self, key: &str) -> f64 {
        let line = self.stderr.lines().rfind(|line| line.starts_with('{'));
        let value: serde_json::Value = serde_json::from_str(line.unwrap()).unwrap();
        value[key]
            .as_f64()
            .unwrap_or_else(|| panic!("no {key} in {value}"))
    }
}

/// Runs the command.
#[track_caller]
pub(crate) fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Ran {
    Ran::of(petal(args).output().unwrap())
}

/// Runs the command with bytes on its stdin.
#[track_caller]
pub(crate) fn run_with<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, stdin: &[u8]) -> Ran {
    let mut child = petal(args).stdin(Stdio::piped()).spawn().unwrap();
    feed(&mut child, stdin.to_vec());
    Ran::of(child.wait_with_output().unwrap())
}

/// Writes to a child's stdin from a thread, so that neither waits for the
/// other. That the child stops reading is no failure.
pub(crate) fn feed(child: &mut Child, bytes: Vec<u8>) {
    let mut stdin = child.stdin.take().unwrap();
    std::thread::spawn(move || {
        let _ = stdin.write_all(&bytes);
    });
}

/// A folder that goes with the test.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file and gives its path.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Runs the command in this folder, with arguments that have no blanks.
    #[track_caller]
    pub(crate) fn petal(&self, line: &str) -> Ran {
        self.petal_with(line, b"")
    }

    /// The same with bytes on its stdin.
    #[track_caller]
    pub(crate) fn petal_with(&self, line: &str, stdin: &[u8]) -> Ran {
        let mut child = self.command(line).stdin(Stdio::piped()).spawn().unwrap();
        feed(&mut child, stdin.to_vec());
        Ran::of(child.wait_with_output().unwrap())
    }

    /// The command in this folder, not yet run.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = petal(line.split_whitespace());
        command.current_dir(self.0.path());
        command
    }

    /// The JSON that a run prints to stdout.
    #[track_caller]
    pub(crate) fn json(&self, line: &str) -> serde_json::Value {
        let ran = self.petal(line).ends_with(0);
        serde_json::from_slice(&ran.stdout).unwrap()
    }

    /// Names of all files that are there, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

pub(crate) fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

/// Lines of the numbers of a range.
pub(crate) fn numbers(range: std::ops::Range<u64>) -> String {
    range.map(|i| format!("{i}\n")).collect()
}

/// The real URL list of the repository.
pub(crate) fn urls() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/urls.txt")
}

/// The first occurrence of each line, by an exact set: what `dedup` must print.
pub(crate) fn first_occurrences(text: &[u8]) -> Vec<u8> {
    let mut seen = std::collections::HashSet::new();
    text.split_inclusive(|&byte| byte == b'\n')
        .filter(|line| {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let key = line.strip_suffix(b"\r").unwrap_or(line);
            seen.insert(key.to_vec())
        })
        .flatten()
        .copied()
        .collect()
}
