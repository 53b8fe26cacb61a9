//! Many connections driven by one thread: an edge-triggered poll loop over non-blocking sockets.
//!
//! It uses one thread, because the machines that run it have few cores, and a second thread would
//! take time from the server. A read that fills less than its buffer has emptied the socket, so the
//! loop never makes a read that finds nothing.

use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    net::SocketAddr,
    time::Duration,
};

use minikeeper_protocol::Xid;
use mio::{Events, Interest, Poll, Token, net::TcpStream};

use crate::{
    Error, IoContext as _,
    client::{self, ANSWER_LIMIT},
    clock::{nanos, now_ns},
    frames::Source,
    record::{Message, Recorder, Sent},
};

/// When requests are sent.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// Each connection keeps this many requests outstanding.
    Closed {
        /// Requests outstanding on a connection.
        depth: usize,
    },
    /// Requests are due at fixed times, regardless of the server; latency counts from the due time.
    /// The connections take turns. The loop spins, so it uses a whole core.
    Open {
        /// Requests a second, over all connections.
        rate: f64,
        /// The largest number of requests outstanding on a connection. Further due requests wait,
        /// and the wait counts.
        depth: usize,
    },
}

/// The start and the end of a run.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// When the first request was about to be sent, in nanoseconds.
    pub start_ns: u64,
    /// When the run ended: at its limit, or with the last reply.
    pub end_ns: u64,
}

impl Span {
    /// Returns how long the run took, in nanoseconds.
    #[must_use]
    pub fn elapsed_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

/// Connections to one server.
#[derive(Debug)]
pub struct Driver {
    poll: Poll,
    events: Events,
    links: Vec<Link>,
    scratch: Box<[u8]>,
}

/// One connection of a driver.
#[derive(Debug)]
struct Link {
    stream: TcpStream,
    /// The beginning of a reply whose rest has not arrived.
    partial: Vec<u8>,
    /// Requests not yet accepted by the socket.
    out: Vec<u8>,
    sent: VecDeque<Sent>,
    /// The due times of requests of an open loop that wait because the connection is full.
    due_ns: VecDeque<u64>,
    next_xid: i32,
    exhausted: bool,
}

impl Driver {
    /// Opens `count` connections, each with its own session unless `raw`.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses one.
    pub fn connect(addr: SocketAddr, count: usize, raw: bool) -> Result<Self, Error> {
        let poll = Poll::new().context(|| "cannot open a poll".into())?;
        let mut links = Vec::with_capacity(count);
        for at in 0..count {
            let mut stream = client::dial(addr).map_err(|error| numbered(error, at, count))?;
            if !raw {
                client::handshake(&mut stream).map_err(|error| numbered(error, at, count))?;
            }
            stream
                .set_nonblocking(true)
                .context(|| "cannot make a connection non-blocking".into())?;
            let mut stream = TcpStream::from_std(stream);
            poll.registry()
                .register(
                    &mut stream,
                    Token(at),
                    Interest::READABLE | Interest::WRITABLE,
                )
                .context(|| "cannot watch a connection".into())?;
            links.push(Link::new(stream));
        }
        Ok(Self {
            poll,
            events: Events::with_capacity(1024),
            links,
            scratch: vec![0; SCRATCH_BYTES].into(),
        })
    }

    /// Returns the number of connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.links.len()
    }

    /// Sends requests from `source` until the time is over or no connection has more, then waits
    /// for the outstanding replies.
    ///
    /// # Errors
    /// When a connection fails, a reply is out of order, or nothing arrives for
    /// [`ANSWER_LIMIT`].
    pub fn run<S: Source>(
        &mut self,
        source: &mut S,
        pace: Pace,
        duration: Option<Duration>,
        recorder: &mut Recorder,
    ) -> Result<Span, Error> {
        for link in &mut self.links {
            link.exhausted = false;
        }
        let start_ns = now_ns();
        let stop_ns = duration.map_or(u64::MAX, |duration| start_ns + nanos(duration));
        recorder.cutoff_ns = stop_ns;
        let mut run = Run {
            source,
            pace,
            start_ns,
            stop_ns,
            dealt: 0,
            outstanding: 0,
            heard_ns: start_ns,
        };
        match pace {
            Pace::Closed { depth } => self.run_closed(&mut run, depth, recorder)?,
            Pace::Open { rate, depth } => self.run_open(&mut run, rate, depth, recorder)?,
        }
        let end_ns = recorder.last_reply_ns.clamp(start_ns, stop_ns);
        Ok(Span { start_ns, end_ns })
    }

