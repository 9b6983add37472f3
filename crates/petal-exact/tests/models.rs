//! Every operation, in every method, against the model.

use petal_exact::*;
use proptest::prelude::*;

use crate::model::{Answer, Input, Record, answers, expected, input, key, options};

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        Just(Operation::Dedup(Which::First)),
        Just(Operation::Dedup(Which::NeverRepeated)),
        Just(Operation::Dedup(Which::Counted)),
        (1usize..4).prop_map(|at_least| Operation::Common { at_least }),
        Just(Operation::Common {
            at_least: usize::MAX
        }),
        Just(Operation::Except),
    ]
}

fn record(distinct: u32) -> impl Strategy<Value = Record> {
    prop_oneof![
        40 => (0..distinct).prop_map(key),
        // A hot key.
        4 => Just(key("hot")),
        1 => Just(Record::UnlikeAny),
        1 => Just(Record::LeftOut),
    ]
}

fn source() -> impl Strategy<Value = Input> {
    let records = prop_oneof![
        proptest::collection::vec(record(60), 0..100),
        proptest::collection::vec(record(3000), 0..1500),
        proptest::collection::vec(record(u32::MAX), 0..1500),
    ];
    // What is claimed may be right, unknown or wrong.
    (records, 0..5u8, 1usize..200).prop_map(|(records, claim, batch)| Input {
        claimed: match claim {
            0 => None,
            1 => Some(1),
            2 => Some(1_000_000),
            _ => Some(records.len() as u64),
        },
        records,
        batch,
    })
}

fn clamped(operation: Operation, sources: usize) -> Operation {
    match operation {
        Operation::Common { at_least } => Operation::Common {
            at_least: at_least.min(sources),
        },
        other => other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 250,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(5),
        ..ProptestConfig::default()
    })]
    #[test]
    fn answers_are_those_of_a_model(
        operation in operation(),
        inputs in proptest::collection::vec(source(), 1..4),
        memory in prop_oneof![Just(16u64 << 10), 16u64 << 10..200 << 10, Just(8u64 << 20)],
        threads in 1usize..4,
        multi: bool,
        verify in prop_oneof![4 => Just(false), 1 => Just(true)],
        overlap in prop_oneof![Just(None), Just(Some(0.0)), Just(Some(0.3)), Just(Some(1.0))],
    ) {
        let operation = clamped(operation, inputs.len());
        let options = Options { threads, multi, verify, overlap, ..options(memory) };
        match answers(operation, &inputs, &options) {
            Ok((got, outcome)) => {
                let multi = multi && !matches!(operation, Operation::Dedup(_));
                prop_assert_eq!(got, expected(operation, &inputs, multi));
                let records: Vec<u64> = inputs.iter().map(|i| i.records.len() as u64).collect();
                for (got, is) in outcome.records.iter().zip(records) {
                    // A record that cannot be kept any more need not be read.
                    prop_assert!(*got == is || *got == 0);
                }
            }
            // A million records that are claimed need bitmaps of 250 KB.
            Err(Error::NoMemory { .. }) => {
                prop_assert!(memory < 1 << 20 && inputs.iter().any(|i| i.claimed == Some(1_000_000)));
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
    }
}

/// Every method is used by some test, and says so.
#[test]
fn the_method_follows_from_memory_and_overlap() {
    let numbers = |range: std::ops::Range<u32>| input(range.map(key));
    let sources = [numbers(0..20_000), numbers(19_900..40_000)];
    let both = Operation::Common { at_least: 2 };
    let methods: Vec<Method> = [
        (8 << 20, None),
        (128 << 10, Some(0.005)),
        (64 << 10, None),
        (64 << 10, Some(0.3)),
    ]
    .into_iter()
    .map(|(memory, overlap)| {
        let options = Options {
            overlap,
            ..options(memory)
        };
        let planned = Job::new(both, &sources, &options).unwrap().plan().clone();
        let (got, outcome) = answers(both, &sources, &options).unwrap();
        let common: Vec<Answer> = (19_900..20_000).map(|i| (0, key(i), 1)).collect();
        assert_eq!(got, common);
        assert_eq!(outcome.method, planned.method);
        outcome.method
    })
    .collect();
    assert!(matches!(methods[0], Method::Memory));
    assert!(matches!(methods[1], Method::Filtered { .. }), "{methods:?}");
    assert!(matches!(methods[2], Method::Partitions { filter: 0, .. }));
    assert!(
        matches!(methods[3], Method::Partitions { filter: 1.., .. }),
        "{methods:?}"
    );
}

/// Two files of five billion lines of 64 bytes, which `docs/exact.md` works through.
struct FiveBillion;

impl Source for FiveBillion {
    type Batch = Vec<String>;
    type Error = Error;

    fn scan(&self, _: &mut Visit<'_, Vec<String>, Error>) -> Result<(), Error> {
        Ok(())
    }

    fn facts(&self) -> Facts {
        Facts {
            bytes: 320_000_000_000,
            records: Some(5_000_000_000),
            distinct_share: 1.0,
        }
    }
}

#[test]
fn the_worked_example_of_the_documentation() {
    let plan = |overlap| {
        let options = Options {
            threads: 2,
            overlap,
            ..options((4 << 30) - (12 << 20))
        };
        let both = Operation::Common { at_least: 2 };
        let sources = [FiveBillion, FiveBillion];
        let plan = Job::new(both, &sources, &options).unwrap().plan().clone();
        let billions = |bytes: u64| (bytes as f64 / 1e9).round();
        let steps: Vec<_> = plan
            .steps
            .iter()
            .map(|step| {
                (
                    billions(step.sources),
                    billions(step.read),
                    billions(step.written),
                )
            })
            .collect();
        assert!(plan.memory <= options.memory);
        let traffic = billions(plan.traffic());
        (plan.method, steps, traffic, plan.memory)
    };
    let (method, steps, traffic, memory) = plan(None);
    assert_eq!(method, Method::Partitions { bits: 8, filter: 0 });
    assert_eq!(
        steps,
        [(640.0, 0.0, 168.0), (0.0, 168.0, 0.0), (320.0, 0.0, 0.0)]
    );
    assert_eq!((traffic, memory / 100_000_000), (1296.0, 25));
    let (method, steps, traffic, memory) = plan(Some(0.01));
    assert!(matches!(
        method,
        Method::Partitions {
            bits: 8,
            filter: 2_500_000_000..
        }
    ));
    assert_eq!(
        steps,
        [(640.0, 0.0, 94.0), (0.0, 94.0, 0.0), (320.0, 0.0, 0.0)]
    );
    assert_eq!((traffic, memory / 100_000_000), (1149.0, 32));
}
