//! From lines to digests.
//!
//! Owns what the key flags mean and the counts of lines that have no key.
//! The rules themselves (field, case, URL, hex) are the library's, so that
//! every front applies the same ones.

use std::ops::AddAssign;
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::{Result, bail};
use petal::normalise::{BadKey, Field, Form, Normal, Normalisation};
use petal::{Digests, Identity, KeyHasher, Secret};
use serde::{Deserialize, Serialize};

use crate::args;
use crate::input::Batch;
use crate::mask;
use crate::secret::read_secret;
use crate::walk::Prepare;

/// The identity of the keys that the flags describe.
pub(crate) fn identity(
    args: &args::KeyArgs,
    records: &args::RecordArgs,
    secret: Option<Secret>,
) -> Result<Identity> {
    if !args.strip_param.is_empty() && args.form != args::Form::Url {
        bail!("--strip-param belongs to URLs: add `--as url`");
    }
    let form = match args.form {
        args::Form::Line => Form::Line,
        args::Form::Url => Form::Url {
            strip_params: args.strip_param.clone(),
        },
        args::Form::Hex => Form::Hex { digits: None },
        args::Form::Int => Form::Int,
        args::Form::Ipv4 => Form::Ipv4,
    };
    let mut normalisation = Normalisation::lines()
        // A CR belongs to the end of a line, not to that of a NUL record.
        .with_cr_trimmed(!records.null)
        .with_ignore_case(args.ignore_case)
        .with_form(form)?;
    if let (Some(number), Some(delimiter)) = (args.field, &args.delimiter) {
        let delimiter = delimiter_byte(delimiter)?;
        normalisation = normalisation.with_field(Field { number, delimiter })?;
    } else if args.delimiter.is_some() {
        bail!("--delimiter says where fields end: add --field, or leave it out");
    }
    let hasher = secret.map_or_else(KeyHasher::default, |secret| KeyHasher::Keyed { secret });
    Ok(Identity::new(normalisation.key_type())
        .with_hasher(hasher)
        .with_normalisation(normalisation))
}

/// The secret of `--secret-file`, if one is given; a warning about the file
/// goes to stderr.
pub(crate) fn secret(args: &args::SecretArgs) -> Result<Option<Secret>> {
    let Some(path) = &args.secret_file else {
        return Ok(None);
    };
    let (secret, warning) = read_secret(path)?;
    if let Some(warning) = warning {
        crate::report::warn(&warning);
    }
    Ok(Some(secret))
}

/// One byte: a single-byte character, or `\t`.
pub(crate) fn delimiter_byte(text: &str) -> Result<u8> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        b"\\t" => Ok(b'\t'),
        _ => bail!(
            "--delimiter {text:?} is not one byte: use a single character such as `,`, or `\\t`"
        ),
    }
}

/// The byte that ends a record.
pub(crate) const fn terminator(args: &args::RecordArgs) -> u8 {
    if args.null { 0 } else { b'\n' }
}

/// What became of a line that has no digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoKey {
    /// It lacks the field.
    NoField,
    /// It is not what `--as` asks for.
    Bad(BadKey),
    /// It is empty and `--skip-empty` is given: it is left out.
    Empty,
    /// It belongs to another part of `--part`: it is left out.
    Elsewhere,
}

/// Which lines a run handles: those whose digest falls into one of `of`
/// equal parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// From 0.
    index: u64,
    of: u64,
}

impl Part {
    /// Reads `I/N`, I from 1.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let parts = text
            .split_once('/')
            .and_then(|(i, n)| Some((i.parse::<u64>().ok()?, n.parse::<u64>().ok()?)));
        match parts {
            Some((i, n)) if 1 <= i && i <= n && n <= 1_000_000 => Ok(Self {
                index: i - 1,
                of: n,
            }),
            _ => bail!(
                "--part {text} is not possible: expected I/N, with I from 1 to N, such as 2/8"
            ),
        }
    }

    /// Number of parts.
    pub(crate) const fn of(self) -> u64 {
        self.of
    }

    /// Remixed, so that the digests of one part still fill a table evenly.
    fn holds(self, digest: u64) -> bool {
        let mixed = petal::mix_int(digest.cast_signed(), 0x7061_7274);
        (u128::from(mixed) * u128::from(self.of)) >> 64 == u128::from(self.index)
    }
}

