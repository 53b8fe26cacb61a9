//! Servers that stop, and later ones that continue with the saved data: tests of the catalogue
//! (`docs/curator-recipes.md` sections 15.1 and 15.5) for which cut links would not suffice.
//!
//! One server at a time on one data directory plays an ensemble. It runs while more than half of
//! the addresses are up, and serves each of those.

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use minikeeper::Server;
use minikeeper_client::{Client, Connecting, Transport};
use minikeeper_recipes::{
    Guard, InterProcessMultiLock, InterProcessMutex, InterProcessSemaphoreMutex,
    InterProcessSemaphoreV2, Loss, Status,
};
use parking_lot::Mutex;
use tokio::{
    io::split,
    time::{sleep, timeout},
};

use crate::{
    clock,
    kit::{PATH, SESSION_TIMEOUT, soon, spawn, until},
};

/// A second is longer than any step here.
const SECOND: Duration = Duration::from_secs(1);

/// Servers by their addresses.
#[derive(Clone)]
struct Net {
    hosts: Arc<Mutex<BTreeMap<String, Arc<Server>>>>,
    data: PathBuf,
}

impl Net {
    fn new(name: &str) -> Self {
        let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("restart");
        let data = root.join(name);
        // Delete the data of an earlier run.
        let _ = std::fs::remove_dir_all(&data);
        Self {
            hosts: Arc::default(),
            data,
        }
    }

    /// Starts a server at these addresses on the data that was saved last.
    async fn start(&self, hosts: &[&str]) {
        let builder = Server::builder()
            .initial_zxid(0)
            .tick_time(Duration::from_millis(100))
            .session_timeout_min(Duration::from_millis(200))
            .session_timeout_max(Duration::from_secs(60))
            .configure(|config| config.save_interval = Duration::ZERO)
            .data_dir(&self.data);
        let server = Arc::new(builder.start().await.unwrap());
        let mut all = self.hosts.lock();
        for host in hosts {
            all.insert((*host).to_owned(), Arc::clone(&server));
        }
    }

    /// Stops the server, which leaves its addresses.
    async fn stop(&self) {
        let hosts = std::mem::take(&mut *self.hosts.lock());
        let server = hosts.into_values().next().expect("a server runs");
        // Connections that are being made hold it for a moment.
        until("no connection holds the server", || {
            Arc::strong_count(&server) == 1
        })
        .await;
        Arc::into_inner(server).unwrap().shutdown().await.unwrap();
    }

    /// Deletes the saved data.
    fn forget(&self) {
        std::fs::remove_dir_all(&self.data).unwrap();
    }

    fn children(&self, path: &str) -> Vec<String> {
        let hosts = self.hosts.lock();
        let server = hosts.values().next();
        server
            .and_then(|server| server.children(path))
            .unwrap_or_default()
    }

    async fn client(&self, hosts: &str, seed: u64) -> Client {
        let builder = Client::builder(hosts).unwrap();
        let builder = builder.session_timeout(SESSION_TIMEOUT).seed(seed);
        builder.transport(self.clone()).connect().await.unwrap()
    }
}

impl Transport for Net {
    fn connect(&mut self, host: &str) -> Connecting {
        let name = host.split(':').next().unwrap_or_default();
        let server = self.hosts.lock().get(name).cloned();
        Box::pin(async move {
            let server = server.ok_or(io::ErrorKind::ConnectionRefused)?;
            let (reader, writer) = split(server.local());
            Ok((Box::new(reader) as _, Box::new(writer) as _))
        })
    }
}

fn mutex(client: &Client) -> InterProcessMutex {
    InterProcessMutex::new(client.clone(), PATH).unwrap()
}

