//! The adapter's promises about its session: until when it is certain, and when it is not.
//!
//! The client's timers are real, so sessions are short here, and the tests wait for them.

use std::time::Duration;

use minikeeper_client::{Acl, AclList, CreateMode, CreateOptions, Fired, Multi, Perms};
use minikeeper_recipes::{
    InterProcessMutex, Loss, Status,
    client::{Standing, StateStream as _, ZooKeeper as _},
};

use crate::{
    clock,
    kit::{PATH, SESSION_TIMEOUT, adapter, adapter_at, cut, expire, queue, soon, start, until},
    link::{Link, Mode},
};

/// A session timeout short enough to wait for.
const SHORT: Duration = Duration::from_millis(1500);

/// Returns whether the loss follows from time, not from a deleted znode.
const fn is_by_time(loss: Loss) -> bool {
    matches!(loss, Loss::Presumed | Loss::SessionOver)
}

#[tokio::test]
async fn lost_is_known_before_another_can_be_granted() {
    // The server received the last request after it was made, and waits for the whole timeout.
    let server = start().await;
    let link = Link::to(&server);
    let address = link.listen().await.unwrap();
    let client = adapter_at(&address, SHORT).await;
    let lock = InterProcessMutex::new(client.clone(), PATH).unwrap();
    let guard = soon(lock.acquire()).await.unwrap();
    let deadline = guard.deadline().unwrap();
    let frozen = clock::now();
    link.set(Mode::Freeze);
    assert!(deadline <= frozen + SHORT);
    let status = soon(guard.unsure()).await;
    assert!(matches!(status, Status::Suspended { .. }), "{status:?}");
    let loss = soon(guard.lost()).await;
    assert!(is_by_time(loss), "{loss:?}");
    assert_eq!(guard.status(), Status::Lost(loss));
    // The server has not ended the session, and the client resumes it, in another epoch.
    link.cut();
    until(
        "it is back",
        || matches!(client.standing(), Standing::Connected { epoch, .. } if epoch > guard.epoch()),
    )
    .await;
    assert_eq!(guard.status(), Status::Lost(loss), "final");
    assert_eq!(queue(&server).len(), 1);
    drop(guard);
    until("it is free", || queue(&server).is_empty()).await;
    drop(soon(lock.acquire()).await.unwrap());
}

#[tokio::test]
async fn h2_paused_holder_sees_the_loss_in_its_first_call() {
    // No task or timer of the holder runs until it asks for the status.
    let server = start().await;
    let client = adapter_at(&server.connect_string(), SHORT).await;
    let lock = InterProcessMutex::new(client, PATH).unwrap();
    let guard = soon(lock.acquire()).await.unwrap();
    std::thread::sleep(SHORT);
    let Status::Lost(loss) = guard.status() else {
        panic!("the lock still counts as held");
    };
    assert!(is_by_time(loss), "{loss:?}");
}

#[tokio::test]
async fn idle_session_stays_certain() {
    let server = start().await;
    let client = adapter_at(&server.connect_string(), SHORT).await;
    let lock = InterProcessMutex::new(client.clone(), PATH).unwrap();
    let guard = soon(lock.acquire()).await.unwrap();
    let first = guard.deadline().unwrap();
    let connections = client.connections();
    until("it is certain for longer", || {
        guard.deadline().is_some_and(|until| until > first + SHORT)
    })
    .await;
    assert_eq!(client.connections(), connections);
    assert_eq!(guard.status(), Status::Held);
}

#[tokio::test]
async fn every_change_is_returned_in_order() {
    let server = start().await;
    let client = adapter(&server).await;
    let mut states = client.states();
    assert_eq!(client.standing(), Standing::Connecting);
    let Some(Standing::Connected { epoch, .. }) = soon(states.next()).await else {
        panic!("the first standing");
    };
    assert_eq!(epoch.0, 1);
    cut(&server, &client);
    let second = soon(states.next()).await.unwrap();
    assert!(matches!(second, Standing::Suspended { .. }), "{second:?}");
    let third = soon(states.next()).await.unwrap();
    assert!(matches!(third, Standing::Connected { .. }), "{third:?}");
    assert_eq!(third.epoch(), Some(epoch));
    expire(&server, &client);
    let mut seen = Vec::new();
    while seen.last().and_then(Standing::epoch) != Some(minikeeper_client::Epoch(2)) {
        seen.push(soon(states.next()).await.unwrap());
    }
    assert!(seen.contains(&Standing::Lost { epoch }), "{seen:?}");
}

