//! Numbers as people write and read them: sizes in bytes (× 1024), counts (× 1000), and
//! stretches of time.
//!
//! Parsing is exact: no floating point takes part.

use std::fmt;

/// Why a text is no size or no count, with what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnitError(String);

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnitError {}

const SIZE_FORM: &str = "expected bytes like 65536, 64K, 512M or 1.5G (powers of 1024)";
const COUNT_FORM: &str = "expected a count like 50000, 50k, 1.5M or 1e6 (powers of 1000)";

/// Reads a number of bytes: digits, perhaps with a decimal point, perhaps followed by one
/// of `K M G T P` in either case (× 1024 each) and `B` or `iB`.
///
/// A fraction of a byte is dropped. Errors: any other text, or 2^64 and more.
pub(crate) fn parse_size(text: &str) -> Result<u64, UnitError> {
    let error = |why: &str| UnitError(format!("`{text}`: {why}; {SIZE_FORM}"));
    let (number, unit) = split(text).map_err(error)?;
    let lower = unit.to_ascii_lowercase();
    let letter = lower
        .strip_suffix("ib")
        .filter(|letter| !letter.is_empty())
        .or_else(|| lower.strip_suffix('b'))
        .unwrap_or(&lower);
    let scale = match letter {
        "" => 1u128,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        "p" => 1 << 50,
        _ => return Err(error(&format!("unknown unit `{unit}`"))),
    };
    let (value, _) = number.times(scale).ok_or_else(|| error("too large"))?;
    Ok(value)
}

/// Reads a count: digits, perhaps with a decimal point, perhaps followed by one of
/// `k M G T` in either case (× 1000 each) or by an exponent as in `2.5e6`.
///
/// Errors: any other text, a count that is not whole, or 2^64 and more.
pub(crate) fn parse_count(text: &str) -> Result<u64, UnitError> {
    let error = |why: &str| UnitError(format!("`{text}`: {why}; {COUNT_FORM}"));
    let (number, unit) = split(text).map_err(error)?;
    let lower = unit.to_ascii_lowercase();
    let exponent = match lower.as_str() {
        "" => 0,
        "k" => 3,
        "m" => 6,
        "g" => 9,
        "t" => 12,
        other => {
            let digits = other
                .strip_prefix('e')
                .map(|e| e.strip_prefix('+').unwrap_or(e));
            match digits {
                Some(e) if e.starts_with('-') => return Err(error("not a whole number")),
                Some(e) if !e.is_empty() && e.bytes().all(|b| b.is_ascii_digit()) => {
                    // Digits only, so what does not fit is too large.
                    e.parse().unwrap_or(u32::MAX)
                }
                _ => return Err(error(&format!("unknown unit `{unit}`"))),
            }
        }
    };
    if number.digits == 0 {
        return Ok(0);
    }
    let scale = 10u128
        .checked_pow(exponent)
        .ok_or_else(|| error("too large"))?;
    match number.times(scale).ok_or_else(|| error("too large"))? {
        (value, true) => Ok(value),
        (_, false) => Err(error("not a whole number")),
    }
}

/// How far back something reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    /// So many lines.
    Lines(u64),
    /// So many microseconds.
    Time(u64),
}

const SPAN_FORM: &str = "expected a number of lines like 50k or 1M, or a time like 90s, 30m, \
                         24h or 7d";

/// Reads a span: a number followed by `s`, `m` or `min`, `h`, `d` or `w` (seconds to weeks) is
/// a time, anything else a count. So `1m` is a minute and `1M` a million.
///
/// Errors: any other text, 0, or more than 2^64 lines or microseconds.
pub(crate) fn parse_span(text: &str) -> Result<Span, UnitError> {
    let error = |why: &str| UnitError(format!("`{text}`: {why}; {SPAN_FORM}"));
    let (number, unit) = split(text).map_err(error)?;
    let span = match TIME_UNITS.iter().find(|(name, _)| *name == unit) {
        Some(&(_, micros)) => {
            let (micros, _) = number
                .times(micros.into())
                .ok_or_else(|| error("too large"))?;
            Span::Time(micros)
        }
        None => Span::Lines(parse_count(text).map_err(|UnitError(why)| {
            let why = why.split_once(": ").map_or(&*why, |(_, rest)| rest);
            error(why.split_once(';').map_or(why, |(why, _)| why))
        })?),
    };
    if matches!(span, Span::Lines(0) | Span::Time(0)) {
        return Err(error("nothing is within it"));
    }
    Ok(span)
}

