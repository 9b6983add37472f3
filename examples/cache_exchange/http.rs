//! HTTP on the loopback: serving, and asking over a connection that is kept.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HOST, HeaderMap};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::time::timeout;

pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A peer that does not answer within this is given up for the request.
const PATIENCE: Duration = Duration::from_secs(10);

/// No body is longer: a peer must not fill the memory.
const LONGEST_BODY: usize = 64 << 20;

/// Answers requests on a port of the loopback, from now until the runtime ends.
pub(crate) async fn serve<H, F>(handle: H) -> Outcome<SocketAddr>
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let handle = handle.clone();
            let service = service_fn(move |request| {
                let answer = handle(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    Ok(address)
}

/// What came back.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    /// A header, if it is there and text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

type Sender = SendRequest<Empty<Bytes>>;

/// A server that is asked again and again.
pub(crate) struct Link {
    address: SocketAddr,
    connection: Mutex<Option<Sender>>,
}

impl Link {
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self {
            address,
            connection: Mutex::new(None),
        }
    }

    /// Asks for a path, one request at a time. After an error the next one
    /// connects anew.
    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Outcome<Reply> {
        let mut connection = self.connection.lock().await;
        let mut sender = match Self::kept(connection.take()).await? {
            Some(sender) => sender,
            None => self.connect().await?,
        };
        let mut request = Request::get(path).header(HOST, self.address.to_string());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Empty::new())?;
        let reply = timeout(PATIENCE, async {
            let (front, body) = sender.send_request(request).await?.into_parts();
            let body = Limited::new(body, LONGEST_BODY).collect().await?;
            Outcome::Ok(Reply {
                status: front.status,
                headers: front.headers,
                body: body.to_bytes(),
            })
        })
        .await??;
        *connection = Some(sender);
        Ok(reply)
    }

    /// The connection, if it can be used once more: when the end of the last
    /// answer has been seen, and not if the server has closed it.
    async fn kept(connection: Option<Sender>) -> Outcome<Option<Sender>> {
        let Some(mut sender) = connection else {
            return Ok(None);
        };
        let ready = timeout(PATIENCE, sender.ready()).await?;
        Ok(ready.is_ok().then_some(sender))
    }

    async fn connect(&self) -> Outcome<Sender> {
        let stream = timeout(PATIENCE, TcpStream::connect(self.address)).await??;
        stream.set_nodelay(true)?;
        let (sender, driver) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(driver);
        Ok(sender)
    }
}

/// A response of nothing but a status.
pub(crate) fn bare(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
