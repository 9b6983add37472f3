//! Real servers on loopback: Redis with and without the module, a proxy that makes
//! it slow or silent, and SQLite behind it all.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use petal_guard::{BoxError, Builder, ChangeFeed, Changes, FeedError, Guard, Layer, Storage};
use rusqlite::{Connection, OptionalExtension, params};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

pub(crate) const SECRET: [u8; 16] = *b"petal guard test";

/// A redis-server that ends with this.
pub(crate) struct Redis {
    child: Option<Child>,
    pub(crate) port: u16,
    folder: TempDir,
    arguments: Vec<String>,
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn module() -> PathBuf {
    let module = std::env::var_os("PETAL_REDIS_MODULE")
        .expect("PETAL_REDIS_MODULE names the module: ./test guard builds it and sets that");
    let module = PathBuf::from(module);
    assert!(module.is_file(), "no module at {}", module.display());
    module
}

impl Redis {
    pub(crate) async fn with_module() -> Self {
        Self::new(&["--loadmodule", module().to_str().unwrap()]).await
    }

    pub(crate) async fn plain() -> Self {
        Self::new(&[]).await
    }

    pub(crate) async fn new(arguments: &[&str]) -> Self {
        let mut redis = Self {
            child: None,
            port: free_port(),
            folder: tempfile::tempdir().unwrap(),
            arguments: arguments.iter().map(ToString::to_string).collect(),
        };
        redis.start().await;
        redis
    }

    /// With what it saved, if it did.
    pub(crate) async fn start(&mut self) {
        let mut command = Command::new("redis-server");
        command
            .args([
                "--port",
                &self.port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
            ])
            .args(["--repl-diskless-sync-delay", "0"])
            .arg("--dir")
            .arg(self.folder.path())
            .args(&self.arguments)
            .stdout(Stdio::null());
        self.child = Some(command.spawn().expect("redis-server is installed"));
        for _ in 0..500 {
            sleep(Duration::from_millis(10)).await;
            if let Ok(mut connection) = self.client().get_multiplexed_async_connection().await
                && let Ok(pong) = redis::cmd("PING")
                    .query_async::<String>(&mut connection)
                    .await
            {
                assert_eq!(pong, "PONG");
                return;
            }
        }
        panic!("redis-server did not come up on port {}", self.port);
    }

    /// As by a power cut.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    fn client(&self) -> redis::Client {
        redis::Client::open(self.url()).unwrap()
    }

    /// What an operator types.
    pub(crate) async fn say<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let mut connection = self
            .client()
            .get_multiplexed_async_connection()
            .await
            .unwrap();
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async(&mut connection).await.unwrap()
    }

    /// The keys of one kind: `filter`, `value`.
    pub(crate) async fn keys(&self, kind: &str) -> Vec<String> {
        self.say(&["KEYS", &format!("petal:*:{kind}*")]).await
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Stands between a guard and a server.
#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    /// Of each direction.
    pub(crate) delay_ms: Arc<AtomicU64>,
    /// Connections stay, and nothing goes through.
    pub(crate) silent: Arc<AtomicBool>,
}

