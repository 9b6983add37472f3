//! The server: everything that calls it or is called by it.
//!
//! Owns all `unsafe` of the crate. Above it there are byte slices, typed
//! values and errors: [`Call`] is a command that is running, [`Key`] an open
//! key, `types` what the server asks of a type of values, `register` what is said
//! to it when the module is loaded, `later` work in steps, `alloc` the memory. Functions that a
//! server lacks are done without.

#![expect(unsafe_code, reason = "the server's API is one of C")]

pub(crate) mod alloc;
mod call;
mod key;
pub(crate) mod later;
pub(crate) mod register;
pub(crate) mod types;

pub(crate) use call::{Arg, Call, Failure, Handler, Outcome};
pub(crate) use key::{Found, Key};

use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use redis_module::raw;

/// Calls a function of the server: `None` if it has no such function.
macro_rules! server {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        // SAFETY: set once while the module is loaded, before any other thread.
        let function = unsafe { redis_module::raw::$name };
        match function {
            // SAFETY: contexts, keys and strings are those of the callback that is
            // running, and pointers to memory are valid for the call.
            Some(function) => Some(unsafe { function($($arg),*) }),
            None => None,
        }
    }};
}
pub(crate) use server;

/// Runs a callback: a panic ends it and not the server.
pub(crate) fn guarded<T>(otherwise: T, run: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or(otherwise)
}

/// Text for the server. What cannot be in it is left out.
pub(crate) fn c_text(text: &str) -> CString {
    let text: Vec<u8> = text
        .bytes()
        .map(|byte| {
            if matches!(byte, 0 | b'\r' | b'\n') {
                b' '
            } else {
                byte
            }
        })
        .collect();
    CString::new(text).unwrap_or_default()
}

/// Milliseconds since 1970, as the server has them.
pub(crate) fn now() -> u64 {
    let now = server!(RedisModule_Milliseconds()).unwrap_or(0);
    u64::try_from(now).unwrap_or(0)
}

/// Fills an array with random bytes.
pub(crate) fn random() -> u64 {
    let mut bytes = [0u8; 8];
    server!(RedisModule_GetRandomBytes(bytes.as_mut_ptr(), bytes.len()));
    u64::from_le_bytes(bytes)
}

/// Writes to the server's log.
pub(crate) fn log(context: *mut raw::RedisModuleCtx, level: &std::ffi::CStr, text: &str) {
    let text = c_text(text);
    server!(RedisModule_Log(
        context,
        level.as_ptr(),
        c"%s".as_ptr(),
        text.as_ptr()
    ));
}
