//! How the keys of a new filter are hashed.
//!
//! Owns the options `SEED` and `KEYED`, and their form for replicas. Without one the
//! module's secret is used or, if it has none, a random seed.

use petal::{AnyFilter, Contains as _, KeyHasher};

use crate::config;
use crate::engine::{self, Call, Failure, Outcome};

/// How keys are to be hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hashing {
    /// Under the module's secret, or else a random seed.
    Usual,
    Seed(u64),
    /// Under the secret with this check value: what is replicated of `Usual`.
    Keyed(u64),
}

impl Hashing {
    /// Takes an option and its value. False if it is another.
    pub(crate) fn take(&mut self, call: &Call<'_>, at: usize) -> Outcome<bool> {
        let value = call.arg(at + 1);
        if call.is(at, "SEED") {
            *self = Self::Seed(seed_of(value).ok_or("ERR invalid seed")?);
        } else if call.is(at, "KEYED") {
            let text = std::str::from_utf8(value).ok();
            let check = text.and_then(|text| u64::from_str_radix(text, 16).ok());
            *self = Self::Keyed(check.ok_or("ERR invalid check value")?);
        } else {
            return Ok(false);
        }
        if at + 1 == call.len() {
            return Err(Failure::Arity);
        }
        Ok(true)
    }

    /// The hasher.
    ///
    /// # Errors
    /// If it needs another secret than the module's.
    pub(crate) fn hasher(self) -> Outcome<KeyHasher> {
        let keyed = config::secret().map(|secret| KeyHasher::Keyed {
            secret: secret.clone(),
        });
        match self {
            Self::Seed(seed) => Ok(KeyHasher::Portable { seed }),
            Self::Usual => Ok(keyed.unwrap_or_else(|| KeyHasher::Portable {
                seed: engine::random(),
            })),
            Self::Keyed(check) => config::secret()
                .filter(|secret| secret.check_value() == check)
                .and(keyed)
                .ok_or_else(|| {
                    "ERR the filter is keyed: load the module with the same secret-file".into()
                }),
        }
    }

    /// The option that makes a filter hash as this one does, and its value.
    pub(crate) fn replicated(filter: &AnyFilter) -> (&'static str, String) {
        match &filter.about().identity().hasher {
            KeyHasher::Portable { seed } => ("SEED", seed.to_string()),
            KeyHasher::Keyed { secret } => ("KEYED", format!("{:016x}", secret.check_value())),
        }
    }
}

/// A seed: a whole number, or valkey-bloom's 32 bytes.
fn seed_of(value: &[u8]) -> Option<u64> {
    if value.len() == 32 {
        let words = value.chunks_exact(8).filter_map(|word| word.first_chunk());
        return Some(words.fold(0, |seed, &word| seed ^ u64::from_le_bytes(word)));
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_numbers_or_32_bytes() {
        assert_eq!(seed_of(b"17"), Some(17));
        let mut bytes = [0; 32];
        (bytes[0], bytes[8]) = (3, 1);
        assert_eq!(seed_of(&bytes), Some(2));
        for wrong in [&b""[..], b"x", b"-1"] {
            assert_eq!(seed_of(wrong), None);
        }
    }
}
