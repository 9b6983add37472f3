//! Every flip of a bit, every truncation and every extension is noticed.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use super::*;
use crate::error::FormatError;
use crate::format::read::{Front, verify_source};

/// Refused by whatever reads all of it.
fn assert_refused(bytes: &[u8], secret: Option<&Secret>, how: &str) {
    assert!(AnyFilter::from_bytes(bytes, secret).is_err(), "{how}");
    assert!(verify_source(bytes).is_err(), "{how}");
}

#[test]
fn every_flipped_bit_is_noticed() {
    for sample in samples() {
        let secret = sample.secret.as_ref();
        let mut bytes = sample.filter.to_bytes().unwrap();
        let payload = {
            let front = Front::read(bytes.as_slice()).unwrap();
            front.header.sections.payload_offset
        };
        for at in 0..bytes.len() {
            for bit in 0..8 {
                bytes[at] ^= 1 << bit;
                let how = format!("{}: bit {bit} of byte {at}", sample.name);
                assert_refused(&bytes, secret, &how);
                // What `open_mapped` and `inspect` look at.
                let front = Front::read(bytes.as_slice());
                assert_eq!(front.is_err(), (at as u64) < payload, "{how}");
                bytes[at] ^= 1 << bit;
            }
        }
        assert!(AnyFilter::from_bytes(&bytes, secret).is_ok());
    }
}

#[test]
fn every_truncation_and_extension_is_noticed() {
    for sample in samples() {
        let secret = sample.secret.as_ref();
        let bytes = sample.filter.to_bytes().unwrap();
        for len in 0..bytes.len() {
            let how = format!("{}: cut to {len}", sample.name);
            assert_refused(&bytes[..len], secret, &how);
            let Err(Error::Format(error)) = Front::read(&bytes[..len]) else {
                panic!("{how} was not noticed, or not as damage");
            };
            assert!(
                matches!(error, FormatError::Length { .. }),
                "{how}: {error}"
            );
        }
        for more in [1, 7, 8, 64, 4096] {
            for fill in [0, 0xff] {
                let mut longer = bytes.clone();
                longer.resize(bytes.len() + more, fill);
                assert_refused(&longer, secret, sample.name);
                let error = Front::read(longer.as_slice()).unwrap_err().to_string();
                assert!(error.contains("something was appended"), "{error}");
            }
        }
    }
}

/// The same over a real file, by every function that opens one.
#[test]
fn damage_on_disk_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    for sample in samples() {
        let secret = sample.secret.as_ref();
        let path = directory.path().join("filter");
        sample.filter.save(&path, Overwrite::Replace).unwrap();
        let bytes = fs::read(&path).unwrap();
        let payload = crate::inspect(&path).unwrap().payload_offset;
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        for at in (0..bytes.len() as u64).step_by(5) {
            let byte = bytes[usize::try_from(at).unwrap()];
            file.write_all_at(&[byte ^ 0x10], at).unwrap();
            assert!(AnyFilter::open(&path, secret).is_err(), "{at}");
            assert!(crate::verify(&path).is_err(), "{at}");
            if at < payload {
                assert!(AnyFilter::open_mapped(&path, secret).is_err(), "{at}");
                assert!(crate::inspect(&path).is_err(), "{at}");
            }
            file.write_all_at(&[byte], at).unwrap();
        }
        for len in (0..bytes.len() as u64).rev().step_by(3) {
            file.set_len(len).unwrap();
            assert!(AnyFilter::open(&path, secret).is_err(), "{len}");
            assert!(AnyFilter::open_mapped(&path, secret).is_err(), "{len}");
            assert!(crate::verify(&path).is_err(), "{len}");
            assert!(crate::inspect(&path).is_err(), "{len}");
        }
    }
}

/// A text-mode transfer changes line ends: the magic has one.
#[test]
fn text_mode_transfers_are_noticed() {
    let bytes = samples()[0].filter.to_bytes().unwrap();
    let unix: Vec<u8> = bytes
        .iter()
        .copied()
        .filter(|&byte| byte != b'\r')
        .collect();
    let stripped: Vec<u8> = bytes.iter().map(|&byte| byte & 0x7f).collect();
    for bytes in [unix, stripped] {
        let error = AnyFilter::from_bytes(&bytes, None).unwrap_err();
        let Error::Format(error) = error else {
            panic!("{error}");
        };
        assert!(matches!(error, FormatError::NotPetal { .. }), "{error}");
    }
}
