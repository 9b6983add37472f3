//! Files of petal's on disk: mapped, looked at, checked, and written in place.

#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use petal::{AnyFilter, MappedWriter};
use petal_fuzz::{reseal_file, use_filter};

fuzz_target!(|data: &[u8]| {
    let folder = std::env::temp_dir();
    let path = folder.join(format!("petal-fuzz-{}.petal", std::process::id()));
    let mut sealed = data.to_vec();
    reseal_file(&mut sealed);
    for bytes in [data, &sealed] {
        fs::write(&path, bytes).expect("the temporary folder takes a file");
        let _ = petal::inspect(&path);
        let whole = petal::verify(&path).is_ok();
        let mapped = AnyFilter::open_mapped(&path, None);
        let read = AnyFilter::from_bytes(bytes, None);
        // Mapping checks no payload; reading does.
        if read.is_ok() {
            assert!(mapped.is_ok() && whole);
        }
        if let Ok(filter) = mapped {
            use_filter(filter);
        }
        if let Ok(mut writer) = MappedWriter::open(&path, None) {
            let _ = (writer.insert_bytes(b"written"), writer.insert_int(9));
            let _ = writer.commit();
        }
        let _ = MappedWriter::recover(&path, None);
    }
    let _ = fs::remove_file(&path);
});
