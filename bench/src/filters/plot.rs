//! The figure: nanoseconds a key against the number of keys.
//!
//! Owns the drawing ([`svg`]) and which lines it has. Both axes are logarithmic.

use std::fmt::Write as _;

use crate::filters::measure::Op;
use crate::filters::peers::Filter;
use crate::filters::scenarios::{Found, Outcome};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 200.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 50.0;

/// The error whose scenarios are drawn.
const ERROR: f64 = 0.01;

/// Label, filter, what it does, colour.
const LINES: [(&str, Filter, Op, &str); 6] = [
    ("fastbloom insert", Filter::Fastbloom, Op::Insert, "#d98a6a"),
    ("fastbloom contains", Filter::Fastbloom, Op::Half, "#b3441b"),
    ("sbbf-rs contains", Filter::SplitBlock, Op::Half, "#8a8a8a"),
    ("petal contains", Filter::Petal, Op::Half, "#7fb3a6"),
    (
        "petal batched insert",
        Filter::Petal,
        Op::InsertBatch,
        "#6a8fd9",
    ),
    (
        "petal batched contains",
        Filter::Petal,
        Op::HalfBatch,
        "#0b6e56",
    ),
];

/// One of [`LINES`] with what was measured.
struct Line {
    label: &'static str,
    colour: &'static str,
    /// Keys in the filter and nanoseconds a key.
    points: Vec<(f64, f64)>,
}

/// The figure, or `None` if fewer than two sizes were measured.
#[must_use]
pub fn svg(outcomes: &[Outcome]) -> Option<String> {
    let lines = LINES.map(|(label, filter, op, colour)| Line {
        label,
        colour,
        points: points(outcomes, filter, op),
    });
    let all = || lines.iter().flat_map(|line| &line.points);
    let x = Axis::over(all().map(|point| point.0), LEFT, WIDTH - RIGHT)?;
    let y = Axis::over(all().map(|point| point.1), HEIGHT - BOTTOM, TOP)?;

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"14\">ns a key at an error of 1 %, half hits, one core</text>\n"
    );
    for (value, label) in x.ticks() {
        let at = x.place(value);
        let (top, bottom) = (TOP, HEIGHT - BOTTOM);
        let _ = writeln!(
            svg,
            "<path d=\"M{at:.1} {top}V{bottom}\" stroke=\"#ddd\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            bottom + 18.0
        );
    }
    for (value, label) in y.ticks() {
        let at = y.place(value);
        let (left, right) = (LEFT, WIDTH - RIGHT);
        let _ = writeln!(
            svg,
            "<path d=\"M{left} {at:.1}H{right}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            left - 6.0,
            at + 4.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">keys in the filter</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 12.0
    );
    let mut label_y = f64::INFINITY;
    let mut drawn: Vec<_> = lines
        .iter()
        .filter_map(|line| Some((line, line.points.last()?.1)))
        .collect();
    // Labels stand at the right end, lowest first, and move up where they would overlap.
    drawn.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    for (line, last) in drawn {
        let Line { label, colour, .. } = line;
        let path: Vec<_> = line
            .points
            .iter()
            .map(|&(items, time)| format!("{:.1} {:.1}", x.place(items), y.place(time)))
            .collect();
        label_y = (y.place(last) + 4.0).min(label_y - 15.0);
        let _ = writeln!(
            svg,
            "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\
             <text x=\"{:.1}\" y=\"{label_y:.1}\" fill=\"{colour}\">{label} {last:.1}</text>",
            path.join("L"),
            WIDTH - RIGHT + 8.0
        );
    }
    svg += "</svg>\n";
    Some(svg)
}

/// Keys and time of every scenario that has both, by the number of keys.
fn points(outcomes: &[Outcome], filter: Filter, op: Op) -> Vec<(f64, f64)> {
    let mut points: Vec<_> = outcomes
        .iter()
        .filter(|outcome| !outcome.scenario.has_strings())
        .filter_map(|outcome| match &outcome.found {
            Found::Filters {
                items, error, rows, ..
            } if *error == ERROR => {
                let row = rows.iter().find(|row| row.filter == filter)?;
                Some((*items as f64, row.times.get(op)?))
            }
            _ => None,
        })
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// A logarithmic axis between two places of the figure.
struct Axis {
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// The axis that holds the values; `None` if there are not two different ones.
    fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<Self> {
        let (least, most) = values.fold((f64::INFINITY, 0.0f64), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        (least > 0.0 && least < most).then_some(Self {
            least,
            most,
            from,
            to,
        })
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value / self.least).ln() / (self.most / self.least).ln();
        self.from + share * (self.to - self.from)
    }

    /// 1, 2 and 5 of every power of ten on short axes, powers of ten on long ones.
    fn ticks(&self) -> Vec<(f64, String)> {
        let steps: &[f64] = match self.most / self.least > 1e3 {
            true => &[1.0],
            false => &[1.0, 2.0, 5.0],
        };
        let ticks =
            (-3..13).flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
        ticks
            // Values a rounding error outside count as inside.
            .filter(|tick| (self.least * 0.999..=self.most * 1.001).contains(tick))
            .map(|tick| (tick, label(tick)))
            .collect()
    }
}

fn label(value: f64) -> String {
    match value {
        1e6.. => format!("{} M", value / 1e6),
        1e3.. => format!("{} k", value / 1e3),
        _ => format!("{value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_logarithmic() {
        let axis = Axis::over([1e4, 1e8, 1e6].into_iter(), 0.0, 100.0).unwrap();
        assert!((axis.place(1e6) - 50.0).abs() < 1e-9);
        let labels: Vec<_> = axis.ticks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["10 k", "100 k", "1 M", "10 M", "100 M"]);
        let axis = Axis::over([1.9, 21.0].into_iter(), 100.0, 0.0).unwrap();
        let labels: Vec<_> = axis.ticks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["2", "5", "10", "20"]);
    }

    #[test]
    fn one_size_makes_no_figure() {
        assert!(Axis::over([3.0, 3.0].into_iter(), 0.0, 1.0).is_none());
        assert!(svg(&[]).is_none());
    }
}