/// Counts of lines by what their key was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyCounts {
    /// Lines that lack the field.
    pub(crate) no_field: u64,
    /// Lines compared as they are, though URLs were asked for.
    pub(crate) not_url: u64,
    /// Lines that are no hex digest or integer, though that was asked for.
    pub(crate) bad: u64,
    /// Empty lines left out.
    pub(crate) empty: u64,
    /// Lines of other parts.
    pub(crate) elsewhere: u64,
}

impl KeyCounts {
    /// Of no lines.
    const NONE: Self = Self {
        no_field: 0,
        not_url: 0,
        bad: 0,
        empty: 0,
        elsewhere: 0,
    };
}

impl AddAssign for KeyCounts {
    fn add_assign(&mut self, more: Self) {
        self.no_field += more.no_field;
        self.not_url += more.not_url;
        self.bad += more.bad;
        self.empty += more.empty;
        self.elsewhere += more.elsewhere;
    }
}

/// How lines become digests: the same for every batch, so that several
/// threads can do it.
#[derive(Debug)]
pub(crate) struct Keys {
    identity: Identity,
    skip_empty: bool,
    part: Option<Part>,
    /// Whether the number of hex digits, where it is open, is that of the
    /// first key.
    settles: bool,
    settled: OnceLock<Normalisation>,
    /// Where keys of long lines are made, one at a time: as large as the
    /// longest. A buffer for each batch would be so many times that.
    for_long: Mutex<Vec<u8>>,
}

/// Keys of longer lines are made in one buffer for all batches.
const LONG_LINE: usize = 16 << 10;

/// The digests of a batch of lines: a buffer that is used again.
#[derive(Debug)]
pub(crate) struct KeyedLines {
    scratch: Vec<u8>,
    digests: Digests,
    /// Lines of the batch that have no digest, in order.
    without: Vec<(usize, NoKey)>,
    counts: KeyCounts,
}

impl Keys {
    /// For lines whose keys have the given identity.
    pub(crate) const fn new(identity: Identity, skip_empty: bool, part: Option<Part>) -> Self {
        Self {
            identity,
            skip_empty,
            part,
            settles: false,
            settled: OnceLock::new(),
            for_long: Mutex::new(Vec::new()),
        }
    }

    /// For lines of which the first key decides how many hex digits all of
    /// them have, where the identity does not say.
    pub(crate) fn settling(identity: Identity, skip_empty: bool) -> Self {
        let settles = matches!(identity.normalisation.form(), Form::Hex { digits: None });
        Self {
            settles,
            ..Self::new(identity, skip_empty, None)
        }
    }

    /// The normalisation as far as it is known.
    pub(crate) fn normalisation(&self) -> &Normalisation {
        self.settled.get().unwrap_or(&self.identity.normalisation)
    }

    /// Looks for a first key that decides. Batches must come in order.
    fn settle(&self, batch: &Batch) -> Result<()> {
        if !self.settles || self.settled.get().is_some() {
            return Ok(());
        }
        let normalisation = &self.identity.normalisation;
        let mut scratch = Vec::new();
        let digits = batch
            .iter()
            .find_map(|line| match normalisation.apply(line, &mut scratch) {
                Normal::Key(key) => u32::try_from(key.len()).ok(),
                _ => None,
            });
        if digits.is_some() {
            let settled = normalisation.clone().with_form(Form::Hex { digits })?;
            self.settled.get_or_init(|| settled);
        }
        Ok(())
    }

    /// A buffer for batches.
    pub(crate) fn buffer(&self) -> KeyedLines {
        KeyedLines {
            scratch: Vec::new(),
            digests: Digests::new(self.identity.hasher.clone(), self.identity.key_type),
            without: Vec::new(),
            counts: KeyCounts::NONE,
        }
    }

    /// Digests of the lines of a batch that have one, in order.
    pub(crate) fn read(&self, batch: &Batch, into: &mut KeyedLines) -> Result<()> {
        self.read_first(batch, batch.len(), into)
    }

    /// The same for the first lines of a batch only.
    pub(crate) fn read_first(
        &self,
        batch: &Batch,
        lines: usize,
        into: &mut KeyedLines,
    ) -> Result<()> {
        into.digests.clear();
        into.without.clear();
        into.counts = KeyCounts::NONE;
        let normalisation = self.normalisation();
        let lines = batch.iter().take(lines);
        if normalisation.is_plain() && !self.skip_empty && self.part.is_none() {
            // Every line has a key, and it is a part of the line.
            let keys = lines.map(|line| normalisation.trim(line));
            return Ok(into.digests.extend_bytes(keys)?);
        }
        for (i, line) in lines.enumerate() {
            if let Some(reason) = self.push(normalisation, line, into)? {
                into.without.push((i, reason));
            }
        }
        Ok(())
    }

