//! A deliberately simple client over a blocking socket, which can also send malformed bytes.
//!
//! It sends and reads one frame per call, and never reconnects. Waits are bounded: a read that gets
//! no frame within [`PATIENCE`] panics at the line of the test and names the frame it waited for.
//! To show that the server sent nothing, a test sends a ping: its reply must be the next frame.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

use bytes::Bytes;
use minikeeper_protocol::{
    ConnectRequest, ConnectResponse, Create, CreateMode, CreateOp, ErrorCode, EventKind, OpCode,
    Reader, Reply, ReplyHeader, Request, SessionId, WatcherEvent, Xid, Zxid, frame,
};

/// The time after which a waiting read fails the test. A bound, never a delay.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// One connection.
#[derive(Debug)]
pub struct Wire {
    stream: BufReader<TcpStream>,
    next_xid: i32,
}

/// The reply to one request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The xid of the request.
    pub xid: Xid,
    /// The last zxid when the request was served.
    pub zxid: Zxid,
    /// The body, or the error code.
    pub outcome: Result<Reply, ErrorCode>,
}

/// A watch event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The zxid in the header.
    pub zxid: Zxid,
    /// The type of the event.
    pub kind: EventKind,
    /// The path of the znode.
    pub path: String,
}

impl Wire {
    /// Connects, without a handshake.
    #[track_caller]
    #[must_use]
    pub fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).expect("the server listens")
    }

    /// Connects, without a handshake.
    ///
    /// # Errors
    /// When no server listens at the address.
    pub fn try_connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream: BufReader::new(stream),
            next_xid: 1,
        })
    }

    /// Connects and opens a session, requesting this timeout.
    #[track_caller]
    #[must_use]
    pub fn open(address: SocketAddr, timeout_ms: i32) -> (Self, ConnectResponse) {
        let mut wire = Self::connect(address);
        let response = wire.handshake(timeout_ms);
        (wire, response)
    }

    /// Returns the client's address.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        self.stream
            .get_ref()
            .local_addr()
            .expect("a connected socket has an address")
    }

    /// Returns the socket, for reads that do not wait. It no longer holds the bytes already
    /// buffered.
    #[must_use]
    pub fn raw(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    /// Sends bytes unchanged.
    #[track_caller]
    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.try_send_raw(bytes)
            .expect("the server takes the bytes");
    }

    /// Sends bytes to a server that may have closed the connection.
    ///
    /// # Errors
    /// When it has, or does not accept the bytes within [`PATIENCE`].
    pub fn try_send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Sends a message, prefixed with its length.
    #[track_caller]
    pub fn send_frame(&mut self, message: &[u8]) {
        let mut out = Vec::new();
        frame::put(&mut out, |out| out.extend_from_slice(message));
        self.send_raw(&out);
    }

    /// Sends a request with the next xid. Returns the xid.
    #[track_caller]
    pub fn send(&mut self, request: &Request) -> Xid {
        let xid = Xid(self.next_xid);
        self.next_xid += 1;
        self.send_as(xid, request);
        xid
    }

    /// Sends a request with this xid.
    #[track_caller]
    pub fn send_as(&mut self, xid: Xid, request: &Request) {
        let mut out = Vec::new();
        request.encode(xid, &mut out);
        self.send_raw(&out);
    }

    /// Shuts down the write side: the server reads the end of the stream.
    pub fn half_close(&mut self) {
        self.stream
            .get_ref()
            .shutdown(Shutdown::Write)
            .expect("the socket is connected");
    }

    /// Reads one frame. Returns it without its length.
    ///
    /// # Errors
    /// With [`io::ErrorKind::UnexpectedEof`] when the server closed before it; with
    /// [`io::ErrorKind::TimedOut`] after [`PATIENCE`].
    pub fn try_frame(&mut self, what: &str) -> io::Result<Bytes> {
        let named = |error: io::Error| {
            let kind = match error.kind() {
                io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut,
                kind => kind,
            };
            io::Error::new(kind, format!("waiting for {what}: {error}"))
        };
        let mut prefix = [0; 4];
        self.stream.read_exact(&mut prefix).map_err(named)?;
        let length = usize::try_from(i32::from_be_bytes(prefix))
            .map_err(|_| io::Error::other(format!("waiting for {what}: a negative length")))?;
        let mut message = vec![0; length];
        self.stream.read_exact(&mut message).map_err(named)?;
        Ok(message.into())
    }

    /// Reads one frame. Returns it without its length.
    #[track_caller]
    pub fn frame(&mut self, what: &str) -> Bytes {
        self.try_frame(what)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Sends a connect request and reads the response.
    #[track_caller]
    pub fn hello(&mut self, hello: &ConnectRequest) -> ConnectResponse {
        let mut out = Vec::new();
        hello.encode(&mut out);
        self.send_raw(&out);
        self.connect_response()
    }

    /// Reads the response to a connect request sent before.
    #[track_caller]
    pub fn connect_response(&mut self) -> ConnectResponse {
        let message = self.frame("the connect response");
        ConnectResponse::decode(&mut Reader::new(&message)).expect("a connect response")
    }

    /// Opens a session, requesting this timeout.
    #[track_caller]
    pub fn handshake(&mut self, timeout_ms: i32) -> ConnectResponse {
        self.hello(&ConnectRequest::new(timeout_ms))
    }

    /// Resumes a session.
    #[track_caller]
    pub fn resume(
        &mut self,
        session_id: SessionId,
        password: &[u8],
        last_zxid_seen: Zxid,
        timeout_ms: i32,
    ) -> ConnectResponse {
        self.hello(&resume(session_id, password, last_zxid_seen, timeout_ms))
    }

    /// Reads the reply to a request of this kind; panics if an event comes instead.
    #[track_caller]
    pub fn answer(&mut self, op: OpCode) -> Answer {
        let message = self.frame(&format!("the reply to {}", op.name()));
        let mut reader = Reader::new(&message);
        let header = ReplyHeader::decode(&mut reader).expect("a reply header");
        assert_ne!(
            header.xid,
            Xid::EVENT,
            "an event came instead of the reply to {}: {message:?}",
            op.name()
        );
        let outcome = match header.error {
            None => Ok(Reply::decode(op, &mut reader).expect("a reply body")),
            // An error reply has no body.
            Some(error) => {
                assert_eq!(
                    reader.remaining(),
                    0,
                    "an error reply with a body: {message:?}"
                );
                Err(error)
            }
        };
        Answer {
            xid: header.xid,
            zxid: header.zxid,
            outcome,
        }
    }

    /// Sends a request and reads the reply; checks the xid.
    #[track_caller]
    pub fn call(&mut self, request: &Request) -> Answer {
        let xid = self.send(request);
        let answer = self.answer(request.op());
        let expected = match request {
            Request::Ping => Xid::PING,
            _ => xid,
        };
        assert_eq!(answer.xid, expected, "xid of the reply to {request:?}");
        answer
    }

    /// Sends a request that must succeed. Returns the reply.
    #[track_caller]
    pub fn must(&mut self, request: &Request) -> Reply {
        self.call(request)
            .outcome
            .unwrap_or_else(|error| panic!("{request:?}: {error}"))
    }

    /// Sends a request that must fail. Returns the error code.
    #[track_caller]
    pub fn refused(&mut self, request: &Request) -> ErrorCode {
        match self.call(request).outcome {
            Ok(reply) => panic!("{request:?} succeeded: {reply:?}"),
            Err(error) => error,
        }
    }

    /// Sends a ping. Its reply must come next, so the server had sent nothing else.
    #[track_caller]
    pub fn ping(&mut self) {
        self.must(&Request::Ping);
    }

    /// Reads a watch event.
    #[track_caller]
    pub fn event(&mut self) -> Event {
        let message = self.frame("an event");
        let mut reader = Reader::new(&message);
        let header = ReplyHeader::decode(&mut reader).expect("a reply header");
        assert_eq!(
            header.xid,
            Xid::EVENT,
            "a reply came instead of an event: {message:?}"
        );
        let event = WatcherEvent::decode(&mut reader).expect("an event");
        Event {
            zxid: header.zxid,
            kind: event.kind,
            path: event.path.to_str_lossy().into_owned(),
        }
    }

    /// Waits until the server closes the connection, orderly or by a reset. Panics if a byte comes
    /// first.
    #[track_caller]
    pub fn expect_closed(&mut self) {
        let rest = self.rest();
        assert!(rest.is_empty(), "bytes came before the close: {rest:?}");
    }

    /// Waits for a reset. Panics if a byte or an orderly close comes first.
    #[track_caller]
    pub fn expect_reset(&mut self) {
        match self.stream.fill_buf() {
            Ok(bytes) => panic!("a reset was expected, not {bytes:?}"),
            Err(error) => assert_eq!(
                error.kind(),
                io::ErrorKind::ConnectionReset,
                "a reset was expected: {error}"
            ),
        }
    }

    /// Reads until the server closes the connection. Returns the bytes.
    #[track_caller]
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
                ) => {}
            Err(error) => panic!("waiting for the server to close the connection: {error}"),
        }
        rest
    }
}

