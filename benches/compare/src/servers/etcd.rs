//! etcd on loopback.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

use super::{Running, Storage, program};
use crate::{
    Error, IoContext as _,
    process::{Pin, free_port},
};

/// How long one request over HTTP may take.
const ASK_LIMIT: Duration = Duration::from_secs(2);

/// Starts it on free ports and waits until it reports that it is healthy, which includes that it
/// has elected itself.
///
/// [`Storage::AsShipped`] syncs its log to disk with every change; [`Storage::Memory`] is
/// `--unsafe-no-fsync` with data in memory.
///
/// # Errors
/// If etcd is not installed, or is not healthy within [`START_LIMIT`](crate::process::START_LIMIT);
/// the text quotes its log.
pub fn start(storage: Storage, pin: Pin) -> Result<Running, Error> {
    let folder = storage.folder("etcd")?;
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
    let client = format!("http://{addr}");
    let peer = format!("http://127.0.0.1:{}", other_port(addr.port())?);
    let mut command = pin.server(program("etcd")?);
    command
        .args(["--name", "bench", "--data-dir"])
        .arg(folder.path().join("data"))
        .args(["--listen-client-urls", &client])
        .args(["--advertise-client-urls", &client])
        .args(["--listen-peer-urls", &peer])
        .args(["--initial-advertise-peer-urls", &peer])
        .args(["--initial-cluster", &format!("bench={peer}")])
        .args(["--logger", "zap", "--log-outputs", "stderr"]);
    if storage == Storage::Memory {
        command.arg("--unsafe-no-fsync");
    }
    Running::start(folder, command, addr, || {
        let reply = get(addr, "/health").unwrap_or_default();
        if !reply.contains(r#""health":"true""#) {
            return Ok(None);
        }
        version(&get(addr, "/version")?).map(Some)
    })
}

/// Returns a free port other than this one, on which no server listens yet.
fn other_port(taken: u16) -> Result<u16, Error> {
    for _ in 0..16 {
        let port = free_port()?;
        if port != taken {
            return Ok(port);
        }
    }
    Err(Error::Setup("the system has no two free ports".into()))
}

/// Returns the whole reply to a request for this path.
fn get(addr: SocketAddr, path: &str) -> Result<String, Error> {
    let what = || format!("cannot ask etcd at {addr} for {path}");
    let mut stream = TcpStream::connect_timeout(&addr, ASK_LIMIT).context(what)?;
    stream.set_read_timeout(Some(ASK_LIMIT)).context(what)?;
    // With HTTP 1.0 the reply ends with the connection.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {addr}\r\n\r\n");
    stream.write_all(request.as_bytes()).context(what)?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).context(what)?;
    Ok(reply)
}

fn version(reply: &str) -> Result<String, Error> {
    let body = reply.split("\r\n\r\n").nth(1).unwrap_or_default();
    serde_json::from_str::<serde_json::Value>(body)
        .ok()
        .and_then(|json| json["etcdserver"].as_str().map(str::to_owned))
        .ok_or_else(|| Error::Unexpected(format!("etcd does not report its version: {reply:?}")))
}
