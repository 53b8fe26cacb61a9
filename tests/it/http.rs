//! A client of the control API, with a connection per request; no assertion on a feature.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

use minikeeper::Config;
use minikeeper_test_kit::wire::PATIENCE;
use serde_json::Value;

use crate::kit::Scene;

/// Starts a server with the control API and changed settings.
pub(crate) fn scene(change: impl FnOnce(&mut Config)) -> Scene {
    Scene::with(|config| {
        config.control.is_enabled = true;
        change(config);
    })
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// Sends bytes on a new connection, and reads until the server closes it.
#[track_caller]
pub(crate) fn raw(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(address);
    // The server may close before it has read all bytes.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    stream
}

#[track_caller]
pub(crate) fn answer(bytes: &[u8]) -> Answer {
    let text = std::str::from_utf8(bytes).expect("text");
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("no head in {text:?}"));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Answer {
        status: status.unwrap_or_else(|| panic!("no status in {head:?}")),
        head: head.to_ascii_lowercase(),
        body: serde_json::from_str(body).unwrap_or(Value::Null),
    }
}

/// Sends a request with these header lines on a new connection. Returns the answer.
#[track_caller]
pub(crate) fn request(address: SocketAddr, line: &str, headers: &str, body: &str) -> Answer {
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    answer(&raw(address, request.as_bytes()))
}

#[track_caller]
pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    request(
        address,
        &format!("GET /v1/{path}"),
        "Host: localhost\r\n",
        "",
    )
}

#[track_caller]
pub(crate) fn post(address: SocketAddr, verb: &str, body: &Value) -> Answer {
    let line = format!("POST /v1/{verb}");
    request(address, &line, "Host: localhost\r\n", &body.to_string())
}

/// A connection that is kept open for several requests.
pub(crate) struct Kept(BufReader<TcpStream>);

impl Kept {
    pub(crate) fn open(address: SocketAddr) -> Self {
        Self(BufReader::new(connect(address)))
    }

    #[track_caller]
    pub(crate) fn post(&mut self, verb: &str, body: &Value) -> Answer {
        let body = body.to_string();
        let length = body.len();
        let head = format!(
            "POST /v1/{verb} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
        );
        let sent = self.0.get_mut().write_all((head + &body).as_bytes());
        sent.expect("the server reads");
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            let read = self.0.read_until(b'\n', &mut bytes);
            assert_ne!(read.expect("the server answers"), 0, "closed within a head");
        }
        let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .and_then(|length| length.parse::<u64>().ok())
            .expect("the length of a body");
        let body = self.0.by_ref().take(length).read_to_end(&mut bytes);
        body.expect("the server sends the announced length");
        answer(&bytes)
    }
}

/// Returns the body of a successful answer; panics if the verb failed.
#[track_caller]
pub(crate) fn done(answer: Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(
        answer.head.contains("content-type: application/json"),
        "{}",
        answer.head
    );
    answer.body
}

/// Returns the error text of an answer with this status; panics if the status differs.
#[track_caller]
pub(crate) fn said(answer: &Answer, status: u16) -> &str {
    assert_eq!(answer.status, status, "{}", answer.body);
    answer.body["error"].as_str().expect("an error text")
}
