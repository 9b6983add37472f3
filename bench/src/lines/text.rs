//! The text of a key: a URL-like line that spells the key out.
//!
//! Which keys stand in a file, and in what order, is the parent module's.

use super::mix64;

/// One line in this many is longer than [`LONG_BYTES`]: 26 in 10 million.
pub const LONG_ONE_IN: u64 = 384_615;

/// Lines that are long are longer than this, and shorter than twice this and 1 KiB.
pub const LONG_BYTES: usize = 64 << 10;

/// One line in this many holds raw UTF-8 beyond ASCII.
pub const UTF8_ONE_IN: u64 = 64;

const SYLLABLES: [&str; 64] = [
    "al", "an", "ar", "ba", "bel", "bi", "bo", "bri", "ca", "cen", "co", "cu", "da", "del", "di",
    "dor", "e", "el", "en", "fa", "fer", "fi", "fo", "ga", "gen", "go", "gra", "ha", "hel", "hi",
    "i", "in", "ja", "jo", "ka", "kel", "ko", "la", "len", "li", "lo", "lu", "ma", "mer", "mi",
    "mo", "na", "nel", "ni", "no", "o", "or", "pa", "per", "pi", "po", "qua", "ra", "ri", "ro",
    "sa", "sel", "ta", "vo",
];

const DOMAINS: [&str; 16] = [
    ".com", ".com", ".com", ".com", ".org", ".org", ".net", ".net", ".de", ".fr", ".io", ".co.uk",
    ".info", ".jp", ".edu", ".gov",
];

const WORDS: [&str; 64] = [
    "about",
    "account",
    "api",
    "archive",
    "article",
    "assets",
    "author",
    "blog",
    "book",
    "browse",
    "catalog",
    "category",
    "city",
    "comments",
    "content",
    "culture",
    "data",
    "de",
    "doc",
    "download",
    "en",
    "event",
    "events",
    "faq",
    "files",
    "forum",
    "gallery",
    "guide",
    "help",
    "history",
    "image",
    "images",
    "index",
    "item",
    "item-view",
    "jobs",
    "library",
    "list",
    "map",
    "media",
    "member",
    "music",
    "news",
    "page",
    "people",
    "photo",
    "post",
    "press",
    "product",
    "products",
    "profile",
    "project",
    "questions",
    "recipe",
    "review",
    "science",
    "search",
    "shop",
    "sport",
    "static",
    "story",
    "tag",
    "topic",
    "wiki",
];

const UTF8_WORDS: [&str; 8] = [
    "café",
    "straße",
    "naïve",
    "новости",
    "東京",
    "ελλάδα",
    "한국어",
    "smörgåsbord",
];

// Each opens with a character that is no digit of base 36, so the key's digits end where it begins.
const SUFFIXES: [&str; 8] = [
    "",
    "",
    "",
    "",
    ".html",
    "?page=next",
    "#comments",
    "?utm_source=newsletter&utm_medium=email&utm_id=spring",
];

/// Appends the line of a key, with its newline: about 68 bytes, the same for the same key.
///
/// The first decimal digit of the line opens 13 digits of base 36 that spell the key under a
/// bijection, so different keys have different lines. (A 64-bit number in base 36 begins with 0 to
/// 3.) The rest is drawn from the key, and holds no decimal digit before that.
pub fn write_line(key: u64, line: &mut Vec<u8>) {
    let id = mix64(key);
    let mut bits = Bits(mix64(id));
    let mut put = |text: &str| line.extend_from_slice(text.as_bytes());

    put(if bits.take(2) == 0 {
        "http://"
    } else {
        "https://"
    });
    if bits.take(1) == 0 {
        put("www.");
    }
    put(SYLLABLES[bits.take(6)]);
    put(SYLLABLES[bits.take(6)]);
    put(SYLLABLES[bits.take(6)]);
    put(DOMAINS[bits.take(4)]);
    for _ in 0..2 + bits.take(2) {
        put("/");
        put(WORDS[bits.take(6)]);
    }
    if id.is_multiple_of(UTF8_ONE_IN) {
        put("/");
        put(UTF8_WORDS[bits.take(3)]);
    }
    put("/");
    let suffix = SUFFIXES[bits.take(3)];
    line.extend_from_slice(&base36(id));
    line.extend_from_slice(suffix.as_bytes());
    if id.is_multiple_of(LONG_ONE_IN) {
        line.extend_from_slice(b"?q=");
        let filler = LONG_BYTES + low_bits(id / LONG_ONE_IN % 1024) * (LONG_BYTES >> 10);
        line.resize(line.len() + filler, b'x');
    }
    line.push(b'\n');
}

