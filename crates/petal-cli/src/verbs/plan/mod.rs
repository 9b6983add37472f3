//! `petal plan`: sizes and errors before anything is built.
//!
//! Owns the question and the printing. The answers come from `cost`, the
//! cost table from `table`, the split into parts from `parts`, filters that
//! are to be packed from `wire`, the picture from `plot`. Nothing is allocated for the filters that are planned.

mod cost;
mod parts;
mod plot;
mod table;
mod wire;

use std::fmt;
use std::process::ExitCode;

use anyhow::{Result, bail};
use petal::memory::{self, Limit};
use petal::sizing::{Collisions, MAX_ITEMS};
use serde_json::{Value, json};

use cost::{Cost, Given, Question, Row};

use crate::args::{PlanArgs, PlanTable};
use crate::budget;
use crate::output::Output;
use crate::params;
use crate::report::{columns, figure, probability};
use crate::units::{format_count, format_size};

/// Of the memory that the process may use, what parts are planned for.
const SHARE_NUM: u64 = 3;
const SHARE_DEN: u64 = 4;

/// The flag that stands for another machine.
const GIVEN: &str = "--memory";

/// Answers on stdout.
pub(crate) fn run(args: &PlanArgs) -> Result<ExitCode> {
    let collisions = if args.int {
        Collisions::Never
    } else {
        Collisions::Digest64
    };
    let given = given(args)?;
    if args.table == Some(PlanTable::Classic) {
        if args.json || args.items.is_some() {
            bail!(
                "--table is one table, of text: leave -n and --json out, or ask for the cost of \
                 every kind with --table cost"
            );
        }
        let mut output = Output::stdout()?;
        output.write(table::classic().as_bytes())?;
        output.finish()?;
        return Ok(ExitCode::SUCCESS);
    }
    let machine = Machine::of(args)?;
    // Asked first, so that a picture is not drawn for a wrong question.
    let answer = match &args.wire {
        Some(text) => Some(wire::answer(args, text, given, &machine, collisions)?),
        None => answer(args, given, &machine, collisions)?,
    };
    if let Some(path) = &args.plot {
        let items = given.items.unwrap_or(table::DEFAULT_ITEMS);
        if items > MAX_ITEMS {
            bail!("--plot is for up to 10^12 keys: give a smaller -n");
        }
        let mut output = Output::create(path)?;
        output.write(plot::svg(items, collisions).as_bytes())?;
        output.finish()?;
    }
    if let Some(answer) = answer {
        let mut output = Output::stdout()?;
        output.write(answer.as_bytes())?;
        output.finish()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The numbers of the flags.
fn given(args: &PlanArgs) -> Result<Given> {
    let items = args.items.as_deref().map(params::items).transpose()?;
    let error = args.fpr.as_deref().map(params::fpr).transpose()?;
    let size = |text| params::size("-m", text);
    let bytes = args.bytes.as_deref().map(size).transpose()?;
    if bytes == Some(0) {
        bail!("-m 0 is not possible: give the bytes that a filter may take");
    }
    Ok(Given {
        items,
        error,
        bytes,
        hashes: args.positions,
    })
}

/// Where a filter would have to fit.
struct Machine {
    limit: Limit,
    /// Memory for a run over a part.
    share: u64,
}

impl Machine {
    fn of(args: &PlanArgs) -> Result<Self> {
        Ok(match &args.memory {
            Some(text) => {
                let bytes = params::size(GIVEN, text)?;
                Self {
                    limit: Limit { bytes, by: GIVEN },
                    share: bytes,
                }
            }
            None => {
                let limit = memory::available();
                Self {
                    share: limit.bytes / SHARE_DEN * SHARE_NUM,
                    limit,
                }
            }
        })
    }

    fn holds(&self, cost: &Cost) -> bool {
        budget::needed(cost.bytes()) <= self.limit.bytes
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = format_size(self.limit.bytes);
        match self.limit.by {
            GIVEN => write!(f, "the machine has {size} ({GIVEN})"),
            by => write!(f, "this process may use {size} ({by})"),
        }
    }
}

/// What goes to stdout; nothing if only a picture was asked for.
fn answer(
    args: &PlanArgs,
    given: Given,
    machine: &Machine,
    collisions: Collisions,
) -> Result<Option<String>> {
    let question = match given {
        Given {
            hashes: Some(_), ..
        } => return with_hashes(args, given, machine, collisions).map(Some),
        Given {
            items: Some(items),
            error: Some(error),
            bytes: None,
            ..
        } => Question::ItemsError { items, error },
        Given {
            items: Some(items),
            error: None,
            bytes: Some(bytes),
            ..
        } => Question::ItemsBytes { items, bytes },
        Given {
            items: None,
            error: Some(error),
            bytes: Some(bytes),
            ..
        } => Question::BytesError { bytes, error },
        Given {
            items,
            error: None,
            bytes: None,
            ..
        } if args.table.is_some() || items.is_some() => {
            let items = items.unwrap_or(table::DEFAULT_ITEMS);
            if items > MAX_ITEMS {
                bail!("the cost table is for up to 10^12 keys: give -p beside -n {items}");
            }
            let text = if args.json {
                format!("{}\n", table::json(items, collisions))
            } else {
                table::text(items, collisions)
            };
            return Ok(Some(text));
        }
        Given {
            items: None,
            error: None,
            bytes: None,
            ..
        } if args.plot.is_some() => return Ok(None),
        Given {
            items: Some(_),
            error: Some(_),
            bytes: Some(_),
            ..
        } => bail!(
            "-n, -p and -m are one too many: leave one out to have it worked out; \
             the memory of the machine is --memory"
        ),
        _ => bail!(
            "give two of -n, -p and -m, such as `petal plan -n 100M -p 1e-6`; \
             or --table cost for the cost of every kind"
        ),
    };
    let answer = Answer::new(question, machine, collisions)?;
    Ok(Some(if args.json {
        format!("{}\n", answer.json())
    } else {
        answer.text()
    }))
}

/// With k: the classic filter alone.
fn with_hashes(
    args: &PlanArgs,
    given: Given,
    machine: &Machine,
    collisions: Collisions,
) -> Result<String> {
    if given.items.is_none() && given.bytes.is_none() {
        bail!("-k leaves the size open: give -n or -m beside it");
    }
    let cost = cost::classic(given, collisions)?;
    let rows = vec![Row {
        kind: "classic",
        cost: Ok(cost),
    }];
    if args.json {
        let rows: Vec<Value> = rows.iter().map(row_json).collect();
        return Ok(format!("{}\n", json!({ "kinds": rows })));
    }
    let mut text = rows_text(&rows, None);
    if !machine.holds(&cost) {
        text.push_str(&format!("\n{}\n", too_large(&cost, machine)));
    }
    Ok(text)
}

/// A question with its answers.
struct Answer<'a> {
    question: Question,
    machine: &'a Machine,
    rows: Vec<Row>,
    /// Filters that a row is made of: more than 1 past 10^12 keys.
    filters: u64,
    /// What to do if the default kind does not fit.
    parts: Option<Result<parts::Parts>>,
}

impl<'a> Answer<'a> {
    fn new(question: Question, machine: &'a Machine, collisions: Collisions) -> Result<Self> {
        let (filters, rows) = match question {
            Question::ItemsError { items, error } if items > MAX_ITEMS => {
                parts::rows(items, error, collisions)?
            }
            question => {
                // What the default kind refuses, everybody would.
                cost::bloom(question, collisions)?;
                (1, cost::rows(question, collisions))
            }
        };
        let fits = rows
            .first()
            .and_then(|row| row.cost.as_ref().ok())
            .is_some_and(|cost| machine.holds(cost));
        let parts = match question {
            Question::ItemsError { items, error } if !fits || filters > 1 => {
                Some(parts::fewest(items, error, machine.share, collisions))
            }
            _ => None,
        };
        Ok(Self {
            question,
            machine,
            rows,
            filters,
            parts,
        })
    }

    fn text(&self) -> String {
        let mut text = match self.question {
            Question::ItemsError { items, error } => format!(
                "{} keys, an error of at most {}",
                format_count(items),
                probability(error)
            ),
            Question::ItemsBytes { items, bytes } => {
                format!("{} keys in {}", format_count(items), format_size(bytes))
            }
            Question::BytesError { bytes, error } => format!(
                "{}, an error of at most {}",
                format_size(bytes),
                probability(error)
            ),
        };
        if self.filters > 1 {
            text.push_str(&format!(
                " (a filter has at most 10^12: sizes are those of {} together)",
                self.filters
            ));
        }
        text.push_str("\n\n");
        text.push_str(&rows_text(
            &self.rows,
            Some(cost::lower_bound(self.question)),
        ));
        let bloom = self.rows.first().and_then(|row| row.cost.as_ref().ok());
        text.push('\n');
        match (bloom, &self.parts) {
            (Some(cost), Some(parts)) => {
                text.push_str(&too_large(cost, self.machine));
                text.push('\n');
                match (parts, self.question) {
                    (Ok(parts), Question::ItemsError { error, .. }) => {
                        text.push_str(&parts::advice(parts, error));
                    }
                    (Err(why), _) => text.push_str(&format!("It cannot be split: {why}.")),
                    _ => {}
                }
                text.push('\n');
            }
            (Some(cost), None) if !self.machine.holds(cost) => {
                text.push_str(&format!("{}\n", too_large(cost, self.machine)));
            }
            _ => text.push_str(&format!("`bloom` fits: {}.\n", self.machine)),
        }
        text
    }

    fn json(&self) -> Value {
        let (items, error, bytes) = match self.question {
            Question::ItemsError { items, error } => (Some(items), Some(error), None),
            Question::ItemsBytes { items, bytes } => (Some(items), None, Some(bytes)),
            Question::BytesError { bytes, error } => (None, Some(error), Some(bytes)),
        };
        let bound = cost::lower_bound(self.question);
        let kinds: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let mut value = row_json(row);
                if let Ok(cost) = &row.cost {
                    value["fits"] = self.machine.holds(cost).into();
                }
                value
            })
            .collect();
        let parts = match &self.parts {
            Some(Ok(parts)) => json!({
                "count": parts.count,
                "items": parts.items,
                "bytes": parts.bytes,
                "memory": parts.memory,
            }),
            _ => Value::Null,
        };
        json!({
            "items": items,
            "error": error,
            "bytes": bytes,
            "filters": self.filters,
            "kinds": kinds,
            "lower_bound": {
                "items": bound.items,
                "bytes": bound.bytes(),
                "error": bound.error,
                "bits_per_key": bound.bits_per_key(),
            },
            "memory_limit": self.machine.limit.bytes,
            "memory_limit_by": self.machine.limit.by,
            "parts": parts,
        })
    }
}

