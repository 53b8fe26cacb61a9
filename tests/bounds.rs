//! The memory that one request can cost.
//!
//! No request that `frame_bytes_max` admits makes the server allocate more than [`allowed`], even
//! on a tree that makes requests expensive: large znodes, many children, many ephemerals, long
//! paths, many watches. The thread that writes to an in-process connection also serves it, so the
//! counting allocator sees every allocation of a request.
//!
//! To cover another operation, or another way to make one expensive, add it to [`requests`] or
//! [`scene`].

#![allow(
    clippy::unwrap_used,
    reason = "everything here is test code, helpers included"
)]
#![allow(
    clippy::print_stdout,
    reason = "seeds and figures, shown when a test fails or runs with --nocapture"
)]

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
};

use minikeeper::{LocalStream, Server};
use minikeeper_protocol::{
    AclList, ConnectRequest, Create, CreateMode, CreateOp, ErrorCode, MultiOp, MultiReadOp, Reader,
    ReplyHeader, Request, WatcherType, Xid, Zxid, frame,
};
use minikeeper_test_kit::{random::Random, wire};
use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _, ReadBuf};

/// Small enough that requests often exceed it, and large enough for the reply to any change.
const REPLY_BYTES_MAX: usize = 8 << 20;

/// The limit of a request in bytes.
const FRAME_BYTES_MAX: usize = frame::BYTES_MAX_DEFAULT;

/// Returns the limit in bytes of what a request may have allocated at any time.
///
/// The server builds a reply in one vector that doubles, and an in-process connection copies it
/// into another; the text of a four-letter word is built from rows of the same total size. The
/// decoded request, its changes and its undo log are in proportion to the length of the request:
/// the worst case is a multi of operations of 18 bytes each.
fn allowed(request_bytes: usize) -> u64 {
    let bytes = 5 * REPLY_BYTES_MAX + 64 * request_bytes + (1 << 20);
    u64::try_from(bytes).unwrap()
}

struct Scene {
    server: Server,
    runtime: tokio::runtime::Runtime,
    stream: LocalStream,
}

/// The reply's error, and its length in bytes.
type Answer = (Option<ErrorCode>, usize);

impl Scene {
    /// Writes all bytes, and reads until `until` returns true or the connection ends.
    fn exchange(&mut self, bytes: &[u8], mut until: impl FnMut(&[u8]) -> bool) {
        let _guard = self.runtime.enter();
        let mut cx = Context::from_waker(Waker::noop());
        let mut left = bytes;
        let mut buffer = vec![0; 64 << 10];
        loop {
            if !left.is_empty()
                && let Poll::Ready(written) = Pin::new(&mut self.stream).poll_write(&mut cx, left)
            {
                left = &left[written.expect("the connection is open")..];
                continue;
            }
            let mut into = ReadBuf::new(&mut buffer);
            match Pin::new(&mut self.stream).poll_read(&mut cx, &mut into) {
                Poll::Ready(read) => {
                    read.unwrap();
                    if until(into.filled()) || into.filled().is_empty() {
                        return;
                    }
                }
                Poll::Pending => panic!("the server must answer at once"),
            }
        }
    }

    /// Sends a request, and reads its reply and the events before it without keeping them.
    fn ask(&mut self, request: &[u8]) -> Answer {
        let mut frames = Frames::default();
        self.exchange(request, |bytes| frames.take(bytes));
        let (header, length) = frames.reply.expect("a reply");
        (header.error, length)
    }

    fn must(&mut self, request: &Request) {
        let (error, _) = self.ask(&encoded(request));
        assert_eq!(error, None, "{:?}", request.op());
    }

    /// Sends a four-letter word on a new connection. Returns the length of the answer.
    ///
    /// A word about a large state is answered on a thread of its own, whose allocations are not
    /// counted; its text is, once it is sent.
    fn word(&mut self, word: &[u8; 4]) -> usize {
        self.runtime.block_on(async {
            let mut stream = self.server.local();
            stream.write_all(word).await.unwrap();
            let mut buffer = vec![0; 64 << 10];
            let mut length = 0;
            loop {
                match stream.read(&mut buffer).await.unwrap() {
                    0 => return length,
                    read => length += read,
                }
            }
        })
    }
}

/// Parses received frames without keeping them.
#[derive(Default)]
struct Frames {
    /// The head of the current frame, as far as it is received.
    head: Vec<u8>,
    /// The number of bytes missing in the current frame, once its head is complete.
    missing: usize,
    /// The header of the reply, and its length.
    reply: Option<(ReplyHeader, usize)>,
}