    /// Waits until `recorder` has counted this number of events in total.
    ///
    /// # Errors
    /// When a connection fails or nothing arrives for [`ANSWER_LIMIT`].
    pub fn collect_events(&mut self, events: u64, recorder: &mut Recorder) -> Result<(), Error> {
        let mut none = |_: usize, _: Xid, _: &mut Vec<u8>| None;
        let mut run = Run::idle(&mut none);
        while recorder.events < events {
            let seen = recorder.events;
            self.turn(&mut run, Some(WAIT), recorder, || {
                format!("event {} of {events}", seen + 1)
            })?;
        }
        Ok(())
    }

    fn run_closed<S: Source>(
        &mut self,
        run: &mut Run<'_, S>,
        depth: usize,
        recorder: &mut Recorder,
    ) -> Result<(), Error> {
        for (at, link) in self.links.iter_mut().enumerate() {
            run.refill(at, link, depth, run.start_ns);
            link.flush()?;
        }
        while run.outstanding > 0 {
            let outstanding = run.outstanding;
            self.turn(run, Some(WAIT), recorder, || {
                format!("{outstanding} outstanding replies")
            })?;
        }
        Ok(())
    }

    fn run_open<S: Source>(
        &mut self,
        run: &mut Run<'_, S>,
        rate: f64,
        depth: usize,
        recorder: &mut Recorder,
    ) -> Result<(), Error> {
        let gap_ns = 1e9 / rate;
        let mut number = 0_u64;
        loop {
            let now = now_ns();
            let mut due_ns = run.start_ns + offset_ns(number, gap_ns);
            while due_ns <= now && due_ns < run.stop_ns {
                let at = usize::try_from(number % self.links.len() as u64)
                    .expect("the remainder is below the number of connections");
                let link = &mut self.links[at];
                link.due_ns.push_back(due_ns);
                if link.sent.len() < depth {
                    run.send_due(at, link, depth);
                    link.flush()?;
                }
                number += 1;
                due_ns = run.start_ns + offset_ns(number, gap_ns);
            }
            let over = due_ns >= run.stop_ns || run.is_exhausted(&self.links);
            if over && run.outstanding == 0 {
                return Ok(());
            }
            // A poll sleeps in whole milliseconds, too coarse for due times: spin near them.
            let ahead_ms = due_ns.saturating_sub(now_ns()) / 1_000_000;
            let timeout = match (over, ahead_ms) {
                (true, _) => WAIT,
                (false, 0 | 1) => Duration::ZERO,
                (false, ahead_ms) => Duration::from_millis(ahead_ms - 1),
            };
            let outstanding = run.outstanding;
            self.turn(run, Some(timeout), recorder, || {
                format!("{outstanding} outstanding replies")
            })?;
        }
    }

    /// Polls once, and handles everything that the poll reports.
    fn turn<S: Source>(
        &mut self,
        run: &mut Run<'_, S>,
        timeout: Option<Duration>,
        recorder: &mut Recorder,
        what: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            done => done.context(|| "cannot poll the connections".into())?,
        }
        for event in &self.events {
            let at = event.token().0;
            let link = &mut self.links[at];
            if event.is_readable() || event.is_read_closed() || event.is_error() {
                let now = link.receive(&mut self.scratch, run, recorder)?;
                run.heard_ns = now;
                match run.pace {
                    Pace::Closed { depth } => run.refill(at, link, depth, now),
                    Pace::Open { depth, .. } => run.send_due(at, link, depth),
                }
            }
            link.flush()?;
        }
        if self.events.is_empty()
            && run.outstanding_or_idle()
            && now_ns().saturating_sub(run.heard_ns) > nanos(ANSWER_LIMIT)
        {
            return Err(Error::Timeout {
                what: what(),
                limit_ms: ANSWER_LIMIT.as_millis(),
            });
        }
        Ok(())
    }
}

