//! The normal form of frames, for comparison.
//!
//! Everything stays as it is on the wire, except for what the protocol leaves open: session ids
//! become numbers in order of appearance, passwords become a fixed text, ephemerals and identities
//! are sorted, and the zxids of changes in unspecified order become one. Frames are decoded here
//! field by field, so that a bug of minikeeper's own codec shows.

use bytes::Bytes;
use minikeeper_protocol::{DecodeError, OpCode, Reader, jute};

use super::version::Version;

/// What two servers that are compared leave out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KnownDifferences {
    /// Event headers carry no zxid.
    pub events_without_zxid: bool,
    /// A create2 inside a multi is answered as a create.
    pub create2_in_multi_is_create: bool,
    /// The servers have different clocks.
    pub without_times: bool,
    /// The servers list children in different orders, of which none is promised.
    pub sorts_names: bool,
}

impl KnownDifferences {
    /// Returns what a ZooKeeper of this version leaves out. Source: `docs/zookeeper-protocol.md` section 12.5.
    #[must_use]
    pub fn of_version(version: Version) -> Self {
        Self {
            events_without_zxid: version < Version::new(3, 9, 0),
            create2_in_multi_is_create: version < Version::new(3, 8, 2),
            ..Self::default()
        }
    }

    /// Says in a sentence what is not compared; empty for a server that leaves nothing out.
    #[must_use]
    pub const fn description(&self) -> &'static str {
        match (self.events_without_zxid, self.create2_in_multi_is_create) {
            (false, false) => "",
            (true, false) => "the zxids of events are not compared, which it does not send",
            (false, true) => {
                "stats in replies to create2 in a multi are not compared, which it does not send"
            }
            (true, true) => {
                "the zxids of events and the stats in replies to create2 in a multi are not compared, which it does not send"
            }
        }
    }
}

/// The session ids and zxids of one server that need a normal form.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Session ids in order of appearance.
    sessions: Vec<i64>,
    /// Zxids above the first number and up to the second one are replaced by the second.
    ranges: Vec<(i64, i64)>,
    /// Zxids above 0 are replaced by ones that are this much lower.
    pub ahead: i64,
}

impl Names {
    /// Treats the zxids above `low` and up to `high` as one.
    pub fn join_zxids(&mut self, low: i64, high: i64) {
        if high > low + 1 {
            self.ranges.push((low, high));
        }
    }

    /// Whether the protocol leaves open which changes precede this zxid.
    #[must_use]
    pub fn is_open(&self, zxid: i64) -> bool {
        let mut ranges = self.ranges.iter();
        ranges.any(|(low, high)| *low < zxid && zxid < *high)
    }

    fn zxid(&self, zxid: i64) -> i64 {
        let zxid = if zxid > 0 { zxid - self.ahead } else { zxid };
        let range = self
            .ranges
            .iter()
            .find(|(low, high)| *low < zxid && zxid <= *high);
        range.map_or(zxid, |(_, high)| *high)
    }

    /// Returns the number of a session; ids that no handshake returned stay as they are.
    fn session(&self, id: i64) -> i64 {
        let place = self.sessions.iter().position(|known| *known == id);
        place.map_or(id, |place| {
            1 + i64::try_from(place).expect("sessions are few")
        })
    }

    fn new_session(&mut self, id: i64) {
        if id != 0 && !self.sessions.contains(&id) {
            self.sessions.push(id);
        }
    }
}

/// Normalises the response to a handshake.
#[must_use]
pub fn handshake(message: &Bytes, names: &mut Names) -> Vec<u8> {
    let mut canonical = |out: &mut Vec<u8>| {
        let mut reader = Reader::new(message);
        jute::put_int(out, reader.int()?);
        jute::put_int(out, reader.int()?);
        let id = reader.long()?;
        names.new_session(id);
        jute::put_long(out, names.session(id));
        match reader.buffer()? {
            // Passwords differ between servers; all zeros means a refusal.
            Some(password) if password.len() == 16 && password.iter().any(|byte| *byte != 0) => {
                jute::put_buffer(out, Some(b"secret"));
            }
            password => jute::put_buffer(out, password.as_deref()),
        }
        rest(message, &reader, out);
        Ok(())
    };
    let mut out = Vec::new();
    finish(canonical(&mut out), message, out)
}

/// Normalises a reply to this operation, or an event.
#[must_use]
pub fn frame(
    message: &Bytes,
    op: Option<OpCode>,
    names: &Names,
    known: &KnownDifferences,
) -> Vec<u8> {
    let mut walk = Walk {
        reader: Reader::new(message),
        out: Vec::new(),
        names,
        known,
    };
    let outcome = walk.frame(op);
    rest(message, &walk.reader, &mut walk.out);
    finish(outcome, message, walk.out)
}

fn rest(message: &Bytes, reader: &Reader<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&message[message.len() - reader.remaining()..]);
}

/// Returns the normal form, or the whole message if it is malformed.
fn finish(outcome: Result<(), DecodeError>, message: &Bytes, out: Vec<u8>) -> Vec<u8> {
    match outcome {
        Ok(()) => out,
        Err(_) => [b"malformed ", &message[..]].concat(),
    }
}

struct Walk<'a> {
    reader: Reader<'a>,
    out: Vec<u8>,
    names: &'a Names,
    known: &'a KnownDifferences,
}

