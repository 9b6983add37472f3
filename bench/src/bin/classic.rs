//! `classic`: what it takes to tell which lines of a list came before, seven ways.
//!
//! Owns the arguments, the processes that each measure one way, and the table; the ways are those of
//! `petal_bench::classic`.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs, process};

use petal_bench::classic::{Given, Outcome, Way, each_line, integer, measure};

const USAGE: &str = "\
usage: classic [--error P] [--rounds N] [--output FILE] LIST...

Prints a Markdown table for each list: memory and time of a database, a hash set of strings, one of
MD5 sums, a bitmap with one hash, a Bloom filter and, where all lines are 32-bit integers or IPv4
addresses, an exact bitmap. Each way runs in a process of its own, on one thread.

  --error P      the error of the bitmap with one hash and of the Bloom filter (default 0.01)
  --rounds N     runs of each way; the least time counts (default 3)
  --output FILE  write the tables to FILE as well
";

/// The first argument of a process that measures one way.
const ONE: &str = "--one";

#[derive(Debug)]
struct Options {
    error: f64,
    rounds: u32,
    output: Option<PathBuf>,
    lists: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let wants_help = arguments
        .iter()
        .any(|flag| flag == "--help" || flag == "-h");
    let done = match arguments.split_first() {
        _ if wants_help => write!(io::stdout(), "{USAGE}").map_err(|error| error.to_string()),
        Some((first, rest)) if first == ONE => one(rest),
        _ => options_from(&arguments).and_then(|options| compare(&options)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // A message that stderr does not take has nowhere else to go.
            let _ = writeln!(io::stderr(), "classic: {message}");
            ExitCode::from(2)
        }
    }
}

fn options_from(arguments: &[String]) -> Result<Options, String> {
    let mut options = Options {
        error: 0.01,
        rounds: 3,
        output: None,
        lists: Vec::new(),
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if !argument.starts_with("--") {
            options.lists.push(argument.into());
            continue;
        }
        let value = arguments
            .next()
            .ok_or_else(|| format!("{argument} needs a value, or is unknown; see --help"))?;
        match argument.as_str() {
            "--error" => {
                let error = value.parse().ok().filter(|p| (1e-9..=0.5).contains(p));
                options.error =
                    error.ok_or_else(|| format!("--error: expected 1e-9 to 0.5, got {value:?}"))?;
            }
            "--rounds" => {
                let rounds = value.parse().ok().filter(|&rounds| rounds > 0);
                options.rounds =
                    rounds.ok_or_else(|| format!("--rounds: expected 1 or more, got {value:?}"))?;
            }
            "--output" => options.output = Some(value.into()),
            _ => return Err(format!("unknown option {argument:?}; see --help")),
        }
    }
    if options.lists.is_empty() {
        return Err("give a list; see --help".to_owned());
    }
    Ok(options)
}

/// What is known of a list before it is measured.
struct List {
    lines: u64,
    bytes: u64,
    distinct: u64,
    are_integers: bool,
}

impl List {
    fn look_at(path: &Path) -> Result<Self, String> {
        let mut distinct = HashSet::new();
        let mut list = Self {
            lines: 0,
            bytes: 0,
            distinct: 0,
            are_integers: true,
        };
        each_line(path, |line| {
            list.lines += 1;
            list.bytes += line.len() as u64 + 1;
            list.are_integers &= integer(line).is_some();
            if !distinct.contains(line) {
                distinct.insert(Box::<[u8]>::from(line));
            }
            Ok(())
        })?;
        list.distinct = distinct.len() as u64;
        Ok(list)
    }
}

fn compare(options: &Options) -> Result<(), String> {
    let folder = env::temp_dir().join(format!("petal-classic-{}", process::id()));
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let tables = options
        .lists
        .iter()
        .map(|path| table(path, options, &folder));
    let tables: Result<Vec<String>, String> = tables.collect();
    // What is left in it is of no use to anybody.
    let _ = fs::remove_dir_all(&folder);
    let text = tables?.join("\n");
    if let Some(output) = &options.output {
        fs::write(output, &text)
            .map_err(|error| format!("cannot write {}: {error}", output.display()))?;
    }
    write!(io::stdout(), "{text}").map_err(|error| format!("cannot write: {error}"))
}

