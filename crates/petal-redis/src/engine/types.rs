//! What the server asks of a type of values: saving, loading, copying, freeing.
//!
//! Owns the callbacks. A value is known to them as a sequence of chunks, each
//! with an iterator, as `LOADCHUNK` takes them: the same in a dump, in the
//! server's file, in the append-only file and in a copy.

use std::ffi::{CStr, c_int, c_longlong, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use redis_module::raw;

use super::{Outcome, guarded, log, server};

/// A type of values.
pub(crate) trait Kept: Send + Sized + 'static {
    /// Nine characters.
    const NAME: &'static CStr;
    /// The command that takes chunks.
    const LOAD_COMMAND: &'static CStr;

    /// Where the server's handle for the type is kept.
    fn handle() -> &'static AtomicPtr<raw::RedisModuleType>;

    /// The chunk after an iterator, and its own; `None` after the last. The first
    /// one comes after 0 and has iterator 1.
    fn chunk_after(&self, iterator: u64) -> Outcome<Option<(u64, Vec<u8>)>>;

    /// A value of its first chunk, of at most so many bytes.
    fn begin(header: &[u8], most: u64) -> Outcome<Self>;

    /// Takes the next chunk. Nothing is changed by one that is refused.
    fn push(&mut self, iterator: u64, chunk: &[u8]) -> Outcome;

    /// Bytes that it takes.
    fn bytes(&self) -> u64;

    /// The server's handle; null before the type is registered.
    fn registered() -> *mut raw::RedisModuleType {
        Self::handle().load(Ordering::Relaxed)
    }
}

/// The encoding of values in the server's file.
const ENCODING: c_int = 1;

/// Bytes that count as one step of freeing.
const EFFORT: u64 = 64 << 10;

/// Tells the server about a type. False if it refuses it.
pub(crate) fn register<T: Kept>(context: *mut raw::RedisModuleCtx) -> bool {
    let mut methods = raw::RedisModuleTypeMethods {
        version: raw::REDISMODULE_TYPE_METHOD_VERSION.into(),
        rdb_load: Some(load::<T>),
        rdb_save: Some(save::<T>),
        aof_rewrite: Some(rewrite::<T>),
        mem_usage: Some(usage::<T>),
        digest: Some(digest::<T>),
        free: Some(free::<T>),
        aux_load: None,
        aux_save: None,
        aux_save_triggers: 0,
        free_effort: Some(free_effort::<T>),
        unlink: None,
        copy: Some(copy::<T>),
        defrag: Some(defrag),
        mem_usage2: None,
        free_effort2: None,
        unlink2: None,
        copy2: None,
        aux_save2: None,
    };
    let created = server!(RedisModule_CreateDataType(
        context,
        T::NAME.as_ptr(),
        ENCODING,
        &raw mut methods
    ));
    let created = created.unwrap_or(ptr::null_mut());
    T::handle().store(created, Ordering::Relaxed);
    !created.is_null()
}

/// The value behind the server's pointer.
fn value_of<'a, T: Kept>(value: *const c_void) -> &'a T {
    // SAFETY: the server passes what `Key::set`, `load` or `copy` gave it, which is a box
    // of a `T`, and changes nothing of it during the callback.
    unsafe { &*value.cast::<T>() }
}

/// Calls `each` for every chunk.
fn each_chunk<T: Kept>(value: &T, mut each: impl FnMut(u64, &[u8]) -> Outcome) -> Outcome {
    let mut iterator = 0;
    while let Some((next, chunk)) = value.chunk_after(iterator)? {
        each(next, &chunk)?;
        iterator = next;
    }
    Ok(())
}

/// A copy of a value, of at most so many bytes.
pub(crate) fn copy_of<T: Kept>(value: &T, most: u64) -> Outcome<T> {
    let mut copied: Option<T> = None;
    each_chunk(value, |iterator, chunk| match &mut copied {
        None => T::begin(chunk, most).map(|begun| copied = Some(begun)),
        Some(value) => value.push(iterator, chunk),
    })?;
    copied.ok_or_else(|| "ERR there is nothing to copy".into())
}

extern "C" fn save<T: Kept>(rdb: *mut raw::RedisModuleIO, value: *mut c_void) {
    guarded((), || {
        let saved = each_chunk(value_of::<T>(value), |iterator, chunk| {
            server!(RedisModule_SaveUnsigned(rdb, iterator));
            let start = chunk.as_ptr().cast();
            server!(RedisModule_SaveStringBuffer(rdb, start, chunk.len()));
            Ok(())
        });
        if let Err(failure) = saved {
            let name = name_of(rdb);
            let text = format!("petal: {name} could not be saved: {}", failure.reason());
            log(ptr::null_mut(), c"warning", &text);
        }
        server!(RedisModule_SaveUnsigned(rdb, 0));
    });
}

extern "C" fn load<T: Kept>(rdb: *mut raw::RedisModuleIO, encoding: c_int) -> *mut c_void {
    guarded(ptr::null_mut(), || {
        if encoding != ENCODING {
            let name = name_of(rdb);
            let text = format!(
                "petal: {name} could not be loaded: its encoding {encoding} is unknown, expected \
                 {ENCODING}: load a newer module"
            );
            log(ptr::null_mut(), c"warning", &text);
            return ptr::null_mut();
        }
        match load_value::<T>(rdb) {
            Ok(value) => Box::into_raw(Box::new(value)).cast(),
            Err(failure) => {
                let name = name_of(rdb);
                let text = format!("petal: {name} could not be loaded: {}", failure.reason());
                log(ptr::null_mut(), c"warning", &text);
                ptr::null_mut()
            }
        }
    })
}

