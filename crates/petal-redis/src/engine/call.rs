//! A command that is running: its arguments, its reply, what goes to replicas.

use std::borrow::Cow;
use std::ffi::{CStr, c_int, c_long};

use redis_module::raw;

use super::{c_text, guarded, server};

/// What a command does.
pub(crate) type Handler = fn(&Call<'_>) -> Outcome;

/// A reply was sent, or this is why not.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Why a command is refused.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The text of the error, with `ERR` where clients expect it.
    Text(Cow<'static, str>),
    /// Too few or too many arguments.
    Arity,
    /// The key holds something else.
    Type,
    /// Data that was being loaded is of no use any more, for this reason.
    Broken(String),
}

impl Failure {
    /// A [`Self::Broken`] load.
    pub(crate) fn broken(error: &dyn std::fmt::Display) -> Self {
        Self::Broken(format!("ERR received bad data: {error}"))
    }

    /// The text that a client gets.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Broken(text) => text,
            Self::Arity => "ERR wrong number of arguments",
            Self::Type => "WRONGTYPE Operation against a key holding the wrong kind of value",
        }
    }

    /// The same for the log, where nobody needs the class of an error.
    pub(crate) fn reason(&self) -> &str {
        let text = self.text();
        let text = text.strip_prefix("ERR ").unwrap_or(text);
        text.strip_prefix("received bad data: ").unwrap_or(text)
    }

    /// The same of another failure.
    pub(crate) fn into_broken(self) -> Self {
        match self {
            Self::Text(text) => Self::Broken(text.into_owned()),
            other => other,
        }
    }
}

impl From<&'static str> for Failure {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<petal::Error> for Failure {
    fn from(error: petal::Error) -> Self {
        Self::Text(format!("ERR {error}").into())
    }
}

impl From<petal_interop::Error> for Failure {
    fn from(error: petal_interop::Error) -> Self {
        Self::Text(format!("ERR {error}").into())
    }
}

/// An argument of a command for replicas.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Arg<'a> {
    /// That argument of this call.
    Own(usize),
    Bytes(&'a [u8]),
}

/// A running command.
pub(crate) struct Call<'a> {
    pub(super) context: *mut raw::RedisModuleCtx,
    pub(super) argv: &'a [*mut raw::RedisModuleString],
}

/// Runs a command for the server.
pub(crate) fn run(
    context: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
    handler: Handler,
) -> c_int {
    let argc = usize::try_from(argc).unwrap_or(0);
    // SAFETY: the server passes an array of so many strings that lives as long
    // as the call.
    let argv = unsafe { std::slice::from_raw_parts(argv, argc) };
    let call = Call { context, argv };
    let outcome = guarded(Err("ERR internal error of the module".into()), || {
        handler(&call)
    });
    match outcome {
        Ok(()) => {}
        Err(Failure::Arity) => {
            server!(RedisModule_WrongArity(context));
        }
        Err(failure) => call.error(failure.text()),
    }
    0
}

impl<'a> Call<'a> {
    /// How many arguments there are, with the command.
    pub(crate) const fn len(&self) -> usize {
        self.argv.len()
    }

