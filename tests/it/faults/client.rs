//! A simple client over either kind of connection, and a server for it.

use std::{future::Future, io, pin::Pin, task::Poll};

use bytes::Bytes;
use minikeeper::{ErrorCode, Server};
use minikeeper_protocol::{
    ConnectRequest, ConnectResponse, EventKind, OpCode, Reader, Reply, ReplyHeader, Request,
    WatcherEvent, Xid,
};
use minikeeper_test_kit::wire::PATIENCE;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    net::TcpStream,
};

use crate::kit::TIMEOUT_MS;

/// The limit of the recording that is made of each test. Unit: bytes.
const RECORDING_BYTES_MAX: usize = 64 << 20;

/// A TCP or an in-process stream.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A server with a frozen clock, and the kind of connection its clients use.
pub(crate) struct Scene {
    pub(crate) server: Server,
    pub(crate) over_tcp: bool,
}

/// Runs the test in-process and over sockets, each time on a new single-threaded runtime.
#[track_caller]
pub(crate) fn both<F: Future<Output = ()>>(play: impl Fn(Scene) -> F) {
    for over_tcp in [false, true] {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let test = async {
            let server = Server::builder().manual_clock().initial_zxid(0);
            let server = server.start().await.unwrap();
            play(Scene::new(server, over_tcp)).await;
        };
        let in_time = runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await });
        assert!(in_time.is_ok(), "too slow, over TCP: {over_tcp}");
    }
}

impl Scene {
    /// Records what happens on this server.
    pub(crate) fn new(server: Server, over_tcp: bool) -> Self {
        server.start_recording(RECORDING_BYTES_MAX).unwrap();
        Self { server, over_tcp }
    }

    /// Connects, without a handshake.
    pub(crate) async fn connect(&self) -> Client {
        let stream: Box<dyn Stream> = if self.over_tcp {
            let stream = TcpStream::connect(self.server.addr()).await.unwrap();
            stream.set_nodelay(true).unwrap();
            Box::new(stream)
        } else {
            Box::new(self.server.local())
        };
        Client {
            stream,
            next_xid: 1,
        }
    }

    /// Connects and opens a session.
    pub(crate) async fn open(&self) -> Client {
        self.open_session().await.0
    }

    pub(crate) async fn open_session(&self) -> (Client, ConnectResponse) {
        let mut client = self.connect().await;
        client.hello(&ConnectRequest::new(TIMEOUT_MS)).await;
        let response = client.connected().await;
        (client, response)
    }

    /// Checks the server's state, and that a replay of what happened has the same outcome: whatever
    /// the faults were, and without them. The last line of a test.
    pub(crate) fn end(&self) {
        let recording = self.server.stop_recording().unwrap();
        let replayed = minikeeper::replay(&recording);
        replayed.unwrap_or_else(|error| panic!("the replay: {error}"));
        self.server
            .check()
            .unwrap_or_else(|broken| panic!("{broken}"));
    }
}

/// One connection.
pub(crate) struct Client {
    pub(crate) stream: Box<dyn Stream>,
    next_xid: i32,
}

impl Client {
    pub(crate) async fn hello(&mut self, hello: &ConnectRequest) {
        let mut out = Vec::new();
        hello.encode(&mut out);
        self.stream.write_all(&out).await.unwrap();
    }

    pub(crate) async fn connected(&mut self) -> ConnectResponse {
        let message = self.frame().await.expect("a connect response");
        ConnectResponse::decode(&mut Reader::new(&message)).unwrap()
    }

    /// Sends requests in one write, without waiting for replies.
    pub(crate) async fn send(&mut self, requests: &[Request]) {
        let mut out = Vec::new();
        for request in requests {
            let xid = match request {
                Request::Ping => Xid::PING,
                _ => Xid(self.next_xid),
            };
            self.next_xid += 1;
            request.encode(xid, &mut out);
        }
        self.stream.write_all(&out).await.unwrap();
    }

    pub(crate) async fn call(&mut self, request: &Request) -> Result<Reply, ErrorCode> {
        self.send(std::slice::from_ref(request)).await;
        self.answer(request.op()).await
    }

    /// Sends a request that must succeed. Returns the reply.
    pub(crate) async fn must(&mut self, request: &Request) -> Reply {
        self.call(request).await.expect("the request succeeds")
    }

    /// Reads the next reply; panics if an event comes instead.
    pub(crate) async fn answer(&mut self, op: OpCode) -> Result<Reply, ErrorCode> {
        let message = self.frame().await.expect("a reply");
        let mut reader = Reader::new(&message);
        let header = ReplyHeader::decode(&mut reader).unwrap();
        assert_ne!(header.xid, Xid::EVENT, "an event instead of a reply");
        assert_eq!(header.xid == Xid::PING, op == OpCode::Ping);
        match header.error {
            None => Ok(Reply::decode(op, &mut reader).unwrap()),
            Some(error) => Err(error),
        }
    }

    /// Reads the next event; panics if a reply comes instead.
    pub(crate) async fn event(&mut self) -> (EventKind, String) {
        let message = self.frame().await.expect("an event");
        let mut reader = Reader::new(&message);
        assert_eq!(ReplyHeader::decode(&mut reader).unwrap().xid, Xid::EVENT);
        let event = WatcherEvent::decode(&mut reader).unwrap();
        (event.kind, event.path.to_str_lossy().into_owned())
    }

    /// Sends a ping. Its reply must come next, so the server had sent nothing else.
    pub(crate) async fn check_quiet(&mut self) {
        self.must(&Request::Ping).await;
    }

    /// Reads the next frame without its length; `None` when the connection has ended.
    pub(crate) async fn frame(&mut self) -> Option<Bytes> {
        let length = self.stream.read_u32().await.ok()?;
        let mut message = vec![0; length as usize];
        self.stream.read_exact(&mut message).await.ok()?;
        Some(message.into())
    }

    /// Reads until the connection ends. Returns the bytes.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest).await {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset),
        }
        rest
    }

    /// Waits until the connection ends. Panics if a byte comes first.
    pub(crate) async fn expect_end(&mut self) {
        assert!(self.rest().await.is_empty());
    }

    /// Returns whether there is nothing to read now. Consumes a byte if there is.
    pub(crate) async fn is_silent(&mut self) -> bool {
        // Lets the server's tasks run, and their output cross the loopback.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        std::future::poll_fn(|cx| {
            let mut byte = [0];
            let mut into = ReadBuf::new(&mut byte);
            let read = Pin::new(&mut self.stream).poll_read(cx, &mut into);
            Poll::Ready(read.is_pending())
        })
        .await
    }
}