    fn push(
        &self,
        normalisation: &Normalisation,
        line: &[u8],
        into: &mut KeyedLines,
    ) -> Result<Option<NoKey>> {
        let KeyedLines {
            scratch,
            digests,
            counts,
            ..
        } = into;
        if self.skip_empty && matches!(line, b"" | b"\r") {
            counts.empty += 1;
            return Ok(Some(NoKey::Empty));
        }
        let mut for_long;
        let scratch = if line.len() > LONG_LINE {
            for_long = self.for_long.lock().unwrap_or_else(PoisonError::into_inner);
            &mut *for_long
        } else {
            scratch
        };
        match normalisation.apply(line, scratch) {
            Normal::Key(key) => digests.push_bytes(key)?,
            Normal::Int(key) => digests.push_int(key)?,
            Normal::NotUrl(key) => {
                counts.not_url += 1;
                digests.push_bytes(key)?;
            }
            Normal::NoField => {
                counts.no_field += 1;
                return Ok(Some(NoKey::NoField));
            }
            Normal::Bad(why) => {
                counts.bad += 1;
                return Ok(Some(NoKey::Bad(why)));
            }
        }
        if let Some(part) = self.part
            && let Some(&digest) = digests.bits().last()
            && !part.holds(digest)
        {
            digests.pop();
            counts.elsewhere += 1;
            return Ok(Some(NoKey::Elsewhere));
        }
        Ok(None)
    }
}

impl Prepare for Keys {
    type Ready = KeyedLines;

    fn buffer(&self) -> KeyedLines {
        self.buffer()
    }

    fn look(&self, batch: &Batch) -> Result<()> {
        self.settle(batch)
    }

    fn prepare(&self, batch: &Batch, ready: &mut KeyedLines) -> Result<()> {
        self.read(batch, ready)
    }
}

impl KeyedLines {
    /// The digests of the batch.
    pub(crate) const fn digests(&self) -> &Digests {
        &self.digests
    }

    /// The lines of the batch that have no digest, by their number in it, in
    /// order.
    pub(crate) fn without(&self) -> &[(usize, NoKey)] {
        &self.without
    }

    /// Counts of the lines of the batch.
    pub(crate) const fn counts(&self) -> KeyCounts {
        self.counts
    }

    /// The line of digest `i`; the number of lines, if there are no more
    /// digests.
    pub(crate) fn line_of(&self, i: usize) -> usize {
        let mut line = i;
        for &(without, _) in &self.without {
            if without > line {
                break;
            }
            line += 1;
        }
        line
    }

    /// The lines of all digests, in order.
    pub(crate) fn lines(&self) -> impl Iterator<Item = usize> {
        let mut without = self.without.iter().map(|&(line, _)| line).peekable();
        (0..)
            .filter(move |line| without.next_if_eq(line).is_none())
            .take(self.digests.len())
    }

    /// From a mask over the digests to one over the first `lines` lines;
    /// lines without a digest are 0.
    pub(crate) fn by_line(&self, mask: &[u64], lines: usize, into: &mut Vec<u64>) {
        mask::clear(into, lines);
        let ends = self.without.iter().map(|&(line, _)| line);
        let ends = ends.take_while(|&line| line < lines);
        let (mut line, mut digest) = (0, 0);
        for end in ends.chain([lines]) {
            mask::copy(into, line, mask, digest, end - line);
            digest += end - line;
            line = end + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_every_digest_once() {
        let parts: Vec<Part> = (1..=7)
            .map(|i| Part::parse(&format!("{i}/7")).unwrap())
            .collect();
        for key in 0..10_000 {
            let digest = petal::mix_int(key, 3);
            assert_eq!(parts.iter().filter(|part| part.holds(digest)).count(), 1);
        }
        for bad in ["", "0/3", "4/3", "1", "a/b", "1/0", "-1/3", "1/1000001"] {
            assert!(Part::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn delimiters_are_one_byte() {
        assert_eq!(delimiter_byte(",").unwrap(), b',');
        assert_eq!(delimiter_byte("\\t").unwrap(), b'\t');
        assert_eq!(delimiter_byte("\t").unwrap(), b'\t');
        for bad in ["", "::", "é"] {
            assert!(delimiter_byte(bad).is_err(), "{bad}");
        }
    }
}
