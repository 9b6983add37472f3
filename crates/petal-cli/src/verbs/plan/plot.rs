//! A picture of error against size.
//!
//! Owns the SVG of `--plot`: the least error of the split-block and of the
//! classic filter for a number of bits a key, and the lower bound of all
//! filters. It uses no font of its own and no script.

use std::fmt::Write;

use petal::sizing::{self, ClassicGiven, Collisions};

use crate::units::format_count;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 560.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 62.0;

/// Bits a key on the right edge, and powers of ten on the lower one.
const MOST_BITS: u32 = 66;
const MOST_DIGITS: f64 = 12.0;

/// Sizes that are computed, a bit a key.
const STEPS_PER_BIT: u32 = 4;

/// One line of the plot.
struct Curve {
    name: &'static str,
    colour: &'static str,
    dashes: &'static str,
    points: Points,
}

/// Bits a key, and the error as digits after the point (-log10).
type Points = Vec<(f64, f64)>;

/// The place from which on a filter has more regions.
struct Change {
    bits: f64,
    digits: f64,
    regions: u32,
}

fn x(bits: f64) -> f64 {
    LEFT + bits / f64::from(MOST_BITS) * (WIDTH - LEFT - RIGHT)
}

fn y(digits: f64) -> f64 {
    TOP + digits / MOST_DIGITS * (HEIGHT - TOP - BOTTOM)
}

/// The picture for a number of keys.
pub(super) fn svg(items: u64, collisions: Collisions) -> String {
    let most_bits = f64::from(MOST_BITS);
    let (split, changes) = split(items, collisions);
    let curves = [
        Curve {
            name: "bloom (split blocks)",
            colour: "#0a6ebd",
            dashes: "",
            points: split,
        },
        Curve {
            name: "classic",
            colour: "#c8571b",
            dashes: "",
            points: classic(items, collisions),
        },
        Curve {
            name: "lower bound of all filters",
            colour: "#4a4a4a",
            dashes: "6 5",
            points: cut(&[(0.0, 0.0), (most_bits, most_bits * 2f64.log10())]),
        },
    ];
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let floor = -collisions.probability(items).log10();
    let _ = draw(&mut svg, items, &curves, &changes, floor);
    svg
}

/// An exponent as superscript characters.
fn superscript(digits: f64) -> String {
    format!("\u{207b}{digits}")
        .chars()
        .map(|c| match c {
            '1' => '\u{b9}',
            '2' => '\u{b2}',
            '3' => '\u{b3}',
            '0' | '4'..='9' => char::from_u32(0x2070 + u32::from(c) - u32::from('0')).unwrap_or(c),
            c => c,
        })
        .collect()
}

/// Sizes at which the error is computed: bits a key, and bytes for all keys.
fn sizes(items: u64) -> impl Iterator<Item = (f64, u64)> {
    let last = MOST_BITS * STEPS_PER_BIT;
    (1..=last).filter_map(move |step| {
        let bits = f64::from(step) / f64::from(STEPS_PER_BIT);
        let total = u128::from(items) * u128::from(step) / u128::from(STEPS_PER_BIT);
        Some((bits, u64::try_from(total / 8).ok()?))
    })
}

/// The split-block filter.
fn split(items: u64, collisions: Collisions) -> (Points, Vec<Change>) {
    let mut points = vec![(0.0, 0.0)];
    let mut changes = Vec::new();
    let mut regions = 1;
    for (bits, bytes) in sizes(items) {
        let Ok(geometry) = sizing::split_for_items_and_bytes(items, bytes, collisions) else {
            continue;
        };
        let digits = -sizing::split_error(geometry, items, collisions).log10();
        // A smaller filter fits as well: where the kind of block changes, more
        // bytes of the other one can be worth less.
        let digits = points.last().map_or(digits, |&(_, d)| digits.max(d));
        // Beyond the picture the choice of regions is by the least error.
        if geometry.regions() > regions && digits < MOST_DIGITS {
            regions = geometry.regions();
            changes.push(Change {
                bits,
                digits,
                regions,
            });
        }
        points.push((bits, digits));
    }
    (cut(&points), changes)
}

