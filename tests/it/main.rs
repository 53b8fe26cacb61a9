//! Tests of a whole server on a loopback port, with well-behaved and with faulty clients.
//!
//! One executable, so that it links once. Each test of a protocol rule cites its section of
//! `docs/zookeeper-protocol.md`.
//!
//! | module | contents |
//! | --- | --- |
//! | `kit` | a server with a bystander, bounded waits, memory, logs; no assertion on a feature |
//! | `http` | requests to the control API; no assertion on a feature |
//! | `bad_input` | malformed bytes: before and after the handshake, bodies, operations |
//! | `paths` | path rules as seen over the wire |
//! | `pacing` | how bytes arrive: pipelined, split, half-closed, slow readers |
//! | `memory` | clients that cost memory: they never read, never finish a frame, or are ten thousand |
//! | `journal` | the journal: what it contains, filters, verifications |
//! | `limits` | each limit of the configuration: its effect, and the log line that names it |
//! | `throttling` | limits on handshakes and on waiting requests |
//! | `sessions` | resume, move, expiry, negotiation, close |
//! | `session_verbs` | list, expire and disconnect sessions by id, address, identity, owner |
//! | `time` | the clock: frozen, running, advanced; deadlines on the way |
//! | `advice` | known mistakes of clients that the journal shows |
//! | `locks` | who holds each lock, who waits for whom, warnings, deadlocks |
//! | `story` | the story of a failed test, with tests that fail on purpose |
//! | `waiting` | waiting for watches, children, contenders and idleness |
//! | `saving` | what a server saves to its data directory, and what the next server restores |
//! | `logging` | transaction logs: what a server appends, and what the next server recovers |
//! | `control`, `control_verbs`, `control_faults`, `control_universes`, `control_restarting` | HTTP: access, limits; each verb |
//! | `control_access` | every route with every `Origin`, `Host` and `Sec-Fetch-Site` |
//! | `page` | the page: its files, headers, access |
//! | `admin` | AdminServer on the same port: every command, access, methods, limits; metrics |
//! | `seeding` | seeding, exporting and comparing trees |
//! | `moving` | importing and exporting data directories |
//! | `restarting` | a server that goes down and comes up on the same port |
//! | `rewinding` | snapshots of the state, and restoring them |
//! | `universes` | several trees on one server |
//! | `four_letter` | four-letter words |
//! | `four_letter_captured` | four-letter words against captured replies of ZooKeeper |
//! | `embedding` | a server inside the process of a test suite |
//! | `faults` | injected faults: requests, replies, connections, events |
//! | `fail_stop` | a panic inside a turn stops the server; a panic elsewhere does not |
//! | `schemes` | authentication, after ZooKeeper's own tests: digests, ensemble, key; the allowlist of words |
//! | `secrets` | secrets that must not leak: passwords, tokens, hashes; one test per ZooKeeper advisory |
//! | `tls` | clients over TLS, their certificates |
//! | `misuse` | verbs that match nothing, and invalid names |
//! | `local` | in-process connections, without a socket |

#![allow(
    clippy::unwrap_used,
    reason = "everything here is test code, helpers included"
)]

mod admin;
mod advice;
mod bad_input;
mod control;
mod control_access;
mod control_faults;
mod control_restarting;
mod control_universes;
mod control_verbs;
mod embedding;
mod ensemble;
mod fail_stop;
mod faults;
mod four_letter;
mod four_letter_captured;
mod http;
mod journal;
mod kit;
mod limits;
mod local;
mod locks;
mod logging;
mod memory;
mod misuse;
mod moving;
mod pacing;
mod page;
mod paths;
mod recording;
mod restarting;
mod rewinding;
mod saving;
mod schemes;
mod secrets;
mod seeding;
mod session_verbs;
mod sessions;
mod story;
mod throttling;
mod time;
mod tls;
mod universes;
mod waiting;
