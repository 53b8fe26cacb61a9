//! The lock bench: what locks cost, how fair they are, and whether they keep their promises. It
//! measures minikeeper's recipes and the locks of ZooKeeper, Curator, Redis, etcd and MariaDB.
//!
//! | module | content |
//! | --- | --- |
//! | [`contest`] | contenders that acquire one lock again and again |
//! | [`open_loop`] | requests for a lock at a fixed rate |
//! | [`outage`] | a holder that is killed, cut off or paused |
//! | [`peers`] | the measured locks, behind one trait |
//! | [`servers`] | the other servers: found, started, stopped |
//! | [`relay`] | a relay that counts traffic, and can hold or cut it |
//! | [`resource`] | the resource a lock protects; it refuses late writers |
//! | [`history`] | the events in a run of a lock |
//! | [`holds`] | the holds in a history |
//! | [`judge`] | whether the lock excluded and fenced in that run |
//! | [`figures`] | figures computed from the history of a run |
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
