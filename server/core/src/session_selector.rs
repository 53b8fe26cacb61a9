//! Selects sessions by id, address, identity or owned path.

use std::{
    error::Error,
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use minikeeper_protocol::SessionId;

/// Selects the sessions that a method applies to.
///
/// As text: an id, in hexadecimal with `0x` or in decimal; an address, with or without port; an
/// identity, as `scheme:id`; or the path of an ephemeral, which is its owner's.
///
/// # Examples
/// ```
/// use minikeeper::{SessionId, SessionSelector};
/// assert_eq!(SessionSelector::from("0x100000d60680000"), SessionSelector::Session(SessionId(0x100_000d_6068_0000)));
/// assert_eq!(SessionSelector::from("/locks/lock-0000000001"), SessionSelector::Owner("/locks/lock-0000000001".into()));
/// assert_eq!(SessionSelector::from("digest:alice"), SessionSelector::Identity("digest:alice".into()));
/// assert!(matches!("127.0.0.1:4711".parse()?, SessionSelector::Address(_, Some(4711))));
/// assert!("alice".parse::<SessionSelector>().is_err());
/// # Ok::<(), minikeeper::SessionSelectorError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SessionSelector {
    /// The session with this id.
    Session(SessionId),
    /// Sessions whose connection comes from this address, and from this port if one is given.
    Address(IpAddr, Option<u16>),
    /// Sessions whose connection has authenticated as this identity: scheme, colon, id. For a
    /// digest identity the user is enough. No other text is an identity.
    Identity(String),
    /// The owner of the ephemeral with this path.
    Owner(String),
}

/// A text that is no session selector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionSelectorError(String);

impl fmt::Display for SessionSelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "session {:?}: not an id (0x100000000000000), an address (127.0.0.1:4711), an identity \
             (digest:alice) or the path of an ephemeral (/locks/x)",
            self.0
        )
    }
}

impl Error for SessionSelectorError {}

/// No session matched. Nothing has changed.
///
/// Where that is fine, write `server.expire(who).unwrap_or(0)`.
///
/// # Examples
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let server = minikeeper::Server::builder().start().await?;
/// let error = server.expire("digest:alice").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "expire: no session matches identity \"digest:alice\"; there are no sessions; \
///      set allow_none to permit that"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NoSession {
    /// The name of the verb.
    pub verb: &'static str,
    /// The sessions selected.
    pub who: SessionSelector,
    /// The kind selected: a `session`, a `connected session` or a `silenced session`.
    pub wanted: &'static str,
    /// The sessions that exist.
    pub seen: String,
}

impl NoSession {
    /// Says that `verb` found no session of the kind `wanted` that matches `who` among those `seen`.
    #[must_use]
    pub const fn new(
        verb: &'static str,
        wanted: &'static str,
        who: SessionSelector,
        seen: String,
    ) -> Self {
        Self {
            verb,
            who,
            wanted,
            seen,
        }
    }
}

impl fmt::Display for NoSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            verb,
            who,
            wanted,
            seen,
        } = self;
        write!(
            f,
            "{verb}: no {wanted} matches {who}; {seen}; set allow_none to permit that"
        )
    }
}

impl Error for NoSession {}

/// Reads as part of a sentence: `session 0x100000000000000`, `identity "digest:alice"`.
impl fmt::Display for SessionSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(id) => write!(f, "session {id}"),
            Self::Address(ip, None) => write!(f, "address {ip}"),
            Self::Address(ip, Some(port)) => write!(f, "address {}", SocketAddr::new(*ip, *port)),
            Self::Identity(identity) => write!(f, "identity {identity:?}"),
            Self::Owner(path) => write!(f, "owner of {path:?}"),
        }
    }
}

impl FromStr for SessionSelector {
    type Err = SessionSelectorError;

    fn from_str(text: &str) -> Result<Self, SessionSelectorError> {
        let error = || SessionSelectorError(text.to_owned());
        if text.starts_with('/') {
            return Ok(Self::Owner(text.to_owned()));
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(address.into());
        }
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Ok(ip.into());
        }
        if let Some(hex) = text.strip_prefix("0x") {
            let id = u64::from_str_radix(hex, 16).map_err(|_| error())?;
            return Ok(Self::Session(SessionId(id.cast_signed())));
        }
        if let Ok(id) = text.parse() {
            return Ok(Self::Session(SessionId(id)));
        }
        match text.split_once(':') {
            Some(("ip" | "digest" | "sasl" | "x509" | "super", _)) => {
                Ok(Self::Identity(text.to_owned()))
            }
            _ => Err(error()),
        }
    }
}

/// Text that makes no sense matches no session; [`str::parse`] reports it.
impl From<&str> for SessionSelector {
    fn from(text: &str) -> Self {
        text.parse()
            .unwrap_or_else(|_| Self::Identity(text.to_owned()))
    }
}

impl From<SessionId> for SessionSelector {
    fn from(session: SessionId) -> Self {
        Self::Session(session)
    }
}

impl From<IpAddr> for SessionSelector {
    fn from(ip: IpAddr) -> Self {
        Self::Address(ip.to_canonical(), None)
    }
}

impl From<SocketAddr> for SessionSelector {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address.ip().to_canonical(), Some(address.port()))
    }
}

/// Parses a session id, hexadecimal with 0x or decimal.
#[cfg(feature = "control")]
pub fn session_id(text: &str) -> Option<SessionId> {
    let is_number = |digits: &str, radix| {
        !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix))
    };
    match text.strip_prefix("0x") {
        Some(hex) if is_number(hex, 16) => u64::from_str_radix(hex, 16).ok(),
        None if is_number(text, 10) => text.parse().ok(),
        _ => None,
    }
    .map(|id| SessionId(id.cast_signed()))
}