fn classic(items: u64, collisions: Collisions) -> Points {
    let mut points = vec![(0.0, 0.0)];
    for (bits, bytes) in sizes(items) {
        let given = ClassicGiven {
            items: Some(items),
            bits: Some(bytes.saturating_mul(8).max(1)),
            ..ClassicGiven::default()
        };
        if let Ok(plan) = sizing::plan_classic(given, collisions) {
            points.push((bits, -plan.error.log10()));
        }
    }
    cut(&points)
}

/// The part of a line inside of the picture, ending exactly at its edge.
fn cut(points: &[(f64, f64)]) -> Points {
    let mut kept = Points::new();
    for &(bits, digits) in points {
        if digits <= MOST_DIGITS {
            kept.push((bits, digits));
            continue;
        }
        if let Some(&(b, d)) = kept.last()
            && digits.is_finite()
        {
            let share = (MOST_DIGITS - d) / (digits - d);
            kept.push((b + share * (bits - b), MOST_DIGITS));
        }
        break;
    }
    kept
}

fn draw(
    svg: &mut String,
    items: u64,
    curves: &[Curve],
    changes: &[Change],
    floor: f64,
) -> std::fmt::Result {
    let (right, bottom) = (x(f64::from(MOST_BITS)), y(MOST_DIGITS));
    writeln!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" font-family="Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif" font-size="13" fill="#222">
<title>Error of filters against their size, {keys} keys</title>
<rect width="100%" height="100%" fill="#fff"/>
<text x="{LEFT}" y="32" font-size="17" font-weight="bold">Error against size, {keys} keys</text>"##,
        keys = format_count(items),
    )?;

    writeln!(svg, r##"<g stroke="#e2e2e2" stroke-width="1">"##)?;
    let bit_ticks = || (0..=8u32).map(|i| f64::from(i * 8));
    for bits in bit_ticks().skip(1) {
        let at = x(bits);
        writeln!(svg, r#"<path d="M{at:.1} {TOP}V{bottom:.1}"/>"#)?;
    }
    let digit_ticks = || (0..=12u32).map(f64::from);
    for digits in digit_ticks().take(12) {
        let at = y(digits);
        writeln!(svg, r#"<path d="M{LEFT} {at:.1}H{right:.1}"/>"#)?;
    }
    writeln!(svg, "</g>")?;

    writeln!(svg, r#"<g text-anchor="middle">"#)?;
    for bits in bit_ticks() {
        let (at, below) = (x(bits), bottom + 20.0);
        writeln!(svg, r#"<text x="{at:.1}" y="{below:.1}">{bits}</text>"#)?;
    }
    let (middle, below) = (f64::midpoint(LEFT, right), bottom + 46.0);
    writeln!(
        svg,
        r#"<text x="{middle:.1}" y="{below:.1}" font-size="14">bits a key</text>"#
    )?;
    let middle = f64::midpoint(TOP, bottom);
    writeln!(
        svg,
        r#"<text transform="translate(22 {middle:.1}) rotate(-90)" font-size="14">error p</text>
</g>
<g text-anchor="end">"#
    )?;
    for digits in digit_ticks() {
        let (at, left) = (y(digits) + 4.5, LEFT - 9.0);
        match digits {
            0.0 => writeln!(svg, r#"<text x="{left}" y="{at:.1}">1</text>"#)?,
            _ => writeln!(
                svg,
                r#"<text x="{left}" y="{at:.1}">10{}</text>"#,
                superscript(digits)
            )?,
        }
    }
    writeln!(svg, "</g>")?;
    writeln!(
        svg,
        r##"<path d="M{LEFT} {TOP}V{bottom:.1}H{right:.1}" fill="none" stroke="#555"/>"##
    )?;

    if floor < MOST_DIGITS {
        let (at, label) = (y(floor), y(floor) - 7.0);
        writeln!(
            svg,
            r##"<path d="M{LEFT} {at:.1}H{right:.1}" stroke="#999" stroke-dasharray="2 4"/>
<text x="{:.1}" y="{label:.1}" fill="#666">keys that share a 64-bit digest: n / 2{}</text>"##,
            LEFT + 10.0,
            "\u{2076}\u{2074}",
        )?;
    }
    for curve in curves.iter().rev() {
        write!(
            svg,
            r#"<polyline fill="none" stroke="{}" stroke-width="2.2" stroke-linejoin="round""#,
            curve.colour
        )?;
        if !curve.dashes.is_empty() {
            write!(svg, r#" stroke-dasharray="{}""#, curve.dashes)?;
        }
        write!(svg, r#" points=""#)?;
        for (i, &(bits, digits)) in curve.points.iter().enumerate() {
            let gap = if i == 0 { "" } else { " " };
            write!(svg, "{gap}{:.1},{:.1}", x(bits), y(digits))?;
        }
        writeln!(svg, r#""/>"#)?;
    }
    for change in changes {
        let (at, high) = (x(change.bits), y(change.digits));
        writeln!(
            svg,
            r##"<circle cx="{at:.1}" cy="{high:.1}" r="4" fill="#fff" stroke="#0a6ebd" stroke-width="2"/>
<text x="{label:.1}" y="{line:.1}" fill="#0a6ebd">{regions} regions</text>"##,
            label = at + 9.0,
            line = high - 6.0,
            regions = change.regions,
        )?;
    }

    let (box_x, box_y) = (right - 236.0, TOP + 12.0);
    writeln!(
        svg,
        r##"<rect x="{box_x:.1}" y="{box_y:.1}" width="224" height="{:.1}" rx="4" fill="#fff" stroke="#ccc"/>"##,
        curves.len() as f64 * 24.0 + 12.0
    )?;
    for (i, curve) in curves.iter().enumerate() {
        let line = box_y + 20.0 + i as f64 * 24.0;
        let (start, end) = (box_x + 12.0, box_x + 46.0);
        write!(
            svg,
            r#"<path d="M{start:.1} {line:.1}H{end:.1}" stroke="{}" stroke-width="2.2""#,
            curve.colour
        )?;
        if !curve.dashes.is_empty() {
            write!(svg, r#" stroke-dasharray="{}""#, curve.dashes)?;
        }
        writeln!(
            svg,
            r#"/><text x="{:.1}" y="{:.1}">{}</text>"#,
            end + 10.0,
            line + 4.5,
            curve.name
        )?;
    }
    writeln!(svg, "</svg>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_stays_inside_of_its_frame() {
        for items in [1, 1000, 1_000_000_000_000] {
            let svg = svg(items, Collisions::Digest64);
            let lines: Vec<&str> = svg
                .lines()
                .filter(|line| line.starts_with("<polyline"))
                .collect();
            assert_eq!(lines.len(), 3);
            for line in lines {
                let points = line.split("points=\"").nth(1).unwrap();
                for point in points.trim_end_matches("\"/>").split(' ') {
                    let (px, py) = point.split_once(',').unwrap();
                    let (px, py): (f64, f64) = (px.parse().unwrap(), py.parse().unwrap());
                    assert!(
                        (x(0.0)..=x(f64::from(MOST_BITS)) + 0.1).contains(&px),
                        "{point}"
                    );
                    assert!((y(0.0)..=y(MOST_DIGITS) + 0.1).contains(&py), "{point}");
                }
            }
        }
    }

    #[test]
    fn curves_end_at_the_edge() {
        assert_eq!(
            cut(&[(0.0, 0.0), (10.0, 10.0), (20.0, 20.0), (30.0, 30.0)]),
            [(0.0, 0.0), (10.0, 10.0), (12.0, 12.0)]
        );
        assert_eq!(cut(&[(0.0, 0.0), (1.0, f64::INFINITY)]), [(0.0, 0.0)]);
    }
}
