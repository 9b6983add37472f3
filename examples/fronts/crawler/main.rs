//! A crawler that remembers in a filter what it has seen, and a site to try it on.
//!
//! ```console
//! $ crawler serve --pages 20000 &
//! listening on 127.0.0.1:40123
//! $ crawler crawl http://127.0.0.1:40123/ --state crawl
//! ```
//!
//! * No page is fetched twice, under whatever spelling of its URL it is linked
//!   (`petal::normalise`), and so no loop of links is followed.
//! * A new page that the filter takes for a seen one is missed: the summary says how many these
//!   are expected to be.
//! * It may be killed at any moment and goes on from `--state`, which is a folder: the filter
//!   and a journal with the frontier. Pages that were on their way are not fetched again, since
//!   the server may have sent them: at most one a connection. `--again` fetches them.

#![expect(
    clippy::print_stdout,
    reason = "the summary is what a crawl is asked for here"
)]

mod crawl;
mod journal;
mod seen;
mod site;
mod state;
mod urls;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Crawl a site without fetching a page twice
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Fetch every page of a site that links lead to
    Crawl(crawl::CrawlArgs),
    /// Serve a generated site with loops
    Serve(site::ServeArgs),
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    match Args::parse().role {
        Role::Crawl(args) => {
            let summary = crawl::run(&args).await?;
            print!("{summary}");
        }
        Role::Serve(args) => site::serve(args).await?,
    }
    Ok(ExitCode::SUCCESS)
}