/// The table of a list.
fn table(path: &Path, options: &Options, folder: &Path) -> Result<String, String> {
    let list = List::look_at(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!(
        "### {name}\n\n{} lines, {} of them distinct, {} bytes\n\n\
         | what is kept | memory | on disk | bytes a distinct line | seconds | wrongly dropped |\n\
         |---|---:|---:|---:|---:|---:|\n",
        grouped(list.lines),
        grouped(list.distinct),
        grouped(list.bytes)
    );
    let given = Given {
        distinct: list.distinct,
        error: options.error,
        folder: folder.to_owned(),
    };
    for way in Way::ALL {
        let title = match way {
            Way::SingleHash | Way::Bloom => format!("{}, {}", way.title(), options.error),
            _ => way.title().to_owned(),
        };
        if way == Way::Bitmap && !list.are_integers {
            text += &format!("| {title} | for 32-bit integers only | | | | |\n");
            continue;
        }
        let outcome = least(way, path, &given, options.rounds)?;
        let kept = outcome.memory + outcome.disk;
        let (each, dropped) = match way {
            Way::Reading => (String::new(), String::new()),
            _ => (
                format!("{:.1}", kept as f64 / list.distinct.max(1) as f64),
                grouped(list.distinct.saturating_sub(outcome.new)),
            ),
        };
        let disk = match outcome.disk {
            0 => String::new(),
            bytes => mebibytes(bytes),
        };
        let _ = writeln!(
            text,
            "| {title} | {} | {disk} | {each} | {:.2} | {dropped} |",
            mebibytes(outcome.memory),
            outcome.seconds
        );
    }
    Ok(text)
}

/// The least time and memory of several runs, each in a process of its own.
fn least(way: Way, list: &Path, given: &Given, rounds: u32) -> Result<Outcome, String> {
    let this = env::current_exe().map_err(|error| format!("cannot run myself: {error}"))?;
    let mut least: Option<Outcome> = None;
    for _ in 0..rounds {
        let output = Command::new(&this)
            .args([ONE, way.name()])
            .arg(list)
            .args([given.distinct.to_string(), given.error.to_string()])
            .arg(&given.folder)
            .output()
            .map_err(|error| format!("cannot run myself: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let outcome = parse(&text).filter(|_| output.status.success());
        let Some(outcome) = outcome else {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {}", way.name(), why.trim()));
        };
        least = Some(match least {
            None => outcome,
            Some(least) => Outcome {
                seconds: least.seconds.min(outcome.seconds),
                memory: least.memory.min(outcome.memory),
                ..outcome
            },
        });
    }
    least.ok_or_else(|| "no rounds".to_owned())
}

/// Measures one way and prints what it came to.
fn one(arguments: &[String]) -> Result<(), String> {
    let [way, list, distinct, error, folder] = arguments else {
        return Err(format!("{ONE} is for the program itself"));
    };
    let given = || -> Option<Given> {
        Some(Given {
            distinct: distinct.parse().ok()?,
            error: error.parse().ok()?,
            folder: folder.into(),
        })
    };
    let (Some(way), Some(given)) = (Way::from_name(way), given()) else {
        return Err(format!("{ONE} is for the program itself"));
    };
    let Outcome {
        lines,
        new,
        seconds,
        memory,
        disk,
    } = measure(way, Path::new(list), &given)?;
    writeln!(io::stdout(), "{lines} {new} {seconds} {memory} {disk}")
        .map_err(|error| format!("cannot write: {error}"))
}

fn parse(text: &str) -> Option<Outcome> {
    let mut fields = text.split_whitespace();
    Some(Outcome {
        lines: fields.next()?.parse().ok()?,
        new: fields.next()?.parse().ok()?,
        seconds: fields.next()?.parse().ok()?,
        memory: fields.next()?.parse().ok()?,
        disk: fields.next()?.parse().ok()?,
    })
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// A count with commas.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_checked() {
        let parse = |line: &str| {
            let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            options_from(&arguments)
        };
        let options = parse("--error 1e-3 a --rounds 1 b").unwrap();
        assert_eq!(
            (options.error, options.rounds, options.lists.len()),
            (1e-3, 1, 2)
        );
        for (line, words) in [
            ("", "give a list"),
            ("--error 2 a", "1e-9 to 0.5"),
            ("--rounds 0 a", "1 or more"),
            ("--what 1 a", "unknown"),
            ("a --error", "needs a value"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn figures_are_grouped_and_read_back() {
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(0), "0");
        let outcome = parse("3 2 0.5 100 0\n").unwrap();
        assert_eq!((outcome.lines, outcome.new, outcome.memory), (3, 2, 100));
        assert!(parse("3 2").is_none());
    }
}
