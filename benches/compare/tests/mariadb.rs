//! The locks on MariaDB against a live server, and the server itself.
//!
//! The tests share one server while any of them runs.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests are not tests to the lint"
)]

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use minikeeper_bench::{
    peers::{
        Access, Belief, Contender, LockFailure, LockUnderTest, get_lock::GetLock,
        mysql_table::ResourceLock,
    },
    process::Pin,
    servers::{
        Running, Storage,
        mariadb::{self, CONNECTIONS_MAX, USER},
    },
};
use mysql_async::{Conn, OptsBuilder, prelude::Queryable as _};

mod live;

use live::{acquire, is_got_within};

/// How long a test may wait for anything.
const LIMIT: Duration = Duration::from_secs(20);

static SERVER: Mutex<Weak<Running>> = Mutex::new(Weak::new());

/// The server of these tests. Without MariaDB it panics with a message that says how to install it.
fn server() -> Arc<Running> {
    let mut shared = SERVER.lock().unwrap();
    shared.upgrade().unwrap_or_else(|| {
        let started = mariadb::start(Storage::Memory, Pin::None).unwrap_or_else(|e| panic!("{e}"));
        let started = Arc::new(started);
        *shared = Arc::downgrade(&started);
        started
    })
}

/// Gives the table to one test at a time: rows with other names are in the same gaps of its index,
/// so that others' inserts can make a try fail.
fn alone() -> MutexGuard<'static, ()> {
    static TABLE: Mutex<()> = Mutex::new(());
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn get_lock(server: &Running) -> GetLock {
    GetLock {
        server: format!("MariaDB {}", server.version()),
        addr: server.addr(),
    }
}

fn run(case: impl Future<Output = ()>) {
    live::run_within(LIMIT, case);
}

/// Runs a case with exclusive use of the table.
fn run_on_table(case: impl AsyncFn(&Running, &ResourceLock)) {
    let server = server();
    let _alone = alone();
    run(async {
        let name = format!("MariaDB {}", server.version());
        let table = ResourceLock::prepare(server.addr(), name, "nothing").await;
        case(&server, &table.unwrap()).await;
    });
}

/// Runs the same case with both locks, each with its name.
fn run_both(case: impl AsyncFn(&dyn LockUnderTest, &str)) {
    run_on_table(async |server, table| {
        case(table, "table").await;
        case(&get_lock(server), "get_lock").await;
    });
}

async fn connection(server: &Running) -> Conn {
    let options = OptsBuilder::default()
        .ip_or_hostname(server.addr().ip().to_string())
        .tcp_port(server.addr().port())
        .user(Some(USER));
    Conn::new(options).await.unwrap()
}

async fn contender(lock: &dyn LockUnderTest, resource: &str) -> Box<dyn Contender> {
    lock.contender(resource).await.unwrap()
}

#[test]
fn server_as_shipped_flushes_and_removes_its_data() {
    let server = mariadb::start(Storage::AsShipped, Pin::None).unwrap_or_else(|e| panic!("{e}"));
    assert!(server.version().contains("MariaDB"), "{}", server.version());
    let mut folder = String::new();
    run(async {
        let mut connection = connection(&server).await;
        let settings: Option<(u32, u32, u32, String, String)> = connection
            .query_first(
                "SELECT @@max_connections, @@innodb_flush_log_at_trx_commit, \
                 @@innodb_doublewrite, @@tx_isolation, @@datadir",
            )
            .await
            .unwrap();
        let (connections, flush, doublewrite, isolation, data) = settings.unwrap();
        assert_eq!((connections, flush, doublewrite), (CONNECTIONS_MAX, 1, 1));
        assert_eq!(isolation, "REPEATABLE-READ");
        folder = data;
        connection.disconnect().await.unwrap();
    });
    let pid = server.pid().unwrap();
    assert!(std::path::Path::new(&folder).is_dir());
    drop(server);
    assert!(!std::path::Path::new(&folder).exists());
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn both_behave_as_a_lock() {
    run_both(async |lock, _| {
        live::behaves_as_a_lock(lock, "lock", Belief::NoAnswer, async |_| {}).await;
    });
}

/// Each release deletes the row of the table. Contenders that then find no row share its gap and
/// end in deadlocks, which are not failures.
#[test]
fn one_at_a_time_holds_it_however_many_want_it() {
    run_both(async |lock, name| {
        let inside = Arc::new(AtomicU32::new(0));
        let mut all = Vec::new();
        for _ in 0..8 {
            let mut contender = contender(lock, "many").await;
            let inside = Arc::clone(&inside);
            let name = name.to_owned();
            all.push(tokio::spawn(async move {
                for _ in 0..25 {
                    acquire(&mut *contender).await;
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "{name}");
                    tokio::task::yield_now().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    contender.release().await.unwrap();
                }
            }));
        }
        for one in all {
            one.await.unwrap();
        }
    });
}

