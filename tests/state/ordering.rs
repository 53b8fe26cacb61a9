//! The guarantees to watchers under real concurrency: `docs/zookeeper-protocol.md` section 12.4.

use std::sync::{Arc, atomic::AtomicU64};

use bytes::Bytes;
use minikeeper::Server;
use minikeeper_protocol::{Create, CreateMode, EventKind, Request, Zxid};
use minikeeper_tests::replay::Received;
use tokio::sync::Barrier;

use crate::traffic::{Client, runtime, server};

const WRITERS: usize = 3;
const WATCHERS: usize = 3;
const WRITES: usize = 400;

#[test]
fn event_is_received_before_any_reply_that_shows_the_change() {
    check_one_by_one().unwrap();
}

#[test]
fn watcher_over_local_connection_receives_every_event_once_and_in_order() {
    check_watchers(false).unwrap();
}

#[test]
fn watcher_over_socket_receives_every_event_once_and_in_order() {
    check_watchers(true).unwrap();
}

#[test]
fn armed_watch_fires_for_exactly_the_next_change() {
    check_one_shots(false).unwrap();
    check_one_shots(true).unwrap();
}

#[test]
fn sync_is_answered_in_order_with_the_last_zxid() {
    check_sync().unwrap();
}

fn get(path: &str, watch: bool) -> Request {
    let path = Some(path.into());
    Request::GetData { path, watch }
}

fn set(path: &str) -> Request {
    Request::SetData {
        path: Some(path.into()),
        data: Some(Bytes::from_static(b"x")),
        version: -1,
    }
}

/// Checks that a sync is answered in order and has the last zxid (`docs/zookeeper-protocol.md`
/// section
/// 10.12). One client writes, then the other syncs. Both use sockets, so that a panic stays in the server.
fn check_sync() -> Result<(), String> {
    runtime().block_on(async {
        let server = server().await;
        let mut clients = clients(&server, 2, true).await?;
        clients[0].ask(create("/x")).await?;
        let path = Some("/x".into());
        clients[1]
            .send([get("/x", false), Request::Sync { path }])
            .await;
        clients[1].answered().await?;
        match &clients[1].received[..] {
            [Received::Reply(read), Received::Reply(sync)]
                if read.zxid == Zxid(3) && sync.zxid == Zxid(3) && sync.outcome.is_ok() =>
            {
                Ok(())
            }
            other => Err(format!("the reader received {other:?}")),
        }
    })
}

/// Checks rule 2 of section 12.4 without concurrency: a watcher reads after another connection has
/// written, so its event waits in the outbox when the read is served.
fn check_one_by_one() -> Result<(), String> {
    runtime().block_on(async {
        let server = server().await;
        let mut clients = clients(&server, 2, false).await?;
        let (mut writer, mut watcher) = (clients.remove(0), clients.remove(0));
        writer.ask(create("/w")).await?;
        watcher.ask(get("/w", true)).await?;
        writer.ask(set("/w")).await?;
        watcher.ask(get("/w", false)).await?;
        match &watcher.received[..] {
            [
                Received::Reply(armed),
                Received::Event {
                    kind: EventKind::DataChanged,
                    zxid,
                    ..
                },
                Received::Reply(shown),
            ] if armed.zxid < *zxid && *zxid <= shown.zxid => Ok(()),
            other => Err(format!("the watcher received {other:?}")),
        }
    })
}

/// Checks that a watcher of everything receives each change once and in order, and that each of its
/// reads shows exactly the changes received before. Every write is an event for every watcher, so
/// the last event before a reply must have the zxid of the reply.
fn check_watchers(over_tcp: bool) -> Result<(), String> {
    runtime().block_on(async {
        let server = server().await;
        let mut clients = clients(&server, WRITERS + WATCHERS, over_tcp).await?;
        for client in &mut clients[..WATCHERS] {
            let path = Some("/".into());
            client.ask(Request::AddWatch { path, mode: 1 }).await?;
        }
        let start = clients[0].received.len();
        for number in 0..WRITERS {
            clients[WATCHERS]
                .ask(create(&format!("/w{number}")))
                .await?;
        }
        let barrier = Arc::new(Barrier::new(WRITERS + WATCHERS));
        let mut tasks = Vec::new();
        for (number, client) in clients.into_iter().enumerate() {
            let barrier = Arc::clone(&barrier);
            tasks.push(tokio::spawn(async move {
                match number.checked_sub(WATCHERS) {
                    None => watch(client, barrier).await,
                    Some(number) => write(client, number, barrier).await,
                }
            }));
        }
        let mut watchers = Vec::new();
        for (number, task) in tasks.into_iter().enumerate() {
            let client = task.await.map_err(|error| error.to_string())??;
            if number < WATCHERS {
                watchers.push(client);
            }
        }
        server.check().map_err(|broken| broken.to_string())?;
        let first = Zxid(i64::try_from(WRITERS + WATCHERS).expect("they are few"));
        for watcher in &watchers {
            let count = check_stream(&watcher.received[start..], first)?;
            if count != WRITERS * (WRITES + 1) {
                return Err(format!(
                    "{count} events for {} changes",
                    WRITERS * (WRITES + 1)
                ));
            }
        }
        Ok(())
    })
}

