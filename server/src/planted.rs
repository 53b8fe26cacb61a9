//! Deliberate bugs that tests switch on, see `tests/planted.md`.

pub use minikeeper_engine::planted::Planted as PlantedInEngine;

/// A bug that can be switched on with [`Config::planted`](crate::Config::planted).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Planted {
    /// A bug of the state machine.
    Engine(PlantedInEngine),
    /// A turn does not empty its connection's outbox first.
    DrainLeftOut,
    /// What a turn has to say is appended after the lock is released.
    ReplyAfterUnlock,
    /// A fault that loses a reply loses the request too.
    LostNotApplied,
    /// Changes are told before they are in the log, and never written.
    ToldBeforeLogged,
}