impl Frames {
    const HEAD_BYTES: usize = frame::PREFIX_BYTES + ReplyHeader::BYTES;

    /// Takes received bytes. Returns whether the reply is complete.
    fn take(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let skipped = self.missing.min(bytes.len());
            self.missing -= skipped;
            bytes = &bytes[skipped..];
            let wanted = (Self::HEAD_BYTES - self.head.len()).min(bytes.len());
            if self.missing > 0 || wanted == 0 {
                break;
            }
            self.head.extend_from_slice(&bytes[..wanted]);
            bytes = &bytes[wanted..];
            if self.head.len() == Self::HEAD_BYTES {
                let head = bytes::Bytes::from(std::mem::take(&mut self.head));
                let mut reader = Reader::new(&head);
                let length = usize::try_from(reader.int().unwrap()).unwrap();
                let header = ReplyHeader::decode(&mut reader).unwrap();
                self.missing = length - ReplyHeader::BYTES;
                if header.xid != Xid::EVENT {
                    self.reply = Some((header, length));
                }
            }
        }
        self.reply.is_some() && self.missing == 0 && self.head.is_empty()
    }
}

fn encoded(request: &Request) -> Vec<u8> {
    let mut out = Vec::new();
    request.encode(Xid(1), &mut out);
    out
}

/// Returns a path whose name is `name` and this number of further bytes.
fn long_path(name: &str, bytes: usize) -> String {
    format!("/{name}{}", "x".repeat(bytes))
}

fn create(path: impl Into<String>, data: &[u8], mode: CreateMode) -> Create {
    Create {
        op: CreateOp::Create,
        path: Some(path.into().into()),
        data: Some(data.to_vec().into()),
        acl: AclList::world_all(),
        flags: mode.flags(),
        ttl_ms: 0,
    }
}

const BIG: [&str; 3] = ["/big0", "/big1", "/big2"];
const CHILDREN: usize = 50_000;
const EPHEMERALS: usize = 6_000;

/// Starts a server with a tree that makes requests expensive.
fn scene() -> Scene {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let server = runtime
        .block_on(
            Server::builder()
                .manual_clock()
                .configure(configure)
                .start(),
        )
        .unwrap();
    let stream = server.local();
    let mut scene = Scene {
        server,
        runtime,
        stream,
    };
    let mut hello = Vec::new();
    ConnectRequest::new(30_000).encode(&mut hello);
    let mut received = 0;
    scene.exchange(&hello, |bytes| {
        received += bytes.len();
        received >= 41
    });
    for path in BIG {
        scene.must(&Request::Create(create(
            path,
            &[7; 1_000_000],
            CreateMode::Persistent,
        )));
    }
    scene.must(&Request::Create(create(
        "/kids",
        b"",
        CreateMode::Persistent,
    )));
    for chunk in 0..CHILDREN / 10_000 {
        let ops = (0..10_000).map(|number| {
            let path = format!("/kids/child-{:07}", chunk * 10_000 + number);
            MultiOp::Create(create(path, b"", CreateMode::Persistent))
        });
        scene.must(&Request::Multi(ops.collect()));
    }
    let ops = (0..EPHEMERALS)
        .map(|number| MultiOp::Create(create(format!("/e{number}"), b"", CreateMode::Ephemeral)));
    scene.must(&Request::Multi(ops.collect()));
    // Ephemerals and watches with paths of 10 MB in total, more than `REPLY_BYTES_MAX`.
    for number in 0..20 {
        let path = long_path(&format!("long{number}-"), 500_000);
        scene.must(&Request::Create(create(&path, b"", CreateMode::Ephemeral)));
        scene.must(&wire::get(&path, true));
        scene.must(&wire::watch(&format!("{path}/below")));
    }
    for number in 0..EPHEMERALS {
        scene.must(&wire::get(&format!("/e{number}"), true));
    }
    // 20 children with names of 500 KB each.
    scene.must(&Request::Create(create(
        "/names",
        b"",
        CreateMode::Persistent,
    )));
    for number in 0..20 {
        let path = format!("/names{}", long_path(&format!("{number}-"), 500_000));
        scene.must(&Request::Create(create(&path, b"", CreateMode::Persistent)));
    }
    scene
}

