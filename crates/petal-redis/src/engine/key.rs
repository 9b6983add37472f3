//! An open key and the value it holds.

use std::marker::PhantomData;

use redis_module::raw;

use super::types::Kept;
use super::{Call, server};

/// An open key. Closed when it is dropped.
pub(crate) struct Key<'a> {
    key: *mut raw::RedisModuleKey,
    call: PhantomData<&'a ()>,
}

/// What a key holds.
pub(crate) enum Found<'k, T> {
    Nothing,
    Value(&'k mut T),
    /// A value of another type.
    Other,
}

impl Call<'_> {
    /// Opens the key that an argument names, to look at it.
    pub(crate) fn look(&self, index: usize) -> Key<'_> {
        self.open(index, raw::KeyMode::READ)
    }

    /// Opens the key that an argument names, to change it.
    pub(crate) fn key(&self, index: usize) -> Key<'_> {
        self.open(index, raw::KeyMode::READ | raw::KeyMode::WRITE)
    }

    fn open(&self, index: usize, mode: raw::KeyMode) -> Key<'_> {
        let name = self
            .argv
            .get(index)
            .copied()
            .unwrap_or(std::ptr::null_mut());
        let key = match name.is_null() {
            true => None,
            false => server!(RedisModule_OpenKey(self.context, name, mode.bits())),
        };
        Key {
            key: key.unwrap_or(std::ptr::null_mut()),
            call: PhantomData,
        }
    }
}

impl Key<'_> {
    /// The value, if it is of this type.
    pub(crate) fn value<T: Kept>(&mut self) -> Found<'_, T> {
        if self.key.is_null() {
            return Found::Nothing;
        }
        let own = T::registered();
        if own.is_null() || server!(RedisModule_ModuleTypeGetType(self.key)) != Some(own) {
            let kind = server!(RedisModule_KeyType(self.key));
            return match kind == Some(raw::KeyType::Empty as i32) {
                true => Found::Nothing,
                false => Found::Other,
            };
        }
        let value =
            server!(RedisModule_ModuleTypeGetValue(self.key)).map(|value| value.cast::<T>());
        // SAFETY: a value of this type was made by `set` or by `types` from a box of a `T`,
        // and commands are run one at a time, so nobody else has it.
        match value.and_then(|value| unsafe { value.as_mut() }) {
            Some(value) => Found::Value(value),
            None => Found::Other,
        }
    }

    /// Gives the key a value. An earlier one is freed.
    pub(crate) fn set<T: Kept>(&mut self, value: T) {
        let value = Box::into_raw(Box::new(value));
        let set = server!(RedisModule_ModuleTypeSetValue(
            self.key,
            T::registered(),
            value.cast()
        ));
        if set != Some(raw::Status::Ok as i32) {
            // SAFETY: the server did not take it.
            drop(unsafe { Box::from_raw(value) });
        }
    }

    /// Removes the key.
    pub(crate) fn delete(&mut self) {
        server!(RedisModule_DeleteKey(self.key));
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        if !self.key.is_null() {
            server!(RedisModule_CloseKey(self.key));
        }
    }
}
