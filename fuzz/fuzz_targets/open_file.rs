//! Files of petal's, opened from memory: any bytes, and any contents under right checksums.
//! What opens is written as it was read, and can be used.

#![no_main]

use libfuzzer_sys::fuzz_target;
use petal::{AnyFilter, Secret};
use petal_fuzz::{reseal_file, use_filter};

fuzz_target!(|data: &[u8]| {
    let secret = Secret::new(*b"sixteen bytes ok");
    let _ = AnyFilter::from_bytes(data, Some(&secret));
    let mut sealed = data.to_vec();
    reseal_file(&mut sealed);
    for secret in [None, Some(&secret)] {
        if let Ok(filter) = AnyFilter::from_bytes(&sealed, secret) {
            let written = filter.to_bytes().expect("what opens can be written");
            let again = AnyFilter::from_bytes(&written, secret).expect("and opened again");
            assert_eq!(again.to_bytes().expect("as before"), written);
            use_filter(filter);
        }
    }
});
