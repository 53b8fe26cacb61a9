//! Waits until events have reached the sockets of their clients.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use crate::{
    race::first_of,
    turn::{outbox::Outbox, stats::Peer},
    universe::state::UniverseState,
};

/// A connection that owes its client events.
struct Owing {
    /// Its number, which another one may have by now.
    conn: usize,
    outbox: Arc<Outbox>,
    /// The total number of events it has been given.
    pushed: u32,
}

/// Waits until every event of the turns before this is in its client's socket; whether it is.
///
/// A client whose socket is full, because it does not read, is not waited for, nor one that is
/// gone. Inside the process a client's events are where it reads them as soon as the turn is over.
pub(crate) async fn told(shared: &UniverseState, within: Duration) -> bool {
    let waiting = shared.turns.activity.wait();
    let mut owing: Vec<Owing> = shared.turns.look(|look| {
        let sockets = look.members.iter();
        let sockets = sockets.filter(|(_, member)| member.stats.peer != Peer::Local);
        sockets
            .filter_map(|(conn, member)| {
                let pushed = member.outbox.owed()?;
                let outbox = Arc::clone(&member.outbox);
                Some(Owing {
                    conn,
                    outbox,
                    pushed,
                })
            })
            .collect()
    });
    let all_written = async {
        loop {
            // Before the look: what happens after it is not missed.
            let (written, turned) = (waiting.written(), waiting.turned());
            shared.turns.look(|look| {
                owing.retain(|owing| {
                    let member = look.members.get(owing.conn);
                    let is_there = member.is_some_and(|it| Arc::ptr_eq(&it.outbox, &owing.outbox));
                    is_there && owing.outbox.owes(owing.pushed)
                });
            });
            if owing.is_empty() {
                return;
            }
            first_of(written, turned).await;
        }
    };
    timeout(within, all_written).await.is_ok()
}
