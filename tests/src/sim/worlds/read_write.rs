//! Readers and writers; some writers downgrade.

use std::sync::Arc;

use minikeeper_recipes::{Guard, InterProcessReadWriteLock, LockError, Owner, Status, WriteGuard};

use crate::sim::{
    contender::{Contender, own},
    judge::{HoldId, Kind},
};

const PATH: &str = "/locks/read-write";

pub(super) async fn contend(mut me: Contender) {
    let (client, options) = (me.client.clone(), me.options.clone());
    let lock = InterProcessReadWriteLock::with_options(client, PATH, options).unwrap();
    let owner = Owner::new();
    while me.next_round().await {
        match me.chance.below(4) {
            0 => {
                let writer = me
                    .get(
                        |within| lock.acquire_write().within(within),
                        || lock.acquire_write(),
                    )
                    .await;
                if let Some(writer) = writer {
                    write(&mut me, writer).await;
                }
            }
            1 => write_and_read(&mut me, &lock, &owner).await,
            _ => {
                let reader = me
                    .get(
                        |within| lock.acquire_read().within(within),
                        || lock.acquire_read(),
                    )
                    .await;
                if let Some(reader) = reader {
                    read(&mut me, reader, Kind::Read).await;
                }
            }
        }
    }
}

/// Holds the write lock, and sometimes downgrades.
async fn write(me: &mut Contender, writer: WriteGuard) {
    let (hold, writer) = hold_to_write(me, writer);
    me.keep(writer.lost()).await;
    me.judge.ended(hold);
    let writer = own(writer);
    if me.chance.once_in(2) {
        me.give_back(writer, |writer| writer.release()).await;
        return;
    }
    match me.must("downgrading", writer.downgrade()).await {
        Some(Ok(reader)) => read(me, reader, Kind::ReadOn).await,
        Some(Err(LockError::HoldLost { .. } | LockError::Client(_))) | None => {}
        Some(Err(error)) => me.failed(format!("cannot downgrade: {error}")),
    }
}

/// Acquires the read lock while holding the write lock, and keeps it after releasing the write
/// lock.
async fn write_and_read(me: &mut Contender, lock: &InterProcessReadWriteLock, owner: &Owner) {
    let writer = me
        .get(
            |within| lock.acquire_write().as_owner(owner).within(within),
            || lock.acquire_write().as_owner(owner),
        )
        .await;
    let Some(writer) = writer else { return };
    let (hold, writer) = hold_to_write(me, writer);
    me.judge.unattended(hold);
    let reader = me
        .must(
            "reading while holding the write lock",
            lock.acquire_read().as_owner(owner),
        )
        .await;
    me.judge.ended(hold);
    me.give_back(own(writer), |writer| writer.release()).await;
    match reader {
        Some(Ok(reader)) => read(me, reader, Kind::ReadOn).await,
        Some(Err(LockError::HoldLost { .. } | LockError::Client(_))) | None => {}
        Some(Err(error)) => me.failed(format!("cannot read while holding the write lock: {error}")),
    }
}

fn hold_to_write(me: &Contender, writer: WriteGuard) -> (HoldId, Arc<WriteGuard>) {
    let writer = Arc::new(writer);
    let held = Arc::clone(&writer);
    let grant = (writer.token(), writer.epoch());
    let hold = me.granted("write lock", PATH, Kind::Exclusive, grant, move || {
        !matches!(held.status(), Status::Lost(_))
    });
    (hold, writer)
}

async fn read(me: &mut Contender, reader: Guard, kind: Kind) {
    let recipe = match kind {
        Kind::ReadOn => "read lock of a writer",
        _ => "read lock",
    };
    let reader = Arc::new(reader);
    let hold = me.granted_guard(recipe, PATH, kind, &reader);
    me.keep(reader.lost()).await;
    me.judge.ended(hold);
    me.give_back(own(reader), |reader| reader.release()).await;
}
