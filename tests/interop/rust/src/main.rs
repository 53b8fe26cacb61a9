//! The crate `zookeeper-client` and its lock recipe against the server at `HOST:PORT`, the only argument.

use std::cell::Cell;
use std::fmt::Display;
use std::future::Future;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::{JoinSet, LocalSet};
use zookeeper_client::{
    Acls, AddWatchMode, Client, CreateMode, CreateOptions, Error, EventType, LockOptions,
    LockPrefix, MultiWriteError, MultiWriteResult,
};

const CONTENDERS: u32 = 4;
const ACQUISITIONS: u32 = 10;
const WAIT: Duration = Duration::from_secs(60);
const CONNECT_WAIT: Duration = Duration::from_secs(20);
/// More than the maximum of any server in these tests.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

const PERSISTENT: CreateOptions<'static> = CreateMode::Persistent.with_acls(Acls::anyone_all());
const SEQUENTIAL: CreateOptions<'static> =
    CreateMode::PersistentSequential.with_acls(Acls::anyone_all());
const EPHEMERAL: CreateOptions<'static> = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
const CONTAINER: CreateOptions<'static> = CreateMode::Container.with_acls(Acls::anyone_all());

/// The outcome of a check, with its text.
type Verdict = Result<String, String>;

/// Waits with a time limit. The error names what did not happen.
async fn bounded<T>(what: &str, wait: impl Future<Output = T>) -> Result<T, String> {
    tokio::time::timeout(WAIT, wait)
        .await
        .map_err(|_| format!("waited {} s for {what}", WAIT.as_secs()))
}

/// Waits for a call that can fail, with a time limit.
async fn call<T, E: Display>(
    what: &str,
    wait: impl Future<Output = Result<T, E>>,
) -> Result<T, String> {
    bounded(what, wait)
        .await?
        .map_err(|error| format!("{what}: {error}"))
}

fn require(holds: bool, text: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(text()) }
}

async fn connect(address: &str) -> Result<Client, String> {
    let connector = Client::connector()
        .with_session_timeout(SESSION_TIMEOUT)
        .with_connection_timeout(CONNECT_WAIT);
    call("a connection", connector.connect(address)).await
}

/// Creates a parent znode that no other check and no earlier run against the same server has used.
async fn fresh_path(client: &Client) -> Result<String, String> {
    let path = format!("/interop/rust/{}", uuid::Uuid::new_v4());
    call("mkdir", client.mkdir(&path, &PERSISTENT)).await?;
    Ok(path)
}

async fn connection(address: &str) -> Verdict {
    let granted = connect(address).await?.session_timeout().as_millis();
    Ok(format!(
        "requested a session of {} ms, granted {granted} ms",
        SESSION_TIMEOUT.as_millis()
    ))
}

async fn basics(address: &str) -> Verdict {
    let client = connect(address).await?;
    let path = fresh_path(&client).await?;
    let znode = format!("{path}/znode");
    let (stat, _) = call("create", client.create(&znode, b"first", &PERSISTENT)).await?;
    require(stat.version == 0 && stat.data_length == 5, || {
        format!("stat after create: {stat:?}")
    })?;
    let stat = call("set", client.set_data(&znode, b"second", Some(0))).await?;
    require(stat.version == 1, || {
        format!("version {} after set", stat.version)
    })?;
    let wrong = bounded("set", client.set_data(&znode, b"third", Some(0))).await?;
    require(wrong == Err(Error::BadVersion), || {
        format!("set with a wrong version: {wrong:?}")
    })?;
    let (data, read) = call("get", client.get_data(&znode)).await?;
    require(data == b"second" && read == stat, || {
        format!("get: {data:?} {read:?}")
    })?;
    let twice = bounded("create", client.create(&znode, b"", &PERSISTENT))
        .await?
        .map(|_| ());
    require(twice == Err(Error::NodeExists), || {
        format!("create twice: {twice:?}")
    })?;
    for expected in 0..3 {
        let (_, sequence) = call(
            "create",
            client.create(&format!("{path}/n-"), b"", &SEQUENTIAL),
        )
        .await?;
        // One child existed before.
        require(sequence.into_i64() == expected + 1, || {
            format!("suffix {sequence} for {}", expected + 1)
        })?;
    }
    let mut names = call("list", client.list_children(&path)).await?;
    names.sort();
    let wanted = ["n-0000000001", "n-0000000002", "n-0000000003", "znode"];
    require(names == wanted, || format!("children {names:?}"))?;
    call("delete", client.delete(&znode, Some(1))).await?;
    let gone = call("exists", client.check_stat(&znode)).await?;
    require(gone.is_none(), || "exists after delete".to_owned())?;
    Ok("create, sequential, get, set, list, delete and their errors".to_owned())
}

