//! The do-nothing server: decodes every frame and replies with a constant.
//!
//! It is the upper limit of minikeeper's rate and the lower limit of the cost of a request: the
//! same runtime (tokio, one thread, one task per connection), the same decoding, one read and one
//! write per batch, but no state, no lock and no allocation per request. With `--raw` it sends back
//! all input: the bare round trip.

use std::{net::Ipv4Addr, sync::atomic::AtomicI64, sync::atomic::Ordering};

use bytes::{Bytes, BytesMut};
use minikeeper_benches::{Error, IoContext as _, embedded::send_back, mix, table::say};
use minikeeper_protocol::{
    ConnectRequest, ConnectResponse, OpCode, Reader, ReplyHeader, ReplyRef, Request, RequestHeader,
    SessionId, Stat, Ustring, Xid, Zxid, frame,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// A server that decodes every frame and replies with a constant, as a yardstick.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  echo                          listen on a free port and print it
  echo --port 2181              stand in for a ZooKeeper
  echo --raw                    send back all input, no protocol
  echo --data-bytes 1000        reply to getData with 1,000 bytes")]
pub(crate) struct Args {
    /// Port on 127.0.0.1; 0 chooses a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Send back every byte unchanged.
    #[arg(long)]
    raw: bool,
    /// Bytes of data in every getData reply.
    #[arg(long, default_value_t = 100)]
    data_bytes: usize,
}

pub(crate) fn run(args: &Args) -> Result<bool, Error> {
    crate::runtime()?.block_on(serve(args))
}

async fn serve(args: &Args) -> Result<bool, Error> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port))
        .await
        .context(|| {
            format!(
                "cannot listen on 127.0.0.1:{}; another server may be running, try --port 0",
                args.port
            )
        })?;
    let addr = listener
        .local_addr()
        .context(|| "cannot read the listener's address".into())?;
    say(format!("listening on {addr}\n")).context(|| "cannot print the address".into())?;
    // This lives as long as the program; a plain reference costs a connection nothing.
    let constants: &'static Constants = Box::leak(Box::new(Constants::new(args.data_bytes)));
    loop {
        let (stream, _) = listener
            .accept()
            .await
            .context(|| "cannot accept a connection".into())?;
        if args.raw {
            tokio::spawn(send_back(stream));
        } else {
            // If the connection is already gone, the first read fails.
            let _ = stream.set_nodelay(true);
            tokio::spawn(async move {
                // A connection that fails or sends nonsense is dropped; the others continue.
                let _ = echo_frames(stream, constants).await;
            });
        }
    }
}

/// Serves one connection: read once, handle every whole frame, write once.
async fn echo_frames(mut stream: TcpStream, constants: &Constants) -> Result<(), Error> {
    let mut buffer = shareable(READ_BYTES);
    let mut out = Vec::with_capacity(READ_BYTES);
    let mut greeted = false;
    loop {
        // A frame that is larger than the buffer makes it grow, once.
        if buffer.len() == buffer.capacity() {
            buffer.reserve(buffer.len());
        }
        let read = stream
            .read_buf(&mut buffer)
            .await
            .context(|| "cannot read requests".into())?;
        if read == 0 {
            return Ok(());
        }
        // Freezing a shareable buffer and taking it back allocates and copies nothing.
        let batch = buffer.freeze();
        let used = answer_batch(&batch, constants, &mut greeted, &mut out)?;
        buffer = batch.try_into_mut().map_err(|_| {
            Error::Unexpected("a decoded request outlived the batch it was read with".into())
        })?;
        let rest = buffer.len() - used;
        buffer.copy_within(used.., 0);
        buffer.truncate(rest);
        if !out.is_empty() {
            stream
                .write_all(&out)
                .await
                .context(|| "cannot write replies".into())?;
            out.clear();
        }
    }
}

/// Answers every whole frame; returns how many bytes they take.
fn answer_batch(
    batch: &Bytes,
    constants: &Constants,
    greeted: &mut bool,
    out: &mut Vec<u8>,
) -> Result<usize, Error> {
    let mut used = 0;
    while let Some(body) = frame::next(&batch[used..], frame::BYTES_MAX_DEFAULT)? {
        let (start, end) = (used + body.start, used + body.end);
        let mut reader = Reader::window(batch, start..end);
        if *greeted {
            constants.answer(&mut reader, out)?;
        } else {
            *greeted = true;
            greet(&mut reader, out)?;
        }
        used = end;
    }
    Ok(used)
}