fn load_value<T: Kept>(rdb: *mut raw::RedisModuleIO) -> Outcome<T> {
    let most = most_of(rdb);
    let mut value: Option<T> = None;
    loop {
        let iterator = server!(RedisModule_LoadUnsigned(rdb)).unwrap_or(0);
        if server!(RedisModule_IsIOError(rdb)) != Some(0) {
            return Err("the data ends early".into());
        }
        if iterator == 0 {
            return value.ok_or_else(|| "there is no first chunk".into());
        }
        let mut len = 0;
        let start = server!(RedisModule_LoadStringBuffer(rdb, &raw mut len));
        let start = start.unwrap_or(ptr::null_mut());
        if start.is_null() || server!(RedisModule_IsIOError(rdb)) != Some(0) {
            if !start.is_null() {
                server!(RedisModule_Free(start.cast()));
            }
            return Err("the data ends early".into());
        }
        // SAFETY: the server gave a buffer of so many bytes, which are ours until freed.
        let chunk = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), len) };
        let pushed = match &mut value {
            None => T::begin(chunk, most).map(|begun| value = Some(begun)),
            Some(value) => value.push(iterator, chunk),
        };
        server!(RedisModule_Free(start.cast()));
        pushed?;
    }
}

/// What the log calls the value that is being saved or loaded: its key, if the server
/// says which that is.
fn name_of(rdb: *mut raw::RedisModuleIO) -> String {
    let key = server!(RedisModule_GetKeyNameFromIO(rdb)).unwrap_or(ptr::null());
    if key.is_null() {
        return "a filter".to_owned();
    }
    let key = super::call::bytes_of(key.cast_mut());
    format!("the filter of key '{}'", key.escape_ascii())
}

/// Bytes that a loaded value may take: no bound for the server's own data,
/// that of a key for what a client restores.
fn most_of(rdb: *mut raw::RedisModuleIO) -> u64 {
    let context = server!(RedisModule_GetContextFromIO(rdb)).unwrap_or(ptr::null_mut());
    let flags = server!(RedisModule_GetContextFlags(context)).unwrap_or(0);
    let own = raw::REDISMODULE_CTX_FLAGS_LOADING | raw::REDISMODULE_CTX_FLAGS_SLAVE;
    if flags & own.cast_signed() != 0 {
        u64::MAX
    } else {
        crate::config::max_bytes()
    }
}

extern "C" fn rewrite<T: Kept>(
    aof: *mut raw::RedisModuleIO,
    key: *mut raw::RedisModuleString,
    value: *mut c_void,
) {
    guarded((), || {
        let _ = each_chunk(value_of::<T>(value), |iterator, chunk| {
            server!(RedisModule_EmitAOF(
                aof,
                T::LOAD_COMMAND.as_ptr(),
                c"slb".as_ptr(),
                key,
                c_longlong::try_from(iterator).unwrap_or(c_longlong::MAX),
                chunk.as_ptr(),
                chunk.len(),
            ));
            Ok(())
        });
    });
}

extern "C" fn usage<T: Kept>(value: *const c_void) -> usize {
    guarded(0, || {
        let bytes = value_of::<T>(value).bytes();
        usize::try_from(bytes).unwrap_or(usize::MAX)
    })
}

extern "C" fn digest<T: Kept>(digest: *mut raw::RedisModuleDigest, value: *mut c_void) {
    guarded((), || {
        let _ = each_chunk(value_of::<T>(value), |_, chunk| {
            let start = chunk.as_ptr().cast();
            server!(RedisModule_DigestAddStringBuffer(
                digest,
                start,
                chunk.len()
            ));
            Ok(())
        });
        server!(RedisModule_DigestEndSequence(digest));
    });
}

/// May be called on another thread, for a value that nobody has any more.
extern "C" fn free<T: Kept>(value: *mut c_void) {
    guarded((), || {
        // SAFETY: the server passes what `Key::set`, `load` or `copy` gave it, once.
        drop(unsafe { Box::from_raw(value.cast::<T>()) });
    });
}

extern "C" fn free_effort<T: Kept>(_: *mut raw::RedisModuleString, value: *const c_void) -> usize {
    guarded(1, || {
        let steps = value_of::<T>(value).bytes() / EFFORT + 1;
        usize::try_from(steps).unwrap_or(usize::MAX)
    })
}

extern "C" fn copy<T: Kept>(
    _: *mut raw::RedisModuleString,
    _: *mut raw::RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    guarded(ptr::null_mut(), || {
        match copy_of(value_of::<T>(value), u64::MAX) {
            Ok(value) => Box::into_raw(Box::new(value)).cast(),
            Err(_) => ptr::null_mut(),
        }
    })
}

/// Moves the value itself. Its bits are large allocations of whole pages, which
/// leave no gaps between small ones.
extern "C" fn defrag(
    context: *mut raw::RedisModuleDefragCtx,
    _: *mut raw::RedisModuleString,
    value: *mut *mut c_void,
) -> c_int {
    // SAFETY: the server passes where it keeps its pointer to a value.
    let old = unsafe { *value };
    let new = server!(RedisModule_DefragAlloc(context, old)).unwrap_or(ptr::null_mut());
    if !new.is_null() {
        // SAFETY: as above; the value was moved as it is, and nothing in it says where it is.
        unsafe { *value = new };
    }
    0
}
