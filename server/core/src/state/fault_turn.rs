//! Serves the requests that an injected fault applies to.

use std::{convert::Infallible, sync::Arc, task::Waker, time::Duration};

use minikeeper_engine::{ConnId, Input};
use minikeeper_protocol::SessionId;

use crate::{
    faults::{
        Verdict,
        action::FaultAction,
        aftermath::{self, Aftermath, ReplyFate},
        delayed::Delayed,
        rule::Subject,
    },
    outbox::{Close, Outbox},
    session_selector::SessionSelector,
    state::UniverseState,
    turn::turns::{Batch, Leftover, Turns},
};

/// A request to which faults may apply.
#[derive(Debug)]
pub(crate) struct FaultedRequest {
    pub(crate) conn: ConnId,
    pub(crate) input: Input,
    /// The length of its frame. Unit: bytes.
    pub(crate) length: usize,
    /// See [`Batch::arrived_ms`].
    pub(crate) arrived_ms: Option<u64>,
    /// The outbox for the reply if the connection's task does not take part.
    pub(crate) late: Option<Arc<Outbox>>,
}

/// Finds the fault that acts on a request, among those after `after`, and delays the request if faults
/// say so. Returns `None` if it is delayed.
///
/// `delay` delays a request for a fault, or returns it if that fault has just been removed.
pub(crate) fn judge_or_delay<E>(
    shared: &UniverseState,
    conn: ConnId,
    mut input: Input,
    after: u64,
    mut delay: impl FnMut(Input, u64, Duration) -> Result<Option<Input>, E>,
) -> Result<Option<(Input, Option<Verdict>)>, E> {
    let mut verdict = judge(shared, conn, &input, after);
    while let Some(Verdict {
        rule,
        action: FaultAction::Delay(by),
        ..
    }) = verdict
    {
        match delay(input, rule, by)? {
            Some(back) => input = back,
            None => {
                verdict.expect("it is matched").begun();
                return Ok(None);
            }
        }
        verdict = judge(shared, conn, &input, rule);
    }
    Ok(Some((input, verdict)))
}

/// Finds the fault that acts on a request, among those after `after`.
fn judge(shared: &UniverseState, conn: ConnId, input: &Input, after: u64) -> Option<Verdict> {
    // Looked up for each request, because the one before may have been the handshake.
    let (session, peer) = shared.turns.read(|locked| {
        let member = locked.members.get(conn.0 as usize)?;
        Some((member.session, member.stats.peer.clone()))
    })?;
    let subject = Subject {
        input,
        session: match input {
            Input::Connect { hello, .. } => hello.session_id,
            _ => session,
        },
        peer: &peer,
    };
    let now_ms = shared.turns.clock().elapsed_ms();
    shared.turns.faults.judge(&subject, now_ms, after)
}

/// Serves a request as a fault demands. Returns the verdict, too, if it is to delay the reply: the
/// caller does so, and counts it then.
pub(crate) fn serve(
    shared: &UniverseState,
    verdict: Option<Verdict>,
    request: FaultedRequest,
    out: &mut Vec<u8>,
    wakes: &mut Vec<Waker>,
) -> (Leftover, Option<Verdict>) {
    let action = verdict.as_ref().map(|verdict| verdict.action);
    let conn = request.conn;
    if let Some(Verdict { rule, action, .. }) = &verdict {
        shared
            .turns
            .note_fault(request.conn, &request.input, *rule, action.name());
    }
    shared.mark_for_rollback();
    let mut leftover = carry_out(shared, action, request, out, wakes);
    shared.mark_for_rollback();
    if action.is_some_and(FaultAction::delays_reply) && leftover.close.is_none() {
        return (leftover, verdict);
    }
    if let Some(verdict) = verdict {
        let session = session_of(shared, conn);
        if let Some(why) = follow(shared, &verdict, session) {
            leftover.close.get_or_insert(why);
        }
        verdict.done(session);
    }
    (leftover, None)
}

/// Does what follows a request that was served. Returns why its connection must close, if it must.
fn follow(shared: &UniverseState, verdict: &Verdict, session: SessionId) -> Option<Close> {
    let turns = &shared.turns;
    match verdict.action {
        // The reply is on its way.
        FaultAction::Expire => expire(shared, session),
        FaultAction::Outage(_) => turns.close_all(Close::Injected),
        FaultAction::Crash => {
            let sessions =
                turns.read(|locked| locked.engine.sessions().map(|(id, ..)| id).collect());
            turns.faults.shut_out(verdict.rule, sessions);
            turns.close_all(Close::Injected);
        }
        FaultAction::Rollback(changes) => shared.roll_back(changes),
        _ => return None,
    }
    Some(Close::Injected)
}

