//! Serves one HTTP connection: heads, bodies, limits, answers.

use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Either, LengthLimitError, Limited};
use hyper::{
    Request, Response, StatusCode,
    body::{Body as _, Incoming},
    header::{self, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use minikeeper_core::{limits::open_connections::Slot, race::first_of, stream::Stream};
use serde_json::json;

use crate::{
    control::{
        access,
        admin_server::AdminPage,
        answer_body::AnswerBody,
        controls::Controls,
        error::ControlError,
        hyper_io::{Carrier, Timer},
        routing::Route,
        tail::TailBody,
        verb::Answer,
    },
    page::Asset,
};

/// How long a client may take to begin a request, and to send its head.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);

/// How long a client may take to send the body of a request.
const BODY_PATIENCE: Duration = Duration::from_secs(30);

/// How long the running requests may take when the server stops.
const STOP_PATIENCE: Duration = Duration::from_millis(500);

/// The longest head of a request. Unit: bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Serves requests until the client disconnects, the connection fails or the server stops.
pub(crate) async fn serve(
    controls: Arc<Controls>,
    (stream, read, slot): (Stream, BytesMut, Slot),
    peer: IpAddr,
) {
    // `go_down` must not wait for the request that called it.
    let _aside = slot.set_aside();
    let ends = Ends {
        peer,
        own: own_end(&stream),
    };
    let service = service_fn(|request| answer(&controls, ends, request));
    let connection = http1::Builder::new()
        .timer(Timer)
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(HEAD_BYTES_MAX)
        .auto_date_header(false)
        .serve_connection(Carrier::new(stream, read), service);
    let mut connection = pin!(connection);
    let served = async { Some(connection.as_mut().await) };
    let stopped = async {
        controls.stopped().await;
        None
    };
    let ended = match first_of(served, stopped).await {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            let ended = tokio::time::timeout(STOP_PATIENCE, connection).await;
            ended.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, err = %error, "control connection failed");
    }
}

/// Returns the server's address on a connection, which the client can use to reach another port. For
/// TLS the loopback address, so that no client sends secrets over the network in clear text.
fn own_end(stream: &Stream) -> SocketAddr {
    stream
        .plain_addr()
        .unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into())
}

/// The two ends of a connection.
#[derive(Clone, Copy)]
struct Ends {
    peer: IpAddr,
    own: SocketAddr,
}

async fn answer(
    controls: &Arc<Controls>,
    Ends { peer, own }: Ends,
    request: Request<Incoming>,
) -> Result<Response<Either<AnswerBody, TailBody>>, Infallible> {
    let whole_answer = |response| Ok(counted(controls, response).map(Either::Left));
    let (head, body) = request.into_parts();
    tracing::debug!(%peer, method = %head.method, path = head.uri.path(), "control request");
    let asset = Asset::at(head.uri.path());
    // With a token, the page loads without it, asks for it and then shows it with each call.
    let is_open = asset.is_some() && controls.config().token.is_some();
    if !is_open {
        let admitted = access::admit(controls.config(), &controls.wrong_tokens, peer, &head);
        if let Err(refused) = admitted {
            return whole_answer(response(Err(refused)));
        }
    }
    if let Some(asset) = asset {
        let answer = asset.answer(&head.method);
        return Ok(answer.map(|text| Either::Left(AnswerBody::uncounted(text))));
    }
    if AdminPage::at(head.uri.path()).is_some() {
        let on_thread = Arc::clone(controls);
        let answered = controls.on_thread(move || {
            let shared = on_thread.shared();
            let server = shared.server.ensemble.at(own);
            let request = (&head.method, &head.uri, &head.headers);
            let page = AdminPage::at(head.uri.path())?;
            Some(page.answer(shared, server, request))
        });
        let gone = || response(Err(ControlError::cannot_now("the server is stopping")));
        return whole_answer(answered.await.ok().flatten().unwrap_or_else(gone));
    }
    let outcome = match Route::of(&head.uri) {
        Ok(route) if !route.takes(&head.method) => {
            let sentence = format!("{} takes {}", head.uri.path(), route.methods());
            let mut refusal = response(Err(ControlError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                sentence,
            )));
            let methods = HeaderValue::from_static(route.methods());
            refusal.headers_mut().insert(header::ALLOW, methods);
            return whole_answer(refusal);
        }
        Ok(route) => match whole(body, controls.config().body_bytes_max).await {
            Ok(body) => route.serve(controls, own, head.uri.query(), body).await,
            Err(fault) => Err(fault),
        },
        Err(fault) => Err(fault),
    };
    match outcome {
        Ok(Answer::Whole(text)) => whole_answer(response(Ok(text))),
        Ok(Answer::Stream(body)) => Ok(stream(body)),
        Err(fault) => whole_answer(response(Err(fault))),
    }
}

/// Counts an answer until the client has read it. Refuses it if clients leave too much unread.
fn counted(controls: &Controls, response: Response<Bytes>) -> Response<AnswerBody> {
    let bytes_max = controls.shared().config.unsent_bytes_max;
    let (head, text) = response.into_parts();
    let length = text.len();
    match controls.unread.admit(text, bytes_max) {
        Ok(body) => Response::from_parts(head, body),
        Err(others) => {
            let sentence = format!(
                "the answer of {length} bytes is not sent, since clients have not read {others} bytes of others, and \
                 the limit is {bytes_max} bytes (unsent_bytes_max, --max-unsent-bytes); read the others, or raise it"
            );
            let refusal = ControlError::new(StatusCode::SERVICE_UNAVAILABLE, sentence);
            self::response(Err(refusal)).map(AnswerBody::uncounted)
        }
    }
}

fn stream(body: TailBody) -> Response<Either<AnswerBody, TailBody>> {
    let mut response = Response::new(Either::Right(body));
    let headers = response.headers_mut();
    let lines = HeaderValue::from_static("application/x-ndjson");
    headers.insert(header::CONTENT_TYPE, lines);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

/// Reads the body of a request.
async fn whole(body: Incoming, bytes_max: usize) -> Result<Bytes, ControlError> {
    let too_large = || {
        let sentence = format!("the body exceeds the limit of {bytes_max} bytes");
        ControlError::new(StatusCode::PAYLOAD_TOO_LARGE, sentence)
    };
    // Refuses a length announced above the limit before any data arrives.
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large());
    }
    let body = Limited::new(body, bytes_max).collect();
    match tokio::time::timeout(BODY_PATIENCE, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(ControlError::bad_input(format!(
            "cannot read the body: {error}"
        ))),
        Err(_) => Err(ControlError::new(
            StatusCode::REQUEST_TIMEOUT,
            format!(
                "the body did not arrive within {} s",
                BODY_PATIENCE.as_secs()
            ),
        )),
    }
}

fn response(outcome: Result<String, ControlError>) -> Response<Bytes> {
    let (status, mut text) = match outcome {
        Ok(text) => (StatusCode::OK, text),
        Err(ControlError { status, sentence }) => (status, json!({"error": sentence}).to_string()),
    };
    text.push('\n');
    let mut response = Response::new(Bytes::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    if status == StatusCode::TOO_MANY_REQUESTS {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if status == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer");
        headers.insert(header::WWW_AUTHENTICATE, bearer);
    }
    response
}
