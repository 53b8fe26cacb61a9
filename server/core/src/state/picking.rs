//! Requests that wait until a caller picks the next one, to try an order of them.
//!
//! Handshakes, pings and authentication do not wait: a client that is held stays connected.

use std::time::Duration;

use minikeeper_engine::{Footprint, Input};
use minikeeper_protocol::{OpCode, ReplyHeader, SessionId, Xid, frame};

use crate::{
    faults::{PICKED, hits::FaultHit},
    state::{UniverseState, fault_turn},
};

/// A request that waits to be picked.
#[derive(Clone, Debug)]
pub struct WaitingRequest {
    pub session: SessionId,
    /// The number of the server of the ensemble to which its client is connected; 0 inside the process.
    pub server: u8,
    /// The number of its connection, counted from 1.
    pub connection: u64,
    /// The port of its client; 0 inside the process.
    pub port: u16,
    /// Its operation by the name in the protocol.
    pub op: &'static str,
    /// Its path: the first, if there are several.
    pub path: Option<String>,
}

/// Returns whether a message waits to be picked.
pub(crate) fn is_held(input: &Input) -> bool {
    match input {
        Input::Request { request, .. } => {
            !matches!(request.op(), OpCode::Ping | OpCode::Auth | OpCode::Sasl)
        }
        _ => false,
    }
}

/// Makes each request wait from now on until it is picked.
pub fn begin(shared: &UniverseState) {
    shared.turns.faults.set_hold_requests(true);
}

/// Serves the requests that wait, and lets later ones pass.
pub fn end(shared: &UniverseState) {
    shared.turns.faults.set_hold_requests(false);
    fault_turn::remove(shared, Some(PICKED));
}

/// Returns the requests that wait, in the order in which they came: at most one of each connection.
pub fn waiting(shared: &UniverseState) -> Vec<WaitingRequest> {
    let mut waiting = Vec::new();
    shared.turns.read(|locked| {
        shared.turns.faults.each_waiting(|delayed| {
            let member = locked.members.get(delayed.conn.0 as usize);
            let (Some(member), Some(input)) = (member, &delayed.input) else {
                return;
            };
            let hit = FaultHit::of(input, member.session);
            waiting.push(WaitingRequest {
                session: member.session,
                server: member.stats.server,
                connection: member.stats.number,
                port: member.stats.peer.address().map_or(0, |at| at.port()),
                op: hit.op,
                path: hit.path,
            });
        });
    });
    waiting
}

/// Returns what the request of each of these connections that waits would read and write now.
pub fn footprints(shared: &UniverseState, connections: &[u64]) -> Vec<Footprint> {
    let mut found = vec![Footprint::default(); connections.len()];
    shared.turns.read(|locked| {
        shared.turns.faults.each_waiting(|delayed| {
            let member = locked.members.get(delayed.conn.0 as usize);
            let number = member.map(|member| member.stats.number);
            let place = connections
                .iter()
                .position(|wanted| Some(*wanted) == number);
            if let (Some(place), Some(Input::Request { conn, request, .. })) =
                (place, &delayed.input)
            {
                found[place] = locked.engine.footprint(*conn, request);
            }
        });
    });
    found
}

/// Returns the number of requests that wait.
pub fn count(shared: &UniverseState) -> usize {
    let mut count = 0;
    shared.turns.faults.each_waiting(|_| count += 1);
    count
}

/// Blocks the thread until a further request waits, for at most this time.
pub fn wait_for_request(shared: &UniverseState, within: Duration) {
    shared.turns.faults.wait_for_request(within);
}

/// Replies to a ping that was not sent, to each client whose request waits: nothing is read from it
/// meanwhile, and clients give a connection up that answers no ping.
pub fn keep_alive(shared: &UniverseState) {
    let mut conns = Vec::new();
    shared
        .turns
        .faults
        .each_waiting(|delayed| conns.push(delayed.conn));
    shared.turns.alter(|engine, _, effects| {
        for conn in conns {
            let header = ReplyHeader {
                xid: Xid::PING,
                zxid: engine.zxid(),
                error: None,
            };
            let mut frame = Vec::new();
            frame::put(&mut frame, |out| header.encode(out));
            effects.send_held(conn, frame);
        }
    });
}

/// Serves the first request of a session that waits. Returns false if it has none.
pub fn pick(shared: &UniverseState, session: SessionId) -> bool {
    let conn = shared.turns.read(|locked| {
        let mut found = None;
        shared.turns.faults.each_waiting(|delayed| {
            let member = locked.members.get(delayed.conn.0 as usize);
            if member.is_some_and(|member| member.session == session) {
                found.get_or_insert(delayed.conn);
            }
        });
        found
    });
    let picked = conn.and_then(|conn| shared.turns.faults.pick(conn));
    picked
        .map(|delayed| fault_turn::serve_late(shared, delayed))
        .is_some()
}