/// That a filter is more than the machine has.
fn too_large(cost: &Cost, machine: &Machine) -> String {
    let fits = if machine.holds(cost) {
        "fits all the same"
    } else {
        "does not fit"
    };
    format!(
        "It needs {}, {machine}: it {fits}.",
        format_size(cost.bytes())
    )
}

/// Rows as aligned text, the lower bound last.
fn rows_text(rows: &[Row], bound: Option<Cost>) -> String {
    let head = [
        "kind",
        "keys",
        "size",
        "bits a key",
        "error",
        "regions",
        "bits set",
        "cache lines",
    ];
    let mut cells = vec![head.map(str::to_owned).to_vec()];
    let or_dash = |value: Option<u32>| value.map_or_else(|| "-".to_owned(), |v| v.to_string());
    let mut line = |kind: &str, cost: &Cost, lines: String| {
        cells.push(vec![
            kind.to_owned(),
            format_count(cost.items),
            format_size(cost.bytes()),
            format!("{:.2}", cost.bits_per_key()),
            figure(cost.error),
            or_dash(cost.regions),
            or_dash(cost.hashes),
            lines,
        ]);
    };
    let mut notes = String::new();
    for row in rows {
        match &row.cost {
            Ok(cost) => line(row.kind, cost, cost.lines.to_string()),
            Err(why) => notes.push_str(&format!("{}: {why:#}\n", row.kind)),
        }
    }
    if let Some(bound) = bound {
        line("lower bound", &bound, "-".to_owned());
    }
    let mut text = columns(&cells);
    let classic = rows.iter().find(|row| row.kind == "classic");
    if let Some(Ok(cost)) = classic.map(|row| &row.cost) {
        text.push_str(&format!(
            "\nclassic: m = {} bits, k = {}\n",
            format_count(cost.bits),
            cost.hashes.unwrap_or(0)
        ));
    }
    let doubling = rows
        .iter()
        .filter_map(|row| row.cost.as_ref().ok()?.doubling);
    for bytes in doubling {
        text.push_str(&format!(
            "deletable: for keys that come once; where counts of repeats run out of slots it \
             doubles, and holds {} meanwhile\n",
            format_size(bytes)
        ));
    }
    if !notes.is_empty() {
        text.push_str(&format!("\nNot possible:\n{notes}"));
    }
    text
}

/// A row for programs.
fn row_json(row: &Row) -> Value {
    match &row.cost {
        Ok(cost) => json!({
            "kind": row.kind,
            "items": cost.items,
            "bytes": cost.bytes(),
            "bits": cost.bits,
            "bits_per_key": cost.bits_per_key(),
            "error": cost.error,
            "regions": cost.regions,
            "bits_set": cost.hashes,
            "cache_lines": cost.lines,
            "stages": cost.stages,
            "bytes_while_doubling": cost.doubling,
        }),
        Err(why) => json!({ "kind": row.kind, "refused": format!("{why:#}") }),
    }
}