type Walked = Result<(), DecodeError>;

impl Walk<'_> {
    fn frame(&mut self, op: Option<OpCode>) -> Walked {
        let xid = self.int()?;
        if xid == -1 {
            let zxid = self.reader.long()?;
            let zxid = self.names.zxid(zxid);
            let masked = self.known.events_without_zxid;
            jute::put_long(&mut self.out, if masked { -1 } else { zxid });
            return Ok(());
        }
        self.zxid()?;
        let error = self.int()?;
        match op {
            Some(OpCode::MultiRead) if error != 0 && self.reader.remaining() > 0 => self.results(),
            Some(op) if error == 0 => self.body(op),
            _ => Ok(()),
        }
    }

    fn body(&mut self, op: OpCode) -> Walked {
        match op {
            OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl => {
                self.buffer()?;
                self.stat()
            }
            OpCode::Exists | OpCode::SetData | OpCode::SetAcl => self.stat(),
            OpCode::GetData => {
                self.buffer()?;
                self.stat()
            }
            OpCode::GetAcl => {
                self.acl()?;
                self.stat()
            }
            OpCode::GetChildren => self.buffers(),
            OpCode::GetChildren2 => {
                self.buffers()?;
                self.stat()
            }
            OpCode::GetEphemerals => self.sorted(1),
            OpCode::WhoAmI => self.sorted(2),
            OpCode::Multi | OpCode::MultiRead => self.results(),
            _ => Ok(()),
        }
    }

    fn results(&mut self) -> Walked {
        loop {
            let op = self.reader.int()?;
            let is_end = self.reader.bool()?;
            let plain = self.known.create2_in_multi_is_create && op == OpCode::Create2.code();
            jute::put_int(
                &mut self.out,
                if plain { OpCode::Create.code() } else { op },
            );
            jute::put_bool(&mut self.out, is_end);
            self.int()?;
            if is_end {
                return Ok(());
            }
            match OpCode::from_code(op) {
                None => {
                    self.int()?;
                }
                Some(OpCode::Create) => self.buffer()?,
                Some(OpCode::Create2) => {
                    self.buffer()?;
                    let length = self.out.len();
                    self.stat()?;
                    if plain {
                        self.out.truncate(length);
                    }
                }
                Some(OpCode::SetData) => self.stat()?,
                Some(OpCode::GetData) => {
                    self.buffer()?;
                    self.stat()?;
                }
                Some(OpCode::GetChildren) => self.buffers()?,
                Some(_) => {}
            }
        }
    }

    fn stat(&mut self) -> Walked {
        self.zxid()?;
        self.zxid()?;
        for _ in 0..2 {
            let time = self.reader.long()?;
            let is_kept = !self.known.without_times;
            jute::put_long(&mut self.out, if is_kept { time } else { 0 });
        }
        for _ in 0..3 {
            self.int()?;
        }
        let owner = self.reader.long()?;
        jute::put_long(&mut self.out, self.names.session(owner));
        self.int()?;
        self.int()?;
        self.zxid()
    }

    /// An access list in its order, with runs of digest identities sorted: those that replace `auth`
    /// come in any order.
    fn acl(&mut self) -> Walked {
        let count = self.int()?;
        let mut entries = Vec::new();
        for _ in 0..count {
            let perms = self.reader.int()?;
            let (scheme, id) = (self.reader.buffer()?, self.reader.buffer()?);
            entries.push((perms, scheme, id));
        }
        let is_identity = |scheme: &Option<Bytes>| scheme.as_deref() == Some(b"digest");
        for run in entries.chunk_by_mut(|a, b| a.0 == b.0 && is_identity(&a.1) && is_identity(&b.1))
        {
            run.sort();
        }
        for (perms, scheme, id) in entries {
            jute::put_int(&mut self.out, perms);
            jute::put_buffer(&mut self.out, scheme.as_deref());
            jute::put_buffer(&mut self.out, id.as_deref());
        }
        Ok(())
    }

    /// A list of strings in their order, unless that may differ.
    fn buffers(&mut self) -> Walked {
        if self.known.sorts_names {
            return self.sorted(1);
        }
        for _ in 0..self.int()? {
            self.buffer()?;
        }
        Ok(())
    }

    /// A list of items of N strings each, sorted.
    fn sorted(&mut self, strings: usize) -> Walked {
        let count = self.int()?;
        let mut items = Vec::new();
        for _ in 0..count {
            let mut item = Vec::new();
            for _ in 0..strings {
                jute::put_buffer(&mut item, self.reader.buffer()?.as_deref());
            }
            items.push(item);
        }
        items.sort();
        self.out.extend(items.concat());
        Ok(())
    }

    fn int(&mut self) -> Result<i32, DecodeError> {
        let value = self.reader.int()?;
        jute::put_int(&mut self.out, value);
        Ok(value)
    }

    fn zxid(&mut self) -> Walked {
        let zxid = self.reader.long()?;
        jute::put_long(&mut self.out, self.names.zxid(zxid));
        Ok(())
    }

    fn buffer(&mut self) -> Walked {
        let value = self.reader.buffer()?;
        jute::put_buffer(&mut self.out, value.as_deref());
        Ok(())
    }
}
