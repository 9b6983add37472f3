//! The crawler on its site: never twice, all pages but those expected to be missed, and through
//! kill -9.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::program::Server;

const PAGES: u64 = 3000;
/// Redirections, besides the pages.
const RING: u64 = 3;
const CONNECTIONS: u64 = 4;

fn site(arguments: &[&str]) -> Server {
    let pages = PAGES.to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawler"));
    Server::start(command.args(["serve", "--pages", &pages]).args(arguments))
}

fn crawler(site: &Server, state: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawler"));
    command.args([
        "crawl",
        &site.url,
        "--connections",
        &CONNECTIONS.to_string(),
        "--state",
    ]);
    command.arg(state);
    command
}

/// Runs a crawl to its end; the numbers of its summary, by their labels.
fn finish(command: &mut Command) -> impl Fn(&str) -> f64 + use<> {
    let done = command.output().unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let said = String::from_utf8(done.stdout).unwrap();
    move |label| {
        let line = said.lines().find(|line| line.starts_with(label)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }
}

/// What the site has counted: pages, fetched, fetches of one page at most, fetched again.
async fn counts(site: &Server) -> [u64; 4] {
    let text = reqwest::get(format!("{}/counts", site.url))
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let counts: Vec<u64> = text
        .split_whitespace()
        .map(|count| count.parse().unwrap())
        .collect();
    counts.try_into().unwrap()
}

#[tokio::test]
async fn every_page_is_fetched_once() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(&[]);
    let summary = finish(&mut crawler(&site, &folder.path().join("state")));
    assert_eq!(counts(&site).await, [PAGES + RING, PAGES + RING, 1, 0]);
    assert_eq!(summary("pages fetched"), (PAGES + RING) as f64);
    assert_eq!(summary("pages waiting"), 0.0);
    // And a second run has nothing to do.
    let summary = finish(&mut crawler(&site, &folder.path().join("state")));
    assert_eq!(summary("pages fetched"), (PAGES + RING) as f64);
    assert_eq!(counts(&site).await, [PAGES + RING, PAGES + RING, 1, 0]);
}

#[tokio::test]
async fn as_many_pages_are_missed_as_expected() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(&["--links", "20"]);
    let pages = PAGES.to_string();
    let mut command = crawler(&site, &folder.path().join("state"));
    let summary = finish(command.args(["-p", "0.1", "-n", &pages]));
    let [all, fetched, most, _] = counts(&site).await;
    assert_eq!(most, 1);
    let (missed, expected) = ((all - fetched) as f64, summary("expected number missed"));
    assert!(expected > 20.0, "{expected}");
    assert!(
        (missed - expected).abs() < 5.0 * expected.sqrt(),
        "{missed}, expected {expected}"
    );
}

/// Kills crawls at several moments, then lets one end.
async fn killed(again: bool) -> ([u64; 4], u64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let site = site(&["--delay", "2"]);
    let mut kills = 0;
    for life in [5, 80, 150, 200, 90, 250, 120, 60] {
        let mut command = crawler(&site, &state);
        command
            .args(["--save-every", "150"])
            .args(again.then_some("--again"));
        let mut crawl = command.stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(life));
        crawl.kill().unwrap();
        // It may have ended by itself on a quick machine.
        kills += u64::from(crawl.wait().unwrap().code().is_none());
    }
    let mut command = crawler(&site, &state);
    let summary = finish(
        command
            .args(["--save-every", "150"])
            .args(again.then_some("--again")),
    );
    let counts = counts(&site).await;
    (counts, kills, summary("pages on their way at kills"))
}

#[tokio::test]
async fn no_page_is_fetched_twice_across_kills() {
    let ([all, fetched, most, again], kills, on_their_way) = killed(false).await;
    assert!(kills > 0);
    assert_eq!((most, again), (1, 0));
    assert!(
        on_their_way <= (kills * CONNECTIONS) as f64,
        "{on_their_way}"
    );
    // What was on its way was fetched or not, and its links are found elsewhere.
    assert!(
        (all - fetched) as f64 <= on_their_way,
        "{fetched} of {all}, {on_their_way}"
    );
}

#[tokio::test]
async fn pages_that_were_on_their_way_come_if_asked_for() {
    let ([all, fetched, most, again], kills, on_their_way) = killed(true).await;
    assert!(kills > 0);
    assert_eq!((fetched, on_their_way), (all, 0.0));
    assert!(again <= kills * CONNECTIONS && most <= 1 + u32::try_from(kills).map_or(0, u64::from));
}
