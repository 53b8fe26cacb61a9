//! The records of a recording, as bytes. Source: `docs/recording.md`, section "The format".

use bytes::Bytes;
use minikeeper_engine::{
    ConnId, Engine, Handover, ImageError, Input, Restoration, SessionImage, Settings, ZnodeImage,
};
use minikeeper_protocol::{
    AclList, ConnectRequest, DecodeError, ErrorCode, OpCode, Reader, Request, RequestHeader,
    SessionId, Xid, Zxid, frame, jute,
};

/// The first bytes of a recording; the last one is the version.
pub(crate) const MAGIC: [u8; 8] = *b"mkrecrd\x01";

/// The kinds of records: causes, then what follows from one, then notes.
pub(crate) mod kind {
    pub(crate) const START: u8 = 1;
    pub(crate) const TIME: u8 = 2;
    pub(crate) const OPEN: u8 = 3;
    pub(crate) const IDENTIFY: u8 = 4;
    pub(crate) const CONNECT: u8 = 5;
    pub(crate) const REQUEST: u8 = 6;
    pub(crate) const UNDECODABLE: u8 = 7;
    pub(crate) const UNKNOWN_OP: u8 = 8;
    pub(crate) const REFUSED: u8 = 9;
    pub(crate) const DISCONNECT: u8 = 10;
    pub(crate) const TICK: u8 = 11;
    pub(crate) const EXPIRE: u8 = 12;
    pub(crate) const ADMINISTER: u8 = 13;
    pub(crate) const JUMP: u8 = 14;
    pub(crate) const MARK: u8 = 15;
    pub(crate) const REWIND: u8 = 16;
    pub(crate) const FORGET: u8 = 17;
    pub(crate) const RESTART: u8 = 18;
    pub(crate) const STATE: u8 = 19;
    pub(crate) const TAKE_OVER: u8 = 20;
    pub(crate) const HAND_OVER: u8 = 21;
    /// Kinds from here on follow from the cause before them.
    pub(crate) const EFFECTS: u8 = 32;
    pub(crate) const SENT: u8 = 32;
    pub(crate) const HELD: u8 = 33;
    pub(crate) const CLOSED: u8 = 34;
    pub(crate) const SESSION_ENDED: u8 = 35;
    /// Kinds from here on are for people.
    pub(crate) const NOTES: u8 = 48;
    pub(crate) const FAULT: u8 = 48;
    pub(crate) const NOTE: u8 = 49;
    pub(crate) const END: u8 = 50;
}

/// One record: its kind, and the bytes that it consists of after that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RawRecord {
    pub(crate) kind: u8,
    pub(crate) body: Bytes,
}

/// Takes the first record off these bytes; `None` if there is no whole one.
pub(crate) fn next(bytes: &mut Bytes) -> Option<RawRecord> {
    let body = frame::next(bytes, usize::MAX).ok()??;
    let kind = *bytes.get(body.start).filter(|_| !body.is_empty())?;
    let record = RawRecord {
        kind,
        body: bytes.slice(body.start + 1..body.end),
    };
    *bytes = bytes.slice(body.end..);
    Some(record)
}

/// Appends a record.
pub(crate) fn put(out: &mut Vec<u8>, kind: u8, write: &mut dyn FnMut(&mut Vec<u8>)) {
    frame::put(out, |out| {
        out.push(kind);
        write(out);
    });
}

/// Appends an input as a record.
pub(crate) fn put_input(out: &mut Vec<u8>, input: &Input) {
    let kind = match input {
        Input::Open { .. } => kind::OPEN,
        Input::Identify { .. } => kind::IDENTIFY,
        Input::Connect { .. } => kind::CONNECT,
        Input::Request { .. } => kind::REQUEST,
        Input::Undecodable { .. } => kind::UNDECODABLE,
        Input::UnknownOp { .. } => kind::UNKNOWN_OP,
        Input::Refused { .. } => kind::REFUSED,
        Input::Disconnect { .. } => kind::DISCONNECT,
        Input::Tick => kind::TICK,
        Input::Expire { .. } => kind::EXPIRE,
    };
    put(out, kind, &mut |out| put_input_body(out, input));
}

