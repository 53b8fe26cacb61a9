//! Deliberate bugs, for tests that must find them.

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Planted {
    /// When the one directly ahead goes, those before it are forgotten.
    OthersForgotten,
    /// A creation whose reply was lost is not looked for.
    LostReplyIgnored,
    /// A writer does not wait for readers ahead.
    ReadersIgnored,
    /// The own lease is not counted against the maximum.
    OwnLeaseNotCounted,
    /// A leader goes on without any word from a server.
    SilenceIgnored,
}

impl Planted {
    /// Every bug.
    pub const ALL: [Self; 5] = [
        Self::OthersForgotten,
        Self::LostReplyIgnored,
        Self::ReadersIgnored,
        Self::OwnLeaseNotCounted,
        Self::SilenceIgnored,
    ];
}
