//! Filters in pieces: there and back, damaged, too large.

use super::*;
use crate::error::FormatError;
use crate::format::{Assembly, FileAssembly};

/// Put together of pieces of at most so many bytes.
fn reassembled(filter: &AnyFilter, secret: Option<&Secret>, most: usize) -> AnyFilter {
    let mut assembly = Assembly::new(&filter.front().unwrap(), u64::MAX).unwrap();
    let len = filter.payload_len().unwrap();
    assert_eq!(assembly.payload_len(), len);
    while assembly.come() < len {
        let piece = filter.payload_piece(assembly.come(), most).unwrap();
        assembly.push(&piece).unwrap();
        // What came is given back as it came.
        let last = assembly.come() - piece.len() as u64;
        assert_eq!(assembly.payload_piece(last, most).unwrap(), piece);
        assert!(
            assembly
                .payload_piece(assembly.come(), most)
                .unwrap()
                .is_empty()
        );
    }
    assembly.finish(secret).unwrap()
}

#[test]
fn every_kind_is_put_together_of_pieces() {
    for sample in samples() {
        let secret = sample.secret.as_ref();
        for most in [8, 24, 4096, 1 << 20] {
            assert_same(&sample.filter, &reassembled(&sample.filter, secret, most));
        }
        let bytes = sample.filter.to_bytes().unwrap();
        let (front, table) = sample.filter.file_ends().unwrap();
        let payload = sample.filter.payload_piece(0, bytes.len() / 8 * 8).unwrap();
        assert_eq!([front, payload, table].concat(), bytes);
        for len in [1, 7, 64, 1000, bytes.len()] {
            let mut file = FileAssembly::new(u64::MAX);
            for piece in bytes.chunks(len) {
                assert!(!file.is_complete());
                file.push(piece).unwrap();
            }
            assert!(file.is_complete());
            assert_eq!(file.come(), bytes.len() as u64);
            assert_same(&sample.filter, &file.finish(secret).unwrap());
        }
    }
}

#[test]
fn a_large_file_in_pieces_is_what_it_was() {
    let plan = GrowthPlan::open(100_000, 0.01).unwrap();
    let mut filter = Growable::with_plan(Identity::new(KeyType::Bytes), plan).unwrap();
    for digest in digests(2_000_000) {
        filter.insert_bits(digest).unwrap();
    }
    let filter = AnyFilter::from(filter);
    assert_same(&filter, &reassembled(&filter, None, 1 << 20));
    let bytes = filter.to_bytes().unwrap();
    let mut file = FileAssembly::new(u64::MAX);
    for piece in bytes.chunks(777_777) {
        file.push(piece).unwrap();
        // An interrupted assembly can be continued from what it gives back.
        let mut again = FileAssembly::new(u64::MAX);
        while again.come() < file.come() {
            let kept = file.piece(again.come(), 1 << 20).unwrap();
            assert!(!kept.is_empty());
            again.push(&kept).unwrap();
        }
        file = again;
    }
    assert_same(&filter, &file.finish(None).unwrap());
}

#[test]
fn damage_of_pieces_is_noticed() {
    for sample in samples() {
        let secret = sample.secret.as_ref();
        let bytes = sample.filter.to_bytes().unwrap();
        let read = |bytes: &[u8]| {
            let mut file = FileAssembly::new(u64::MAX);
            for piece in bytes.chunks(100) {
                file.push(piece)?;
            }
            file.finish(secret)
        };
        for at in (0..bytes.len()).step_by(5) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(read(&damaged).is_err(), "{}: byte {at}", sample.name);
            assert!(read(&bytes[..at]).is_err(), "{}: cut to {at}", sample.name);
        }
        assert!(read(&[&bytes[..], &[0]].concat()).is_err());

        let front = sample.filter.front().unwrap();
        for at in 0..front.len() {
            let mut damaged = front.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(Assembly::new(&damaged, u64::MAX).is_err());
            assert!(Assembly::new(&front[..at], u64::MAX).is_err());
        }
        let len = sample.filter.payload_len().unwrap();
        let Some(less) = len.checked_sub(1) else {
            continue; // of no keys, which takes no words
        };
        let error = Assembly::new(&front, less).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
        let mut short = Assembly::new(&front, u64::MAX).unwrap();
        for len in [1, 9, 8 << 20] {
            assert!(short.push(&vec![0; len]).is_err());
        }
        let error = short.finish(secret).unwrap_err();
        assert!(matches!(error, Error::Format(FormatError::Length { .. })));
    }
}

#[test]
fn growth_by_another_factor_is_kept() {
    for (factor, stages) in [(1, 5), (3, 3), (10, 2)] {
        for plan in [
            GrowthPlan::open(100, 0.01).unwrap(),
            GrowthPlan::ceiling(100, 5000, 0.01).unwrap(),
        ] {
            let plan = plan.with_factor(factor).unwrap();
            let mut filter = Growable::with_plan(Identity::new(KeyType::Int), plan).unwrap();
            for digest in digests(500) {
                filter.insert_bits(digest).unwrap();
            }
            assert_eq!(filter.stages().len(), stages);
            let any = AnyFilter::from(filter);
            let read = AnyFilter::from_bytes(&any.to_bytes().unwrap(), None).unwrap();
            assert_same(&any, &read);
            let AnyFilter::Growable(read) = read else {
                panic!("another kind");
            };
            assert_eq!(*read.plan(), plan);
        }
    }
}

/// A table is checked as it comes, and the verdict is that of a check at the end.
#[test]
fn a_table_in_pieces_is_judged_as_a_whole_one() {
    let promise = Promise {
        items: 150_000,
        error: 0.01,
    };
    let mut filter = Deletable::sized(Identity::new(KeyType::Bytes), promise).unwrap();
    for digest in digests(120_000) {
        for _ in 0..=digest % 4 / 3 {
            filter.insert_bits(digest).unwrap();
        }
    }
    for empty in [false, true] {
        let filter = AnyFilter::from(if empty {
            Deletable::sized(Identity::new(KeyType::Bytes), promise).unwrap()
        } else {
            std::mem::replace(
                &mut filter,
                Deletable::sized(Identity::new(KeyType::Bytes), promise).unwrap(),
            )
        });
        assert_same(&filter, &reassembled(&filter, None, 4096));
        let front = filter.front().unwrap();
        let len = usize::try_from(filter.payload_len().unwrap()).unwrap();
        let payload = filter.payload_piece(0, len).unwrap();
        let judged = |payload: &[u8], most: usize| {
            let mut assembly = Assembly::new(&front, u64::MAX).unwrap();
            for piece in payload.chunks(most) {
                assembly.push(piece).unwrap();
            }
            assembly.finish(None).is_ok()
        };
        let mut refused = 0;
        for draw in digests(60) {
            let mut damaged = payload.clone();
            let at = usize::try_from(draw % payload.len() as u64).unwrap();
            damaged[at] ^= 1 << (draw >> 60 & 7);
            let whole = judged(&damaged, len);
            assert_eq!(judged(&damaged, 8 * 1000), whole, "byte {at}");
            refused += u32::from(!whole);
        }
        assert!(refused >= 20, "{refused}");
    }
}