#[tokio::test]
async fn watches_end_with_their_epoch() {
    let server = start().await;
    let client = adapter(&server).await;
    until("it is connected", || {
        matches!(client.standing(), Standing::Connected { .. })
    })
    .await;
    let (stat, watch) = client.watch_exists("/missing").await.unwrap();
    assert_eq!(stat, None);
    expire(&server, &client);
    assert_eq!(soon(watch).await, Fired::EpochOver);
}

#[tokio::test]
async fn session_and_connection_end_with_the_last_clone() {
    let server = start().await;
    let client = adapter(&server).await;
    let created = client.create("/mine", b"", CreateMode::Ephemeral);
    let created = soon(created).await.unwrap();
    assert_eq!(Some(created.value.stat.ephemeral_owner), client.session());
    let (_, watch) = client.watch_data("/mine").await.unwrap();
    drop((client, watch));
    until("the session is closed", || {
        server.sessions().is_empty() && server.get("/mine").is_none()
    })
    .await;
}

#[tokio::test]
async fn requests_are_sent_in_the_order_of_the_calls() {
    // The order holds for any order of polling, and although no task waits for the first.
    let server = start().await;
    let client = adapter(&server).await;
    let first = client.create("/a", b"", CreateMode::Persistent);
    let second = client.create("/a/b", b"", CreateMode::Persistent);
    let third = client.children("/a");
    assert_eq!(soon(third).await.unwrap().value, ["b"]);
    soon(second).await.unwrap();
    drop(first);
}

#[tokio::test]
async fn request_that_is_too_large_is_refused_before_it_is_sent() {
    let server = start().await;
    let client = adapter_at(&server.connect_string(), SESSION_TIMEOUT).await;
    let data = vec![0; 1 << 20];
    let create = client.create("/large", &data, CreateMode::Persistent);
    let error = soon(create).await.unwrap_err();
    let text = "create2 \"/large\": request of 1049094 bytes exceeds the limit of 1048575 bytes";
    assert_eq!(error.to_string(), text);
    let connections = client.connections();
    let data = vec![0; (1 << 20) - 1024];
    let create = client.create("/large", &data, CreateMode::Persistent);
    soon(create).await.unwrap();
    assert_eq!(client.connections(), connections);
}

#[tokio::test]
async fn provider_chooses_access_lists_and_times_to_live_are_kept() {
    let server = start().await;
    let perms = Perms(Perms::ALL.0 ^ Perms::DELETE.0);
    let list = AclList::new(&[Acl::new(perms, "world", "anyone")]);
    let client = adapter(&server).await.with_acl_provider(list.clone());
    let ttl = CreateOptions::new(CreateMode::PersistentWithTtl).ttl(Duration::from_secs(9));
    soon(client.create("/ttl", b"", ttl.clone())).await.unwrap();
    let open = ttl.clone().acl(AclList::world_all());
    let multi = Multi::new()
        .create("/multi", b"", ttl)
        .create("/open", b"", open);
    soon(client.multi(multi)).await.unwrap();
    let seen = minikeeper_client::Client::connect(&server.connect_string())
        .await
        .unwrap();
    for path in ["/ttl", "/multi", "/open"] {
        let (acl, _) = seen.get_acl(path).await.unwrap();
        let expected = if path == "/open" {
            AclList::world_all()
        } else {
            list.clone()
        };
        assert_eq!(acl, expected, "{path}");
    }
    server.advance(Duration::from_secs(120));
    for path in ["/ttl", "/multi", "/open"] {
        assert_eq!(server.get(path), None);
    }
}
