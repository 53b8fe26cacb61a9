//! Sockets without a client: the floor.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use minikeeper_benches::{Error, IoContext as _};
use minikeeper_protocol::{
    AclList, ConnectRequest, Create, CreateMode, CreateOp, ReplyHeader, Request, Ustring, Xid,
    frame,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    hand_over::Hold,
    measure::{DEPTH, Measure, Part, Timer},
};

/// The size of a reply to `exists`, including its length.
const REPLY_BYTES: usize = 4 + 16 + 68;

/// A connection, and the frames that it sends repeatedly.
pub(crate) struct Bare {
    stream: TcpStream,
    frames: Vec<u8>,
}

impl Bare {
    /// Connects to a server that sends back all input.
    pub(crate) async fn echo(addr: SocketAddr) -> Result<Self, Error> {
        Ok(Self {
            stream: connect(addr).await?,
            frames: frames(1),
        })
    }

    /// Connects to a ZooKeeper server, and makes the handshake.
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

    /// Sends one request after the other.
    pub(crate) async fn one_by_one(&mut self, count: u32) -> Result<Measure, Error> {
        self.apart(count, Duration::ZERO).await
    }

    /// Sends requests with a pause before each, after which caches and cores are cold.
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

    /// Sends many requests at a time. The measured time is one request's share.
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

/// The bare requests of a lock: the limit for any client.
pub(crate) struct BareLock {
    stream: TcpStream,
    entering: Vec<u8>,
    reply: Vec<u8>,
}

impl BareLock {
    pub(crate) async fn new(addr: SocketAddr) -> Result<Self, Error> {
        let mut bare = Bare::session(addr, 1).await?;
        let directory = "/bench-bare";
        let mut entering = Vec::new();
        create(directory, CreateMode::Persistent).encode(Xid(1), &mut entering);
        let mut reply = vec![0; 4096];
        bare.stream
            .write_all(&entering)
            .await
            .context(write_failed)?;
        let _ = bare.stream.read(&mut reply).await.context(read_failed)?;
        entering.clear();
        let name = format!("{directory}/_c_00000000-0000-0000-0000-000000000000-lock-");
        create(&name, CreateMode::EphemeralSequential).encode(Xid(2), &mut entering);
        let list = Request::GetChildren {
            path: Some(directory.into()),
            watch: false,
        };
        list.encode(Xid(3), &mut entering);
        Ok(Self {
            stream: bare.stream,
            entering,
            reply,
        })
    }

    /// Creates and lists, then deletes. Times both steps, or only the first.
    pub(crate) async fn cycle(&mut self, part: Part, count: u32) -> Result<Measure, Error> {
        let mut timer = Timer::start(count)?;
        let mut delete = Vec::new();
        for _ in 0..count {
            timer.begin();
            self.ask(None, 2).await?;
            if matches!(part, Part::Acquire) {
                timer.end();
            }
            let request = Request::Delete {
                path: Some(self.created()),
                version: -1,
            };
            delete.clear();
            request.encode(Xid(4), &mut delete);
            self.ask(Some(&delete), 1).await?;
            if matches!(part, Part::Cycle) {
                timer.end();
            }
        }
        timer.measure()
    }

    /// Returns the path in the reply to the create.
    fn created(&self) -> Ustring {
        // It follows the length, the header and the path's own length.
        let path_at = 4 + ReplyHeader::BYTES + 4;
        let length = self.reply[path_at - 1];
        let path = &self.reply[path_at..path_at + usize::from(length)];
        Ustring::from(Bytes::copy_from_slice(path))
    }

    /// Writes the frames, and reads N replies.
    async fn ask(&mut self, frames: Option<&[u8]>, replies: u32) -> Result<(), Error> {
        let frames = frames.unwrap_or(&self.entering);
        self.stream.write_all(frames).await.context(write_failed)?;
        let mut have = 0;
        loop {
            let read = self.stream.read(&mut self.reply[have..]).await;
            have += read.context(read_failed)?;
            let (mut at, mut whole) = (0, 0);
            while let Ok(Some(body)) = frame::next(&self.reply[at..have], frame::BYTES_MAX_DEFAULT)
            {
                (at, whole) = (at + body.end, whole + 1);
            }
            if whole == replies {
                return Ok(());
            }
        }
    }
}

/// One connection deletes a znode that the other watches: the limit for any hand-over.
pub(crate) struct BareHandOver {
    holder: BareLock,
    /// Watches the holder's znode.
    next: TcpStream,
    hold: Hold,
}

impl BareHandOver {
    pub(crate) async fn new(addr: SocketAddr, hold: Hold) -> Result<Self, Error> {
        Ok(Self {
            holder: BareLock::new(addr).await?,
            next: Bare::session(addr, 1).await?.stream,
            hold,
        })
    }

    /// Measures from sending the deletion to reading the event.
    pub(crate) async fn block(&mut self, count: u32) -> Result<Measure, Error> {
        let mut timer = Timer::start(count)?;
        let (mut frames, mut event) = (Vec::new(), [0; 4096]);
        for _ in 0..count {
            self.holder.ask(None, 2).await?;
            let path = Some(self.holder.created());
            frames.clear();
            let watch = Request::GetData {
                path: path.clone(),
                watch: true,
            };
            watch.encode(Xid(1), &mut frames);
            self.next.write_all(&frames).await.context(write_failed)?;
            let _ = self.next.read(&mut event).await.context(read_failed)?;
            frames.clear();
            Request::Delete { path, version: -1 }.encode(Xid(4), &mut frames);
            self.hold.pass().await;
            timer.begin();
            let stream = &mut self.holder.stream;
            stream.write_all(&frames).await.context(write_failed)?;
            let read = self.next.read(&mut event).await.context(read_failed)?;
            timer.end();
            assert!(read > 0, "the server has closed the connection");
            let reply = self.holder.stream.read(&mut event).await;
            reply.context(read_failed)?;
        }
        timer.measure()
    }
}

fn create(path: &str, mode: CreateMode) -> Request {
    Request::Create(Create {
        op: CreateOp::Create2,
        path: Some(path.into()),
        data: Some(Bytes::new()),
        acl: AclList::world_all(),
        flags: mode.flags(),
        ttl_ms: 0,
    })
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
