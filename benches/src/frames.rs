//! Requests encoded in advance, and the sources that deal them out.
//!
//! A generator that shares two cores with the server must be cheap: requests are encoded before the
//! run, and sending one copies the frame and writes the xid into it.

use bytes::Bytes;
use minikeeper_protocol::{
    AclList, Create, CreateMode, CreateOp, ReplyHeader, Request, Stat, Ustring, Xid, frame,
};

/// The operations of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// getData.
    Get,
    /// setData with any version.
    Set,
    /// exists.
    Exists,
    /// getChildren of the parent of new znodes.
    Children,
    /// create, answered with the path.
    Create,
    /// create2, answered with path and stat.
    Create2,
    /// delete with any version.
    Delete,
    /// ping.
    Ping,
    /// A frame of the reply's size that any echo sends back, without a handshake.
    Raw,
    /// A new session over a new connection.
    Connect,
}

impl Kind {
    /// Every kind, in the order of the variants.
    pub const ALL: &'static [Self] = &[
        Self::Get,
        Self::Set,
        Self::Exists,
        Self::Children,
        Self::Create,
        Self::Create2,
        Self::Delete,
        Self::Ping,
        Self::Raw,
        Self::Connect,
    ];

    /// Returns the name in `--mix`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Set => "set",
            Self::Exists => "exists",
            Self::Children => "children",
            Self::Create => "create",
            Self::Create2 => "create2",
            Self::Delete => "delete",
            Self::Ping => "ping",
            Self::Raw => "raw",
            Self::Connect => "connect",
        }
    }

    /// Returns the kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// Deals out the requests of a run.
pub trait Source {
    /// Appends the next request of a connection; returns `None` if none is left.
    fn next(&mut self, connection: usize, xid: Xid, out: &mut Vec<u8>) -> Option<Kind>;
}

impl<F: FnMut(usize, Xid, &mut Vec<u8>) -> Option<Kind>> Source for F {
    fn next(&mut self, connection: usize, xid: Xid, out: &mut Vec<u8>) -> Option<Kind> {
        self(connection, xid, out)
    }
}

/// Frames of one kind, encoded once, addressed by number.
#[derive(Clone, Debug)]
pub struct Deck {
    kind: Kind,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Deck {
    /// Encodes these requests.
    #[must_use]
    pub fn new(kind: Kind, requests: impl Iterator<Item = Request>) -> Self {
        let mut deck = Self {
            kind,
            bytes: Vec::new(),
            ends: Vec::new(),
        };
        for request in requests {
            request.encode(Xid(0), &mut deck.bytes);
            deck.ends.push(deck.bytes.len());
        }
        deck
    }

    /// Returns one frame that is not a request but reads as a reply when sent back: the length, the
    /// xid, zeros. `frame_bytes` includes the prefix.
    #[must_use]
    pub fn raw(frame_bytes: usize) -> Self {
        let mut bytes = Vec::new();
        frame::put(&mut bytes, |out| {
            let message_bytes = frame_bytes.max(20) - frame::PREFIX_BYTES;
            out.resize(out.len() + message_bytes, 0);
        });
        let ends = vec![bytes.len()];
        Self {
            kind: Kind::Raw,
            bytes,
            ends,
        }
    }

    /// Returns the number of frames.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there is no frame.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the operation of the frames.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Appends frame `at` with this xid.
    ///
    /// # Panics
    /// If there is no frame with this number.
    pub fn deal(&self, at: usize, xid: Xid, out: &mut Vec<u8>) -> Kind {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        put_frame(&self.bytes[start..self.ends[at]], xid, out);
        self.kind
    }
}

/// Appends a frame that was encoded before, with this xid.
pub fn put_frame(frame: &[u8], xid: Xid, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(frame);
    out[at + 4..at + 8].copy_from_slice(&xid.0.to_be_bytes());
}

/// Deals a deck once: `share` frames to each connection, in order.
#[derive(Debug)]
pub struct Once<'a> {
    deck: &'a Deck,
    share: usize,
    dealt: Vec<usize>,
}

impl<'a> Once<'a> {
    /// Splits the deck among the connections; the last one gets less if it does not divide.
    #[must_use]
    pub fn new(deck: &'a Deck, connections: usize) -> Self {
        Self {
            deck,
            share: deck.len().div_ceil(connections.max(1)),
            dealt: vec![0; connections],
        }
    }
}

impl Source for Once<'_> {
    fn next(&mut self, connection: usize, xid: Xid, out: &mut Vec<u8>) -> Option<Kind> {
        let dealt = &mut self.dealt[connection];
        let at = connection * self.share + *dealt;
        if *dealt == self.share || at >= self.deck.len() {
            return None;
        }
        *dealt += 1;
        Some(self.deck.deal(at, xid, out))
    }
}

