//! In-process connections: the same bytes and turns as over a socket.

use std::{future::Future, io, time::Duration};

use minikeeper::{LocalStream, Server};
use minikeeper_protocol::{
    ConnectRequest, CreateMode, EventKind, OpCode, Reader, Reply, ReplyHeader, Request,
    WatcherEvent, Xid,
};
use minikeeper_test_kit::wire::{self, PATIENCE, Wire};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::kit::TIMEOUT_MS;

/// Runs a test on a single-threaded runtime; panics after [`PATIENCE`].
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, test).await })
        .expect("the test ends within PATIENCE");
}

async fn start() -> Server {
    Server::builder().manual_clock().start().await.unwrap()
}

fn encoded(requests: &[Request]) -> Vec<u8> {
    let mut out = Vec::new();
    for (xid, request) in (1..).zip(requests) {
        request.encode(Xid(xid), &mut out);
    }
    out
}

fn hello() -> Vec<u8> {
    let mut out = Vec::new();
    ConnectRequest::new(TIMEOUT_MS).encode(&mut out);
    out
}

async fn frame(stream: &mut LocalStream) -> bytes::Bytes {
    let length = stream.read_u32().await.unwrap();
    let mut message = vec![0; length as usize];
    stream.read_exact(&mut message).await.unwrap();
    message.into()
}

async fn event(stream: &mut LocalStream) -> WatcherEvent {
    let message = frame(stream).await;
    let mut reader = Reader::new(&message);
    assert_eq!(ReplyHeader::decode(&mut reader).unwrap().xid, Xid::EVENT);
    WatcherEvent::decode(&mut reader).unwrap()
}

async fn open(server: &Server) -> LocalStream {
    let mut stream = server.local();
    stream.write_all(&hello()).await.unwrap();
    assert_eq!(frame(&mut stream).await.len(), 37);
    stream
}

async fn answer(stream: &mut LocalStream, op: OpCode) -> Reply {
    let message = frame(stream).await;
    let mut reader = Reader::new(&message);
    let header = ReplyHeader::decode(&mut reader).unwrap();
    assert_eq!(header.error, None);
    Reply::decode(op, &mut reader).unwrap()
}

async fn call(stream: &mut LocalStream, request: &Request) -> Reply {
    stream
        .write_all(&encoded(std::slice::from_ref(request)))
        .await
        .unwrap();
    answer(stream, request.op()).await
}

/// Two servers in the same state, one with a socket and one in-process, send the same bytes:
/// replies, events, errors and the end.
#[test]
fn requests_in_process_get_the_same_bytes_as_over_a_socket() {
    let sequence = encoded(&[
        wire::create("/a", b"data", CreateMode::Persistent),
        wire::get("/a", true),
        wire::create("/a", b"", CreateMode::Persistent),
        wire::watch("/b"),
        wire::create("/b", b"", CreateMode::EphemeralSequential),
        wire::create("/b", b"", CreateMode::Ephemeral),
        wire::children("/", false),
        wire::set("/a", b"more"),
        wire::exists("/missing", true),
        Request::Ping,
        wire::delete("/b"),
        wire::create("no/slash/first", b"", CreateMode::Persistent),
        Request::Sync {
            path: Some("/😀".into()),
        },
        Request::CloseSession,
        wire::get("/a", false),
    ]);
    let mut input = hello();
    input.extend(sequence);
    let fixed = |config: &mut minikeeper::Config| config.manual_clock = true;
    let blocking = minikeeper::blocking::Server::builder();
    let blocking = blocking.configure(fixed).start().unwrap();
    let mut socket = Wire::connect(blocking.addr());
    socket.send_raw(&input);
    let over_socket = socket.rest();
    assert!(over_socket.len() > 600, "{} bytes", over_socket.len());
    for chunk in [1, 7, 4096] {
        run(async {
            let server = Server::builder().configure(fixed).start().await.unwrap();
            let mut local = server.local();
            for part in input.chunks(chunk) {
                if local.write_all(part).await.is_err() {
                    break;
                }
            }
            let mut without_socket = Vec::new();
            local.read_to_end(&mut without_socket).await.unwrap();
            assert_eq!(without_socket, over_socket, "in pieces of {chunk} bytes");
            assert_eq!(server.dump_exact(), blocking.dump_exact());
        });
    }
}

#[test]
fn event_wakes_a_waiting_reader() {
    run(async {
        let server = start().await;
        let mut watcher = open(&server).await;
        let mut writer = open(&server).await;
        call(&mut watcher, &wire::watch("/w")).await;
        let reading = tokio::spawn(async move { event(&mut watcher).await });
        // Lets the reader run until it waits.
        tokio::task::yield_now().await;
        assert!(!reading.is_finished());
        let create = wire::create("/w", b"", CreateMode::Persistent);
        call(&mut writer, &create).await;
        let event = reading.await.unwrap();
        assert_eq!(event.kind, EventKind::Created);
        assert_eq!(event.path.as_bytes(), b"/w");
        server.check().unwrap();
    });
}

/// A reply wakes a reader on another task than the writing half of the connection.
#[test]
fn own_reply_wakes_a_reader_on_another_task() {
    run(async {
        let server = start().await;
        let (mut reading, mut writing) = tokio::io::split(open(&server).await);
        let reader = tokio::spawn(async move { reading.read_u32().await.unwrap() });
        tokio::task::yield_now().await;
        writing.write_all(&encoded(&[Request::Ping])).await.unwrap();
        assert_eq!(reader.await.unwrap(), 16);
    });
}

