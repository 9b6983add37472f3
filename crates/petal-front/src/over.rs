//! What of a key is in the filter: the key, its row, or both.

use std::fmt;

/// What the filter is over. A key may be a row and a column with a delimiter between them, such
/// as `row/column`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Over {
    /// Whole keys: for [`crate::Front::get`].
    #[default]
    Keys,
    /// Rows: a key up to and with its first delimiter, or all of it if it has none. Smallest, for
    /// [`crate::Front::row`]; `get` of an absent column in a row that is there asks the store.
    Rows {
        /// The byte that ends a row.
        delimiter: u8,
    },
    /// Rows and whole keys: both calls are spared. The filter counts both.
    RowsAndKeys {
        /// The byte that ends a row.
        delimiter: u8,
    },
}

/// Bytes of [`Over::encode`].
pub(crate) const CODE_BYTES: usize = 2;

impl Over {
    /// What of a key goes into the filter.
    pub(crate) fn entries(self, key: &[u8]) -> impl Iterator<Item = &[u8]> {
        let (row, whole) = match self {
            Self::Keys => (None, Some(key)),
            Self::Rows { delimiter } => (Some(row_of(key, delimiter)), None),
            Self::RowsAndKeys { delimiter } => (Some(row_of(key, delimiter)), Some(key)),
        };
        // A key without a column is its own row.
        let whole = whole.filter(|&whole| row != Some(whole));
        row.into_iter().chain(whole)
    }

    /// What tells that a key may be there.
    #[inline]
    pub(crate) fn entry(self, key: &[u8]) -> &[u8] {
        match self {
            Self::Keys | Self::RowsAndKeys { .. } => key,
            Self::Rows { delimiter } => row_of(key, delimiter),
        }
    }

    /// How the keys of a row begin; `None` if the filter is not over rows.
    pub(crate) fn prefix(self, row: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Keys => None,
            Self::Rows { delimiter } | Self::RowsAndKeys { delimiter } => {
                let mut prefix = Vec::with_capacity(row.len() + 1);
                prefix.extend_from_slice(row);
                prefix.push(delimiter);
                Some(prefix)
            }
        }
    }

    /// For the filter's file.
    pub(crate) const fn encode(self) -> [u8; CODE_BYTES] {
        match self {
            Self::Keys => [0, 0],
            Self::Rows { delimiter } => [1, delimiter],
            Self::RowsAndKeys { delimiter } => [2, delimiter],
        }
    }
}

/// A key up to and with its first delimiter, or all of it.
fn row_of(key: &[u8], delimiter: u8) -> &[u8] {
    let end = key.iter().position(|&byte| byte == delimiter);
    end.map_or(key, |end| &key[..=end])
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keys => f.write_str("keys"),
            Self::Rows { delimiter } => write!(f, "rows up to {}", delimiter.escape_ascii()),
            Self::RowsAndKeys { delimiter } => {
                write!(f, "keys and rows up to {}", delimiter.escape_ascii())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(over: Over, key: &str) -> Vec<&str> {
        over.entries(key.as_bytes())
            .map(|entry| std::str::from_utf8(entry).unwrap())
            .collect()
    }

    #[test]
    fn a_key_gives_its_row_and_itself() {
        let delimiter = b'/';
        assert_eq!(entries(Over::Keys, "a/b/c"), ["a/b/c"]);
        assert_eq!(entries(Over::Rows { delimiter }, "a/b/c"), ["a/"]);
        assert_eq!(entries(Over::Rows { delimiter }, "abc"), ["abc"]);
        let both = Over::RowsAndKeys { delimiter };
        assert_eq!(entries(both, "a/b/c"), ["a/", "a/b/c"]);
        assert_eq!(entries(both, "abc"), ["abc"]);
        assert_eq!(entries(both, "a/"), ["a/"]);
        assert_eq!(entries(both, ""), [""]);
    }

    #[test]
    fn what_is_asked_about_a_key_is_among_its_entries() {
        let delimiter = b'/';
        for over in [
            Over::Keys,
            Over::Rows { delimiter },
            Over::RowsAndKeys { delimiter },
        ] {
            for key in ["a/b", "a", "", "/", "//", "a/"] {
                let key = key.as_bytes();
                assert!(
                    over.entries(key).any(|entry| entry == over.entry(key)),
                    "{over} {key:?}"
                );
                if let Some(row) = key.strip_suffix(b"/b") {
                    let prefix = over.prefix(row);
                    assert!(prefix.is_none_or(|row| over.entries(key).any(|entry| entry == row)));
                }
            }
        }
    }
}
