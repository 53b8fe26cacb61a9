//! Contenders for every recipe, and the judge of what they get: what `tests/sim` and the program
//! `chaos` share.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`worlds`] | what there is to contend for: one recipe a file |
//! | [`contender`] | what contenders share: wishes, patience, giving back |
//! | [`judge`], [`history`] | what must hold at any time; what happened |
//! | [`chance`] | random choices of how a contender goes about it |

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "helpers of two programs of this crate"
)]

pub mod chance;
pub mod contender;
pub mod history;
pub mod judge;
pub mod worlds;

/// Two of the contenders share a client, and so a session.
pub const CONTENDERS: usize = 5;

/// How many clients the contenders have.
pub const CLIENTS: usize = 4;
