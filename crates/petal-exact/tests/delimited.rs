//! Records of readers: what ends them, long ones, and none.

use std::io::Cursor;

use petal_exact::*;
use proptest::prelude::*;

use crate::model::options;

/// The distinct lines of some bytes, joined again.
fn distinct(bytes: &[u8], delimiter: u8) -> Vec<Vec<u8>> {
    let source = Delimited::new(delimiter, || Ok(Cursor::new(bytes)));
    let mut lines = Vec::new();
    let operation = Operation::Dedup(Which::First);
    Job::new(operation, &[source], &options(1 << 20))
        .unwrap()
        .run(&mut |batch, kept| {
            lines.extend(kept.indices.iter().map(|&i| batch[i].clone()));
            Ok(())
        })
        .unwrap();
    lines
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn records_are_what_lies_between_delimiters(
        bytes in proptest::collection::vec(prop_oneof![3 => b'a'..b'd', 1 => Just(b'\n')], 0..3000),
    ) {
        let mut expected: Vec<Vec<u8>> = Vec::new();
        let whole = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        for line in whole.split(|&byte| byte == b'\n') {
            if !bytes.is_empty() && !expected.iter().any(|known| known == line) {
                expected.push(line.to_vec());
            }
        }
        prop_assert_eq!(distinct(&bytes, b'\n'), expected);
    }
}

#[test]
fn long_records_and_other_delimiters() {
    let long = vec![b'x'; 10 << 20];
    let mut bytes = long.clone();
    bytes.extend_from_slice(b"\0\xff\n\0\xff\n\0");
    bytes.extend_from_slice(&long);
    assert_eq!(distinct(&bytes, 0), [long, b"\xff\n".to_vec()]);
    assert_eq!(distinct(b"", b'\n').len(), 0);
}
