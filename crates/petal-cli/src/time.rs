//! Times in text: seconds since 1970, or RFC 3339.
//!
//! Owns reading and writing them, in microseconds since 1970-01-01 00:00 UTC
//! without leap seconds. No clock is read here.

/// Times from the year 2500 on are taken for something else, such as
/// milliseconds where seconds are expected.
const END: u64 = 16_725_225_600 * SECOND;

const SECOND: u64 = 1_000_000;
const DAY: i64 = 86_400;

/// Reads a time: a number of seconds, whole or with decimals, or a date and
/// time as RFC 3339 has them. What is finer than a microsecond is dropped.
/// `None` if it is neither, or not from 1970 to 2499.
pub(crate) fn parse(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    let micros = if text.get(4) == Some(&b'-') {
        parse_date(text)?
    } else {
        let dot = text.iter().position(|&byte| byte == b'.');
        let (whole, decimals) = text.split_at(dot.unwrap_or(text.len()));
        let micros = match decimals.split_first() {
            Some((_, decimals)) => fraction(decimals)?,
            None => 0,
        };
        digits(whole)?.checked_mul(SECOND)?.checked_add(micros)?
    };
    (micros < END).then_some(micros)
}

/// A number of one digit or more, and nothing else.
fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// Microseconds of the digits after a decimal point.
fn fraction(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let counted = text.iter().copied().chain(std::iter::repeat(b'0')).take(6);
    Some(counted.fold(0, |number, byte| number * 10 + u64::from(byte - b'0')))
}

/// `2023-11-14T22:13:20.25Z`, also with a blank between, in small letters,
/// and with an offset such as `+01:00`.
fn parse_date(text: &[u8]) -> Option<u64> {
    let (date, rest) = text.split_at_checked(19)?;
    for (at, wanted) in [
        (4, &b"-"[..]),
        (7, b"-"),
        (10, b"Tt "),
        (13, b":"),
        (16, b":"),
    ] {
        if !wanted.contains(&date[at]) {
            return None;
        }
    }
    let field = |from: usize, to: usize| digits(&date[from..to])?.try_into().ok();
    let (year, month, day): (i64, i64, i64) = (field(0, 4)?, field(5, 7)?, field(8, 10)?);
    let (hour, minute, second): (i64, i64, i64) = (field(11, 13)?, field(14, 16)?, field(17, 19)?);
    // A leap second is the first of the next minute.
    if !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let days = days_since_1970(year, month, day);
    if day < 1 || civil(days) != (year, month, day) {
        return None;
    }
    let zone = rest.iter().position(|byte| b"Zz+-".contains(byte))?;
    let (decimals, zone) = rest.split_at(zone);
    let micros = match decimals.split_first() {
        Some((b'.', decimals)) => fraction(decimals)?,
        Some(_) => return None,
        None => 0,
    };
    let seconds = days * DAY + hour * 3600 + minute * 60 + second - offset(zone)?;
    u64::try_from(seconds)
        .ok()?
        .checked_mul(SECOND)?
        .checked_add(micros)
}

/// Seconds that a zone is ahead of UTC: `Z`, `+01:00`.
fn offset(zone: &[u8]) -> Option<i64> {
    let (&sign, rest) = zone.split_first()?;
    match (sign, rest) {
        (b'Z' | b'z', []) => Some(0),
        (b'+' | b'-', [_, _, b':', _, _]) => {
            let (hours, minutes) = (digits(&rest[..2])?, digits(&rest[3..])?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let ahead = i64::try_from(hours * 3600 + minutes * 60).ok()?;
            Some(if sign == b'+' { ahead } else { -ahead })
        }
        _ => None,
    }
}

/// Days of the years before, in 400 of which there are 97 leap days. Years
/// begin in March, so that the leap day is their last.
const fn days_before(year: i64) -> i64 {
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400)
}

/// Days from 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: i64 = days_before(1969) + 306;

/// Days from 1970-01-01 on; those of a month go on past its end.
const fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Months from March on: 0 to 11. Five of them have 153 days.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    days_before(year) + (153 * month + 2) / 5 + day - 1 - DAYS_TO_1970
}

/// Year, month and day of a day since 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_1970;
    // An estimate from the mean length, corrected by at most one.
    let mut year = days * 400 / 146_097 + 1;
    while days_before(year) > days {
        year -= 1;
    }
    let of_year = days - days_before(year);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    if month < 10 {
        (year, month + 3, day)
    } else {
        (year + 1, month - 9, day)
    }
}

/// A time in RFC 3339, to the second.
pub(crate) fn format(micros: u64) -> String {
    let seconds = micros / SECOND;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(i64::try_from(days).unwrap_or(i64::MAX / 1000));
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_read() {
        for (text, micros) in [
            ("0", 0),
            ("1700000000", 1_700_000_000_000_000),
            (" 1700000000.25\r", 1_700_000_000_250_000),
            ("1.0000019", 1_000_001),
            ("1970-01-01T00:00:00Z", 0),
            ("1972-02-29 00:00:00z", 789 * 86_400 * SECOND),
            ("2000-02-29T23:59:60Z", 951_868_800 * SECOND),
            ("2023-11-14T22:13:20Z", 1_700_000_000_000_000),
            ("2023-11-14t22:13:20.5+00:00", 1_700_000_000_500_000),
            ("2023-11-15T00:43:20+02:30", 1_700_000_000_000_000),
            ("2023-11-14T20:13:20.000001-02:00", 1_700_000_000_000_001),
            ("2499-12-31T23:59:59Z", END - SECOND),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(micros), "{text}");
        }
        assert_eq!(format(1_700_000_000_250_000), "2023-11-14T22:13:20Z");
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1e9",
            "x",
            "1 2",
            "1,5",
            "1700000000000", // milliseconds
            "99999999999999999999999",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:30:00+01:00",
            "2500-01-01T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2023-13-01T00:00:00Z",
            "2023-00-01T00:00:00Z",
            "2023-01-00T00:00:00Z",
            "2023-04-31T00:00:00Z",
            "2023-01-01T24:00:00Z",
            "2023-01-01T00:60:00Z",
            "2023-01-01T00:00:61Z",
            "2023-01-01T00:00:00",
            "2023-01-01T00:00:00.Z",
            "2023-01-01T00:00:00,5Z",
            "2023-01-01T00:00:00ZZ",
            "2023-01-01T00:00:00+0100",
            "2023-01-01T00:00:00+24:00",
            "2023-01-01",
            "2023-1-1T00:00:00Z",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn every_day_is_itself() {
        let mut expected = (1970, 1, 1);
        for days in 0..200_000 {
            let (year, month, day) = civil(days);
            assert_eq!((year, month, day), expected);
            assert_eq!(days_since_1970(year, month, day), days);
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let last = match month {
                2 => 28 + i64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            expected = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                (_, day) if day == last => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_time_or_none(text in "[0-9.:TZ+-]{0,26}") {
            let _ = parse(text.as_bytes());
        }

        #[test]
        fn what_is_written_is_read(seconds in 0..END / SECOND) {
            let micros = seconds * SECOND;
            prop_assert_eq!(parse(format(micros).as_bytes()), Some(micros));
            prop_assert_eq!(parse(seconds.to_string().as_bytes()), Some(micros));
        }
    }
}
