//! Settings: arguments of the module and `CONFIG`, and the figures of `INFO`.
//!
//! Owns their names, bounds and defaults. The secret for keyed hashing is one of
//! them that `CONFIG` does not know: it comes from a file and stays here.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};

use petal::Secret;

use crate::numbers;

/// A setting that is a whole number.
pub(crate) struct Number {
    pub(crate) name: &'static CStr,
    pub(crate) least: i64,
    pub(crate) most: i64,
    value: AtomicI64,
}

impl Number {
    const fn new(name: &'static CStr, default: i64, least: i64, most: i64) -> Self {
        Self {
            name,
            least,
            most,
            value: AtomicI64::new(default),
        }
    }

    pub(crate) fn get(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }

    /// The value of one that is never negative.
    pub(crate) fn count(&self) -> u64 {
        u64::try_from(self.get()).unwrap_or(0)
    }

    pub(crate) fn set(&self, value: i64) {
        self.value.store(value, Ordering::Relaxed);
    }
}

/// A setting that is a share between 0 and 1.
pub(crate) struct Share {
    pub(crate) name: &'static CStr,
    bits: AtomicU64,
    /// The server's string that was given out last.
    pub(crate) text: AtomicPtr<c_void>,
}

impl Share {
    const fn new(name: &'static CStr, default: f64) -> Self {
        Self {
            name,
            bits: AtomicU64::new(default.to_bits()),
            text: AtomicPtr::new(ptr::null_mut()),
        }
    }

    pub(crate) fn get(&self) -> f64 {
        f64::from_bits(self.bits.load(Ordering::Relaxed))
    }

    pub(crate) fn set(&self, value: f64) {
        self.bits.store(value.to_bits(), Ordering::Relaxed);
    }

    /// The value that a text is, if it may be set.
    pub(crate) fn accept(&self, text: &[u8]) -> Option<f64> {
        numbers::float(text).filter(|&value| value > 0.0 && value < 1.0)
    }

    /// Why a text was not accepted.
    pub(crate) fn expected(&self) -> String {
        format!("{} must be between 0 and 1", self.name.to_string_lossy())
    }
}

/// Most keys that a filter can be reserved for.
pub(crate) const MAX_CAPACITY: i64 = 1_000_000_000_000;
/// Largest growth factor.
pub(crate) const MAX_EXPANSION: i64 = 32_768;

pub(crate) static BF_ERROR_RATE: Share = Share::new(c"bf-error-rate", 0.01);
pub(crate) static BF_INITIAL_SIZE: Number = Number::new(c"bf-initial-size", 100, 1, MAX_CAPACITY);
pub(crate) static BF_EXPANSION_FACTOR: Number =
    Number::new(c"bf-expansion-factor", 2, 0, MAX_EXPANSION);
pub(crate) static CF_ERROR_RATE: Share = Share::new(c"cf-error-rate", 0.001);
pub(crate) static CF_BUCKET_SIZE: Number = Number::new(c"cf-bucket-size", 2, 1, 255);
pub(crate) static CF_INITIAL_SIZE: Number = Number::new(c"cf-initial-size", 1024, 2, MAX_CAPACITY);
pub(crate) static CF_MAX_ITERATIONS: Number = Number::new(c"cf-max-iterations", 20, 1, 65_535);
pub(crate) static CF_EXPANSION_FACTOR: Number =
    Number::new(c"cf-expansion-factor", 1, 0, MAX_EXPANSION);
pub(crate) static CF_MAX_EXPANSIONS: Number = Number::new(c"cf-max-expansions", 32, 1, 65_536);
static MAX_BYTES: Number = Number::new(c"filter-max-bytes", 2 << 30, 4096, i64::MAX);

pub(crate) static NUMBERS: [&Number; 8] = [
    &BF_INITIAL_SIZE,
    &BF_EXPANSION_FACTOR,
    &CF_BUCKET_SIZE,
    &CF_INITIAL_SIZE,
    &CF_MAX_ITERATIONS,
    &CF_EXPANSION_FACTOR,
    &CF_MAX_EXPANSIONS,
    &MAX_BYTES,
];
pub(crate) static SHARES: [&Share; 2] = [&BF_ERROR_RATE, &CF_ERROR_RATE];

/// The names that RedisBloom's module arguments have.
const OLD_NAMES: [(&str, &str); 2] = [
    ("ERROR_RATE", "bf-error-rate"),
    ("INITIAL_SIZE", "bf-initial-size"),
];

static SECRET: OnceLock<Secret> = OnceLock::new();

/// The secret, if keys are hashed under one.
pub(crate) fn secret() -> Option<&'static Secret> {
    SECRET.get()
}

/// Bytes that the filter of a key may take.
pub(crate) fn max_bytes() -> u64 {
    MAX_BYTES.count()
}