    /// An argument; empty past the last one.
    pub(crate) fn arg(&self, index: usize) -> &'a [u8] {
        self.argv.get(index).map_or(&[], |&string| bytes_of(string))
    }

    /// The arguments from one on.
    pub(crate) fn args(&self, from: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let rest = self.argv.get(from..).unwrap_or(&[]);
        rest.iter().map(|&string| bytes_of(string))
    }

    /// Whether an argument is a word, in any case.
    pub(crate) fn is(&self, index: usize, word: &str) -> bool {
        self.arg(index).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Whether the client speaks RESP3.
    pub(crate) fn is_resp3(&self) -> bool {
        let flags = server!(RedisModule_GetContextFlags(self.context)).unwrap_or(0);
        flags & raw::REDISMODULE_CTX_FLAGS_RESP3.cast_signed() != 0
    }

    /// Whether the command comes from the master or the append-only file: it
    /// was carried out there, and has to be here.
    pub(crate) fn must_obey(&self) -> bool {
        let flags = server!(RedisModule_GetContextFlags(self.context)).unwrap_or(0);
        let obeyed = raw::REDISMODULE_CTX_FLAGS_REPLICATED | raw::REDISMODULE_CTX_FLAGS_LOADING;
        flags & obeyed.cast_signed() != 0
    }

    pub(crate) fn int(&self, value: i64) {
        server!(RedisModule_ReplyWithLongLong(self.context, value));
    }

    pub(crate) fn count(&self, value: u64) {
        self.int(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// A truth value in RESP3, 1 or 0 in RESP2.
    pub(crate) fn bool(&self, value: bool) {
        if server!(RedisModule_ReplyWithBool(self.context, value.into())).is_none() {
            self.int(value.into());
        }
    }

    pub(crate) fn double(&self, value: f64) {
        server!(RedisModule_ReplyWithDouble(self.context, value));
    }

    pub(crate) fn null(&self) {
        server!(RedisModule_ReplyWithNull(self.context));
    }

    pub(crate) fn ok(&self) {
        server!(RedisModule_ReplyWithSimpleString(
            self.context,
            c"OK".as_ptr()
        ));
    }

    pub(crate) fn simple(&self, text: &str) {
        let text = c_text(text);
        server!(RedisModule_ReplyWithSimpleString(
            self.context,
            text.as_ptr()
        ));
    }

    pub(crate) fn bulk(&self, bytes: &[u8]) {
        let start = bytes.as_ptr().cast();
        server!(RedisModule_ReplyWithStringBuffer(
            self.context,
            start,
            bytes.len()
        ));
    }

    pub(crate) fn error(&self, text: &str) {
        let text = c_text(text);
        server!(RedisModule_ReplyWithError(self.context, text.as_ptr()));
    }

    /// So many replies follow.
    pub(crate) fn array(&self, len: usize) {
        let len = c_long::try_from(len).unwrap_or(c_long::MAX);
        server!(RedisModule_ReplyWithArray(self.context, len));
    }

    /// So many pairs of replies follow: a map in RESP3.
    pub(crate) fn map(&self, pairs: usize) {
        let len = c_long::try_from(pairs).unwrap_or(c_long::MAX);
        if server!(RedisModule_ReplyWithMap(self.context, len)).is_none() {
            self.array(pairs * 2);
        }
    }

    /// Sends this command to replicas and the append-only file as it came.
    pub(crate) fn replicate_as_is(&self) {
        server!(RedisModule_ReplicateVerbatim(self.context));
    }

    /// Sends another command to replicas and the append-only file.
    pub(crate) fn replicate(&self, command: &CStr, args: &[Arg<'_>]) {
        let mut made = Vec::new();
        let mut strings = Vec::with_capacity(args.len());
        for arg in args {
            match arg {
                Arg::Own(index) => strings.extend(self.argv.get(*index)),
                Arg::Bytes(bytes) => {
                    let start = bytes.as_ptr().cast();
                    let string =
                        server!(RedisModule_CreateString(self.context, start, bytes.len()));
                    made.extend(string);
                    strings.extend(string);
                }
            }
        }
        server!(RedisModule_Replicate(
            self.context,
            command.as_ptr(),
            c"v".as_ptr(),
            strings.as_mut_ptr(),
            strings.len(),
        ));
        for string in made {
            server!(RedisModule_FreeString(self.context, string));
        }
    }

    /// Tells the server that the value of a key changed: what clients have cached of it, or
    /// watch, is old.
    pub(crate) fn changed(&self, key: usize) {
        if let Some(&key) = self.argv.get(key) {
            server!(RedisModule_SignalModifiedKey(self.context, key));
        }
    }

    /// The same, and tells those who subscribed what happened to it.
    pub(crate) fn notify(&self, event: &CStr, key: usize) {
        self.changed(key);
        let Some(&key) = self.argv.get(key) else {
            return;
        };
        let class = raw::REDISMODULE_NOTIFY_GENERIC;
        server!(RedisModule_NotifyKeyspaceEvent(
            self.context,
            class,
            event.as_ptr(),
            key
        ));
    }
}

/// The bytes of a string that lives as long as the call.
pub(super) fn bytes_of<'a>(string: *mut raw::RedisModuleString) -> &'a [u8] {
    let mut len = 0;
    let start = server!(RedisModule_StringPtrLen(string, &raw mut len));
    match start {
        Some(start) if !start.is_null() => {
            // SAFETY: the server says where the bytes of the string are and how
            // many; arguments live and stay as they are as long as the call.
            unsafe { std::slice::from_raw_parts(start.cast(), len) }
        }
        _ => &[],
    }
}
