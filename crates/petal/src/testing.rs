//! What the unit tests of several modules share.

use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;

/// So many cases for a property, the same ones in every run.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(20_261_130),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Two keys with one digest under the default hasher: they begin with the first bytes of XXH3's own
/// secret, which makes a factor of the hash 0, so that the eight bytes behind do not count.
pub(crate) fn shared_digest() -> [Vec<u8>; 2] {
    let first = *b"\xb8\xfe\x6c\x39\x23\xa4\x4b\xbe";
    [b"one key.", b"another!"].map(|middle| [&first, &middle[..], &[b'x'; 16]].concat())
}
