//! Filters of other systems: recognised, and read as what they seem to be or are said to be.

#![no_main]

use libfuzzer_sys::fuzz_target;
use petal_interop::{ForeignKey, Format, ReadOptions, read, recognise};

fuzz_target!(|data: &[u8]| {
    let seems = recognise(data);
    let said = data.first().and_then(|&first| {
        let formats: Vec<Format> = Format::ALL.into_iter().collect();
        formats
            .get(usize::from(first) % (2 * formats.len()))
            .copied()
    });
    let mut options = vec![(ReadOptions::new(), data)];
    options.extend(seems.map(|format| (ReadOptions::new().format(format), data)));
    options.extend(said.map(|format| (ReadOptions::new().format(format), &data[1..])));
    for (options, bytes) in options {
        let Ok(mut filter) = read(bytes.to_vec(), &options) else {
            continue;
        };
        let _ = (filter.parameters(), filter.count(), filter.estimated_len());
        let _ = (filter.fill(), filter.error_now());
        for key in [
            ForeignKey::Text("key"),
            ForeignKey::Bytes(b"key"),
            ForeignKey::I64(-3),
        ] {
            let _ = (filter.contains(key), filter.times(key));
            if matches!(filter.insert(key), Ok(true)) {
                assert!(filter.contains(key).expect("it took the key"));
            }
        }
        let _ = filter.to_bytes();
    }
});
