//! Connections over blocking sockets. Every wait for a message has a bound.

use std::{
    collections::VecDeque,
    io::{self, Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

use bytes::Bytes;
use minikeeper_protocol::{
    ConnectRequest, ErrorCode, OpCode, Reader, ReplyHeader, Xid, Zxid, frame, jute,
};

/// The time after which a server that does not reply counts as silent. A bound, never a delay.
pub const PATIENCE: Duration = Duration::from_secs(8);

/// The xid of barrier requests. Scenarios use other xids.
const BARRIER: i32 = 0x7fff_fff0;

/// What a connection received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Got {
    /// A message without its length prefix.
    Message(Bytes),
    /// The end of the connection.
    Closed,
    /// No message within [`PATIENCE`].
    Silence,
}

/// One connection.
#[derive(Debug)]
pub struct Link {
    stream: TcpStream,
    /// Bytes read; those not consumed yet begin at `start`.
    buffer: Vec<u8>,
    start: usize,
    /// Messages read but not taken yet.
    inbox: VecDeque<Got>,
    /// Whether the end has been seen.
    is_over: bool,
}

impl Link {
    /// Connects and sends the handshake.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn open(address: SocketAddr, hello: &ConnectRequest) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut link = Self {
            stream,
            buffer: Vec::new(),
            start: 0,
            inbox: VecDeque::new(),
            is_over: false,
        };
        let mut out = Vec::new();
        hello.encode(&mut out);
        link.write(&out);
        Ok(link)
    }

    /// Whether the end has been seen.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Drops the connection.
    pub fn cut(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        self.is_over = true;
        self.inbox.clear();
    }

    /// Sends messages with one write. Does nothing if the connection is closed.
    pub fn send(&mut self, messages: &[Bytes]) {
        let mut out = Vec::new();
        for message in messages {
            frame::put(&mut out, |out| out.extend_from_slice(message));
        }
        self.write(&out);
    }

    fn write(&mut self, bytes: &[u8]) {
        if !self.is_over {
            // If the server has closed the connection meanwhile, the next read notices it.
            let _ = self.stream.write_all(bytes);
        }
    }

    /// Waits for the next message and stores it. Returns whether it is an event; `None` at the end
    /// of the connection or on silence.
    pub fn fetch(&mut self) -> Option<bool> {
        if self.is_over {
            return None;
        }
        match self.read_message() {
            Ok(message) => {
                let is_event = is_event(&message);
                self.inbox.push_back(Got::Message(message));
                Some(is_event)
            }
            Err(Got::Closed) => {
                self.is_over = true;
                self.inbox.push_back(Got::Closed);
                None
            }
            Err(got) => {
                self.inbox.push_back(got);
                None
            }
        }
    }

    /// Waits for this many replies, and for the events before them.
    pub fn await_replies(&mut self, mut count: usize) {
        while count > 0 {
            match self.fetch() {
                None => return,
                Some(true) => {}
                Some(false) => count -= 1,
            }
        }
    }

    /// Waits for the response to the handshake, which has no xid.
    pub fn await_handshake(&mut self) {
        self.fetch();
    }

    /// Waits for the server to close the connection.
    pub fn await_end(&mut self) {
        while self.fetch().is_some() {}
    }

    /// Waits for everything that the server has sent so far.
    ///
    /// Sends a sasl packet with an empty token: its reply comes after everything else in the
    /// stream, and it is the only request that does not keep the session alive
    /// (`docs/zookeeper-protocol.md` sections 7.1 and 9.10).
    pub fn barrier(&mut self) {
        let mut packet = Vec::new();
        jute::put_int(&mut packet, BARRIER);
        jute::put_int(&mut packet, OpCode::Sasl.code());
        jute::put_buffer(&mut packet, Some(&[]));
        self.barrier_with(&packet.into());
    }

    /// Sends a message and waits for its reply, which is not stored, and for everything before it.
    pub fn barrier_with(&mut self, message: &Bytes) {
        self.send(std::slice::from_ref(message));
        while self.fetch().is_some() {
            if let Some(Got::Message(reply)) = self.inbox.back()
                && reply.get(..4) == message.get(..4)
            {
                self.inbox.pop_back();
                return;
            }
        }
    }

    /// The newest message not taken yet.
    #[must_use]
    pub fn newest(&self) -> Option<&Got> {
        self.inbox.back()
    }

    /// Takes the oldest message.
    pub fn take(&mut self) -> Option<Got> {
        self.inbox.pop_front()
    }

    fn read_message(&mut self) -> Result<Bytes, Got> {
        loop {
            let held = &self.buffer[self.start..];
            match frame::next(held, usize::MAX) {
                Ok(Some(body)) => {
                    let message = Bytes::copy_from_slice(&held[body.clone()]);
                    self.start += body.end;
                    if self.start == self.buffer.len() {
                        self.buffer.clear();
                        self.start = 0;
                    }
                    return Ok(message);
                }
                Ok(None) => self.fill()?,
                // Nothing after a malformed frame can be decoded.
                Err(_) => return Err(Got::Closed),
            }
        }
    }

    fn fill(&mut self) -> Result<(), Got> {
        let mut chunk = [0; 16 * 1024];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(Got::Closed),
            Ok(count) => {
                self.buffer.extend_from_slice(&chunk[..count]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                ) =>
            {
                Err(Got::Silence)
            }
            Err(_) => Err(Got::Closed),
        }
    }
}

/// Whether a message is a watch event.
#[must_use]
pub fn is_event(message: &[u8]) -> bool {
    message.starts_with(&Xid::EVENT.0.to_be_bytes())
}

/// Whether the server closes the connection after this message.
///
/// Source: `docs/zookeeper-protocol.md` section 6.5.
#[must_use]
pub fn closes(op: Option<OpCode>, message: &Bytes) -> bool {
    if is_event(message) {
        return false;
    }
    let Ok(header) = ReplyHeader::decode(&mut Reader::new(message)) else {
        return false;
    };
    match header.error {
        None => op == Some(OpCode::CloseSession),
        // An unknown operation.
        Some(_) if header.zxid == Zxid::NONE => true,
        Some(error) => {
            error == ErrorCode::AuthFailed || matches!(op, Some(OpCode::Auth | OpCode::Sasl))
        }
    }
}
