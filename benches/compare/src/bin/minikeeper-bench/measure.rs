//! One workload on one contestant, once.

use std::{net::SocketAddr, ops::Range, time::Duration};

use minikeeper_bench::{
    Error, IoContext as _,
    clock::{nanos, now_ns},
    history::{Event, History, What},
    outage,
    peers::{LockUnderTest, curator::Order},
    relay::{Relay, Traffic},
    report::{Outage, Workload},
    stats,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    contestants::{Contestant, Java, LONG},
    plan::{self, Size},
};

/// Round trips in one measurement of the echo.
const ECHOES: u32 = 200;

/// The size of a small reply, that of `exists`.
const ECHO_BYTES: usize = 88;

/// The largest ratio of an echo to the fastest one of the run; above it, something else disturbs
/// the machine. Distant cores alone take 1.4 times as long as neighbouring ones.
const QUIET_MAX: f64 = 1.6;

/// How long to wait until the machine is quiet, and the pause between two measurements.
const QUIET_LIMIT: Duration = Duration::from_secs(3);
const QUIET_PAUSE: Duration = Duration::from_millis(20);

/// The results of one run of a workload.
pub(crate) struct Block {
    pub(crate) history: History,
    pub(crate) timed: Range<u64>,
    pub(crate) client_cpu_ns: Option<u64>,
    pub(crate) server_cpu_ns: Option<u64>,
    pub(crate) busy: Option<f64>,
    pub(crate) traffic: Option<Traffic>,
}

/// Runs a workload that the contestant takes.
pub(crate) async fn block(
    contestant: &Contestant,
    workload: Workload,
    round: u32,
    size: Size,
    resource: &str,
) -> Result<Block, Error> {
    if workload == Workload::Recovery {
        return recovery(contestant, resource).await;
    }
    if let Some(java) = &contestant.java {
        let order = order(contestant, workload, round, size, resource)?;
        return java_block(contestant, java, workload, order);
    }
    let relays = if matches!(workload, Workload::Herd(_)) {
        relays(contestant)?
    } else {
        Vec::new()
    };
    let lock = if relays.is_empty() {
        (contestant.make)(&contestant.addrs, LONG)
    } else {
        relayed(contestant, &relays, LONG)
    };
    let before = contestant.cpu.ns()?;
    let contested = match (
        plan::contest(workload, size),
        plan::open_loop(workload, round, size),
    ) {
        (Some(contest), _) => contest.run(lock.as_ref(), resource).await?,
        (None, Some(open_loop)) => open_loop.run(lock.as_ref(), resource).await?,
        (None, None) => return Err(Error::Setup(format!("{workload:?} has no plan"))),
    };
    let after = contestant.cpu.ns()?;
    Ok(Block {
        history: contested.history,
        timed: contested.timed,
        client_cpu_ns: before.map(|_| contested.cpu_ns),
        server_cpu_ns: after.zip(before).map(|(after, before)| after - before),
        // If the server runs on the same thread, it is the server that keeps the thread busy.
        busy: before.map(|_| contested.busy),
        traffic: sum(&relays),
    })
}

fn relays(contestant: &Contestant) -> Result<Vec<Relay>, Error> {
    let wire = contestant.wire;
    let start = |addr: &SocketAddr| Relay::start(*addr, wire);
    contestant.addrs.iter().map(start).collect()
}

fn relayed(contestant: &Contestant, relays: &[Relay], timeout: Duration) -> Box<dyn LockUnderTest> {
    let addrs: Vec<_> = relays.iter().map(|relay| relay.addr).collect();
    (contestant.make)(&addrs, timeout)
}

/// The order to a Java process.
fn order(
    contestant: &Contestant,
    workload: Workload,
    round: u32,
    size: Size,
    resource: &str,
) -> Result<Order, Error> {
    let base = Order {
        resource: resource.to_owned(),
        kind: contestant.kind(),
        contenders: 0,
        readers: 0,
        in_turn: false,
        hold: Duration::ZERO,
        grants: 0,
        due_ns: Vec::new(),
        limit: Duration::ZERO,
        via: None,
    };
    match (
        plan::contest(workload, size),
        plan::open_loop(workload, round, size),
    ) {
        (Some(contest), _) => Ok(Order {
            contenders: contest.contenders,
            readers: contest.readers,
            in_turn: contest.in_turn,
            hold: contest.hold,
            // At the end fewer contenders wait.
            grants: contest.warmup + contest.grants + contest.contenders,
            limit: contest.limit,
            ..base
        }),
        (None, Some(open_loop)) => {
            let due_ns = open_loop.due_ns();
            Ok(Order {
                contenders: open_loop.contenders,
                grants: u32::try_from(due_ns.len()).unwrap_or(u32::MAX),
                due_ns,
                limit: 2 * open_loop.duration,
                ..base
            })
        }
        (None, None) => Err(Error::Setup(format!("{workload:?} has no plan"))),
    }
}