/// Backpressure works in-process: two tasks write and read several megabytes through a backlog of a
/// few kilobytes.
#[test]
fn large_writes_wait_for_the_reader_and_arrive_whole() {
    run(async {
        let backlog = |config: &mut minikeeper::Config| config.write_backlog_bytes_max = 4096;
        let server = Server::builder().configure(backlog).start().await.unwrap();
        let (mut reading, mut writing) = tokio::io::split(open(&server).await);
        let data: Vec<u8> = (0..300_000_u32).map(|i| i.to_be_bytes()[3]).collect();
        let mut requests = vec![wire::create("/d", &data, CreateMode::Persistent)];
        for _ in 0..20 {
            requests.push(wire::set("/d", &data));
            requests.push(wire::get("/d", false));
        }
        let input = encoded(&requests);
        let writer = tokio::spawn(async move {
            writing.write_all(&input).await.unwrap();
            writing
        });
        // Without a reader the writer blocks.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(!writer.is_finished());
        for (xid, request) in (1..).zip(&requests) {
            let mut message = vec![0; reading.read_u32().await.unwrap() as usize];
            reading.read_exact(&mut message).await.unwrap();
            let message = message.into();
            let mut reader = Reader::new(&message);
            assert_eq!(ReplyHeader::decode(&mut reader).unwrap().xid, Xid(xid));
            if let Reply::Data(got, _) = Reply::decode(request.op(), &mut reader).unwrap() {
                assert!(*got.unwrap() == data);
            }
        }
        drop(writer.await.unwrap());
    });
}

#[test]
fn connection_closed_by_the_server_ends_reading_and_breaks_writing() {
    run(async {
        let server = start().await;
        let mut local = open(&server).await;
        let session = server.sessions()[0].id;
        assert!(server.disconnect(session).is_ok());
        assert_eq!(local.read(&mut [0; 1]).await.unwrap(), 0);
        let broken = local.write_all(b"more").await.unwrap_err();
        assert_eq!(broken.kind(), io::ErrorKind::BrokenPipe);
        // The stream still exists, but the connection is closed and the session has none.
        assert!(!server.sessions()[0].is_connected);
        assert_eq!(server.connections(), 0);
    });
}

/// The server has closed the connection before the client writes.
#[test]
fn write_after_expiry_is_not_served() {
    run(async {
        let server = start().await;
        let mut local = open(&server).await;
        server.advance_strictly(Duration::from_secs(60));
        let create = wire::create("/late", b"", CreateMode::Persistent);
        let _ = local.write_all(&encoded(&[create])).await;
        assert_eq!(local.read(&mut [0; 1]).await.unwrap(), 0);
        assert!(server.get("/late").is_none());
    });
}

/// `docs/zookeeper-protocol.md` section 6.5, "half-closes": the watches end at once, the session
/// does not.
#[test]
fn shutdown_by_the_client_ends_the_connection_at_once() {
    run(async {
        let server = start().await;
        let mut local = open(&server).await;
        call(&mut local, &wire::watch("/w")).await;
        local.shutdown().await.unwrap();
        assert_eq!(server.connections(), 0);
        assert!(
            !server.dump_exact().contains("watch /w"),
            "{}",
            server.dump_exact()
        );
        assert_eq!(server.sessions().len(), 1);
        assert_eq!(local.read(&mut [0; 1]).await.unwrap(), 0);
    });
}

/// Malformed bytes, four-letter words and handshake timeouts work as over a socket.
#[test]
fn malformed_bytes_words_and_timeouts_work_as_over_a_socket() {
    run(async {
        let server = start().await;
        let mut garbage = server.local();
        let _ = garbage.write_all(b"GET / HTTP/1.1\r\n\r\n").await;
        assert_eq!(garbage.read(&mut [0; 1]).await.unwrap(), 0);
        let mut word = server.local();
        word.write_all(b"isro").await.unwrap();
        let mut answer = String::new();
        word.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "rw");
        let mut silent = server.local();
        server.advance(Duration::from_secs(10));
        assert_eq!(silent.read(&mut [0; 1]).await.unwrap(), 0);
        assert_eq!(server.connections(), 0);
    });
}

/// Clients in-process and over sockets get each other's events.
#[test]
fn local_and_socket_clients_get_each_others_events() {
    let server = minikeeper::blocking::Server::builder()
        .manual_clock()
        .start()
        .unwrap();
    let (mut socket, _) = Wire::open(server.addr(), TIMEOUT_MS);
    socket.must(&wire::watch("/x"));
    run(async {
        let mut local = open(&server).await;
        call(&mut local, &wire::watch("/x")).await;
        call(&mut local, &wire::get("/", false)).await;
        let create = wire::create("/x", b"", CreateMode::Persistent);
        local.write_all(&encoded(&[create])).await.unwrap();
        assert_eq!(event(&mut local).await.kind, EventKind::Created);
        answer(&mut local, OpCode::Create).await;
        assert_eq!(socket.event().kind, EventKind::Created);
        let xid = socket.send(&wire::set("/x", b""));
        assert_eq!(socket.event().kind, EventKind::DataChanged);
        assert_eq!(socket.answer(OpCode::SetData).xid, xid);
        assert_eq!(event(&mut local).await.kind, EventKind::DataChanged);
    });
    server.check().unwrap();
}
