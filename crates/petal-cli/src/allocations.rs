//! Proof that the loops of `dedup`, `build` and `check` allocate nothing a
//! line: the allocations of a run are counted, those of its threads included.
//! Only the parser behind `--as url` makes a string of each line.
//!
//! The counting test runs alone in a process of its own, since the tests of
//! this program share one allocator.

use std::alloc::System;
use std::path::Path;
use std::process::{Command, ExitCode};

use clap::Parser;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use crate::args::{Cli, Verb};
use crate::verbs;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Lines of the shorter list, and how many times as many the longer one has:
/// it goes through the loops in some 390 batches more.
const LINES: u64 = 20_000;
const TIMES: u64 = 40;

/// Allocations that a run may have more or less by the moments at which its
/// threads meet: the buffers of a batch grow when it is first used, a few
/// times each, and how many of the batches are used depends on who is ahead.
const CHANCE: usize = 150;

fn allocations(line: &str) -> usize {
    let words = ["petal"].into_iter().chain(line.split(' '));
    let cli = Cli::try_parse_from(words).unwrap();
    let region = Region::new(ALLOCATOR);
    let ended = match &cli.verb {
        Verb::Dedup(args) => verbs::dedup::run(args),
        Verb::Build(args) => verbs::build::run(args),
        Verb::Check(args) => verbs::check::run(args),
        _ => unreachable!("a verb with a loop over lines"),
    };
    let stats = region.change();
    assert_eq!(ended.unwrap(), ExitCode::SUCCESS, "{line}");
    stats.allocations + stats.reallocations
}

fn write(path: &Path, lines: u64) {
    // A third are repeats; one in a hundred has no field 2.
    let text: String = (0..lines)
        .map(|i| match i % 100 {
            0 => "nothing more\n".to_owned(),
            _ => format!("http://example.org/{},second\n", i % (lines / 3 * 2)),
        })
        .collect();
    std::fs::write(path, text).unwrap();
}

#[test]
#[ignore = "run by `no_line_costs_an_allocation`, alone in a process"]
fn counted() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (name, lines) in [("short", LINES), ("long", TIMES * LINES)] {
        write(&folder.path().join(name), lines);
    }
    allocations(&format!("build {} -q -o {}", at("long"), at("filter")));
    // Whatever is made once in a process.
    allocations(&format!("dedup {} -q -j8 -o {}", at("long"), at("out.gz")));
    for threads in [1, 2, 4] {
        for verb in [
            format!("dedup -o {}", at("out")),
            format!("dedup -o {} --repeats-to {}", at("out"), at("repeats")),
            format!("dedup -p 1e-3 -n 1M -o {}", at("out")),
            format!("dedup -d -o {}", at("out")),
            format!("dedup --field 2 --delimiter , -o {}", at("out")),
            format!("dedup -o {}", at("out.gz")),
            format!("dedup --window 30k -o {}", at("out")),
            format!("dedup --window 1h -n 1M -o {}", at("out")),
            format!(
                "dedup --window 1h -n 1M --time-field 2 --delimiter , -o {}",
                at("out")
            ),
            format!("build -n 1M --force -o {}", at("made")),
            format!("build --force -o {}", at("made")),
            format!("check {} -o {}", at("filter"), at("out")),
            format!("build --kind deletable --force -o {}", at("made")),
            format!("check {0} -H -f {0} -o {1}", at("filter"), at("out")),
        ] {
            let count = |list| allocations(&format!("{verb} {} -q -j{threads}", at(list)));
            let (short, long) = (count("short"), count("long"));
            assert!(
                long <= short + CHANCE,
                "{verb} -j{threads}: {short} allocations for {LINES} lines, {long} for {TIMES} times as many"
            );
        }
    }
}

#[test]
fn no_line_costs_an_allocation() {
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "allocations::counted", "--ignored"])
        .args(["--test-threads", "1", "--nocapture"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}
