//! Lines to keys, and normalisations to files and back.

#[cfg(feature = "url")]
mod url;

use proptest::prelude::*;

use super::*;
use crate::error::FormatError;
use crate::testing::cases;

/// What a line becomes, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Owned {
    Key(Vec<u8>),
    Int(i64),
    NoField,
    NotUrl(Vec<u8>),
    Bad(BadKey),
}

fn apply(normalisation: &Normalisation, line: &[u8]) -> Owned {
    // What the scratch held before must not matter.
    let mut scratch = b"left over".to_vec();
    match normalisation.apply(line, &mut scratch) {
        Normal::Key(key) => Owned::Key(key.to_vec()),
        Normal::Int(key) => Owned::Int(key),
        Normal::NoField => Owned::NoField,
        Normal::NotUrl(key) => Owned::NotUrl(key.to_vec()),
        Normal::Bad(bad) => Owned::Bad(bad),
    }
}

fn key(text: &str) -> Owned {
    Owned::Key(text.as_bytes().to_vec())
}

fn form(form: Form) -> Normalisation {
    Normalisation::lines().with_form(form).unwrap()
}

fn field(number: u32, delimiter: u8) -> Field {
    Field { number, delimiter }
}

#[test]
fn lines_lose_one_cr_at_most() {
    let lines = Normalisation::lines();
    assert_eq!(apply(&lines, b"a\r"), key("a"));
    assert_eq!(apply(&lines, b"a\r\r"), key("a\r"));
    assert_eq!(apply(&lines, b"\r"), key(""));
    assert_eq!(apply(&lines, b"a\rb"), key("a\rb"));
    assert_eq!(apply(&Normalisation::default(), b"a\r"), key("a\r"));
    let bytes: Vec<u8> = (0..=255).collect();
    assert_eq!(apply(&lines, &bytes), Owned::Key(bytes));
}

#[test]
fn case_is_folded_for_ascii_alone() {
    let folded = Normalisation::lines().with_ignore_case(true);
    assert_eq!(apply(&folded, "ÄbC[Z".as_bytes()), key("Äbc[z"));
    assert_eq!(apply(&folded, b"\xffA"), Owned::Key(b"\xffa".to_vec()));
}

#[test]
fn fields_are_counted_from_one() {
    let of = |number, line: &[u8]| {
        let lines = Normalisation::lines();
        apply(&lines.with_field(field(number, b',')).unwrap(), line)
    };
    assert_eq!(of(1, b"a,b\r"), key("a"));
    assert_eq!(of(2, b"a,b\r"), key("b"));
    assert_eq!(of(2, b"a,"), key(""));
    assert_eq!(of(2, b",,"), key(""));
    assert_eq!(of(3, b"a,b"), Owned::NoField);
    assert_eq!(of(1, b""), key(""));
    assert_eq!(of(u32::MAX, b"a,b"), Owned::NoField);
    assert!(Normalisation::lines().with_field(field(0, b',')).is_err());
}

#[test]
fn integers_are_numbers() {
    let of = |line: &str| apply(&form(Form::Int), line.as_bytes());
    for (line, value) in [
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("007", 7),
        (" \t7 \r", 7),
        ("-42", -42),
        ("9223372036854775807", i64::MAX),
        ("-9223372036854775808", i64::MIN),
        ("000000000000000000000000001", 1),
    ] {
        assert_eq!(of(line), Owned::Int(value), "{line}");
    }
    for line in [
        "", " ", "-", "+", "--1", "1 2", "1.0", "0x10", "1e3", "٣", "- 1", "1\n",
    ] {
        assert_eq!(of(line), Owned::Bad(BadKey::NotInt), "{line}");
    }
    for line in [
        "9223372036854775808",
        "-9223372036854775809",
        &"9".repeat(1000),
    ] {
        assert_eq!(of(line), Owned::Bad(BadKey::IntRange), "{line}");
    }
    assert_eq!(form(Form::Int).key_type(), KeyType::Int);
}

const SHA1: &str = "da39a3ee5e6b4b0d3255bfef95601890afd80709";

