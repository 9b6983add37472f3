//! Canonical URLs.

use proptest::prelude::*;

use super::super::*;
use super::{Owned, apply, field, form, key};
use crate::testing::cases;

fn urls(strip_params: &[&str]) -> Normalisation {
    let strip_params = strip_params.iter().map(ToString::to_string).collect();
    form(Form::Url { strip_params })
}

#[track_caller]
fn assert_canonical(line: &str, canonical: &str) {
    assert_eq!(apply(&urls(&[]), line.as_bytes()), key(canonical), "{line}");
}

#[test]
fn urls_are_canonical() {
    for (line, canonical) in [
        ("HTTP://EXAMPLE.com", "http://example.com/"),
        ("http://example.com:80/a", "http://example.com/a"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("http://example.com:443/a", "http://example.com:443/a"),
        ("http://h/a/./b/../c", "http://h/a/c"),
        ("http://h/a/%2e%2E/b", "http://h/b"),
        ("http://h/%7euser/%41%2d", "http://h/~user/A-"),
        ("http://h/a%2fb%3f%26", "http://h/a%2Fb%3F%26"),
        ("http://h/a%252e", "http://h/a%252e"),
        ("http://h/?q=%e9%61", "http://h/?q=%E9a"),
        ("http://h/a#b?c", "http://h/a"),
        ("http://h/#", "http://h/"),
        ("http://h/?", "http://h/?"),
        ("http://h", "http://h/"),
        ("http://h/ü?ü", "http://h/%C3%BC?%C3%BC"),
        ("http://münchen.de/", "http://xn--mnchen-3ya.de/"),
        ("http://u:p@h/", "http://u:p@h/"),
        ("http://[::1]:80/", "http://[::1]/"),
        ("  http://h/a b  ", "http://h/a%20b"),
        ("ftp://h:21/a", "ftp://h/a"),
        ("s3://bucket/a%2fb", "s3://bucket/a%2Fb"),
        ("HTTP://%41 ", "http://a/"),
        ("http://h/%", "http://h/%"),
        ("http://h/%4", "http://h/%4"),
        // Decoding must not make new encodings.
        ("http://h/%%34%31", "http://h/%%341"),
        ("http://h/%4%31", "http://h/%4%31"),
        ("http://h/%2541", "http://h/%2541"),
    ] {
        assert_canonical(line, canonical);
        assert_canonical(canonical, canonical);
    }
}

#[test]
fn what_is_no_url_is_compared_as_it_is() {
    for line in [
        "",
        "example.com/a",
        "/a/b",
        "localhost:80/a",
        "mailto:a@b.c",
        "data:text/plain,a",
        "javascript:a()",
        "file:///etc/passwd",
        "file://host/a",
        "http://",
        "http:///",
        "http://a b/",
        "http://h:99999/",
        "http://[::1/",
        "http://h/a\tb",
        "http://h/a\u{0}b",
        "http://h/\u{7f}",
        "s3:///a",
    ] {
        let same = Owned::NotUrl(line.as_bytes().to_vec());
        assert_eq!(apply(&urls(&[]), line.as_bytes()), same, "{line}");
    }
    let folded = urls(&[]).with_ignore_case(true);
    assert_eq!(apply(&folded, b"A/B"), Owned::NotUrl(b"a/b".to_vec()));
}

#[test]
fn different_bytes_stay_different() {
    let mut seen = std::collections::HashSet::new();
    for first in 0x80..=0xffu8 {
        for second in [0x20u8, b'a', 0x80, 0xbf, 0xc3, 0xff] {
            let line = [b"http://h/x?", &[first, second, b'z'][..]].concat();
            let got = apply(&urls(&[]), &line);
            let Owned::Key(key) = got else {
                panic!("{first:x} {second:x}: {got:?}")
            };
            assert!(seen.insert(key), "{first:x} {second:x}");
        }
    }
    // A raw byte is the byte that its encoding stands for.
    assert_eq!(apply(&urls(&[]), b"http://h/\xff"), key("http://h/%FF"));
    // Nothing but UTF-8 is a host.
    let line = b"http://h\xff/";
    assert_eq!(apply(&urls(&[]), line), Owned::NotUrl(line.to_vec()));
}

#[test]
fn listed_parameters_are_dropped() {
    let strip = urls(&["utm_*", "fbclid", "x%2Fy"]);
    for (line, canonical) in [
        ("http://h/?utm_source=a", "http://h/"),
        ("http://h/?utm_source=a&utm_medium", "http://h/"),
        ("http://h/?b=1&utm_source=a&a=2", "http://h/?b=1&a=2"),
        ("http://h/?utm_=1&b", "http://h/?b"),
        ("http://h/?b&utm_x", "http://h/?b"),
        ("http://h/?%75tm_x&%66bclid=2&c", "http://h/?c"),
        ("http://h/?x%2fy=1&c", "http://h/?c"),
        ("http://h/?fbclid2=1&fbcli=2", "http://h/?fbclid2=1&fbcli=2"),
        ("http://h/?UTM_x=1", "http://h/?UTM_x=1"),
        ("http://h/?a=utm_x", "http://h/?a=utm_x"),
        ("http://h/?a&&b&", "http://h/?a&&b&"),
        ("http://h/?", "http://h/?"),
        ("http://h/?&utm_a=1", "http://h/"),
        ("http://h/utm_x?a#utm_b", "http://h/utm_x?a"),
        ("http://h/#?utm_b", "http://h/"),
    ] {
        assert_eq!(apply(&strip, line.as_bytes()), key(canonical), "{line}");
    }
    let folded = strip.with_ignore_case(true);
    assert_eq!(
        apply(&folded, b"http://h/A%2F?UTM_x=1&B=C"),
        key("http://h/a%2f?b=c")
    );
    assert_eq!(apply(&urls(&["*"]), b"http://h/?a&b"), key("http://h/"));
}

#[test]
fn names_of_parameters_are_checked() {
    let with = |names: Vec<String>| {
        Normalisation::lines().with_form(Form::Url {
            strip_params: names,
        })
    };
    let long = "a".repeat(256);
    for name in [
        "", "a*b", "**", "a b", "a=b", "a&b", "a#", "ü", "a\n", "'", &long,
    ] {
        assert!(with(vec![name.to_owned()]).is_err(), "{name}");
    }
    // The order and repeats do not matter.
    assert_eq!(urls(&["b", "a", "b"]), urls(&["a", "b"]));
    // As many as a file can record, and one more.
    let many = |count: usize| (0..count).map(|i| format!("{i:0>254}")).collect();
    let most = with(many(64)).unwrap();
    let most = most.with_field(field(1, b',')).unwrap();
    assert!(most.encode().len() <= MAX_ENCODED_BYTES);
    assert_eq!(Normalisation::decode(&most.encode()).unwrap(), most);
    assert!(with(many(65)).is_err());
    assert!(with((0..70_000).map(|i| i.to_string()).collect()).is_err());
}

#[test]
fn unsorted_names_in_a_file_are_refused() {
    let good = urls(&["a", "b"]).encode();
    assert_eq!(good, [1, 1, 1, 2, 0, 1, b'a', 1, b'b']);
    for (a, b) in [(b"b", b"a"), (b"a", b"a"), (b"a", b"\xff"), (b"a", b"=")] {
        let bytes = [&[1, 1, 1, 2, 0, 1], &a[..], &[1], &b[..]].concat();
        let error = Normalisation::decode(&bytes).unwrap_err();
        assert!(matches!(error, Error::Format(_)), "{error}");
    }
}

/// Pieces of which odd URLs are made.
fn any_url() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => "[a-zA-Z0-9._~-]{0,3}".prop_map(String::into_bytes),
        4 => "%[0-9a-fA-F]{2}".prop_map(String::into_bytes),
        2 => prop::sample::select(vec![
            "/", "//", ".", "..", "/./", "/../", "%2e", "%2E%2e", "?", "&", "=", "#", ";",
            ":", "@", "%", "%%", "%4", "+", " ", "\\", "|", "[", "]", "{", "`", "'", "\"",
            "<", "^", "utm_a=", "&utm_b", "é", "\u{fffd}", "\u{200d}", "C:", "C|", "!",
        ]).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..3),
    ];
    let scheme = prop::sample::select(vec![
        "http://",
        "HTTPS://",
        "ftp://",
        "ws:",
        "http:\\\\",
        "s3://",
        "x-a+b://",
        "file://",
        "http:",
        " http://",
        "a:",
        "",
    ]);
    let host = prop::sample::select(vec![
        "h",
        "Ex.COM",
        "h:80",
        "h:443",
        "u:p@h",
        "u%41:%7e@h",
        "@h",
        "[::1]",
        "[2001:DB8::A]:1",
        "127.1",
        "0x7f.1",
        "münchen.de",
        "xn--mnchen-3ya.de",
        "h.",
        "%68",
        "a%2fb",
        "",
    ]);
    let rest = proptest::collection::vec(piece, 0..12);
    (scheme, host, prop::bool::weighted(0.9), rest).prop_map(|(scheme, host, slash, rest)| {
        let slash: &[u8] = if slash { b"/" } else { b"" };
        [scheme.as_bytes(), host.as_bytes(), slash, &rest.concat()].concat()
    })
}

