//! Error codes on the wire, and the faults of a message.
//!
//! Source: `docs/zookeeper-protocol.md` section 3.3; ZooKeeper's `KeeperException.Code`.

use std::fmt;

macro_rules! error_codes {
    ($($variant:ident = $code:literal, $name:literal, $text:literal;)*) => {
        /// Why a request was refused: the error code in the reply's header.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $(#[doc = concat!($text, " (`", $name, "`, ", $code, ").")] $variant,)*
            /// A code without a name in this crate.
            Other(i32),
        }

        impl ErrorCode {
            /// Every code with a name.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the number on the wire.
            #[must_use]
            pub const fn code(self) -> i32 {
                match self { $(Self::$variant => $code,)* Self::Other(code) => code }
            }

            /// Returns the error with this name, as in [`ErrorCode::name`].
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|code| code.name() == name)
            }

            /// Returns the error with this number.
            #[must_use]
            pub const fn from_code(code: i32) -> Self {
                match code { $($code => Self::$variant,)* other => Self::Other(other) }
            }

            /// Returns the name of the error, such as `NONODE`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* Self::Other(_) => "OTHER" }
            }

            const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* Self::Other(_) => "unknown error" }
            }
        }
    };
}

error_codes! {
    SystemError = -1, "SYSTEMERROR", "system error";
    RuntimeInconsistency = -2, "RUNTIMEINCONSISTENCY", "not tried, an earlier operation failed";
    DataInconsistency = -3, "DATAINCONSISTENCY", "data inconsistency";
    ConnectionLoss = -4, "CONNECTIONLOSS", "connection lost";
    MarshallingError = -5, "MARSHALLINGERROR", "request could not be decoded";
    Unimplemented = -6, "UNIMPLEMENTED", "operation not implemented";
    OperationTimeout = -7, "OPERATIONTIMEOUT", "operation timed out";
    BadArguments = -8, "BADARGUMENTS", "bad arguments";
    UnknownSession = -12, "UNKNOWNSESSION", "unknown session";
    NewConfigNoQuorum = -13, "NEWCONFIGNOQUORUM", "new configuration has no quorum";
    ReconfigInProgress = -14, "RECONFIGINPROGRESS", "another reconfiguration is in progress";
    ApiError = -100, "APIERROR", "API error";
    NoNode = -101, "NONODE", "znode does not exist";
    NoAuth = -102, "NOAUTH", "not permitted";
    BadVersion = -103, "BADVERSION", "version does not match";
    NoChildrenForEphemerals = -108, "NOCHILDRENFOREPHEMERALS", "ephemeral cannot have children";
    NodeExists = -110, "NODEEXISTS", "znode already exists";
    NotEmpty = -111, "NOTEMPTY", "znode has children";
    SessionExpired = -112, "SESSIONEXPIRED", "session expired";
    InvalidCallback = -113, "INVALIDCALLBACK", "invalid callback";
    InvalidAcl = -114, "INVALIDACL", "invalid access list";
    AuthFailed = -115, "AUTHFAILED", "authentication failed";
    Closing = -116, "CLOSING", "session is closing";
    Nothing = -117, "NOTHING", "nothing to reply";
    SessionMoved = -118, "SESSIONMOVED", "session moved to another connection";
    NotReadOnly = -119, "NOTREADONLY", "write sent to a read-only server";
    EphemeralOnLocalSession = -120, "EPHEMERALONLOCALSESSION", "local session cannot own ephemerals";
    NoWatcher = -121, "NOWATCHER", "no such watch";
    RequestTimeout = -122, "REQUESTTIMEOUT", "request timed out";
    ReconfigDisabled = -123, "RECONFIGDISABLED", "reconfiguration is disabled";
    SessionClosedRequireSaslAuth = -124, "SESSIONCLOSEDREQUIRESASLAUTH", "authentication required";
    QuotaExceeded = -125, "QUOTAEXCEEDED", "quota exceeded";
    ThrottledOp = -127, "THROTTLEDOP", "operation throttled";
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} {})", self.text(), self.name(), self.code())
    }
}

impl std::error::Error for ErrorCode {}

/// A fault inside a complete frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DecodeError {
    /// The message ends inside a field.
    Truncated {
        /// The minimum number of bytes that the field lacks.
        missing: usize,
    },
    /// A buffer or string has a length below -1.
    NegativeLength {
        /// The received length.
        length: i32,
    },
    /// An operation is not permitted in a multi, or reads and writes are mixed.
    MultiOp {
        /// The received operation code.
        op: i32,
    },
    /// A value is not valid for its field.
    Value {
        /// The field.
        field: &'static str,
        /// The received value.
        value: i64,
    },
    /// A field is null where the record needs a value.
    Null {
        /// The field.
        field: &'static str,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { missing } => write!(f, "message ends {missing} bytes early"),
            Self::NegativeLength { length } => write!(f, "field length {length} is below -1"),
            Self::MultiOp { op } => write!(f, "operation code {op} is not permitted in this multi"),
            Self::Value { field, value } => write!(f, "{field} has the invalid value {value}"),
            Self::Null { field } => write!(f, "{field} is null"),
        }
    }
}

impl std::error::Error for DecodeError {}
