//! From a line to the key that is asked about.
//!
//! Owns what makes two lines the same key: the field they are cut to, the
//! CR, the case, and the form (text, URL, hexadecimal digest, integer). A
//! filter's file records its [`Normalisation`], so that every front asks the
//! question the filter was built for. It does not split input into lines and
//! does not hash.
//!
//! The steps, in this order: a CR at the end is cut off; the field is taken;
//! the form is applied; the case is folded. What each does is part of the
//! file format: a change that gives any line another key needs a new
//! [`VERSION`].

mod codec;
mod hex;
#[cfg(feature = "url")]
mod url;

use std::fmt;
use std::net::Ipv4Addr;

use crate::error::{Error, Result};
use crate::hash::KeyType;

pub use hex::LEAST_HEX_DIGITS;

/// The version of the rules in this module. Files record it.
pub const VERSION: u8 = 1;

/// The most bytes an encoded normalisation takes in a file.
pub const MAX_ENCODED_BYTES: usize = 16 * 1024;

/// How lines become keys. The default leaves them as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Normalisation {
    field: Option<Field>,
    cr_trimmed: bool,
    ignore_case: bool,
    form: Form,
}

/// The field of a line that is the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Its place, counted from 1.
    pub number: u32,
    /// The byte between two fields. It is not quoted or escaped by anything.
    pub delimiter: u8,
}

/// What the text of a key is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Form {
    /// Any bytes, compared as they are.
    #[default]
    Line,
    /// A URL, compared in a canonical form:
    ///
    /// * parsed as the URL Standard says (the `url` crate), which sets scheme
    ///   and host in lower case, internationalised hosts in Punycode, drops
    ///   the default port, resolves dot segments, and percent-encodes what
    ///   must be;
    /// * the fragment is dropped;
    /// * percent-encodings of letters, digits and `-._~` are decoded, all others
    ///   kept, with upper-case digits. Nothing is decoded before parsing;
    /// * query parameters whose name is listed are dropped, the others keep
    ///   their order; an empty query that was there from the start stays.
    ///
    /// Bytes that are not UTF-8 count as percent-encoded. Text with control
    /// bytes, and what is not an absolute URL with a host, is not a URL;
    /// neither are `file:` URLs.
    #[cfg(feature = "url")]
    Url {
        /// Names of query parameters to drop, in the spelling of a canonical
        /// URL; a `*` at the end of a name stands for any rest. Sorted,
        /// each once.
        strip_params: Vec<String>,
    },
    /// A hexadecimal digest: the key is its text in lower case. It is found
    /// in `HASH`, `HASH:count`, quoted and comma-separated values, the output
    /// of `sha1sum` (also with the `\` before escaped names), of
    /// `sha1sum --tag` and `openssl dgst` (`SHA1 (file) = HASH`), and after
    /// `0x`.
    ///
    /// It is the first run of eight or more hex digits between separators
    /// (blanks, `:;,|=*()"'` and the ends of the line); in the form with `=` the
    /// run at the end. So neither a part of a word nor of a UUID, a path or
    /// a host name is one.
    Hex {
        /// The number of digits a key must have, or `None` for any from
        /// [`LEAST_HEX_DIGITS`].
        digits: Option<u32>,
    },
    /// A decimal integer of 64 bits with an optional sign; blanks around it
    /// are ignored. Its key is the number, so `7`, `+7` and `007` are one.
    Int,
    /// An IPv4 address in dotted decimal; blanks around it are ignored, and
    /// leading zeros, which some read as octal, are refused. Its key is the
    /// address as a number, `1.2.3.4` is 16909060.
    Ipv4,
}

