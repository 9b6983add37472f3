//! The connection to Redis.
//!
//! Owns sessions. A [`Session`] is *one* connection to *one* process of the server,
//! with one set of data: questions to the filter, cached values and the other guards'
//! messages all come through it, in the order in which the server sent them. So a
//! reply proves that every message before it has been handled, and nothing can be
//! answered by a server that was restarted from an older snapshot, or by a replica
//! that took over: that needs another session, which compares the server's identity
//! first. A connection that is re-established behind one's back could not say so,
//! which is why the `redis` crate's connection manager is not used.
//!
//! When a session ends, everything cached in this process is void.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, ProtocolVersion, PushInfo, PushKind, RedisError,
    RedisFuture, RedisResult, Value, cmd,
};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::hub::Hub;
use crate::item::item;
use crate::remote::{self, Message, Names};

/// Where values are.
#[derive(Clone)]
pub(crate) enum Connection {
    One(MultiplexedConnection),
    #[cfg(feature = "cluster")]
    Cluster(redis::cluster_async::ClusterConnection),
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::One(one) => one.req_packed_command(cmd),
            #[cfg(feature = "cluster")]
            Self::Cluster(cluster) => cluster.req_packed_command(cmd),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a redis::Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::One(one) => one.req_packed_commands(pipeline, offset, count),
            #[cfg(feature = "cluster")]
            Self::Cluster(cluster) => cluster.req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::One(one) => one.get_db(),
            #[cfg(feature = "cluster")]
            Self::Cluster(cluster) => cluster.get_db(),
        }
    }
}

/// How the server is reached.
pub(crate) enum Server {
    One(Client),
    #[cfg(feature = "cluster")]
    Cluster {
        client: Box<redis::cluster::ClusterClient>,
        seeds: Vec<Client>,
    },
}

/// What outlives the session in the callback of its connection.
#[derive(Default)]
struct Shared {
    ended: AtomicBool,
    end: Notify,
    live: Mutex<Live>,
}

#[derive(Default)]
struct Live {
    generation: Option<Arc<str>>,
    /// A message has said so: what was read before it is older.
    told: bool,
}

impl Shared {
    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// True for the call that ended it.
    fn end(&self) -> bool {
        let first = !self.ended.swap(true, SeqCst);
        self.end.notify_one();
        first
    }
}

/// One connection to one process of the server.
pub(crate) struct Session {
    /// To the server of the state and the filters.
    control: MultiplexedConnection,
    values: Connection,
    /// The server's process and data.
    pub(crate) server: String,
    /// The same in the records of the shared cache.
    pub(crate) tag: [u8; 8],
    process: String,
    replication: Replication,
    shared: Arc<Shared>,
}

impl Session {
    pub(crate) fn control(&self) -> MultiplexedConnection {
        self.control.clone()
    }

    pub(crate) fn values(&self) -> Connection {
        self.values.clone()
    }

    /// The generation of the filter in use, if there is one that may be
    /// asked.
    pub(crate) fn live(&self) -> Option<Arc<str>> {
        self.shared.live().generation.clone()
    }

    /// The filter that this guard filled is in use.
    pub(crate) fn set_live(&self, generation: String) {
        let mut live = self.shared.live();
        live.told = true;
        live.generation = Some(generation.into());
    }

    /// A filter turned out not to be there, or not to be usable.
    pub(crate) fn forget(&self, generation: &str) {
        let mut live = self.shared.live();
        if live.generation.as_deref() == Some(generation) {
            live.generation = None;
        }
    }

    /// A command failed: if that says that the server is another one now,
    /// or gone, so is the session.
    pub(crate) fn failed(&self, error: &RedisError) {
        if error.is_connection_dropped() || error.redirect_node().is_some() {
            self.shared.end.notify_one();
        }
    }
}

/// Keeps a session open.
pub(crate) struct Link {
    server: Server,
    pub(crate) names: Names,
    hub: Arc<Hub>,
    timeout: Duration,
    heartbeat: Duration,
    /// Whether the filter in Redis is this guard's.
    remote_filter: bool,
    current: watch::Sender<Option<Arc<Session>>>,
    /// The generation that this guard filled itself.
    mine: Mutex<Option<String>>,
    fault: Mutex<String>,
}

