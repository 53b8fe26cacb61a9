//! The catalogue's tests of what locks are built on (`docs/curator-recipes.md` sections 15.6 and
//! 15.7), as far as they concern recipes; those of the client alone are among the client's tests.

use std::time::Duration;

use minikeeper_client::{Acl, AclList, Client, CreateMode, CreateOptions, Error, ErrorCode, Perms};
use minikeeper_recipes::{InterProcessMutex, InterProcessSemaphoreV2, LockError, Status, naming};
use tokio::time::{sleep, timeout};

use crate::{
    kit::{
        PATH, SESSION_TIMEOUT, both_ways, client, contender, contender_with, queue, soon, spawn,
        start, until,
    },
    link::{Link, Mode},
    wire::{Fault, Wire},
};

const SECOND: Duration = Duration::from_secs(1);

/// Creates a directory in which everything is permitted except reading.
async fn unreadable(client: &Client) {
    let perms = Perms(Perms::CREATE.0 | Perms::DELETE.0 | Perms::WRITE.0);
    let acl = AclList::new(&[Acl {
        perms,
        scheme: Some("world".into()),
        id: Some("anyone".into()),
    }]);
    drop(client.create("/locks", b"", CreateMode::Persistent).await);
    let options = CreateOptions::new(CreateMode::Persistent).acl(acl);
    client.create(PATH, b"", options).await.unwrap();
}

fn is_refused(error: &LockError) -> bool {
    matches!(error, LockError::Client(Error::Refused { op, code: ErrorCode::NoAuth, .. })
        if op.starts_with("getChildren"))
}

