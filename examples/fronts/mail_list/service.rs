//! The HTTP service, and the exchange of its lists under way.

use std::fmt::Write as _;
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::Result;
use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::get;

use crate::address::Address;
use crate::lists::{Lists, Sources};

/// What requests share.
pub(crate) struct Service {
    sources: Sources,
    /// A request holds the lists that it began with: whoever reads them keeps them alive.
    lists: RwLock<Arc<Lists>>,
    /// One reload at a time, so that an older list never follows a newer one.
    reloading: tokio::sync::Mutex<()>,
}

impl Service {
    pub(crate) fn open(sources: Sources) -> Result<Self> {
        let lists = Arc::new(Lists::open(&sources)?);
        Ok(Self {
            sources,
            lists: RwLock::new(lists),
            reloading: tokio::sync::Mutex::default(),
        })
    }

    fn lists(&self) -> Arc<Lists> {
        let lists = self.lists.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&lists)
    }

    /// Reads the lists beside the ones in force, and exchanges them in one step. Requests go on
    /// meanwhile.
    pub(crate) async fn reload(&self) -> Result<Arc<Lists>> {
        let _one = self.reloading.lock().await;
        let sources = self.sources.clone();
        let fresh = tokio::task::spawn_blocking(move || Lists::open(&sources)).await??;
        let fresh = Arc::new(fresh);
        *self.lists.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&fresh);
        Ok(fresh)
    }
}

pub(crate) fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/check", get(check_one).post(check_lines))
        .route("/reload", axum::routing::post(reload))
        .route("/status", get(status))
        .with_state(service)
}

/// A status and one or more lines.
type Reply = (StatusCode, String);

#[derive(serde::Deserialize)]
struct Question {
    address: String,
}

async fn check_one(State(service): State<Arc<Service>>, Query(question): Query<Question>) -> Reply {
    match Address::parse(&question.address) {
        Ok(address) => (
            StatusCode::OK,
            format!("{}\n", service.lists().verdict(&address)),
        ),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")),
    }
}

async fn check_lines(State(service): State<Arc<Service>>, body: String) -> Reply {
    let lists = service.lists();
    let mut answers = String::new();
    for line in body.lines() {
        let written = match Address::parse(line) {
            Ok(address) => writeln!(answers, "{}", lists.verdict(&address)),
            Err(error) => writeln!(answers, "bad {error}"),
        };
        if written.is_err() {
            return (StatusCode::INTERNAL_SERVER_ERROR, String::new()); // a String takes all
        }
    }
    (StatusCode::OK, answers)
}

async fn reload(State(service): State<Arc<Service>>) -> Reply {
    match service.reload().await {
        Ok(lists) => (StatusCode::OK, format!("{lists}\n")),
        Err(error) => {
            let text = format!("the old lists stay: {error:#}\n");
            (StatusCode::UNPROCESSABLE_ENTITY, text)
        }
    }
}

async fn status(State(service): State<Arc<Service>>) -> Reply {
    (StatusCode::OK, format!("{}\n", service.lists()))
}
