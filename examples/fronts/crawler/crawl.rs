//! The crawl itself: pages are fetched at the same time, and their links handled one page after
//! the other.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use petal::{Contains, Secret};
use reqwest::{Client, header, redirect};
use tokio::task::JoinSet;
use url::Url;

use crate::seen::Seen;
use crate::state::{Begin, State};
use crate::urls::{self, Site};

#[derive(Debug, Args)]
pub(crate) struct CrawlArgs {
    /// Where to begin. Links to other hosts or ports are not followed.
    start: String,
    /// Folder that keeps the crawl: a crawl that is there is gone on with.
    #[arg(long)]
    state: Option<PathBuf>,
    /// URLs that are expected; more take more memory, at the same error.
    #[arg(short = 'n', long, default_value_t = 1_000_000)]
    items: u64,
    /// Share of new pages that may be taken for seen ones.
    #[arg(short = 'p', long, default_value_t = 1e-6)]
    error: f64,
    /// Requests at the same time.
    #[arg(long, default_value_t = 8)]
    connections: usize,
    /// Name of a query parameter that says nothing about the page; `*` at its end stands for any
    /// rest.
    #[arg(long, default_value = "sid")]
    strip_param: Vec<String>,
    /// Pages after which the filter is saved and the journal begins anew.
    #[arg(long, default_value_t = 10_000)]
    save_every: u64,
    /// Stop after so many pages of this run.
    #[arg(long)]
    limit: Option<u64>,
    /// Fetch again what was on its way when a process was killed.
    #[arg(long)]
    again: bool,
    /// Wait for the disk before each request: for power failures, not only for killed processes.
    #[arg(long, requires = "state")]
    sync: bool,
    /// 16 secret bytes that URLs are hashed under: who writes the pages could otherwise choose URLs
    /// that hide others.
    #[arg(long)]
    secret_file: Option<PathBuf>,
    /// Remember URLs in an exact set, to compare.
    #[arg(long, conflicts_with = "state")]
    exact: bool,
}

/// Bytes of a page that are read at most.
const MAX_PAGE: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(20);

/// What a crawl has come to.
pub(crate) struct Summary {
    done: u64,
    failed: u64,
    interrupted: usize,
    waiting: usize,
    new: u64,
    expected_missed: f64,
    bytes: u64,
    frontier_most: usize,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "pages fetched               {}", self.done)?;
        writeln!(f, "pages failed                {}", self.failed)?;
        writeln!(f, "pages on their way at kills {}", self.interrupted)?;
        writeln!(f, "pages waiting               {}", self.waiting)?;
        writeln!(f, "URLs seen                   {}", self.new)?;
        writeln!(
            f,
            "expected number missed      {:.3e}",
            self.expected_missed
        )?;
        writeln!(f, "bytes for what was seen     {}", self.bytes)?;
        writeln!(f, "URLs waiting, at most       {}", self.frontier_most)
    }
}

/// What came of a URL.
struct Fetched {
    url: String,
    page: Result<Page>,
}

struct Page {
    /// Where it says to go instead.
    location: Option<String>,
    text: String,
}

pub(crate) async fn run(args: &CrawlArgs) -> Result<Summary> {
    let site = Site::new(&args.start)?;
    let mut state = open(args)?;
    // That of the filter, if the crawl goes on: links must get the URLs that they had before.
    let normalisation = match state.seen.filter_mut() {
        Some(filter) => filter.about().identity().normalisation.clone(),
        None => urls::normalisation(&args.strip_param)?,
    };
    let Some(start) = urls::canonical(&normalisation, &args.start) else {
        bail!("{}: expected an absolute URL", args.start);
    };
    state.start(&start)?;
    if args.again {
        state.claim_again();
    }
    // Redirections are links: their targets may have been seen.
    let client = Client::builder()
        .redirect(redirect::Policy::none())
        .timeout(TIMEOUT)
        .build()?;
    let mut fetches: JoinSet<Fetched> = JoinSet::new();
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut since_save = 0;
    let mut frontier_most = 0;
    loop {
        while fetches.len() < args.connections.max(1) && left > 0 {
            let Some(url) = state.claim()? else { break };
            left -= 1;
            let client = client.clone();
            fetches.spawn(async move {
                let page = fetch(&client, &url).await;
                Fetched { url, page }
            });
        }
        let Some(fetched) = fetches.join_next().await else {
            break;
        };
        let Fetched { url, page } = fetched?;
        match page {
            Ok(page) => {
                let base = Url::parse(&url)?;
                let links = urls::links(&page.text).chain(page.location);
                let links = links.filter_map(|link| site.resolve(&base, &link));
                let links = links.filter_map(|link| urls::canonical(&normalisation, link.as_str()));
                let links: Vec<_> = links.collect();
                state.done(&url, &links)?;
            }
            Err(_) => state.failed(&url)?,
        }
        frontier_most = frontier_most.max(state.waiting.len());
        since_save += 1;
        if since_save >= args.save_every {
            state.save()?;
            since_save = 0;
        }
    }
    state.save()?;
    Ok(Summary {
        done: state.done,
        failed: state.failed,
        interrupted: state.on_their_way.len(),
        waiting: state.waiting.len(),
        new: state.seen.new,
        expected_missed: state.seen.expected_missed,
        bytes: state.seen.bytes(),
        frontier_most,
    })
}

fn open(args: &CrawlArgs) -> Result<State> {
    if args.exact {
        return Ok(State::unkept(Seen::exact()));
    }
    let secret = args.secret_file.as_deref().map(read_secret).transpose()?;
    let normalisation = urls::normalisation(&args.strip_param)?;
    let Some(folder) = &args.state else {
        let seen = Seen::sized(args.items, args.error, normalisation, secret)?;
        return Ok(State::unkept(seen));
    };
    let begin = Begin {
        items: args.items,
        error: args.error,
        normalisation,
    };
    State::open(folder, begin, secret.as_ref(), args.sync)
}

fn read_secret(path: &Path) -> Result<Secret> {
    let bytes = std::fs::read(path).with_context(|| format!("{}", path.display()))?;
    let Ok(bytes) = <[u8; 16]>::try_from(bytes.as_slice()) else {
        bail!("{}: {} bytes, expected 16", path.display(), bytes.len());
    };
    Ok(Secret::new(bytes))
}

async fn fetch(client: &Client, url: &str) -> Result<Page> {
    let mut reply = client.get(url).send().await?;
    let status = reply.status();
    if !status.is_success() && !status.is_redirection() {
        bail!("{url}: {status}");
    }
    let location = reply.headers().get(header::LOCATION);
    let location = location.and_then(|to| to.to_str().ok()).map(str::to_owned);
    let mut body = Vec::new();
    while let Some(chunk) = reply.chunk().await? {
        if body.len() + chunk.len() > MAX_PAGE {
            break;
        }
        body.extend_from_slice(&chunk);
    }
    let text = String::from_utf8_lossy(&body).into_owned();
    Ok(Page { location, text })
}
