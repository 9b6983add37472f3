//! The server's allocator as that of the module.
//!
//! Owns the only [`GlobalAlloc`]: so that `used_memory`, `maxmemory` and
//! `MEMORY USAGE` count what filters take. Large requests may fail instead of
//! ending the server where the engine can do that (Redis 7.0 and later).

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::ptr;

use redis_module::raw;

/// Requests of so many bytes may be refused by the system.
const LARGE: usize = 1 << 20;

/// Servers give memory at multiples of this.
const ALIGNED: usize = 16;

/// Asks the server, or the system where there is none: in unit tests.
#[derive(Debug)]
pub(crate) struct ServerAlloc;

#[global_allocator]
static ALLOCATOR: ServerAlloc = ServerAlloc;

/// Bytes to ask for, so that there is room to align and to keep the start.
const fn padded(layout: Layout) -> Option<usize> {
    if layout.align() <= ALIGNED {
        Some(layout.size())
    } else {
        layout.size().checked_add(layout.align())
    }
}

/// Memory from the server, or null.
fn ask(bytes: usize, zeroed: bool) -> *mut c_void {
    // SAFETY: set once while the module is loaded, before any other thread.
    let alloc = unsafe { raw::RedisModule_Alloc };
    // SAFETY: as above.
    let calloc = unsafe { raw::RedisModule_Calloc };
    // SAFETY: as above.
    let try_alloc = unsafe { raw::RedisModule_TryAlloc };
    // SAFETY: as above.
    let try_calloc = unsafe { raw::RedisModule_TryCalloc };
    let large = bytes >= LARGE;
    let (alloc, calloc) = (
        try_alloc.filter(|_| large).or(alloc),
        try_calloc.filter(|_| large).or(calloc),
    );
    match (alloc, calloc) {
        // SAFETY: any size may be asked for.
        (_, Some(calloc)) if zeroed => unsafe { calloc(1, bytes) },
        // SAFETY: any size may be asked for.
        (Some(alloc), _) => unsafe { alloc(bytes) },
        _ => ptr::null_mut(),
    }
}

/// Where the start of aligned memory is kept: before it.
fn start_of(aligned: *mut u8) -> *mut *mut u8 {
    aligned.cast::<*mut u8>().wrapping_sub(1)
}

/// Whether there is a server. The answer changes once, before anything is allocated.
fn has_server() -> bool {
    // SAFETY: set once while the module is loaded, before any other thread.
    unsafe { raw::RedisModule_Alloc }.is_some()
}

fn allocate(layout: Layout, zeroed: bool) -> *mut u8 {
    let Some(bytes) = padded(layout) else {
        return ptr::null_mut();
    };
    let start = ask(bytes, zeroed).cast::<u8>();
    if start.is_null() || layout.align() <= ALIGNED {
        return start;
    }
    // Past the start by at least ALIGNED bytes, so that its address fits before.
    let shift = layout.align() - start.addr() % layout.align();
    let aligned = start.wrapping_add(shift);
    // SAFETY: `shift` is from ALIGNED to the alignment, which was asked for in
    // addition, and both addresses are multiples of ALIGNED.
    unsafe { start_of(aligned).write(start) };
    aligned
}

// SAFETY: memory comes from the server's or the system's allocator and goes
// back to the same one: which of them it is changes once, before anything is allocated.
unsafe impl GlobalAlloc for ServerAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if has_server() {
            return allocate(layout, false);
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if has_server() {
            return allocate(layout, true);
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: set once while the module is loaded, before any other thread.
        let Some(free) = (unsafe { raw::RedisModule_Free }) else {
            // SAFETY: the caller's promise.
            return unsafe { System.dealloc(pointer, layout) };
        };
        let start = if layout.align() <= ALIGNED {
            pointer
        } else {
            // SAFETY: `allocate` wrote the start there.
            unsafe { start_of(pointer).read() }
        };
        // SAFETY: the server's allocator gave this address.
        unsafe { free(start.cast()) }
    }
}
