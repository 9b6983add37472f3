//! The mail list on real lists: what it blocks, and that no request is dropped while lists are
//! exchanged.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use petal::{AnyFilter, CascadeFilter, Overwrite, StaticFilter};
use reqwest::Client;
use tokio::task::JoinSet;

#[derive(Debug, Args)]
pub(crate) struct MailArgs {
    /// Folder with the lists that tests/lists/fetch.sh writes.
    #[arg(long)]
    lists: PathBuf,
    /// Seconds of load for each filter.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Requests at the same time.
    #[arg(long, default_value_t = 16)]
    clients: usize,
    /// Other addresses that are asked about.
    #[arg(long, default_value_t = 400_000)]
    others: usize,
    /// Folder for the filters, which are removed at the end.
    #[arg(long, default_value = "target/front-trials")]
    folder: PathBuf,
}

/// Milliseconds between two exchanges of the list.
const EXCHANGE_EVERY: u64 = 20;

struct Lists {
    listed: Vec<String>,
    customers: Vec<String>,
    others: Vec<String>,
}

pub(crate) fn run(args: &MailArgs) -> Result<bool> {
    let lists = Arc::new(Lists::read(args)?);
    let folder = args.folder.join("mail");
    std::fs::create_dir_all(&folder)?;
    println!(
        "{} disposable domains, {} customers (free mail providers), {} other addresses; then {} s of \
         requests from {} clients while the list is exchanged every {EXCHANGE_EVERY} ms:\n",
        lists.listed.len(),
        lists.customers.len(),
        lists.others.len(),
        args.seconds,
        args.clients
    );
    println!(
        "| filter | error | bytes | listed let pass | customers blocked | others blocked | expected | requests/s | p50 ms | p99 ms | exchanges | dropped |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let mut passed = true;
    for (form, error) in [("static", 1e-3), ("cascade", 1e-3), ("cascade", 1e-6)] {
        let filters = [folder.join("deny.petal"), folder.join("other.petal")];
        let more = ["added.example".to_owned()];
        let about = save(form, &lists, &[], error, &filters[0])?;
        save(form, &lists, &more, error, &filters[1])?;
        let server = Server::start(&filters[0])?;
        passed &= runtime.block_on(row(form, error, about, args, &lists, &server, &filters))?;
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(passed)
}

impl Lists {
    fn read(args: &MailArgs) -> Result<Self> {
        let read = |name: &str| {
            let path = args.lists.join(name);
            std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))
        };
        let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_lowercase).collect() };
        let listed = lines(&read("disposable-domains.txt")?);
        let known: HashSet<_> = listed.iter().map(String::as_str).collect();
        let mut customers = lines(&read("freemail-free.txt")?);
        // The two lists are of two makers, who do not always agree.
        // And one has an error page's text among its lines.
        customers.retain(|name| !name.contains(' ') && !has_name(&known, name));
        let mut others = Vec::new();
        for word in read("american-english-insane.txt")?.lines() {
            let domain = format!("{word}.example");
            if word.bytes().all(|byte| byte.is_ascii_lowercase()) && !has_name(&known, &domain) {
                others.push(format!("postmaster@{domain}"));
            }
        }
        others.truncate(args.others);
        Ok(Self {
            listed,
            customers,
            others,
        })
    }
}

/// Whether a list has a domain or one above it.
fn has_name(list: &HashSet<&str>, domain: &str) -> bool {
    let above = domain.match_indices('.').map(|(dot, _)| &domain[dot + 1..]);
    std::iter::once(domain)
        .chain(above)
        .any(|name| list.contains(name))
}

/// Bytes of a filter and its error.
type About = (u64, f64);

fn save(form: &str, lists: &Lists, more: &[String], error: f64, path: &Path) -> Result<About> {
    let listed = lists.listed.iter().chain(more);
    let filter = match form {
        "cascade" => {
            let filter = CascadeFilter::from_keys(listed, &lists.customers, error)?;
            AnyFilter::Cascade(filter.into_inner())
        }
        _ => AnyFilter::Static(StaticFilter::from_keys(listed, error)?.into_inner()),
    };
    filter.save(path, Overwrite::Replace)?;
    Ok((std::fs::metadata(path)?.len(), filter.error_now()))
}