/// Runs a contest in a Java process. This thread waits for it.
fn java_block(
    contestant: &Contestant,
    java: &Java,
    workload: Workload,
    mut order: Order,
) -> Result<Block, Error> {
    let sent = matches!(workload, Workload::Herd(_)).then(|| java.relay.traffic());
    order.via = sent.map(|_| java.relay.addr);
    let (before, began_ns) = (contestant.cpu.ns()?, now_ns());
    let (recorders, cpu_ns) = java.curator.borrow_mut().contest(&order)?;
    let wall_ns = stats::as_f64(now_ns() - began_ns);
    let after = contestant.cpu.ns()?;
    let history = History::of(order.kind, recorders);
    Ok(Block {
        timed: timed(&history, workload, order.contenders),
        history,
        client_cpu_ns: Some(cpu_ns),
        server_cpu_ns: after.zip(before).map(|(after, before)| after - before),
        busy: Some(stats::as_f64(cpu_ns) / wall_ns / contestant.client_cores),
        traffic: sent.map(|before| java.relay.traffic() - before),
    })
}

/// Returns the part of a history from Java that counts: all of an open loop; of a contest, the part
/// after each contender got the lock once and before only a few remain.
fn timed(history: &History, workload: Workload, contenders: u32) -> Range<u64> {
    let grants = |event: &&Event| matches!(event.what, What::Granted { .. });
    let at_ns = |event: &Event| event.at_ns;
    let granted: Vec<u64> = history.events.iter().filter(grants).map(at_ns).collect();
    let ends = [history.events.first(), history.events.last()];
    let [from_ns, to_ns] = ends.map(|event| event.map_or(0, at_ns));
    if matches!(workload, Workload::OpenLoop { .. }) {
        return from_ns..to_ns + 1;
    }
    let warmup = plan::warmup(contenders) as usize;
    let last = granted.len().saturating_sub(contenders as usize);
    let at = |at: usize| granted.get(at).copied().unwrap_or(0);
    at(warmup)..at(last.max(warmup))
}

fn sum(relays: &[Relay]) -> Option<Traffic> {
    let traffic = relays.iter().map(Relay::traffic);
    traffic.reduce(|sum, traffic| Traffic {
        bytes: sum.bytes + traffic.bytes,
        events: sum.events.zip(traffic.events).map(|(sum, more)| sum + more),
    })
}

/// Kills a holder; the block's only hand-over starts at its death.
async fn recovery(contestant: &Contestant, resource: &str) -> Result<Block, Error> {
    let gone = away(contestant, Outage::Killed, resource).await?;
    let events = &gone.history.events;
    let from = events.first().map_or(0, |event| event.at_ns);
    let to = events.last().map_or(0, |event| event.at_ns);
    // The holder's own grant does not count.
    let first = events
        .iter()
        .find(|event| event.what == What::Died)
        .map_or(from, |event| event.at_ns);
    Ok(Block {
        history: gone.history,
        timed: first..to + 1,
        client_cpu_ns: None,
        server_cpu_ns: None,
        busy: None,
        traffic: None,
    })
}

/// Runs an outage of a holder that lasts longer than the shortest session or lease.
pub(crate) async fn away(
    contestant: &Contestant,
    outage: Outage,
    resource: &str,
) -> Result<outage::Gone, Error> {
    let timeout = contestant.shortest.unwrap_or(LONG);
    // Servers may round a time-out up to their next check.
    let limit = contestant
        .shortest
        .map_or(Duration::from_secs(3), |timeout| {
            2 * timeout + Duration::from_secs(3)
        });
    let relays = relays(contestant)?;
    let through = relayed(contestant, &relays, timeout);
    let lock = (contestant.make)(&contestant.addrs, timeout);
    outage::run(
        outage,
        lock.as_ref(),
        through.as_ref(),
        &relays,
        limit,
        resource,
    )
    .await
}

/// The echo, and its fastest round trip in this run.
pub(crate) struct Echo {
    stream: TcpStream,
    least_ns: f64,
}

impl Echo {
    pub(crate) const fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            least_ns: f64::INFINITY,
        }
    }

    /// The median round trip to a server that does nothing, in nanoseconds, once the machine is
    /// quiet: after a block of 1,000 contenders, servers and tasks still close as many connections,
    /// which would disturb the next block.
    pub(crate) async fn quiet_ns(&mut self) -> Result<f64, Error> {
        let deadline = now_ns() + nanos(QUIET_LIMIT);
        loop {
            let echo_ns = echo(&mut self.stream).await?;
            self.least_ns = self.least_ns.min(echo_ns);
            if echo_ns <= QUIET_MAX * self.least_ns {
                return Ok(echo_ns);
            }
            if now_ns() > deadline {
                // The machine has become slower for good.
                self.least_ns = echo_ns;
                return Ok(echo_ns);
            }
            tokio::time::sleep(QUIET_PAUSE).await;
        }
    }
}

async fn echo(stream: &mut TcpStream) -> Result<f64, Error> {
    let mut histogram = stats::latencies();
    let mut buffer = [0; ECHO_BYTES];
    let failed = || "cannot talk to the echo".to_owned();
    for turn in 0..ECHOES + ECHOES / 10 {
        let began = now_ns();
        stream.write_all(&buffer).await.context(failed)?;
        stream.read_exact(&mut buffer).await.context(failed)?;
        if turn >= ECHOES / 10 {
            histogram.saturating_record((now_ns() - began).max(1));
        }
    }
    Ok(stats::interpolated(&histogram, 0.5))
}