/// Returns the connect request of a client that resumes a session.
#[must_use]
pub fn resume(
    session_id: SessionId,
    password: &[u8],
    last_zxid_seen: Zxid,
    timeout_ms: i32,
) -> ConnectRequest {
    ConnectRequest {
        session_id,
        password: Some(Bytes::copy_from_slice(password)),
        last_zxid_seen,
        ..ConnectRequest::new(timeout_ms)
    }
}

/// Sends a four-letter word on a new connection. Returns the whole answer.
#[track_caller]
#[must_use]
pub fn four_letter(address: SocketAddr, word: &[u8]) -> String {
    let mut wire = Wire::connect(address);
    wire.send_raw(word);
    String::from_utf8(wire.rest()).expect("an answer in UTF-8")
}

/// Returns a `create` request (not `create2`) for a znode that is open to all clients.
#[must_use]
pub fn create(path: &str, data: &[u8], mode: CreateMode) -> Request {
    Request::Create(Create {
        op: CreateOp::Create,
        ..Create::new(path, data, mode)
    })
}

/// Returns a `getData` request.
#[must_use]
pub fn get(path: &str, watch: bool) -> Request {
    Request::GetData {
        path: Some(path.into()),
        watch,
    }
}

/// Returns a `setData` request for any version.
#[must_use]
pub fn set(path: &str, data: &[u8]) -> Request {
    Request::SetData {
        path: Some(path.into()),
        data: Some(Bytes::copy_from_slice(data)),
        version: -1,
    }
}

/// Returns a `delete` request for any version.
#[must_use]
pub fn delete(path: &str) -> Request {
    Request::Delete {
        path: Some(path.into()),
        version: -1,
    }
}

/// Returns an `exists` request.
#[must_use]
pub fn exists(path: &str, watch: bool) -> Request {
    Request::Exists {
        path: Some(path.into()),
        watch,
    }
}

/// Returns a `getChildren` request.
#[must_use]
pub fn children(path: &str, watch: bool) -> Request {
    Request::GetChildren {
        path: Some(path.into()),
        watch,
    }
}

/// Returns an `addWatch` request for a persistent, not recursive watch.
#[must_use]
pub fn watch(path: &str) -> Request {
    Request::AddWatch {
        path: Some(path.into()),
        mode: 0,
    }
}
