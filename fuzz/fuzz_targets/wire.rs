//! Packed filters and deltas: any bytes, and any contents under a right checksum. What
//! unpacks is packed to something that unpacks to the same.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use petal::{AnyFilter, BloomFilter, wire};
use petal_fuzz::{reseal_wire, use_filter};

/// What deltas are applied to.
static OLD: LazyLock<Vec<AnyFilter>> = LazyLock::new(|| {
    let mut bloom = BloomFilter::<petal::Bytes>::new(300, 0.01).expect("a small filter");
    for key in 0..200u32 {
        bloom.insert(&key.to_le_bytes()[..]).expect("a key");
    }
    vec![bloom.into_inner().into()]
});

fuzz_target!(|data: &[u8]| {
    let mut sealed = data.to_vec();
    reseal_wire(&mut sealed);
    for bytes in [data, &sealed] {
        if let Ok(filter) = wire::unpack(bytes, None) {
            let packed = wire::pack(&filter).expect("what was unpacked can be packed");
            let again = wire::unpack(&packed, None).expect("and unpacked");
            assert_eq!(
                again.to_bytes().expect("a file"),
                filter.to_bytes().expect("the same file")
            );
            use_filter(filter);
        }
        for old in OLD.iter() {
            if let Ok(filter) = wire::apply_delta(old, bytes) {
                use_filter(filter);
            }
        }
    }
});