/// A source that ends after a number of requests.
#[derive(Debug)]
pub struct Limited<S> {
    /// The source of the requests.
    pub source: S,
    /// The number of requests left.
    pub left: u64,
}

impl<S: Source> Source for Limited<S> {
    fn next(&mut self, connection: usize, xid: Xid, out: &mut Vec<u8>) -> Option<Kind> {
        self.left = self.left.checked_sub(1)?;
        self.source.next(connection, xid, out)
    }
}

/// Returns a request of this kind for this path.
///
/// # Panics
/// For kinds that are not requests to a znode: raw and connect.
#[must_use]
pub fn request(kind: Kind, path: &str, data: &Bytes) -> Request {
    let path: Option<Ustring> = Some(path.into());
    let create = |op, path| {
        Request::Create(Create {
            op,
            path,
            data: Some(data.clone()),
            acl: AclList::world_all(),
            flags: CreateMode::Persistent.flags(),
            ttl_ms: 0,
        })
    };
    match kind {
        Kind::Get => Request::GetData { path, watch: false },
        Kind::Set => Request::SetData {
            path,
            data: Some(data.clone()),
            version: -1,
        },
        Kind::Exists => Request::Exists { path, watch: false },
        Kind::Children => Request::GetChildren { path, watch: false },
        Kind::Create => create(CreateOp::Create, path),
        Kind::Create2 => create(CreateOp::Create2, path),
        Kind::Delete => Request::Delete { path, version: -1 },
        Kind::Ping => Request::Ping,
        Kind::Raw | Kind::Connect => unreachable!("{} is not a request", kind.name()),
    }
}

/// A create whose path ends in a fixed number of digits, which are counted up in place. For fills
/// that are too large to encode in advance.
#[derive(Debug)]
pub struct Counting {
    frame: Vec<u8>,
    digits: std::ops::Range<usize>,
    kind: Kind,
}

impl Counting {
    /// Encodes a request of `kind` for a path of `prefix` and `digits` zeros.
    #[must_use]
    pub fn new(kind: Kind, prefix: &str, digits: usize, data: &Bytes) -> Self {
        let mut frame = Vec::new();
        let path = format!("{prefix}{:0digits$}", 0);
        request(kind, &path, data).encode(Xid(0), &mut frame);
        // The prefix, the xid, the operation and the length of the path take four bytes each.
        let start = 16 + prefix.len();
        Self {
            frame,
            digits: start..start + digits,
            kind,
        }
    }

    /// Sets the watch flag; for kinds whose requests end with it.
    #[must_use]
    pub fn watching(mut self) -> Self {
        let last = self.frame.last_mut().expect("a request is not empty");
        *last = 1;
        self
    }

    /// Appends the request for znode `number`.
    pub fn deal(&mut self, mut number: usize, xid: Xid, out: &mut Vec<u8>) -> Kind {
        for at in self.digits.clone().rev() {
            self.frame[at] = b'0' + u8::try_from(number % 10).expect("one digit");
            number /= 10;
        }
        put_frame(&self.frame, xid, out);
        self.kind
    }
}

/// Returns the size of a getData reply with its prefix, which a raw echo must send to be
/// comparable.
#[must_use]
pub fn get_reply_bytes(data_bytes: usize) -> usize {
    // The length of the data takes four bytes.
    frame::PREFIX_BYTES + ReplyHeader::BYTES + 4 + data_bytes + Stat::BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_frame_has_the_size_asked_for() {
        let mut out = Vec::new();
        Deck::raw(192).deal(0, Xid(7), &mut out);
        assert_eq!(out.len(), 192);
        assert_eq!(frame::next(&out, 1000).unwrap(), Some(4..192));
    }

    #[test]
    fn counting_deals_the_same_frame_as_encoding() {
        let data = Bytes::from_static(b"data");
        let mut counted = Vec::new();
        Counting::new(Kind::Create, "/fill/", 5, &data).deal(1234, Xid(9), &mut counted);
        let mut encoded = Vec::new();
        request(Kind::Create, "/fill/01234", &data).encode(Xid(9), &mut encoded);
        assert_eq!(counted, encoded);
    }

    #[test]
    fn once_deals_every_frame_to_one_connection() {
        let requests = (0..10).map(|n| request(Kind::Get, &format!("/{n}"), &Bytes::new()));
        let deck = Deck::new(Kind::Get, requests);
        let mut once = Once::new(&deck, 4);
        let mut out = Vec::new();
        let mut dealt = vec![0; 4];
        for (connection, count) in dealt.iter_mut().enumerate() {
            while once.next(connection, Xid(1), &mut out).is_some() {
                *count += 1;
            }
        }
        assert_eq!(dealt, [3, 3, 3, 1]);
    }
}
