//! One blocking connection: the handshake, and one request at a time.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use bytes::Bytes;
use minikeeper_protocol::{
    ConnectRequest, ConnectResponse, Reader, Reply, ReplyHeader, Request, Xid, frame,
};

use crate::{Error, IoContext as _};

/// How long a single reply may take before the run fails.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// How long a starting server may take to reply to a handshake before the next attempt.
pub const TRY_LIMIT: Duration = Duration::from_secs(1);

/// The session timeout that the programs request, in milliseconds.
pub const SESSION_TIMEOUT_MS: i32 = 30_000;

/// The largest reply that the programs accept, in bytes; only a broken stream announces more.
pub const REPLY_BYTES_MAX: usize = 64 << 20;

/// Opens a connection with the socket options that all programs use.
///
/// # Errors
/// When the server cannot be reached.
pub fn dial(addr: SocketAddr) -> Result<TcpStream, Error> {
    let stream = TcpStream::connect_timeout(&addr, ANSWER_LIMIT)
        .context(|| format!("cannot connect to {addr} (is the server running?)"))?;
    stream
        .set_nodelay(true)
        .and_then(|()| stream.set_read_timeout(Some(ANSWER_LIMIT)))
        .and_then(|()| stream.set_write_timeout(Some(ANSWER_LIMIT)))
        .context(|| format!("cannot set options of the connection to {addr}"))?;
    Ok(stream)
}

/// Returns the first message of the handshake, which requests a new session.
#[must_use]
pub fn hello() -> Vec<u8> {
    let mut out = Vec::new();
    ConnectRequest::new(SESSION_TIMEOUT_MS).encode(&mut out);
    out
}

/// Requests a new session over a new connection.
///
/// # Errors
/// The server does not reply, or refuses.
pub fn handshake(stream: &mut TcpStream) -> Result<ConnectResponse, Error> {
    stream
        .write_all(&hello())
        .context(|| "cannot send the handshake".into())?;
    let body = read_frame(stream)?;
    let response = ConnectResponse::decode(&mut Reader::new(&body))?;
    if response.timeout_ms <= 0 {
        return Err(Error::Unexpected(
            "server refused a new session: the answered timeout is 0 ms".into(),
        ));
    }
    Ok(response)
}

/// Reads one message, without its length.
///
/// # Errors
/// When the connection ends or stays silent for [`ANSWER_LIMIT`].
pub fn read_frame(stream: &mut TcpStream) -> Result<Bytes, Error> {
    let mut prefix = [0; frame::PREFIX_BYTES];
    read_exact(stream, &mut prefix)?;
    // This checks only the prefix, which contains a whole frame only if that is empty.
    frame::next(&prefix, REPLY_BYTES_MAX)?;
    let length = usize::try_from(i32::from_be_bytes(prefix))
        .expect("the length was just found to be in range");
    let mut body = vec![0; length];
    read_exact(stream, &mut body)?;
    Ok(body.into())
}

fn read_exact(stream: &mut TcpStream, into: &mut [u8]) -> Result<(), Error> {
    stream
        .read_exact(into)
        .context(|| "no whole reply before the connection ended or the wait was over".into())
}

/// A connection with a session.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    next_xid: i32,
    out: Vec<u8>,
}

impl Client {
    /// Connects and opens a session.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub fn connect(addr: SocketAddr) -> Result<Self, Error> {
        Self::connect_within(addr, ANSWER_LIMIT)
    }

    /// Like [`Client::connect`], with a shorter wait for the reply to the handshake. For servers
    /// that are starting: some accept a connection before they serve, and never reply on it.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses, or does not reply within `limit`.
    pub fn connect_within(addr: SocketAddr, limit: Duration) -> Result<Self, Error> {
        let mut stream = dial(addr)?;
        let wait = |stream: &TcpStream, limit| {
            let set = stream.set_read_timeout(Some(limit));
            set.context(|| "cannot set the timeout of a connection".into())
        };
        wait(&stream, limit)?;
        handshake(&mut stream)?;
        wait(&stream, ANSWER_LIMIT)?;
        Ok(Self {
            stream,
            next_xid: 1,
            out: Vec::new(),
        })
    }

    /// Sends a request and waits for its reply; drops events that come first. The reply is `None`
    /// when the header has an error.
    ///
    /// # Errors
    /// When the connection fails or the reply is not one to this request.
    pub fn call(&mut self, request: &Request) -> Result<(ReplyHeader, Option<Reply>), Error> {
        let xid = Xid(self.next_xid);
        self.next_xid += 1;
        self.out.clear();
        request.encode(xid, &mut self.out);
        self.stream
            .write_all(&self.out)
            .context(|| format!("cannot send {}", request.op().name()))?;
        loop {
            let body = read_frame(&mut self.stream)?;
            let mut reader = Reader::new(&body);
            let header = ReplyHeader::decode(&mut reader)?;
            if header.xid == Xid::EVENT {
                continue;
            }
            if header.xid != xid {
                return Err(Error::Unexpected(format!(
                    "reply to {} has xid {}, expected {xid}",
                    request.op().name(),
                    header.xid
                )));
            }
            let reply = match header.error {
                None => Some(Reply::decode(request.op(), &mut reader)?),
                Some(_) => None,
            };
            return Ok((header, reply));
        }
    }

    /// Ends the session and the connection.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn close(mut self) -> Result<(), Error> {
        self.call(&Request::CloseSession).map(drop)
    }
}
