//! The operation codes of the client protocol.
//!
//! Source: `docs/zookeeper-protocol.md` section 3.1; ZooKeeper's `ZooDefs.OpCode`.

macro_rules! opcodes {
    ($($variant:ident = $code:literal, $name:literal;)*) => {
        /// What a request asks for.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum OpCode {
            $(#[doc = concat!("`", $name, "`, code ", $code, ".")] $variant,)*
        }

        impl OpCode {
            /// Every operation, ordered by number, the internal ones last.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The number on the wire.
            #[must_use]
            pub const fn code(self) -> i32 {
                match self { $(Self::$variant => $code,)* }
            }

            /// The field's name of the operation.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The operation of this name, as [`OpCode::name`] gives it.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|op| op.name() == name)
            }

            /// The operation with this number.
            #[must_use]
            // One percent of a getData, counted: it has other callers.
            #[inline(always)]
            pub const fn from_code(code: i32) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

opcodes! {
    Create = 1, "create";
    Delete = 2, "delete";
    Exists = 3, "exists";
    GetData = 4, "getData";
    SetData = 5, "setData";
    GetAcl = 6, "getACL";
    SetAcl = 7, "setACL";
    GetChildren = 8, "getChildren";
    Sync = 9, "sync";
    Ping = 11, "ping";
    GetChildren2 = 12, "getChildren2";
    Check = 13, "check";
    Multi = 14, "multi";
    Create2 = 15, "create2";
    Reconfig = 16, "reconfig";
    CheckWatches = 17, "checkWatches";
    RemoveWatches = 18, "removeWatches";
    CreateContainer = 19, "createContainer";
    DeleteContainer = 20, "deleteContainer";
    CreateTtl = 21, "createTTL";
    MultiRead = 22, "multiRead";
    Auth = 100, "auth";
    SetWatches = 101, "setWatches";
    Sasl = 102, "sasl";
    GetEphemerals = 103, "getEphemerals";
    GetAllChildrenNumber = 104, "getAllChildrenNumber";
    SetWatches2 = 105, "setWatches2";
    AddWatch = 106, "addWatch";
    WhoAmI = 107, "whoAmI";
    CreateSession = -10, "createSession";
    CloseSession = -11, "closeSession";
}

/// An operation code that does not exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownOp(pub i32);

impl std::fmt::Display for UnknownOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "operation code {} is unknown", self.0)
    }
}

impl std::error::Error for UnknownOp {}

impl TryFrom<i32> for OpCode {
    type Error = UnknownOp;

    fn try_from(code: i32) -> Result<Self, UnknownOp> {
        Self::from_code(code).ok_or(UnknownOp(code))
    }
}
