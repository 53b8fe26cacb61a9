//! The floor of the fan-out: one thread that writes one frame to each connection.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
};

use minikeeper_benches::{Error, IoContext as _, client, table::say};
use minikeeper_protocol::{
    ConnectRequest, ConnectResponse, EventKind, Reader, SessionId, Zxid, event,
};

use super::figures::FAN_OUT_PATH;

/// Accepts `watchers` connections and one more. Each request of the last one is answered with an
/// event to each of the others, then with a reply. Ends when the last one ends.
///
/// # Errors
/// When a connection fails.
pub(crate) fn serve(watchers: usize) -> Result<(), Error> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context(|| "cannot listen".into())?;
    let addr = listener
        .local_addr()
        .context(|| "cannot read the listener's address".into())?;
    say(format!("listening on {addr}\n")).context(|| "cannot print the address".into())?;
    let mut streams = Vec::with_capacity(watchers);
    for _ in 0..watchers {
        streams.push(greeted(&listener)?);
    }
    let mut writer = greeted(&listener)?;
    let mut frame = Vec::new();
    event::encode(
        EventKind::DataChanged,
        FAN_OUT_PATH.as_bytes(),
        Zxid(1),
        &mut frame,
    );
    let mut request = [0; 4096];
    while let Ok(read @ 1..) = writer.read(&mut request) {
        for stream in &mut streams {
            stream
                .write_all(&frame)
                .context(|| "cannot write an event".into())?;
        }
        // The request's xid, a zxid, no error: a reply without a body.
        let mut reply = vec![0, 0, 0, 16];
        reply.extend_from_slice(request[..read].get(4..8).unwrap_or(&[0; 4]));
        reply.extend_from_slice(&[0; 12]);
        writer
            .write_all(&reply)
            .context(|| "cannot write the reply".into())?;
    }
    Ok(())
}

/// Accepts a connection and grants it a session, as any server would.
fn greeted(listener: &TcpListener) -> Result<TcpStream, Error> {
    let (mut stream, _) = listener
        .accept()
        .context(|| "cannot accept a connection".into())?;
    stream
        .set_nodelay(true)
        .context(|| "cannot set options of a connection".into())?;
    let body = client::read_frame(&mut stream)?;
    let hello = ConnectRequest::decode(&mut Reader::new(&body))?;
    let mut out = Vec::new();
    ConnectResponse {
        session_id: SessionId(1),
        timeout_ms: hello.timeout_ms,
        ..ConnectResponse::refused(hello.read_only)
    }
    .encode(&mut out);
    stream
        .write_all(&out)
        .context(|| "cannot grant a session".into())?;
    Ok(stream)
}
