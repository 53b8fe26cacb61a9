//! Overlapping multi-locks with members of several kinds, acquired in one order.

use std::sync::Arc;

use minikeeper_recipes::{
    InterProcessMultiLock, InterProcessMutex, InterProcessReadWriteLock,
    InterProcessSemaphoreMutex, MultiGuard, MultiMember, Status,
};

use crate::sim::{
    contender::{Contender, own},
    judge::Kind,
};

/// The members, in the order of acquisition.
const PATHS: [&str; 4] = ["/locks/a", "/locks/b", "/locks/c", "/locks/d"];

pub(super) async fn contend(mut me: Contender) {
    while me.next_round().await {
        let (lock, members) = random_lock(&mut me);
        let guard = me
            .get(|within| lock.acquire().within(within), || lock.acquire())
            .await;
        let Some(guard) = guard else { continue };
        let guard = Arc::new(guard);
        let mut holds = Vec::new();
        for (&(path, kind), member) in members.iter().zip(guard.guards()) {
            let held: Arc<MultiGuard> = Arc::clone(&guard);
            let grant = (member.token(), member.epoch());
            holds.push(
                me.granted("member of a multi-lock", path, kind, grant, move || {
                    !matches!(held.status(), Status::Lost(_))
                }),
            );
        }
        me.keep(guard.lost()).await;
        for hold in holds {
            me.judge.ended(hold);
        }
        me.give_back(own(guard), |guard| guard.release()).await;
    }
}

/// Returns a multi-lock of two or three random members.
fn random_lock(me: &mut Contender) -> (InterProcessMultiLock, Vec<(&'static str, Kind)>) {
    let left_out = usize::try_from(me.chance.below(4)).unwrap();
    let left_out_too = usize::try_from(me.chance.below(4)).unwrap();
    let (mut members, mut kinds) = (Vec::new(), Vec::new());
    for (at, path) in PATHS.into_iter().enumerate() {
        if at == left_out || at == left_out_too {
            continue;
        }
        let (client, options) = (me.client.clone(), me.options.clone());
        let mut kind = Kind::Exclusive;
        members.push(match at {
            0 => InterProcessMutex::with_options(client, path, options)
                .unwrap()
                .into(),
            1 => InterProcessSemaphoreMutex::with_options(client, path, options)
                .unwrap()
                .into(),
            _ => {
                let lock = InterProcessReadWriteLock::with_options(client, path, options).unwrap();
                if me.chance.once_in(2) {
                    kind = Kind::Read;
                    MultiMember::Read(lock)
                } else {
                    MultiMember::Write(lock)
                }
            }
        });
        kinds.push((path, kind));
    }
    (InterProcessMultiLock::new(members), kinds)
}
