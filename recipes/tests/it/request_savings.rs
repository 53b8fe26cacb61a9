//! The requests on the wire, one by one: those of Curator, and those with each saving.
//!
//! Source: `docs/curator-recipes.md` sections 14.2 (Curator's sequences, as observed) and 14.5.

use std::{sync::Arc, time::Duration};

use minikeeper::Server;
use minikeeper_client::{Client, Connecting};
use minikeeper_protocol::OpCode;
use minikeeper_recipes::{InterProcessMutex, InterProcessReadWriteLock, LockOptions};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex, split};

use crate::kit::{PATH, soon, spawn, start, until};

/// A client whose requests are recorded: one entry per write, with the names of its requests.
struct Tapped {
    client: Client,
    writes: Arc<Mutex<Vec<Vec<&'static str>>>>,
}

impl Tapped {
    async fn on(server: &Arc<Server>, seed: u64) -> Self {
        let writes = Arc::<Mutex<Vec<Vec<_>>>>::default();
        let (tap, behind) = (Arc::clone(&writes), Arc::clone(server));
        let transport = move |_: &str| -> Connecting {
            let (near, far) = duplex(1 << 20);
            let (mut from_client, mut to_client) = split(far);
            let (mut from_server, mut to_server) = split(behind.local());
            let tap = Arc::clone(&tap);
            spawn(async move {
                let replies = tokio::io::copy(&mut from_server, &mut to_client);
                let requests = async {
                    let mut buffer = vec![0; 1 << 16];
                    let mut is_first = true;
                    while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
                        // The handshake has neither an xid nor an operation.
                        if !std::mem::replace(&mut is_first, false) {
                            tap.lock().push(names(&buffer[..count]));
                        }
                        to_server.write_all(&buffer[..count]).await.unwrap();
                    }
                };
                tokio::select! { _ = replies => {} () = requests => {} }
            });
            let (reader, writer) = split(near);
            Box::pin(async move { Ok((Box::new(reader) as _, Box::new(writer) as _)) })
        };
        let builder = Client::builder("server").unwrap().seed(seed);
        let client = builder.transport(transport).connect().await.unwrap();
        Self { client, writes }
    }

    fn mutex(&self, options: &LockOptions) -> InterProcessMutex {
        InterProcessMutex::with_options(self.client.clone(), PATH, options.clone()).unwrap()
    }

    /// Returns the requests since the last call, with a space between requests and a bar between
    /// writes.
    async fn taken(&self) -> String {
        // Everything that is in flight arrives before time passes.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let writes = std::mem::take(&mut *self.writes.lock());
        let writes: Vec<_> = writes.iter().map(|names| names.join(" ")).collect();
        writes.join(" | ")
    }
}

/// Returns the operations of the requests in a write.
fn names(mut bytes: &[u8]) -> Vec<&'static str> {
    let mut names = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<12>() {
        let number = |at: usize| i32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        names.push(OpCode::from_code(number(8)).unwrap().name());
        bytes = &rest[usize::try_from(number(0)).unwrap() - 8..];
    }
    names
}

fn without(change: impl FnOnce(&mut LockOptions)) -> LockOptions {
    let mut options = LockOptions::default();
    change(&mut options);
    options
}

