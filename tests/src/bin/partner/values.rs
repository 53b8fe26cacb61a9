//! Our atomic values, counts, group members, persistent nodes and TTL nodes beside Curator's, for
//! `tests/interop/values`.
//! `Values.java` does the same on the same znodes, and each checks what both together must lead to.

use std::{collections::BTreeSet, time::Duration};

use minikeeper_client::{Client, CreateMode, ErrorCode};
use minikeeper_recipes::{
    AtomicError, AtomicOptions, AtomicValue, CachedAtomicLong, DistributedAtomicInteger,
    DistributedAtomicLong, DistributedAtomicValue, GroupMember, LockError, PersistentNode,
    PersistentTtlNode, SharedCount, ValueError,
};
use minikeeper_tests::access::{Access, Fault, Pair};

/// Changes values together with another program.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    pair: Pair,
    /// Changes of each value.
    #[arg(long, default_value_t = 1_000)]
    rounds: u32,
}

/// What this program has done to a value.
#[derive(Default)]
struct Done {
    changed: u32,
    /// Changes of which it is unknown whether they were made.
    unknown: u32,
}

impl Done {
    /// Counts an attempt. Only a change that was made or may be made counts.
    fn count<T>(
        &mut self,
        change: Result<Option<AtomicValue<T>>, AtomicError>,
    ) -> Result<(), Fault> {
        match change {
            Ok(made) => self.changed += u32::from(made.is_some()),
            Err(AtomicError::Contended { .. }) => {}
            Err(AtomicError::Failed(LockError::Client(error))) if error.is_retryable() => {
                self.unknown += 1;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

pub(crate) async fn run(args: &Args) -> Result<bool, Fault> {
    let builder = args.access.builder()?;
    let client = builder
        .session_timeout(Duration::from_secs(4))
        .connect()
        .await?;
    atomics(args, &client).await?;
    numbers(args, &client).await?;
    count(args, &client).await?;
    group(&args.pair, &client).await?;
    nodes(&args.pair, &client).await?;
    ttl(&args.pair, &client).await?;
    println!(
        "{}: connections={} sessions={}",
        args.pair.name,
        client.connections(),
        client.epoch().0
    );
    Ok(true)
}

fn options() -> AtomicOptions {
    let mut options = AtomicOptions::default();
    options.attempts_max = 1_000;
    options
}

/// Both add to one long and one integer, and append to the same bytes.
async fn atomics(args: &Args, client: &Client) -> Result<(), Fault> {
    let Pair { base, name, .. } = &args.pair;
    let long =
        DistributedAtomicLong::with_options(client.clone(), &format!("{base}/long"), options())?;
    let integer = DistributedAtomicInteger::with_options(
        client.clone(),
        &format!("{base}/integer"),
        options(),
    )?;
    let bytes =
        DistributedAtomicValue::with_options(client.clone(), &format!("{base}/bytes"), options())?;
    args.pair.meet(client, "atomics", "").await?;
    let [mut longs, mut integers, mut appended] = [(); 3].map(|()| Done::default());
    while longs.changed < args.rounds {
        longs.count(long.add(1).await.map(Some))?;
    }
    while integers.changed < args.rounds {
        integers.count(integer.add(-3).await.map(Some))?;
    }
    let _ = bytes.initialize(b"").await?;
    while appended.changed < args.rounds / 10 {
        let old = bytes.get().await?;
        let new = [&old[..], name.as_bytes()].concat();
        appended.count(bytes.compare_and_set(old, new).await)?;
    }
    let done = [&longs, &integers, &appended];
    let says = done.map(|done| format!("{} {}", done.changed, done.unknown));
    let theirs = args.pair.meet(client, "counted", &says.join(" ")).await?;
    let theirs: Vec<u32> = theirs
        .split(' ')
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let found = [
        long.get().await?,
        i64::from(integer.get().await?) / -3,
        i64::try_from(bytes.get().await?.len() / name.len())?,
    ];
    for ((ours, theirs), found) in done.iter().zip(theirs.chunks(2)).zip(found) {
        let least = ours.changed + theirs[0];
        let most = least + ours.unknown + theirs[1];
        if !(i64::from(least)..=i64::from(most)).contains(&found) {
            return Err(format!("{least} to {most} changes, and the value is {found}").into());
        }
    }
    println!("{name}: long, integer and bytes are {found:?}: the sum of all changes");
    Ok(())
}

/// No number is handed out twice.
async fn numbers(args: &Args, client: &Client) -> Result<(), Fault> {
    let Pair { base, name, .. } = &args.pair;
    let counter =
        DistributedAtomicLong::with_options(client.clone(), &format!("{base}/numbers"), options())?;
    let numbers = CachedAtomicLong::new(counter, 7);
    let mut ours = BTreeSet::new();
    while ours.len() < 1_000 {
        match numbers.next().await {
            Ok(number) => drop(ours.insert(number.previous)),
            Err(AtomicError::Contended { .. }) => {}
            Err(AtomicError::Failed(LockError::Client(error))) if error.is_retryable() => {}
            Err(error) => return Err(error.into()),
        }
    }
    let says: Vec<_> = ours.iter().map(i64::to_string).collect();
    let theirs = args.pair.meet(client, "numbers", &says.join(" ")).await?;
    let theirs: BTreeSet<i64> = theirs
        .split(' ')
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    if let Some(twice) = ours.intersection(&theirs).next() {
        return Err(format!("both have taken the number {twice}").into());
    }
    println!(
        "{name}: {} and {} numbers, all different",
        ours.len(),
        theirs.len()
    );
    Ok(())
}

/// Both add to a shared count.
async fn count(args: &Args, client: &Client) -> Result<(), Fault> {
    let Pair { base, name, .. } = &args.pair;
    let count = SharedCount::start(client.clone(), &format!("{base}/count"), 0).await?;
    let [mut changed, mut unknown] = [0, 0];
    while changed < args.rounds / 10 {
        let seen = count.get().await?;
        match count.try_set(&seen, seen.value + 1).await {
            Ok(Some(_)) => changed += 1,
            Ok(None) => {}
            Err(ValueError::Client(error)) if error.is_retryable() => unknown += 1,
            Err(error) => return Err(error.into()),
        }
    }
    let says = format!("{changed} {unknown}");
    let theirs = args.pair.meet(client, "count", &says).await?;
    let theirs: Vec<u32> = theirs
        .split(' ')
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let least = i32::try_from(changed + theirs[0])?;
    let most = least + i32::try_from(unknown + theirs[1])?;
    let is_sum = async || {
        let now = count.get().await;
        now.is_ok_and(|now| (least..=most).contains(&now.value))
    };
    args.pair.until("the count is the sum", is_sum).await?;
    println!("{name}: the count is {least}, the sum of all changes");
    Ok(())
}

/// Both are in one group, and see each other come, change and go.
async fn group(pair: &Pair, client: &Client) -> Result<(), Fault> {
    let directory = format!("{}/group", pair.base);
    let member = GroupMember::start(client.clone(), &directory, &pair.name, b"1")?;
    let is = async |payload: &[u8]| {
        let members = member.members();
        members.len() == 2 && members.get(&pair.other).is_some_and(|it| **it == *payload)
    };
    pair.until("the other member joins", async || is(b"1").await)
        .await?;
    pair.meet(client, "joined", "").await?;
    member.set_payload(b"2");
    pair.until("its payload changes", async || is(b"2").await)
        .await?;
    pair.meet(client, "changed", "").await?;
    if pair.name > pair.other {
        pair.until("it leaves", async || member.members().len() == 1)
            .await?;
    }
    member.close().await?;
    pair.meet(client, "left", "").await?;
    println!("{}: saw {} join, change and leave", pair.name, pair.other);
    Ok(())
}

/// Each deletes the znode that the other keeps, which comes back.
async fn nodes(pair: &Pair, client: &Client) -> Result<(), Fault> {
    let [own, theirs] = [&pair.name, &pair.other].map(|name| format!("{}/node-{name}", pair.base));
    let node = PersistentNode::start(client.clone(), &own, b"kept", CreateMode::Ephemeral)?;
    node.created().await?;
    pair.meet(client, "kept", "").await?;
    let created = async || Some(client.get_data(&theirs).await.ok()?.stat.czxid);
    let mut before = None;
    pair.until("the other's znode", async || {
        before = created().await;
        before.is_some()
    })
    .await?;
    pair.until("its deletion", async || {
        match client.delete(&theirs, None).await {
            Err(error) => error.is(ErrorCode::NoNode),
            Ok(()) => true,
        }
    })
    .await?;
    pair.until("its return", async || {
        created().await.is_some_and(|now| Some(now) > before)
    })
    .await?;
    pair.meet(client, "back", "").await?;
    node.close().await?;
    println!("{}: the znode of {} came back", pair.name, pair.other);
    Ok(())
}

/// Both keep one znode, which exists as long as one of them does so.
async fn ttl(pair: &Pair, client: &Client) -> Result<(), Fault> {
    let path = format!("{}/ttl", pair.base);
    let touch = format!("{path}/touch");
    let ttl = Duration::from_secs(2);
    let node = PersistentTtlNode::start(client.clone(), &path, b"ttl", ttl)?;
    node.created().await?;
    pair.meet(client, "ttl", "").await?;
    if pair.name < pair.other {
        drop(node);
        pair.meet(client, "alone", "").await?;
    } else {
        pair.meet(client, "alone", "").await?;
        // Three touches more than this one's time to live.
        let touched = async || Some(client.get_data(&touch).await.ok()?.stat.mzxid);
        for _ in 0..5 {
            let mut before = None;
            pair.until("the touch", async || {
                before = touched().await;
                before.is_some()
            })
            .await?;
            pair.until("another touch", async || {
                touched().await.is_some_and(|now| Some(now) > before)
            })
            .await?;
        }
        drop(node);
    }
    pair.meet(client, "untouched", "").await?;
    pair.until("the end of the znode", async || {
        matches!(client.exists(&path).await, Ok(None))
    })
    .await?;
    println!("{}: the znode lived as long as it was kept", pair.name);
    Ok(())
}
