//! Contenders for locks, in one queue with those of Curator.
//!
//! Each holder reads a ledger, checks that the token of the previous grant is smaller, and writes
//! its own. A ledger that has changed meanwhile, or a token that is not larger, is a violation:
//! two holders at once, or grants out of order. Holders that may coexist (readers, lease holders)
//! create marks instead, which are counted. `Mixed.java` does the same; an audit checks both by the
//! changes on the server.

mod audit;
mod contender;
mod judge;
mod ledger;
mod names;

use std::{sync::Arc, time::Duration};

use clap::ValueEnum;
use minikeeper_client::CreateMode;
use minikeeper_recipes::LockOptions;
use minikeeper_tests::access::{Access, Fault};

use self::{
    contender::{Contender, Gaps, Seen},
    ledger::Entry,
    names::Kind,
};

/// Acquires locks in competition with other contenders, and checks mutual exclusion.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    access: Access,
    /// Task to run.
    #[arg(long, value_enum, default_value = "contend")]
    task: Task,
    /// Kind of lock.
    #[arg(long, value_enum)]
    kind: Kind,
    /// Path of the lock.
    #[arg(long)]
    path: String,
    /// Number of contenders, each with its own session.
    #[arg(long, default_value_t = 4)]
    contenders: u32,
    /// Acquisitions of each contender.
    #[arg(long, default_value_t = 100)]
    rounds: u32,
    /// Time for which the lock is held, in milliseconds.
    #[arg(long, default_value_t = 0)]
    hold_ms: u64,
    /// Send exactly the requests of Curator.
    #[arg(long)]
    exact: bool,
    /// Turn off different savings for each contender.
    #[arg(long, conflicts_with = "exact")]
    varied: bool,
    /// Begin when Curator's contenders are ready.
    #[arg(long)]
    wait_ready: bool,
    /// Acquire another lock: a deliberate bug, which must be found.
    #[arg(long)]
    elsewhere: bool,
    /// Time limit for the task, in seconds.
    #[arg(long, default_value_t = 180)]
    patience: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Task {
    /// Create the ledger, which must not exist.
    Prepare,
    /// Acquire the lock in rounds.
    Contend,
    /// Check the changes on the server until the end.
    Audit,
    /// Wait until the audit has begun.
    AwaitAudit,
    /// Mark the end, and print the counts of the ledger.
    Finish,
}

pub(crate) async fn run(args: &Args) -> Result<bool, Fault> {
    match args.task {
        Task::Prepare => prepare(args).await,
        Task::Contend => contend(args).await,
        Task::Audit => audit(args).await,
        Task::AwaitAudit => await_znode(args, names::audited(&args.path)).await,
        Task::Finish => finish(args).await,
    }
}

async fn prepare(args: &Args) -> Result<bool, Fault> {
    let client = args.access.builder()?.connect().await?;
    let mode = CreateMode::Persistent;
    for ledger in names::ledgers(args.kind, &args.path) {
        client.create(&ledger, Entry::EMPTY, mode).await?;
    }
    client.create(&names::gauge(&args.path), b"", mode).await?;
    client.close().await;
    Ok(true)
}

async fn finish(args: &Args) -> Result<bool, Fault> {
    let client = args.access.builder()?.connect().await?;
    let end = names::end(&args.path);
    client.create(&end, b"", CreateMode::Persistent).await?;
    let (mut count, mut switches) = (0, 0);
    for ledger in names::ledgers(args.kind, &args.path) {
        let entry = Entry::parse(client.get_data(&ledger).await?.as_bytes());
        count += entry.count;
        switches += entry.switches;
    }
    client.close().await;
    println!("ledger: writes={count} switches={switches}");
    Ok(true)
}

async fn audit(args: &Args) -> Result<bool, Fault> {
    let patience = Duration::from_secs(args.patience);
    let judge = audit::audit(args.access.builder()?, args.kind, &args.path, patience).await?;
    for violation in judge.violations.iter().take(20) {
        println!("{violation}");
    }
    println!(
        "audit: writes={} marks={} passes={} inside={} queue={} violations={}",
        judge.writes,
        judge.marked,
        judge.passes,
        judge.inside_max,
        judge.queue_max,
        judge.violations.len()
    );
    Ok(judge.violations.is_empty())
}

async fn await_znode(args: &Args, path: String) -> Result<bool, Fault> {
    let client = args.access.builder()?.connect().await?;
    let (there, created) = client.exists_and_watch(&path).await?;
    if there.is_none() {
        tokio::time::timeout(Duration::from_secs(args.patience), created).await?;
    }
    client.close().await;
    Ok(true)
}

/// Returns options of which each is off for some contenders and on for others.
fn varied(number: u32) -> LockOptions {
    let mut options = LockOptions::default();
    options.look_ahead = number as usize % 5;
    options.create_and_list_together = number.is_multiple_of(2);
    options.names_only = number % 2 == 1;
    options.parents_from_below = number.is_multiple_of(3);
    options.leave_at_once = number % 3 == 1;
    options.nearest_writer = number % 4 < 2;
    options.leases_together = !number.is_multiple_of(4);
    options.watch_own = number % 4 == 3;
    options.peek = number.is_multiple_of(2);
    options
}

async fn contend(args: &Args) -> Result<bool, Fault> {
    if args.wait_ready {
        await_znode(args, names::ready(&args.path)).await?;
    }
    let gaps = Arc::new(Gaps::start());
    let mut tasks = Vec::new();
    for number in 0..args.contenders {
        let builder = args.access.builder()?;
        let contender = Contender {
            client: builder
                .session_timeout(Duration::from_secs(4))
                .connect()
                .await?,
            path: args.path.clone(),
            lock_path: match args.elsewhere {
                true => format!("{}-elsewhere", args.path),
                false => args.path.clone(),
            },
            number,
            rounds: args.rounds,
            hold: Duration::from_millis(args.hold_ms),
            options: match (args.exact, args.varied) {
                (true, _) => LockOptions::curator_exact(),
                (_, true) => varied(number),
                _ => LockOptions::default(),
            },
            gaps: Arc::clone(&gaps),
        };
        let kind = args.kind;
        tasks.push(tokio::spawn(async move {
            let seen = contender.run(kind).await;
            contender.client.close().await;
            seen
        }));
    }
    let mut seen = Seen::default();
    for task in tasks {
        let one = tokio::time::timeout(Duration::from_secs(args.patience), task).await???;
        seen.add(&one);
    }
    println!(
        "contender: acquisitions={} writes={} marks={} violations={} losses={} longest_gap_ms={}",
        args.contenders * args.rounds,
        seen.writes,
        seen.marks,
        seen.violations,
        seen.losses,
        gaps.longest().as_millis()
    );
    Ok(seen.violations == 0)
}
