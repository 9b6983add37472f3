//! The tables.
//!
//! Owns Markdown for a scenario ([`table`]), for petal's ratios beside their bounds ([`ratios`]), and
//! the description of the machine ([`about`]).

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use crate::filters::concurrent::SharedTimes;
use crate::filters::limit::{DISTANCES, Limit};
use crate::filters::measure::{Measured, Op};
use crate::filters::peers::Filter;
use crate::filters::scenarios::{Against, BOUNDS, Bound, Found, Outcome, Row, is_near};

/// Every crate a table names.
const CRATES: [&str; 13] = [
    "petal",
    "fastbloom",
    "foldhash",
    "sbbf-rs-safe",
    "parquet",
    "bloomfilter",
    "xorf",
    "growable-bloom-filter",
    "fastbloom-rs",
    "bloomcraft",
    "probabilistic-rs",
    "qfilter",
    "cuckoofilter",
];

/// The table of a scenario under its heading.
#[must_use]
pub fn table(outcome: &Outcome) -> String {
    let mut text = format!("## {}\n\n", outcome.scenario.title);
    match &outcome.found {
        Found::Filters {
            error, rows, limit, ..
        } => filters(&mut text, *error, rows, limit.as_ref()),
        Found::Concurrent { fastbloom, petal } => {
            text += "| filter | new keys | repeated keys |\n|---|---:|---:|\n";
            let mut row = |name, times: &SharedTimes| {
                let _ = writeln!(
                    text,
                    "| {name} | {:.2} | {:.2} |",
                    times.new, times.repeated
                );
            };
            row(Filter::FastbloomAtomic.name(), fastbloom);
            row("petal, batches", petal);
        }
        Found::Limit(limits) => {
            text += "| array |";
            for distance in DISTANCES {
                let _ = write!(text, " {distance} ahead |");
            }
            text += "\n|---|---:|---:|---:|\n";
            for limit in limits {
                let _ = write!(text, "| {} MiB |", limit.bytes() >> 20);
                for least in limit.least {
                    let _ = write!(text, " {least:.2} |");
                }
                text.push('\n');
            }
        }
    }
    text
}

fn filters(text: &mut String, error: f64, rows: &[Row], limit: Option<&Limit>) {
    *text += "| filter | bits/key | measured error |";
    // What some filter does.
    let mut ops = Op::ALL.to_vec();
    ops.retain(|&op| rows.iter().any(|row| row.times.get(op).is_some()));
    for op in &ops {
        let _ = write!(text, " {} |", op.name());
    }
    *text += "\n|---|---:|---:|";
    *text += &"---:|".repeat(ops.len());
    text.push('\n');
    for row in rows {
        let _ = write!(
            text,
            "| {} | {:.2} | {} |",
            row.filter.name(),
            row.bits_per_key,
            error_text(row, error)
        );
        for &op in &ops {
            match row.times.get(op) {
                Some(nanoseconds) => {
                    let _ = write!(text, " {nanoseconds:.2} |");
                }
                None => *text += " |",
            }
        }
        text.push('\n');
    }
    if let Some(limit) = limit {
        let _ = writeln!(
            text,
            "| random reads of {} MiB | | |{} {:.2} |",
            limit.bytes() >> 20,
            " |".repeat(ops.len() - 1),
            limit.best()
        );
    }
}

/// The measured error; what the bits say where that is too small to be measured; and whether it is
/// not the wanted one.
fn error_text(row: &Row, wanted: f64) -> String {
    let Measured { seen, asked } = row.measured;
    let (mut text, error) = match row.error_from_bits {
        Some(error) => (
            format!("{error:.3e} from bits, {seen} of {:.0e}", asked as f64),
            error,
        ),
        None => {
            let error = row.measured.error();
            (format!("{:.4} %", error * 100.0), error)
        }
    };
    if !is_near(error, wanted) {
        text += " (not equal)";
    }
    text
}

/// The table of petal's ratios for the scenarios that ran, empty if they have none, and whether every
/// bound is reached.
#[must_use]
pub fn ratios(outcomes: &[Outcome]) -> (String, bool) {
    const HEAD: &str = "## Ratios\n\n| what | petal | against | | ratio | bound | |\n|---|---:|---|---:|---:|---:|---|\n";
    let mut text = String::new();
    let mut all_reached = true;
    for bound in BOUNDS {
        let Some(outcome) = outcomes
            .iter()
            .find(|outcome| outcome.scenario.name == bound.scenario)
        else {
            continue;
        };
        if text.is_empty() {
            text += HEAD;
        }
        let _ = write!(text, "| {}: {} |", outcome.scenario.title, what(bound));
        let Some((petal, other)) = compared(bound, &outcome.found) else {
            let _ = writeln!(
                text,
                " not built | {} | | | {} | |",
                bound.against,
                limit_text(bound)
            );
            continue;
        };
        let (ratio, reached) = judged(bound.against, petal, other);
        let verdict = match reached {
            Some(true) => "reached",
            Some(false) => "**missed**",
            None => "",
        };
        all_reached &= reached != Some(false);
        let _ = writeln!(
            text,
            " {petal:.2} | {} | {other:.2} | {ratio:.2} × | {} | {verdict} |",
            bound.against,
            limit_text(bound)
        );
    }
    (text, all_reached)
}

fn what(bound: &Bound) -> &'static str {
    match bound.against {
        Against::New(_) => "new keys",
        Against::Repeated(_) => "repeated keys",
        _ => bound.petal.name(),
    }
}