#[test]
fn digests_are_found_where_tools_write_them() {
    let upper = SHA1.to_uppercase();
    for line in [
        SHA1.to_owned(),
        upper.clone(),
        format!("{upper}:10"),
        format!("{SHA1}  file.txt\r"),
        format!("{SHA1} *file.txt"),
        format!("{SHA1}  deadbeef00"),
        format!("{SHA1}  file (1) = deadbeef00"),
        format!("\\{SHA1}  file\\nname"),
        format!("  {SHA1}"),
        format!("SHA1 (file) = {SHA1}"),
        format!("\\SHA1 (fi\\nle) = {SHA1}"),
        format!("SHA1 (deadbeef00) = {SHA1} "),
        format!("SHA1 (a) = deadbeef00) = {SHA1}"),
        format!("SHA2-256(deadbeef00)= {SHA1}"),
        format!("SHA512/256 (x) = {SHA1}"),
        format!("sha1:{upper}"),
        format!("0x{upper}"),
        format!("0X{SHA1},1"),
        format!("\"{upper}\",\"392126E756571EBF112CB1C1CDEDF926\",\"EBD105A0\""),
        format!("name;{SHA1}"),
        format!("deadbeef.txt {SHA1}"),
        format!("/cache/deadbeef00/x {SHA1}"),
        format!("123e4567-e89b-12d3-a456-426614174000,{SHA1}"),
    ] {
        for digits in [None, Some(40)] {
            let found = apply(&form(Form::Hex { digits }), line.as_bytes());
            assert_eq!(found, key(SHA1), "{line}");
        }
    }
}

#[test]
fn what_is_no_digest_is_told() {
    let any = form(Form::Hex { digits: None });
    for line in [
        "",
        "abcdef0",
        "facebook.com",
        "deadbeefg",
        "0xdeadbee",
        "00:11:22:33:44:55:66:77",
        "123e4567-e89b-12d3-a456-426614174000",
        "deadbeef\u{e9}",
        "SHA1 (deadbeef00) = missing",
        "xdeadbeef00",
    ] {
        let found = apply(&any, line.as_bytes());
        assert_eq!(found, Owned::Bad(BadKey::NotHex), "{line}");
    }
    assert_eq!(apply(&any, b"ABCDEF01"), apply(&any, b"abcdef01"));
    // Odd lengths are digests: the suffixes that range queries answer with.
    assert_eq!(apply(&any, b"ABCDEF012"), key("abcdef012"));
    let forty = form(Form::Hex { digits: Some(40) });
    assert_eq!(
        apply(&forty, b"deadbeef:3"),
        Owned::Bad(BadKey::HexDigits {
            expected: 40,
            got: 8
        })
    );
    let lines = Normalisation::lines();
    assert!(lines.with_form(Form::Hex { digits: Some(7) }).is_err());
}

#[test]
fn reasons_are_readable() {
    let reason = BadKey::HexDigits {
        expected: 40,
        got: 8,
    };
    assert_eq!(reason.to_string(), "8 hex digits, expected 40");
}

#[test]
fn flags_are_shown() {
    assert_eq!(Normalisation::default().to_string(), "keys as they are");
    assert_eq!(Normalisation::lines().to_string(), "--as line");
    let shown = form(Form::Hex { digits: Some(40) })
        .with_ignore_case(true)
        .with_field(field(2, b'\t'))
        .unwrap()
        .to_string();
    assert_eq!(
        shown,
        "--as hex (40 digits) --ignore-case --field 2 --delimiter '\\t'"
    );
    let cr = form(Form::Int).with_cr_trimmed(false);
    assert_eq!(cr.to_string(), "--as int (with the CR of CRLF)");
}

