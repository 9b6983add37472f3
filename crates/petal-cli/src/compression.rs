//! The compressed formats the command reads and writes: their names, the bytes
//! they start with and the file endings that stand for them.
//!
//! Decoding lives in `input`, encoding in `output`.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

/// A compressed format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
    /// The .xz file format, version 1.2.
    Xz,
}

/// What the first bytes of some data say about its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sniff {
    /// It starts as this format does.
    Is(Compression),
    /// All there is so far is the beginning of this format's mark.
    MayBe(Compression),
    /// No format known here.
    Plain,
}

/// The marks of the formats. A zstd frame has two kinds of them, see [`Compression::sniff`].
const MARKS: [(Compression, &[u8]); 3] = [
    (Compression::Gzip, &[0x1f, 0x8b]),
    (Compression::Zstd, &[0x28, 0xb5, 0x2f, 0xfd]),
    (Compression::Xz, &[0xfd, b'7', b'z', b'X', b'Z', 0]),
];

/// The last three bytes of the mark of a skippable zstd frame; the first is 0x50 to 0x5f.
const SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];

impl Compression {
    /// Bytes that always suffice for [`Compression::sniff`] to decide.
    pub(crate) const LONGEST_MARK: usize = 6;

    /// Tells the format from the first bytes of the data.
    pub(crate) fn sniff(head: &[u8]) -> Sniff {
        for (format, mark) in MARKS {
            if head.starts_with(mark) {
                return Sniff::Is(format);
            }
            if !head.is_empty() && mark.starts_with(head) {
                return Sniff::MayBe(format);
            }
        }
        if let Some((0x50..=0x5f, rest)) = head.split_first() {
            if rest.starts_with(&SKIPPABLE) {
                return Sniff::Is(Self::Zstd);
            }
            if SKIPPABLE.starts_with(rest) {
                return Sniff::MayBe(Self::Zstd);
            }
        }
        Sniff::Plain
    }

    /// The format that the ending of a file's name asks for (`.gz`, `.zst`, `.xz`, in
    /// either case), if any.
    pub(crate) fn from_name(path: &Path) -> Option<Self> {
        let ending = path.extension().and_then(OsStr::to_str)?;
        [(Self::Gzip, "gz"), (Self::Zstd, "zst"), (Self::Xz, "xz")]
            .into_iter()
            .find(|(_, known)| ending.eq_ignore_ascii_case(known))
            .map(|(format, _)| format)
    }

    /// What the format calls one self-contained run of data; several may follow each other.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Gzip => "member",
            Self::Zstd => "frame",
            Self::Xz => "stream",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_their_beginnings_are_told_apart() {
        use Compression::{Gzip, Xz, Zstd};
        assert_eq!(Compression::sniff(b""), Sniff::Plain);
        assert_eq!(Compression::sniff(b"\x1f\x8b"), Sniff::Is(Gzip));
        assert_eq!(Compression::sniff(b"\x1f"), Sniff::MayBe(Gzip));
        assert_eq!(Compression::sniff(b"\x1f\x8c"), Sniff::Plain);
        assert_eq!(Compression::sniff(b"\x28\xb5\x2f\xfd--"), Sniff::Is(Zstd));
        assert_eq!(Compression::sniff(b"\x28\xb5\x2f"), Sniff::MayBe(Zstd));
        assert_eq!(Compression::sniff(b"(b"), Sniff::Plain);
        for first in 0x4f..=0x60 {
            let known = (0x50..=0x5f).contains(&first);
            let whole = Compression::sniff(&[first, 0x2a, 0x4d, 0x18, 9]);
            assert_eq!(whole, if known { Sniff::Is(Zstd) } else { Sniff::Plain });
            let part = Compression::sniff(&[first, 0x2a]);
            assert_eq!(
                part,
                if known {
                    Sniff::MayBe(Zstd)
                } else {
                    Sniff::Plain
                }
            );
        }
        assert_eq!(Compression::sniff(b"\xfd7zXZ\0"), Sniff::Is(Xz));
        assert_eq!(Compression::sniff(b"\xfd7zXZ"), Sniff::MayBe(Xz));
        for (_, mark) in MARKS {
            assert!(mark.len() <= Compression::LONGEST_MARK);
        }
    }

    #[test]
    fn the_ending_of_a_name_asks_for_a_format() {
        let of = |name: &str| Compression::from_name(Path::new(name));
        assert_eq!(of("a.gz"), Some(Compression::Gzip));
        assert_eq!(of("dir.gz/a.txt.ZST"), Some(Compression::Zstd));
        assert_eq!(of("a.xz"), Some(Compression::Xz));
        assert_eq!(of("a.txt"), None);
        assert_eq!(of("gz"), None);
        assert_eq!(of(".gz"), None);
    }
}
