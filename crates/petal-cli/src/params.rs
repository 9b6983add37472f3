//! Values of flags, from text to numbers.
//!
//! Owns what several verbs read alike: `-n`, `-p`, sizes, the memory and the
//! inputs, with messages that name the flag. The limits of what a filter can
//! be are the library's.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use petal::sizing::{self, Collisions};

use crate::budget;
use crate::input::LineOptions;
use crate::os::display_name;
use crate::units::{Span, parse_count, parse_size, parse_span};

/// The error of `-p`: a number that filters are made for.
pub(crate) fn fpr(text: &str) -> Result<f64> {
    if let Some(percent) = text.strip_suffix('%')
        && let Ok(percent) = percent.trim().parse::<f64>()
    {
        bail!(
            "-p {text}: an error is a share between 0 and 1; did you mean {}?",
            percent / 100.0
        );
    }
    let Ok(error) = text.parse::<f64>() else {
        bail!("-p {text:?}: expected a number between 0 and 1, such as 0.01 or 1e-6");
    };
    // What the library says to a single key is what it says to `p` alone.
    sizing::split_for(1, error, Collisions::Never).with_context(|| format!("-p {text}"))?;
    Ok(error)
}

/// The number of keys of `-n`. Whether a filter can be made for so many is
/// for the library to say; 0 never is.
pub(crate) fn items(text: &str) -> Result<u64> {
    let items = parse_count(text).with_context(|| "-n")?;
    if items == 0 {
        bail!("-n 0 is not possible: a filter is sized for at least 1 key");
    }
    Ok(items)
}

/// The span of `--window`.
pub(crate) fn span(text: &str) -> Result<Span> {
    parse_span(text).with_context(|| "--window")
}

/// A size in bytes.
pub(crate) fn size(flag: &str, text: &str) -> Result<u64> {
    parse_size(text).with_context(|| flag.to_owned())
}

/// The memory to use: what `--memory` says, or a quarter of what there is.
pub(crate) fn budget(flag: Option<&str>) -> Result<u64> {
    match flag {
        Some(text) => size("--memory", text),
        None => Ok(petal::memory::available().bytes / 4),
    }
}

/// How inputs are read within a budget, where making keys copies lines or not.
pub(crate) fn line_options(terminator: u8, budget: u64, key_is_copied: bool) -> LineOptions {
    LineOptions {
        terminator,
        max_record: budget::longest_line(budget, key_is_copied),
        ..LineOptions::default()
    }
}

/// The threads to use: what `-j` says, or one for each core that this process
/// may use.
pub(crate) fn threads(flag: Option<usize>) -> usize {
    flag.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Refuses inputs that are not there, before anything is written. They are
/// not opened: a pipe would lose what is read of it.
pub(crate) fn check_present(paths: &[PathBuf]) -> Result<()> {
    for path in paths.iter().filter(|path| path.as_os_str() != "-") {
        let facts = path.metadata().with_context(|| display_name(path))?;
        if facts.is_dir() {
            bail!("{} is a directory: name files", display_name(path));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal<T: std::fmt::Debug>(result: Result<T>) -> String {
        format!("{:#}", result.unwrap_err())
    }

    #[test]
    fn errors_are_shares() {
        assert_eq!(fpr("0.01").unwrap(), 0.01);
        assert_eq!(fpr("1e-12").unwrap(), 1e-12);
        for (text, part) in [
            ("0", "between 0 and 1"),
            ("1", "between 0 and 1"),
            ("2", "did you mean 0.02"),
            ("5", "did you mean 0.05"),
            ("-0.1", "between 0 and 1"),
            ("NaN", "between 0 and 1"),
            ("inf", "between 0 and 1"),
            ("-inf", "between 0 and 1"),
            ("1e-13", "use 1e-12 or more"),
            ("1e-400", "between 0 and 1"),
            ("1%", "did you mean 0.01"),
            ("0.1 %", "did you mean 0.001"),
            ("", "between 0 and 1"),
            ("0,01", "between 0 and 1"),
            ("x", "between 0 and 1"),
        ] {
            let message = refusal(fpr(text));
            assert!(message.starts_with("-p"), "{message}");
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn counts_are_positive() {
        assert_eq!(items("2M").unwrap(), 2_000_000);
        for text in ["0", "-1", "", "1.5", "x", "1e30"] {
            let message = refusal(items(text));
            assert!(message.starts_with("-n"), "{text}: {message}");
        }
        assert!(refusal(size("--memory", "4Q")).starts_with("--memory: `4Q`"));
    }
}