/// Each kind of normalisation once, and then some.
fn any_normalisation() -> impl Strategy<Value = Normalisation> {
    let any_form = prop_oneof![
        Just(Form::Line),
        Just(Form::Int),
        Just(Form::Ipv4),
        proptest::option::of(LEAST_HEX_DIGITS..=u32::MAX).prop_map(|digits| Form::Hex { digits }),
    ];
    #[cfg(feature = "url")]
    let any_form = prop_oneof![
        3 => any_form,
        1 => proptest::collection::vec("[!$%()+-<>-~]{1,9}\\*?", 0..9)
            .prop_map(|strip_params| Form::Url { strip_params }),
    ];
    let any_field = proptest::option::of((1..=u32::MAX, any::<u8>()));
    (any_form, any_field, any::<bool>(), any::<bool>()).prop_map(|(form, any_field, cr, case)| {
        let mut normalisation = Normalisation::default()
            .with_cr_trimmed(cr)
            .with_ignore_case(case)
            .with_form(form)
            .unwrap();
        if let Some((number, delimiter)) = any_field {
            normalisation = normalisation.with_field(field(number, delimiter)).unwrap();
        }
        normalisation
    })
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn encodings_are_read_back(normalisation in any_normalisation(), tail in 0u8..) {
        let bytes = normalisation.encode();
        prop_assert_eq!(&Normalisation::decode(&bytes).unwrap(), &normalisation);
        for len in 0..bytes.len() {
            prop_assert!(Normalisation::decode(&bytes[..len]).is_err());
        }
        let longer = [bytes.as_slice(), &[tail]].concat();
        prop_assert!(Normalisation::decode(&longer).is_err());
    }

    /// Whatever the bytes: an error of the format, or the one normalisation
    /// that has this encoding.
    #[test]
    fn any_bytes_are_refused_or_read(
        start in proptest::collection::vec(0u8..8, 0..6),
        rest in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        for bytes in [[start.as_slice(), &rest].concat(), rest] {
            match Normalisation::decode(&bytes) {
                Ok(normalisation) => prop_assert_eq!(normalisation.encode(), bytes),
                Err(Error::Format(_)) => {}
                Err(other) => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn changed_encodings_are_refused_or_another(
        normalisation in any_normalisation(), at: prop::sample::Index, flip in 1u8..,
    ) {
        let mut bytes = normalisation.encode();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        match Normalisation::decode(&bytes) {
            Ok(other) => {
                prop_assert_ne!(&other, &normalisation);
                prop_assert_eq!(other.encode(), bytes);
            }
            Err(error) => prop_assert!(matches!(error, Error::Format(_)), "{:?}", error),
        }
    }

    /// Any line under any normalisation: an answer, and for a key of the text
    /// forms the same key again.
    #[test]
    fn any_line_has_an_answer(
        normalisation in any_normalisation(),
        line in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        if let Owned::Key(key) | Owned::NotUrl(key) = apply(&normalisation, &line) {
            let again = Normalisation { field: None, cr_trimmed: false, ..normalisation };
            let (Owned::Key(twice) | Owned::NotUrl(twice)) = apply(&again, &key) else {
                return Err(TestCaseError::fail("no key"));
            };
            prop_assert_eq!(twice, key);
        }
    }
}

#[test]
fn addresses_are_numbers() {
    let of = |line: &str| apply(&form(Form::Ipv4), line.as_bytes());
    for (line, value) in [
        ("0.0.0.0", 0),
        ("1.2.3.4", 16_909_060),
        (" 255.255.255.255\t\r", 4_294_967_295),
    ] {
        assert_eq!(of(line), Owned::Int(value), "{line}");
    }
    for line in [
        "",
        "1.2.3",
        "1.2.3.4.5",
        "1.2.3.256",
        "01.2.3.4",
        "1.2.3.4/8",
        "::1",
        "1.2.3.4:80",
        "١.2.3.4",
        "16909060",
        "1. 2.3.4",
    ] {
        assert_eq!(of(line), Owned::Bad(BadKey::NotIpv4), "{line}");
    }
    assert_eq!(form(Form::Ipv4).key_type(), KeyType::Int);
    assert_eq!(form(Form::Ipv4).to_string(), "--as ipv4");
    assert_eq!(form(Form::Ipv4).encode(), [1, 1, 4]);
}

#[test]
fn unknown_encodings_are_named() {
    let known = form(Form::Int).encode();
    for (at, what, got) in [
        (0, "normalisation version", 9),
        (1, "normalisation flag", 0x88),
        (2, "normalisation form", 5),
    ] {
        let mut bytes = known.clone();
        bytes[at] = u8::try_from(got).unwrap();
        match Normalisation::decode(&bytes) {
            Err(Error::Format(error)) => assert_eq!(error, FormatError::Unknown { what, got }),
            other => panic!("{other:?}"),
        }
    }
    // A field of number 0 and hex digits below the least.
    for bytes in [&[1, 4, 0, 0, 0, 0, b',', 0][..], &[1, 0, 2, 7, 0, 0, 0]] {
        let error = Normalisation::decode(bytes).unwrap_err();
        assert!(
            matches!(error, Error::Format(FormatError::Field { .. })),
            "{error}"
        );
    }
    assert!(Normalisation::decode(&vec![1; MAX_ENCODED_BYTES + 1]).is_err());
}

/// The bytes in files of version 1.
#[test]
fn encodings_are_kept() {
    let hex = form(Form::Hex { digits: Some(40) })
        .with_ignore_case(true)
        .with_field(field(3, b';'))
        .unwrap();
    assert_eq!(hex.encode(), [1, 7, 3, 0, 0, 0, b';', 2, 40, 0, 0, 0]);
    assert_eq!(Normalisation::default().encode(), [1, 0, 0]);
}
