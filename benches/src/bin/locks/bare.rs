//! One socket without any client: the floor.

use std::{net::SocketAddr, time::Duration};

use minikeeper_benches::{Error, IoContext as _};
use minikeeper_protocol::{ConnectRequest, Request, Xid};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::measure::{Measure, Timer};

/// How many requests are outstanding where there is more than one.
pub(crate) const DEPTH: u32 = 64;

/// The size of a reply to exists, its length included.
const REPLY_BYTES: usize = 4 + 16 + 68;

/// A connection, and the frame it sends over and over.
pub(crate) struct Bare {
    stream: TcpStream,
    frames: Vec<u8>,
}

impl Bare {
    /// To a server that sends back whatever comes.
    pub(crate) async fn echo(addr: SocketAddr) -> Result<Self, Error> {
        Ok(Self {
            stream: connect(addr).await?,
            frames: frames(1),
        })
    }

    /// To a ZooKeeper server, after the handshake.
    pub(crate) async fn session(addr: SocketAddr, depth: u32) -> Result<Self, Error> {
        let mut stream = connect(addr).await?;
        let mut hello = Vec::new();
        ConnectRequest::new(30_000).encode(&mut hello);
        stream.write_all(&hello).await.context(write_failed)?;
        let mut reply = [0; 256];
        stream.read(&mut reply).await.context(read_failed)?;
        Ok(Self {
            stream,
            frames: frames(depth),
        })
    }

    /// One request after the other.
    pub(crate) async fn one_by_one(&mut self, count: u32) -> Result<Measure, Error> {
        self.apart(count, Duration::ZERO).await
    }

    /// The same with a pause before each: nothing is at hand any more then.
    pub(crate) async fn apart(&mut self, count: u32, pause: Duration) -> Result<Measure, Error> {
        let mut timer = Timer::start(count)?;
        let mut reply = [0; 256];
        for _ in 0..count {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            timer.begin();
            self.stream
                .write_all(&self.frames)
                .await
                .context(write_failed)?;
            let read = self.stream.read(&mut reply).await.context(read_failed)?;
            timer.end();
            assert!(read > 0, "the server has closed the connection");
        }
        timer.measure()
    }

    /// Many at a time. The time is that of one request's share.
    pub(crate) async fn pipelined(&mut self, count: u32) -> Result<Measure, Error> {
        let mut timer = Timer::start(count * DEPTH)?;
        let mut reply = vec![0; DEPTH as usize * 256];
        for _ in 0..count {
            timer.begin();
            self.stream
                .write_all(&self.frames)
                .await
                .context(write_failed)?;
            let mut left = DEPTH as usize * REPLY_BYTES;
            while left > 0 {
                let read = self.stream.read(&mut reply).await.context(read_failed)?;
                assert!(read > 0, "the server has closed the connection");
                left -= read.min(left);
            }
            timer.end_of(u64::from(DEPTH));
        }
        timer.measure()
    }
}

fn frames(count: u32) -> Vec<u8> {
    let mut frames = Vec::new();
    for xid in 1..=count {
        let request = Request::Exists {
            path: Some("/".into()),
            watch: false,
        };
        request.encode(Xid(xid.cast_signed()), &mut frames);
    }
    frames
}

async fn connect(addr: SocketAddr) -> Result<TcpStream, Error> {
    let stream = TcpStream::connect(addr)
        .await
        .context(|| format!("cannot connect to {addr}"))?;
    stream.set_nodelay(true).context(write_failed)?;
    Ok(stream)
}

fn write_failed() -> String {
    "cannot send a request".into()
}

fn read_failed() -> String {
    "cannot read a reply".into()
}
