//! What the module of Redis and Valkey loads: chunks of a dump, of a file and of RedisBloom.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| petal_redis::fuzzing::load(data));