fn expire(shared: &UniverseState, session: SessionId) {
    let owner = SessionSelector::from(session);
    shared.turns.expire(|locked| locked.find(&owner));
}

/// Returns the session of a connection; NONE if it has none, or has closed.
fn session_of(shared: &UniverseState, conn: ConnId) -> SessionId {
    shared.turns.read(|locked| {
        let member = locked.members.get(conn.0 as usize);
        member.map_or(SessionId::NONE, |member| member.session)
    })
}

fn carry_out(
    shared: &UniverseState,
    action: Option<FaultAction>,
    request: FaultedRequest,
    out: &mut Vec<u8>,
    wakes: &mut Vec<Waker>,
) -> Leftover {
    let FaultedRequest {
        conn,
        mut input,
        length,
        arrived_ms,
        late,
    } = request;
    let cut = || Leftover {
        close: Some(Close::Injected),
        ..Leftover::default()
    };
    let (reply, cuts) = match action {
        Some(FaultAction::DropRequest) => return Leftover::default(),
        Some(FaultAction::Cut | FaultAction::Outage(_) | FaultAction::ClientOutage(_)) => {
            wakes.extend(late.and_then(|outbox| outbox.close(Close::Injected)));
            return cut();
        }
        Some(FaultAction::Error(error)) => {
            input.refuse(error);
            (ReplyFate::Sent, false)
        }
        Some(FaultAction::LoseReply | FaultAction::Crash) => (ReplyFate::Lost, true),
        Some(FaultAction::NeverAnswer) => (ReplyFate::Lost, false),
        Some(FaultAction::CutReply) => (ReplyFate::Half, true),
        Some(FaultAction::CutAfter | FaultAction::Rollback(_)) => (ReplyFate::Sent, true),
        _ => (ReplyFate::Sent, false),
    };
    let aftermath = Aftermath { reply, cuts, late };
    let batch = Batch {
        conn,
        inputs: std::slice::from_ref(&input),
        ends: &[length],
        start: 0,
        arrived_ms,
        // The request is served however much output waits: left over, it would be judged again.
        out_bytes_max: usize::MAX,
        aftermath: Some(&aftermath),
    };
    let mut leftover = serve_apart(&shared.turns, batch, out, wakes);
    if cuts {
        leftover.close.get_or_insert(Close::Injected);
    }
    leftover
}

/// Takes a turn. Not inlined, so that [`Turns::serve`] stays inlined in its usual caller.
#[inline(never)]
fn serve_apart(
    turns: &Turns,
    batch: Batch<'_>,
    out: &mut Vec<u8>,
    wakes: &mut Vec<Waker>,
) -> Leftover {
    turns.serve(batch, out, wakes)
}

/// Delays a request. Returns it if the fault that delays it has been removed.
pub(crate) fn delay(
    shared: &UniverseState,
    by: Duration,
    delayed: Delayed,
) -> Result<(), Box<Delayed>> {
    if let Some(input) = &delayed.input {
        shared
            .turns
            .note_fault(delayed.conn, input, delayed.rule, "delay");
    }
    wait(shared, by, delayed)
}

/// Lets a request wait until a caller picks it. Returns it if that is over.
pub(crate) fn wait_for_pick(shared: &UniverseState, delayed: Delayed) -> Result<(), Box<Delayed>> {
    shared.turns.faults.delay(u64::MAX, delayed)
}

/// Delays the reply, if there is one, of the request that was just served into `out` from `from`
/// on. Returns what is left if the fault has been removed.
pub(crate) fn delay_reply(
    shared: &UniverseState,
    by: Duration,
    delayed: Delayed,
    out: &mut Vec<u8>,
    from: usize,
) -> Result<(), Box<Delayed>> {
    let outbox = Arc::clone(&delayed.outbox);
    let pauses = delayed.pause.is_some().then_some(delayed.conn);
    if pauses.is_some() {
        outbox.begin_pause();
    }
    if let Some(start) = aftermath::last_reply(out, from) {
        outbox.hold_reply(out.split_off(start));
    }
    wait(shared, by, delayed).inspect_err(|_| {
        outbox.end_delay();
    })?;
    if let Some(conn) = pauses {
        expire(shared, session_of(shared, conn));
    }
    Ok(())
}