/// A key, or what is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normal<'a> {
    /// The key, for filters of byte keys.
    Key(&'a [u8]),
    /// The key, for filters of integers.
    Int(i64),
    /// The line has fewer fields: there is nothing to ask about.
    NoField,
    /// Not a URL, though [`Form::Url`] is asked for. The bytes, as they are
    /// but for a folded case, are a key all the same. No URL has the same key.
    NotUrl(&'a [u8]),
    /// Not a key of the form that is asked for.
    Bad(BadKey),
}

/// Why a line is not a key of its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadKey {
    /// There is no run of hex digits.
    NotHex,
    /// The run of hex digits has another length.
    HexDigits {
        /// Digits that each key must have.
        expected: u32,
        /// Digits that came.
        got: u32,
    },
    /// Not a decimal integer.
    NotInt,
    /// An integer that does not fit 64 bits.
    IntRange,
    /// Not an IPv4 address.
    NotIpv4,
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHex => write!(f, "no run of {LEAST_HEX_DIGITS} or more hex digits"),
            Self::HexDigits { expected, got } => {
                write!(f, "{got} hex digits, expected {expected}")
            }
            Self::NotInt => write!(f, "not a decimal integer"),
            Self::NotIpv4 => write!(f, "not an IPv4 address in dotted decimal"),
            Self::IntRange => write!(f, "an integer outside of {} to {}", i64::MIN, i64::MAX),
        }
    }
}

impl Normalisation {
    /// What the command starts from: lines without the CR at their end.
    #[must_use]
    pub fn lines() -> Self {
        Self {
            cr_trimmed: true,
            ..Self::default()
        }
    }

    /// The same, with or without a CR at the end of the line cut off.
    #[must_use]
    pub fn with_cr_trimmed(self, cr_trimmed: bool) -> Self {
        Self { cr_trimmed, ..self }
    }

    /// The same, with or without a difference between upper and lower case
    /// of the ASCII letters.
    #[must_use]
    pub fn with_ignore_case(self, ignore_case: bool) -> Self {
        Self {
            ignore_case,
            ..self
        }
    }

    /// The same, for one field of the line.
    ///
    /// # Errors
    /// If the field's number is 0.
    pub fn with_field(self, field: Field) -> Result<Self> {
        if field.number == 0 {
            return Err(Error::parameter("field", 0, "fields are counted from 1"));
        }
        Ok(Self {
            field: Some(field),
            ..self
        })
    }

    /// The same, in another form. Names of parameters are sorted, and
    /// duplicates among them dropped.
    ///
    /// # Errors
    /// If the digits of a hex key are fewer than [`LEAST_HEX_DIGITS`], a
    /// parameter's name cannot occur in a canonical URL or has a `*` elsewhere
    /// than at its end, or there are more than a file can record.
    pub fn with_form(mut self, mut form: Form) -> Result<Self> {
        match &mut form {
            Form::Line | Form::Int | Form::Ipv4 | Form::Hex { digits: None } => {}
            Form::Hex {
                digits: Some(digits),
            } => {
                if *digits < LEAST_HEX_DIGITS {
                    return Err(Error::parameter(
                        "hex digits",
                        digits,
                        format!("use {LEAST_HEX_DIGITS} or more"),
                    ));
                }
            }
            #[cfg(feature = "url")]
            Form::Url { strip_params } => {
                for name in &*strip_params {
                    url::check_param(name)?;
                }
                strip_params.sort_unstable();
                strip_params.dedup();
                codec::check_params(strip_params)?;
            }
        }
        self.form = form;
        Ok(self)
    }

    /// The field that is the key, or `None` for the whole line.
    #[must_use]
    pub const fn field(&self) -> Option<Field> {
        self.field
    }

    /// Whether a CR at the end of the line is cut off.
    #[must_use]
    pub const fn cr_trimmed(&self) -> bool {
        self.cr_trimmed
    }

    /// Whether upper and lower case of the ASCII letters are the same.
    #[must_use]
    pub const fn ignore_case(&self) -> bool {
        self.ignore_case
    }

    /// What the text of a key is.
    #[must_use]
    pub const fn form(&self) -> &Form {
        &self.form
    }

    /// The type of the keys that [`Self::apply`] gives.
    #[must_use]
    pub const fn key_type(&self) -> KeyType {
        match self.form {
            Form::Int | Form::Ipv4 => KeyType::Int,
            _ => KeyType::Bytes,
        }
    }

