//! Serves the requests that an injected fault applies to.

use std::{sync::Arc, task::Waker, time::Duration};

use minikeeper_engine::{ConnId, Input};

use crate::{
    faults::{
        Verdict,
        action::FaultAction,
        aftermath::{Aftermath, ReplyFate},
        delayed::Delayed,
        rule::{HeldEvent, Subject},
    },
    turn::{
        effects::TurnEffects,
        outbox::{Close, Outbox},
        turns::{Batch, Leftover, Turns},
    },
    universe::state::UniverseState,
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

/// Finds the fault that acts on a request, among those after `after`.
pub(crate) fn judge(
    shared: &UniverseState,
    conn: ConnId,
    input: &Input,
    after: u64,
) -> Option<Verdict> {
    // Looked up for each request, because the one before may have been the handshake.
    let (session, peer) = shared.turns.look(|look| {
        let member = look.members.get(conn.0 as usize)?;
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
    shared.turns.faults.judge(&subject, after)
}

/// Serves a request as a fault demands.
pub(crate) fn serve(
    shared: &UniverseState,
    verdict: Option<Verdict>,
    request: FaultedRequest,
    out: &mut Vec<u8>,
    wakes: &mut Vec<Waker>,
) -> Leftover {
    let action = verdict.as_ref().map(|verdict| verdict.action);
    if let Some(Verdict { rule, action, .. }) = &verdict {
        shared
            .turns
            .note_fault(request.conn, &request.input, *rule, action.name());
    }
    let leftover = carry_out(shared, action, request, out, wakes);
    if let Some(verdict) = verdict {
        verdict.hits.hit();
    }
    leftover
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
        Some(FaultAction::Cut) => {
            wakes.extend(late.and_then(|outbox| outbox.close(Close::Injected)));
            return cut();
        }
        Some(FaultAction::Error(error)) => {
            input.refuse(error);
            (ReplyFate::Sent, false)
        }
        Some(FaultAction::LoseReply) => (ReplyFate::Lost, true),
        Some(FaultAction::NeverAnswer) => (ReplyFate::Lost, false),
        Some(FaultAction::CutReply) => (ReplyFate::Half, true),
        None | Some(FaultAction::Delay(_) | FaultAction::Refuse | FaultAction::HoldEvents) => {
            (ReplyFate::Sent, false)
        }
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
    let by_ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
    let until_ms = shared.turns.clock().elapsed_ms().saturating_add(by_ms);
    shared
        .turns
        .note_fault(delayed.conn, &delayed.input, delayed.rule, "delay");
    shared.turns.faults.delay(until_ms, delayed)?;
    shared.turns.alarm.rearm_for(Some(until_ms));
    Ok(())
}

/// Serves the requests whose delay is over.
pub(crate) fn serve_due(shared: &UniverseState) {
    let elapsed_ms = shared.turns.clock().elapsed_ms();
    while let Some(delayed) = shared.turns.faults.take_due(elapsed_ms) {
        serve_late(shared, delayed);
    }
}

/// Serves a delayed request here and not on its connection's task: when a caller advances the
/// clock, everything must happen at its own time, and in order.
fn serve_late(shared: &UniverseState, mut delayed: Delayed) {
    let conn = delayed.conn;
    let mut verdict = judge(shared, conn, &delayed.input, delayed.rule);
    while let Some(Verdict {
        rule,
        action: FaultAction::Delay(by),
        hits,
    }) = verdict
    {
        delayed.rule = rule;
        match delay(shared, by, delayed) {
            Ok(()) => return hits.hit(),
            Err(back) => delayed = *back,
        }
        verdict = judge(shared, conn, &delayed.input, rule);
    }
    let Delayed {
        input,
        length,
        outbox,
        mut held,
        kept,
        writer,
        ..
    } = delayed;
    let request = FaultedRequest {
        conn,
        input,
        length,
        arrived_ms: None,
        late: Some(Arc::clone(&outbox)),
    };
    let (mut out, mut wakes) = (Vec::new(), Vec::new());
    serve(shared, verdict, request, &mut out, &mut wakes);
    shared.limits.release(&mut held);
    // After the reply is in the outbox, so that the connection finds it when it continues.
    wakes.extend(outbox.end_delay());
    wakes.extend(writer);
    wakes.into_iter().for_each(Waker::wake);
    drop(kept);
}

/// Removes one fault, or all, and releases what they held. Returns the number of faults removed.
pub(crate) fn remove(shared: &UniverseState, id: Option<u64>) -> usize {
    let faults = &shared.turns.faults;
    let released = shared.turns.alter(|_, _, effects| {
        let mut released = faults.remove(id);
        for event in std::mem::take(&mut released.events) {
            send(event, effects);
        }
        released
    });
    // A broken server sends nothing.
    let released = released.unwrap_or_else(|| faults.remove(id));
    for delayed in released.requests {
        serve_late(shared, delayed);
    }
    released.faults
}

/// Sends a held event.
fn send(event: HeldEvent, effects: &mut TurnEffects<'_>) {
    let Some(member) = effects.members.get(event.conn.0 as usize) else {
        return;
    };
    let bytes = event.frame.len();
    let pushed = member
        .outbox
        .push(effects.outbox_bytes_max, |out| out.extend(event.frame));
    match pushed {
        Ok(pushed) => {
            effects.counters.event(bytes);
            effects.wakes.extend(pushed.waker);
            if effects.unsent.add(pushed.grown_bytes) {
                effects.relieve_unsent();
            }
        }
        Err(overflow) => {
            effects.counters.limit_hits.outboxes += 1;
            effects.wakes.extend(overflow.waker);
        }
    }
}