fn put_input_body(out: &mut Vec<u8>, input: &Input) {
    let put_conn = |out: &mut Vec<u8>, conn: &ConnId| jute::put_int(out, conn.0.cast_signed());
    match input {
        Input::Open { conn, peer } => {
            put_conn(out, conn);
            jute::put_buffer(out, Some(peer.to_string().as_bytes()));
        }
        Input::Identify { conn, subject } => {
            put_conn(out, conn);
            jute::put_buffer(out, Some(subject.as_bytes()));
        }
        Input::Connect {
            conn,
            hello,
            is_read_only,
        } => {
            put_conn(out, conn);
            jute::put_bool(out, *is_read_only);
            hello.encode(out);
        }
        Input::Request { conn, xid, request } => {
            put_conn(out, conn);
            request.encode(*xid, out);
        }
        Input::Undecodable {
            conn,
            xid,
            consumes_zxid,
        } => {
            put_conn(out, conn);
            jute::put_int(out, xid.0);
            jute::put_bool(out, *consumes_zxid);
        }
        Input::UnknownOp { conn, xid } => {
            put_conn(out, conn);
            jute::put_int(out, xid.0);
        }
        Input::Refused {
            conn,
            xid,
            error,
            request,
        } => {
            put_conn(out, conn);
            jute::put_int(out, xid.0);
            jute::put_int(out, error.code());
            if let Some(request) = request {
                request.encode(*xid, out);
            }
        }
        Input::Disconnect { conn } => put_conn(out, conn),
        Input::Tick => {}
        Input::Expire { session } => jute::put_long(out, session.0),
    }
}

/// Decodes the input of a record of these kinds.
pub(crate) fn input(record: &RawRecord) -> Result<Input, DecodeError> {
    let reader = &mut Reader::new(&record.body);
    if record.kind == kind::TICK {
        return Ok(Input::Tick);
    }
    if record.kind == kind::EXPIRE {
        let session = SessionId(reader.long()?);
        return Ok(Input::Expire { session });
    }
    let conn = ConnId(reader.int()?.cast_unsigned());
    Ok(match record.kind {
        kind::OPEN => Input::Open {
            conn,
            peer: text(reader)?
                .parse()
                .map_err(|_| DecodeError::Null { field: "peer" })?,
        },
        kind::IDENTIFY => Input::Identify {
            conn,
            subject: text(reader)?,
        },
        kind::CONNECT => {
            let is_read_only = reader.bool()?;
            reader.int()?;
            let hello = ConnectRequest::decode(reader)?;
            Input::Connect {
                conn,
                hello,
                is_read_only,
            }
        }
        kind::REQUEST => {
            let (xid, request) = request(reader)?;
            Input::Request { conn, xid, request }
        }
        kind::UNDECODABLE => Input::Undecodable {
            conn,
            xid: Xid(reader.int()?),
            consumes_zxid: reader.bool()?,
        },
        kind::UNKNOWN_OP => Input::UnknownOp {
            conn,
            xid: Xid(reader.int()?),
        },
        kind::REFUSED => {
            let xid = Xid(reader.int()?);
            let error = ErrorCode::from_code(reader.int()?);
            let has_request = reader.remaining() > 0;
            let request = has_request.then(|| request(reader)).transpose()?;
            Input::Refused {
                conn,
                xid,
                error,
                request: request.map(|(_, request)| Box::new(request)),
            }
        }
        _ => Input::Disconnect { conn },
    })
}

/// Decodes a request in its frame.
pub(crate) fn request(reader: &mut Reader<'_>) -> Result<(Xid, Request), DecodeError> {
    reader.int()?;
    let RequestHeader { xid, op } = RequestHeader::decode(reader)?;
    let op = OpCode::from_code(op).ok_or(DecodeError::Null { field: "op" })?;
    Ok((xid, Request::decode(op, reader)?))
}

