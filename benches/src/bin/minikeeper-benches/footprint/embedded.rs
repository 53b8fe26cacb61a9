//! The cost of starting a server inside a test.

use minikeeper_benches::{Error, IoContext as _, clock::now_ns, stats::as_f64};
use minikeeper_protocol::{ConnectRequest, Create, CreateMode, Request, Xid};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::row::{Row, Unit};

/// Servers started one after the other for each reading.
const STARTS: u32 = 20;

/// Half a millisecond.
const GOAL_NS: f64 = 500_000.0;

/// Measures from `Server::start` on a running runtime to the reply to a first create, over the
/// in-process connection.
pub(crate) fn start_to_first_operation() -> Result<Row, Error> {
    let runtime = crate::runtime()?;
    let mut hello = Vec::new();
    ConnectRequest::new(10_000).encode(&mut hello);
    let mut create = Vec::new();
    let request = Create::new("/first", b"", CreateMode::Persistent);
    Request::Create(request).encode(Xid(1), &mut create);
    let mut readings = Vec::new();
    for _ in 0..STARTS {
        let elapsed = runtime.block_on(async {
            let start = now_ns();
            let server = minikeeper::Server::builder()
                .start()
                .await
                .map_err(|error| Error::Setup(format!("cannot start a server: {error}")))?;
            let mut connection = server.local();
            let mut reply = [0; 256];
            for frame in [&hello, &create] {
                let lost = || "cannot use the in-process connection".into();
                connection.write_all(frame).await.context(lost)?;
                connection.read(&mut reply).await.context(lost)?;
            }
            let elapsed = now_ns() - start;
            server
                .shutdown()
                .await
                .map_err(|error| Error::Setup(format!("cannot stop a server: {error}")))?;
            Ok::<_, Error>(elapsed)
        })?;
        readings.push(as_f64(elapsed));
    }
    let note = "in one process: start, handshake, create, on a running runtime";
    Ok(Row::new("embedded", readings, Unit::Time, GOAL_NS).with_note(note))
}