/// `mail_list`, from beside this program.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(filter: &Path) -> Result<Self> {
        let program = std::env::current_exe()?.with_file_name("mail_list");
        let mut child = Command::new(&program)
            .arg(filter)
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("its output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let Some(address) = line.trim().strip_prefix("listening on ") else {
            bail!("mail_list said {line:?}, expected its address");
        };
        Ok(Self {
            url: format!("http://{address}"),
            child,
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn row(
    form: &str,
    error: f64,
    (bytes, error_now): About,
    args: &MailArgs,
    lists: &Arc<Lists>,
    server: &Server,
    filters: &[PathBuf; 2],
) -> Result<bool> {
    let client = Client::new();
    let let_pass = lists.listed.len() - blocked(&client, server, &lists.listed).await?;
    let customers = blocked(&client, server, &lists.customers).await?;
    let others = blocked(&client, server, &lists.others).await?;
    // The address and its domain are asked.
    let expected = lists.others.len() as f64 * 2.0 * error_now;
    let load = load(&client, args, lists, server, filters).await?;
    println!(
        "| {form} | {error} | {bytes} | {let_pass} | {customers} | {others} | {expected:.1} | {:.0} | {:.2} | {:.2} | {} | {} |",
        load.answered as f64 / load.seconds,
        load.percentile(50),
        load.percentile(99),
        load.exchanges,
        load.dropped
    );
    let unlikely = (others as f64 - expected).abs() > 5.0 * expected.sqrt() + 1.0;
    let exact = form != "cascade" || customers == 0;
    Ok(let_pass == 0 && exact && !unlikely && load.dropped == 0 && load.exchanges > 0)
}

/// How many of the addresses are blocked.
async fn blocked(client: &Client, server: &Server, addresses: &[String]) -> Result<usize> {
    let mut blocked = 0;
    for some in addresses.chunks(10_000) {
        let request = client
            .post(format!("{}/check", server.url))
            .body(some.join("\n"));
        let text = request.send().await?.error_for_status()?.text().await?;
        ensure!(
            text.lines().count() == some.len(),
            "not an answer for each line"
        );
        ensure!(!text.contains("bad "), "an address was not understood");
        blocked += text
            .lines()
            .filter(|line| line.starts_with("block "))
            .count();
    }
    Ok(blocked)
}

struct Load {
    answered: u64,
    dropped: u64,
    exchanges: u64,
    seconds: f64,
    /// Microseconds of each request, sorted.
    took: Vec<u32>,
}

impl Load {
    /// Milliseconds that so many of a hundred requests did not take longer than.
    fn percentile(&self, of_100: usize) -> f64 {
        let at = (self.took.len() * of_100 / 100).min(self.took.len().saturating_sub(1));
        self.took
            .get(at)
            .map_or(f64::NAN, |&micros| f64::from(micros) / 1000.0)
    }
}

async fn load(
    client: &Client,
    args: &MailArgs,
    lists: &Arc<Lists>,
    server: &Server,
    filters: &[PathBuf; 2],
) -> Result<Load> {
    let state = Arc::new(Running::default());
    let mut clients = JoinSet::new();
    for number in 0..args.clients {
        let (client, lists, url) = (client.clone(), Arc::clone(lists), server.url.clone());
        clients.spawn(one_client(client, number, lists, url, Arc::clone(&state)));
    }
    let began = Instant::now();
    let versions = [std::fs::read(&filters[0])?, std::fs::read(&filters[1])?];
    let mut exchanges = 0;
    while began.elapsed() < Duration::from_secs(args.seconds) {
        let fresh = filters[1].with_extension("fresh");
        std::fs::write(&fresh, &versions[1 - exchanges % 2])?;
        std::fs::rename(fresh, &filters[0])?;
        let reload = client.post(format!("{}/reload", server.url)).send().await?;
        ensure!(reload.status().is_success(), "{}", reload.text().await?);
        exchanges += 1;
        tokio::time::sleep(Duration::from_millis(EXCHANGE_EVERY)).await;
    }
    state.done.store(true, Ordering::Relaxed);
    let seconds = began.elapsed().as_secs_f64();
    let mut took = clients.join_all().await.concat();
    took.sort_unstable();
    Ok(Load {
        answered: took.len() as u64,
        dropped: state.dropped.load(Ordering::Relaxed),
        exchanges: exchanges as u64,
        seconds,
        took,
    })
}

/// What clients share.
#[derive(Debug, Default)]
struct Running {
    done: AtomicBool,
    dropped: AtomicU64,
}

/// Asks one address after the other, every second one a listed one; how long each took.
async fn one_client(
    client: Client,
    number: usize,
    lists: Arc<Lists>,
    server: String,
    state: Arc<Running>,
) -> Vec<u32> {
    let mut took = Vec::new();
    let mut at = number * 7919;
    while !state.done.load(Ordering::Relaxed) {
        at += 1;
        let (domain, expected) = if at.is_multiple_of(2) {
            (&lists.listed[at % lists.listed.len()], "block ")
        } else {
            (&lists.customers[at % lists.customers.len()], "")
        };
        let began = Instant::now();
        let url = format!("{server}/check?address=x@mx.{domain}");
        let answer = async {
            client
                .get(url)
                .send()
                .await?
                .error_for_status()?
                .text()
                .await
        };
        match answer.await {
            Ok(text) if text.starts_with(expected) => {
                took.push(u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX));
            }
            _ => drop(state.dropped.fetch_add(1, Ordering::Relaxed)),
        }
    }
    took
}
