//! Checks a recorded history by zxid.
//!
//! Every reply has the zxid of the state that it shows, and every write takes a zxid. So the order
//! in which the server claims to have served the requests is known: sorted by zxid, each write
//! before the reads of its state. The naive model runs in that order, and each connection must have
//! received the same replies and events in the same order. The history is linearizable if that
//! order also agrees with real time.

use minikeeper_engine::{ConnId, Input, Now, Settings};
use minikeeper_protocol::{
    ConnectRequest, ErrorCode, EventKind, MultiResult, Reply, Request, SessionId, Stat, Xid, Zxid,
};

use crate::{drive::Sent, model::Model};

/// A request, its reply, and when they were sent and received.
#[derive(Clone, Debug)]
pub struct Call {
    /// The xid of the request.
    pub xid: Xid,
    /// The request.
    pub request: Request,
    /// When the request was sent, on a counter that all clients share.
    pub invoked: u64,
    /// When the reply arrived, on the same counter.
    pub returned: u64,
    /// The zxid in the reply header.
    pub zxid: Zxid,
    /// The body of the reply, or the error code.
    pub outcome: Result<Reply, ErrorCode>,
}

/// What a connection received, in order.
#[derive(Clone, Debug)]
pub enum Received {
    /// A reply.
    Reply(Box<Call>),
    /// An event.
    Event {
        /// The type of the event.
        kind: EventKind,
        /// The path of the znode.
        path: String,
        /// The zxid of the change that fired the watch.
        zxid: Zxid,
    },
}

/// One connection and its session.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The session.
    pub session: SessionId,
    /// Everything it received after the handshake.
    pub received: Vec<Received>,
}

/// The size of a history.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Requests that take a zxid.
    pub writes: usize,
    /// Requests that do not.
    pub reads: usize,
    /// Events.
    pub events: usize,
}

/// Checks the history of a server that started with zxid 0.
///
/// The connections are listed in the order of their handshakes, all of which must have finished
/// before the first request was sent.
///
/// # Errors
/// The first reply or event that the order of zxids does not explain.
pub fn check(connections: &[Recorded]) -> Result<Summary, String> {
    let mut calls = Vec::new();
    for (conn, recorded) in connections.iter().enumerate() {
        for received in &recorded.received {
            if let Received::Reply(call) = received {
                calls.push((conn, &**call));
            }
        }
    }
    check_real_time(&calls)?;
    // Stable, so that the reads of one connection stay in their order.
    calls.sort_by_key(|(_, call)| (call.zxid, !is_write(&call.request)));
    let sent = run_model(connections, &calls)?;
    let ends: Vec<_> = calls
        .iter()
        .filter(|(_, call)| call.request == Request::CloseSession)
        .map(|(_, call)| call.zxid)
        .collect();
    let mut summary = Summary::default();
    for (conn, (recorded, expected)) in connections.iter().zip(sent).enumerate() {
        let got = recorded.received.iter().map(as_sent).collect();
        let (got, expected) = (comparable(got, &ends), comparable(expected, &ends));
        let differs = got
            .iter()
            .zip(&expected)
            .position(|(got, wanted)| got != wanted);
        let at = differs.unwrap_or_else(|| got.len().min(expected.len()));
        if at < got.len() || at < expected.len() {
            return Err(format!(
                "connection {conn}, message {at}:\n  expected {:?}\n  got      {:?}",
                expected.get(at),
                got.get(at)
            ));
        }
        let events = got.iter().filter(|sent| matches!(sent, Sent::Event { .. }));
        summary.events += events.count();
    }
    summary.writes = calls
        .iter()
        .filter(|(_, call)| is_write(&call.request))
        .count();
    summary.reads = calls.len() - summary.writes;
    Ok(summary)
}

/// Whether a request takes a zxid. Source: `docs/zookeeper-protocol.md` section 7.3.
#[must_use]
pub const fn is_write(request: &Request) -> bool {
    matches!(
        request,
        Request::Create(_)
            | Request::Delete { .. }
            | Request::SetData { .. }
            | Request::SetAcl { .. }
            | Request::Multi(_)
            | Request::Reconfig { .. }
            | Request::CloseSession
    )
}

