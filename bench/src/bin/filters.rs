//! `filters`: petal and other filters side by side, on one core of this machine.
//!
//! Owns the arguments and the files; the comparisons are those of `petal_bench::filters`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use petal_bench::filters::scenarios::SCENARIOS;
use petal_bench::filters::{pin, plot, report};

const USAGE: &str = "\
usage: filters [--quick] [--only NAME] [--core N] [--output FILE]

Prints Markdown tables: one for each scenario, and petal's ratios beside their bounds.
Exit code 0 if every bound that was measured is reached, 1 if one is not, 2 on errors.

  --quick        the scenarios of 1 M keys alone, under a minute
  --only NAME    one scenario; may be repeated
  --core N       the core to run on (default 0)
  --output FILE  write the report to FILE, and the figure beside it as .svg; - for none
                 (default)

scenarios:";

/// What the arguments ask for.
#[derive(Debug, Default, PartialEq)]
struct Options {
    quick: bool,
    only: Vec<String>,
    core: usize,
    output: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments
        .iter()
        .any(|flag| flag == "--help" || flag == "-h")
    {
        let names: String = SCENARIOS
            .iter()
            .map(|scenario| format!(" {}", scenario.name))
            .collect();
        return match writeln!(io::stdout(), "{USAGE}{names}") {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(2),
        };
    }
    match options_from(&arguments).and_then(|options| compare(&options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            // A message that stderr does not take has nowhere else to go.
            let _ = writeln!(io::stderr(), "filters: {message}");
            ExitCode::from(2)
        }
    }
}

fn options_from(arguments: &[String]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut arguments = arguments.iter();
    while let Some(flag) = arguments.next() {
        if flag == "--quick" {
            options.quick = true;
            continue;
        }
        let value = arguments
            .next()
            .ok_or_else(|| format!("{flag} needs a value, or is unknown; see --help"))?;
        match flag.as_str() {
            "--only" => {
                if !SCENARIOS.iter().any(|scenario| scenario.name == value) {
                    return Err(format!("there is no scenario {value:?}; see --help"));
                }
                options.only.push(value.clone());
            }
            "--core" => {
                options.core = value
                    .parse()
                    .map_err(|_| format!("expected the number of a core, got {value:?}"))?;
            }
            "--output" => options.output = Some(value.into()),
            _ => return Err(format!("unknown option {flag:?}; see --help")),
        }
    }
    Ok(options)
}

/// Runs what is asked for. True if every bound that was measured is reached.
fn compare(options: &Options) -> Result<bool, String> {
    pin(options.core)?;
    let output = match &options.output {
        Some(path) if path == Path::new("-") => None,
        output => output.clone(),
    };
    let mut document = String::new();
    let mut show = |text: &str| {
        document += text;
        document += "\n";
        writeln!(io::stdout(), "{text}").map_err(|error| format!("cannot write: {error}"))
    };
    show("# Filters side by side\n")?;
    show(&report::about(options.core))?;
    let mut outcomes = Vec::new();
    for scenario in SCENARIOS {
        let asked =
            options.only.is_empty() || options.only.iter().any(|name| name == scenario.name);
        if !asked || options.quick && !scenario.quick {
            continue;
        }
        let start = Instant::now();
        let outcome = scenario.run()?;
        let _ = writeln!(
            io::stderr(),
            "{}: {:.1} s",
            scenario.name,
            start.elapsed().as_secs_f64()
        );
        show(&report::table(&outcome))?;
        outcomes.push(outcome);
    }
    let (ratios, all_reached) = report::ratios(&outcomes);
    if !ratios.is_empty() {
        show(&ratios)?;
    }
    if let Some(path) = output {
        let write = |path: &Path, text: &str| {
            fs::write(path, text)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))
        };
        if let Some(figure) = plot::svg(&outcomes) {
            let figure_path = path.with_extension("svg");
            write(&figure_path, &figure)?;
            if let Some(name) = figure_path.file_name() {
                document += &format!("![ns a key against keys]({})\n", name.display());
            }
        }
        write(&path, &document)?;
    }
    Ok(all_reached)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &str) -> Result<Options, String> {
        let arguments: Vec<_> = arguments.split_whitespace().map(String::from).collect();
        options_from(&arguments)
    }

    #[test]
    fn arguments_become_options() {
        assert_eq!(parsed(""), Ok(Options::default()));
        assert_eq!(
            parsed("--quick --only 1M --core 1 --only 100M --output x.md"),
            Ok(Options {
                quick: true,
                only: vec!["1M".into(), "100M".into()],
                core: 1,
                output: Some("x.md".into()),
            })
        );
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (arguments, part) in [
            ("--only", "needs a value"),
            ("--only 2M", "no scenario \"2M\""),
            ("--core one", "got \"one\""),
            ("--fast 1", "unknown option"),
            ("--fast", "unknown"),
        ] {
            let message = parsed(arguments).unwrap_err();
            assert!(message.contains(part), "{arguments:?}: {message}");
        }
    }
}
