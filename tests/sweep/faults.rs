//! Programs that one fault breaks, and no other: each also in a sound version.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use minikeeper::{ErrorCode, Server, Sweep, SweepFault, SweepReport};
use minikeeper_client::{Client, CreateMode, Error};
use minikeeper_test_kit::servers;
use tokio::time::{sleep, timeout};

use crate::behaviour::{connect, found};

/// The faults that were known before.
const OTHERS: [SweepFault; 7] = [
    SweepFault::ReplyLost,
    SweepFault::RequestLost,
    SweepFault::ConnectionCut,
    SweepFault::SessionExpired,
    SweepFault::ReplyLate,
    SweepFault::ServerRestarted,
    SweepFault::EventLate,
];

/// Repeats a request until it is answered.
async fn until_answered<T, F: Future<Output = Result<T, Error>>>(
    mut request: impl FnMut() -> F,
) -> Result<T, Error> {
    loop {
        match request().await {
            Err(error) if error.is_retryable() => {
                sleep(Duration::from_millis(10)).await;
            }
            other => return other,
        }
    }
}

/// Creates a znode that may be there.
async fn create(client: &Client, path: &str, data: &[u8]) {
    let created = until_answered(|| client.create(path, data, CreateMode::Persistent)).await;
    let is_there = |error: &Error| error.code() == Some(ErrorCode::NodeExists);
    assert!(created.as_ref().err().is_none_or(is_there), "{created:?}");
}