/// Checks that a call which returned before another was invoked was served before it.
fn check_real_time(calls: &[(usize, &Call)]) -> Result<(), String> {
    let mut by_invoked: Vec<_> = calls.iter().map(|(_, call)| *call).collect();
    by_invoked.sort_by_key(|call| call.invoked);
    let mut by_returned = by_invoked.clone();
    by_returned.sort_by_key(|call| call.returned);
    let mut returned = by_returned.into_iter().peekable();
    let mut newest: Option<&Call> = None;
    for call in by_invoked {
        while let Some(before) = returned.next_if(|before| before.returned < call.invoked) {
            if newest.is_none_or(|newest| newest.zxid < before.zxid) {
                newest = Some(before);
            }
        }
        let Some(newest) = newest else { continue };
        let is_behind =
            call.zxid < newest.zxid || (call.zxid == newest.zxid && is_write(&call.request));
        if is_behind {
            return Err(format!(
                "{call:?}\n  shows an older state than an earlier reply:\n{newest:?}"
            ));
        }
    }
    Ok(())
}

/// Runs the model in the order of the zxids. Returns what each connection should have received.
fn run_model(connections: &[Recorded], calls: &[(usize, &Call)]) -> Result<Vec<Vec<Sent>>, String> {
    let settings = Settings {
        first_session_id: connections
            .first()
            .map_or(SessionId(1), |first| first.session),
        ..Settings::default()
    };
    let mut model = Model::new(&settings);
    let now = Now::default();
    for (conn, recorded) in connections.iter().enumerate() {
        let hello = ConnectRequest::new(10_000);
        let output = model.apply(
            now,
            &Input::Connect {
                conn: conn_id(conn),
                hello,
                is_read_only: false,
            },
            &[],
        )?;
        match output.first() {
            Some((_, Sent::Connected(response))) if response.session_id == recorded.session => {}
            other => return Err(format!("session {}: expected {other:?}", recorded.session)),
        }
    }
    let mut sent = vec![Vec::new(); connections.len()];
    for (conn, call) in calls {
        let expected = Zxid(model.zxid().0 + i64::from(is_write(&call.request)));
        if call.zxid != expected {
            return Err(format!(
                "zxid {expected} is missing or duplicate: connection {conn} has {call:?}"
            ));
        }
        let input = Input::Request {
            conn: conn_id(*conn),
            xid: call.xid,
            request: call.request.clone(),
        };
        for (to, what) in model.apply(now, &input, &[])? {
            if !matches!(what, Sent::Close(_)) {
                sent[to as usize].push(what);
            }
        }
    }
    Ok(sent)
}

fn conn_id(conn: usize) -> ConnId {
    ConnId(u32::try_from(conn).expect("histories have few connections"))
}

fn as_sent(received: &Received) -> Sent {
    match received {
        Received::Reply(call) => Sent::Reply {
            xid: call.xid,
            zxid: call.zxid,
            outcome: call.outcome.clone(),
        },
        Received::Event { kind, path, zxid } => Sent::Event {
            kind: *kind,
            path: path.clone(),
            zxid: *zxid,
        },
    }
}

/// Removes what the model cannot know: times, the order of names in a listing, and the order in
/// which a session's ephemerals are deleted when it ends.
fn comparable(mut list: Vec<Sent>, ends: &[Zxid]) -> Vec<Sent> {
    for sent in &mut list {
        sent.sort_names();
        if let Sent::Reply {
            outcome: Ok(reply), ..
        } = sent
        {
            forget_times(reply);
        }
    }
    let zxid_of = |sent: &Sent| match sent {
        Sent::Event { zxid, .. } if ends.contains(zxid) => Some(*zxid),
        _ => None,
    };
    for run in list.chunk_by_mut(|a, b| zxid_of(a).is_some() && zxid_of(a) == zxid_of(b)) {
        run.sort_by_key(|sent| format!("{sent:?}"));
    }
    list
}

fn forget_times(reply: &mut Reply) {
    let forget = |stat: &mut Stat| (stat.ctime_ms, stat.mtime_ms) = (0, 0);
    match reply {
        Reply::PathStat(_, stat)
        | Reply::Stat(stat)
        | Reply::Data(_, stat)
        | Reply::Children2(_, stat)
        | Reply::Acl(_, stat) => forget(stat),
        Reply::Multi(results) => {
            for result in results {
                if let MultiResult::Create2 { stat, .. }
                | MultiResult::SetData { stat }
                | MultiResult::GetData { stat, .. } = result
                {
                    forget(stat);
                }
            }
        }
        _ => {}
    }
}
