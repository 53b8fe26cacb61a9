//! The fan-out compared with that of Redis: one message to as many subscribers.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    process::Stdio,
    time::Duration,
};

use minikeeper_benches::{
    Error, IoContext as _,
    client::{self, ANSWER_LIMIT, Client},
    clock::{Deadline, now_ns},
    drive::Driver,
    process::{Pin, Server, free_port},
    stats::as_f64,
};
use mio::{Events, Interest, Poll, Token};

use super::{
    Args, expect_files,
    figures::{FAN_OUT_PATH, Figure, arm, change, create},
    row::{Row, Unit},
};

/// Measured only with `--redis`, because Redis need not be installed.
pub(crate) static FIGURE: (&str, Figure) = ("fan-out-redis", fan_out);

const SUBSCRIBE: &[u8] = b"SUBSCRIBE fan-out\r\n";
const SUBSCRIBED: &[u8] = b"*3\r\n$9\r\nsubscribe\r\n$7\r\nfan-out\r\n:1\r\n";
const PUBLISH: &[u8] = b"PUBLISH fan-out 0\r\n";
const MESSAGE: &[u8] = b"*3\r\n$7\r\nmessage\r\n$7\r\nfan-out\r\n$1\r\n0\r\n";

/// The largest read, the same as in the driver of our own fan-out.
const SCRATCH_BYTES: usize = 256 * 1024;

/// How long one poll sleeps.
const WAIT: Duration = Duration::from_secs(1);

/// Measures a change to a watched znode and a message to subscribers in turn, so that a slow
/// machine slows both.
fn fan_out(args: &Args) -> Result<Vec<Row>, Error> {
    expect_files(2 * args.watchers + 100)?;
    let redis = start(args.measured.pin, 2 * args.watchers)?;
    let server = args.measured.start()?;
    create(&mut Client::connect(server.addr)?, FAN_OUT_PATH)?;
    let mut watching = Driver::connect(server.addr, args.watchers + 1, false)?;
    let mut subscribed = Subscribers::connect(redis.addr, args.watchers)?;
    let (mut ratios, mut times) = (vec![], vec![]);
    for _ in 0..args.rounds {
        let theirs_ns = subscribed.publish()?;
        arm(args, &mut watching)?;
        let (ours_ns, _) = change(args, &mut watching)?;
        ratios.push(ours_ns / theirs_ns);
        times.push(theirs_ns);
    }
    // Stop the servers first: the side that closes first keeps the port busy for a minute.
    drop((server, redis));
    let note = format!("{} watchers, our fan-out-time / theirs", args.watchers);
    Ok(vec![
        Row::new("fan-out-redis", ratios, Unit::Ratio, 0.0)
            .without_goal()
            .with_note(note),
        Row::new("fan-out-redis-time", times, Unit::Time, 0.0)
            .without_goal()
            .with_note("sending PUBLISH to reading the last message"),
    ])
}

/// Starts a Redis that writes nothing to disk and waits until it answers.
fn start(pin: Pin, clients_max: usize) -> Result<Server, Error> {
    let port = free_port()?;
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut command = pin.server("redis-server");
    command
        .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
        .args(["--maxclients", &clients_max.to_string()])
        .args(["--save", "", "--appendonly", "no"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Server::start_when(command, addr, || Ok(answers_ping(addr).then_some(())))
}

fn answers_ping(addr: SocketAddr) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(&addr, client::TRY_LIMIT)?;
        stream.set_read_timeout(Some(client::TRY_LIMIT))?;
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 7];
        stream.read_exact(&mut answer)?;
        Ok(answer == *b"+PONG\r\n")
    };
    ask().unwrap_or(false)
}

/// The subscribers of one channel, and its publisher.
struct Subscribers {
    poll: Poll,
    events: Events,
    streams: Vec<mio::net::TcpStream>,
    publisher: TcpStream,
    scratch: Box<[u8]>,
}

impl Subscribers {
    fn connect(addr: SocketAddr, count: usize) -> Result<Self, Error> {
        let poll = Poll::new().context(|| "cannot open a poll".into())?;
        let mut streams = Vec::with_capacity(count);
        for at in 0..count {
            let mut stream = client::dial(addr)?;
            let subscribed = || -> std::io::Result<_> {
                stream.write_all(SUBSCRIBE)?;
                let mut answer = [0; SUBSCRIBED.len()];
                stream.read_exact(&mut answer)?;
                if answer != SUBSCRIBED {
                    return Err(ErrorKind::InvalidData.into());
                }
                stream.set_nonblocking(true)?;
                let mut stream = mio::net::TcpStream::from_std(stream);
                let registry = poll.registry();
                registry.register(&mut stream, Token(at), Interest::READABLE)?;
                Ok(stream)
            };
            let stream = subscribed();
            streams.push(stream.context(|| format!("cannot subscribe {} of {count}", at + 1))?);
        }
        Ok(Self {
            poll,
            events: Events::with_capacity(1024),
            streams,
            publisher: client::dial(addr)?,
            scratch: vec![0; SCRATCH_BYTES].into(),
        })
    }

    /// Publishes one message. Returns the time until the last subscriber has read it, in
    /// nanoseconds.
    fn publish(&mut self) -> Result<f64, Error> {
        let count = self.streams.len();
        let mut missing = vec![MESSAGE.len(); count];
        let mut waiting = count;
        let deadline = Deadline::new(ANSWER_LIMIT, format!("message to {count} subscribers"));
        let start_ns = now_ns();
        let mut last_ns = start_ns;
        self.publisher
            .write_all(PUBLISH)
            .context(|| "cannot publish".into())?;
        while waiting > 0 {
            match self.poll.poll(&mut self.events, Some(WAIT)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                done => done.context(|| "cannot poll the subscribers".into())?,
            }
            for event in &self.events {
                let at = event.token().0;
                let read = match self.streams[at].read(&mut self.scratch) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                    read => read.context(|| "cannot read messages".into())?,
                };
                last_ns = now_ns();
                // Zero is the end of the connection.
                if read == 0 || read > missing[at] {
                    return Err(Error::Unexpected(format!(
                        "Redis sent subscriber {at} {read} bytes, {} were missing",
                        missing[at]
                    )));
                }
                missing[at] -= read;
                waiting -= usize::from(missing[at] == 0);
            }
            deadline.check()?;
        }
        let mut answer = format!(":{count}\r\n").into_bytes();
        let expected = answer.clone();
        self.publisher
            .read_exact(&mut answer)
            .context(|| "cannot read the answer to PUBLISH".into())?;
        if answer != expected {
            return Err(Error::Unexpected(format!(
                "Redis did not send to {count} subscribers: {:?}",
                String::from_utf8_lossy(&answer)
            )));
        }
        Ok(as_f64(last_ns - start_ns))
    }
}
