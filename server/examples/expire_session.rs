//! Ends a session by hand: its ephemeral goes, and another client's watch tells.
//!
//! This is how a test shows what an application does when a peer is lost, without waiting for a
//! timeout and without killing anything.
//!
//! ```text
//! cargo run -p minikeeper --example expire_session
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

use minikeeper::{SessionId, blocking::Server};
use minikeeper_protocol::{
    ConnectRequest, ConnectResponse, Create, CreateMode, Reader, ReplyHeader, Request,
    WatcherEvent, Xid,
};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    // For tests without a runtime of their own: the server has a thread, and ends when dropped.
    let server = Server::builder().manual_clock().start()?;
    let (mut leader, leader_session) = connect(server.addr())?;
    let (mut standby, _) = connect(server.addr())?;

    let elect = Create::new("/leader", b"host 1", CreateMode::Ephemeral);
    send(&mut leader, &Request::Create(elect))?;
    let watch = Request::Exists {
        path: Some("/leader".into()),
        watch: true,
    };
    send(&mut standby, &watch)?;
    println!("/leader belongs to session {leader_session}");

    // `server.advance(..)` would do the same to every session that keeps silent for so long.
    server.expire(leader_session)?;

    let message = frame(&mut standby)?;
    let mut reader = Reader::new(&message);
    let header = ReplyHeader::decode(&mut reader)?;
    let event = WatcherEvent::decode(&mut reader)?;
    println!(
        "the standby gets an event of zxid {}: {:?} {}",
        header.zxid,
        event.kind,
        event.path.to_str_lossy()
    );
    println!("/leader now: {:?}", server.get("/leader"));
    // The client that has lost its session finds its connection closed.
    println!("the leader reads {} bytes", leader.read(&mut [0; 1])?);
    Ok(())
}

/// Connects and opens a session.
fn connect(address: SocketAddr) -> Result<(TcpStream, SessionId), Failure> {
    let mut stream = TcpStream::connect(address)?;
    let mut hello = Vec::new();
    ConnectRequest::new(10_000).encode(&mut hello);
    stream.write_all(&hello)?;
    let message = frame(&mut stream)?;
    let response = ConnectResponse::decode(&mut Reader::new(&message))?;
    Ok((stream, response.session_id))
}

/// Sends a request and waits for its reply; only its header matters here.
fn send(stream: &mut TcpStream, request: &Request) -> Result<(), Failure> {
    let mut out = Vec::new();
    request.encode(Xid(1), &mut out);
    stream.write_all(&out)?;
    let message = frame(stream)?;
    ReplyHeader::decode(&mut Reader::new(&message))?;
    Ok(())
}

/// Reads one message: a length, and as many bytes.
fn frame(stream: &mut TcpStream) -> Result<bytes::Bytes, Failure> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; usize::try_from(u32::from_be_bytes(length))?];
    stream.read_exact(&mut message)?;
    Ok(message.into())
}
