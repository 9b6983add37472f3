//! Filters that come from files and go to files.
//!
//! Owns the messages: every error names its file and the flag that helps; and
//! what differs between the kinds for the verbs: counts of keys, and the clock.
//! What a file is, is the library's.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow, bail};
use petal::{AnyFilter, AtomicFile, Contains, Error, Kind, Overwrite, Promise, Secret, WindowSpan};

use crate::budget;
use crate::os::display_name;
use crate::report::{figure, probability};
use crate::units::{format_count, format_size};

/// Reads a filter into memory and verifies it.
pub(crate) fn open(path: &Path, secret: Option<&Secret>) -> Result<AnyFilter> {
    AnyFilter::open(path, secret).map_err(|error| named(path, error))
}

/// Maps a filter without reading it.
pub(crate) fn open_mapped(path: &Path, secret: Option<&Secret>) -> Result<AnyFilter> {
    AnyFilter::open_mapped(path, secret).map_err(|error| named(path, error))
}

/// Refuses filters that an explicit `--memory` does not hold. Without the
/// flag the library refuses what this process may not use.
pub(crate) fn check_budget(paths: &[&Path], memory: Option<&str>, remedy: &str) -> Result<()> {
    let Some(text) = memory else {
        return Ok(());
    };
    let allowed = crate::params::size("--memory", text)?;
    let mut bytes = 0u64;
    for path in paths {
        let info = petal::inspect(path).map_err(|error| named(path, error))?;
        bytes = bytes.saturating_add(info.payload_bytes);
    }
    let needed = budget::needed(bytes);
    if needed > allowed {
        bail!(
            "--memory {text} is too little: the filters and petal itself need {}; {remedy}",
            format_size(needed)
        );
    }
    Ok(())
}

/// An error of the library with the name of the file and what to do.
pub(crate) fn named(path: &Path, error: Error) -> anyhow::Error {
    let has_name = matches!(
        error,
        Error::Io { path: Some(_), .. }
            | Error::NotAFile { .. }
            | Error::Exists { .. }
            | Error::NoRoom { .. }
            | Error::Locked { .. }
    );
    let remedy = match error {
        Error::Secret { .. } => "with --secret-file",
        Error::Exists { .. } => "with --force",
        Error::Format(petal::FormatError::Dirty { .. }) => "with `petal add --recover`",
        _ => "",
    };
    let mut text = error.to_string();
    if !remedy.is_empty() {
        text = format!("{text} ({remedy})");
    }
    if !has_name {
        text = format!("{}: {text}", display_name(path));
    }
    anyhow!(text)
}

/// The label of a window of time that goes by the system's clock, in
/// milliseconds since 1970: those that `build` makes. What others count in, the
/// file does not say.
pub(crate) const CLOCK: (&str, &str) = ("clock", "unix-ms");

/// Milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Tells a window of time what time it is, so that it forgets what has left
/// it. Where it is not known what it counts in, its time stands still, and a
/// warning says so.
pub(crate) fn tell_time(path: &Path, filter: &mut AnyFilter) {
    let AnyFilter::Window(window) = filter else {
        return;
    };
    if window.span() == WindowSpan::Keys {
        return;
    }
    if window.about().labels().get(CLOCK.0) == Some(CLOCK.1) {
        window.advance(unix_ms());
    } else {
        crate::report::warn(&format!(
            "{}: the label {}={} is missing, so that its clock is not known: nothing is \
             forgotten, and all lines come at the time that it was told last",
            display_name(path),
            CLOCK.0,
            CLOCK.1
        ));
    }
}

/// Distinct keys in a filter, where they are counted and not estimated. The
/// insertions of a counting filter are repeats as well, those of a window of
/// all time.
pub(crate) fn counted_keys(filter: &AnyFilter) -> Option<u64> {
    match filter {
        AnyFilter::Counting(_) => None,
        AnyFilter::Window(window) => Some(window.held()),
        filter => filter.about().insertions(),
    }
}

