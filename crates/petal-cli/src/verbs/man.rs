//! `petal man`: the whole manual on one page, from the definitions in `args`.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::{Cli, ManArgs};
use crate::output::Output;

/// Prints the page.
pub(crate) fn run(_: &ManArgs) -> Result<ExitCode> {
    let mut output = Output::stdout()?;
    output.write(&page()?)?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn page() -> Result<Vec<u8>> {
    let mut command = Cli::command();
    // Gives the verbs their full names.
    command.build();
    let mut page = Vec::new();
    let whole = Man::new(command.clone()).manual("User Commands");
    whole.render_title(&mut page)?;
    whole.render_name_section(&mut page)?;
    whole.render_synopsis_section(&mut page)?;
    whole.render_description_section(&mut page)?;
    examples(&command, "SH", &mut page);
    for verb in command.get_subcommands().filter(|v| v.get_name() != "help") {
        let name = format!("petal {}", verb.get_name());
        page.extend(format!(".SH \"{}\"\n", name.to_uppercase()).bytes());
        let man = Man::new(verb.clone());
        let mut part = Vec::new();
        man.render_description_section(&mut part)?;
        page.extend(without_heading(&part));
        part.clear();
        man.render_synopsis_section(&mut part)?;
        man.render_options_section(&mut part)?;
        page.extend(as_subsections(&part));
        examples(verb, "SS", &mut page);
        if let Some(notes) = verb.get_after_help() {
            page.extend(b".SS NOTES\n");
            paragraphs(&notes.to_string(), &mut page);
        }
    }
    if let Some(notes) = command.get_after_help() {
        page.extend(b".SH NOTES\n");
        paragraphs(&notes.to_string(), &mut page);
    }
    Ok(page)
}

/// The text without its first heading.
fn without_heading(part: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(part);
    let lines = text.lines().filter(|line| !line.starts_with(".SH "));
    lines
        .flat_map(|line| [line.as_bytes(), b"\n"].concat())
        .collect()
}

/// The text with its sections as parts of the section it goes into.
fn as_subsections(part: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(part);
    let lines = text.lines().map(|line| match line.strip_prefix(".SH ") {
        Some(heading) => format!(".SS {heading}\n"),
        None => format!("{line}\n"),
    });
    lines.flat_map(String::into_bytes).collect()
}

/// The examples that `--help` begins with, as they stand.
fn examples(command: &Command, level: &str, page: &mut Vec<u8>) {
    let Some(text) = command.get_before_help() else {
        return;
    };
    page.extend(format!(".{level} EXAMPLES\n.nf\n").bytes());
    for line in text.to_string().lines().skip(1) {
        page.extend(escaped(line.strip_prefix("  ").unwrap_or(line)).bytes());
        page.push(b'\n');
    }
    page.extend(b".fi\n");
}

fn paragraphs(text: &str, page: &mut Vec<u8>) {
    for line in text.lines() {
        let line = if line.is_empty() {
            ".PP".to_owned()
        } else {
            escaped(line)
        };
        page.extend(line.bytes());
        page.push(b'\n');
    }
}

/// Text that roff prints as it is.
fn escaped(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) {
        format!("\\&{text}")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_and_flag_is_on_the_page() {
        let page = String::from_utf8(page().unwrap()).unwrap();
        for verb in Cli::command().get_subcommands() {
            let heading = format!("\"PETAL {}\"", verb.get_name().to_uppercase());
            assert!(page.contains(&heading), "{heading}");
            for flag in verb.get_arguments().filter_map(clap::Arg::get_long) {
                let flag = format!("\\-\\-{}", flag.replace('-', "\\-"));
                assert!(page.contains(&flag), "{flag}");
            }
        }
    }

    #[test]
    fn text_is_not_taken_for_commands() {
        assert_eq!(escaped(".gz -n \\t"), "\\&.gz \\-n \\et");
    }
}
