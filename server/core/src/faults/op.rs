//! The operations that a fault applies to.

use std::{fmt, str::FromStr};

use minikeeper_engine::Input;
use minikeeper_protocol::OpCode;

use crate::faults::error::FaultError;

/// The operation that a request must have for a fault to match it.
///
/// # Examples
/// Each has the protocol's name for the operation:
/// ```
/// use minikeeper::{FaultOp, OpCode};
/// assert_eq!("getData".parse(), Ok(FaultOp::Op(OpCode::GetData)));
/// assert_eq!("any".parse(), Ok(FaultOp::Any));
/// assert_eq!("connect".parse(), Ok(FaultOp::Connect));
/// let unknown = "getdata".parse::<FaultOp>().unwrap_err();
/// assert!(unknown.to_string().starts_with("operation \"getdata\": unknown; one of any, request, connect"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FaultOp {
    /// Every message from a client, handshakes included.
    Any,
    /// Every request but those that keep a session going: neither handshake, ping nor closeSession.
    /// Ordinals such as [`nth`](crate::faults::fault::Fault::nth) count only what the program itself asks for.
    Request,
    /// The handshake: a new session, or a resumed one. `connect` or `createSession`.
    Connect,
    /// This operation.
    ///
    /// `create` matches all its forms (`create2`, `createContainer` and `createTTL` too),
    /// `getChildren` also `getChildren2`, and `setWatches` also `setWatches2`, because clients
    /// differ in which form they send. The longer names match only themselves. `close` means
    /// `closeSession`.
    Op(OpCode),
}

impl FaultOp {
    /// Returns its name, which [`FromStr`] accepts.
    ///
    /// # Examples
    /// ```
    /// use minikeeper::{FaultOp, OpCode};
    /// assert_eq!(FaultOp::from(OpCode::SetData).name(), "setData");
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Request => "request",
            Self::Connect => "connect",
            Self::Op(op) => op.name(),
        }
    }

    /// Returns whether a client's message is of this kind.
    pub(crate) const fn is_of(self, input: &Input) -> bool {
        match input {
            Input::Connect { .. } => matches!(self, Self::Any | Self::Connect),
            Input::Request { request, .. } => self.is_of_op(request.op()),
            // Malformed requests have no operation.
            _ => matches!(self, Self::Any | Self::Request),
        }
    }

    /// Returns whether a request with this operation is of this kind.
    pub const fn is_of_op(self, op: OpCode) -> bool {
        match self {
            Self::Any => true,
            Self::Request => !matches!(
                op,
                OpCode::CreateSession | OpCode::Ping | OpCode::CloseSession
            ),
            Self::Connect => matches!(op, OpCode::CreateSession),
            Self::Op(wanted) => is_form_of(op, wanted),
        }
    }
}

/// Returns whether an operation is `wanted`, or a later form of it.
const fn is_form_of(op: OpCode, wanted: OpCode) -> bool {
    if op.code() == wanted.code() {
        return true;
    }
    match wanted {
        OpCode::Create => matches!(
            op,
            OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl
        ),
        OpCode::GetChildren => matches!(op, OpCode::GetChildren2),
        OpCode::SetWatches => matches!(op, OpCode::SetWatches2),
        _ => false,
    }
}

impl From<OpCode> for FaultOp {
    fn from(op: OpCode) -> Self {
        match op {
            OpCode::CreateSession => Self::Connect,
            op => Self::Op(op),
        }
    }
}

impl fmt::Display for FaultOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FaultOp {
    type Err = FaultError;

    fn from_str(name: &str) -> Result<Self, FaultError> {
        match name {
            "any" => Ok(Self::Any),
            "request" => Ok(Self::Request),
            "connect" => Ok(Self::Connect),
            "close" => Ok(Self::Op(OpCode::CloseSession)),
            name => match OpCode::from_name(name) {
                Some(op) => Ok(op.into()),
                None => Err(FaultError::UnknownOp(name.to_owned())),
            },
        }
    }
}
