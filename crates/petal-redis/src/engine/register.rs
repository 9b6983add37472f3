//! What is said to the server when the module is loaded.
//!
//! Owns the entry points, and the registration of commands, settings and the
//! section of `INFO`. Which commands and settings there are is said elsewhere.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::Ordering;

use redis_module::raw;

use super::{Call, Handler, c_text, guarded, log, server};
use crate::config::{Number, Share};

/// A command and what the server is told about it.
pub(crate) struct Command {
    /// As clients send it, in lower case.
    pub(crate) name: &'static CStr,
    /// The function that runs it: see [`command!`].
    pub(crate) run: raw::RedisModuleCmdFunc,
    /// What it does, in one line.
    pub(crate) summary: &'static CStr,
    /// The server's flags of a command.
    pub(crate) flags: &'static CStr,
    /// Categories of access, `bloom` or `cuckoo` before them.
    pub(crate) categories: &'static CStr,
    /// Arguments with the command; at least so many if it is negative.
    pub(crate) arity: c_int,
    /// How it uses its first key.
    pub(crate) first_key: u32,
    /// How it uses the arguments behind that which are keys too, and the last of them: -1
    /// for all.
    pub(crate) further_keys: Option<(u32, c_int)>,
}

/// The server's function for a [`Handler`].
macro_rules! command {
    ($handler:path) => {{
        extern "C" fn run(
            context: *mut redis_module::raw::RedisModuleCtx,
            argv: *mut *mut redis_module::raw::RedisModuleString,
            argc: std::ffi::c_int,
        ) -> std::ffi::c_int {
            crate::engine::register::run(context, argv, argc, $handler)
        }
        Some(run)
    }};
}
pub(crate) use command;

/// See [`command!`].
pub(crate) fn run(
    context: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
    handler: Handler,
) -> c_int {
    super::call::run(context, argv, argc, handler)
}

const OK: c_int = raw::Status::Ok as c_int;
const FAILED: c_int = raw::Status::Err as c_int;

/// Called by the server once, before anything else.
///
/// # Safety
/// The server's pointers are good for this call.
#[unsafe(no_mangle)]
#[expect(unreachable_pub, reason = "the server finds it by its name")]
pub unsafe extern "C" fn RedisModule_OnLoad(
    context: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    // Nothing may be allocated before: the server's allocator is found here.
    // SAFETY: the context is that of the loading module.
    let ready = unsafe {
        raw::Export_RedisModule_Init(
            context,
            c"petal".as_ptr(),
            1,
            raw::REDISMODULE_APIVER_1 as c_int,
        )
    };
    if ready != OK {
        return FAILED;
    }
    guarded(FAILED, || {
        let argc = usize::try_from(argc).unwrap_or(0);
        let argv = if argc == 0 {
            &[]
        } else {
            // SAFETY: the server passes an array of so many strings.
            unsafe { std::slice::from_raw_parts(argv, argc) }
        };
        match crate::load(&Server(context), &Call { context, argv }) {
            Ok(()) => OK,
            Err(text) => {
                log(context, c"warning", &format!("petal: not loaded: {text}"));
                FAILED
            }
        }
    })
}

/// The server while the module is being loaded.
pub(crate) struct Server(*mut raw::RedisModuleCtx);

impl Server {
    pub(crate) fn log(&self, text: &str) {
        log(self.0, c"notice", text);
    }

    /// Registers a type of values.
    pub(crate) fn data_type<T: super::types::Kept>(&self) -> Result<(), String> {
        if super::types::register::<T>(self.0) {
            return Ok(());
        }
        let name = T::NAME.to_string_lossy();
        Err(format!(
            "the server refused the type {name}: is another version of the module loaded?"
        ))
    }

    /// Errors of reading data are answered by the module, and that a key changed is told by
    /// [`Call::changed`]: a command that opens it for writing may have changed nothing.
    pub(crate) fn set_options(&self) {
        let options = raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
            | raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED;
        server!(RedisModule_SetModuleOptions(self.0, options.cast_signed()));
    }

