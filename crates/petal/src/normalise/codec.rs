//! A [`Normalisation`] in a file.
//!
//! ```text
//! u8   version of the rules
//! u8   flags: 1 CR trimmed, 2 case ignored, 4 a field
//! u32, u8   the field's number and delimiter, if there is one
//! u8   form: 0 line, 1 URL, 2 hex, 3 integer, 4 IPv4
//!      URL:  u16 number of parameters to drop, each a u8 length and its bytes,
//!            in ascending order
//!      hex:  u32 number of digits, 0 for any
//! ```
//!
//! Numbers are little-endian. Each normalisation has one encoding; all other
//! bytes are refused.

use super::{Field, Form, MAX_ENCODED_BYTES, Normalisation, VERSION};
use crate::error::{Error, FormatError, Result};

const CR_TRIMMED: u8 = 1;
const IGNORE_CASE: u8 = 2;
const HAS_FIELD: u8 = 4;

const LINE: u8 = 0;
#[cfg(feature = "url")]
const URL: u8 = 1;
const HEX: u8 = 2;
const INT: u8 = 3;
const IPV4: u8 = 4;

/// The most bytes of parameters: what [`MAX_ENCODED_BYTES`] leaves beside all
/// else, rounded down.
#[cfg(feature = "url")]
const MAX_PARAM_BYTES: usize = MAX_ENCODED_BYTES - 64;

/// Refuses more parameters than a file can record.
#[cfg(feature = "url")]
pub(super) fn check_params(names: &[String]) -> Result<()> {
    let bytes: usize = names.iter().map(|name| name.len() + 1).sum();
    if bytes > MAX_PARAM_BYTES {
        return Err(Error::parameter(
            "strip-param",
            format!("{} names of {bytes} bytes", names.len()),
            format!("a file records up to {MAX_PARAM_BYTES} bytes of them: use fewer"),
        ));
    }
    Ok(())
}

impl Normalisation {
    /// The bytes by which a file records it: at most
    /// [`MAX_ENCODED_BYTES`].
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = flag(self.cr_trimmed, CR_TRIMMED)
            | flag(self.ignore_case, IGNORE_CASE)
            | flag(self.field.is_some(), HAS_FIELD);
        let mut out = vec![VERSION, flags];
        if let Some(field) = self.field {
            out.extend(field.number.to_le_bytes());
            out.push(field.delimiter);
        }
        match &self.form {
            Form::Line => out.push(LINE),
            #[cfg(feature = "url")]
            Form::Url { strip_params } => {
                out.push(URL);
                // The constructors refuse what these lengths cannot hold.
                let count = u16::try_from(strip_params.len()).unwrap_or(u16::MAX);
                out.extend(count.to_le_bytes());
                for name in strip_params {
                    out.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
                    out.extend(name.bytes());
                }
            }
            Form::Hex { digits } => {
                out.push(HEX);
                out.extend(digits.unwrap_or(0).to_le_bytes());
            }
            Form::Int => out.push(INT),
            Form::Ipv4 => out.push(IPV4),
        }
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// [`Error::Format`] if the bytes are of another version, or have an
    /// unknown flag or form ([`FormatError::Unknown`]), or are not what
    /// `encode` writes ([`FormatError::Field`]). A form that this library was
    /// built without is unknown.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        if bytes.len() > MAX_ENCODED_BYTES {
            return Err(malformed(
                format!("{} bytes long", bytes.len()),
                format!("at most {MAX_ENCODED_BYTES}"),
            ));
        }
        let mut reader = Reader { rest: bytes };
        let version = reader.u8()?;
        if version != VERSION {
            return Err(unknown("normalisation version", version));
        }
        let flags = reader.u8()?;
        let beyond = flags & !(CR_TRIMMED | IGNORE_CASE | HAS_FIELD);
        if beyond != 0 {
            return Err(unknown("normalisation flag", beyond));
        }
        let mut normalisation = Self::default()
            .with_cr_trimmed(flags & CR_TRIMMED != 0)
            .with_ignore_case(flags & IGNORE_CASE != 0);
        if flags & HAS_FIELD != 0 {
            let field = Field {
                number: reader.u32()?,
                delimiter: reader.u8()?,
            };
            normalisation = normalisation.with_field(field).map_err(refused)?;
        }
        let form = match reader.u8()? {
            LINE => Form::Line,
            #[cfg(feature = "url")]
            URL => Form::Url {
                strip_params: reader.strip_params()?,
            },
            HEX => match reader.u32()? {
                0 => Form::Hex { digits: None },
                digits => Form::Hex {
                    digits: Some(digits),
                },
            },
            INT => Form::Int,
            IPV4 => Form::Ipv4,
            form => return Err(unknown("normalisation form", form)),
        };
        normalisation = normalisation.with_form(form).map_err(refused)?;
        if !reader.rest.is_empty() {
            return Err(malformed(
                format!("{} bytes longer", reader.rest.len()),
                "nothing after the form".to_owned(),
            ));
        }
        Ok(normalisation)
    }
}

fn unknown(what: &'static str, got: u8) -> Error {
    let got = u64::from(got);
    FormatError::Unknown { what, got }.into()
}

fn malformed(got: String, expected: String) -> Error {
    FormatError::Field {
        name: "normalisation",
        got,
        expected,
    }
    .into()
}

/// A parameter that the constructors refuse, as what it is here: a bad file.
fn refused(error: Error) -> Error {
    match error {
        Error::Parameter {
            name,
            got,
            expected,
        } => FormatError::Field {
            name,
            got,
            expected,
        }
        .into(),
        other => other,
    }
}

/// The bytes not yet read.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            return Err(malformed(
                "cut short".to_owned(),
                format!("{len} more bytes, not {}", self.rest.len()),
            ));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    #[cfg(feature = "url")]
    fn strip_params(&mut self) -> Result<Vec<String>> {
        let count = self.array().map(u16::from_le_bytes)?;
        let mut names: Vec<String> = Vec::new();
        for _ in 0..count {
            let len = usize::from(self.u8()?);
            let name = self.take(len)?;
            let name = String::from_utf8(name.to_vec()).map_err(|_| {
                malformed(
                    format!("the parameter {}", name.escape_ascii()),
                    "ASCII".to_owned(),
                )
            })?;
            if names.last().is_some_and(|last| *last >= name) {
                return Err(malformed(
                    format!("the parameter {} after a later one", name.escape_default()),
                    "ascending order".to_owned(),
                ));
            }
            names.push(name);
        }
        Ok(names)
    }
}
