//! What several targets do with what they opened, and right checksums over wrong contents.
//!
//! Owns no property of its own: each target says what it looks for.

use petal::AnyFilter;
use twox_hash::XxHash3_64;

/// Bytes of a file's header.
const HEADER: usize = 192;
/// Bytes of the payload that one checksum is of.
const PIECE: usize = 1 << 20;

/// Gives a file of petal's the checksums of its contents, where there is room for them: what
/// is behind the checksums is not found otherwise.
pub fn reseal_file(bytes: &mut [u8]) {
    let place = |bytes: &[u8], at: usize| {
        let word = bytes.get(at..)?.first_chunk()?;
        usize::try_from(u64::from_le_bytes(*word)).ok()
    };
    let put = |bytes: &mut [u8], at: usize, sum: u64| {
        if let Some(word) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            *word = sum.to_le_bytes();
        }
    };
    let sum_of = |bytes: &[u8], from: usize, len: usize| {
        let end = from.checked_add(len)?;
        bytes.get(from..end).map(XxHash3_64::oneshot)
    };
    let Some([metadata, payload, len, table]) = [96, 104, 112, 120]
        .map(|at| place(bytes, at))
        .into_iter()
        .collect::<Option<Vec<usize>>>()
        .and_then(|places| <[usize; 4]>::try_from(places).ok())
    else {
        return;
    };
    if let Some(sum) = sum_of(bytes, HEADER, metadata) {
        put(bytes, 136, sum);
    }
    let pieces = len.min(bytes.len()).div_ceil(PIECE);
    for piece in 0..pieces {
        let from = piece * PIECE;
        let sum = payload
            .checked_add(from)
            .and_then(|start| sum_of(bytes, start, (len - from).min(PIECE)));
        if let (Some(sum), Some(at)) = (sum, table.checked_add(8 * piece)) {
            put(bytes, at, sum);
        }
    }
    if let Some(sum) = sum_of(bytes, table, 8 * pieces) {
        put(bytes, 144, sum);
    }
    if let Some(sum) = sum_of(bytes, 0, HEADER - 8) {
        put(bytes, HEADER - 8, sum);
    }
}

/// Gives a file on the wire, which ends with the checksum of all before, that checksum.
pub fn reseal_wire(bytes: &mut [u8]) {
    if let Some((rest, sum)) = bytes.split_last_chunk_mut::<8>() {
        *sum = XxHash3_64::oneshot(rest).to_le_bytes();
    }
}

/// Asks a filter everything that it can be asked, and adds to it. Whatever was opened answers,
/// and finds what was added.
pub fn use_filter(mut filter: AnyFilter) {
    use petal::Contains as _;
    let _ = (filter.bytes(), filter.room(), filter.about().promise());
    let ratios = [filter.fill(), filter.error_now()];
    assert!(
        ratios.iter().all(|ratio| (0.0..=1.0).contains(ratio)),
        "shares of {ratios:?}"
    );
    assert!(filter.estimated_len() >= 0.0);
    let _ = (filter.contains_bytes(b"key"), filter.contains_int(7));
    let _ = (filter.count_bytes(b"key"), filter.count_int(7));
    if filter.insert_bytes(b"added").is_ok() {
        assert!(filter.contains_bytes(b"added").unwrap());
    }
    if filter.insert_int(-5).is_ok() {
        assert!(filter.contains_int(-5).unwrap());
    }
    let _ = (filter.remove_bytes(b"added"), filter.remove_int(-5));
}