/// Takes the arguments that the module was loaded with: pairs of name and value.
pub(crate) fn take_arguments(args: &[&[u8]]) -> Result<(), String> {
    let mut pairs = args.chunks_exact(2);
    for pair in &mut pairs {
        let name = String::from_utf8_lossy(pair[0]);
        let wanted = OLD_NAMES
            .iter()
            .find(|(old, _)| old.eq_ignore_ascii_case(&name))
            .map_or_else(
                || name.to_ascii_lowercase().replace('_', "-"),
                |(_, new)| (*new).to_owned(),
            );
        take(&wanted, pair[1])?;
    }
    match pairs.remainder() {
        [] => Ok(()),
        [name, ..] => Err(format!(
            "the argument {} has no value",
            String::from_utf8_lossy(name)
        )),
    }
}

fn take(name: &str, value: &[u8]) -> Result<(), String> {
    let is = |own: &CStr| own.to_bytes() == name.as_bytes();
    let shown = String::from_utf8_lossy(value);
    if name == "secret-file" {
        return read_secret(&shown);
    }
    if let Some(setting) = NUMBERS.iter().find(|setting| is(setting.name)) {
        let accepted =
            numbers::int(value).filter(|value| (setting.least..=setting.most).contains(value));
        let expected = || {
            format!(
                "{name} is {shown}: use {} to {}",
                setting.least, setting.most
            )
        };
        setting.set(accepted.ok_or_else(expected)?);
        return Ok(());
    }
    if let Some(setting) = SHARES.iter().find(|setting| is(setting.name)) {
        setting.set(setting.accept(value).ok_or_else(|| setting.expected())?);
        return Ok(());
    }
    Err(format!("there is no argument {name}"))
}

/// Reads a secret of 16 bytes, or of 32 hexadecimal digits, from a file.
fn read_secret(path: &str) -> Result<(), String> {
    let bytes = std::fs::read(path).map_err(|error| format!("secret-file {path}: {error}"))?;
    let secret = secret_of(&bytes).ok_or_else(|| {
        format!("secret-file {path}: expected 16 bytes, or 32 hexadecimal digits and a line end")
    })?;
    SECRET
        .set(secret)
        .map_err(|_| "secret-file is given twice".to_owned())
}

fn secret_of(bytes: &[u8]) -> Option<Secret> {
    if let Ok(bytes) = <[u8; 16]>::try_from(bytes) {
        return Some(Secret::new(bytes));
    }
    let digits = bytes.trim_ascii_end();
    let mut secret = [0; 16];
    if digits.len() != 32 {
        return None;
    }
    for (byte, pair) in secret.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16)
            .ok()
            .filter(|_| !pair.starts_with('+'))?;
    }
    Some(Secret::new(secret))
}

static FILTERS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
static BYTES: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Which figures a filter counts in.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Family {
    Bloom = 0,
    Cuckoo = 1,
}

/// A filter's part of the figures. Taken back when it is dropped.
#[derive(Debug)]
pub(crate) struct Gauge {
    family: Family,
    bytes: u64,
}

impl Gauge {
    pub(crate) fn new(family: Family) -> Self {
        FILTERS[family as usize].fetch_add(1, Ordering::Relaxed);
        Self { family, bytes: 0 }
    }

    /// Tells how many bytes the filter takes now.
    pub(crate) fn set(&mut self, bytes: u64) {
        let total = &BYTES[self.family as usize];
        total.fetch_add(bytes.wrapping_sub(self.bytes), Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.set(0);
        FILTERS[self.family as usize].fetch_sub(1, Ordering::Relaxed);
    }
}

/// The fields of the section of `INFO`.
pub(crate) fn figures() -> [(&'static CStr, u64); 6] {
    let get = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
    [
        (c"bf_keys", get(&FILTERS[0])),
        (c"bf_bytes", get(&BYTES[0])),
        (c"cf_keys", get(&FILTERS[1])),
        (c"cf_bytes", get(&BYTES[1])),
        (c"max_bytes", max_bytes()),
        (c"keyed_hashing", secret().is_some().into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_bytes_or_digits() {
        let expected = Secret::new(*b"0123456789abcdef");
        assert_eq!(secret_of(b"0123456789abcdef").unwrap(), expected);
        assert_eq!(
            secret_of(b"30313233343536373839616263646566\n").unwrap(),
            expected
        );
        for wrong in [
            &b""[..],
            b"0123",
            b"3031323334353637383961626364656",
            b"+0313233343536373839616263646566",
        ] {
            assert!(secret_of(wrong).is_none());
        }
    }

    #[test]
    fn arguments_are_checked() {
        assert!(take_arguments(&[b"cf-max-iterations", b"21"]).is_ok());
        assert_eq!(CF_MAX_ITERATIONS.get(), 21);
        assert!(take_arguments(&[b"CF_MAX_ITERATIONS", b"20"]).is_ok());
        for wrong in [
            &[&b"cf-max-iterations"[..], b"0"][..],
            &[b"cf-max-iterations", b"x"],
            &[b"cf-max-iterations"],
            &[b"bf-error-rate", b"1"],
            &[b"no-such", b"1"],
            &[b"secret-file", b"/no/such/file"],
        ] {
            assert!(take_arguments(wrong).is_err());
        }
    }
}