/// Lets a request or reply wait. Returns it if its fault has been removed.
fn wait(shared: &UniverseState, by: Duration, delayed: Delayed) -> Result<(), Box<Delayed>> {
    let by_ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
    let until_ms = shared.turns.clock().elapsed_ms().saturating_add(by_ms);
    shared.turns.faults.delay(until_ms, delayed)?;
    shared.turns.alarm.rearm_for(Some(until_ms));
    Ok(())
}

/// Sends the events whose delay is over: those for a connection that sends a request, if one was
/// served before, or those that are due.
pub(crate) fn send_delayed_events(shared: &UniverseState, to: Option<ConnId>) {
    let faults = &shared.turns.faults;
    if !faults.hold_events() {
        return;
    }
    shared.turns.alter(|_, now, effects| {
        for event in faults.take_events(to, now.elapsed_ms) {
            effects.send_held(event.conn, event.frame);
        }
    });
}

/// Serves the requests, and sends the replies, whose delay is over.
pub(crate) fn serve_due(shared: &UniverseState) {
    let elapsed_ms = shared.turns.clock().elapsed_ms();
    while let Some(delayed) = shared.turns.faults.take_due(elapsed_ms) {
        serve_late(shared, delayed);
    }
}

/// Serves a delayed request here and not on its connection's task: when a caller advances the
/// clock or picks a request, everything must happen at its own time, and in order.
pub(crate) fn serve_late(shared: &UniverseState, mut delayed: Delayed) {
    let conn = delayed.conn;
    let mut wakes = Vec::new();
    if let Some(input) = delayed.input.take() {
        let after = delayed.rule;
        let mut waiting = Some(delayed);
        let delay_again = |input, rule, by| {
            let mut again = waiting.take().expect("it came back from the last delay");
            (again.rule, again.input) = (rule, Some(input));
            Ok::<_, Infallible>(delay(shared, by, again).err().and_then(|mut back| {
                let input = back.input.take();
                waiting = Some(*back);
                input
            }))
        };
        let Ok(judged) = judge_or_delay(shared, conn, input, after, delay_again);
        let (Some((input, verdict)), Some(back)) = (judged, waiting) else {
            return;
        };
        delayed = back;
        let request = FaultedRequest {
            conn,
            input,
            length: delayed.length,
            arrived_ms: None,
            late: Some(Arc::clone(&delayed.outbox)),
        };
        if verdict
            .as_ref()
            .is_some_and(|verdict| verdict.action.delays_reply())
        {
            delayed.outbox.hold_reply(Vec::new());
        }
        let (leftover, verdict) = serve(shared, verdict, request, &mut Vec::new(), &mut wakes);
        if let Some(why) = leftover.close {
            // The task of the connection closes it, behind the reply.
            wakes.extend(delayed.outbox.close(why));
        }
        if let Some(verdict) = verdict {
            delayed.rule = verdict.rule;
            delayed.pause = verdict.action.pause();
            let by = verdict.action.delay().unwrap_or_default();
            match delay_reply(shared, by, delayed, &mut Vec::new(), 0) {
                Ok(()) => {
                    verdict.begun();
                    return wakes.into_iter().for_each(Waker::wake);
                }
                Err(back) => delayed = *back,
            }
        }
    }
    if let Some(by) = delayed.pause.take() {
        wakes.extend(delayed.outbox.send_held());
        match wait(shared, by, delayed) {
            Ok(()) => return wakes.into_iter().for_each(Waker::wake),
            Err(back) => delayed = *back,
        }
    }
    let Delayed {
        outbox,
        mut held,
        kept,
        writer,
        ..
    } = delayed;
    shared.limits.release(&mut held);
    // After the reply is in the outbox, so that the connection finds it when it continues.
    wakes.extend(outbox.end_delay());
    wakes.extend(writer);
    wakes.into_iter().for_each(Waker::wake);
    drop(kept);
}

/// Removes one fault, or all, and releases what they held. Returns the number of faults removed.
pub fn remove(shared: &UniverseState, id: Option<u64>) -> usize {
    let faults = &shared.turns.faults;
    let released = shared.turns.alter(|_, _, effects| {
        let mut released = faults.remove(id);
        for event in std::mem::take(&mut released.events) {
            effects.send_held(event.conn, event.frame);
        }
        released
    });
    // A broken server sends nothing.
    let released = released.unwrap_or_else(|| faults.remove(id));
    for delayed in released.delayed {
        serve_late(shared, delayed);
    }
    shared.forget_rollback();
    released.faults
}
