//! Work that is done in steps between the commands of others.
//!
//! Owns the timer that makes them, and the client that waits for the end.

use std::ffi::c_void;
use std::ptr;

use redis_module::raw;

use super::{Call, Failure, Outcome, guarded, server};

/// What a step comes to.
pub(crate) enum Step {
    More,
    Done,
}

/// Work in steps. A step gets the arguments of the command that began it.
pub(crate) trait Job {
    /// Does a step, of a few milliseconds.
    fn step(&mut self, call: &Call<'_>) -> Outcome<Step>;
}

struct Running {
    job: Box<dyn Job>,
    /// The arguments of the command.
    args: Vec<Vec<u8>>,
    database: i32,
    client: *mut raw::RedisModuleBlockedClient,
}

/// Between two steps, in milliseconds.
const PAUSE: raw::mstime_t = 1;

impl Call<'_> {
    /// Whether the client can wait while others are served: not in a transaction or script,
    /// and not for what was carried out elsewhere.
    pub(crate) fn may_wait(&self) -> bool {
        let flags = server!(RedisModule_GetContextFlags(self.context)).unwrap_or(0);
        let never = raw::REDISMODULE_CTX_FLAGS_MULTI
            | raw::REDISMODULE_CTX_FLAGS_LUA
            | raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING;
        flags & never.cast_signed() == 0 && !self.must_obey()
    }
}

/// Begins work, and has the client wait for its end.
pub(crate) fn begin(call: &Call<'_>, job: Box<dyn Job>) -> Outcome {
    let client = server!(RedisModule_BlockClient(call.context, None, None, None, 0));
    let Some(client) = client.filter(|client| !client.is_null()) else {
        return Err("ERR the client cannot be made to wait".into());
    };
    let running = Running {
        job,
        args: call.args(0).map(<[u8]>::to_vec).collect(),
        database: server!(RedisModule_GetSelectedDb(call.context)).unwrap_or(0),
        client,
    };
    again(call.context, Box::new(running));
    Ok(())
}

fn again(context: *mut raw::RedisModuleCtx, running: Box<Running>) {
    let data = Box::into_raw(running).cast::<c_void>();
    server!(RedisModule_CreateTimer(context, PAUSE, Some(tick), data));
}

extern "C" fn tick(context: *mut raw::RedisModuleCtx, data: *mut c_void) {
    // SAFETY: `again` gave a box, to this call alone.
    let mut running = unsafe { Box::from_raw(data.cast::<Running>()) };
    let stepped = guarded(Err("ERR internal error of the module".into()), || {
        let flags = server!(RedisModule_GetContextFlags(context)).unwrap_or(0);
        if flags & raw::REDISMODULE_CTX_FLAGS_SLAVE.cast_signed() != 0 {
            return Err("ERR the server is a replica now: ask the new master".into());
        }
        server!(RedisModule_SelectDb(context, running.database));
        step(context, &mut running)
    });
    let outcome = match stepped {
        Ok(Step::More) => return again(context, running),
        Ok(Step::Done) => Ok(()),
        Err(failure) => Err(failure),
    };
    guarded((), || answer(&running, &outcome));
    server!(RedisModule_UnblockClient(running.client, ptr::null_mut()));
}

/// Does a step with strings of its own.
fn step(context: *mut raw::RedisModuleCtx, running: &mut Running) -> Outcome<Step> {
    let mut argv = Vec::with_capacity(running.args.len());
    for arg in &running.args {
        argv.extend(server!(RedisModule_CreateString(
            context,
            arg.as_ptr().cast(),
            arg.len()
        )));
    }
    let stepped = running.job.step(&Call {
        context,
        argv: &argv,
    });
    for string in argv {
        server!(RedisModule_FreeString(context, string));
    }
    stepped
}

/// Answers the client that waits.
fn answer(running: &Running, outcome: &Result<(), Failure>) {
    let context = server!(RedisModule_GetThreadSafeContext(running.client));
    let Some(context) = context.filter(|context| !context.is_null()) else {
        return;
    };
    let call = Call { context, argv: &[] };
    match outcome {
        Ok(()) => call.ok(),
        Err(failure) => call.error(failure.text()),
    }
    server!(RedisModule_FreeThreadSafeContext(context));
}