    /// Adds a category of access. False if the server has none of modules.
    pub(crate) fn category(&self, name: &CStr) -> bool {
        server!(RedisModule_AddACLCategory(self.0, name.as_ptr())) == Some(OK)
    }

    /// Registers a command.
    pub(crate) fn command(&self, command: &Command, categories: bool) -> Result<(), String> {
        let last = command.further_keys.map_or(1, |(_, last)| last);
        let created = server!(RedisModule_CreateCommand(
            self.0,
            command.name.as_ptr(),
            command.run,
            command.flags.as_ptr(),
            1,
            last,
            1,
        ));
        let name = command.name.to_string_lossy();
        if created != Some(OK) {
            return Err(format!(
                "the server refused {name}: is another module with it loaded?"
            ));
        }
        let handle = server!(RedisModule_GetCommand(self.0, command.name.as_ptr()));
        let Some(handle) = handle.filter(|handle| !handle.is_null()) else {
            return Ok(()); // a server without further information on commands
        };
        describe(handle, command);
        // `bloom` or `cuckoo`, which the server may not know, and its own after them.
        let words = command.categories.to_string_lossy();
        let own = words.split_once(' ').map_or("", |(_, own)| own);
        let said = if categories {
            c_text(&words)
        } else {
            c_text(own)
        };
        server!(RedisModule_SetCommandACLCategories(handle, said.as_ptr()));
        Ok(())
    }

    /// Registers a whole number as a setting, under its own name if it is
    /// `plain`, else under the module's. False if the server refuses it.
    pub(crate) fn number(&self, setting: &'static Number, plain: bool) -> bool {
        let data = ptr::from_ref(setting).cast_mut().cast::<c_void>();
        let registered = server!(RedisModule_RegisterNumericConfig(
            self.0,
            setting.name.as_ptr(),
            setting.get(),
            flags_of(plain),
            setting.least,
            setting.most,
            Some(number_get),
            Some(number_set),
            None,
            data,
        ));
        registered == Some(OK)
    }

    /// The same for a share from 0 to 1.
    pub(crate) fn share(&self, setting: &'static Share, plain: bool) -> bool {
        let data = ptr::from_ref(setting).cast_mut().cast::<c_void>();
        let text = c_text(&setting.get().to_string());
        let registered = server!(RedisModule_RegisterStringConfig(
            self.0,
            setting.name.as_ptr(),
            text.as_ptr(),
            flags_of(plain),
            Some(share_get),
            Some(share_set),
            None,
            data,
        ));
        registered == Some(OK)
    }

    /// Whether settings may have names of their own, without the module's before them: in
    /// Redis 8, which has a function that came with them. Other servers complain in their log
    /// where it is tried, or do not do it.
    pub(crate) fn takes_plain_names() -> bool {
        // SAFETY: set once while the module is loaded, before any other thread.
        unsafe { raw::RedisModule_LoadDefaultConfigs }.is_some()
    }

    /// Takes over what the server's configuration says of settings.
    pub(crate) fn load_settings(&self) {
        server!(RedisModule_LoadConfigs(self.0));
    }

    /// Registers the section of `INFO`.
    pub(crate) fn info(&self) {
        server!(RedisModule_RegisterInfoFunc(self.0, Some(info)));
    }
}

/// The server's flags of a setting.
const fn flags_of(plain: bool) -> u32 {
    if plain {
        raw::REDISMODULE_CONFIG_UNPREFIXED
    } else {
        0
    }
}

