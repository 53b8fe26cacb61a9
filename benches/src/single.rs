//! One connection, one request outstanding, a plain blocking socket.
//!
//! Between the two readings of the clock there are only two system calls, write and read: the least
//! that a generator can add to a round trip.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use minikeeper_protocol::Xid;

use crate::{
    Error, IoContext as _,
    client::{self, ANSWER_LIMIT},
    clock::{nanos, now_ns},
    drive::Span,
    frames::Source,
    record::{Message, Recorder, Sent},
};

/// A connection with one request at a time.
#[derive(Debug)]
pub struct Single {
    stream: TcpStream,
    out: Vec<u8>,
    read: Vec<u8>,
    next_xid: i32,
}

impl Single {
    /// Connects, with a session unless `raw`.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub fn connect(addr: SocketAddr, raw: bool) -> Result<Self, Error> {
        let mut stream = client::dial(addr)?;
        if !raw {
            client::handshake(&mut stream)?;
        }
        Ok(Self {
            stream,
            out: Vec::new(),
            read: vec![0; READ_BYTES],
            next_xid: 1,
        })
    }

    /// Sends the requests of `source`, one after the other, until the time is over or the source
    /// ends.
    ///
    /// # Errors
    /// When the connection fails, a reply is out of order, or none comes for [`ANSWER_LIMIT`].
    pub fn run<S: Source>(
        &mut self,
        source: &mut S,
        duration: Option<Duration>,
        recorder: &mut Recorder,
    ) -> Result<Span, Error> {
        let start_ns = now_ns();
        let stop_ns = duration.map_or(u64::MAX, |duration| start_ns + nanos(duration));
        recorder.cutoff_ns = stop_ns;
        let mut end_ns = start_ns;
        while end_ns < stop_ns {
            let xid = Xid(self.next_xid);
            self.next_xid = self.next_xid.checked_add(1).unwrap_or(1);
            self.out.clear();
            let Some(kind) = source.next(0, xid, &mut self.out) else {
                break;
            };
            let sent_ns = now_ns();
            self.stream
                .write_all(&self.out)
                .context(|| "cannot send a request".into())?;
            let message = self.receive()?;
            end_ns = now_ns();
            recorder.reply(Sent::new(sent_ns, xid, kind), message, end_ns)?;
        }
        Ok(Span {
            start_ns,
            end_ns: end_ns.min(stop_ns),
        })
    }

    /// Reads one whole message; usually one read.
    fn receive(&mut self) -> Result<Message, Error> {
        let mut filled = 0;
        loop {
            if filled == self.read.len() {
                self.read.resize(filled * 2, 0);
            }
            let read = self
                .stream
                .read(&mut self.read[filled..])
                .context(|| format!("no reply within {} s", ANSWER_LIMIT.as_secs()))?;
            if read == 0 {
                return Err(Error::Unexpected(
                    "server closed the connection with a reply outstanding".into(),
                ));
            }
            filled += read;
            let Some(message) = Message::peek(&self.read[..filled])? else {
                continue;
            };
            if message.xid != Xid::EVENT {
                return Ok(message);
            }
            self.read.copy_within(message.bytes..filled, 0);
            filled -= message.bytes;
        }
    }
}

/// The largest read unless a reply is larger, in bytes.
const READ_BYTES: usize = 64 * 1024;
