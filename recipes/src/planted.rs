//! Deliberate bugs, for tests that must find them.

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Planted {
    /// When the one directly ahead goes, those before it are forgotten.
    OthersForgotten,
    /// A creation whose reply was lost is not looked for.
    LostReplyIgnored,
}

impl Planted {
    /// Every bug.
    pub const ALL: [Self; 2] = [Self::OthersForgotten, Self::LostReplyIgnored];
}
