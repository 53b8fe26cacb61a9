//! One queue for contenders on both clients.

use std::sync::Arc;

use minikeeper_client::Client;
use minikeeper_recipes::{FencingToken, InterProcessMutex, client::ZooKeeper};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::kit::{PATH, SESSION_TIMEOUT, adapter, cut, queue, soon, start, until};

/// The contenders that held the lock, in order, and whether one holds it now.
#[derive(Default)]
struct Log {
    is_inside: bool,
    turns: Vec<(usize, FencingToken)>,
}

fn contend<C: ZooKeeper>(client: C, number: usize, log: &Arc<Mutex<Log>>) -> JoinHandle<()> {
    let (lock, log) = (
        InterProcessMutex::new(client, PATH).unwrap(),
        Arc::clone(log),
    );
    tokio::spawn(async move {
        let guard = lock.acquire().await.unwrap();
        {
            let mut log = log.lock();
            assert!(!log.is_inside, "two at once");
            log.is_inside = true;
            log.turns.push((number, guard.token()));
        }
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        log.lock().is_inside = false;
        guard.release().await.unwrap();
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn contenders_on_both_clients_are_served_in_order_of_arrival() {
    let server = start().await;
    let address = server.connect_string();
    let log = Arc::default();
    for holder_is_ours in [false, true] {
        let (theirs, ours) = (
            adapter(&server).await,
            Client::builder(&address)
                .unwrap()
                .session_timeout(SESSION_TIMEOUT)
                .connect()
                .await
                .unwrap(),
        );
        let mut tasks = Vec::new();
        let (mine, other);
        if holder_is_ours {
            other = InterProcessMutex::new(ours.clone(), PATH).unwrap();
            mine = (None, Some(soon(other.acquire()).await.unwrap()));
        } else {
            let lock = InterProcessMutex::new(theirs.clone(), PATH).unwrap();
            mine = (Some(soon(lock.acquire()).await.unwrap()), None);
        }
        for number in 0..12 {
            tasks.push(if number % 2 == 0 {
                contend(theirs.clone(), number, &log)
            } else {
                contend(ours.clone(), number, &log)
            });
            until("it waits", || queue(&server).len() == number + 2).await;
        }
        // A lost connection does not change the order.
        cut(&server, &theirs);
        server.disconnect(ours.session_id().unwrap()).unwrap();
        drop(mine);
        for task in tasks {
            soon(task).await.unwrap();
        }
        let turns = std::mem::take(&mut log.lock().turns);
        let numbers: Vec<_> = turns.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (0..12).collect::<Vec<_>>());
        assert!(turns.is_sorted_by(|a, b| a.1 < b.1), "tokens grow");
        until("no contender is left", || queue(&server).is_empty()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn contenders_on_both_clients_exclude_each_other() {
    let server = start().await;
    let address = server.connect_string();
    let log = Arc::default();
    let mut tasks = Vec::new();
    for number in 0..5 {
        let theirs = adapter(&server).await;
        let ours = Client::connect(&address).await.unwrap();
        for _ in 0..4 {
            tasks.push(contend(theirs.clone(), number, &log));
            tasks.push(contend(ours.clone(), number, &log));
        }
    }
    for task in tasks {
        soon(task).await.unwrap();
    }
    let log: &Mutex<Log> = &log;
    assert_eq!(log.lock().turns.len(), 40);
    until("no contender is left", || queue(&server).is_empty()).await;
}
