//! Decoding: every member of every format, and everything that is not quite one.

use std::io::Write;

use flate2::Crc;
use proptest::prelude::*;

use super::super::error::{Fault, Place};
use super::{decode, drain, naive, piped, read_with, write};
use crate::compression::Compression::{self, Gzip, Xz, Zstd};
use crate::input::{LineOptions, Lines};

const FORMATS: [Compression; 3] = [Gzip, Zstd, Xz];

/// One member of the format.
fn pack(format: Compression, data: &[u8]) -> Vec<u8> {
    match format {
        Gzip => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(data).unwrap();
            encoder.finish().unwrap()
        }
        Zstd => {
            let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
            encoder.include_checksum(true).unwrap();
            encoder.write_all(data).unwrap();
            encoder.finish().unwrap()
        }
        Xz => {
            let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
            encoder.write_all(data).unwrap();
            encoder.finish().unwrap()
        }
    }
}

/// A zstd frame that holds no data.
fn skippable(content: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x53, 0x2a, 0x4d, 0x18];
    frame.extend(u32::try_from(content.len()).unwrap().to_le_bytes());
    frame.extend(content);
    frame
}

/// A gzip header with everything it can have.
fn rich_gzip(data: &[u8]) -> Vec<u8> {
    let mut member = vec![0x1f, 0x8b, 8, 0b1_1111, 1, 2, 3, 4, 0, 3];
    member.extend(b"\x05\0extra");
    member.extend(b"name\0comment\0");
    let mut sum = Crc::new();
    sum.update(&member);
    member.extend(&sum.sum().to_le_bytes()[..2]);
    member.extend(&pack(Gzip, data)[10..]);
    member
}

#[test]
fn all_members_are_decoded() {
    let dir = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let mut file = Vec::new();
        let mut data = Vec::new();
        for i in 0..(if format == Gzip { 10_000 } else { 1000 }) {
            let part = if i % 7 == 0 {
                String::new()
            } else {
                format!("line {i}\npart")
            };
            file.extend(pack(format, part.as_bytes()));
            data.extend(part.as_bytes());
            match (format, i % 5) {
                (Zstd, 0) => file.extend(skippable(b"between")),
                (Zstd, 1) => file.extend(skippable(b"")),
                (Xz, rest) => file.extend(vec![0; 4 * rest]),
                _ => {}
            }
        }
        let path = write(dir.path(), "members", &file);
        let (decoded, error) = decode(&path);
        assert!(error.is_none(), "{error:?}");
        assert_eq!(decoded, data);
        let options = LineOptions::default();
        assert_eq!(read_with(&path, &options).unwrap(), naive(&data, b'\n'));
    }
}

#[test]
fn empty_members_and_frames_without_data_are_empty_input() {
    let dir = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let one = pack(format, b"");
        for file in [one.clone(), one.repeat(3)] {
            let (data, error) = decode(&write(dir.path(), "empty", &file));
            assert!(data.is_empty() && error.is_none(), "{error:?}");
        }
    }
    let file = [skippable(b"first"), pack(Zstd, b"x"), skippable(b"last")].concat();
    let (data, error) = decode(&write(dir.path(), "skippable", &file));
    assert_eq!(data, b"x");
    assert!(error.is_none());
    let (data, error) = decode(&write(dir.path(), "skippable", &skippable(b"only")));
    assert!(data.is_empty() && error.is_none());
}

#[test]
fn large_members_of_any_content_are_decoded() {
    let dir = tempfile::tempdir().unwrap();
    let mut noise = Vec::new();
    let mut state = 1u64;
    for _ in 0..200_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        noise.extend(&state.to_le_bytes()[4..]);
    }
    let zeros = vec![0; 5_000_000];
    for format in FORMATS {
        for data in [&noise, &zeros] {
            let file = [pack(format, data), pack(format, b"end")].concat();
            let (decoded, error) = decode(&write(dir.path(), "large", &file));
            assert!(error.is_none(), "{error:?}");
            assert!(decoded == [&data[..], b"end"].concat());
        }
    }
}

#[test]
fn every_truncation_is_told_from_the_end() {
    let dir = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let first = match format {
            Gzip => rich_gzip(b"first part"),
            Zstd => [pack(format, b"first part"), skippable(b"abc")].concat(),
            Xz => [pack(format, b"first part"), vec![0; 8]].concat(),
        };
        let bounds = match format {
            Gzip => vec![first.len()],
            Zstd => vec![first.len() - 11, first.len()],
            Xz => vec![first.len() - 8, first.len() - 4, first.len()],
        };
        let file = [&first[..], &pack(format, b"second part")].concat();
        for cut in 1..file.len() {
            let path = write(dir.path(), "cut", &file[..cut]);
            let (data, error) = decode(&path);
            if cut == 1 {
                // One byte is not enough to say.
                assert_eq!(data, file[..1]);
                continue;
            }
            assert!(b"first partsecond part".starts_with(&data[..]));
            if bounds.contains(&cut) {
                assert!(error.is_none(), "{format} cut at {cut}: {error:?}");
                assert_eq!(data, b"first part");
                continue;
            }
            let error = error.unwrap_or_else(|| panic!("{format} cut at {cut} is accepted"));
            assert!(error.name.ends_with("cut"));
            let at = Place {
                decoded: data.len() as u64,
                raw: cut as u64,
            };
            match error.fault {
                Fault::Truncated { format: f, at: a } => assert_eq!((f, a), (format, at)),
                // Too little to be known as the start of a member; or an odd padding.
                Fault::Trailing { at: a, found, .. } => {
                    assert_eq!(a.raw + found.len() as u64, at.raw);
                    assert!(found.len() < Compression::LONGEST_MARK);
                }
                Fault::Corrupt { at: a, .. } => assert_eq!((format, a), (Xz, at)),
                other => panic!("{format} cut at {cut}: {other:?}"),
            }
        }
    }
}

