//! A server inside the process, a client without a socket, and a look at the whole state.
//!
//! ```text
//! cargo run -p minikeeper --example embedded
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use minikeeper::{LocalStream, Server};
use minikeeper_protocol::{
    ConnectRequest, ConnectResponse, Create, CreateMode, Reader, Reply, ReplyHeader, Request, Xid,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

type Failure = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    // Listens on a free port of 127.0.0.1; any ZooKeeper client connects to it.
    let server = Server::builder().manual_clock().start().await?;
    println!("connect string: {}", server.connect_string());

    // The same bytes without a socket. The first message is the handshake.
    let mut client = server.local();
    let mut hello = Vec::new();
    ConnectRequest::new(10_000).encode(&mut hello);
    client.write_all(&hello).await?;
    let message = frame(&mut client).await?;
    let session = ConnectResponse::decode(&mut Reader::new(&message))?;
    println!("session: {}", session.session_id);

    for (path, data, mode) in [
        ("/app", "config", CreateMode::Persistent),
        ("/app/worker-", "host 1", CreateMode::EphemeralSequential),
        ("/app/worker-", "host 2", CreateMode::EphemeralSequential),
    ] {
        let create = Request::Create(Create::new(path, data.as_bytes(), mode));
        call(&mut client, &create).await?;
    }
    let list = Request::GetChildren {
        path: Some("/app".into()),
        watch: true,
    };
    println!("children: {:?}", call(&mut client, &list).await?);

    // Everything there is, as text that is the same in every run: made for snapshot tests.
    println!("\n{}", server.dump());
    server.shutdown().await?;
    Ok(())
}

/// Sends a request and reads its reply.
async fn call(client: &mut LocalStream, request: &Request) -> Result<Reply, Failure> {
    let mut out = Vec::new();
    request.encode(Xid(1), &mut out);
    client.write_all(&out).await?;
    let message = frame(client).await?;
    let mut reader = Reader::new(&message);
    match ReplyHeader::decode(&mut reader)?.error {
        None => Ok(Reply::decode(request.op(), &mut reader)?),
        Some(error) => Err(error.into()),
    }
}

/// Reads one message: a length, and as many bytes.
async fn frame(client: &mut LocalStream) -> Result<bytes::Bytes, Failure> {
    let length = usize::try_from(client.read_u32().await?)?;
    let mut message = vec![0; length];
    client.read_exact(&mut message).await?;
    Ok(message.into())
}