impl Proxy {
    pub(crate) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            port: listener.local_addr().unwrap().port(),
            delay_ms: Arc::default(),
            silent: Arc::default(),
        };
        let accepting = proxy.clone();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)).await else {
                    continue;
                };
                near.set_nodelay(true).unwrap();
                far.set_nodelay(true).unwrap();
                let (near_read, near_write) = near.into_split();
                let (far_read, far_write) = far.into_split();
                tokio::spawn(accepting.clone().pass(near_read, far_write));
                tokio::spawn(accepting.clone().pass(far_read, near_write));
            }
        });
        proxy
    }

    async fn pass(
        self,
        mut from: tokio::net::tcp::OwnedReadHalf,
        mut to: tokio::net::tcp::OwnedWriteHalf,
    ) {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = from.read(&mut buffer).await.unwrap_or(0);
            if read == 0 {
                return;
            }
            let delay = self.delay_ms.load(SeqCst);
            if delay > 0 {
                sleep(Duration::from_millis(delay)).await;
            }
            while self.silent.load(SeqCst) {
                sleep(Duration::from_millis(5)).await;
            }
            if to.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

/// A table of keys and values, and one of changes.
#[derive(Clone)]
pub(crate) struct Sqlite {
    path: Arc<(TempDir, PathBuf)>,
    reader: Arc<Mutex<Connection>>,
    writer: Arc<Mutex<Connection>>,
    pub(crate) loads: Arc<AtomicU64>,
    pub(crate) fails: Arc<AtomicBool>,
    /// After the read: what was read gets old.
    pub(crate) delay_ms: Arc<AtomicU64>,
}

fn lock(connection: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    connection.lock().unwrap()
}

impl Sqlite {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("storage.db");
        let writer = Connection::open(&path).unwrap();
        writer
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;
                 CREATE TABLE kv (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID;
                 CREATE TABLE changes (at INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB);",
            )
            .unwrap();
        let reader = Connection::open(&path).unwrap();
        Self {
            path: Arc::new((folder, path)),
            reader: Arc::new(Mutex::new(reader)),
            writer: Arc::new(Mutex::new(writer)),
            loads: Arc::default(),
            fails: Arc::default(),
            delay_ms: Arc::default(),
        }
    }

    /// As a writer that knows nothing of guards.
    pub(crate) fn set(&self, key: &[u8], value: &[u8]) {
        let mut writer = lock(&self.writer);
        let change = writer.transaction().unwrap();
        change
            .prepare_cached("INSERT OR REPLACE INTO kv VALUES (?1, ?2)")
            .unwrap()
            .execute(params![key, value])
            .unwrap();
        change
            .prepare_cached("INSERT INTO changes (key) VALUES (?1)")
            .unwrap()
            .execute([key])
            .unwrap();
        change.commit().unwrap();
    }

    /// Many at once, and no changes of them.
    pub(crate) fn load_rows(&self, rows: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) {
        let mut writer = lock(&self.writer);
        let change = writer.transaction().unwrap();
        for (key, value) in rows {
            change
                .prepare_cached("INSERT OR REPLACE INTO kv VALUES (?1, ?2)")
                .unwrap()
                .execute(params![key, value])
                .unwrap();
        }
        change.commit().unwrap();
    }

    pub(crate) fn unset(&self, key: &[u8]) {
        let writer = lock(&self.writer);
        writer
            .execute("DELETE FROM kv WHERE key = ?1", [key])
            .unwrap();
        writer
            .execute("INSERT INTO changes (key) VALUES (?1)", [key])
            .unwrap();
    }

    pub(crate) fn value(&self, key: &[u8]) -> Option<Vec<u8>> {
        lock(&self.reader)
            .prepare_cached("SELECT value FROM kv WHERE key = ?1")
            .unwrap()
            .query_row([key], |row| row.get(0))
            .optional()
            .unwrap()
    }

    pub(crate) fn keys(&self) -> Vec<Vec<u8>> {
        let connection = Connection::open(&self.path.1).unwrap();
        let mut select = connection.prepare("SELECT key FROM kv").unwrap();
        let keys = select.query_map([], |row| row.get(0)).unwrap();
        keys.map(Result::unwrap).collect()
    }

    pub(crate) fn take_loads(&self) -> u64 {
        self.loads.swap(0, SeqCst)
    }

    /// Forgets changes, as a log does that is cut.
    pub(crate) fn cut_changes(&self) {
        lock(&self.writer)
            .execute("DELETE FROM changes", [])
            .unwrap();
    }

    pub(crate) fn feed(&self) -> Feed {
        Feed {
            changes: Connection::open(&self.path.1).map(Mutex::new).unwrap(),
            at: 0,
            control: FeedControl::default(),
        }
    }
}

