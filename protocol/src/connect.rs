//! The handshake: the first message in each direction, the only ones without a header.
//!
//! Source: `docs/zookeeper-protocol.md` sections 4 and 6.2 to 6.4.

use bytes::Bytes;

use crate::{
    error::DecodeError,
    frame,
    ids::{SessionId, Zxid},
    jute::{self, Reader},
};

/// The length of a session's password, in bytes.
pub const PASSWORD_BYTES: usize = 16;

/// The client's first message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectRequest {
    /// Always 0; servers ignore it.
    pub protocol_version: i32,
    /// The highest zxid that the client has seen; it must not connect to a server with older state.
    pub last_zxid_seen: Zxid,
    /// The requested session timeout, in milliseconds.
    pub timeout_ms: i32,
    /// The session to resume, or [`SessionId::NONE`] for a new one.
    pub session_id: SessionId,
    /// The password of that session; ignored for a new one.
    pub password: Option<Bytes>,
    /// Whether the client accepts a read-only server; `None` from clients before 3.4, which do not
    /// send the byte and must not get it back.
    pub read_only: Option<bool>,
}

impl ConnectRequest {
    /// Creates a request for a new session, as a current client sends it.
    #[must_use]
    pub fn new(timeout_ms: i32) -> Self {
        Self {
            protocol_version: 0,
            last_zxid_seen: Zxid(0),
            timeout_ms,
            session_id: SessionId::NONE,
            password: Some(Bytes::from_static(&[0; PASSWORD_BYTES])),
            read_only: Some(false),
        }
    }

    /// Reads the message.
    ///
    /// # Errors
    /// When the message ends before the password does.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            protocol_version: reader.int()?,
            last_zxid_seen: Zxid(reader.long()?),
            timeout_ms: reader.int()?,
            session_id: SessionId(reader.long()?),
            password: reader.buffer()?,
            read_only: if reader.remaining() > 0 {
                Some(reader.bool()?)
            } else {
                None
            },
        })
    }

    /// Appends the message as a frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        frame::put(out, |out| {
            jute::put_int(out, self.protocol_version);
            jute::put_long(out, self.last_zxid_seen.0);
            jute::put_int(out, self.timeout_ms);
            jute::put_long(out, self.session_id.0);
            jute::put_buffer(out, self.password.as_deref());
            if let Some(read_only) = self.read_only {
                jute::put_bool(out, read_only);
            }
        });
    }
}

/// The server's reply to the handshake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectResponse {
    /// Always 0.
    pub protocol_version: i32,
    /// The granted timeout, in milliseconds; zero or less if the session does not exist.
    pub timeout_ms: i32,
    /// The session, or [`SessionId::NONE`] if it does not exist.
    pub session_id: SessionId,
    /// The password that the client must send to resume the session.
    pub password: Option<Bytes>,
    /// Whether the server is read-only; sent only to clients that sent their own flag.
    pub read_only: Option<bool>,
}

impl ConnectResponse {
    /// Creates the reply for a session that does not exist, or for a wrong password.
    ///
    /// Clients check different fields, so timeout, id and password all show it
    /// (`docs/zookeeper-protocol.md` section 6.4).
    #[must_use]
    pub const fn refused(read_only: Option<bool>) -> Self {
        Self {
            protocol_version: 0,
            timeout_ms: 0,
            session_id: SessionId::NONE,
            password: Some(Bytes::from_static(&[0; PASSWORD_BYTES])),
            read_only,
        }
    }

    /// Reads the message.
    ///
    /// # Errors
    /// When the message ends before the password does.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            protocol_version: reader.int()?,
            timeout_ms: reader.int()?,
            session_id: SessionId(reader.long()?),
            password: reader.buffer()?,
            read_only: if reader.remaining() > 0 {
                Some(reader.bool()?)
            } else {
                None
            },
        })
    }

    /// Appends the message as a frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        frame::put(out, |out| {
            jute::put_int(out, self.protocol_version);
            jute::put_int(out, self.timeout_ms);
            jute::put_long(out, self.session_id.0);
            jute::put_buffer(out, self.password.as_deref());
            if let Some(read_only) = self.read_only {
                jute::put_bool(out, read_only);
            }
        });
    }
}
