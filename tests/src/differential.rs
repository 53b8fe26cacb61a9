//! The differential tester: minikeeper and a live ZooKeeper get the same requests and must send the
//! same replies and events.
//!
//! Each scenario case and each random history starts both with an empty tree and a manual clock. So
//! zxids, times and timeouts are equal to the bit. Only what the protocol leaves open is normalised
//! before frames are compared (see [`canonical`]).
//!
//! | module | contents |
//! | --- | --- |
//! | [`server`] | the trait [`server::Server`]; minikeeper in this process |
//! | [`original`] | ZooKeeper in a Java process, controlled by commands |
//! | [`socket`] | scenarios over sockets |
//! | [`scenarios`] | the scenario files on both servers |
//! | [`history`] | steps, run on two servers side by side |
//! | [`generate`] | random steps |
//! | [`shrink`] | the smallest history that still differs |
//! | [`report`] | a history as a scenario |
//! | [`recordings`] | random recordings, replayed on another server |
//! | [`hunt`] | random histories until there is a difference |
//! | [`known`] | the differences that are excused |

pub mod generate;
mod generate_words;
pub mod history;
pub mod hunt;
pub mod known;
pub mod original;
pub mod recordings;
pub mod report;
pub mod scenarios;
pub mod server;
pub mod shrink;
pub mod side;
pub mod socket;

pub use minikeeper_core::replay::{canonical, link};