#[tokio::test(start_paused = true)]
async fn test_waiting_process_killed_server() {
    for is_semaphore in [false, true] {
        let net = Net::new(&format!("waiting_{is_semaphore}"));
        net.start(&["one"]).await;
        let contend = async |client: Client| {
            if is_semaphore {
                let lock = InterProcessSemaphoreMutex::new(client, PATH).unwrap();
                return lock.acquire().await;
            }
            mutex(&client).acquire().await
        };
        let (first, second) = (net.client("one", 1).await, net.client("one", 2).await);
        let guard = contend(first).await.unwrap();
        let (granted, ()) = tokio::join!(soon(contend(second)), async {
            sleep(SECOND).await;
            net.stop().await;
            let status = soon(guard.unsure()).await;
            assert!(matches!(status, Status::Suspended { .. }), "{status:?}");
            sleep(SECOND).await;
            net.start(&["one"]).await;
            until("it is back", || guard.status() == Status::Held).await;
            sleep(2 * SESSION_TIMEOUT).await;
            assert_eq!(guard.status(), Status::Held);
            guard.release().await.unwrap();
        });
        granted.unwrap().release().await.unwrap();
        until("it is free", || {
            net.children(PATH)
                .iter()
                .all(|name| !name.contains("lock-"))
        })
        .await;
        net.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn test_waiting_process_killed_server_of_a_multi_lock() {
    let net = Net::new("multi");
    net.start(&["one"]).await;
    let paths = ["/locks/a", "/locks/b"];
    let lock = async |seed| {
        InterProcessMultiLock::from_paths(net.client("one", seed).await, paths).unwrap()
    };
    let (first, second) = (lock(1).await, lock(2).await);
    let guard = first.acquire().await.unwrap();
    let (granted, ()) = tokio::join!(soon(second.acquire()), async {
        sleep(SECOND).await;
        net.stop().await;
        sleep(SECOND).await;
        net.start(&["one"]).await;
        until("it is back", || guard.status() == Status::Held).await;
        guard.release().await.unwrap();
    });
    assert_eq!(granted.unwrap().status(), Status::Held);
    net.stop().await;
}

#[tokio::test(start_paused = true)]
async fn test_acquire_after_lost_server() {
    // The server stops slightly later each time, also between a lease's creation and its list.
    let net = Net::new("after_lost");
    net.start(&["one"]).await;
    let inside = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for seed in 0..10 {
        let client = net.client("one", seed).await;
        let inside = Arc::clone(&inside);
        tasks.push(spawn(async move {
            let semaphore = InterProcessSemaphoreV2::new(client, "/semaphore", 1).unwrap();
            for _ in 0..5 {
                let lease = semaphore.acquire().await.unwrap();
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                sleep(Duration::from_millis(7)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
                drop(lease);
            }
        }));
    }
    for round in 0..6 {
        for _ in 0..round * 3 {
            tokio::task::yield_now().await;
        }
        net.stop().await;
        sleep(Duration::from_millis(300)).await;
        net.start(&["one"]).await;
        sleep(Duration::from_millis(20)).await;
    }
    for task in tasks {
        soon(task).await.unwrap();
    }
    until("nothing is left", || {
        net.children("/semaphore/leases").is_empty()
    })
    .await;
    net.stop().await;
}

#[tokio::test(start_paused = true)]
async fn h31_znodes_of_a_dead_client_live_for_one_timeout_after_a_restart() {
    let net = Net::new("dead");
    net.start(&["one"]).await;
    let builder = Client::builder("one").unwrap();
    let builder = builder
        .session_timeout(SESSION_TIMEOUT)
        .transport(net.clone());
    let (holder, driver) = builder.build();
    let process = spawn(driver.run());
    let guard = soon(mutex(&holder).acquire()).await.unwrap();
    let waiter = net.client("one", 2).await;
    let waiting = spawn(async move { mutex(&waiter).acquire().await });
    sleep(SECOND).await;
    // The holder's process dies with the server: its session is not closed.
    process.abort();
    net.stop().await;
    drop((guard, holder));
    sleep(SECOND).await;
    net.start(&["one"]).await;
    let restarted = clock::now();
    drop(soon(waiting).await.unwrap().unwrap());
    let waited = clock::now() - restarted;
    let tick = Duration::from_millis(100);
    assert!(
        (SESSION_TIMEOUT..=SESSION_TIMEOUT + 3 * tick).contains(&waited),
        "{waited:?}"
    );
    net.stop().await;
}

/// Contends repeatedly, and works while it certainly holds the lock.
async fn work(client: Client, inside: Arc<Inside>) {
    let lock = mutex(&client);
    loop {
        let Ok(guard) = lock.acquire().await else {
            continue;
        };
        inside.holders.fetch_add(1, Ordering::SeqCst);
        inside.grants.fetch_add(1, Ordering::SeqCst);
        let work = sleep(Duration::from_millis(50));
        let ended = tokio::select! {
            biased;
            _ = guard.unsure() => Ended::Unsure(guard),
            () = work => Ended::Done(guard),
        };
        inside.holders.fetch_sub(1, Ordering::SeqCst);
        match ended {
            Ended::Unsure(guard) => drop(guard),
            Ended::Done(guard) => drop(guard.release().await),
        }
    }
}

enum Ended {
    Unsure(Guard),
    Done(Guard),
}

#[derive(Default)]
struct Inside {
    holders: AtomicUsize,
    grants: AtomicUsize,
}

impl Inside {
    fn holders(&self) -> usize {
        self.holders.load(Ordering::SeqCst)
    }

    /// Checks that the contenders work one at a time, and that grants continue.
    async fn check_progress(&self) {
        let before = self.grants.load(Ordering::SeqCst);
        for _ in 0..1000 {
            sleep(Duration::from_millis(3)).await;
            assert!(self.holders() <= 1, "two at once");
        }
        let grants = self.grants.load(Ordering::SeqCst) - before;
        assert!(grants > 10, "{grants} grants");
    }
}

#[tokio::test(start_paused = true)]
async fn test_killed_server_with_ensemble_provider() {
    // All servers die and lose their data; others start at new addresses, which the host list has
    // named from the start.
    let net = Net::new("provider");
    net.start(&["a", "b", "c"]).await;
    let inside = Arc::new(Inside::default());
    let mut tasks = Vec::new();
    for seed in 0..5 {
        let client = net.client("a,b,c,x,y,z", seed).await;
        tasks.push(spawn(work(client, Arc::clone(&inside))));
    }
    inside.check_progress().await;
    net.stop().await;
    net.forget();
    sleep(SECOND).await;
    for _ in 0..20 {
        assert_eq!(inside.holders(), 0, "no contender holds the lock");
        sleep(SECOND).await;
    }
    net.start(&["x", "y", "z"]).await;
    sleep(2 * SECOND).await;
    inside.check_progress().await;
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    until("no contender is left", || net.children(PATH).is_empty()).await;
    net.stop().await;
}

#[tokio::test(start_paused = true)]
async fn test_cluster() {
    let net = Net::new("cluster");
    net.start(&["a", "b", "c"]).await;
    let inside = Arc::new(Inside::default());
    let mut tasks = Vec::new();
    for seed in 0..20 {
        let client = net.client("a,b,c", seed).await;
        tasks.push(spawn(work(client, Arc::clone(&inside))));
    }
    inside.check_progress().await;
    for up in [["a", "b"], ["b", "c"], ["a", "c"]] {
        net.stop().await;
        sleep(SECOND).await;
        assert_eq!(inside.holders(), 0, "no contender works");
        // One server of three is no majority, and serves no client.
        sleep(10 * SECOND).await;
        net.start(&up).await;
        sleep(2 * SECOND).await;
        inside.check_progress().await;
    }
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    until("no contender is left", || net.children(PATH).is_empty()).await;
    net.stop().await;
}

#[tokio::test(start_paused = true)]
async fn holder_notices_that_the_server_forgot_its_session() {
    // The next server on the same address knows no session.
    let net = Net::new("forgot");
    net.start(&["one"]).await;
    let client = net.client("one", 1).await;
    let guard = mutex(&client).acquire().await.unwrap();
    net.stop().await;
    net.forget();
    net.start(&["one"]).await;
    // A server refuses clients that have seen newer changes than it has, so the loss may come only
    // when the client gives up the session.
    let loss = timeout(SESSION_TIMEOUT + SECOND, guard.lost())
        .await
        .unwrap();
    assert!(
        matches!(loss, Loss::SessionOver | Loss::Presumed),
        "{loss:?}"
    );
    soon(mutex(&client).acquire())
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    net.stop().await;
}