    /// Whether the key of every line is [`Self::trim`] of it: no field, form or
    /// case has to be looked at.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.field.is_none() && !self.ignore_case && matches!(self.form, Form::Line)
    }

    /// The first step: the line without a CR at its end, if that is cut off.
    #[inline]
    #[must_use]
    pub fn trim<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        match line {
            [before @ .., b'\r'] if self.cr_trimmed => before,
            _ => line,
        }
    }

    /// The key of a line (without its line end). `scratch` holds the key where
    /// it is not a part of the line; what it held before is lost. Only URLs
    /// allocate, once `scratch` is as large as the longest line.
    #[must_use]
    pub fn apply<'a>(&self, line: &'a [u8], scratch: &'a mut Vec<u8>) -> Normal<'a> {
        let line = self.trim(line);
        let text = match self.field {
            None => line,
            Some(field) => match field.of(line) {
                Some(text) => text,
                None => return Normal::NoField,
            },
        };
        match &self.form {
            Form::Line => Normal::Key(self.fold(text, scratch)),
            #[cfg(feature = "url")]
            Form::Url { strip_params } => {
                if url::canonical(text, strip_params, self.ignore_case, scratch) {
                    Normal::Key(scratch)
                } else {
                    Normal::NotUrl(self.fold(text, scratch))
                }
            }
            Form::Hex { digits } => match hex::find(text) {
                None => Normal::Bad(BadKey::NotHex),
                Some(run) => {
                    let got = u32::try_from(run.len()).unwrap_or(u32::MAX);
                    match *digits {
                        Some(expected) if expected != got => {
                            Normal::Bad(BadKey::HexDigits { expected, got })
                        }
                        _ => Normal::Key(lower_case(run, scratch)),
                    }
                }
            },
            Form::Int => match parse_int(text) {
                Ok(value) => Normal::Int(value),
                Err(bad) => Normal::Bad(bad),
            },
            Form::Ipv4 => match parse_ipv4(text) {
                Some(address) => Normal::Int(address.into()),
                None => Normal::Bad(BadKey::NotIpv4),
            },
        }
    }

    fn fold<'a>(&self, text: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
        if self.ignore_case {
            lower_case(text, scratch)
        } else {
            text
        }
    }
}

impl Field {
    fn of(self, line: &[u8]) -> Option<&[u8]> {
        let before = usize::try_from(self.number).ok()?.checked_sub(1)?;
        line.split(|&byte| byte == self.delimiter).nth(before)
    }
}

/// The text with its ASCII letters in lower case, in `scratch`.
fn lower_case<'a>(text: &[u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
    scratch.clear();
    scratch.extend_from_slice(text);
    scratch.make_ascii_lowercase();
    scratch
}

const fn is_blank(byte: &u8) -> bool {
    matches!(*byte, b' ' | b'\t')
}

/// The text without blanks at its ends.
fn trim_blanks(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

fn parse_ipv4(text: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(trim_blanks(text)).ok()?;
    text.parse::<Ipv4Addr>().ok().map(u32::from)
}

fn parse_int(text: &[u8]) -> Result<i64, BadKey> {
    let text = trim_blanks(text);
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(BadKey::NotInt);
    }
    // Downwards, as the least number has no positive counterpart.
    let mut value = 0i64;
    for digit in digits {
        value = value
            .checked_mul(10)
            .and_then(|value| value.checked_sub(i64::from(digit - b'0')))
            .ok_or(BadKey::IntRange)?;
    }
    if negative {
        Ok(value)
    } else {
        value.checked_neg().ok_or(BadKey::IntRange)
    }
}

/// The flags of the command that give this normalisation.
impl fmt::Display for Normalisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.form {
            Form::Line if *self == Self::default() => return f.write_str("keys as they are"),
            Form::Line => f.write_str("--as line")?,
            #[cfg(feature = "url")]
            Form::Url { strip_params } => {
                f.write_str("--as url")?;
                for name in strip_params {
                    write!(f, " --strip-param '{name}'")?;
                }
            }
            Form::Hex { digits } => {
                f.write_str("--as hex")?;
                if let Some(digits) = digits {
                    write!(f, " ({digits} digits)")?;
                }
            }
            Form::Int => f.write_str("--as int")?,
            Form::Ipv4 => f.write_str("--as ipv4")?,
        }
        if self.ignore_case {
            f.write_str(" --ignore-case")?;
        }
        if let Some(field) = self.field {
            write!(
                f,
                " --field {} --delimiter '{}'",
                field.number,
                field.delimiter.escape_ascii()
            )?;
        }
        if !self.cr_trimmed {
            f.write_str(" (with the CR of CRLF)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
