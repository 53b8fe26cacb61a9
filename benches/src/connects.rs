//! The loop that times new sessions, one after the other: connect, handshake, reply.
//!
//! Only these steps are timed. Afterwards the session is closed, and the socket is reset instead of
//! closed, because each orderly close by the client leaves a local port in TIME_WAIT for a minute,
//! and a run would use up the ports within seconds.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use minikeeper_protocol::{Request, Xid};

use crate::{
    Error, IoContext as _, client,
    clock::{nanos, now_ns},
    drive::Span,
    frames::Kind,
    record::{Message, Recorder, Sent},
};

/// Opens sessions until the time is over or `ops_max` are open.
///
/// # Errors
/// When the server cannot be reached, refuses, or does not answer.
pub fn run(
    addr: SocketAddr,
    ops_max: u64,
    duration: Option<Duration>,
    recorder: &mut Recorder,
) -> Result<Span, Error> {
    let hello = client::hello();
    let mut bye = Vec::new();
    Request::CloseSession.encode(Xid(1), &mut bye);
    let start_ns = now_ns();
    let stop_ns = duration.map_or(u64::MAX, |duration| start_ns + nanos(duration));
    let mut timed_ns = 0;
    let mut ops = 0;
    let mut answer = [0; 256];
    let mut end_ns = start_ns;
    while end_ns < stop_ns && ops < ops_max {
        let sent_ns = now_ns();
        let mut stream = TcpStream::connect(addr)
            .context(|| format!("cannot connect to {addr} (is the server running?)"))?;
        stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(client::ANSWER_LIMIT)))
            .context(|| "cannot set options of a connection".into())?;
        stream
            .write_all(&hello)
            .context(|| "cannot send the handshake".into())?;
        let read = stream
            .read(&mut answer)
            .context(|| "no answer to the handshake".into())?;
        end_ns = now_ns();
        check_answer(&answer[..read])?;
        ops += 1;
        timed_ns += end_ns - sent_ns;
        let message = Message {
            xid: Xid(0),
            error: 0,
            bytes: read,
        };
        recorder.reply(Sent::new(sent_ns, Xid(0), Kind::Connect), message, end_ns)?;
        finish(stream, &bye, &mut answer)?;
    }
    // What is not timed does not count as run time either.
    Ok(Span {
        start_ns,
        end_ns: start_ns + timed_ns,
    })
}

/// Checks that the session was granted: the timeout, after the length and the protocol version, is
/// above zero.
fn check_answer(answer: &[u8]) -> Result<(), Error> {
    let timeout_ms = answer.get(8..12).and_then(|bytes| bytes.first_chunk());
    match timeout_ms.map(|bytes| i32::from_be_bytes(*bytes)) {
        Some(1..) => Ok(()),
        _ => Err(Error::Unexpected(
            "server refused a new session, or closed the connection".into(),
        )),
    }
}

fn finish(mut stream: TcpStream, bye: &[u8], answer: &mut [u8]) -> Result<(), Error> {
    stream
        .write_all(bye)
        .context(|| "cannot close a session".into())?;
    // The reply, or the end of the connection: either way the server is done with the session.
    let _ = stream.read(answer);
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))
        .map_err(std::io::Error::from)
        .context(|| "cannot set the connection to reset".into())
}
