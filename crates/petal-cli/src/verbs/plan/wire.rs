//! Filters that are to be packed: m and k from the bytes on the wire and the
//! memory of the receiver.
//!
//! Owns the question and its printing; the formulas are the library's.

use anyhow::{Result, bail};
use petal::sizing::{self, Collisions, WirePlan};
use serde_json::{Value, json};

use super::{Given, Machine, cost};
use crate::args::PlanArgs;
use crate::params;
use crate::report::{columns, figure};
use crate::units::{format_count, format_size};

/// Numbers of positions that are shown behind the best one.
const SHOWN_BEYOND: u32 = 3;

/// What goes to stdout.
pub(super) fn answer(
    args: &PlanArgs,
    text: &str,
    given: Given,
    machine: &Machine,
    collisions: Collisions,
) -> Result<String> {
    let Given {
        items: Some(items),
        error: None,
        bytes: None,
        hashes,
    } = given
    else {
        bail!("--wire is for a number of keys: give -n beside it, and no -p or -m");
    };
    let bytes = params::size("--wire", text)?;
    let memory = machine.limit.bytes;
    let with = |hashes| sizing::wire_with_hashes(items, bytes, memory, hashes, collisions);
    let best = match hashes {
        None => sizing::wire_for(items, bytes, memory, collisions)?,
        Some(hashes) => match with(hashes)? {
            Some(plan) => plan,
            None => bail!(
                "--wire {text}, or a --memory of {}, is too little for {} keys with -k {hashes}: \
                 allow more",
                format_size(memory),
                format_count(items)
            ),
        },
    };
    let shown = match hashes {
        None => 1..=best.hashes + SHOWN_BEYOND,
        Some(hashes) => hashes..=hashes,
    };
    let mut plans = Vec::new();
    for hashes in shown.filter(|&hashes| hashes <= petal::ClassicGeometry::MAX_POSITIONS) {
        plans.extend(with(hashes)?);
    }
    Ok(match args.json {
        true => format!("{}\n", as_json(&plans, best, bytes, machine)),
        false => as_text(&plans, best, bytes, machine),
    })
}

/// The error as a flag that leads to this very filter, or one a little smaller.
fn flag(plan: WirePlan) -> String {
    let text = format!("{:.3e}", plan.error);
    match text.parse::<f64>() {
        Ok(rounded) if rounded < plan.error => format!("{:.3e}", plan.error * 1.0005),
        _ => text,
    }
}

fn as_text(plans: &[WirePlan], best: WirePlan, bytes: u64, machine: &Machine) -> String {
    let items = best.items;
    let head = [
        "positions",
        "memory",
        "bits set",
        "sent",
        "bits a key",
        "error",
    ];
    let mut cells = vec![head.map(str::to_owned).to_vec()];
    for plan in plans {
        let mark = if plan.hashes == best.hashes { " *" } else { "" };
        cells.push(vec![
            format!("{}{mark}", plan.hashes),
            format_size(plan.bytes()),
            format!("{:.1} %", plan.fill * 100.0),
            format_size(sent(*plan)),
            format!("{:.2}", plan.wire_bytes * 8.0 / items as f64),
            figure(plan.error),
        ]);
    }
    let bits = bytes as f64 * 8.0 / items as f64;
    format!(
        "{} keys, packed in {}; {machine}\n\n{}\n\
         No filter of that size has an error below {}. Split blocks set 8 bits a key or more, so \
         that packing does not help them; classic filters are asked at one cache line a position.\n\n\
         petal build LIST -o F --kind classic -n {items} -p {} -k {}\n\
         petal pack F -o F.petalw\n",
        format_count(items),
        format_size(bytes),
        columns(&cells),
        figure((-bits).exp2()),
        flag(best),
        best.hashes,
    )
}

/// Whole bytes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive size; the cast saturates"
)]
fn sent(plan: WirePlan) -> u64 {
    plan.wire_bytes.ceil() as u64
}

fn as_json(plans: &[WirePlan], best: WirePlan, bytes: u64, machine: &Machine) -> Value {
    let row = |plan: &WirePlan| {
        json!({
            "hashes": plan.hashes,
            "bits": plan.bits,
            "bytes": plan.bytes(),
            "fill": plan.fill,
            "wire_bytes": sent(*plan),
            "error": plan.error,
        })
    };
    let bound = cost::lower_bound(cost::Question::ItemsBytes {
        items: best.items,
        bytes,
    });
    json!({
        "items": best.items,
        "wire": bytes,
        "memory_limit": machine.limit.bytes,
        "memory_limit_by": machine.limit.by,
        "best": row(&best),
        "plans": plans.iter().map(row).collect::<Vec<_>>(),
        "lower_bound": { "error": bound.error },
    })
}
