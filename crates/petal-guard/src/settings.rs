//! The settings of a guard, once they have been checked.

use std::time::Duration;

/// Where the filter is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FilterKind {
    None,
    Local { items: u64, error: f64 },
    Remote { items: u64, error: f64 },
}

/// What `builder` documents.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) filter: FilterKind,
    pub(crate) fresh_for: Duration,
    pub(crate) stale_for: Duration,
    pub(crate) absent_for: Duration,
    /// Of `absent_for`, to either side.
    pub(crate) jitter: f64,
    pub(crate) local_bytes: u64,
    pub(crate) max_loads: usize,
    pub(crate) load_timeout: Duration,
    pub(crate) lease_wait: Duration,
    pub(crate) write_timeout: Duration,
    pub(crate) max_lag: Duration,
    pub(crate) patience: Duration,
    pub(crate) max_silence: Duration,
    pub(crate) redis_timeout: Duration,
}

impl Settings {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            filter: FilterKind::None,
            fresh_for: Duration::from_secs(300),
            stale_for: Duration::from_secs(60),
            absent_for: Duration::from_secs(300),
            jitter: 0.1,
            local_bytes: 64 << 20,
            max_loads: 64,
            load_timeout: Duration::from_secs(2),
            lease_wait: Duration::from_millis(200),
            write_timeout: Duration::from_secs(5),
            max_lag: Duration::ZERO,
            patience: Duration::from_millis(50),
            max_silence: Duration::from_secs(1),
            redis_timeout: Duration::from_millis(250),
        }
    }

    /// What does not fit, if anything.
    pub(crate) fn fault(&self) -> Option<String> {
        const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
        let times = [
            ("fresh_for", self.fresh_for),
            ("stale_for", self.stale_for),
            ("absent_for", self.absent_for),
            ("load_timeout", self.load_timeout),
            ("lease_wait", self.lease_wait),
            ("write_timeout", self.write_timeout),
            ("max_lag", self.max_lag),
            ("patience", self.patience),
            ("max_silence", self.max_silence),
            ("redis_timeout", self.redis_timeout),
        ];
        for (name, time) in times {
            if time > LONGEST {
                return Some(format!("{name} is {time:?}: expected at most ten years"));
            }
        }
        for (name, time) in [
            ("fresh_for", self.fresh_for),
            ("absent_for", self.absent_for),
            ("load_timeout", self.load_timeout),
            ("write_timeout", self.write_timeout),
            ("max_silence", self.max_silence),
            ("redis_timeout", self.redis_timeout),
        ] {
            if time < Duration::from_millis(1) {
                return Some(format!(
                    "{name} is {time:?}: expected at least a millisecond"
                ));
            }
        }
        if !(0.0..1.0).contains(&self.jitter) {
            return Some(format!("jitter is {}: expected 0 to below 1", self.jitter));
        }
        if self.max_loads == 0 || self.max_loads > tokio::sync::Semaphore::MAX_PERMITS {
            return Some(format!(
                "max_loads is {}: expected 1 or more",
                self.max_loads
            ));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if self.name.is_empty() || !self.name.chars().all(plain) {
            return Some(format!(
                "the guard's name is {:?}: expected letters, digits, and - _ .",
                self.name
            ));
        }
        if let FilterKind::Local { items, error } | FilterKind::Remote { items, error } =
            self.filter
            && (items == 0 || !(error > 0.0 && error < 1.0))
        {
            return Some(format!(
                "a filter of {items} items with an error of {error}: expected 1 or more, and above 0 and below 1"
            ));
        }
        None
    }
}
