//! Connections that use up the file descriptors: they are refused, the log says so, and the server goes
//! on, with every kind of data directory.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    process::{Command, Stdio},
};

use minikeeper_protocol::{ConnectRequest, Create, CreateMode, Reader, ReplyHeader, Request, Xid};

use crate::program::{PATIENCE, Running, connect, frame};

const OPEN_FILES: usize = 64;

/// Starts a server that may open few files.
fn start(args: &[&str]) -> Running {
    let limited = format!("ulimit -n {OPEN_FILES}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            &limited,
            env!("CARGO_BIN_EXE_minikeeper"),
            "--port",
            "0",
        ])
        .args(["--log", "warn"])
        .args(args)
        .env_remove("MINIKEEPER_CONTROL_TOKEN")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Running::spawn(&mut command)
}

/// Opens a session; `None` if the server refuses the connection.
fn session(address: SocketAddr) -> Option<TcpStream> {
    // The refusal may come while it still connects.
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut hello = Vec::new();
    ConnectRequest::new(30_000).encode(&mut hello);
    let mut prefix = [0; 4];
    stream.write_all(&hello).ok()?;
    stream.read_exact(&mut prefix).ok()?;
    let length = usize::try_from(u32::from_be_bytes(prefix)).unwrap();
    stream.read_exact(&mut vec![0; length]).ok()?;
    Some(stream)
}

/// Opens idle connections until the server refuses one.
fn exhaust(address: SocketAddr) -> Vec<TcpStream> {
    let idle: Vec<_> = (0..2 * OPEN_FILES)
        .map_while(|_| session(address))
        .collect();
    assert!(idle.len() < 2 * OPEN_FILES, "no connection is refused");
    idle
}

fn create(stream: &mut TcpStream, path: &str) {
    let mut out = Vec::new();
    Request::Create(Create::new(path, b"", CreateMode::Persistent)).encode(Xid(2), &mut out);
    stream.write_all(&out).unwrap();
    let header = ReplyHeader::decode(&mut Reader::new(&frame(stream))).unwrap();
    assert_eq!(header.error, None);
}

/// Idle connections of anybody ended the server: there was no descriptor for its log.
#[test]
fn idle_connections_are_refused_before_the_server_lacks_files() {
    for (number, options) in [
        &[][..],
        &["--data-dir"],
        &["--data-dir", "--save-interval", "20"],
        &["--data-dir", "--txn-log", "write", "--snap-count", "3"],
        &["--data-dir", "--txn-log", "sync", "--snap-count", "3"],
    ]
    .into_iter()
    .enumerate()
    {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("open_files_{number}"));
        let _ = std::fs::remove_dir_all(&dir);
        let mut args = vec!["--control-listen", "127.0.0.1:0"];
        for option in options {
            args.push(option);
            if *option == "--data-dir" {
                args.push(dir.to_str().unwrap());
            }
        }
        let mut server = start(&args);
        let address = server.address();
        let control = server.line_after("control on http://");
        let control: SocketAddr = control.split('/').next().unwrap().parse().unwrap();
        let mut client = session(address).unwrap();
        let idle = exhaust(address);
        assert!(idle.len() > OPEN_FILES / 4, "{options:?}: {}", idle.len());
        let told = server.error_line();
        assert!(told.contains("limit of open files"), "{options:?}: {told}");
        // The first change creates the log, and every third one a snapshot and another log.
        for change in 0..10 {
            create(&mut client, &format!("/{change}"));
        }
        let mut controlling = connect(control);
        let request =
            b"GET /v1/children?path=/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        controlling.write_all(request).unwrap();
        let mut answer = String::new();
        controlling.read_to_string(&mut answer).unwrap();
        assert!(
            answer.contains("200 OK") && answer.contains("\"9\""),
            "{options:?}: {answer}"
        );
        // Once some have left, others are served.
        drop(idle);
        let mut tries = 0;
        while session(address).is_none() {
            tries += 1;
            assert!(tries < 1_000, "{options:?}: still refused");
        }
        let (status, _, err) = server.terminate();
        assert_eq!(status.code(), Some(0), "{options:?}: {err}");
        assert!(!err.contains("ERROR"), "{options:?}: {err}");
    }
}
