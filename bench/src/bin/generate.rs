//! `generate`: writes a file of URL-like lines to stdout and its exact counts to stderr.
//!
//! Owns the arguments; the lines are those of `petal_bench::lines`.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use petal_bench::lines::{Overlap, Spec, write_line};

const USAGE: &str = "\
usage: generate --lines COUNT [--repeats SHARE] [--seed S] [--shared SHARE --other-seed S] > FILE

  --lines COUNT     lines to write; 50k is 50,000 and 10M is 10,000,000
  --repeats SHARE   how many of them occurred before, from 0 to below 1 (default 0.3)
  --seed S          names the keys, 0 to 65535 (default 1)
  --shared SHARE    write a second file: this share of its distinct lines is also in the
                    file with the same --lines, --repeats and --seed
  --other-seed S    names the second file's other keys; not the seed

The same arguments give the same bytes. stderr gets the counts, exact by construction.
";

/// Bytes gathered before each write.
const BUFFER: usize = 1 << 18;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mut stderr = io::stderr();
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        return match io::stdout().write_all(USAGE.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(2),
        };
    }
    // A message that stderr does not take has nowhere else to go.
    match spec_from(&args).and_then(|spec| generate(&spec, &mut io::stdout().lock())) {
        Ok(counts) => {
            let _ = stderr.write_all(counts.as_bytes());
            ExitCode::SUCCESS
        }
        Err(message) => {
            let _ = writeln!(stderr, "generate: {message}");
            ExitCode::from(2)
        }
    }
}

fn spec_from(args: &[String]) -> Result<Spec, String> {
    let (mut lines, mut repeats, mut seed, mut shared, mut other_seed) = (None, 0.3, 1, None, None);
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        let value = args
            .next()
            .ok_or_else(|| format!("{flag} needs a value; see --help"))?;
        match flag.as_str() {
            "--lines" => lines = Some(count(value)?),
            "--repeats" => repeats = share(value)?,
            "--seed" => seed = number(value)?,
            "--shared" => shared = Some(share(value)?),
            "--other-seed" => other_seed = Some(number(value)?),
            _ => return Err(format!("unknown option {flag:?}; see --help")),
        }
    }
    let lines = lines.ok_or("--lines is missing; see --help")?;
    let repeats = part_of(lines, repeats);
    let overlap = match (shared, other_seed) {
        (Some(shared), Some(other_seed)) => Some(Overlap {
            shared: part_of(lines.saturating_sub(repeats), shared),
            other_seed,
        }),
        (None, None) => None,
        _ => return Err("--shared and --other-seed go together".into()),
    };
    Ok(Spec {
        lines,
        repeats,
        seed,
        overlap,
    })
}

/// A count such as 1000, 50k or 10M.
fn count(text: &str) -> Result<u64, String> {
    let wrong = || format!("expected a count such as 50k or 10M, got {text:?}");
    let digits = text.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "" => 1,
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    let whole: u64 = digits.parse().map_err(|_| wrong())?;
    whole.checked_mul(unit).ok_or_else(wrong)
}

fn number(text: &str) -> Result<u16, String> {
    text.parse()
        .map_err(|_| format!("expected a seed from 0 to 65535, got {text:?}"))
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text
        .parse()
        .map_err(|_| format!("expected a share such as 0.3, got {text:?}"))?;
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err(format!("expected a share from 0 to 1, got {text:?}"))
    }
}

/// The share of a count, to the nearest whole.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share from 0 to 1 of a u64 is one"
)]
fn part_of(whole: u64, share: f64) -> u64 {
    (whole as f64 * share).round() as u64
}

/// Writes the file; returns the counts to show. A reader that closes early ends it without error.
fn generate(spec: &Spec, out: &mut impl Write) -> Result<String, String> {
    let mut buffer = Vec::with_capacity(2 * BUFFER);
    let mut bytes = 0;
    let mut flush = |buffer: &mut Vec<u8>| {
        bytes += buffer.len() as u64;
        let written = out.write_all(buffer);
        buffer.clear();
        written
    };
    let written = spec
        .keys()?
        .try_for_each(|key| {
            write_line(key, &mut buffer);
            if buffer.len() >= BUFFER {
                flush(&mut buffer)
            } else {
                Ok(())
            }
        })
        .and_then(|()| flush(&mut buffer));
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(String::new()),
        Err(error) => return Err(format!("cannot write the lines: {error}")),
    }
    let mut counts = format!(
        "lines={} distinct={} repeats={}",
        spec.lines,
        spec.distinct(),
        spec.repeats
    );
    if let Some(overlap) = spec.overlap {
        let _ = write!(counts, " shared={}", overlap.shared);
    }
    let _ = writeln!(counts, " bytes={bytes}");
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &str) -> Result<Spec, String> {
        spec_from(
            &args
                .split_whitespace()
                .map(String::from)
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn counts_take_units_of_a_thousand() {
        for (text, value) in [
            ("7", 7),
            ("50k", 50_000),
            ("50K", 50_000),
            ("10M", 10_000_000),
            ("2G", 2_000_000_000),
        ] {
            assert_eq!(count(text), Ok(value));
        }
        for text in ["", "k", "10MB", "-1", "1.5M", "0x10", "99999999999G", "é"] {
            assert!(count(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn arguments_become_a_spec() {
        let plain = Spec {
            lines: 10_000_000,
            repeats: 3_000_000,
            seed: 1,
            overlap: None,
        };
        assert_eq!(parsed("--lines 10M --repeats 0.30 --seed 1"), Ok(plain));
        assert_eq!(parsed("--lines 10M"), Ok(plain));
        let overlap = Some(Overlap {
            shared: 1_400_000,
            other_seed: 2,
        });
        assert_eq!(
            parsed("--lines 10M --shared 0.2 --other-seed 2"),
            Ok(Spec { overlap, ..plain })
        );
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (args, part) in [
            ("", "--lines is missing"),
            ("--lines", "needs a value"),
            ("--lines ten", "got \"ten\""),
            ("--lines 10 --repeats 1.5", "from 0 to 1"),
            ("--lines 10 --repeats NaN", "from 0 to 1"),
            ("--lines 10 --seed 65536", "65535"),
            ("--lines 10 --shared 0.5", "go together"),
            ("--line 10", "unknown option"),
        ] {
            let message = parsed(args).unwrap_err();
            assert!(message.contains(part), "{args:?}: {message}");
        }
    }

    #[test]
    fn the_file_has_the_counts_it_reports() {
        let mut file = Vec::new();
        let counts = generate(
            &parsed("--lines 20k --shared 0.2 --other-seed 2").unwrap(),
            &mut file,
        )
        .unwrap();
        let lines = file.iter().filter(|&&byte| byte == b'\n').count();
        let distinct: std::collections::HashSet<_> =
            file.split_inclusive(|&byte| byte == b'\n').collect();
        let expected = format!(
            "lines={lines} distinct={} repeats={} shared=2800 bytes={}\n",
            distinct.len(),
            lines - distinct.len(),
            file.len()
        );
        assert_eq!(counts, expected);
        assert_eq!((lines, distinct.len()), (20_000, 14_000));
    }
}
