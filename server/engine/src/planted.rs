//! Deliberate bugs. A test switches one on and shows that the suite turns red.

/// A bug that can be switched on. `tests/planted.md` says which test catches it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Planted {
    /// A sequential name uses a number again after a delete.
    SequenceReused,
    /// Ephemerals stay when their session expires.
    EphemeralKept,
    /// A one-shot watch stays after it has fired.
    WatchFiredTwice,
    /// A failed multi leaves its first operation in place.
    MultiNotRolledBack,
    /// delete looks at children before it looks at the version.
    NotEmptyFirst,
    /// Events are sent to those who may not read the znode.
    EventsUnfiltered,
    /// A time to live counts from the creation instead of the last change of data.
    TtlFromCreation,
    /// A reconnect does not need the password.
    PasswordIgnored,
    /// Going back to a mark leaves access lists as they are.
    AclNotRewound,
    /// What a failed multi had done before it failed stays among the changes of a log.
    FailedMultiLogged,
    /// A sync of `/panic` panics.
    SyncPanics,
}