async fn ephemeral(address: &str) -> Verdict {
    let other = connect(address).await?;
    let path = format!("{}/e", fresh_path(&other).await?);
    let owner = connect(address).await?;
    let (stat, _) = call("create", owner.create(&path, b"", &EPHEMERAL)).await?;
    require(stat.ephemeral_owner == owner.session_id().0, || {
        format!("owner {:#x}", stat.ephemeral_owner)
    })?;
    let (_, watcher) = call("exists", other.check_and_watch_stat(&path)).await?;
    // The session is closed when its last handle is dropped.
    drop(owner);
    let event = bounded(
        "the deletion of a closed session's ephemeral",
        watcher.changed(),
    )
    .await?;
    require(
        event.event_type == EventType::NodeDeleted && event.path == path,
        || format!("event {event:?}"),
    )?;
    Ok("owner is the session, gone when it closes".to_owned())
}

async fn lock(address: &str) -> Verdict {
    let planted = std::env::var("INTEROP_PLANT").is_ok_and(|plant| plant == "nolock");
    let path = format!("{}/lock", fresh_path(&connect(address).await?).await?);
    let inside = Rc::new(Cell::new(0u32));
    let inside_max = Rc::new(Cell::new(0u32));
    let counter = Rc::new(Cell::new(0u32));
    let mut contenders = JoinSet::new();
    for _ in 0..CONTENDERS {
        let client = connect(address).await?;
        let (path, inside, inside_max, counter) = (
            path.clone(),
            Rc::clone(&inside),
            Rc::clone(&inside_max),
            Rc::clone(&counter),
        );
        contenders.spawn_local(async move {
            for _ in 0..ACQUISITIONS {
                let prefix =
                    LockPrefix::new_curator(&path, "lock-").map_err(|error| error.to_string())?;
                let options = LockOptions::new(Acls::anyone_all())
                    .with_ancestor_options(CONTAINER)
                    .map_err(|error| error.to_string())?;
                let held = match planted {
                    true => None,
                    false => Some(call("the lock", client.lock(prefix, b"", options)).await?),
                };
                inside.set(inside.get() + 1);
                inside_max.set(inside_max.get().max(inside.get()));
                // Read and written in two steps with a round trip between them: only the lock makes them atomic.
                let read = counter.get();
                call("exists", client.check_stat("/")).await?;
                counter.set(read + 1);
                inside.set(inside.get() - 1);
                drop(held);
            }
            Ok::<_, String>(())
        });
    }
    while let Some(contender) = bounded("all contenders to finish", contenders.join_next()).await? {
        contender.map_err(|error| error.to_string())??;
    }
    let (counter, inside_max) = (counter.get(), inside_max.get());
    let acquisitions = CONTENDERS * ACQUISITIONS;
    require(inside_max == 1, || {
        format!("{inside_max} holders at once, counter {counter} of {acquisitions}")
    })?;
    require(counter == acquisitions, || {
        format!("counter {counter} of {acquisitions}")
    })?;
    Ok(format!(
        "{CONTENDERS} contenders x {ACQUISITIONS} acquisitions, counter {counter}, max holders {inside_max}"
    ))
}

