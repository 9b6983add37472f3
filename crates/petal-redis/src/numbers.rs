//! Numbers in arguments.

/// A whole number as servers read them: no sign but `-`, no blanks.
pub(crate) fn int(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

/// A number with a fraction. Not a NaN.
pub(crate) fn float(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    text.parse().ok().filter(|value: &f64| !value.is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_none() {
        assert_eq!(int(b"-5"), Some(-5));
        assert_eq!(float(b"1e-3"), Some(0.001));
        for wrong in [
            &b""[..],
            b" 5",
            b"5 ",
            b"+5",
            b"5x",
            b"9223372036854775808",
            b"\xff",
        ] {
            assert_eq!(int(wrong), None);
        }
        for wrong in [&b""[..], b" 0.1", b"nan", b"0.1x", b"\xff"] {
            assert_eq!(float(wrong), None);
        }
    }
}