fn configure(config: &mut minikeeper::Config) {
    config.reply_bytes_max = Some(REPLY_BYTES_MAX);
}

/// Returns random picks of these operations: a few, any number, or as many as fit in a frame.
fn repeated<T: Clone>(random: &mut Random, ops: &[T], bytes_each: usize) -> Vec<T> {
    let most = (FRAME_BYTES_MAX - 64) / bytes_each;
    let count = match random.below(3) {
        0 => 1 + random.below(20),
        1 => 1 + random.below(most),
        _ => most,
    };
    (0..count)
        .map(|_| ops[random.below(ops.len())].clone())
        .collect()
}

/// Returns requests of every operation, each expensive in one way.
fn requests(random: &mut Random) -> Vec<Request> {
    let path = |path: &str| Some(path.into());
    let any_path =
        |random: &mut Random| random.pick(&["/", "/kids", "/names", "/big0", "/missing", "/e1"]);
    let get = |name: &str| MultiReadOp::GetData {
        path: path(name),
        watch: false,
    };
    let list = |name: &str| MultiReadOp::GetChildren {
        path: path(name),
        watch: false,
    };
    let set = |data: &[u8]| MultiOp::SetData {
        path: path("/e1"),
        data: Some(data.to_vec().into()),
        version: -1,
    };
    let check = |version| MultiOp::Check {
        path: path("/"),
        version,
    };
    let sequential = create("/seq-", b"", CreateMode::PersistentSequential);
    let sequential2 = Create {
        op: CreateOp::Create2,
        ..sequential.clone()
    };
    let remove = MultiOp::Delete {
        path: path("/missing"),
        version: -1,
    };
    let watched: Vec<minikeeper_protocol::Ustring> =
        ["/a", "/b", "/kids", "/e1"].map(Into::into).to_vec();
    let where_to = any_path(random);
    vec![
        Request::MultiRead(repeated(random, &BIG.map(get), 19)),
        Request::MultiRead(repeated(
            random,
            &[list("/kids"), list("/names"), get("/missing")],
            22,
        )),
        Request::MultiRead(repeated(
            random,
            &[list("/names"), get("/e1"), list("/e1")],
            20,
        )),
        Request::Multi(repeated(random, &[set(b""), set(b"x")], 26)),
        Request::Multi(repeated(random, &[check(-1)], 18)),
        Request::Multi(repeated(random, &[remove, check(-1)], 26)),
        Request::Multi(repeated(
            random,
            &[MultiOp::Create(sequential), MultiOp::Create(sequential2)],
            70,
        )),
        Request::MultiReadOfChanges(repeated(random, &[check(-1)], 18)),
        wire::get(where_to, random.below(2) == 0),
        wire::exists(where_to, random.below(2) == 0),
        wire::children(where_to, random.below(2) == 0),
        Request::GetChildren2 {
            path: path(where_to),
            watch: random.below(2) == 0,
        },
        Request::GetAllChildrenNumber {
            path: path(where_to),
        },
        Request::GetEphemerals { prefix: path("/") },
        Request::GetEphemerals {
            prefix: path("/long"),
        },
        Request::GetAcl {
            path: path(where_to),
        },
        Request::SetAcl {
            path: path("/e2"),
            acl: AclList::world_all(),
            version: -1,
        },
        Request::Sync {
            path: path(&long_path("sync", random.below(1_000_000))),
        },
        // Each invalid byte is echoed as three bytes.
        Request::Sync {
            path: Some(bytes::Bytes::from(vec![0xff; 1_000_000]).into()),
        },
        wire::set("/e1", &vec![1; random.below(1_000_000)]),
        Request::Create(create(
            long_path("made", random.below(900_000)),
            b"",
            CreateMode::EphemeralSequential,
        )),
        wire::delete("/kids"),
        Request::SetWatches {
            relative_zxid: Zxid(1 << 60),
            data: repeated(random, &watched, 9),
            exist: Vec::new(),
            child: Vec::new(),
        },
        Request::CheckWatches {
            path: path("/kids"),
            kind: WatcherType::Any.code(),
        },
        Request::RemoveWatches {
            path: path(where_to),
            kind: WatcherType::Any.code(),
        },
        Request::AddWatch {
            path: path(&long_path("watch", random.below(900_000))),
            mode: random.pick(&[0, 1]),
        },
        Request::WhoAmI,
        Request::Ping,
    ]
}