async fn multi(address: &str) -> Verdict {
    let client = connect(address).await?;
    let path = fresh_path(&client).await?;
    let mut writer = client.new_multi_writer();
    let queued = [
        writer.add_check_version(&path, 0),
        writer.add_create(&format!("{path}/a"), b"a", &PERSISTENT),
        writer.add_set_data(&path, b"1", Some(0)),
        writer.add_create(&format!("{path}/s-"), b"", &SEQUENTIAL),
        writer.add_delete(&format!("{path}/a"), Some(0)),
    ];
    require(queued.iter().all(Result::is_ok), || {
        format!("queued {queued:?}")
    })?;
    let results = call("a multi", writer.commit()).await?;
    match results.as_slice() {
        [
            MultiWriteResult::Check,
            MultiWriteResult::Create { path: a, .. },
            MultiWriteResult::SetData { stat },
            MultiWriteResult::Create { path: s, .. },
            MultiWriteResult::Delete,
        ] => {
            require(a == &format!("{path}/a"), || format!("created {a}"))?;
            require(stat.version == 1, || format!("version {}", stat.version))?;
            require(s == &format!("{path}/s-0000000001"), || {
                format!("created {s}")
            })?;
        }
        other => return Err(format!("results {other:?}")),
    }

    let mut writer = client.new_multi_writer();
    let queued = [
        writer.add_create(&format!("{path}/never"), b"", &PERSISTENT),
        writer.add_check_version(&path, 77),
    ];
    require(queued.iter().all(Result::is_ok), || {
        format!("queued {queued:?}")
    })?;
    let failed = bounded("a multi", writer.commit()).await?;
    let wanted = Err(MultiWriteError::OperationFailed {
        index: 1,
        source: Error::BadVersion,
    });
    require(failed == wanted, || format!("failed multi: {failed:?}"))?;
    let children = call("list", client.list_children(&path)).await?;
    require(children == ["s-0000000001"], || {
        format!("children {children:?}")
    })?;
    Ok("5 operations together; a failed check rolls back the create before it".to_owned())
}

async fn one_shot_watch(address: &str) -> Verdict {
    let (client, other) = (connect(address).await?, connect(address).await?);
    let path = fresh_path(&client).await?;
    let (_, _, data) = call("get", client.get_and_watch_data(&path)).await?;
    let (_, children) = call("list", client.list_and_watch_children(&path)).await?;
    call("set", other.set_data(&path, b"1", None)).await?;
    call(
        "create",
        other.create(&format!("{path}/a"), b"", &PERSISTENT),
    )
    .await?;
    let data = bounded("the data event", data.changed()).await?;
    let children = bounded("the child event", children.changed()).await?;
    require(
        data.event_type == EventType::NodeDataChanged && data.path == path,
        || format!("event {data:?}"),
    )?;
    let kind = children.event_type;
    require(
        kind == EventType::NodeChildrenChanged && children.path == path,
        || format!("event {children:?}"),
    )?;
    Ok("data and child watches fire".to_owned())
}

async fn persistent_watch(address: &str) -> Verdict {
    let (client, other) = (connect(address).await?, connect(address).await?);
    let path = fresh_path(&client).await?;
    let child = format!("{path}/a");
    let mut watcher = call(
        "watch",
        client.watch(&path, AddWatchMode::PersistentRecursive),
    )
    .await?;
    call("create", other.create(&child, b"", &PERSISTENT)).await?;
    call("set", other.set_data(&child, b"1", None)).await?;
    call("set", other.set_data(&child, b"2", None)).await?;
    call("delete", other.delete(&child, None)).await?;
    for wanted in [
        EventType::NodeCreated,
        EventType::NodeDataChanged,
        EventType::NodeDataChanged,
        EventType::NodeDeleted,
    ] {
        let event = bounded(&format!("{wanted:?}"), watcher.changed()).await?;
        require(event.event_type == wanted && event.path == child, || {
            format!("event {event:?} for {wanted:?}")
        })?;
    }
    Ok("recursive: creation, 2 changes, deletion of a child".to_owned())
}

async fn run(address: &str) -> (u32, u32) {
    let (mut passed, mut failed) = (0, 0);
    let mut report = |name: &str, verdict: Verdict| match verdict {
        Ok(detail) => {
            passed += 1;
            println!("ok rust {name}: {detail}");
        }
        Err(reason) => {
            failed += 1;
            println!("FAIL rust {name}: {reason}");
        }
    };
    let connection = connection(address).await;
    let connected = connection.is_ok();
    report("connection", connection);
    if !connected {
        // Every other check would fail after the same wait.
        return (passed, failed);
    }
    report("create, get, set, delete", basics(address).await);
    report("ephemeral", ephemeral(address).await);
    report("lock", lock(address).await);
    report("multi", multi(address).await);
    report("one-shot watch", one_shot_watch(address).await);
    report("persistent watch", persistent_watch(address).await);
    (passed, failed)
}

fn main() -> ExitCode {
    let Some(address) = std::env::args().nth(1) else {
        eprintln!("usage: interop-rust HOST:PORT");
        return ExitCode::from(2);
    };
    // One thread: the gauge and the counter need no lock, which could hide that the lock under test does not work.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let (passed, failed) = LocalSet::new().block_on(&runtime, run(&address));
    println!("rust: {passed} passed, {failed} failed");
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