pub(crate) fn text(reader: &mut Reader<'_>) -> Result<String, DecodeError> {
    let bytes = reader.buffer()?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Appends a session that came from another universe.
pub(crate) fn put_handover(out: &mut Vec<u8>, handover: &Handover) {
    jute::put_long(out, handover.session().0);
    jute::put_int(out, handover.timeout_ms().cast_signed());
    let identities = handover.identities();
    jute::put_length(out, identities.len());
    for (scheme, id) in identities {
        jute::put_buffer(out, Some(scheme.as_bytes()));
        jute::put_ustring(out, Some(id));
    }
}

pub(crate) fn handover(reader: &mut Reader<'_>) -> Result<Handover, DecodeError> {
    let session = SessionId(reader.long()?);
    let timeout_ms = reader.int()?.cast_unsigned();
    let mut identities = Vec::new();
    for _ in 0..reader.int()?.max(0) {
        let mut text = || Ok(reader.ustring()?.unwrap_or_default());
        identities.push((text()?, text()?));
    }
    Ok(Handover::new(session, timeout_ms, &identities))
}

/// Names the fields of the settings that decide over replies, in the order in which they are written.
macro_rules! fields {
    ($each:ident, $settings:ident) => {
        $each!($settings, tick_ms, u32);
        $each!($settings, rounds_expiry, bool);
        $each!($settings, session_timeout_min_ms, u32);
        $each!($settings, session_timeout_max_ms, u32);
        $each!($settings, sessions_max, usize);
        $each!($settings, watches_max, usize);
        $each!($settings, tree_bytes_max, usize);
        $each!($settings, reply_bytes_max, usize);
        $each!($settings, multi_operations_max, usize);
        $each!($settings, acl_entries_max, usize);
        $each!($settings, identities_max, usize);
        $each!($settings, undo_bytes_max, usize);
        $each!($settings, extended_types, bool);
        $each!($settings, container_check_interval_ms, u32);
        $each!($settings, container_max_per_minute, u32);
        $each!($settings, container_max_never_used_ms, u64);
        $each!($settings, enforce_quota, bool);
        $each!($settings, reconfig_enabled, bool);
        $each!($settings, skip_acl, bool);
        $each!($settings, digest_enabled, bool);
        $each!($settings, key_scheme, bool);
        $each!($settings, x509, bool);
        $each!($settings, java_listing_order, bool);
    };
}

/// Appends the settings that decide over replies. SASL users are not among them.
pub(crate) fn put_settings(out: &mut Vec<u8>, engine: &Engine) {
    let settings = engine.settings();
    jute::put_long(out, engine.next_session_id().0);
    macro_rules! number {
        ($settings:ident, $field:ident, bool) => {
            jute::put_long(out, $settings.$field.into());
        };
        ($settings:ident, $field:ident, $type:ty) => {
            jute::put_long(out, i64::try_from($settings.$field).unwrap_or(i64::MAX));
        };
    }
    fields!(number, settings);
    jute::put_buffer(out, Some(settings.digest_algorithm.name().as_bytes()));
    jute::put_buffer(out, settings.super_digest.as_deref().map(str::as_bytes));
    jute::put_buffer(out, settings.x509_super_user.as_deref().map(str::as_bytes));
    put_texts(out, settings.ensemble_names.as_deref());
    put_texts(out, Some(&settings.enforce_auth_schemes));
}

fn put_texts(out: &mut Vec<u8>, texts: Option<&[String]>) {
    match texts {
        None => jute::put_int(out, -1),
        Some(texts) => {
            jute::put_length(out, texts.len());
            for text in texts {
                jute::put_buffer(out, Some(text.as_bytes()));
            }
        }
    }
}

pub(crate) fn settings(reader: &mut Reader<'_>) -> Result<Settings, DecodeError> {
    let mut settings = Settings {
        first_session_id: SessionId(reader.long()?),
        ..Settings::default()
    };
    macro_rules! number {
        ($settings:ident, $field:ident, bool) => {
            $settings.$field = reader.long()? != 0;
        };
        ($settings:ident, $field:ident, $type:ty) => {
            $settings.$field = <$type>::try_from(reader.long()?).unwrap_or(<$type>::MAX);
        };
    }
    fields!(number, settings);
    let optional = |reader: &mut Reader<'_>| -> Result<Option<String>, DecodeError> {
        let bytes = reader.buffer()?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    };
    let algorithm = text(reader)?;
    settings.digest_algorithm = algorithm.parse().unwrap_or_default();
    settings.super_digest = optional(reader)?.map(Into::into);
    settings.x509_super_user = optional(reader)?;
    settings.ensemble_names = texts(reader)?;
    settings.enforce_auth_schemes = texts(reader)?.unwrap_or_default();
    // A tick of 0 would divide by it.
    settings.tick_ms = settings.tick_ms.max(1);
    let min_ms = settings.session_timeout_min_ms;
    settings.session_timeout_max_ms = settings.session_timeout_max_ms.max(min_ms);
    Ok(settings)
}

