//! The clients that a fault applies to.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use minikeeper_protocol::SessionId;

use crate::{faults::error::FaultError, peer::Peer};

/// Selects the sessions whose requests and events a fault matches.
///
/// # Examples
/// It parses from text:
/// ```
/// use minikeeper::{FaultFor, SessionId};
/// assert_eq!("anyone".parse(), Ok(FaultFor::Anyone));
/// assert_eq!("0x100000000000001".parse(), Ok(FaultFor::Session(SessionId(0x100000000000001))));
/// assert_eq!("127.0.0.1".parse(), Ok(FaultFor::Ip([127, 0, 0, 1].into())));
/// assert_eq!("127.0.0.1:4711".parse(), Ok(FaultFor::Address(([127, 0, 0, 1], 4711).into())));
/// assert_eq!("client-2".parse(), Ok(FaultFor::Client(2)));
/// assert!("unknown".parse::<FaultFor>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum FaultFor {
    /// Every connection.
    #[default]
    Anyone,
    /// The connection of this session, now and after it reconnects, including the handshake that
    /// resumes it.
    Session(SessionId),
    /// The connection of the n-th session, counted from 1: sessions are numbered in the order of
    /// their first requests since there has been any fault, the first 10,000 of them. Handshakes
    /// never match, because the number is not known yet.
    Client(u32),
    /// The connection from this address and port.
    Address(SocketAddr),
    /// Every connection from this address. In-process connections come from 127.0.0.1.
    Ip(IpAddr),
}

impl FaultFor {
    /// Returns whether it selects a connection of this session from this address. `client` is the
    /// session's number.
    pub(crate) fn is(self, session: SessionId, client: Option<u32>, peer: &Peer) -> bool {
        match self {
            Self::Anyone => true,
            Self::Session(wanted) => wanted == session,
            Self::Client(wanted) => Some(wanted) == client,
            Self::Address(address) => Peer::from(address) == *peer,
            Self::Ip(ip) => ip.to_canonical() == peer.ip(),
        }
    }
}

impl From<SessionId> for FaultFor {
    fn from(session: SessionId) -> Self {
        Self::Session(session)
    }
}

impl From<SocketAddr> for FaultFor {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

impl From<IpAddr> for FaultFor {
    fn from(ip: IpAddr) -> Self {
        Self::Ip(ip)
    }
}

impl fmt::Display for FaultFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anyone => f.write_str("anyone"),
            Self::Session(session) => session.fmt(f),
            Self::Client(number) => write!(f, "client-{number}"),
            Self::Address(address) => address.fmt(f),
            Self::Ip(ip) => ip.fmt(f),
        }
    }
}

impl FromStr for FaultFor {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        if text == "anyone" {
            return Ok(Self::Anyone);
        }
        if let Some(number) = text.strip_prefix("client-") {
            let number = number.parse().ok().filter(|number| *number > 0);
            return number
                .map(Self::Client)
                .ok_or_else(|| FaultError::UnknownWho(text.to_owned()));
        }
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        if let Ok(ip) = text.parse() {
            return Ok(Self::Ip(ip));
        }
        let id = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok().map(u64::cast_signed),
            None => text.parse().ok(),
        };
        id.map(|id| Self::Session(SessionId(id)))
            .ok_or_else(|| FaultError::UnknownWho(text.to_owned()))
    }
}
