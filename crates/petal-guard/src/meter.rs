//! What a guard counts.
//!
//! Owns the metrics and their names. They go to the recorder of the `metrics` crate
//! that is installed when the guard is built, and to [`Stats`].

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use metrics::{Counter, Gauge, counter, gauge};

use crate::Layer;

/// A counter that can be read, too.
struct Metric {
    here: AtomicU64,
    there: Counter,
}

impl Metric {
    fn new(there: Counter) -> Self {
        Self {
            here: AtomicU64::new(0),
            there,
        }
    }

    fn add(&self) {
        self.here.fetch_add(1, Relaxed);
        self.there.increment(1);
    }

    fn get(&self) -> u64 {
        self.here.load(Relaxed)
    }
}

pub(crate) struct Meter {
    answers: [Metric; 4],
    stale: Metric,
    false_positives: Metric,
    unanswered: Metric,
    loads: Metric,
    errors: Metric,
    writes: Metric,
    rate: Gauge,
}

/// What a guard has counted since it was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Requests that the filter answered: the key is absent.
    pub filter: u64,
    /// Requests that the cache in this process answered.
    pub local: u64,
    /// Requests that the cache in Redis answered.
    pub shared: u64,
    /// Requests that storage answered, those that waited for another's load
    /// included.
    pub storage: u64,
    /// Requests answered with a value that was being loaded anew.
    pub stale: u64,
    /// Requests that the filter let pass, and whose key was absent.
    pub false_positives: u64,
    /// Requests of which the filter knew nothing: they went on.
    pub unanswered: u64,
    /// Loads from storage.
    pub loads: u64,
    /// Loads that failed.
    pub errors: u64,
    /// Writes through this guard.
    pub writes: u64,
}

impl Stats {
    /// The share of requests for absent keys that the filter let pass; `None`
    /// before the first. Keys that were removed count, since a Bloom filter keeps
    /// them.
    #[must_use]
    pub fn false_positive_rate(&self) -> Option<f64> {
        let absent = self.filter + self.false_positives;
        (absent > 0).then(|| self.false_positives as f64 / absent as f64)
    }
}

impl Meter {
    pub(crate) fn new(guard: &str) -> Self {
        let name = || guard.to_owned();
        let answers = |layer: &'static str| {
            Metric::new(counter!("petal_guard_answers_total", "guard" => name(), "layer" => layer))
        };
        Self {
            answers: ["filter", "local", "shared", "storage"].map(answers),
            stale: Metric::new(counter!("petal_guard_stale_total", "guard" => name())),
            false_positives: Metric::new(
                counter!("petal_guard_false_positives_total", "guard" => name()),
            ),
            unanswered: Metric::new(
                counter!("petal_guard_filter_unanswered_total", "guard" => name()),
            ),
            loads: Metric::new(counter!("petal_guard_loads_total", "guard" => name())),
            errors: Metric::new(counter!("petal_guard_load_errors_total", "guard" => name())),
            writes: Metric::new(counter!("petal_guard_writes_total", "guard" => name())),
            rate: gauge!("petal_guard_false_positive_rate", "guard" => name()),
        }
    }

    pub(crate) fn answered(&self, layer: Layer) {
        let at = match layer {
            Layer::Filter => 0,
            Layer::Local => 1,
            Layer::Shared => 2,
            Layer::Storage => 3,
        };
        self.answers[at].add();
        // Setting the rate costs more than counting.
        if layer == Layer::Filter && self.answers[0].get().is_multiple_of(1024) {
            self.set_rate();
        }
    }

    pub(crate) fn stale(&self) {
        self.stale.add();
    }

    pub(crate) fn false_positive(&self) {
        self.false_positives.add();
        self.set_rate();
    }

    pub(crate) fn unanswered(&self) {
        self.unanswered.add();
    }

    pub(crate) fn load(&self) {
        self.loads.add();
    }

    pub(crate) fn error(&self) {
        self.errors.add();
    }

    pub(crate) fn write(&self) {
        self.writes.add();
    }

    fn set_rate(&self) {
        if let Some(rate) = self.stats().false_positive_rate() {
            self.rate.set(rate);
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        let [filter, local, shared, storage] = [0, 1, 2, 3].map(|i: usize| self.answers[i].get());
        Stats {
            filter,
            local,
            shared,
            storage,
            stale: self.stale.get(),
            false_positives: self.false_positives.get(),
            unanswered: self.unanswered.get(),
            loads: self.loads.get(),
            errors: self.errors.get(),
            writes: self.writes.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    use metrics::{Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

    use super::*;

    /// Keeps what it is given, by name and labels.
    #[derive(Default)]
    struct Kept(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

    impl Kept {
        fn cell(&self, key: &Key) -> Arc<AtomicU64> {
            let labels = key.labels().map(|label| format!(" {}", label.value()));
            let name = key.name().to_owned() + &labels.collect::<String>();
            self.0.lock().unwrap().entry(name).or_default().clone()
        }
    }

    impl Recorder for Kept {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(self.cell(key))
        }
        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::from_arc(self.cell(key))
        }
        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::noop()
        }
    }

    #[test]
    fn the_recorder_gets_what_is_counted() {
        let kept = Kept::default();
        let meter = metrics::with_local_recorder(&kept, || Meter::new("users"));
        for _ in 0..3 {
            meter.answered(Layer::Filter);
        }
        meter.answered(Layer::Storage);
        meter.load();
        meter.false_positive();
        let kept = kept.0.lock().unwrap();
        let value = |name: &str| kept[name].load(Relaxed);
        assert_eq!(value("petal_guard_answers_total users filter"), 3);
        assert_eq!(value("petal_guard_answers_total users local"), 0);
        assert_eq!(value("petal_guard_answers_total users storage"), 1);
        assert_eq!(value("petal_guard_loads_total users"), 1);
        let rate = f64::from_bits(value("petal_guard_false_positive_rate users"));
        assert_eq!(rate, 0.25);
        assert_eq!(meter.stats().false_positive_rate(), Some(0.25));
        assert_eq!(kept.len(), 11);
    }
}
