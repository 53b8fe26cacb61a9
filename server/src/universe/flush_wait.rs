//! Waits until events have reached the sockets of their clients.

use std::{sync::Arc, time::Duration};

use minikeeper_core::{outbox::Outbox, peer::Peer, race::first_of, state::UniverseState};
use tokio::time::timeout;

/// A connection with events that its client has not been sent.
struct Owing {
    /// Its number, which may have passed to another connection since.
    conn: usize,
    outbox: Arc<Outbox>,
    /// The number of events pushed to it so far.
    pushed: u32,
}

/// Waits until the events of all turns so far are in their clients' sockets. Returns false if that
/// takes longer than `within`.
///
/// Does not wait for clients that have disconnected, or whose socket is full because they do not
/// read. In-process clients can read their events as soon as the turn is over.
pub(crate) async fn events_written(shared: &UniverseState, within: Duration) -> bool {
    let waiting = shared.turns.activity.wait();
    let mut owing: Vec<Owing> = shared.turns.read(|locked| {
        let sockets = locked.members.iter();
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
            shared.turns.read(|locked| {
                owing.retain(|owing| {
                    let member = locked.members.get(owing.conn);
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