/// Returns and prints the seed; `MINIKEEPER_SEED` repeats a run.
fn seed() -> u64 {
    let seed = minikeeper_test_kit::random::seed_or(1);
    println!("MINIKEEPER_SEED={seed}");
    seed
}

impl Scene {
    /// Sends a request, and checks its allocations and the length of the reply.
    fn measure(&mut self, request: &Request) -> Option<ErrorCode> {
        let bytes = encoded(request);
        let mut answer = (None, 0);
        let cost = allocation_counter::measure(|| answer = self.ask(&bytes));
        let (error, length) = answer;
        let (name, allowed) = (request.op().name(), allowed(bytes.len()));
        assert!(
            cost.bytes_max <= allowed,
            "{name} of {} bytes allocates {} bytes at a time; {allowed} are allowed; \
             answered {error:?} with {length} bytes",
            bytes.len(),
            cost.bytes_max,
        );
        assert!(
            length <= REPLY_BYTES_MAX,
            "{name}: a reply of {length} bytes"
        );
        error
    }

    fn measure_word(&mut self, word: &[u8; 4]) {
        let mut length = 0;
        let cost = allocation_counter::measure(|| length = self.word(word));
        let (name, allowed) = (String::from_utf8_lossy(word), allowed(word.len()));
        assert!(
            cost.bytes_max <= allowed,
            "{name} allocates {} bytes at a time; {allowed} are allowed; answered with {length} bytes",
            cost.bytes_max,
        );
        assert!(
            length <= REPLY_BYTES_MAX,
            "{name}: an answer of {length} bytes"
        );
        assert!(length > 0 || word == b"hash", "{name} is answered");
    }
}

#[test]
fn no_request_allocates_beyond_its_bound() {
    let mut random = Random::new(seed());
    let mut scene = scene();
    let mut refused = 0;
    for _ in 0..2 {
        for request in requests(&mut random) {
            let error = scene.measure(&request);
            refused += usize::from(error == Some(ErrorCode::MarshallingError));
        }
    }
    assert!(refused > 0, "no request exceeded reply_bytes_max");
    for word in [
        b"dump", b"cons", b"stat", b"wchp", b"wchc", b"wchs", b"mntr", b"srvr", b"conf", b"envi",
        b"hash",
    ] {
        scene.measure_word(word);
    }
    scene.server.check().unwrap();
}

/// A session that watches its own ephemerals gets an event for each when it closes. A request of 24
/// bytes made the server write all their paths.
#[test]
fn closing_a_session_allocates_no_more_than_its_bound() {
    let mut scene = scene();
    for number in 0..40 {
        let path = long_path(&format!("own{number}-"), 800_000);
        scene.must(&Request::Create(create(&path, b"", CreateMode::Ephemeral)));
        scene.must(&wire::get(&path, true));
    }
    let bytes = encoded(&Request::CloseSession);
    let cost = allocation_counter::measure(|| scene.exchange(&bytes, |_| false));
    let allowed = allowed(bytes.len());
    assert!(
        cost.bytes_max <= allowed,
        "{} of {allowed} bytes",
        cost.bytes_max
    );
    assert_eq!(scene.server.sessions().len(), 0);
    scene.server.check().unwrap();
}

/// Returns the line with the resident memory of this process, or nothing if the system is not
/// Linux.
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.unwrap_or_default().to_owned()
}

/// The allocator may keep the memory of dropped forks, but none of it is still allocated. Prints
/// the resident memory, for the figures in README.
#[test]
fn dropped_fork_leaves_nothing_allocated() {
    const LEFT_BYTES_MAX: i64 = 64 << 10;
    let scene = scene();
    let fork = |number: usize| {
        let guard = scene.server.fork(&format!("fork{number}")).unwrap();
        assert!(guard.get("/kids").is_some());
        drop(guard);
        // Lets the fork's expiry task end.
        scene.runtime.block_on(async {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        });
    };
    fork(0);
    let cost = allocation_counter::measure(|| (1..=5).for_each(fork));
    assert!(cost.bytes_max > 20 << 20, "a fork copies the tree");
    assert!(
        cost.bytes_current <= LEFT_BYTES_MAX,
        "five dropped forks leave {} bytes",
        cost.bytes_current
    );
    println!("before: {}", resident());
    let forks: Vec<_> = (0..10)
        .map(|number| scene.server.fork(&format!("held{number}")).unwrap())
        .collect();
    println!("ten forks: {}", resident());
    drop(forks);
    fork(6);
    println!("dropped: {}", resident());
}
