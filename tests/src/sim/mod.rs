//! Contenders for every recipe, and the judge of their holds. Shared by `tests/sim`, `tests/sweep` and
//! the program `chaos`.
//!
//! | module | contents |
//! | --- | --- |
//! | [`worlds`] | the contenders' work, one recipe per file |
//! | [`contender`] | what contenders share: acquiring, holding, releasing |
//! | [`judge`], [`history`] | the checks; the record of a run |
//! | [`chance`] | random choices |

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "helpers of programs of this crate"
)]

pub mod chance;
pub mod contender;
pub mod history;
pub mod judge;
pub mod worlds;

/// The number of contenders. Two of them share a client, and so a session.
pub const CONTENDERS: usize = 5;

/// The number of clients.
pub const CLIENTS: usize = 4;