/// Checks what one watcher of everything received. Returns the number of events.
fn check_stream(received: &[Received], first: Zxid) -> Result<usize, String> {
    let (mut newest, mut count) = (first, 0);
    for received in received {
        match received {
            Received::Event { zxid, .. } => {
                if *zxid != Zxid(newest.0 + 1) {
                    return Err(format!("the event of {zxid} came after that of {newest}"));
                }
                newest = *zxid;
                count += 1;
            }
            Received::Reply(call) => {
                if call.zxid != newest {
                    return Err(format!("{call:?} came after the event of {newest}"));
                }
            }
        }
    }
    Ok(count)
}

async fn watch(mut client: Client, barrier: Arc<Barrier>) -> Result<Client, String> {
    let reads = [get("/w0", false), get("/w1", false)];
    repeat(&mut client, WRITES, &reads, &barrier).await?;
    // Events on the way arrive before this reply.
    client.ask(Request::Ping).await?;
    Ok(client)
}

/// Sends the same requests again and again, and waits for all others.
async fn repeat(
    client: &mut Client,
    times: usize,
    requests: &[Request],
    barrier: &Barrier,
) -> Result<(), String> {
    let mut outcome = Ok(());
    for _ in 0..times {
        client.send(requests.iter().cloned()).await;
        outcome = client.answered().await;
        if outcome.is_err() {
            break;
        }
    }
    barrier.wait().await;
    outcome
}

async fn write(mut client: Client, number: usize, barrier: Arc<Barrier>) -> Result<Client, String> {
    let path = format!("/w{number}");
    let writes = [0; 4].map(|_| set(&path));
    repeat(&mut client, WRITES / 4, &writes, &barrier).await?;
    Ok(client)
}

/// Checks that a one-shot watch fires once, for the first change after the read that set it. A
/// reader sets the watch with every read while others write. The zxids of the writes then determine
/// the event that each read should have caused.
fn check_one_shots(over_tcp: bool) -> Result<(), String> {
    runtime().block_on(async {
        let server = server().await;
        let mut clients = clients(&server, 3, over_tcp).await?;
        clients[0].ask(create("/w0")).await?;
        let barrier = Arc::new(Barrier::new(3));
        let reader = clients.remove(0);
        let mut writers = Vec::new();
        for client in clients {
            writers.push(tokio::spawn(write(client, 0, Arc::clone(&barrier))));
        }
        let reader = tokio::spawn(arm(reader, barrier));
        let reader = reader.await.map_err(|error| error.to_string())??;
        let mut changes = Vec::new();
        for writer in writers {
            let writer = writer.await.map_err(|error| error.to_string())??;
            changes.extend(
                writer
                    .received
                    .iter()
                    .filter_map(|received| match received {
                        Received::Reply(call) => Some(call.zxid),
                        Received::Event { .. } => None,
                    }),
            );
        }
        changes.sort_unstable();
        let mut expected = Vec::new();
        let mut got = Vec::new();
        for received in &reader.received {
            match received {
                Received::Event { zxid, .. } => got.push(*zxid),
                Received::Reply(call) if matches!(call.request, Request::GetData { .. }) => {
                    let next = changes.partition_point(|zxid| *zxid <= call.zxid);
                    expected.extend(changes.get(next));
                }
                Received::Reply(_) => {}
            }
        }
        // Two reads before the same change arm one watch.
        expected.dedup();
        if got != expected {
            return Err(format!(
                "events of {got:?}\nfor watches that should fire at {expected:?}"
            ));
        }
        Ok(())
    })
}

async fn arm(mut client: Client, barrier: Arc<Barrier>) -> Result<Client, String> {
    repeat(&mut client, WRITES, &[get("/w0", true)], &barrier).await?;
    client.ask(Request::Ping).await?;
    Ok(client)
}

fn create(path: &str) -> Request {
    Request::Create(Create::new(path, b"", CreateMode::Persistent))
}

async fn clients(server: &Server, count: usize, over_tcp: bool) -> Result<Vec<Client>, String> {
    let clock = Arc::new(AtomicU64::new(0));
    let mut clients = Vec::new();
    for _ in 0..count {
        let client = Client::connect(server, over_tcp, &clock).await;
        clients.push(client.map_err(|error| error.to_string())?);
    }
    Ok(clients)
}
