//! Real sockets: a whole server on a loopback port, and clients that misbehave.
//!
//! One executable, so that it links once. Every rule names its section of
//! `docs/zookeeper-protocol.md`.
//!
//! | module | what belongs there |
//! | --- | --- |
//! | `kit` | a server with a bystander, bounded waiting, memory, logs; no assertion on a feature |
//! | `http` | requests for control; no assertion on a feature |
//! | `bad_input` | bytes that make no sense: before and after the handshake, bodies, operations |
//! | `paths` | path rules as seen over the wire |
//! | `pacing` | how bytes arrive: pipelined, split, half-closed, slow readers |
//! | `memory` | clients that cost memory: never reading, never finishing, ten thousand of them |
//! | `limits` | each limit of the configuration: what meets it, and the log line that names it |
//! | `throttling` | limits on handshakes and on requests that wait |
//! | `sessions` | resume, move, expiry, negotiation, close |
//! | `session_verbs` | sessions as a test sees, ends and cuts them: by id, address, identity, owner |
//! | `time` | the clock: frozen, running, moved, and what falls due in between |
//! | `waiting` | waiting for watches, children, contenders and quiet |
//! | `saving` | what a server leaves behind for the next one on its data directory |
//! | `control`, `control_verbs`, `control_universes`, `control_restarting` | HTTP: who may, limits; what each verb does |
//! | `seeding` | trees put there, taken out and compared |
//! | `moving` | data directories that are imported and exported |
//! | `restarting` | a server that goes down and comes up on the same port |
//! | `four_letter` | questions an operator types into a fresh connection |
//! | `four_letter_captured` | the same words against captured replies of ZooKeeper |
//! | `embedding` | what a test suite does with a server in its process |
//! | `guide`, `guide_start` | the code in the pages of `docs/` |
//! | `faults` | what a test lets go wrong: requests, replies, connections, events |
//! | `fail_stop` | a panic inside a turn, and panics that are none of its business |
//! | `schemes` | who a client is, by ZooKeeper's own tests: digests, ensemble, key; which words are answered |
//! | `secrets` | what must not be told: passwords, tokens, hashes; named tests for advisories about ZooKeeper |
//! | `tls` | clients over TLS, their certificates |
//! | `misuse` | verbs that meet nothing, and names that can name nothing |
//! | `local` | the connection without a socket |

#![allow(
    clippy::unwrap_used,
    reason = "all of it is test code, its helpers included"
)]

mod bad_input;
mod control;
mod control_faults;
mod control_restarting;
mod control_universes;
mod control_verbs;
mod embedding;
mod fail_stop;
mod faults;
mod four_letter;
mod four_letter_captured;
mod guide;
mod guide_start;
mod http;
mod kit;
mod limits;
mod local;
mod logging;
mod memory;
mod misuse;
mod moving;
mod pacing;
mod paths;
mod restarting;
mod rewinding;
mod saving;
mod schemes;
mod secrets;
mod seeding;
mod session_verbs;
mod sessions;
mod throttling;
mod time;
mod tls;
mod universes;
mod waiting;