async fn data_of(client: &Client, path: &str) -> Option<Vec<u8>> {
    match until_answered(|| client.get_data(path)).await {
        Ok(data) => Some(data.as_bytes().to_vec()),
        Err(error) if error.code() == Some(ErrorCode::NoNode) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Checks that a fault breaks a program, at this point, that no other does, and that its sound version holds.
fn breaks<F: Future<Output = ()> + Send + 'static>(
    point: &str,
    program: impl Fn(Arc<Server>, bool) -> F + Send + Sync + Copy,
) {
    let fault: SweepFault = point.split(':').next().unwrap().parse().unwrap();
    let sweep = |is_sound: bool, faults: &[SweepFault]| -> SweepReport {
        let test = move |server| program(server, is_sound);
        Sweep::new(test).faults(faults).run()
    };
    let report = sweep(false, &[fault]);
    assert!(found(&report).contains(&point.to_owned()), "{report}");
    assert!(report.reasons().is_empty(), "{report}");
    let test = move |server| program(server, false);
    let again = Sweep::new(test).only(point).unwrap().run();
    assert_eq!(found(&again), [point]);
    sweep(false, &OTHERS).assert_clean();
    sweep(true, &OTHERS).assert_clean();
    sweep(true, &[fault]).assert_clean();
}

/// Reads, and sets the watch with a second request.
async fn follow(server: Arc<Server>, is_sound: bool) {
    let (reader, writer) = (
        connect(&server).await.unwrap(),
        connect(&server).await.unwrap(),
    );
    create(&writer, "/config", b"1").await;
    let mut seen = data_of(&reader, "/config").await.unwrap();
    let write = servers::spawn(async move {
        sleep(Duration::from_millis(20)).await;
        let set = until_answered(|| writer.set_data("/config", b"2", None)).await;
        set.expect("it is there");
    });
    while seen != b"2" {
        let epoch = reader.epoch();
        let read = reader.get_data_and_watch("/config").await;
        let (Ok((data, watch)), true) = (read, reader.epoch() == epoch) else {
            // The connection or the session was lost: reads again.
            seen = data_of(&reader, "/config").await.unwrap();
            continue;
        };
        if is_sound {
            seen = data.as_bytes().to_vec();
        }
        if seen != b"2" {
            let fired = timeout(Duration::from_secs(60), watch).await;
            assert!(fired.is_ok(), "the reader has missed the change");
            // Also after the end of its session.
            seen = data_of(&reader, "/config").await.unwrap();
        }
    }
    write.await.unwrap();
}

#[test]
fn request_that_comes_late_breaks_a_reader_that_sets_its_watch_later() {
    breaks("request-late:2:getData:2:/config", follow);
}

/// Writes to a database, which is no part of ZooKeeper, once the server has said that it holds the lock.
async fn write_under_lock(server: Arc<Server>, is_sound: bool) {
    let epoch = Arc::new(AtomicU32::new(0));
    let (one, other) = (
        connect(&server).await.unwrap(),
        connect(&server).await.unwrap(),
    );
    create(&one, "/lock", b"").await;
    let contend = |client: Client, number: u32, epoch: Arc<AtomicU32>| async move {
        let name = format!("/lock/{number}-");
        loop {
            let children = until_answered(|| client.children("/lock")).await.unwrap();
            let mut children: Vec<_> = children.names().map(String::from).collect();
            children.sort_by_key(|child| child.rsplit('-').next().unwrap().to_owned());
            let is_own = |child: &&String| child.starts_with(&name[6..]);
            match children.iter().find(is_own) {
                None => {
                    // Whether it was created, the children show.
                    let _ = client
                        .create(&name, b"", CreateMode::EphemeralSequential)
                        .await;
                }
                Some(child) if *child == children[0] => {
                    // The number of the znode is the fencing token.
                    let token = child.rsplit('-').next().unwrap().parse::<u32>().unwrap() + 1;
                    let last = epoch.fetch_max(token, Ordering::SeqCst);
                    assert!(
                        is_sound || last <= token,
                        "the holder of {token} writes after that of {last}"
                    );
                    break;
                }
                Some(_) => sleep(Duration::from_millis(20)).await,
            }
        }
        client.close().await;
    };
    let first = servers::spawn(contend(one, 1, Arc::clone(&epoch)));
    sleep(Duration::from_millis(5)).await;
    contend(other, 2, epoch).await;
    first.await.unwrap();
}

#[test]
fn client_that_stands_still_breaks_a_holder_without_a_fencing_token() {
    breaks("client-paused:1:getChildren2:2:/lock", write_under_lock);
}

/// Sets up two znodes, unless the first is there.
async fn set_up(server: Arc<Server>, is_sound: bool) {
    let client = connect(&server).await.unwrap();
    let is_there = until_answered(|| client.exists("/tenant"))
        .await
        .unwrap()
        .is_some();
    if is_sound || !is_there {
        create(&client, "/tenant", b"").await;
        create(&client, "/tenant/quota", b"10").await;
    }
    assert!(
        data_of(&client, "/tenant/quota").await.is_some(),
        "the tenant is not complete"
    );
}

#[test]
fn death_of_the_program_breaks_two_steps_that_are_one() {
    breaks("client-crash:1:create2:1:/tenant", set_up);
}

/// Asks three times within a tenth of a second.
async fn ask(server: Arc<Server>, is_sound: bool) {
    let client = connect(&server).await.unwrap();
    // A call waits for a connection.
    let client = client.with_timeout(Duration::from_millis(50));
    let mut tries = 0;
    loop {
        tries += 1;
        match client.exists("/a").await {
            Ok(_) => break,
            Err(_) if is_sound || tries < 3 => sleep(Duration::from_millis(20)).await,
            Err(error) => panic!("after {tries} tries: {error}"),
        }
    }
}

#[test]
fn outage_breaks_a_client_that_gives_up_soon() {
    breaks("outage:1:exists:1:/a", ask);
    let all = [SweepFault::Outage, SweepFault::ClientOutage];
    // With one client the two are the same; the limit of the program is longer than a shorter outage.
    let report = Sweep::new(|server| ask(server, false)).faults(all).run();
    assert_eq!(found(&report), ["outage:1:exists:1:/a"], "{report}");
    let short = Sweep::new(|server| ask(server, false));
    short
        .faults(all)
        .outage(Duration::from_millis(50))
        .run()
        .assert_clean();
    let endless = Sweep::new(|server| ask(server, true))
        .faults(all)
        .outage(Duration::MAX);
    let report = endless.hang_after(Duration::from_secs(60)).run();
    assert!(report.hung > 0, "{report}");
}

/// Keeps the data with the highest version.
async fn keep(server: Arc<Server>, is_sound: bool) {
    let (reader, writer) = (
        connect(&server).await.unwrap(),
        connect(&server).await.unwrap(),
    );
    create(&writer, "/config", b"1").await;
    let mut kept = (Vec::new(), -1);
    let mut read = async || {
        let read = until_answered(|| reader.get_data("/config")).await.unwrap();
        if is_sound || read.stat.version > kept.1 {
            kept = (read.as_bytes().to_vec(), read.stat.version);
        }
        kept.0.clone()
    };
    loop {
        match until_answered(|| writer.set_data("/config", b"2", None)).await {
            Err(error) if error.code() == Some(ErrorCode::NoNode) => {
                create(&writer, "/config", b"1").await;
            }
            set => {
                set.expect("it is there");
                break;
            }
        }
    }
    if server.get("/config").is_none() {
        return;
    }
    read().await;
    if data_of(&writer, "/config").await == Some(read().await) {
        return;
    }
    // The server may have come back older meanwhile.
    let kept = read().await;
    let there = data_of(&writer, "/config").await;
    assert_eq!(Some(kept), there, "what the cache has, and what is there");
}

#[test]
fn rollback_breaks_a_cache_that_never_goes_back() {
    breaks("rollback:2:getData:1:/config", keep);
}

#[test]
fn rollback_takes_several_changes_back() {
    let test = |server: Arc<Server>| async move {
        let client = connect(&server).await.unwrap();
        let paths = ["/a", "/b", "/c"];
        for path in paths {
            create(&client, path, b"").await;
        }
        let there = paths.into_iter().filter(|path| server.get(path).is_some());
        assert_eq!(there.count(), 3, "znodes");
    };
    for (changes, left) in [(1, 2), (2, 1), (3, 0)] {
        let sweep = Sweep::new(test).only("rollback:1:create2:1:/c").unwrap();
        let report = sweep.rollback(changes).run();
        let message = &report.failures[0].message;
        assert!(message.contains(&format!("left: {left}\n")), "{message}");
    }
}