#[tokio::test(start_paused = true)]
async fn curator_exact_makes_curators_requests() {
    let server = start().await;
    let options = LockOptions::curator_exact();
    let (a, b) = (Tapped::on(&server, 1).await, Tapped::on(&server, 2).await);
    // The first use, with two missing levels.
    let held = a.mutex(&options).acquire().await.unwrap();
    assert_eq!(
        a.taken().await,
        "create2 | exists | createContainer | exists | createContainer | create2 | getChildren2"
    );
    // A try while the lock is taken, and a wait that times out. Curator does not remove its watches
    // then, and sets its watch a second time.
    assert!(b.mutex(&options).try_acquire().await.unwrap().is_none());
    assert_eq!(
        b.taken().await,
        "create2 | getChildren2 | getData | delete | removeWatches"
    );
    let lock = b.mutex(&options);
    assert!(lock.acquire().within(Duration::from_secs(1)).await.is_err());
    assert_eq!(
        b.taken().await,
        "create2 | getChildren2 | getData | getChildren2 | delete | removeWatches"
    );
    // A contended acquire that waits, a release, and the wake-up that grants the lock.
    let waiting = spawn({
        let lock = b.mutex(&options);
        async move { lock.acquire().await }
    });
    assert_eq!(b.taken().await, "create2 | getChildren2 | getData");
    held.release().await.unwrap();
    assert_eq!(a.taken().await, "delete");
    let held = soon(waiting).await.unwrap().unwrap();
    assert_eq!(b.taken().await, "getChildren2");
    held.release().await.unwrap();
    // An uncontended acquire.
    let held = a.mutex(&options).acquire().await.unwrap();
    assert_eq!(a.taken().await, "create2 | getChildren2");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn s1_create_and_list_are_sent_together() {
    let server = start().await;
    let a = Tapped::on(&server, 1).await;
    let options = LockOptions::default();
    a.mutex(&options)
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    a.taken().await;
    let held = a.mutex(&options).acquire().await.unwrap();
    assert_eq!(a.taken().await, "create2 getChildren");
    drop(held);
    // S7: the next acquire does not wait for the release of a dropped guard.
    let _held = a.mutex(&options).acquire().await.unwrap();
    let written = a.taken().await.replace(" | ", " ");
    assert_eq!(written, "delete create2 getChildren");
    let apart = without(|options| options.create_and_list_together = false);
    let _other = a.mutex(&apart).try_acquire().await.unwrap();
    assert!(a.taken().await.starts_with("create2 | getChildren |"));
}

#[tokio::test(start_paused = true)]
async fn s2_missing_parents_are_created_from_below() {
    let server = start().await;
    let a = Tapped::on(&server, 1).await;
    let _held = a.mutex(&LockOptions::default()).acquire().await.unwrap();
    assert_eq!(
        a.taken().await,
        "create2 getChildren | createContainer | createContainer | createContainer \
         | create2 getChildren"
    );
}

#[tokio::test(start_paused = true)]
async fn s3_call_returns_at_once_at_its_time_limit() {
    let server = start().await;
    let (a, b) = (Tapped::on(&server, 1).await, Tapped::on(&server, 2).await);
    let options = LockOptions::default();
    let _held = a.mutex(&options).acquire().await.unwrap();
    let lock = b.mutex(&options);
    assert!(lock.acquire().within(Duration::from_secs(1)).await.is_err());
    let written = b.taken().await;
    // The watches are removed before the znode is deleted, and nothing is read again.
    assert!(
        written.starts_with("create2 getChildren | getData getData | "),
        "{written}"
    );
    assert_eq!(written.matches("getChildren").count(), 1, "{written}");
    assert_eq!(written.matches("delete").count(), 1, "{written}");
    until("its znode is deleted", || {
        server.children(PATH).unwrap_or_default().len() == 1
    })
    .await;
}

/// Starts a queue of contenders, each with its own session, that all wait.
async fn queue_of(
    server: &Arc<Server>,
    options: &LockOptions,
) -> Vec<(Tapped, tokio::task::JoinHandle<minikeeper_recipes::Guard>)> {
    let mut queue = Vec::new();
    for seed in 1..=6 {
        let tapped = Tapped::on(server, seed).await;
        let lock = tapped.mutex(options);
        let task = spawn(async move { lock.acquire().await.unwrap() });
        tapped.taken().await;
        queue.push((tapped, task));
    }
    queue
}

#[tokio::test(start_paused = true)]
async fn s4_grant_needs_no_list_and_a_long_queue_needs_one_before() {
    for look_ahead in 2..=4 {
        let server = start().await;
        let options = without(|options| options.look_ahead = look_ahead);
        let mut lists = [0; 6];
        let mut last = [""; 6].map(str::to_owned);
        let queue = queue_of(&server, &options).await;
        let (tapped, mut tasks): (Vec<_>, Vec<_>) = queue.into_iter().unzip();
        for at in 0..6 {
            let guard = soon(&mut tasks[at]).await.unwrap();
            for (other, tapped) in tapped.iter().enumerate() {
                let taken = tapped.taken().await;
                lists[other] += taken.matches("getChildren").count();
                last[other] = taken;
            }
            // The event alone grants the lock.
            assert_eq!(last[at].matches("getChildren").count(), 0, "{at}: {last:?}");
            guard.release().await.unwrap();
        }
        // A contender with more contenders ahead than it watches has listed once more.
        let expected = [0, 1, 2, 3, 4, 5].map(|ahead| usize::from(ahead > look_ahead));
        assert_eq!(lists, expected, "look-ahead {look_ahead}");
    }
}

#[tokio::test(start_paused = true)]
async fn s6_reader_wakes_once_for_many_writers() {
    for (nearest_writer, lists) in [(true, 1), (false, 2)] {
        let server = start().await;
        let options = without(|options| {
            options.nearest_writer = nearest_writer;
            options.look_ahead = 1;
        });
        let lock = |tapped: &Tapped| {
            let client = tapped.client.clone();
            InterProcessReadWriteLock::with_options(client, PATH, options.clone()).unwrap()
        };
        let reader = Tapped::on(&server, 9).await;
        let mut writers = Vec::new();
        for seed in 1..=3 {
            let tapped = Tapped::on(&server, seed).await;
            let lock = lock(&tapped);
            let task = spawn(async move { lock.acquire_write().await.unwrap() });
            tapped.taken().await;
            writers.push(task);
        }
        let read = lock(&reader);
        let task = spawn(async move { read.acquire_read().await.unwrap() });
        reader.taken().await;
        let mut written = String::new();
        for writer in writers {
            soon(writer).await.unwrap().release().await.unwrap();
            written += &reader.taken().await;
        }
        soon(task).await.unwrap().release().await.unwrap();
        // It lists whenever unwatched writers may be left.
        assert_eq!(written.matches("getChildren").count(), lists, "{written}");
    }
}

#[tokio::test(start_paused = true)]
async fn s11_try_with_peek_writes_nothing() {
    let server = start().await;
    let (a, b) = (Tapped::on(&server, 1).await, Tapped::on(&server, 2).await);
    let options = without(|options| options.peek = true);
    let _held = a.mutex(&options).acquire().await.unwrap();
    assert!(b.mutex(&options).try_acquire().await.unwrap().is_none());
    assert_eq!(b.taken().await, "getChildren2");
}