#[tokio::test(start_paused = true)]
async fn test_node_deleted_cleanly_with_faults() {
    // A list that finds no directory is retried here, so the test uses another refusal.
    for options in both_ways() {
        let server = start().await;
        let one = contender_with(&server, 1, options).await;
        unreadable(&one.client).await;
        let error = one.lock.acquire().await.unwrap_err();
        assert!(is_refused(&error), "{error}");
        until("no child is left", || queue(&server).is_empty()).await;
        assert_eq!(one.client.clean_ups_pending(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn test_attempt_lock_failed_exception() {
    // The server is gone when the contender deletes its znode: the caller gets the first error.
    for options in both_ways() {
        let server = start().await;
        let one = contender_with(&server, 1, options).await;
        unreadable(&one.client).await;
        one.link.delay_replies(Duration::from_millis(100));
        let (error, ()) = tokio::join!(one.lock.acquire(), async {
            until("it is created", || queue(&server).len() == 1).await;
            sleep(Duration::from_millis(150)).await;
            one.link.set(Mode::SwallowRequests);
        });
        let error = error.unwrap_err();
        assert!(is_refused(&error), "{error}");
        sleep(SECOND).await;
        one.link.cut();
        until("no child is left", || queue(&server).is_empty()).await;
    }
}

/// Loses the reply to the creation: the contender finds its znode, and creates no second one.
async fn miss_response(is_waited_for: bool) {
    for options in both_ways() {
        let server = start().await;
        let other = contender(&server, 1).await;
        let held = other.lock.acquire().await.unwrap();
        let wire = Wire::to(&server);
        let client = wire.client(2).await;
        let lock = InterProcessMutex::with_options(client, PATH, options).unwrap();
        wire.arm(Some(Fault::LoseReply(0)));
        let waiting = spawn(async move { lock.acquire().await });
        if is_waited_for {
            until("the reply is lost", || !wire.is_armed()).await;
        }
        sleep(SECOND).await;
        held.release().await.unwrap();
        let guard = soon(waiting).await.unwrap().unwrap();
        let name = naming::name_of(guard.path());
        assert!(naming::is_protected(name), "{name}");
        assert_eq!(queue(&server), [name]);
    }
}

#[tokio::test(start_paused = true)]
async fn test_missed_response_on_es_create() {
    miss_response(true).await;
}

#[tokio::test(start_paused = true)]
async fn test_missed_response_on_background_es_create() {
    // Every creation is in the background here: its reply may be lost before a caller waits.
    miss_response(false).await;
}

#[tokio::test(start_paused = true)]
async fn test_protected_create_node_deletion() {
    // A caller that gives up before the reply leaves nothing, also below a namespace, and also if
    // the connection is lost once more while the client looks for the znode.
    for is_below in [false, true] {
        for losses in [1, 2] {
            let server = start().await;
            let (root, _) = client(&server, 1).await;
            for path in ["/ns", "/ns/locks", "/ns/locks/a", "/locks", PATH] {
                let made = root.create(path, b"", CreateMode::Persistent);
                made.await.unwrap();
            }
            let link = Link::to(&server);
            let hosts = if is_below { "server/ns" } else { "server" };
            let builder = Client::builder(hosts).unwrap();
            let builder = builder.session_timeout(SESSION_TIMEOUT);
            let one = builder.transport(link.clone()).connect().await.unwrap();
            let session = one.session_id();
            let lock = InterProcessMutex::new(one.clone(), PATH).unwrap();
            let names = || {
                let path = if is_below { "/ns/locks/a" } else { PATH };
                server.children(path).unwrap()
            };
            link.set(Mode::SwallowReplies);
            let given_up = timeout(Duration::from_millis(100), lock.acquire()).await;
            assert!(given_up.is_err());
            assert_eq!(names().len(), 1);
            for _ in 0..losses {
                link.cut();
                link.set(Mode::SwallowReplies);
                sleep(Duration::from_millis(100)).await;
            }
            link.cut();
            until("it is deleted", || names().is_empty()).await;
            until("nothing is pending", || one.clean_ups_pending() == 0).await;
            assert_eq!(one.session_id(), session);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn test_protection_with_killed_session() {
    for options in both_ways() {
        for replies in 0..4 {
            let server = start().await;
            let (root, _) = client(&server, 1).await;
            for path in ["/locks", PATH] {
                let made = root.create(path, b"", CreateMode::Persistent);
                made.await.unwrap();
            }
            let wire = Wire::to(&server);
            let one = wire.client(2).await;
            let session = one.session_id().unwrap();
            let lock = InterProcessMutex::with_options(one.clone(), PATH, options.clone()).unwrap();
            wire.arm(Some(Fault::LoseReply(0)));
            let waiting = spawn(async move { lock.acquire().await });
            until("the reply is lost", || !wire.is_armed()).await;
            // The session expires while the client looks for the znode: after the handshake, the
            // sync, the list or the read.
            wire.arm(Some(Fault::ExpireAfter(session, replies)));
            let guard = soon(waiting).await.unwrap().unwrap();
            sleep(2 * SESSION_TIMEOUT).await;
            if let Status::Lost(_) = guard.status() {
                // The znode was found and the lock granted before the session ended.
                assert!(queue(&server).is_empty());
                continue;
            }
            assert_eq!(queue(&server), [naming::name_of(guard.path())]);
            let owner = server.get(guard.path()).unwrap().1.ephemeral_owner;
            assert_eq!(Some(owner), one.session_id());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn test_paths_from_protecting_in_background() {
    // Several znodes are created at once: each reply has the whole path, without the namespace.
    let server = start().await;
    let (root, _) = client(&server, 1).await;
    let ns = root.create("/ns", b"", CreateMode::Persistent);
    ns.await.unwrap();
    let builder = Client::builder("server/ns").unwrap();
    let one = builder
        .transport(Link::to(&server))
        .connect()
        .await
        .unwrap();
    let semaphore = InterProcessSemaphoreV2::new(one, PATH, 5).unwrap();
    let leases = semaphore.acquire_many(5).await.unwrap();
    let mut paths: Vec<_> = leases.iter().map(|lease| lease.path().to_owned()).collect();
    let mut there = semaphore.participants().await.unwrap();
    paths.sort_unstable();
    there.sort_unstable();
    assert_eq!(paths, there);
    for path in paths {
        assert!(path.starts_with("/locks/a/leases/_c_"), "{path}");
        assert!(server.get(&format!("/ns{path}")).is_some(), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn test_make_path() {
    // Missing directories are created as containers; existing ones are not changed.
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    let made = one.create("/one", b"x", CreateMode::Persistent);
    made.await.unwrap();
    let lock = InterProcessMutex::new(one.clone(), "/one/two/three/four").unwrap();
    let guard = lock.acquire().await.unwrap();
    assert_eq!(server.children("/one/two/three/four").unwrap().len(), 1);
    assert_eq!(server.get("/one").unwrap().0.as_deref(), Some(&b"x"[..]));
    guard.release().await.unwrap();
    // The server deletes empty containers.
    until("they are deleted", || {
        server.children("/one").unwrap().is_empty()
    })
    .await;
    // Invalid paths are refused.
    for path in ["", "one", "/one/", "//", "/./x"] {
        InterProcessMutex::new(one.clone(), path).unwrap_err();
    }
}

#[test]
fn test_split() {
    for (parent, name, path) in [
        ("/", "one", "/one"),
        ("/one", "two", "/one/two"),
        ("/one/two", "three", "/one/two/three"),
    ] {
        assert_eq!(naming::join(parent, name), path);
        assert_eq!(naming::name_of(path), name);
    }
    assert_eq!(naming::name_of("/"), "");
}
