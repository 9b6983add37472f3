//! The examples of coded runs in `FORMAT.md` are what the code makes.

use std::fmt::Write;

use crate::wire::model;

#[test]
fn coded_runs_are_stated() {
    let format = include_str!("../../../../../FORMAT.md");
    let mut lines = String::new();
    let mut sparse = [0u64; 8];
    sparse[2] = 0x0100_0000;
    sparse[7] = 1 << 63 | 1;
    for words in [
        &[0u64, 0][..],
        &[u64::MAX; 3],
        &[0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210],
        &[0x0001_0000_0800_0101, 0x0000_0020_0000_4000],
        &[0xfffe_ffff_ffff_ffff, 0xffff_dfff_fffb_ff7f],
        &sparse,
    ] {
        let mut bytes = Vec::new();
        model::encode(words, &mut bytes);
        let hex = |bytes: &[u8]| {
            let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            hex.join(" ")
        };
        let text: Vec<String> = words.iter().map(|word| format!("{word:x}")).collect();
        let set = u32::from_le_bytes(*bytes.first_chunk().unwrap());
        writeln!(lines, "{}", text.join(" ")).unwrap();
        writeln!(lines, "    K = {set}: {}", hex(&bytes)).unwrap();
    }
    assert!(format.contains(&lines), "FORMAT.md lacks:\n{lines}");
}