/// What [`counted_keys`] counts, for people.
pub(crate) const fn counted_name(filter: &AnyFilter) -> &'static str {
    match filter {
        // Keys that share one count once.
        AnyFilter::Deletable(_) => "different fingerprints",
        AnyFilter::DigestSet(_) => "different digests",
        _ => "keys",
    }
}

/// Why a filter of a kind, made for `items` keys, took no further key, before
/// anything was written.
pub(crate) fn not_taken(kind: Kind, items: u64, error: Error) -> anyhow::Error {
    let why = match error {
        Error::Full { keys, .. } if kind == Kind::Deletable && keys >= items => format!(
            "more than the {} distinct keys that it is made for, and no slot is left: give a larger \
             -n to a filter that is built anew",
            format_count(items)
        ),
        Error::TooLarge {
            needed,
            available: Some(available),
        } if kind == Kind::Deletable => format!(
            "to count the repeats of its keys the filter would need {}, the memory budget is {}: \
             allow more with --memory",
            format_size(budget::needed(needed)),
            format_size(budget::needed(available))
        ),
        error => error.to_string(),
    };
    anyhow!("{why}; nothing was written")
}

/// Whether an insertion of a key that is there changes the filter.
pub(crate) const fn notes_repeats(filter: &AnyFilter) -> bool {
    matches!(
        filter,
        AnyFilter::Counting(_) | AnyFilter::Deletable(_) | AnyFilter::Window(_)
    )
}

/// Keys by which an estimate may be wrong in a filter that holds what it was
/// made for: five standard deviations. With m bits of which a key sets k, one
/// is `sqrt(m (e^t - t - 1)) / k` keys, t = k n / m (Whang et al., "A linear-time
/// probabilistic counting algorithm", 1990). With k = log2(1/p) and t = ln 2
/// that is `0.67 sqrt(n / k)`.
pub(crate) fn estimate_margin(promise: Promise) -> f64 {
    let hashes = -promise.error.log2();
    5.0 * 0.67 * (promise.items as f64 / hashes).sqrt()
}

/// Whether there are more keys than a filter was made for.
pub(crate) fn is_over(promise: Promise, counted: Option<u64>, estimate: f64) -> bool {
    match counted {
        Some(keys) => keys > promise.items,
        None => estimate > promise.items as f64 + estimate_margin(promise),
    }
}

/// Says that a filter holds more than it was made for.
pub(crate) fn warn_if_overfull(filter: &AnyFilter, path: &Path) {
    let (Some(promise), Some(0)) = (filter.about().promise(), filter.room()) else {
        return;
    };
    let (counted, estimate) = (counted_keys(filter), filter.estimated_len());
    if is_over(promise, counted, estimate) {
        let items = format_count(promise.items);
        let what = match counted {
            Some(_) => format!("more keys than the {items} it was made for"),
            None => format!(
                "about {} keys and was made for {items}",
                crate::report::estimate(estimate)
            ),
        };
        crate::report::warn(&format!(
            "{} holds {what}: its error is now {}, not {}",
            display_name(path),
            figure(filter.error_now()),
            probability(promise.error)
        ));
    }
}

/// What a filter will be saved as, or why it cannot be: found out before
/// any input is read.
pub(crate) fn check_target(path: &Path, force: bool) -> Result<Overwrite> {
    if path.as_os_str() == "-" {
        bail!("-o -: a filter is written to a file, as a whole: give it a name");
    }
    if path.is_dir() {
        bail!("{} is a directory: name a file", display_name(path));
    }
    let overwrite = if force {
        Overwrite::Replace
    } else {
        Overwrite::Refuse
    };
    // Made and dropped: whether the directory takes a file is known now.
    AtomicFile::create(path, overwrite).map_err(|error| named(path, error))?;
    Ok(overwrite)
}