fn limit_text(bound: &Bound) -> String {
    match bound.against {
        Against::Filter(.., least) | Against::New(least) | Against::Repeated(least) => {
            format!("≥ {least} ×")
        }
        Against::Limit(most) => format!("≤ {most} ×"),
        Against::Shown(..) => String::new(),
    }
}

/// The times of petal and of the other, if both were measured.
fn compared(bound: &Bound, found: &Found) -> Option<(f64, f64)> {
    match (bound.against, found) {
        (against, Found::Filters { rows, limit, .. }) => {
            let time = |row: Option<&Row>, op| row?.times.get(op);
            let peer = |filter| rows.iter().find(|row| row.filter == filter);
            let other = match against {
                Against::Filter(filter, op, _) | Against::Shown(filter, op) => {
                    time(peer(filter), op)?
                }
                Against::Limit(_) => limit.as_ref()?.best(),
                Against::New(_) | Against::Repeated(_) => return None,
            };
            let petal = rows.iter().find(|row| row.filter.is_petal());
            Some((time(petal, bound.petal)?, other))
        }
        (Against::New(_), Found::Concurrent { fastbloom, petal }) => {
            Some((petal.new, fastbloom.new))
        }
        (Against::Repeated(_), Found::Concurrent { fastbloom, petal }) => {
            Some((petal.repeated, fastbloom.repeated))
        }
        _ => None,
    }
}

/// The ratio as the bound means it, and whether it is reached, if there is a bound.
fn judged(against: Against, petal: f64, other: f64) -> (f64, Option<bool>) {
    match against {
        Against::Limit(most) => (petal / other, Some(petal <= most * other)),
        Against::Filter(.., least) | Against::New(least) | Against::Repeated(least) => {
            (other / petal, Some(other >= least * petal))
        }
        Against::Shown(..) => (other / petal, None),
    }
}

/// Date, machine and versions, and how to read the tables.
#[must_use]
pub fn about(core: usize) -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cores = cpuinfo
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    let flags = cpu_field(&cpuinfo, "flags");
    let vectors: Vec<_> = flags
        .split_whitespace()
        .filter(|flag| ["avx2", "avx512f"].contains(flag))
        .collect();
    let caches: Vec<_> = [0, 2, 3]
        .iter()
        .filter_map(|index| {
            let cache = format!("/sys/devices/system/cpu/cpu{core}/cache/index{index}/size");
            Some(fs::read_to_string(cache).ok()?.trim().to_owned())
        })
        .collect();
    let huge = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let versions: Vec<_> = CRATES
        .iter()
        .filter_map(|name| Some(format!("{name} {}", locked(LOCK_FILE, name)?)))
        .collect();
    format!(
        "Nanoseconds a key, hashing included: the least CPU time of one thread over all repetitions and
rounds, new random keys in each; for two threads the elapsed time of both together. Every filter is
sized until its measured error is the wanted one, within 2 %; \"not equal\" marks the others.

* Date: {}
* Processor: {} (family {}, model {}; {}), {cores} cores, caches {}; on core {core}
* {}, release profile, no target-cpu
* Pages of 2 MiB: {}
* Versions: {}
",
        printed("date", &["-u", "+%F"]),
        cpu_field(&cpuinfo, "model name"),
        cpu_field(&cpuinfo, "cpu family"),
        cpu_field(&cpuinfo, "model"),
        vectors.join(", "),
        caches.join(", "),
        printed("rustc", &["--version"]),
        huge.as_deref().map_or("unknown", str::trim),
        versions.join(", "),
    )
}

/// What a command prints.
fn printed(command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.unwrap_or_else(|_| "unknown".into())
}

/// The versions that were built.
const LOCK_FILE: &str = include_str!("../../Cargo.lock");

/// The version of a package in a lock file.
fn locked<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    lines
        .nth(1)?
        .strip_prefix("version = \"")?
        .strip_suffix('"')
}

/// The value of the first line with this name.
fn cpu_field<'a>(cpuinfo: &'a str, name: &str) -> &'a str {
    cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(field, _)| field.trim() == name)
        .map_or("unknown", |(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_of_a_table_has_a_version() {
        for name in CRATES {
            let version = locked(LOCK_FILE, name).unwrap();
            assert!(
                version.starts_with(|first: char| first.is_ascii_digit()),
                "{name} {version}"
            );
        }
        assert_eq!(locked(LOCK_FILE, "bloom"), None);
    }

    #[test]
    fn fields_of_the_processor_are_found_by_their_whole_name() {
        let cpuinfo =
            "processor\t: 0\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Some CPU: fast\n";
        assert_eq!(cpu_field(cpuinfo, "model"), "143");
        assert_eq!(cpu_field(cpuinfo, "model name"), "Some CPU: fast");
        assert_eq!(cpu_field(cpuinfo, "stepping"), "unknown");
    }

    #[test]
    fn ratios_are_judged_as_their_bound_means_it() {
        let faster = Against::Filter(Filter::Fastbloom, Op::Hit, 2.0);
        assert_eq!(judged(faster, 5.0, 10.0), (2.0, Some(true)));
        assert_eq!(judged(faster, 5.0, 9.0), (1.8, Some(false)));
        assert_eq!(judged(Against::Limit(1.2), 6.0, 5.0), (1.2, Some(true)));
        assert_eq!(judged(Against::Limit(1.2), 8.0, 5.0), (1.6, Some(false)));
        let shown = Against::Shown(Filter::FastbloomHuge, Op::Half);
        assert_eq!(judged(shown, 5.0, 1.0), (0.2, None));
    }
}