proptest! {
    #![proptest_config(cases(20_000))]

    #[test]
    fn canonical_urls_are_their_own(line in any_url(), ignore_case: bool, strips: bool) {
        let names: &[&str] = if strips { &["utm_*", "a"] } else { &[] };
        let urls = urls(names).with_ignore_case(ignore_case);
        match apply(&urls, &line) {
            Owned::Key(key) => {
                prop_assert!(key.iter().all(u8::is_ascii_graphic), "{}", key.escape_ascii());
                prop_assert!(!key.contains(&b'#'));
                let again = apply(&urls, &key);
                prop_assert_eq!(again, Owned::Key(key.clone()), "{}", key.escape_ascii());
            }
            Owned::NotUrl(key) => {
                prop_assert_eq!(apply(&urls, &key), Owned::NotUrl(key));
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }

    /// No reserved character appears or vanishes but by the parser: the
    /// bytes that the escapes stand for are the parser's.
    #[test]
    fn escapes_keep_their_meaning(line in any_url()) {
        let Owned::Key(key) = apply(&urls(&[]), &line) else { return Ok(()) };
        let text: Vec<u8> = line.utf8_chunks().flat_map(|chunk| {
            let invalid = chunk.invalid().iter().map(|byte| format!("%{byte:02X}"));
            [chunk.valid().to_owned()].into_iter().chain(invalid).collect::<String>().into_bytes()
        }).collect();
        let mut parsed = ::url::Url::parse(std::str::from_utf8(&text).unwrap()).unwrap();
        parsed.set_fragment(None);
        let decode = |text: &[u8]| {
            // Reserved bytes are marked where they were encoded.
            let mut out = Vec::new();
            let mut at = 0;
            while at < text.len() {
                let escape = text.get(at + 1..at + 3).and_then(|hex| {
                    u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()
                        .filter(|_| hex.iter().all(u8::is_ascii_hexdigit))
                });
                match (text[at], escape) {
                    (b'%', Some(byte)) => {
                        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
                        out.push((byte, !plain));
                        at += 3;
                    }
                    (byte, _) => {
                        out.push((byte, false));
                        at += 1;
                    }
                }
            }
            out
        };
        prop_assert_eq!(decode(&key), decode(parsed.as_str().as_bytes()));
    }
}
