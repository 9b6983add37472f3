//! The cost of every kind at the usual errors.

use petal::sizing::Collisions;
use serde_json::{Value, json};

use super::cost::{self, Question, Row};
use crate::report::columns;
use crate::units::format_count;

/// Keys that the table is for when none are given.
pub(super) const DEFAULT_ITEMS: u64 = 1_000_000;

/// The rows of 10^-1 to 10^-12.
struct Line {
    error: f64,
    rows: Vec<Row>,
}

fn lines(items: u64, collisions: Collisions) -> Vec<Line> {
    (1..=12)
        .map(|digits| {
            // Parsed, as 0.1 to a power is not the nearest number.
            let error = format!("1e-{digits}").parse().unwrap_or(1.0);
            Line {
                error,
                rows: cost::rows_that_keep(Question::ItemsError { items, error }, collisions),
            }
        })
        .collect()
}

/// The published table: the error of the textbook filter, `(1 - e^(-k/r))^k`
/// for r = m/n from 2 to 32 and k from 1 to 24, with the best k of each r.
pub(super) fn classic() -> String {
    const POSITIONS: u32 = 24;
    let error = |r: u32, k: u32| {
        let k = f64::from(k);
        (-(-k / f64::from(r)).exp_m1()).powf(k)
    };
    let mut text = "m_over_n\tk_opt_real\tk_best_int".to_owned();
    (1..=POSITIONS).for_each(|k| text.push_str(&format!("\tk={k}")));
    text.push('\n');
    for r in 2..=32 {
        let real = f64::from(r) * std::f64::consts::LN_2;
        let best = (1..=POSITIONS).min_by(|&a, &b| error(r, a).total_cmp(&error(r, b)));
        text.push_str(&format!("{r}\t{real:.4}\t{}", best.unwrap_or(1)));
        (1..=POSITIONS).for_each(|k| text.push_str(&format!("\t{}", exponent(error(r, k)))));
        text.push('\n');
    }
    text
}

/// Ten digits and an exponent of two digits or more, as the table is published.
fn exponent(value: f64) -> String {
    let text = format!("{value:.9e}");
    match text.split_once('e') {
        Some((digits, power)) => {
            let (sign, power) = match power.strip_prefix('-') {
                Some(power) => ('-', power),
                None => ('+', power),
            };
            format!("{digits}e{sign}{power:0>2}")
        }
        None => text,
    }
}

/// For people.
pub(super) fn text(items: u64, collisions: Collisions) -> String {
    let lines = lines(items, collisions);
    let mut cells = vec![vec!["p".to_owned(), "lower bound".to_owned()]];
    if let Some(first) = lines.first() {
        cells[0].extend(first.rows.iter().map(|row| row.kind.to_owned()));
        cells[0].extend(["regions".to_owned(), "classic k".to_owned()]);
    }
    let mut gaps = false;
    for line in &lines {
        let mut row = vec![
            format!("{:e}", line.error),
            format!("{:.1}", cost::bits_at(line.error)),
        ];
        let cell = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        for kind in &line.rows {
            let bits = kind.cost.as_ref().ok().map(|cost| cost.bits_per_key());
            gaps |= bits.is_none();
            row.push(cell(bits.map(|bits| format!("{bits:.1}"))));
        }
        let of = |kind: &str| {
            let row = line.rows.iter().find(|row| row.kind == kind)?;
            row.cost.as_ref().ok()
        };
        row.push(cell(
            of("bloom").and_then(|c| c.regions).map(|r| r.to_string()),
        ));
        row.push(cell(
            of("classic").and_then(|c| c.hashes).map(|k| k.to_string()),
        ));
        cells.push(row);
    }
    let mut text = format!(
        "Bits a key for {} keys, by the error p. `bloom` reads one cache line a region,\n\
         `classic` one for each of its k bits.\n\n{}",
        format_count(items),
        columns(&cells)
    );
    text.push_str(
        "\nKinds that forget (counting, deletable, window) are in `petal plan -n N -p P`.\n",
    );
    if gaps {
        text.push_str(
            "\n- : not possible. Digests of 64 bits, or the shares of the stages of a growing\n\
             filter, do not allow so small an error; `petal plan -n N -p P` says which.\n",
        );
    }
    text
}

/// For programs.
pub(super) fn json(items: u64, collisions: Collisions) -> Value {
    let rows: Vec<Value> = lines(items, collisions)
        .iter()
        .map(|line| {
            json!({
                "error": line.error,
                "lower_bound_bits_per_key": cost::bits_at(line.error),
                "kinds": line.rows.iter().map(super::row_json).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({ "items": items, "table": rows })
}
