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
