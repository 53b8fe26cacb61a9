//! Clients that load a real server concurrently and record everything they receive.

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use minikeeper::Server;
use minikeeper_protocol::{
    ConnectRequest, ConnectResponse, Reader, Request, SessionId, Xid, frame,
};
use minikeeper_tests::{
    drive::{Sent, parse},
    replay::{Call, Received, Recorded},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    runtime::Runtime,
};

/// A TCP or an in-process stream.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A client that records its requests, replies and events.
pub(crate) struct Client {
    stream: Box<dyn Stream>,
    buffer: Vec<u8>,
    /// A counter shared by all clients, which orders their sends and receipts.
    clock: Arc<AtomicU64>,
    /// The requests sent and not answered: xid, request, and the clock when it was sent.
    pending: VecDeque<(Xid, Request, u64)>,
    next_xid: i32,
    pub(crate) session: SessionId,
    pub(crate) received: Vec<Received>,
}

impl Client {
    /// Opens a session on a new connection, over a socket or in-process.
    pub(crate) async fn connect(
        server: &Server,
        over_tcp: bool,
        clock: &Arc<AtomicU64>,
    ) -> io::Result<Self> {
        let stream: Box<dyn Stream> = if over_tcp {
            let stream = TcpStream::connect(server.addr()).await?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        } else {
            Box::new(server.local())
        };
        let mut client = Self {
            stream,
            buffer: Vec::new(),
            clock: Arc::clone(clock),
            pending: VecDeque::new(),
            next_xid: 1,
            session: SessionId::NONE,
            received: Vec::new(),
        };
        let mut hello = Vec::new();
        ConnectRequest::new(10_000).encode(&mut hello);
        client.stream.write_all(&hello).await?;
        let message = client.message().await?;
        let response = ConnectResponse::decode(&mut Reader::new(&message))
            .expect("the connect response is well-formed");
        client.session = response.session_id;
        Ok(client)
    }

    /// Sends requests in one write.
    pub(crate) async fn send(&mut self, requests: impl IntoIterator<Item = Request>) {
        let mut out = Vec::new();
        for request in requests {
            // The reply to a ping has a fixed xid.
            let xid = match request {
                Request::Ping => Xid::PING,
                _ => Xid(self.next_xid),
            };
            self.next_xid += 1;
            request.encode(xid, &mut out);
            let invoked = self.clock.fetch_add(1, Ordering::SeqCst);
            self.pending.push_back((xid, request, invoked));
        }
        self.stream
            .write_all(&out)
            .await
            .expect("the server keeps the connection open");
    }

    /// Receives until every request is answered.
    pub(crate) async fn answered(&mut self) -> Result<(), String> {
        while let Some((_, request, _)) = self.pending.front() {
            let op = request.op();
            let message = self.message().await.map_err(|error| error.to_string())?;
            match parse(&message, Some(op))? {
                Sent::Event { kind, path, zxid } => {
                    self.received.push(Received::Event { kind, path, zxid });
                }
                Sent::Reply { xid, zxid, outcome } => {
                    let (expected, request, invoked) = self
                        .pending
                        .pop_front()
                        .expect("`front` returned a request");
                    if xid != expected {
                        return Err(format!("{request:?} with xid {expected} got xid {xid}"));
                    }
                    let returned = self.clock.fetch_add(1, Ordering::SeqCst);
                    self.received.push(Received::Reply(Box::new(Call {
                        xid,
                        request,
                        invoked,
                        returned,
                        zxid,
                        outcome,
                    })));
                }
                other => return Err(format!("{other:?} after the handshake")),
            }
        }
        Ok(())
    }

    pub(crate) async fn ask(&mut self, request: Request) -> Result<(), String> {
        self.send([request]).await;
        self.answered().await
    }

    async fn message(&mut self) -> io::Result<Bytes> {
        loop {
            let found = frame::next(&self.buffer, usize::MAX).expect("lengths are not negative");
            if let Some(body) = found {
                let message = Bytes::copy_from_slice(&self.buffer[body.clone()]);
                self.buffer.drain(..body.end);
                return Ok(message);
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    pub(crate) fn recorded(self) -> Recorded {
        Recorded {
            session: self.session,
            received: self.received,
        }
    }
}

/// Returns a runtime with four workers, independent of the number of cores.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("a runtime can be built")
}

/// Starts a server with a frozen clock, so that no session expires, and zxids from 0.
pub(crate) async fn server() -> Server {
    Server::builder()
        .manual_clock()
        .initial_zxid(0)
        .start()
        .await
        .expect("a local port is free")
}