impl Link {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            partial: Vec::new(),
            out: Vec::new(),
            sent: VecDeque::new(),
            due_ns: VecDeque::new(),
            next_xid: 1,
            exhausted: false,
        }
    }

    fn take_xid(&mut self) -> Xid {
        let xid = Xid(self.next_xid);
        self.next_xid = self.next_xid.checked_add(1).unwrap_or(1);
        xid
    }

    /// Writes pending output; the rest stays until the socket is writable again.
    fn flush(&mut self) -> Result<(), Error> {
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(written) => {
                    self.out.drain(..written);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context(|| "cannot send requests".into()),
            }
        }
        Ok(())
    }

    /// Reads and counts everything that has arrived; returns the time of the last read.
    fn receive<S: Source>(
        &mut self,
        scratch: &mut [u8],
        run: &mut Run<'_, S>,
        recorder: &mut Recorder,
    ) -> Result<u64, Error> {
        loop {
            let read = match self.stream.read(scratch) {
                Ok(0) => {
                    return Err(Error::Unexpected(format!(
                        "server closed a connection with {} replies outstanding",
                        self.sent.len()
                    )));
                }
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(now_ns()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).context(|| "cannot read replies".into()),
            };
            let now = now_ns();
            let before = self.sent.len();
            self.take_messages(&scratch[..read], recorder, now)?;
            run.outstanding -= before - self.sent.len();
            if read < scratch.len() {
                return Ok(now);
            }
        }
    }

    fn take_messages(
        &mut self,
        arrived: &[u8],
        recorder: &mut Recorder,
        now: u64,
    ) -> Result<(), Error> {
        if self.partial.is_empty() {
            let used = count(arrived, &mut self.sent, recorder, now)?;
            self.partial.extend_from_slice(&arrived[used..]);
        } else {
            self.partial.extend_from_slice(arrived);
            let used = count(&self.partial, &mut self.sent, recorder, now)?;
            self.partial.drain(..used);
        }
        Ok(())
    }
}

/// Counts the whole messages at the front of `buffer`; returns how many bytes they take.
fn count(
    buffer: &[u8],
    sent: &mut VecDeque<Sent>,
    recorder: &mut Recorder,
    now: u64,
) -> Result<usize, Error> {
    let mut used = 0;
    while let Some(message) = Message::peek(&buffer[used..])? {
        used += message.bytes;
        if message.xid == Xid::EVENT {
            recorder.event(now);
            continue;
        }
        let Some(request) = sent.pop_front() else {
            return Err(Error::Unexpected(format!(
                "reply with xid {} belongs to no request",
                message.xid
            )));
        };
        recorder.reply(request, message, now)?;
    }
    Ok(used)
}

/// The state of one run over all connections.
struct Run<'a, S> {
    source: &'a mut S,
    pace: Pace,
    start_ns: u64,
    stop_ns: u64,
    dealt: u64,
    outstanding: usize,
    /// The time of the last read.
    heard_ns: u64,
}

impl<'a, S: Source> Run<'a, S> {
    /// Returns a run that only reads.
    fn idle(source: &'a mut S) -> Self {
        let now = now_ns();
        Self {
            source,
            pace: Pace::Closed { depth: 0 },
            start_ns: now,
            stop_ns: now,
            dealt: 0,
            outstanding: 0,
            heard_ns: now,
        }
    }

    fn outstanding_or_idle(&self) -> bool {
        self.outstanding > 0 || matches!(self.pace, Pace::Closed { depth: 0 })
    }

    /// Returns whether an open loop has nothing more to send on any connection.
    fn is_exhausted(&self, links: &[Link]) -> bool {
        self.dealt > 0 && links.iter().all(|link| link.exhausted)
    }

    fn send(&mut self, at: usize, link: &mut Link, at_ns: u64) -> bool {
        let xid = link.take_xid();
        let Some(kind) = self.source.next(at, xid, &mut link.out) else {
            link.exhausted = true;
            return false;
        };
        link.sent.push_back(Sent::new(at_ns, xid, kind));
        self.outstanding += 1;
        self.dealt += 1;
        true
    }

    fn refill(&mut self, at: usize, link: &mut Link, depth: usize, now: u64) {
        if now >= self.stop_ns {
            return;
        }
        while link.sent.len() < depth && !link.exhausted {
            if !self.send(at, link, now) {
                return;
            }
        }
    }

    fn send_due(&mut self, at: usize, link: &mut Link, depth: usize) {
        while link.sent.len() < depth && !link.exhausted {
            let Some(due_ns) = link.due_ns.pop_front() else {
                return;
            };
            if !self.send(at, link, due_ns) {
                link.due_ns.clear();
            }
        }
    }
}

fn offset_ns(number: u64, gap_ns: f64) -> u64 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a run's nanoseconds are positive and stay below 2^53"
    )]
    let offset = (number as f64 * gap_ns) as u64;
    offset
}

fn numbered(error: Error, at: usize, count: usize) -> Error {
    match error {
        Error::Io { what, source } => Error::Io {
            what: format!("connection {} of {count}: {what}", at + 1),
            source,
        },
        other => other,
    }
}

/// The size of the read buffer that all connections share, in bytes.
const SCRATCH_BYTES: usize = 256 * 1024;

/// How long one poll sleeps when there is nothing to send.
const WAIT: Duration = Duration::from_secs(1);
