//! `petal verify`: whether files are whole, by every checksum.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use petal::{Error, FormatError};

use crate::args::VerifyArgs;
use crate::filters::named;
use crate::foreign;
use crate::os::display_name;
use crate::output::Output;
use crate::report;

/// A line on stdout for each intact file, one on stderr for each other.
pub(crate) fn run(args: &VerifyArgs) -> Result<ExitCode> {
    let mut output = Output::stdout()?;
    let mut code = ExitCode::SUCCESS;
    for path in &args.filters {
        match check(path, args) {
            Ok(_) if args.quiet => {}
            Ok(what) => {
                output.write(format!("{}: {what}\n", display_name(path)).as_bytes())?;
                output.flush()?;
            }
            Err(error) => {
                report::say(&format!("petal: {error:#}"));
                code = ExitCode::from(crate::ERROR);
            }
        }
    }
    output.finish()?;
    Ok(code)
}

/// What is to be said of an intact file.
fn check(path: &Path, args: &VerifyArgs) -> Result<String> {
    if let Some(other) = foreign::open(path, &args.foreign, None)? {
        let format = other.format();
        return Ok(format!(
            "OK as far as a file of {format} shows: it has no checksum"
        ));
    }
    let verified = match petal::verify(path) {
        Err(Error::Format(FormatError::Wire)) => petal::wire::inspect(path).map(drop),
        other => other.map(drop),
    };
    verified.map_err(|error| named(path, error))?;
    Ok("OK".to_owned())
}
