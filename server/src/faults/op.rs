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
/// assert!(unknown.to_string().starts_with("operation \"getdata\": unknown; one of any, connect"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FaultOp {
    /// Every message from a client, handshakes included.
    Any,
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
            Self::Connect => "connect",
            Self::Op(op) => op.name(),
        }
    }

    /// Returns whether a client's message is of this kind.
    pub(crate) const fn is_of(self, input: &Input) -> bool {
        match self {
            Self::Any => true,
            Self::Connect => matches!(input, Input::Connect { .. }),
            Self::Op(wanted) => match input {
                Input::Request { request, .. } => is_form_of(request.op(), wanted),
                _ => false,
            },
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
            "connect" => Ok(Self::Connect),
            "close" => Ok(Self::Op(OpCode::CloseSession)),
            name => match OpCode::from_name(name) {
                Some(op) => Ok(op.into()),
                None => Err(FaultError::UnknownOp(name.to_owned())),
            },
        }
    }
}