impl Link {
    pub(crate) fn new(
        server: Server,
        names: Names,
        hub: Arc<Hub>,
        timeout: Duration,
        silence: Duration,
        remote_filter: bool,
    ) -> Self {
        Self {
            server,
            names,
            hub,
            timeout,
            heartbeat: silence / 4,
            remote_filter,
            current: watch::Sender::new(None),
            mine: Mutex::new(None),
            fault: Mutex::new("not connected yet".into()),
        }
    }

    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        let session = self.current.borrow().clone()?;
        (!session.shared.ended.load(SeqCst)).then_some(session)
    }

    /// Whether a session has not ended.
    pub(crate) fn is_current(&self, session: &Session) -> bool {
        !session.shared.ended.load(SeqCst)
    }

    /// Waits for a session.
    pub(crate) async fn connected(&self) -> Option<Arc<Session>> {
        let mut current = self.current.subscribe();
        let session = current.wait_for(Option::is_some).await.ok()?;
        session.clone()
    }

    /// Why there is no session.
    pub(crate) fn fault(&self) -> String {
        let fault = self.fault.lock().unwrap_or_else(|e| e.into_inner());
        format!("no connection to Redis: {}", *fault)
    }

    /// Whether this guard filled a generation.
    pub(crate) fn is_mine(&self, generation: &str) -> bool {
        self.mine_lock().as_deref() == Some(generation)
    }

    /// This guard is about to put a generation in use.
    pub(crate) fn set_mine(&self, generation: String) {
        *self.mine_lock() = Some(generation);
    }

    fn mine_lock(&self) -> MutexGuard<'_, Option<String>> {
        self.mine.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Runs until it is aborted.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut pause = self.timeout / 8;
        loop {
            match self.open().await {
                Ok(session) => {
                    let session = Arc::new(session);
                    self.current.send_replace(Some(session.clone()));
                    let fault = self.watch(&session).await;
                    self.note(fault);
                    self.end(&session.shared);
                    self.current.send_replace(None);
                    pause = self.timeout / 8;
                }
                Err(error) => {
                    self.note(error.to_string());
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(1));
                }
            }
        }
    }

    /// The session is over, and with it what is cached here.
    fn end(&self, shared: &Shared) {
        if shared.end() {
            self.hub.missed_from_link();
        }
    }

    fn note(&self, fault: String) {
        *self.fault.lock().unwrap_or_else(|e| e.into_inner()) = fault;
    }

    /// Asks again and again whether this is still the same server; says why
    /// not.
    async fn watch(&self, session: &Session) -> String {
        loop {
            let asked = Instant::now();
            let mut control = session.control();
            match replication(&mut control).await {
                Ok(now) if now == session.replication => {
                    if let Some(link) = &self.hub.link {
                        link.advance(asked);
                    }
                }
                Ok(now) => return self.descends(session, &now).await,
                Err(error) => return error.to_string(),
            }
            let end = session.shared.end.notified();
            if tokio::time::timeout(self.heartbeat, end).await.is_ok() {
                return "the connection ended".into();
            }
        }
    }

    /// The server's data has another name than before. On a primary that
    /// never followed another server that is a name and no more (it gets one with
    /// its first replica): the filter keeps its promise under the new one.
    async fn descends(&self, session: &Session, now: &Replication) -> String {
        if !now.followed {
            let mut control = session.control();
            let server = format!("{} {}", session.process, now.id);
            let renamed = remote::rename(&mut control, &self.names, &session.server, &server).await;
            if let Err(error) = renamed {
                return error.to_string();
            }
        }
        "the server's data has another name".into()
    }

    async fn open(self: &Arc<Self>) -> RedisResult<Session> {
        let shared = Arc::new(Shared::default());
        let (mut control, values) = self.connect(&shared).await?;
        let process = info(&mut control, "server", "run_id").await?;
        let replication = replication(&mut control).await?;
        let server = format!("{process} {}", replication.id);
        control.subscribe(self.names.channel.as_str()).await?;
        // After the subscription, so that no change is missed.
        let state = remote::state(&mut control, &self.names).await?;
        let identity = format!("{server} {}", state.epoch.unwrap_or_default());
        let mut tag = [0; 8];
        tag.copy_from_slice(&item(&self.hub.sip, identity.as_bytes())[..8]);
        let usable = self.remote_filter && state.server.as_ref() == Some(&server);
        if let (true, Some(generation)) = (usable, state.live) {
            let mut live = shared.live();
            if !live.told {
                if !self.is_mine(&generation) {
                    self.hub.adopt();
                }
                live.generation = Some(generation.into());
            }
        }
        let values = values.unwrap_or_else(|| Connection::One(control.clone()));
        Ok(Session {
            control,
            values,
            server,
            tag,
            process,
            replication,
            shared,
        })
    }

    async fn connect(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
    ) -> RedisResult<(MultiplexedConnection, Option<Connection>)> {
        match &self.server {
            Server::One(client) => Ok((self.connect_one(client, shared).await?, None)),
            #[cfg(feature = "cluster")]
            Server::Cluster { client, seeds } => {
                let owner = self.owner(seeds).await?;
                let control = self.connect_one(&owner, shared).await?;
                let values = client.get_async_connection();
                let values = tokio::time::timeout(self.timeout * 4, values)
                    .await
                    .map_err(|_| std::io::Error::from(std::io::ErrorKind::TimedOut))??;
                Ok((control, Some(Connection::Cluster(values))))
            }
        }
    }

    /// The node that has the slot of the state.
    #[cfg(feature = "cluster")]
    async fn owner(&self, seeds: &[Client]) -> RedisResult<Client> {
        let mut fault =
            RedisError::from((ErrorKind::InvalidClientConfig, "no address of a cluster"));
        for seed in seeds {
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(self.timeout))
                .set_response_timeout(Some(self.timeout));
            let asked = async {
                let mut node = seed
                    .get_multiplexed_async_connection_with_config(&config)
                    .await?;
                remote::state(&mut node, &self.names).await
            };
            match asked.await {
                Ok(_) => return Ok(seed.clone()),
                Err(error) => {
                    if let Some((address, _)) = error.redirect_node()
                        && let Some((host, port)) = address.rsplit_once(':')
                        && let Ok(port) = port.parse()
                    {
                        let address = match seed.get_connection_info().addr() {
                            redis::ConnectionAddr::TcpTls {
                                insecure,
                                tls_params,
                                ..
                            } => redis::ConnectionAddr::TcpTls {
                                host: host.into(),
                                port,
                                insecure: *insecure,
                                tls_params: tls_params.clone(),
                            },
                            _ => redis::ConnectionAddr::Tcp(host.into(), port),
                        };
                        return Client::open(seed.get_connection_info().clone().set_addr(address));
                    }
                    fault = error;
                }
            }
        }
        Err(fault)
    }

    async fn connect_one(
        self: &Arc<Self>,
        client: &Client,
        shared: &Arc<Shared>,
    ) -> RedisResult<MultiplexedConnection> {
        let info = client.get_connection_info().clone();
        let settings = info.redis_settings().clone();
        // Messages and replies on one connection.
        let settings = settings.set_protocol(ProtocolVersion::RESP3);
        let client = Client::open(info.set_redis_settings(settings))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(Some(self.timeout))
            .set_push_sender({
                let (link, shared) = (Arc::downgrade(self), shared.clone());
                move |push: PushInfo| -> Result<(), ()> {
                    if let Some(link) = link.upgrade() {
                        link.pushed(&shared, &push);
                    }
                    Ok(())
                }
            });
        client
            .get_multiplexed_async_connection_with_config(&config)
            .await
    }

    /// Called by the connection between two replies, in their order.
    fn pushed(&self, shared: &Shared, push: &PushInfo) {
        if shared.ended.load(SeqCst) {
            return;
        }
        match push.kind {
            PushKind::Disconnection => self.end(shared),
            PushKind::Message => {
                let Some(Value::BulkString(bytes)) = push.data.get(1) else {
                    return;
                };
                match remote::message(bytes) {
                    Some(Message::Changed(key)) => self.hub.changed(key),
                    Some(Message::Filter(generation)) if self.remote_filter => {
                        if !self.is_mine(generation) {
                            self.hub.adopt();
                        }
                        let mut live = shared.live();
                        live.told = true;
                        live.generation = Some(generation.into());
                    }
                    Some(Message::Flush) => self.end(shared),
                    Some(Message::Filter(_)) | None => {}
                }
            }
            _ => {}
        }
    }
}