/// The case of `docs/curator-recipes.md` section 13.4: if there is no row, two contenders that
/// select it for update share its gap, and the second insert ends with error 1213, if not with a
/// wait.
#[test]
fn missing_row_selected_by_two_ends_one_of_them_with_a_deadlock() {
    run_on_table(async |server, _| {
        let mut first = connection(server).await;
        let mut second = connection(server).await;
        let select = "SELECT id FROM bench.resource_lock WHERE resource_name='gap' FOR UPDATE";
        let insert = |owner: &str| {
            format!(
                "INSERT INTO bench.resource_lock (resource_name, node_info, count) \
                 VALUES ('gap', '{owner}', 1)"
            )
        };
        for connection in [&mut first, &mut second] {
            connection.query_drop("START TRANSACTION").await.unwrap();
            connection.query_drop(select).await.unwrap();
        }
        let one = insert("one");
        let blocked = tokio::spawn(async move {
            let done = first.query_drop(one).await;
            (first, done)
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!blocked.is_finished());
        let refused = second.query_drop(insert("two")).await.unwrap_err();
        assert!(refused.to_string().contains("1213"), "{refused}");
        let (mut first, done) = blocked.await.unwrap();
        done.unwrap();
        first.query_drop("ROLLBACK").await.unwrap();
    });
}

#[test]
fn owner_may_acquire_its_row_again_and_releases_it_as_often() {
    run_on_table(async |_, table| {
        let mut owner = table.owner("again").await.unwrap();
        let mut other = table.owner("again").await.unwrap();
        assert_eq!(owner.count().await.unwrap(), None);
        for count in 1..=3 {
            assert!(owner.lock_once().await.unwrap());
            assert_eq!(owner.count().await.unwrap(), Some(count));
        }
        for left in [Some(2), Some(1), None] {
            assert!(!other.lock_once().await.unwrap());
            owner.release().await.unwrap();
            assert_eq!(owner.count().await.unwrap(), left);
        }
        let refused = owner.release().await.unwrap_err();
        assert!(matches!(refused, LockFailure::NotHeld(_)), "{refused}");
        assert!(other.lock_once().await.unwrap());
        assert_eq!(other.count().await.unwrap(), Some(1));
    });
}

#[test]
fn sweep_frees_the_row_of_a_dead_owner_but_not_a_recent_one() {
    run_on_table(async |server, table| {
        let mut dead = table.owner("dead").await.unwrap();
        assert!(dead.lock_once().await.unwrap());
        drop(dead);
        // Other tests use the same table: only the row made old here may be swept.
        let mut connection = connection(server).await;
        connection
            .query_drop(
                "UPDATE bench.resource_lock SET update_time = NOW(6) - INTERVAL 1 HOUR \
                 WHERE resource_name = 'dead'",
            )
            .await
            .unwrap();
        let mut young = table.owner("young").await.unwrap();
        assert!(young.lock_once().await.unwrap());
        let mut second = table.owner("dead").await.unwrap();
        assert!(!second.lock_once().await.unwrap());
        assert_eq!(table.sweep(Duration::from_secs(7_200)).await.unwrap(), 0);
        assert!(!second.lock_once().await.unwrap());
        assert_eq!(table.sweep(Duration::from_secs(1_800)).await.unwrap(), 1);
        assert!(second.lock_once().await.unwrap());
        assert_eq!(young.count().await.unwrap(), Some(1));
        young.release().await.unwrap();
        second.release().await.unwrap();
    });
}

#[test]
fn owner_of_a_swept_row_gets_an_error_on_release() {
    run_on_table(async |server, table| {
        let mut owner = table.owner("swept").await.unwrap();
        assert!(owner.lock_once().await.unwrap());
        let mut connection = connection(server).await;
        connection
            .query_drop("DELETE FROM bench.resource_lock WHERE resource_name = 'swept'")
            .await
            .unwrap();
        let refused = owner.release().await.unwrap_err();
        assert!(matches!(refused, LockFailure::NotHeld(_)), "{refused}");
    });
}

#[test]
fn row_outlives_its_owners_connection_and_works_with_a_new_one() {
    run_on_table(async |server, table| {
        let mut owner = table.owner("cut").await.unwrap();
        let mut other = table.owner("cut").await.unwrap();
        assert!(owner.lock_once().await.unwrap());
        let id = owner.connection_id().unwrap();
        let mut connection = connection(server).await;
        let kill = format!("KILL CONNECTION {id}");
        connection.query_drop(kill).await.unwrap();
        // The first call over it reports that nothing was done.
        let refused = owner.lock_once().await.unwrap_err();
        assert!(matches!(refused, LockFailure::NotHeld(_)), "{refused}");
        assert!(!other.lock_once().await.unwrap());
        assert_eq!(owner.count().await.unwrap(), Some(1));
        owner.release().await.unwrap();
        assert!(other.lock_once().await.unwrap());
    });
}

#[test]
fn name_too_long_for_the_table_is_refused() {
    run_on_table(async |_, table| {
        let error = table.owner(&"x".repeat(33)).await.unwrap_err();
        assert!(error.to_string().contains("33 characters"), "{error}");
        table.owner(&"x".repeat(32)).await.unwrap();
    });
}

#[test]
fn get_lock_is_free_when_the_connection_is_cut() {
    let server = server();
    let lock = get_lock(&server);
    run(async {
        let mut holder = contender(&lock, "cut").await;
        let mut second = contender(&lock, "cut").await;
        acquire(&mut *holder).await;
        assert!(!is_got_within(&mut *second, Duration::ZERO).await);
        let mut connection = connection(&server).await;
        let kill = format!("KILL CONNECTION {}", holder.session());
        connection.query_drop(kill).await.unwrap();
        assert!(is_got_within(&mut *second, Duration::from_secs(10)).await);
        // It does not know yet that it lost its connection: the call must not succeed.
        holder.release().await.unwrap_err();
        second.release().await.unwrap();
        // It continues with a new connection.
        acquire(&mut *holder).await;
        holder.release().await.unwrap();
    });
}

#[test]
fn get_lock_is_free_when_the_contender_is_dropped() {
    let server = server();
    let lock = get_lock(&server);
    run(async {
        let mut holder = contender(&lock, "dropped").await;
        let mut second = contender(&lock, "dropped").await;
        acquire(&mut *holder).await;
        drop(holder);
        assert!(is_got_within(&mut *second, Duration::from_secs(10)).await);
    });
}

#[test]
fn get_lock_requested_by_a_dropped_acquire_is_free_again() {
    let server = server();
    let lock = get_lock(&server);
    run(async {
        let mut holder = contender(&lock, "gone").await;
        let mut second = contender(&lock, "gone").await;
        acquire(&mut *holder).await;
        let waiting = second.acquire(Access::Exclusive);
        let dropped = tokio::time::timeout(Duration::from_millis(100), waiting).await;
        assert!(dropped.is_err());
        assert!(!is_got_within(&mut *second, Duration::from_millis(100)).await);
        holder.release().await.unwrap();
        assert!(is_got_within(&mut *second, Duration::from_secs(10)).await);
        second.release().await.unwrap();
    });
}