/// Units of time in microseconds; the last of a length is the one that is printed.
const TIME_UNITS: [(&str, u64); 6] = [
    ("s", 1_000_000),
    ("m", 60_000_000),
    ("min", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
    ("w", 604_800_000_000),
];

/// A stretch of time for people: `24 h`, `90 s`, `12.5 min`.
pub(crate) fn format_micros(micros: u64) -> String {
    let printed = || {
        TIME_UNITS
            .iter()
            .filter(|(name, _)| !matches!(*name, "m" | "w"))
    };
    let exact = printed()
        .rfind(|&&(name, unit)| micros.is_multiple_of(unit) && (micros > unit || name != "d"));
    match exact {
        Some((name, unit)) if micros > 0 && micros / unit < 100 => {
            return format!("{} {name}", micros / unit);
        }
        _ => {}
    }
    let (name, unit) = printed()
        .take_while(|(_, unit)| micros >= 2 * unit)
        .last()
        .unwrap_or(&TIME_UNITS[0]);
    format!(
        "{} {name}",
        crate::report::figure(micros as f64 / *unit as f64)
    )
}

/// `digits` / 10^`decimals`.
#[derive(Debug, Clone, Copy)]
struct Number {
    digits: u128,
    decimals: u32,
}

impl Number {
    /// The whole part of the product, and whether that is all of it.
    fn times(self, scale: u128) -> Option<(u64, bool)> {
        let product = self.digits.checked_mul(scale)?;
        let unit = 10u128.checked_pow(self.decimals)?;
        Some((u64::try_from(product / unit).ok()?, product % unit == 0))
    }
}

/// Splits a text into its number and what follows.
fn split(text: &str) -> Result<(Number, &str), &'static str> {
    if text.is_empty() {
        return Err("nothing given");
    }
    if text.starts_with('-') {
        return Err("must not be negative");
    }
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if unit.starts_with(',') || unit.starts_with('_') {
        return Err("digits are not grouped, and the decimal sign is a point");
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // Zeros at the end of a fraction say nothing, but could overflow.
    let fraction = fraction.trim_end_matches('0');
    if number.is_empty() || number == "." {
        return Err("no number");
    }
    if fraction.contains('.') {
        return Err("more than one decimal point");
    }
    let mut digits = 0u128;
    for digit in whole.bytes().chain(fraction.bytes()) {
        digits = digits
            .checked_mul(10)
            .and_then(|tens| tens.checked_add(u128::from(digit - b'0')))
            .filter(|&digits| digits < 1 << 96)
            .ok_or("more digits than make sense")?;
    }
    let decimals = u32::try_from(fraction.len()).map_err(|_| "more digits than make sense")?;
    Ok((Number { digits, decimals }, unit))
}

/// A number of bytes for people: `38.1 MiB`, three figures or more, rounded down.
pub(crate) fn format_size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let Some((shift, unit)) = (1..=6u32)
        .zip(UNITS)
        .map(|(step, unit)| (10 * step, unit))
        .take_while(|(shift, _)| bytes >> shift > 0)
        .last()
    else {
        return format!("{bytes} B");
    };
    let tenths = (u128::from(bytes) * 10) >> shift;
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// A count for people: `6,999,698`.
pub(crate) fn format_count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, bytes) in [
            ("0", 0),
            ("65536", 65536),
            ("512B", 512),
            ("64K", 65536),
            ("64k", 65536),
            ("64KB", 65536),
            ("64KiB", 65536),
            ("64kib", 65536),
            ("512M", 512 << 20),
            ("1G", 1 << 30),
            ("1.5G", 3 << 29),
            ("1.50G", 3 << 29),
            ("1.G", 1 << 30),
            (".5K", 512),
            ("0.3K", 307),
            ("2T", 2 << 40),
            ("1P", 1 << 50),
            ("18446744073709551615", u64::MAX),
            ("16383P", 16383 << 50),
            ("1.000000000000000000000000000000000000K", 1024),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn counts_are_powers_of_1000() {
        for (text, count) in [
            ("0", 0),
            ("50000", 50_000),
            ("50k", 50_000),
            ("50K", 50_000),
            ("2M", 2_000_000),
            ("1.5M", 1_500_000),
            ("1e6", 1_000_000),
            ("1E6", 1_000_000),
            ("1e+6", 1_000_000),
            ("2.5e1", 25),
            ("1e06", 1_000_000),
            ("7e0", 7),
            ("7e000", 7),
            ("3G", 3_000_000_000),
            ("1T", 1_000_000_000_000),
            ("1e12", 1_000_000_000_000),
            ("0e99999", 0),
            ("0.0010k", 1),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_count(text), Ok(count), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_named() {
        let cases: [(&str, &str); 15] = [
            ("", "nothing given"),
            ("-5", "must not be negative"),
            ("-", "must not be negative"),
            ("K", "no number"),
            (".", "no number"),
            ("NaN", "no number"),
            ("inf", "no number"),
            (" 5", "no number"),
            ("1.2.3", "more than one decimal point"),
            ("1,5", "digits are not grouped"),
            ("1_000", "digits are not grouped"),
            ("5X", "unknown unit `X`"),
            ("5 M", "unknown unit ` M`"),
            ("5é", "unknown unit `é`"),
            ("99999999999999999999999999999999999999999", "more digits"),
        ];
        for (text, why) in cases {
            for error in [
                parse_size(text).unwrap_err(),
                parse_count(text).unwrap_err(),
            ] {
                let message = error.to_string();
                assert!(
                    message.starts_with(&format!("`{text}`: {why}")),
                    "{message}"
                );
                assert!(message.contains("expected"), "{message}");
            }
        }
        for (text, why) in [
            ("1e6", "unknown unit"),
            ("1iB", "unknown unit"),
            ("1KiBB", "unknown unit"),
            ("16384P", "too large"),
            ("18446744073709551616", "too large"),
        ] {
            assert!(
                parse_size(text).unwrap_err().to_string().contains(why),
                "{text}"
            );
        }
        for (text, why) in [
            ("1e-3", "not a whole number"),
            ("0.5", "not a whole number"),
            ("1.2345k", "not a whole number"),
            ("1e", "unknown unit"),
            ("1ex", "unknown unit"),
            ("1kB", "unknown unit"),
            ("1e20", "too large"),
            ("1e99", "too large"),
            ("1e100", "too large"),
            ("1e99999999999999999999", "too large"),
        ] {
            assert!(
                parse_count(text).unwrap_err().to_string().contains(why),
                "{text}"
            );
        }
    }

    #[test]
    fn spans_are_lines_or_time() {
        const HOUR: u64 = 3_600_000_000;
        for (text, span) in [
            ("1000", Span::Lines(1000)),
            ("50k", Span::Lines(50_000)),
            ("1M", Span::Lines(1_000_000)),
            ("1e6", Span::Lines(1_000_000)),
            ("1m", Span::Time(HOUR / 60)),
            ("1min", Span::Time(HOUR / 60)),
            ("90s", Span::Time(90_000_000)),
            ("0.5s", Span::Time(500_000)),
            ("1.5h", Span::Time(HOUR * 3 / 2)),
            ("7d", Span::Time(7 * 24 * HOUR)),
            ("2w", Span::Time(14 * 24 * HOUR)),
        ] {
            assert_eq!(parse_span(text), Ok(span), "{text}");
        }
        for (text, why) in [
            ("", "nothing given"),
            ("-1h", "must not be negative"),
            ("0", "nothing is within it"),
            ("0h", "nothing is within it"),
            ("0.0000001s", "nothing is within it"),
            ("1x", "unknown unit `x`"),
            ("1H", "unknown unit `H`"),
            ("1h30m", "unknown unit `h30m`"),
            ("1.5", "not a whole number"),
            ("9999999999999w", "too large"),
            ("h", "no number"),
        ] {
            let message = parse_span(text).unwrap_err().to_string();
            let expected = format!("`{text}`: {why}; expected a number of lines");
            assert!(message.starts_with(&expected), "{message}");
        }
        for (micros, text) in [
            (0, "0 s"),
            (1500, "0.0015 s"),
            (90_000_000, "90 s"),
            (3_600_000_000, "1 h"),
            (24 * 3_600_000_000, "24 h"),
            (7 * 24 * 3_600_000_000, "7 d"),
            (750_000_000, "12.5 min"),
            (257_142_858, "4.29 min"),
            (1_700_000_001_000_000, "19676 d"),
        ] {
            assert_eq!(format_micros(micros), text);
        }
    }

    #[test]
    fn numbers_read_well() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (40_000_000, "38.1 MiB"),
            ((1 << 20) - 1, "1023.9 KiB"),
            (1 << 30, "1.0 GiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(format_size(bytes), text);
        }
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (6_999_698, "6,999,698"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(format_count(count), text);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_number_or_an_error(text in "\\PC{0,12}|[0-9.eEkKmMiB+-]{0,12}") {
            let _ = (parse_size(&text), parse_count(&text));
        }

        #[test]
        fn plain_digits_are_themselves(n: u64) {
            prop_assert_eq!(parse_size(&n.to_string()), Ok(n));
            prop_assert_eq!(parse_count(&n.to_string()), Ok(n));
        }
    }
}
