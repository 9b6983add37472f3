//! `petal verify`: whether files are whole, by every checksum.

use std::process::ExitCode;

use anyhow::Result;

use crate::args::VerifyArgs;
use crate::filters::named;
use crate::os::display_name;
use crate::output::Output;
use crate::report;

/// A line on stdout for each intact file, one on stderr for each other.
pub(crate) fn run(args: &VerifyArgs) -> Result<ExitCode> {
    let mut output = Output::stdout()?;
    let mut code = ExitCode::SUCCESS;
    for path in &args.filters {
        match petal::verify(path) {
            Ok(_) if args.quiet => {}
            Ok(_) => {
                output.write(format!("{}: OK\n", display_name(path)).as_bytes())?;
                output.flush()?;
            }
            Err(error) => {
                report::say(&format!("petal: {:#}", named(path, error)));
                code = ExitCode::from(crate::ERROR);
            }
        }
    }
    output.finish()?;
    Ok(code)
}
