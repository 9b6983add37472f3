//! Bloom and deletable filters as a module of Redis and Valkey.
//!
//! One library for all servers (tested: Redis 7.0, Valkey 8.1 and 9.1): the `BF.*` and
//! `CF.*` commands of RedisBloom on the filters of `petal`, and some of its own.
//! `docs/redis.md` is for its users. Imports point down this list:
//!
//! * `commands/`: each command, and the table of them.
//! * `bloom/`, `cuckoo/`: what keys hold.
//! * `load`, `frame`: a filter that comes in chunks; the chunks of a dump.
//! * `keys`: items to digests.
//! * `engine/`: the server, and all `unsafe`.
//! * `config`, `numbers`: settings; numbers in arguments. `fuzzing`: the loaders, for `fuzz/`.

mod bloom;
mod commands;
mod config;
mod cuckoo;
mod engine;
mod frame;
#[cfg(fuzzing)]
pub mod fuzzing;
mod keys;
mod load;
mod numbers;
#[cfg(test)]
mod tests;

use crate::engine::Call;
use crate::engine::register::Server;

/// Loads the module, with its arguments.
fn load(server: &Server, arguments: &Call<'_>) -> Result<(), String> {
    let arguments: Vec<&[u8]> = arguments.args(0).collect();
    config::take_arguments(&arguments)?;
    // What filters take is counted by the server, and bounded by its maxmemory.
    petal::memory::use_global_allocator();
    server.set_options();
    server.data_type::<bloom::BloomKey>()?;
    server.data_type::<cuckoo::CuckooKey>()?;
    let categories = server.category(c"bloom") & server.category(c"cuckoo");
    if !categories {
        server.log("petal: the server has no access categories of modules: @bloom and @cuckoo are left out");
    }
    for command in commands::COMMANDS {
        server.command(command, categories)?;
    }
    register_settings(server);
    server.info();
    Ok(())
}

/// Registers the settings: under their own names where the server allows that, as
/// RedisBloom's are, else under the module's.
fn register_settings(server: &Server) {
    let plain = Server::takes_plain_names();
    let registered = config::NUMBERS
        .iter()
        .all(|setting| server.number(setting, plain))
        && config::SHARES
            .iter()
            .all(|setting| server.share(setting, plain));
    if !registered {
        server.log("petal: the server has no settings of modules: CONFIG knows none of petal's");
    }
    server.load_settings();
}
