//! A mail server asks whether to take a message: its sender's address is on a list of disposable
//! or abusive ones, or it is not, and a customer's never is.
//!
//! ```console
//! $ petal build disposable.txt -o deny.petal --ignore-case --kind cascade --not-listed customers.txt
//! $ cargo run --release -p petal-fronts --bin mail_list -- deny.petal --allow allow.txt
//! listening on 127.0.0.1:8025
//! $ curl 'http://127.0.0.1:8025/check?address=someone@mx.mailinator.com'
//! block mailinator.com
//! $ petal build new.txt -o deny.petal --force --ignore-case; curl -X POST http://127.0.0.1:8025/reload
//! ```
//!
//! An address is asked as it is, then its domain and all parent domains of two labels or more. Whatever
//! of these is in the allow list lets it pass, before anything is blocked: below an allowed
//! domain nothing is. The list is a filter of any kind: of a cascade the customers that it was
//! built with never block, either.

#![expect(clippy::print_stderr, reason = "what a signal has done")]

mod address;
mod lists;
mod service;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use lists::Sources;
use service::Service;

/// Answer over HTTP whether a mail address is on a list
#[derive(Debug, Parser)]
#[command(after_help = "\
GET  /check?address=A   `block NAME`, `pass`, or `pass NAME` if NAME is in the allow list
POST /check             the same for each line of the body
POST /reload            read list and allow list anew; SIGHUP does the same
GET  /status            what is loaded

Whoever can reach the address can reload. Lists that cannot be read leave the old ones in force.")]
struct Args {
    #[command(flatten)]
    sources: Sources,
    /// Address to listen on; with port 0 any free one.
    #[arg(long, default_value = "127.0.0.1:8025")]
    listen: SocketAddr,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let service = Arc::new(Service::open(args.sources)?);
    let mut hang_up = signal(SignalKind::hangup())?;
    let reloaded = Arc::clone(&service);
    tokio::spawn(async move {
        while hang_up.recv().await.is_some() {
            match reloaded.reload().await {
                Ok(lists) => eprintln!("mail_list: loaded: {lists}"),
                Err(error) => eprintln!("mail_list: the old lists stay: {error:#}"),
            }
        }
    });
    let listener = tokio::net::TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("listen on {}", args.listen))?;
    writeln!(std::io::stdout(), "listening on {}", listener.local_addr()?)?;
    let mut terminate = signal(SignalKind::terminate())?;
    axum::serve(listener, service::router(service))
        .with_graceful_shutdown(async move {
            terminate.recv().await;
        })
        .await?;
    Ok(())
}