/// Grants a new session to any request.
fn greet(reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    static SESSIONS: AtomicI64 = AtomicI64::new(1);
    let hello = ConnectRequest::decode(reader)?;
    ConnectResponse {
        protocol_version: 0,
        timeout_ms: hello.timeout_ms.max(1),
        session_id: SessionId(SESSIONS.fetch_add(1, Ordering::Relaxed)),
        password: Some(Bytes::from_static(b"0123456789abcdef")),
        read_only: hello.read_only,
    }
    .encode(out);
    Ok(())
}

/// Whole reply frames, encoded once; only the xid differs.
struct Constants {
    empty: Vec<u8>,
    data: Vec<u8>,
    stat: Vec<u8>,
    children: Vec<u8>,
    children2: Vec<u8>,
    znode: Stat,
}

impl Constants {
    fn new(data_bytes: usize) -> Self {
        let znode = Stat {
            data_length: i32::try_from(data_bytes).unwrap_or(i32::MAX),
            ..Stat::default()
        };
        let encoded = |reply: ReplyRef<'_>| {
            let mut frame = Vec::new();
            put(reply, header(Xid(0)), &mut frame);
            frame
        };
        let none = || std::iter::empty::<&[u8]>();
        Self {
            empty: encoded(ReplyRef::Empty),
            data: encoded(ReplyRef::Data(Some(&mix::data(data_bytes)), &znode)),
            stat: encoded(ReplyRef::Stat(&znode)),
            children: encoded(ReplyRef::Children(&mut none(), None)),
            children2: encoded(ReplyRef::Children(&mut none(), Some(&znode))),
            znode,
        }
    }

    fn answer(&self, reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        let RequestHeader { xid, op } = RequestHeader::decode(reader)?;
        let op = OpCode::try_from(op).map_err(|error| Error::Unexpected(error.to_string()))?;
        let request = Request::decode(op, reader)?;
        // The decoded request must be used, or the compiler may skip the decoding.
        let request = std::hint::black_box(request);
        let constant = match &request {
            Request::GetData { .. } => &self.data,
            Request::SetData { .. } | Request::Exists { .. } | Request::SetAcl { .. } => &self.stat,
            Request::GetChildren { .. } => &self.children,
            Request::GetChildren2 { .. } => &self.children2,
            Request::Create(create) => {
                let path = create.path.as_ref().map(Ustring::as_bytes);
                if op == OpCode::Create {
                    put(ReplyRef::Path(path), header(xid), out);
                } else {
                    let path = path.unwrap_or_default();
                    put(ReplyRef::PathStat(path, &self.znode), header(xid), out);
                }
                return Ok(());
            }
            Request::Sync { path } => {
                let path = path.as_ref().map(Ustring::as_bytes);
                put(ReplyRef::Path(path), header(xid), out);
                return Ok(());
            }
            _ => &self.empty,
        };
        let at = out.len();
        out.extend_from_slice(constant);
        out[at + 4..at + 8].copy_from_slice(&xid.0.to_be_bytes());
        Ok(())
    }
}

fn put(reply: ReplyRef<'_>, header: ReplyHeader, out: &mut Vec<u8>) {
    reply
        .encode(header, out, ReplyRef::BYTES_MAX)
        .expect("a reply is about as long as its request");
}

fn header(xid: Xid) -> ReplyHeader {
    ReplyHeader {
        xid,
        zxid: Zxid(1),
        error: None,
    }
}

/// A buffer that already counts its references.
///
/// A new buffer is a plain vector, and each freeze of one allocates the counter again; one split
/// creates the counter, which then stays with the buffer.
fn shareable(capacity: usize) -> BytesMut {
    let mut buffer = BytesMut::with_capacity(capacity);
    drop(buffer.split_off(buffer.capacity()));
    buffer
}

/// The largest read unless a frame is larger, in bytes.
const READ_BYTES: usize = 64 * 1024;
