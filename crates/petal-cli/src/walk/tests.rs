//! The walk itself: the same visits, whoever reads and prepares.

use std::io::Write;
use std::sync::mpsc;

use super::*;

/// Prepares the lengths of lines, or dies.
struct Lengths {
    /// A line on which preparing fails, and one on which it panics.
    fails_on: &'static [u8],
    dies_on: &'static [u8],
}

impl Prepare for Lengths {
    type Ready = Vec<usize>;

    fn buffer(&self) -> Vec<usize> {
        Vec::new()
    }

    fn prepare(&self, batch: &Batch, ready: &mut Vec<usize>) -> Result<()> {
        ready.clear();
        for line in batch.iter() {
            if line == self.fails_on {
                anyhow::bail!("fails as it was told to");
            }
            if line == self.dies_on {
                std::panic::resume_unwind(Box::new("dies without a message"));
            }
            ready.push(line.len());
        }
        Ok(())
    }
}

const FINE: Lengths = Lengths {
    fails_on: b"FAIL",
    dies_on: b"DIE",
};

/// Remembers the lines, and after how many of them it was told to flush.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    lines: Vec<(usize, u64, Vec<u8>)>,
    stop_after: Option<usize>,
}

impl Visit<Vec<usize>> for Seen {
    fn visit(&mut self, batch: &Batch, ready: &mut Vec<usize>, place: &Place) -> Result<Flow> {
        assert_eq!(ready.len(), batch.len());
        for (i, line) in batch.iter().enumerate() {
            assert_eq!(ready[i], line.len());
            let number = place.line + i as u64;
            self.lines.push((place.input, number, line.to_vec()));
        }
        Ok(match self.stop_after {
            Some(most) if self.lines.len() >= most => Flow::Stop,
            _ => Flow::GoOn,
        })
    }
}

fn walk(files: &[PathBuf], threads: usize) -> Walk {
    Walk {
        files: files.into(),
        from: Position::default(),
        options: LineOptions::default(),
        threads,
        label: "test",
        quiet: true,
        outputs: Vec::new(),
    }
}

/// Files of 0 to many batches; the last line of each may lack its end.
fn files(folder: &tempfile::TempDir) -> Vec<PathBuf> {
    [3, 0, 2 * BATCH + 1, 40_000, 1]
        .iter()
        .enumerate()
        .map(|(number, &lines)| {
            let path = folder.path().join(number.to_string());
            let text: Vec<String> = (0..lines).map(|i| format!("{number} {}", i * i)).collect();
            std::fs::write(&path, text.join("\n")).unwrap();
            path
        })
        .collect()
}

#[test]
fn every_number_of_threads_visits_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(&folder);
    let mut alone = Seen::default();
    walk(&files, 1).each(&Arc::new(FINE), &mut alone).unwrap();
    assert_eq!(alone.lines.len(), 3 + 2 * BATCH + 1 + 40_000 + 1);
    assert_eq!(alone.lines[3], (2, 1, b"2 0".to_vec()));
    for threads in [2, 3, 8, 100] {
        let mut seen = Seen::default();
        walk(&files, threads)
            .each(&Arc::new(FINE), &mut seen)
            .unwrap();
        assert!(seen == alone, "{threads}");
        let mut walk = walk(&files, threads);
        walk.from = Position {
            input: 3,
            offset: 4,
        };
        let mut rest = Seen::default();
        walk.each(&Arc::new(FINE), &mut rest).unwrap();
        assert_eq!(rest.lines[0], (3, 1, b"3 1".to_vec()), "{threads}");
        assert_eq!(rest.lines.len(), 40_000);
    }
}

#[test]
fn whatever_ends_it_comes_after_all_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(&folder);
    let line = b"3 100000000"; // number 10,000 of the file
    let before = 3 + 2 * BATCH + 1 + 10_000 / BATCH * BATCH;
    for threads in [1, 2, 3, 8] {
        let mut seen = Seen::default();
        let fails = Arc::new(Lengths {
            fails_on: line,
            ..FINE
        });
        let error = walk(&files, threads).each(&fails, &mut seen).unwrap_err();
        assert_eq!(error.to_string(), "fails as it was told to");
        assert!((before - BATCH..=before + BATCH).contains(&seen.lines.len()));
        let first = seen.lines.len();

        let mut seen = Seen {
            stop_after: Some(5000),
            ..Seen::default()
        };
        walk(&files, threads)
            .each(&Arc::new(FINE), &mut seen)
            .unwrap();
        assert!((5000..5000 + BATCH).contains(&seen.lines.len()));

        let mut missing = files.clone();
        missing.insert(3, folder.path().join("missing"));
        let mut seen = Seen::default();
        let error = walk(&missing, threads).each(&Arc::new(FINE), &mut seen);
        assert!(error.unwrap_err().to_string().contains("missing"));
        assert_eq!(seen.lines.len(), 3 + 2 * BATCH + 1);
        assert!(first > seen.lines.len());
    }
}

