//! The catalogue's tests of the read/write lock (`docs/curator-recipes.md` section 15.4), and its
//! hazards (sections 5.4 and 5.6).

use std::{sync::Arc, time::Duration};

use minikeeper::Server;
use minikeeper_client::Client;
use minikeeper_recipes::{InterProcessReadWriteLock, LockError, LockOptions, Loss, Owner, Status};
use tokio::time::{sleep, timeout};

use crate::{
    kit::{self, PATH, both_ways, queue, soon, spawn, start, until},
    link::{Link, Mode},
};

struct Contender {
    client: Client,
    link: Link,
    lock: InterProcessReadWriteLock,
}

async fn contender(server: &Arc<Server>, seed: u64, options: &LockOptions) -> Contender {
    let (client, link) = kit::client(server, seed).await;
    let lock = InterProcessReadWriteLock::with_options(client.clone(), PATH, options.clone());
    let lock = lock.unwrap();
    Contender { client, link, lock }
}

const A_WHILE: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn test_get_participant_nodes() {
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, &options).await;
        let mut readers = Vec::new();
        for _ in 0..20 {
            readers.push(one.lock.acquire_read().await.unwrap());
        }
        let writers: Vec<_> = (0..8)
            .map(|_| {
                let lock = one.lock.clone();
                spawn(async move { drop(lock.acquire_write().await) })
            })
            .collect();
        until("the writers wait", || queue(&server).len() == 28).await;
        assert_eq!(one.lock.readers().await.unwrap().len(), 20);
        assert_eq!(one.lock.writers().await.unwrap().len(), 8);
        drop(readers);
        for writer in writers {
            soon(writer).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn test_that_upgrading_is_disallowed() {
    let server = start().await;
    let owner = Owner::new();
    let refusing = contender(&server, 1, &LockOptions::default()).await;
    let reader = refusing.lock.acquire_read().as_owner(&owner).await.unwrap();
    let error = refusing
        .lock
        .acquire_write()
        .as_owner(&owner)
        .await
        .unwrap_err();
    let text = "lock \"/locks/a\": a reader cannot become a writer; release the read lock first";
    assert_eq!(error.to_string(), text);
    drop(reader);
    let exact = contender(&server, 2, &LockOptions::curator_exact()).await;
    let _reader = exact.lock.acquire_read().as_owner(&owner).await.unwrap();
    let error = exact
        .lock
        .acquire_write()
        .as_owner(&owner)
        .within(A_WHILE)
        .await;
    assert!(matches!(error, Err(LockError::TimedOut { .. })));
}

#[tokio::test(start_paused = true)]
async fn test_that_downgrading_respects_threads() {
    let server = start().await;
    let one = contender(&server, 1, &LockOptions::default()).await;
    let (writer, other) = (Owner::new(), Owner::new());
    let _held = one.lock.acquire_write().as_owner(&writer).await.unwrap();
    let stranger = one
        .lock
        .acquire_read()
        .as_owner(&other)
        .within(A_WHILE)
        .await;
    assert!(matches!(stranger, Err(LockError::TimedOut { .. })));
}

#[tokio::test(start_paused = true)]
async fn test_downgrading() {
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, &options).await;
        let owner = Owner::new();
        let writer = one.lock.acquire_write().as_owner(&owner).await.unwrap();
        let reader = one.lock.acquire_read().as_owner(&owner).await.unwrap();
        assert_eq!(reader.token(), writer.token());
        let digits = |path: &str| path[path.len() - 10..].to_owned();
        assert_eq!(digits(reader.path()), digits(writer.path()));
        writer.release().await.unwrap();
        assert_eq!(reader.status(), Status::Held);
        reader.release().await.unwrap();
        assert!(queue(&server).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn h9_test_contending_downgrading() {
    // A writer of another object waits; after the downgrade it must still wait (CURATOR-621).
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, &options).await;
        let two = contender(&server, 2, &options).await;
        let writer = one.lock.acquire_write().await.unwrap();
        let waiting = spawn({
            let lock = two.lock.clone();
            async move { lock.acquire_write().await }
        });
        until("it waits", || queue(&server).len() == 2).await;
        let reader = soon(writer.downgrade()).await.unwrap();
        until("the writer's znode is deleted", || {
            queue(&server).len() == 2
        })
        .await;
        sleep(A_WHILE).await;
        assert!(!waiting.is_finished());
        drop(reader);
        soon(waiting)
            .await
            .unwrap()
            .unwrap()
            .release()
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn test_basic() {
    // Eight clients make a hundred rounds, one in ten as a writer: a writer is alone, readers
    // overlap.
    for options in both_ways() {
        let server = start().await;
        let state = Arc::new(parking_lot::Mutex::new((0_u32, 0_u32, 0_u32)));
        let mut tasks = Vec::new();
        for number in 0..8_u64 {
            let one = contender(&server, number, &options).await;
            let state = Arc::clone(&state);
            tasks.push(spawn(async move {
                for round in 0..100 {
                    let rest = Duration::from_millis((number * 7 + round * 3) % 5 + 1);
                    if (round + number) % 10 == 0 {
                        let guard = one.lock.acquire_write().await.unwrap();
                        {
                            let mut state = state.lock();
                            assert_eq!((state.0, state.1), (0, 0), "a writer is alone");
                            state.1 = 1;
                        }
                        sleep(rest).await;
                        state.lock().1 = 0;
                        drop(guard);
                    } else {
                        let guard = one.lock.acquire_read().await.unwrap();
                        {
                            let mut state = state.lock();
                            assert_eq!(state.1, 0, "no reader beside a writer");
                            state.0 += 1;
                            state.2 = state.2.max(state.0);
                        }
                        sleep(rest).await;
                        state.lock().0 -= 1;
                        drop(guard);
                    }
                }
            }));
        }
        for task in tasks {
            soon(task).await.unwrap();
        }
        assert!(state.lock().2 > 1, "readers overlap");
        until("nothing is left", || queue(&server).is_empty()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn test_set_node_data() {
    let server = start().await;
    let options = LockOptions::default().with_data(*b"who");
    let one = contender(&server, 1, &options).await;
    let guard = one.lock.acquire_write().await.unwrap();
    assert_eq!(
        server.get(guard.path()).unwrap().0.as_deref(),
        Some(&b"who"[..])
    );
}

#[tokio::test(start_paused = true)]
async fn test_lock_path() {
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, &options).await;
        let two = contender(&server, 2, &options).await;
        let writer = one.lock.acquire_write().await.unwrap();
        server.expire(one.client.session_id().unwrap()).unwrap();
        let reader = soon(two.lock.acquire_read()).await.unwrap();
        assert_eq!(reader.status(), Status::Held);
        assert!(server.get(writer.path()).is_none());
        let _ = soon(writer.release()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn readers_behind_two_writers_wait_for_both() {
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, &options).await;
        let first = one.lock.acquire_write().await.unwrap();
        let spawn_write = || {
            let lock = one.lock.clone();
            spawn(async move { lock.acquire_write().await.unwrap() })
        };
        let second = spawn_write();
        until("it waits", || queue(&server).len() == 2).await;
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let lock = one.lock.clone();
                spawn(async move { lock.acquire_read().await.unwrap() })
            })
            .collect();
        until("they wait", || queue(&server).len() == 5).await;
        drop(first);
        let second = soon(second).await.unwrap();
        sleep(A_WHILE).await;
        assert!(readers.iter().all(|reader| !reader.is_finished()));
        drop(second);
        let mut guards = Vec::new();
        for reader in readers {
            guards.push(soon(reader).await.unwrap());
        }
        assert_eq!(queue(&server).len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn h34_lost_writer_cannot_become_a_reader() {
    let server = start().await;
    let one = contender(&server, 1, &LockOptions::default()).await;
    let owner = Owner::new();
    let writer = one.lock.acquire_write().as_owner(&owner).await.unwrap();
    server.expire(one.client.session_id().unwrap()).unwrap();
    soon(writer.lost()).await;
    let error = one.lock.acquire_read().as_owner(&owner).await.unwrap_err();
    assert!(matches!(error, LockError::HoldLost { .. }), "{error}");
    let error = writer.downgrade().await.unwrap_err();
    assert!(matches!(error, LockError::HoldLost { .. }), "{error}");
    until("nothing is left", || queue(&server).is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn dropped_downgrade_releases_the_lock() {
    for polls in 0..4 {
        let server = start().await;
        let one = contender(&server, 1, &LockOptions::default()).await;
        let writer = one.lock.acquire_write().await.unwrap();
        {
            let mut downgrade = Box::pin(writer.downgrade());
            for _ in 0..polls {
                let poll = timeout(Duration::ZERO, &mut downgrade).await;
                if poll.is_ok() {
                    break;
                }
            }
        }
        until("nothing is left", || queue(&server).is_empty()).await;
        until("nothing is pending", || one.client.clean_ups_pending() == 0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn downgrade_whose_reply_is_lost_finds_its_znode() {
    let server = start().await;
    let one = contender(&server, 1, &LockOptions::default()).await;
    let writer = one.lock.acquire_write().await.unwrap();
    one.link.set(Mode::SwallowReplies);
    let downgrade = spawn(writer.downgrade());
    until("it is created", || queue(&server).len() == 2).await;
    one.link.cut();
    let reader = soon(downgrade).await.unwrap().unwrap();
    until("the writer's znode is deleted", || {
        queue(&server).len() == 1
    })
    .await;
    assert_eq!(reader.status(), Status::Held);
}

#[tokio::test(start_paused = true)]
async fn test_revoking() {
    // Another client asks the holder, which releases the lock; then the other client acquires it.
    let server = start().await;
    let one = contender(&server, 1, &LockOptions::default()).await;
    let two = contender(&server, 2, &LockOptions::default()).await;
    let guard = one.lock.acquire_write().await.unwrap();
    let holder = spawn(async move {
        guard.revocation_requested().await.unwrap();
        guard.release().await.unwrap();
    });
    let path = two.lock.writers().await.unwrap().remove(0);
    minikeeper_recipes::Revoker::attempt_revoke(&two.client, &path)
        .await
        .unwrap();
    soon(two.lock.acquire_write().within(A_WHILE))
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    soon(holder).await.unwrap();
    // The request succeeds for a znode that is already gone.
    minikeeper_recipes::Revoker::attempt_revoke(&two.client, &path)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn h33_revocation_before_the_holder_listens_is_not_missed() {
    let server = start().await;
    let one = contender(&server, 1, &LockOptions::default()).await;
    let guard = one.lock.acquire_read().await.unwrap();
    minikeeper_recipes::Revoker::attempt_revoke(&one.client, guard.path())
        .await
        .unwrap();
    soon(guard.revocation_requested()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn wait_for_a_revocation_ends_when_no_server_replies() {
    let server = start().await;
    let one = contender(&server, 1, &LockOptions::default()).await;
    for mode in [Mode::Cut, Mode::Freeze] {
        let guard = one.lock.acquire_write().await.unwrap();
        one.link.set(mode);
        let loss = soon(guard.revocation_requested()).await;
        assert_eq!(loss, Err(Loss::Presumed), "{mode:?}");
        one.link.set(Mode::Pass);
    }
}

#[tokio::test(start_paused = true)]
async fn revocation_request_grants_no_lock() {
    // The data of a watched znode changes, which is not a release (`docs/curator-recipes.md`
    // section 4.8).
    for options in both_ways() {
        let server = start().await;
        let one = contender(&server, 1, &options).await;
        let guard = one.lock.acquire_write().await.unwrap();
        let waiting = spawn({
            let lock = one.lock.clone();
            async move { lock.acquire_write().await.unwrap() }
        });
        until("it waits", || queue(&server).len() == 2).await;
        for _ in 0..3 {
            minikeeper_recipes::Revoker::attempt_revoke(&one.client, guard.path())
                .await
                .unwrap();
            sleep(Duration::from_secs(1)).await;
        }
        assert!(!waiting.is_finished());
        drop(guard);
        soon(waiting).await.unwrap().release().await.unwrap();
    }
}
