//! What the command says on stderr: warnings, plans, summaries.
//!
//! Owns the shape of these texts; what they say is the verbs'. Data never
//! comes here: it goes through `output`.

use std::io::{self, Write};

use crate::args::{RunArgs, Summary};

/// Prints a line, or some, to stderr. That stderr is closed is nobody's error.
/// Control characters, which names of files may have, are not for terminals.
pub(crate) fn say(text: &str) {
    let is_control = |c: char| c.is_control() && c != '\n';
    if !text.contains(is_control) {
        let _ = writeln!(io::stderr().lock(), "{text}");
        return;
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_control(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    let _ = writeln!(io::stderr().lock(), "{shown}");
}

/// Prints a warning to stderr.
pub(crate) fn warn(text: &str) {
    say(&format!("petal: warning: {text}"));
}

/// Prints the plan of a run, unless it is to be quiet.
pub(crate) fn plan(run: &RunArgs, plan: &dyn std::fmt::Display) {
    if !run.quiet && run.summary == Summary::Text {
        say(&format!("petal: plan: {plan}"));
    }
}

/// A summary: names and values, for people and for programs.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    /// The name in JSON; empty if it is for people only.
    key: &'static str,
    label: String,
    text: String,
    value: serde_json::Value,
}

impl Table {
    /// Adds a row: its name in JSON, what people read, and both values.
    pub(crate) fn row(
        &mut self,
        key: &'static str,
        label: impl Into<String>,
        text: impl Into<String>,
        value: impl Into<serde_json::Value>,
    ) {
        self.rows.push(Row {
            key,
            label: label.into(),
            text: text.into(),
            value: value.into(),
        });
    }

    /// Adds a count.
    pub(crate) fn count(&mut self, key: &'static str, label: &str, count: u64) {
        self.row(key, label, crate::units::format_count(count), count);
    }

    /// Adds a count if it is not 0; in JSON it is always there.
    pub(crate) fn count_if_any(&mut self, key: &'static str, label: &str, count: u64) {
        let label = if count == 0 { "" } else { label };
        self.row(key, label, crate::units::format_count(count), count);
    }

    /// The rows as aligned text. Rows without a label are for JSON only.
    pub(crate) fn text(&self) -> String {
        let shown = || self.rows.iter().filter(|row| !row.label.is_empty());
        let labels = shown().map(|row| row.label.chars().count()).max();
        let texts = shown().map(|row| row.text.chars().count()).max();
        let (Some(labels), Some(texts)) = (labels, texts) else {
            return String::new();
        };
        shown()
            .map(|row| format!("{:<labels$}  {:>texts$}\n", row.label, row.text))
            .collect()
    }

    /// Adds an estimated count; where there is none it is null in JSON.
    pub(crate) fn estimate(&mut self, key: &'static str, label: &str, count: f64) {
        self.row(key, label, estimate(count), whole(count));
    }

    /// Adds a row for people only.
    pub(crate) fn text_row(&mut self, label: &str, text: impl Into<String>) {
        self.row("", label, text, serde_json::Value::Null);
    }

    /// The rows as text aligned to the left, each line after `indent`.
    pub(crate) fn text_left(&self, indent: &str) -> String {
        let shown = || self.rows.iter().filter(|row| !row.label.is_empty());
        let labels = shown().map(|row| row.label.chars().count()).max();
        let labels = labels.unwrap_or(0);
        shown()
            .map(|row| format!("{indent}{:<labels$}  {}\n", row.label, row.text))
            .collect()
    }

    /// The rows as one JSON object.
    pub(crate) fn json(&self) -> String {
        let object: serde_json::Map<String, serde_json::Value> = self
            .rows
            .iter()
            .filter(|row| !row.key.is_empty())
            .map(|row| (row.key.to_owned(), row.value.clone()))
            .collect();
        serde_json::Value::Object(object).to_string()
    }

    /// Prints the summary to stderr in the form that was asked for.
    pub(crate) fn print(&self, run: &RunArgs) {
        match run.summary {
            Summary::Text if !run.quiet => say(self.text().trim_end()),
            Summary::Json => say(&self.json()),
            Summary::Text | Summary::None => {}
        }
    }
}

/// Cells as aligned columns: the first one to the left, the others to the
/// right.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            text.push_str(&match column {
                0 => format!("{cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            });
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text
}

/// An error as somebody gave it, in the shorter notation.
pub(crate) fn probability(error: f64) -> String {
    if error < 1e-3 {
        format!("{error:e}")
    } else {
        error.to_string()
    }
}

/// An estimated count for people.
pub(crate) fn estimate(count: f64) -> String {
    match whole(count) {
        Some(count) => crate::units::format_count(count),
        None => "unknown (every bit is set)".to_owned(),
    }
}

/// The nearest whole number, if an estimate is one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate of a count is not negative; the cast saturates"
)]
fn whole(count: f64) -> Option<u64> {
    count.is_finite().then(|| count.round() as u64)
}

/// A small number for people: three figures, in whichever notation is short.
pub(crate) fn figure(value: f64) -> String {
    if value == 0.0 {
        "0".to_owned()
    } else if (1e-3..1e6).contains(&value.abs()) {
        let decimals = [100.0, 10.0, 1.0, 0.1, 0.01]
            .iter()
            .take_while(|&&step| value.abs() < step)
            .count();
        let rounded = format!("{value:.decimals$}");
        match rounded.split_once('.') {
            Some(_) => rounded
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned(),
            None => rounded,
        }
    } else {
        format!("{value:.2e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.25, "0.25"),
            (0.001_234, "0.00123"),
            (12.345, "12.3"),
            (123_456.0, "123456"),
            (1e-9, "1.00e-9"),
            (9.87e12, "9.87e12"),
        ] {
            assert_eq!(figure(value), text);
        }
    }

    #[test]
    fn rows_without_a_label_are_for_programs() {
        let mut table = Table::default();
        table.count("lines", "lines", 1234);
        table.count_if_any("bad", "bad lines", 0);
        assert_eq!(table.text(), "lines  1,234\n");
        assert_eq!(table.json(), r#"{"bad":0,"lines":1234}"#);
    }
}