/// Tells what the server wants to know about a command, where it does.
fn describe(handle: *mut raw::RedisModuleCommand, command: &Command) {
    static VERSION: raw::RedisModuleCommandInfoVersion = raw::RedisModuleCommandInfoVersion {
        version: 1,
        sizeof_historyentry: mem::size_of::<raw::RedisModuleCommandHistoryEntry>(),
        sizeof_keyspec: mem::size_of::<raw::RedisModuleCommandKeySpec>(),
        sizeof_arg: mem::size_of::<raw::RedisModuleCommandArg>(),
    };
    let spec = |pos, lastkey, flags: u32| raw::RedisModuleCommandKeySpec {
        notes: ptr::null(),
        flags: flags.into(),
        begin_search_type: raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX,
        bs: raw::RedisModuleCommandKeySpec__bindgen_ty_1 {
            index: raw::RedisModuleCommandKeySpec__bindgen_ty_1__bindgen_ty_1 { pos },
        },
        find_keys_type: raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE,
        fk: raw::RedisModuleCommandKeySpec__bindgen_ty_2 {
            range: raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_1 {
                lastkey,
                keystep: 1,
                limit: 0,
            },
        },
    };
    let mut specs = vec![spec(1, 0, command.first_key)];
    specs.extend(command.further_keys.map(|(flags, last)| {
        // Counted from the first of them.
        spec(2, if last < 0 { last } else { last - 2 }, flags)
    }));
    // SAFETY: a specification of zeros ends the list.
    specs.push(unsafe { mem::zeroed() });
    let info = raw::RedisModuleCommandInfo {
        version: &raw const VERSION,
        summary: command.summary.as_ptr(),
        complexity: ptr::null(),
        since: c"0.1.0".as_ptr(),
        history: ptr::null_mut(),
        tips: ptr::null(),
        arity: command.arity,
        key_specs: specs.as_mut_ptr(),
        args: ptr::null_mut(),
    };
    server!(RedisModule_SetCommandInfo(handle, &raw const info));
}

/// The setting behind the server's pointer.
fn setting_of<'a, S: 'static>(data: *mut c_void) -> &'a S {
    // SAFETY: `number` and `share` registered a static of this type.
    unsafe { &*data.cast::<S>() }
}

extern "C" fn number_get(_: *const c_char, data: *mut c_void) -> c_longlong {
    setting_of::<Number>(data).get()
}

extern "C" fn number_set(
    _: *const c_char,
    value: c_longlong,
    data: *mut c_void,
    _: *mut *mut raw::RedisModuleString,
) -> c_int {
    setting_of::<Number>(data).set(value);
    OK
}

/// The server takes no copy of the text, so that it is kept until the next one.
extern "C" fn share_get(_: *const c_char, data: *mut c_void) -> *mut raw::RedisModuleString {
    guarded(ptr::null_mut(), || {
        let setting = setting_of::<Share>(data);
        let text = setting.get().to_string();
        let none: *mut raw::RedisModuleCtx = ptr::null_mut();
        let start = text.as_ptr().cast();
        let string = server!(RedisModule_CreateString(none, start, text.len()));
        let string = string.unwrap_or(ptr::null_mut());
        let earlier = setting.text.swap(string.cast(), Ordering::Relaxed);
        if !earlier.is_null() {
            server!(RedisModule_FreeString(none, earlier.cast()));
        }
        string
    })
}

extern "C" fn share_set(
    _: *const c_char,
    value: *mut raw::RedisModuleString,
    data: *mut c_void,
    error: *mut *mut raw::RedisModuleString,
) -> c_int {
    guarded(FAILED, || {
        let setting = setting_of::<Share>(data);
        let argv = [value];
        let none = ptr::null_mut();
        let call = Call {
            context: none,
            argv: &argv,
        };
        let Some(value) = setting.accept(call.arg(0)) else {
            let text = setting.expected();
            let start = text.as_ptr().cast();
            let text = server!(RedisModule_CreateString(none, start, text.len()));
            // SAFETY: the server passes where it wants the reason.
            unsafe { *error = text.unwrap_or(none.cast()) };
            return FAILED;
        };
        setting.set(value);
        OK
    })
}

extern "C" fn info(context: *mut raw::RedisModuleInfoCtx, _: c_int) {
    guarded((), || {
        server!(RedisModule_InfoAddSection(context, c"filters".as_ptr()));
        for (name, value) in crate::config::figures() {
            server!(RedisModule_InfoAddFieldULongLong(
                context,
                name.as_ptr(),
                value
            ));
        }
    });
}
