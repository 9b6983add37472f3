//! What is refused, and what failures leave: nothing.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use petal_exact::*;

use crate::model::{answers, input, key, options};

fn refusal(operation: Operation, sources: usize, options: &Options) -> String {
    let sources: Vec<_> = (0..sources).map(|_| input([key(1)])).collect();
    Job::new(operation, &sources, options)
        .unwrap_err()
        .to_string()
}

#[test]
fn operations_that_make_no_sense_are_refused() {
    let common = |at_least| Operation::Common { at_least };
    for (operation, sources) in [
        (common(0), 2),
        (common(3), 2),
        (Operation::Except, 0),
        (Operation::Except, 65_535),
    ] {
        let error = refusal(operation, sources, &options(1 << 20));
        assert!(error.contains("expected"), "{error}");
    }
    let error = refusal(Operation::Except, 1, &options(1000));
    assert!(error.contains("1000 are allowed"), "{error}");
}

#[test]
fn memory_that_cannot_hold_a_bit_a_record_is_refused() {
    let mut claims = input([key(1)]);
    claims.claimed = Some(1 << 40);
    let sources = [claims];
    let error = Job::new(Operation::Except, &sources, &options(1 << 30)).unwrap_err();
    assert!(
        error.to_string().contains("one bit for each record"),
        "{error}"
    );
}

#[test]
fn a_disk_that_is_too_small_for_the_plan_is_refused_before_the_work() {
    let mut claims = input([key(1)]);
    claims.claimed = Some(1 << 45);
    let sources = [claims];
    let job = Job::new(Operation::Dedup(Which::First), &sources, &options(1 << 45)).unwrap();
    assert!(job.plan().disk > 1 << 48);
    let error = job
        .run(&mut |_, _| panic!("nothing is handed out"))
        .unwrap_err();
    assert!(matches!(error, Error::NoRoom { .. }), "{error}");
}

#[test]
fn a_missing_directory_matters_only_where_files_are_made() {
    let mut options = options(64 << 10);
    options.directory = "/no/such/directory".into();
    let few = [input((0..100).map(key))];
    answers(Operation::Dedup(Which::First), &few, &options).unwrap();
    let many = [input((0..10_000).map(key))];
    let error = answers(Operation::Dedup(Which::First), &many, &options).unwrap_err();
    assert!(error.to_string().contains("/no/such/directory"), "{error}");
    let mut unknown = input((0..10_000).map(key));
    unknown.claimed = None;
    let error = answers(Operation::Dedup(Which::First), &[unknown], &options).unwrap_err();
    assert!(error.to_string().contains("/no/such/directory"), "{error}");
}

/// A source with more or fewer records each time.
struct Unsteady {
    reads: AtomicU64,
    first: u64,
    later: u64,
}

impl Source for Unsteady {
    type Batch = Vec<String>;
    type Error = Error;

    fn scan(&self, visit: &mut Visit<'_, Self::Batch, Error>) -> Result<(), Error> {
        let again = self.reads.fetch_add(1, Ordering::Relaxed) > 0;
        let records = if again { self.later } else { self.first };
        for start in (0..records).step_by(100) {
            let end = (start + 100).min(records);
            visit(&(start..end).map(|i| i.to_string()).collect())?;
        }
        Ok(())
    }

    fn facts(&self) -> Facts {
        Facts {
            bytes: 0,
            records: Some(self.first),
            distinct_share: 1.0,
        }
    }
}

#[test]
fn a_source_that_changes_is_an_error() {
    for (later, memory) in [(4900, 16 << 10), (5100, 16 << 10), (4900, 1 << 20)] {
        let sources = [Unsteady {
            reads: AtomicU64::new(0),
            first: 5000,
            later,
        }];
        let operation = Operation::Dedup(Which::NeverRepeated);
        let job = Job::new(operation, &sources, &options(memory)).unwrap();
        let error = job.run(&mut |_, _| Ok(())).unwrap_err();
        assert!(error.to_string().contains("changed"), "{error}");
    }
}

/// Errors of those who take the answers come back as they are, in every method.
#[test]
fn an_error_of_the_taker_ends_the_run() {
    for memory in [16 << 10, 8 << 20] {
        for operation in [
            Operation::Dedup(Which::First),
            Operation::Dedup(Which::Counted),
            Operation::Common { at_least: 2 },
        ] {
            for threads in [1, 3] {
                let sources = [input((0..9000).map(key)), input((100..9000).map(key))];
                let options = Options {
                    threads,
                    ..options(memory)
                };
                let job = Job::new(operation, &sources, &options).unwrap();
                let mut calls = 0;
                let error = job
                    .run(&mut |_, _| {
                        calls += 1;
                        Err(Error::Collision)
                    })
                    .unwrap_err();
                assert!(matches!(error, Error::Collision) && calls == 1);
            }
        }
    }
}

/// The plan says what is written and read, within a few percent.
#[test]
fn the_plan_is_kept() {
    let sources = [
        input((0..60_000).map(|i| key(i % 50_000))),
        input((30_000..90_000).map(key)),
    ];
    for (operation, multi) in [
        (Operation::Dedup(Which::First), false),
        (Operation::Dedup(Which::NeverRepeated), false),
        (Operation::Common { at_least: 2 }, false),
        (Operation::Common { at_least: 1 }, true),
        (Operation::Except, true),
    ] {
        let options = Options {
            multi,
            threads: 2,
            ..options(300 << 10)
        };
        let planned = Job::new(operation, &sources, &options)
            .unwrap()
            .plan()
            .clone();
        let (_, outcome) = answers(operation, &sources, &options).unwrap();
        let of = |f: fn(&Step) -> u64| planned.steps.iter().map(f).sum::<u64>() as f64;
        for (plan, is) in [
            (of(|step| step.written), outcome.written as f64),
            (of(|step| step.read), outcome.read as f64),
        ] {
            assert!(
                (is / plan - 1.0).abs() < 0.05,
                "{operation:?}: {is} of {plan}"
            );
        }
        assert!(planned.memory <= options.memory);
    }
}

/// Nothing has a name in the directory, during and after the work.
#[test]
fn temporary_files_have_no_names() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let names = |path: &Path| std::fs::read_dir(path).unwrap().count();
    let mut options = options(16 << 10);
    options.directory = directory.path().to_owned();
    let sources = [input((0..20_000).map(|i| key(i % 9000)))];
    let job = Job::new(Operation::Dedup(Which::Counted), &sources, &options).unwrap();
    let outcome = job.run(&mut |_, _| {
        assert_eq!(names(directory.path()), 0);
        Ok(())
    });
    assert!(outcome.unwrap().written > 0);
    assert_eq!(names(directory.path()), 0);
}
