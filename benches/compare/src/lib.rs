//! The lock bench: what locks cost, who gets them, and whether they keep their word. It measures
//! minikeeper's recipes and the locks of ZooKeeper, Curator, Redis, etcd and MariaDB.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`contest`] | contenders that want one lock over and over |
//! | [`open_loop`] | asks for a lock that come at a fixed rate |
//! | [`outage`] | a holder that is killed, cut off or paused |
//! | [`peers`] | the locks that are measured, behind one trait |
//! | [`servers`] | the other servers: found, started, stopped |
//! | [`relay`] | a wire that can be counted, cut and held |
//! | [`resource`] | what a lock protects; refuses late writers |
//! | [`history`] | what happened in a run of a lock |
//! | [`holds`] | a history read as holds |
//! | [`judge`] | whether the lock excluded and fenced in that run |
//! | [`figures`] | from the history of a run to figures |
//! | [`report`] | the results, as text, JSON and HTML |
//!
//! `README.md` describes the method.

pub use minikeeper_benches::{
    Error, IoContext, awake, client, clock, embedded, exit, note, process, stats, table,
};

pub mod contest;
pub mod figures;
pub mod history;
pub mod holds;
pub mod judge;
pub mod open_loop;
pub mod outage;
pub mod peers;
pub mod relay;
pub mod report;
pub mod resource;
pub mod servers;