/// A line of `INFO`.
async fn info<C: ConnectionLike>(
    connection: &mut C,
    section: &str,
    field: &str,
) -> RedisResult<String> {
    let text: String = cmd("INFO").arg(section).query_async(connection).await?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.map(str::to_owned).ok_or_else(|| {
        RedisError::from((
            ErrorKind::UnexpectedReturnType,
            "INFO lacks a line",
            format!("expected {field} in INFO {section}"),
        ))
    })
}

/// What the server's data is called.
#[derive(Debug, PartialEq, Eq)]
struct Replication {
    id: String,
    /// Whether it was another server's before.
    followed: bool,
}

/// Refuses a replica: it gets changes late.
async fn replication<C: ConnectionLike>(connection: &mut C) -> RedisResult<Replication> {
    let text: String = cmd("INFO")
        .arg("replication")
        .query_async(connection)
        .await?;
    let (mut id, mut followed) = (None, true);
    for line in text.lines() {
        match line.split_once(':') {
            Some(("role", role)) if role != "master" => {
                return Err(RedisError::from((
                    ErrorKind::InvalidClientConfig,
                    "the server is a replica: give the address of the primary",
                )));
            }
            Some(("master_replid", text)) => id = Some(text.to_owned()),
            Some(("master_replid2", text)) => followed = text.bytes().any(|digit| digit != b'0'),
            _ => {}
        }
    }
    match id {
        Some(id) => Ok(Replication { id, followed }),
        None => Err(RedisError::from((
            ErrorKind::UnexpectedReturnType,
            "INFO replication lacks master_replid",
        ))),
    }
}
