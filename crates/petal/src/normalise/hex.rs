//! The hexadecimal digest of a line.
//!
//! Owns where it is; the text around it is whatever the tools that list
//! digests write. See [`super::Form::Hex`].

use super::{is_blank, trim_blanks};

/// The fewest digits of a hex key: those of a CRC-32. Shorter runs are too
/// often something else.
pub const LEAST_HEX_DIGITS: u32 = 8;

/// The digest's digits, as they are written.
pub(super) fn find(line: &[u8]) -> Option<&[u8]> {
    let line = trim_blanks(line);
    // sha1sum starts a line with it if it had to escape the file's name.
    let line = line.strip_prefix(b"\\").unwrap_or(line);
    match tagged(line) {
        Some(word) => digits(word),
        None => line.split(is_separator).find_map(digits),
    }
}

fn is_separator(byte: &u8) -> bool {
    is_blank(byte) || b":;,|=*()\"'".contains(byte)
}

/// The word itself, or what follows its `0x`, if it is long enough and of
/// hex digits only.
fn digits(word: &[u8]) -> Option<&[u8]> {
    let word = match word {
        [b'0', b'x' | b'X', digits @ ..] => digits,
        word => word,
    };
    let long_enough = u32::try_from(word.len()).is_ok_and(|len| len >= LEAST_HEX_DIGITS);
    (long_enough && word.iter().all(u8::is_ascii_hexdigit)).then_some(word)
}

/// What stands for the digest in a tagged line, `SHA1 (file) = HASH` or
/// `SHA1(file)= HASH`. The file's name may hold anything, other digests
/// included, so the tag is looked for from the front and the digest from the
/// end.
fn tagged(line: &[u8]) -> Option<&[u8]> {
    let open = line.iter().position(|&byte| byte == b'(')?;
    let tag = trim_blanks(&line[..open]);
    let is_tag = tag.first().is_some_and(u8::is_ascii_alphabetic)
        && tag.len() <= 16
        && tag
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-/".contains(byte))
        && digits(tag).is_none();
    let equals = line.iter().rposition(|&byte| byte == b'=')?;
    let closed = equals > open && trim_blanks(&line[..equals]).ends_with(b")");
    (is_tag && closed).then(|| trim_blanks(&line[equals + 1..]))
}
