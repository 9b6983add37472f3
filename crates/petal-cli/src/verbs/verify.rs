//! `petal verify`: whether files are whole, by every checksum.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use petal::{Error, FormatError};
use petal_interop::Format;

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
        foreign::check_flags(&args.foreign, &[Some(format)])?;
        let unseen = match format {
            Format::Rbloom => {
                "it has neither checksum nor length, so that one that is cut off, or has more at \
                 its end, looks whole"
            }
            Format::Dcso | Format::Poppy => {
                "it has no checksum, and what is attached to it no length"
            }
            Format::Classic => "it has no checksum and no header",
            _ => "it has no checksum",
        };
        return Ok(format!("OK as far as a file of {format} shows: {unseen}"));
    }
    foreign::check_flags(&args.foreign, &[None])?;
    let verified = match petal::verify(path) {
        Err(Error::Format(FormatError::Wire)) => petal::wire::inspect(path).map(drop),
        other => other.map(drop),
    };
    verified.map_err(|error| named(path, error))?;
    Ok("OK".to_owned())
}
