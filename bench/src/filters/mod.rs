//! Filters side by side, in one process on one core.
//!
//! | module | owns |
//! |---|---|
//! | `keys` | which keys are inserted and asked, as integers or bytes |
//! | `contestant` | what a filter under test can do, whole runs of keys at a time |
//! | `petal`, `peers`, `forgetting` | the filters |
//! | `sizing` | the search for the size at which a filter has the wanted error |
//! | `measure` | the clock, pinning, and the rounds that alternate the filters |
//! | `limit` | the machine's limit: random reads of cache lines |
//! | `concurrent` | two threads that insert into one filter |
//! | [`scenarios`] | what is compared, and the bounds petal has to reach |
//! | [`report`], [`plot`] | tables and figure |
//!
//! Times are nanoseconds of CPU a key, the least of all repetitions: on a shared machine everything
//! else only adds.

mod concurrent;
mod contestant;
mod forgetting;
mod keys;
mod limit;
mod measure;
mod peers;
mod petal;
pub mod plot;
pub mod report;
pub mod scenarios;
mod sizing;

pub use measure::pin;