#[test]
fn whatever_follows_the_last_member_is_named() {
    let dir = tempfile::tempdir().unwrap();
    for format in FORMATS {
        for members in [1, 3] {
            let good = pack(format, b"data\n").repeat(members);
            let others = FORMATS.into_iter().filter(|other| *other != format);
            let mut tails: Vec<Vec<u8>> = others.map(|other| pack(other, b"more")).collect();
            tails.extend([b"x".to_vec(), b"\n".to_vec(), b"longer garbage".to_vec()]);
            if format != Xz {
                tails.extend([vec![0], vec![0; 4], vec![0; 5000]]);
            }
            for tail in tails {
                let path = write(dir.path(), "tail", &[&good[..], &tail].concat());
                let (data, error) = decode(&path);
                assert_eq!(data, b"data\n".repeat(members));
                let error = error.unwrap();
                let message = error.to_string();
                let Fault::Trailing {
                    format: f,
                    at,
                    found,
                } = error.fault
                else {
                    panic!("{format}, {tail:?}: {message}");
                };
                assert_eq!((f, at.decoded), (format, data.len() as u64));
                assert_eq!(at.raw, good.len() as u64);
                assert_eq!(found, tail[..tail.len().min(8)]);
                assert!(
                    message.contains(&format!(" comes {:02x}", tail[0])),
                    "{message}"
                );
            }
        }
    }
}

#[test]
fn padding_of_xz_comes_in_fours() {
    let dir = tempfile::tempdir().unwrap();
    let one = pack(Xz, b"data");
    for zeros in (0..9).chain([200_000, 200_002]) {
        for more in [&b""[..], &one] {
            let file = [&one[..], &vec![0; zeros], more].concat();
            let (data, error) = decode(&write(dir.path(), "padded", &file));
            if zeros % 4 == 0 {
                assert!(error.is_none(), "{error:?}");
                assert_eq!(data.len(), if more.is_empty() { 4 } else { 8 });
            } else {
                let message = error.unwrap().to_string();
                assert!(
                    message.contains(&format!("{zeros} zero bytes")),
                    "{message}"
                );
            }
        }
    }
}

#[test]
fn a_flipped_bit_is_an_error_or_makes_no_difference() {
    let dir = tempfile::tempdir().unwrap();
    let data = b"some text, some more text, and some more text again\n";
    for format in FORMATS {
        let file = match format {
            Gzip => rich_gzip(data),
            _ => pack(format, data),
        };
        let mark = if format == Gzip { 2 } else { 6 };
        let mut refused = 0;
        for bit in 0..file.len() * 8 {
            let mut flipped = file.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let (decoded, error) = decode(&write(dir.path(), "flipped", &flipped));
            refused += usize::from(error.is_some());
            // Without its mark it is no such file.
            let is_plain = bit / 8 < mark && decoded == flipped;
            assert!(
                error.is_some() || decoded == data || is_plain,
                "{format}, bit {bit}"
            );
        }
        assert!(refused > file.len() * 8 * 3 / 4, "{format}: {refused}");
    }
}

proptest! {
    /// Whatever comes, there is an answer: no panic, no endless loop, no data from nowhere.
    #[test]
    fn damaged_files_end_in_an_error(
        format in prop::sample::select(&FORMATS[..]),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        noise: bool,
    ) {
        let data = b"some text, some more text\n".repeat(20);
        let mut file = [rich_gzip(&data), pack(Zstd, &data), pack(Xz, &data)]
            [FORMATS.iter().position(|&other| other == format).unwrap()]
            .clone();
        let whole = file.clone();
        for (at, byte) in damage {
            let at = at.index(file.len());
            file[at] = byte;
            if noise {
                // All that follows the mark and the first damage.
                for byte in &mut file[at.max(6)..] {
                    *byte = byte.wrapping_mul(167).wrapping_add(41);
                }
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let (decoded, error) = decode(&write(dir.path(), "damaged", &file));
        let untouched = file == whole || decoded == data || decoded == file;
        prop_assert!(error.is_some() || untouched);
    }
}

#[test]
fn what_is_wrong_in_a_gzip_member_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let good = rich_gzip(b"data");
    let end = good.len();
    for (at, why) in [
        (2, "compression method"),
        (3, "the header"),
        (5, "checksum of the header"),
        (end - 8, "the checksum of the data"),
        (end - 4, "the data is 4 bytes long, but the member says 5"),
    ] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        let message = decode(&write(dir.path(), "bad", &bad))
            .1
            .unwrap()
            .to_string();
        assert!(message.contains(why), "{message}");
    }
    let mut bad = good;
    bad[3] |= 0x80;
    let message = decode(&write(dir.path(), "bad", &bad))
        .1
        .unwrap()
        .to_string();
    assert!(message.contains("reserved bits"), "{message}");
}