fn texts(reader: &mut Reader<'_>) -> Result<Option<Vec<String>>, DecodeError> {
    let count = reader.int()?;
    if count < 0 {
        return Ok(None);
    }
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(text(reader)?);
    }
    Ok(Some(all))
}

/// Appends a whole state: the zxid, sessions, access lists, znodes.
pub(crate) fn put_state(out: &mut Vec<u8>, engine: &Engine) {
    let image = engine.image();
    jute::put_long(out, image.zxid().0);
    let sessions = image.sessions();
    jute::put_length(out, sessions.len());
    for SessionImage { id, timeout_ms } in sessions {
        jute::put_long(out, id.0);
        jute::put_int(out, timeout_ms);
    }
    let lists = image.access_lists();
    jute::put_length(out, lists.len());
    for (id, list) in lists {
        jute::put_long(out, id);
        list.encode(out);
    }
    for znode in image.znodes() {
        jute::put_buffer(out, Some(znode.path));
        jute::put_buffer(out, znode.data);
        let zxids = [znode.czxid, znode.mzxid, znode.pzxid].map(|zxid| zxid.0);
        let longs = [znode.acl, znode.ctime_ms, znode.mtime_ms, znode.owner];
        for long in zxids.into_iter().chain(longs) {
            jute::put_long(out, long);
        }
        for int in [znode.version, znode.created_children, znode.aversion] {
            jute::put_int(out, int);
        }
    }
}

/// Restores a state.
pub(crate) fn state(reader: &mut Reader<'_>, settings: Settings) -> Result<Engine, StateError> {
    let mut restoration = Restoration::new(settings);
    let zxid = Zxid(reader.long()?);
    for _ in 0..reader.int()? {
        restoration.session(SessionImage {
            id: SessionId(reader.long()?),
            timeout_ms: reader.int()?,
        })?;
    }
    for _ in 0..reader.int()? {
        let id = reader.long()?;
        restoration.access_list(id, &AclList::decode(reader)?)?;
    }
    while reader.remaining() > 0 {
        let path = reader.buffer()?.unwrap_or_default();
        let data = reader.buffer()?;
        let mut longs = [0; 7];
        for long in &mut longs {
            *long = reader.long()?;
        }
        let [czxid, mzxid, pzxid, acl, ctime_ms, mtime_ms, owner] = longs;
        restoration.znode(&ZnodeImage {
            path: &path,
            data: data.as_deref(),
            acl,
            czxid: Zxid(czxid),
            mzxid: Zxid(mzxid),
            pzxid: Zxid(pzxid),
            ctime_ms,
            mtime_ms,
            owner,
            version: reader.int()?,
            created_children: reader.int()?,
            aversion: reader.int()?,
        })?;
    }
    Ok(Engine::restore(restoration, zxid)?)
}

/// Why a state cannot be restored.
#[derive(Debug)]
pub(crate) enum StateError {
    Decode(DecodeError),
    Image(ImageError),
}

impl From<DecodeError> for StateError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

impl From<ImageError> for StateError {
    fn from(error: ImageError) -> Self {
        Self::Image(error)
    }
}

impl std::fmt::Display for StateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Decode(error) => error.fmt(f),
            Self::Image(error) => error.fmt(f),
        }
    }
}
