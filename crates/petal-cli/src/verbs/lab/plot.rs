//! The picture of `petal lab hash`: error over load, a line for each hash.

use petal_interop::lab::LabResult;
use plotters::coord::Shift;
use plotters::prelude::*;

type Error = Box<dyn std::error::Error>;

const SIZE: (u32, u32) = (900, 600);
/// Below this an error is drawn as this: none was found.
const FLOOR: f64 = 1e-6;

/// The measured errors of all hashes, and the line of theory.
pub(super) fn svg(results: &[LabResult]) -> Result<String, Error> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        draw(&area, results)?;
        area.present()?;
    }
    Ok(text)
}

fn draw(area: &DrawingArea<SVGBackend<'_>, Shift>, results: &[LabResult]) -> Result<(), Error> {
    area.fill(&WHITE)?;
    let points = results.iter().flat_map(|result| &result.points);
    let most = points.clone().map(|point| point.items).max().unwrap_or(1);
    let theory = points
        .map(|point| point.theory)
        .filter(|&theory| theory > 0.0);
    let least = theory.fold(1.0, f64::min).max(FLOOR);
    let mut chart = ChartBuilder::on(area)
        .caption("Error over load", ("sans-serif", 22))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(0..most, (least..1.0).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("keys inserted")
        .y_desc("share of absent keys found")
        .y_label_formatter(&|error| format!("{error:.0e}"))
        .draw()?;
    for (i, result) in results.iter().enumerate() {
        let color = Palette99::pick(i).to_rgba();
        let line = result
            .points
            .iter()
            .map(|point| (point.items, point.error.max(least)));
        chart
            .draw_series(LineSeries::new(line, color.stroke_width(2)))?
            .label(result.hash.name())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    if let Some(result) = results.first() {
        let line = result
            .points
            .iter()
            .map(|point| (point.items, point.theory.max(least)));
        chart
            .draw_series(LineSeries::new(line, BLACK.stroke_width(3)))?
            .label("theory")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], BLACK.stroke_width(3)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    Ok(())
}