#[test]
fn members_may_come_byte_by_byte() {
    let data = b"first line\nsecond line\nthird";
    for format in FORMATS {
        let one = if format == Gzip {
            rich_gzip(data)
        } else {
            pack(format, data)
        };
        let file = [&one[..], &pack(format, b""), &one].concat();
        let input = piped(move |pipe| {
            for byte in file {
                pipe.write_all(&[byte]).unwrap();
                std::thread::yield_now();
            }
        });
        assert_eq!(input.compression(), Some(format));
        let (records, error) = drain(&mut Lines::new(input, &LineOptions::default()), 2);
        assert!(error.is_none(), "{error:?}");
        assert_eq!(records, naive(&data.repeat(2), b'\n'));
    }
}

#[test]
fn a_window_that_is_too_large_is_refused_before_it_is_allocated() {
    let dir = tempfile::tempdir().unwrap();
    // No content size, a window of 2^28 or 2^27 bytes, one last raw block of 3 bytes.
    let frame = |log: u8| {
        let mut frame = vec![
            0x28,
            0xb5,
            0x2f,
            0xfd,
            0,
            (log - 10) << 3,
            0b001 | 3 << 3,
            0,
            0,
        ];
        frame.extend(b"abc");
        frame
    };
    let path = write(dir.path(), "zstd", &frame(27));
    let (data, error) = decode(&path);
    assert_eq!(data, b"abc");
    assert!(error.is_none(), "{error:?}");
    let error = decode(&write(dir.path(), "zstd", &frame(28))).1.unwrap();
    assert!(
        matches!(error.fault, Fault::Window { format: Zstd, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("--long=31"), "{error}");

    // The header of the first block: size, flags, filter 0x21, 1 byte of properties (the
    // size of the dictionary), padding, checksum.
    let mut file = pack(Xz, b"abc");
    let len = (usize::from(file[12]) + 1) * 4;
    assert_eq!(file[14..16], [0x21, 1]);
    for (property, allowed) in [(30, true), (31, false), (40, false)] {
        file[16] = property;
        let mut sum = Crc::new();
        sum.update(&file[12..12 + len - 4]);
        file[12 + len - 4..12 + len].copy_from_slice(&sum.sum().to_le_bytes());
        let (data, error) = decode(&write(dir.path(), "xz", &file));
        if allowed {
            assert_eq!(data, b"abc");
            assert!(error.is_none(), "{error:?}");
        } else {
            let error = error.unwrap();
            assert!(
                matches!(error.fault, Fault::Window { format: Xz, .. }),
                "{error:?}"
            );
        }
    }
}

#[test]
fn text_that_starts_like_a_mark_is_text() {
    let dir = tempfile::tempdir().unwrap();
    for text in [
        &b"P"[..],
        b"P*",
        b"P*M",
        b"P*M\n",
        b"(",
        b"(x\n",
        b"\x1f\n",
        b"\xfd\n",
        b"\xfd",
    ] {
        let (data, error) = decode(&write(dir.path(), "text", text));
        assert!(error.is_none(), "{error:?}");
        assert_eq!(data, text);
    }
    for start in [&b"\x28\xb5"[..], b"\x28\xb5\x2f", b"\xfd7zXZ", b"\x1f\x8b"] {
        let error = decode(&write(dir.path(), "start", start)).1.unwrap();
        assert!(matches!(error.fault, Fault::Truncated { .. }), "{error:?}");
    }
}

#[test]
fn messages_say_where_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = pack(Gzip, &b"0123456789".repeat(150));
    file.extend(b"junk");
    let path = write(dir.path(), "a.gz", &file);
    let message = decode(&path).1.unwrap().to_string();
    let place = format!("decoded byte 1,500 (byte {} of the file)", file.len() - 4);
    assert!(message.starts_with(path.to_str().unwrap()), "{message}");
    assert!(message.contains(&place), "{message}");
    assert!(
        message.contains("comes 6a 75 6e 6b, which starts no further member"),
        "{message}"
    );
    file.truncate(file.len() - 8);
    let message = decode(&write(dir.path(), "a.gz", &file))
        .1
        .unwrap()
        .to_string();
    assert!(
        message.contains("ends inside a gzip member, at decoded byte 1,500"),
        "{message}"
    );
}