#[async_trait]
impl Storage for Sqlite {
    async fn load(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BoxError> {
        self.loads.fetch_add(1, SeqCst);
        if self.fails.load(SeqCst) {
            return Err("storage is ill".into());
        }
        let (sqlite, key) = (self.clone(), key.to_vec());
        let value = tokio::task::spawn_blocking(move || sqlite.value(&key)).await?;
        let delay = self.delay_ms.load(SeqCst);
        if delay > 0 {
            sleep(Duration::from_millis(delay)).await;
        }
        Ok(value)
    }

    async fn store(&self, key: &[u8], value: &[u8]) -> Result<(), BoxError> {
        let (sqlite, key, value) = (self.clone(), key.to_vec(), value.to_vec());
        Ok(tokio::task::spawn_blocking(move || sqlite.set(&key, &value)).await?)
    }

    async fn delete(&self, key: &[u8]) -> Result<(), BoxError> {
        let (sqlite, key) = (self.clone(), key.to_vec());
        Ok(tokio::task::spawn_blocking(move || sqlite.unset(&key)).await?)
    }
}

/// What tests do to a feed.
#[derive(Clone, Default)]
pub(crate) struct FeedControl {
    /// Changes are brought so long after they were read.
    pub(crate) delay_ms: Arc<AtomicU64>,
    pub(crate) cut: Arc<AtomicBool>,
}

/// The table of changes, polled.
pub(crate) struct Feed {
    changes: Mutex<Connection>,
    at: i64,
    pub(crate) control: FeedControl,
}

impl Feed {
    fn newest(&self) -> rusqlite::Result<i64> {
        // The last number given, also if its row is gone.
        let newest = "SELECT seq FROM sqlite_sequence WHERE name = 'changes'";
        let newest = lock(&self.changes).query_row(newest, [], |row| row.get(0));
        Ok(newest.optional()?.unwrap_or(0))
    }

    fn after(&self, at: i64) -> rusqlite::Result<Vec<(i64, Vec<u8>)>> {
        let changes = lock(&self.changes);
        let mut select =
            changes.prepare_cached("SELECT at, key FROM changes WHERE at > ?1 ORDER BY at")?;
        let rows = select.query_map([at], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    }

    fn check(&self) -> Result<(), FeedError> {
        match self.control.cut.load(SeqCst) {
            true => Err(FeedError::Disconnected("cut by the test".into())),
            false => Ok(()),
        }
    }
}

fn disconnected(error: rusqlite::Error) -> FeedError {
    FeedError::Disconnected(error.into())
}

#[async_trait]
impl ChangeFeed for Feed {
    async fn start(&mut self, after: Option<&[u8]>) -> Result<(), FeedError> {
        self.check()?;
        let newest = self.newest().map_err(disconnected)?;
        self.at = match after {
            Some(position) => i64::from_le_bytes(position.try_into().unwrap()),
            None => newest,
        };
        let rows = self.after(self.at).map_err(disconnected)?;
        // Numbers have no gaps while no row is gone.
        if newest - self.at != i64::try_from(rows.len()).unwrap() {
            self.at = newest;
            return Err(FeedError::Gap("changes were cut".into()));
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<Changes, FeedError> {
        sleep(Duration::from_millis(4)).await;
        self.check()?;
        let as_of = Instant::now();
        let rows = self.after(self.at).map_err(disconnected)?;
        sleep(Duration::from_millis(self.control.delay_ms.load(SeqCst))).await;
        self.check()?;
        if let Some((at, _)) = rows.last() {
            self.at = *at;
        }
        Ok(Changes {
            keys: rows.into_iter().map(|(_, key)| key).collect(),
            position: self.at.to_le_bytes().to_vec(),
            as_of,
        })
    }
}

/// Settings with short times: a filter in Redis for 10,000 keys at 1 %.
pub(crate) fn builder(url: &str) -> Builder {
    Guard::builder("test")
        .secret(SECRET)
        .redis(url)
        .remote_filter(10_000, 0.01)
        .write_timeout(Duration::from_millis(200))
        .redis_timeout(Duration::from_millis(500))
}

pub(crate) async fn fill(guard: &Guard, storage: &Sqlite) {
    try_fill(guard, storage).await.unwrap();
}

pub(crate) async fn try_fill(guard: &Guard, storage: &Sqlite) -> Result<u64, petal_guard::Error> {
    let storage = storage.clone();
    let keys = move || {
        let keys = storage.keys().into_iter().map(Ok::<_, BoxError>);
        futures_util::stream::iter(keys)
    };
    guard.warm_up(keys).await
}

/// Waits until the filter answers, as it does unless the machine is so busy that
/// Redis seemed to be away.
pub(crate) async fn filters(guard: &Guard) {
    let answers = async || {
        let traced = guard.get_traced(b"nobody").await.unwrap();
        traced.layer == Layer::Filter
    };
    until("the filter answers", answers).await;
}

/// Waits until something is so, and fails if it never is.
pub(crate) async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    for _ in 0..1000 {
        if is_so().await {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}
