//! Filters of other systems at the command line.
//!
//! Owns telling them from petal's own, what the flags say of them, and lines as
//! keys of theirs. What they are is `petal-interop`'s.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use petal::{AtomicFile, Error, FormatError, Overwrite};
use petal_interop::{Counted, Encoding, ForeignFilter, ForeignKey, Format, RawBits, ReadOptions};

use crate::args::{ForeignArgs, ForeignForm};
use crate::os::display_name;
use crate::report::{Table, figure, probability};
use crate::units::{format_count, format_size};

/// What the flags say of a file.
pub(crate) fn options(args: &ForeignArgs) -> ReadOptions {
    let mut options = ReadOptions::new();
    if let Some(format) = args.format {
        options = options.format(format);
    }
    if let Some(hash) = args.hash {
        options = options.rbloom_hash(hash);
    }
    if let Some(column) = &args.column {
        options = options.column(column);
    }
    if let Some(row_group) = args.row_group {
        options = options.row_group(row_group);
    }
    if let Some(program) = args.program {
        options = options.classic(program, RawBits::default());
    }
    if args.old_pybloom {
        options = options.old_pybloom();
    }
    options
}

/// The filter, if it is one of another system: the format was named, or the
/// file is not petal's and can be told by looking.
pub(crate) fn open(
    path: &Path,
    args: &ForeignArgs,
    memory: Option<&str>,
) -> Result<Option<Box<dyn ForeignFilter>>> {
    if args.format.is_none() && !is_no_petal_file(path) {
        return Ok(None);
    }
    let mut options = options(args);
    if let Some(text) = memory {
        let budget = crate::params::size("--memory", text)?;
        let needed = fs::metadata(path)
            .map_or(0, |facts| facts.len())
            .saturating_mul(2);
        options = options.memory(budget);
        if needed > budget {
            bail!(
                "--memory {text} is too little: {} needs up to {}; allow more",
                display_name(path),
                format_size(needed)
            );
        }
    }
    match petal_interop::open(path, &options) {
        Ok(filter) => Ok(Some(filter)),
        Err(error) => Err(named(path, &error)),
    }
}

/// Refuses flags that say something of a format which no file is of. `None` is
/// petal's own.
pub(crate) fn check_flags(args: &ForeignArgs, found: &[Option<Format>]) -> Result<()> {
    let given = [
        ("--column", args.column.is_some(), Format::Parquet),
        ("--row-group", args.row_group.is_some(), Format::Parquet),
        ("--hash", args.hash.is_some(), Format::Rbloom),
        ("--program", args.program.is_some(), Format::Classic),
        ("--old-pybloom", args.old_pybloom, Format::PybloomLive),
    ];
    let wrong: Vec<_> = given
        .iter()
        .filter(|(_, given, format)| *given && !found.contains(&Some(*format)))
        .map(|(flag, _, format)| format!("{flag} is for filters of {format}"))
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let mut names: Vec<_> = found
        .iter()
        .map(|format| format.map_or("petal", Format::name))
        .collect();
    names.dedup();
    bail!(
        "{}, and none is here, only of {}: leave it out, or name the right --format",
        wrong.join("; "),
        names.join(", ")
    );
}

/// An error with the name of the file and the flag that helps.
pub(crate) fn named(path: &Path, error: &petal_interop::Error) -> anyhow::Error {
    use petal_interop::Error as Foreign;
    let name = display_name(path);
    match error {
        Foreign::Petal(Error::Io { path: Some(_), .. } | Error::NotAFile { .. }) => {
            anyhow!("{error}")
        }
        Foreign::Field { .. } | Foreign::Length { .. } => {
            anyhow!("{name}: {error} (with --format)")
        }
        Foreign::Memory { .. } => anyhow!("{name}: {error} (with --memory)"),
        Foreign::Unrecognised { .. } => {
            anyhow!("{name}: not a petal file, and {error} (with --format)")
        }
        Foreign::Parameter {
            name: parameter, ..
        } => match flag_of(parameter) {
            Some(flag) => anyhow!("{name}: {error} (with {flag})"),
            None => anyhow!("{name}: {error}"),
        },
        error => anyhow!("{name}: {error}"),
    }
}

/// The flags that say a parameter.
fn flag_of(parameter: &str) -> Option<&'static str> {
    Some(match parameter {
        "column" => "--column",
        "row group" => "--row-group",
        "hash" => "--hash",
        "program" => "--program",
        "format" => "--format",
        "n" => "-n",
        "p" => "-p",
        "n and p" => "-n and -p",
        _ => return None,
    })
}

/// Whether the file is there and does not begin as one of petal.
fn is_no_petal_file(path: &Path) -> bool {
    matches!(
        petal::inspect(path),
        Err(Error::Format(FormatError::NotPetal { .. }))
    )
}

/// The bytes of pairs of hexadecimal digits.
fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_chunks::<2>();
    let value = |digit: u8| char::from(digit).to_digit(16);
    let byte = |pair: &[u8; 2]| u8::try_from(value(pair[0])? * 16 + value(pair[1])?).ok();
    rest.is_empty().then(|| pairs.iter().map(byte).collect())?
}