/// The caller may be the one who meets the line; then it is its own panic.
#[test]
fn a_helper_that_dies_is_an_error_not_the_end() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"a\nDIE\n").unwrap();
    drop(writer);
    // A pipe: the caller does not help.
    let path = PathBuf::from(format!(
        "/proc/self/fd/{}",
        std::os::fd::AsRawFd::as_raw_fd(&reader)
    ));
    let mut seen = Seen::default();
    let error = walk(&[path], 2)
        .each(&Arc::new(FINE), &mut seen)
        .unwrap_err();
    assert!(error.to_string().contains("died"), "{error}");
    assert!(seen.lines.is_empty());
}

/// Dies before anybody knows where its batch comes.
struct DiesLooking;

impl Prepare for DiesLooking {
    type Ready = Vec<usize>;

    fn buffer(&self) -> Vec<usize> {
        Vec::new()
    }

    fn look(&self, batch: &Batch) -> Result<()> {
        let helps = std::thread::current().name() == Some("petal helper");
        if helps && batch.iter().any(|line| line == b"LOOK") {
            std::panic::resume_unwind(Box::new("dies without a message"));
        }
        Ok(())
    }

    fn prepare(&self, batch: &Batch, ready: &mut Vec<usize>) -> Result<()> {
        FINE.prepare(batch, ready)
    }
}

/// What was read but has no place in the queue yet is lost with its helper:
/// nothing behind it may be visited.
#[test]
fn nothing_follows_the_lines_that_a_helper_took_with_it() {
    let mut text = String::new();
    for i in 0..100_000 {
        text += &if i == 30_000 {
            "LOOK\n".into()
        } else {
            format!("line {i}\n")
        };
    }
    for _ in 0..40 {
        // A pipe: the caller does not help.
        let (reader, mut writer) = std::io::pipe().unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&reader);
        let path = PathBuf::from(format!("/proc/self/fd/{fd}"));
        let text = text.clone();
        let feeder = std::thread::spawn(move || {
            // Fails when nobody reads any more.
            let _ = writer.write_all(text.as_bytes());
        });
        let mut seen = Seen::default();
        let error = walk(&[path], 4)
            .each(&Arc::new(DiesLooking), &mut seen)
            .unwrap_err();
        assert!(error.to_string().contains("died"), "{error}");
        assert!(seen.lines.len() <= 30_000);
        let numbers = seen.lines.iter().map(|&(_, number, _)| number);
        assert!(numbers.eq(1..=seen.lines.len() as u64), "lines are missing");
        drop(reader);
        feeder.join().unwrap();
    }
}

/// Flushing comes when all is visited and before more is waited for; a walk
/// that is not wanted any more ends while its reader waits.
#[test]
fn a_slow_pipe_is_flushed_and_left() {
    struct Live {
        seen: Seen,
        told: mpsc::Sender<usize>,
    }
    impl Visit<Vec<usize>> for Live {
        fn visit(&mut self, batch: &Batch, ready: &mut Vec<usize>, at: &Place) -> Result<Flow> {
            self.seen.visit(batch, ready, at)
        }

        fn idle(&mut self) -> Result<()> {
            self.told.send(self.seen.lines.len())?;
            Ok(())
        }
    }
    for threads in [1, 2, 3] {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&reader);
        let path = PathBuf::from(format!("/proc/self/fd/{fd}"));
        let (told, hears) = mpsc::channel();
        let feeder = std::thread::spawn(move || {
            for line in 1..=3 {
                writer.write_all(b"line\n").unwrap();
                if line < 3 {
                    // Not before it was flushed.
                    while hears.recv().unwrap() < line {}
                }
            }
            writer // stays open
        });
        let mut live = Live {
            seen: Seen {
                stop_after: Some(3),
                ..Seen::default()
            },
            told,
        };
        walk(&[path], threads)
            .each(&Arc::new(FINE), &mut live)
            .unwrap();
        assert_eq!(live.seen.lines.len(), 3);
        drop(live);
        drop(feeder.join().unwrap());
    }
}
