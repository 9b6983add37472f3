//! From lines to digests.
//!
//! Owns what the key flags mean and the counts of lines that have no key.
//! The rules themselves (field, case, URL, hex) are the library's, so that
//! every front applies the same ones.

use std::ops::AddAssign;

use anyhow::{Result, bail};
use petal::normalise::{BadKey, Field, Form, Normal, Normalisation};
use petal::{Digests, Identity, KeyHasher, Secret};
use serde::{Deserialize, Serialize};

use crate::args;
use crate::input::Batch;
use crate::secret::read_secret;

/// The identity of the keys that the flags describe.
pub(crate) fn identity(args: &args::KeyArgs, secret: Option<Secret>) -> Result<Identity> {
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
    };
    let mut normalisation = Normalisation::lines()
        .with_ignore_case(args.ignore_case)
        .with_form(form)?;
    if let (Some(number), Some(delimiter)) = (args.field, &args.delimiter) {
        let delimiter = delimiter_byte(delimiter)?;
        normalisation = normalisation.with_field(Field { number, delimiter })?;
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
fn delimiter_byte(text: &str) -> Result<u8> {
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

impl AddAssign for KeyCounts {
    fn add_assign(&mut self, more: Self) {
        self.no_field += more.no_field;
        self.not_url += more.not_url;
        self.bad += more.bad;
        self.empty += more.empty;
        self.elsewhere += more.elsewhere;
    }
}

/// The digests of a batch of lines, with a buffer that is used again.
#[derive(Debug)]
pub(crate) struct Keys {
    identity: Identity,
    skip_empty: bool,
    part: Option<Part>,
    scratch: Vec<u8>,
    digests: Digests,
    /// Lines of the batch that have no digest, in order.
    without: Vec<(usize, NoKey)>,
    counts: KeyCounts,
}

impl Keys {
    /// For lines whose keys have the given identity.
    pub(crate) fn new(identity: Identity, skip_empty: bool, part: Option<Part>) -> Self {
        Self {
            digests: Digests::new(identity.hasher.clone(), identity.key_type),
            identity,
            skip_empty,
            part,
            scratch: Vec::new(),
            without: Vec::new(),
            counts: KeyCounts::default(),
        }
    }

    /// Goes on with another normalisation of keys of the same type.
    pub(crate) fn set_normalisation(&mut self, normalisation: &Normalisation) {
        normalisation.clone_into(&mut self.identity.normalisation);
    }

    /// Forgets the counts: for another pass or batch.
    pub(crate) fn forget_counts(&mut self) {
        self.counts = KeyCounts::default();
    }

    /// Counts the first lines of a batch only, instead of all of its lines.
    pub(crate) fn recount(&mut self, batch: &Batch, lines: usize) -> Result<()> {
        self.forget_counts();
        self.digests.clear();
        for line in batch.iter().take(lines) {
            self.push(line)?;
        }
        Ok(())
    }

    /// Counts of all lines so far.
    pub(crate) const fn counts(&self) -> KeyCounts {
        self.counts
    }

    /// Digests of the lines of a batch that have one, in order.
    pub(crate) fn read(&mut self, batch: &Batch) -> Result<()> {
        self.digests.clear();
        self.without.clear();
        let normalisation = &self.identity.normalisation;
        if normalisation.is_plain() && !self.skip_empty && self.part.is_none() {
            // Every line has a key, and it is a part of the line.
            let keys = batch.iter().map(|line| normalisation.trim(line));
            return Ok(self.digests.extend_bytes(keys)?);
        }
        for (i, line) in batch.iter().enumerate() {
            if let Some(reason) = self.push(line)? {
                self.without.push((i, reason));
            }
        }
        Ok(())
    }

    fn push(&mut self, line: &[u8]) -> Result<Option<NoKey>> {
        if self.skip_empty && matches!(line, b"" | b"\r") {
            self.counts.empty += 1;
            return Ok(Some(NoKey::Empty));
        }
        match self.identity.normalisation.apply(line, &mut self.scratch) {
            Normal::Key(key) => self.digests.push_bytes(key)?,
            Normal::Int(key) => self.digests.push_int(key)?,
            Normal::NotUrl(key) => {
                self.counts.not_url += 1;
                self.digests.push_bytes(key)?;
            }
            Normal::NoField => {
                self.counts.no_field += 1;
                return Ok(Some(NoKey::NoField));
            }
            Normal::Bad(why) => {
                self.counts.bad += 1;
                return Ok(Some(NoKey::Bad(why)));
            }
        }
        if let Some(part) = self.part
            && let Some(&digest) = self.digests.bits().last()
            && !part.holds(digest)
        {
            self.digests.pop();
            self.counts.elsewhere += 1;
            return Ok(Some(NoKey::Elsewhere));
        }
        Ok(None)
    }

    /// The digests of the last batch.
    pub(crate) const fn digests(&self) -> &Digests {
        &self.digests
    }

    /// The lines of the last batch that have no digest, by their number in
    /// it, in order.
    pub(crate) fn without(&self) -> &[(usize, NoKey)] {
        &self.without
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