/// Makes keys of lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineKeys {
    form: ForeignForm,
    /// A CR belongs to the end of a line, not to that of a NUL record.
    trims_cr: bool,
}

impl LineKeys {
    pub(crate) const fn new(form: ForeignForm, terminator: u8) -> Self {
        Self {
            form,
            trims_cr: terminator == b'\n',
        }
    }

    /// Calls with the key of a line. `None` if the line is none: no integer, or
    /// no text where text is meant.
    pub(crate) fn of<T>(
        self,
        line: &[u8],
        units: &mut Vec<u16>,
        call: impl FnOnce(ForeignKey<'_>) -> T,
    ) -> Option<T> {
        let line = match line.strip_suffix(b"\r") {
            Some(line) if self.trims_cr => line,
            _ => line,
        };
        let text = || std::str::from_utf8(line).ok();
        Some(match self.form {
            ForeignForm::Line => call(ForeignKey::of_line(line)),
            ForeignForm::Bytes => call(ForeignKey::Bytes(line)),
            ForeignForm::Utf16 => {
                units.clear();
                units.extend(text()?.encode_utf16());
                call(ForeignKey::Utf16(units))
            }
            ForeignForm::I32 => call(ForeignKey::I32(text()?.trim().parse().ok()?)),
            ForeignForm::I64 => call(ForeignKey::I64(text()?.trim().parse().ok()?)),
            ForeignForm::F32 => call(ForeignKey::F32(text()?.trim().parse().ok()?)),
            ForeignForm::F64 => call(ForeignKey::F64(text()?.trim().parse().ok()?)),
            ForeignForm::Hex => call(ForeignKey::Bytes(&unhex(line.trim_ascii())?)),
        })
    }
}

/// Writes a filter: all of it, or nothing.
pub(crate) fn save(
    filter: &dyn ForeignFilter,
    encoding: Encoding,
    path: &Path,
    overwrite: Overwrite,
) -> Result<()> {
    let failed = |error| crate::filters::named(path, error);
    let mut file = AtomicFile::create(path, overwrite).map_err(failed)?;
    let mut out = BufWriter::with_capacity(1 << 16, &mut file);
    filter
        .write_as(encoding, &mut out)
        .map_err(|error| named(path, &error))?;
    out.flush()
        .map_err(|error| anyhow!("cannot write {}: {error}", display_name(path)))?;
    drop(out);
    file.commit().map_err(failed)
}

/// What a filter is, as `petal info` shows it.
pub(crate) fn describe(path: &Path, filter: &dyn ForeignFilter, sha256: String) -> Table {
    let mut table = Table::default();
    let parameters = filter.parameters();
    let name = display_name(path);
    table.row("file", "", "", name);
    let format = filter.format().name();
    table.row("format", "format", format, format);
    let encoding = filter.encoding().to_string();
    table.row("encoding", "written as", encoding.clone(), encoding);
    table.text_row("hash", filter.format().hashing());
    let mut details = serde_json::Map::new();
    for (name, value) in parameters.details {
        table.text_row(name, value.as_str());
        details.insert(name.replace(' ', "_"), value.into());
    }
    table.row("details", "", "", details);
    let items = parameters.items;
    if let Some(items) = items {
        table.text_row("made for", format!("{} keys", format_count(items)));
    }
    table.row("items", "", "", items);
    if let Some(error) = parameters.error {
        table.text_row("at an error of", probability(error));
    }
    table.row("promised_error", "", "", parameters.error);
    let (bits, positions) = (parameters.bits, parameters.positions);
    table.row("bits", "bits (m)", format_count(bits), bits);
    table.row(
        "positions",
        "positions a key (k)",
        positions.to_string(),
        positions,
    );
    let count = filter.count();
    if let Some(count) = count {
        let of = match count.counted {
            Counted::Insertions => "insertions, repeats included",
            Counted::NewKeys => "insertions that changed a bit",
        };
        table.text_row(
            "its count",
            format!("{}, of {of}", format_count(count.keys)),
        );
    }
    table.row("count", "", "", count.map(|count| count.keys));
    let fill = filter.fill();
    table.row("fill", "fill", figure(fill), fill);
    if let Some(estimate) = filter.estimated_len() {
        table.estimate("estimated_keys", "keys, about", estimate);
    }
    let error = filter.error_now();
    table.row("error", "error now", figure(error), error);
    table.text_row("checksum", "none in this format");
    table.row("sha256", "SHA-256", sha256.clone(), sha256);
    table
}

/// Refuses `--as` where no filter is of another system.
pub(crate) fn refuse_form(form: Option<ForeignForm>) -> Result<()> {
    if form.is_some() {
        bail!("--as is for filters of other systems: how petal's own read a line is in the filter");
    }
    Ok(())
}

/// The format of a name, or `None` for petal's own.
pub(crate) fn target(name: &str) -> Result<Option<Format>> {
    if name == "petal" {
        return Ok(None);
    }
    name.parse()
        .map(Some)
        .map_err(|error| anyhow!("--to: {error}, or petal"))
}
