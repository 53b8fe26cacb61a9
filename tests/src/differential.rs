//! The differential tester: minikeeper and a live original get the same, and must answer the same.
//!
//! Both run on clocks that are moved by hand, with empty trees, for each scenario case and for
//! each random history; so zxids, times and timeouts are equal to the bit, and only what the
//! protocol leaves open is put into one form before frames are compared (see [`canonical`]).
//!
//! | module | what is there |
//! | --- | --- |
//! | [`server`] | what is compared: [`server::Server`]; minikeeper in this process |
//! | [`original`] | ZooKeeper in a Java process that obeys commands |
//! | [`link`] | connections over blocking sockets |
//! | [`socket`] | scenarios over sockets |
//! | [`scenarios`] | the scenario files on both |
//! | [`canonical`] | frames in the one form they are compared in |
//! | [`history`] | steps, played on two servers side by side |
//! | [`generate`] | random steps |
//! | [`shrink`] | the smallest history that still differs |
//! | [`report`] | a history as a scenario |
//! | [`hunt`] | random histories until there is a difference |
//! | [`known`] | the differences there are meant to be |

pub mod canonical;
pub mod generate;
mod generate_words;
pub mod history;
pub mod hunt;
pub mod known;
pub mod link;
pub mod original;
pub mod report;
pub mod scenarios;
pub mod server;
pub mod shrink;
pub mod side;
pub mod socket;