/// The number in 13 digits of base 36.
fn base36(mut number: u64) -> [u8; 13] {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut text = [0; 13];
    for digit in text.iter_mut().rev() {
        *digit = DIGITS[low_bits(number % 36)];
        number /= 36;
    }
    text
}

/// Random bits, used up from the low end.
struct Bits(u64);

impl Bits {
    fn take(&mut self, count: u32) -> usize {
        let taken = self.0 & ((1 << count) - 1);
        self.0 >>= count;
        low_bits(taken)
    }
}

/// A number known to be small, as an index.
fn low_bits(number: u64) -> usize {
    usize::try_from(number).expect("callers pass less than 2^10")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::{Spec, packed};

    const FIRST_LINES: &str = "\
https://ararin.org/archive/press/about/library/book/0sc75vwmvsxip
https://cenoran.net/archive/help/profile/2z3tyexqu50xr
http://www.haferko.net/files/catalog/questions/index/14uv2gnpq5s60
";

    fn keys(lines: u64) -> impl Iterator<Item = u64> {
        Spec {
            lines,
            repeats: 0,
            seed: 1,
            overlap: None,
        }
        .keys()
        .unwrap()
    }

    fn line_of(key: u64) -> Vec<u8> {
        let mut line = Vec::new();
        write_line(key, &mut line);
        line
    }

    #[test]
    fn every_line_spells_its_key_after_text_without_digits() {
        for key in keys(5_000) {
            let line = line_of(key);
            let start = line.iter().position(u8::is_ascii_digit).unwrap();
            assert_eq!(line[start..start + 13], base36(mix64(key)));
            assert!(!line[start + 13].is_ascii_alphanumeric());
            assert!(std::str::from_utf8(&line).is_ok());
            assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        }
    }

    #[test]
    fn lengths_are_those_of_real_lists() {
        let lines = keys(200_000).map(line_of).collect::<Vec<_>>();
        let short: Vec<_> = lines
            .iter()
            .filter(|line| line.len() < LONG_BYTES)
            .collect();
        let mean = short.iter().map(|line| line.len()).sum::<usize>() as f64 / short.len() as f64;
        assert!((67.0..69.0).contains(&mean), "{mean} bytes a line");
        let utf8 = lines.iter().filter(|line| !line.is_ascii()).count();
        // 200000/64 = 3125, sigma 55.5.
        assert!(utf8.abs_diff(3_125) <= 278, "{utf8} lines with raw UTF-8");
    }

    #[test]
    fn about_26_lines_in_10_million_are_long() {
        // From the ids alone: writing 10 million lines would take the test too long.
        let long: Vec<_> = (0..10_000_000)
            .map(|index| packed(1, index))
            .filter(|&key| mix64(key).is_multiple_of(LONG_ONE_IN))
            .collect();
        assert!(long.len().abs_diff(26) <= 26, "{} long lines", long.len());
        for key in long {
            let length = line_of(key).len();
            assert!(
                length > LONG_BYTES && length < 2 * LONG_BYTES + 1024,
                "{length} bytes"
            );
        }
    }

    #[test]
    fn the_text_of_a_key_never_changes() {
        let text: Vec<_> = keys(1_000).take(3).flat_map(line_of).collect();
        assert_eq!(String::from_utf8(text).unwrap(), FIRST_LINES);
    }
}
