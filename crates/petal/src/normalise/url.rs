//! The canonical form of a URL, see [`super::Form::Url`].

use std::borrow::Cow;

use ::url::Url;

use crate::error::{Error, Result};

/// Refuses a name, or beginning of a name with `*`, that no parameter of a
/// canonical URL has.
pub(super) fn check_param(name: &str) -> Result<()> {
    let refuse = |expected: &str| Err(Error::parameter("strip-param", name, expected));
    let literal = name.strip_suffix('*').unwrap_or(name);
    if name.is_empty() || name.len() > usize::from(u8::MAX) {
        return refuse("use a name of 1 to 255 bytes");
    }
    if literal.contains('*') {
        return refuse("use * only as the last character of a name");
    }
    if !literal.bytes().all(|b| b.is_ascii_graphic()) || literal.contains(['&', '=', '#', '\'']) {
        return refuse("use the name as it stands in a URL, percent-encoded");
    }
    Ok(())
}

/// Writes the canonical form of the URL in `text` to `out` and returns true,
/// or returns false if it is none; `out` is then anything.
pub(super) fn canonical(
    text: &[u8],
    strip_params: &[String],
    ignore_case: bool,
    out: &mut Vec<u8>,
) -> bool {
    // The parser would silently drop some of them.
    if text.iter().any(u8::is_ascii_control) {
        return false;
    }
    let Ok(mut url) = Url::parse(&encode_invalid(text)) else {
        return false;
    };
    if url.host_str().is_none_or(str::is_empty) || url.scheme() == "file" {
        return false;
    }
    url.set_fragment(None);
    out.clear();
    normalise_escapes(url.as_str().as_bytes(), out);
    if !strip_params.is_empty() {
        strip(out, strip_params, ignore_case);
    }
    if ignore_case {
        out.make_ascii_lowercase();
    }
    true
}

/// The text as UTF-8, with the bytes that are not UTF-8 percent-encoded: two
/// different texts stay different. The parser encodes the others.
fn encode_invalid(text: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(text) {
        return Cow::Borrowed(text);
    }
    let mut encoded = String::with_capacity(text.len() + 16);
    for chunk in text.utf8_chunks() {
        encoded.push_str(chunk.valid());
        for &byte in chunk.invalid() {
            encoded.push('%');
            encoded.push(char::from(hex_digit(byte >> 4)));
            encoded.push(char::from(hex_digit(byte & 15)));
        }
    }
    Cow::Owned(encoded)
}

const fn hex_digit(value: u8) -> u8 {
    match value {
        0..=9 => b'0' + value,
        _ => b'A' - 10 + value,
    }
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

/// Decodes percent-encodings of unreserved characters (RFC 3986, section 2.3)
/// and sets the digits of all others in upper case.
///
/// A `%` that starts no encoding stays. What follows it is not decoded where
/// that would make it start one: `%%34%31` must not become `%41`.
fn normalise_escapes(text: &[u8], out: &mut Vec<u8>) {
    let mut safe_from = 0;
    let mut rest = text;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte != b'%' {
            out.push(*byte);
            continue;
        }
        let escape = match tail {
            [high, low, ..] => hex_value(*high).zip(hex_value(*low)),
            _ => None,
        };
        let Some((high, low)) = escape else {
            out.push(b'%');
            safe_from = out.len() + 2;
            continue;
        };
        rest = &tail[2..];
        let decoded = high << 4 | low;
        let unreserved = decoded.is_ascii_alphanumeric() || b"-._~".contains(&decoded);
        if unreserved && out.len() >= safe_from {
            out.push(decoded);
        } else {
            out.extend([b'%', hex_digit(high), hex_digit(low)]);
        }
    }
}

/// Drops the parameters of a URL's query that a name matches, and the query if
/// nothing is left of it.
fn strip(url: &mut Vec<u8>, names: &[String], ignore_case: bool) {
    let Some(start) = url.iter().position(|&byte| byte == b'?') else {
        return;
    };
    let query = url.split_off(start + 1);
    let (mut dropped, mut first) = (false, true);
    for param in query.split(|&byte| byte == b'&') {
        let name = param.split(|&byte| byte == b'=').next().unwrap_or(param);
        if names
            .iter()
            .any(|pattern| matches(name, pattern, ignore_case))
        {
            dropped = true;
            continue;
        }
        if !first {
            url.push(b'&');
        }
        first = false;
        url.extend_from_slice(param);
    }
    if dropped && url.len() == start + 1 {
        url.pop();
    }
}

fn matches(name: &[u8], pattern: &str, ignore_case: bool) -> bool {
    let same = |a: &[u8], b: &[u8]| {
        if ignore_case {
            a.eq_ignore_ascii_case(b)
        } else {
            a == b
        }
    };
    match pattern.strip_suffix('*') {
        Some(start) => name
            .get(..start.len())
            .is_some_and(|name| same(name, start.as_bytes())),
        None => same(name, pattern.as_bytes()),
    }
}
