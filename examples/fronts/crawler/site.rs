//! A generated site: pages in a tree, with links back, across and to themselves, in several
//! spellings, and a ring of redirections. It counts how often each page is fetched.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use clap::Args;

#[derive(Debug, Clone, Args)]
pub(crate) struct ServeArgs {
    /// Pages, besides a ring of three redirections.
    #[arg(long, default_value_t = 20_000)]
    pages: u64,
    /// Links a page to pages anywhere.
    #[arg(long, default_value_t = 6)]
    links: u64,
    /// Milliseconds before each answer.
    #[arg(long, default_value_t = 0)]
    delay: u64,
    /// Other links.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Address to listen on; with port 0 any free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

/// Pages that each page leads down to, so that all are reached.
const CHILDREN: u64 = 4;
/// Redirections that lead to one another.
const RING: u64 = 3;

struct Site {
    args: ServeArgs,
    /// How often each page was fetched, and each redirection after them.
    fetched: Vec<AtomicU32>,
}

pub(crate) async fn serve(args: ServeArgs) -> Result<()> {
    let listener = tokio::net::TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("listen on {}", args.listen))?;
    writeln!(std::io::stdout(), "listening on {}", listener.local_addr()?)?;
    let site = Site {
        fetched: (0..args.pages + RING).map(|_| AtomicU32::new(0)).collect(),
        args,
    };
    let router = Router::new()
        .route(
            "/",
            get(|State(site): State<Arc<Site>>, headers: HeaderMap| page(site, 0, headers)),
        )
        .route("/page/{number}", get(numbered))
        .route("/ring/{number}", get(ring))
        .route("/counts", get(counts))
        .with_state(Arc::new(site));
    Ok(axum::serve(listener, router).await?)
}

async fn numbered(
    State(site): State<Arc<Site>>,
    Path(number): Path<u64>,
    headers: HeaderMap,
) -> Response {
    if number == 0 || number >= site.args.pages {
        return StatusCode::NOT_FOUND.into_response();
    }
    page(site, number, headers).await
}

async fn page(site: Arc<Site>, number: u64, headers: HeaderMap) -> Response {
    site.count(number).await;
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    Html(site.html(number, host.unwrap_or_default())).into_response()
}

async fn ring(State(site): State<Arc<Site>>, Path(number): Path<u64>) -> Response {
    let number = number % RING;
    site.count(site.args.pages + number).await;
    let next = format!("{}", (number + 1) % RING);
    (StatusCode::FOUND, [(header::LOCATION, next)]).into_response()
}

/// `pages fetched most`: how many there are, how many were fetched at all, and the number of
/// fetches of the page that was fetched most; then how many were fetched more than once.
async fn counts(State(site): State<Arc<Site>>) -> String {
    let counts = site
        .fetched
        .iter()
        .map(|count| count.load(Ordering::Relaxed));
    let counts: Vec<u32> = counts.collect();
    let fetched = counts.iter().filter(|&&count| count > 0).count();
    let again = counts.iter().filter(|&&count| count > 1).count();
    let most = counts.iter().max().copied().unwrap_or(0);
    format!("{} {fetched} {most} {again}\n", counts.len())
}

impl Site {
    async fn count(&self, number: u64) {
        let count = usize::try_from(number)
            .ok()
            .and_then(|at| self.fetched.get(at));
        if let Some(count) = count {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if self.args.delay > 0 {
            tokio::time::sleep(Duration::from_millis(self.args.delay)).await;
        }
    }

    fn html(&self, number: u64, host: &str) -> String {
        let mut html = format!("<!doctype html><title>Page {number}</title>\n");
        let mut link = |target: u64, spelling: u64| {
            let path = match target {
                0 => "/".to_owned(),
                _ => format!("/page/{target}"),
            };
            let href = match spelling % 6 {
                0 => path,
                1 => format!("HTTP://{host}{path}#part"),
                2 => format!("{path}?sid={number}"),
                3 => format!("/./x/..{path}"),
                4 => path.replace("page", "p%61ge"),
                _ => format!("//{host}{path}?#"),
            };
            // A `?` with nothing behind it is another URL.
            let href = href.replace("?#", "#");
            let _ = writeln!(html, "<a href=\"{href}\">{target}</a>"); // a String takes all
        };
        for child in number * CHILDREN + 1..=number * CHILDREN + CHILDREN {
            if child < self.args.pages {
                link(child, child);
            }
        }
        for index in 0..self.args.links {
            let random = petal::mix_int((number * 64 + index).cast_signed(), self.args.seed);
            link(random % self.args.pages, random >> 32);
        }
        link(number / CHILDREN, number);
        link(number, number + 1);
        let _ = writeln!(
            html,
            "<a href='/ring/{}'>ring</a> <a href=\"mailto:x@example.org\">mail</a> \
             <a href=\"http://elsewhere.example/page/1\">elsewhere</a>",
            number % RING
        );
        html
    }
}
