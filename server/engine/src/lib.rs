//! A ZooKeeper server's state as a pure state machine.
//!
//! Source: `docs/zookeeper-protocol.md` sections 1, 3.1, 6.5, 7, 10.13, 10.14, 10.25 to 10.27 and
//! 26.
//!
//! [`Engine::apply`] takes the time and one [`Input`], and calls [`Effects`] for everything that
//! results: replies, watch events, connections to close. The engine has no socket, clock, thread or
//! randomness, so a run is a list of `(Now, Input)`: it can be recorded, repeated and shrunk, and
//! the same list gives the same effects and the same [`Engine::dump`].
//!
//! ```
//! use minikeeper_engine::{CloseReason, ConnId, Effects, Engine, Event, Input, Limit, Now, Settings};
//! use minikeeper_protocol::{ConnectRequest, ConnectResponse, ReplyHeader, ReplyRef};
//!
//! #[derive(Default)]
//! struct Sessions(Vec<ConnectResponse>);
//! impl Effects for Sessions {
//!     fn connected(&mut self, _: ConnId, response: &ConnectResponse) {
//!         self.0.push(response.clone());
//!     }
//!     fn reply(&mut self, _: ConnId, _: ReplyHeader, _: ReplyRef<'_>) {}
//!     fn event(&mut self, _: ConnId, _: &Event<'_>) {}
//!     fn close(&mut self, _: ConnId, _: CloseReason) {}
//!     fn limit_hit(&mut self, _: Limit, _: usize) {}
//! }
//!
//! let mut engine = Engine::new(Settings::default());
//! let mut sessions = Sessions::default();
//! let hello = Input::Connect { conn: ConnId(0), hello: ConnectRequest::new(10_000), is_read_only: false };
//! engine.apply(Now::default(), &hello, &mut sessions);
//! assert_eq!(sessions.0[0].timeout_ms, 10_000);
//! assert_eq!(engine.next_deadline_ms(Now::default()), Some(12_000)); // the next tick of 3 s
//! ```
//!
//! # Features
//!
//! | feature | adds |
//! | --- | --- |
//! | `digest-algorithms` (default) | hashes of digest identities other than SHA-1: [`DigestAlgorithm`] |
//! | `sasl` (default) | users who log in by SASL, with DIGEST-MD5: [`SaslSettings`] |

// docs.rs shows which feature an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod auth;
mod effects;
mod engine;
mod hashing;
mod input;
mod ops;
mod persist;
mod report;
mod state;
#[cfg(test)]
mod tests;
mod work;

pub use crate::{
    auth::{
        digest::{DigestAlgorithm, UnknownDigestAlgorithm},
        sasl::SaslSettings,
    },
    effects::{CloseReason, Effects, Event, Limit, Removal},
    engine::{CopyStep, Counts, Engine, EngineCopy, Handover, Keep},
    input::{ConnId, Input, Now, Secret, Settings},
    persist::{
        change::{Change, ChangeHead, Life},
        image::{Image, SessionImage, ZnodeImage, Znodes},
        restore::{ImageError, Restoration},
    },
    report::{
        changes::{ZnodeChange, ZnodeState},
        check::Broken,
        footprint::{Footprint, Footprints},
        inspect::{Group, Listing, Room, SessionLease, SessionReport, WatchKind, WatchSummary},
    },
    state::{quota::QuotaTotals, tree::ZNODE_BYTES, undo::Mark, znode::TTL_MS_MAX},
};
