//! The cost of locks and of the client, compared with the bare requests that they make.
//!
//! Everything runs on one current-thread runtime; the servers are separate processes. Each round
//! runs a short block of every point, so that a disturbance of the machine affects all of them.
//! Figures are medians of the rounds' ratios.

mod bare;
mod hand_over;
mod measure;
mod through_client;

use std::{net::SocketAddr, time::Duration};

use minikeeper_benches::{
    Error, IoContext as _,
    awake::Awake,
    note,
    stats::quartiles,
    table::{Table, duration_ns, number, say},
};
use minikeeper_client::Client;
use minikeeper_recipes::{InterProcessMutex, LockOptions};
use tokio::runtime::Runtime;

use self::{
    bare::{Bare, BareHandOver, BareLock},
    hand_over::{HandOver, Hold},
    measure::{DEPTH, Measure, Part, one_by_one, pipelined},
    through_client::connect,
};
use crate::{
    options::{Measured, Only},
    text,
};

/// Measures locks and the client under them against bare sockets that send the same requests.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  cargo run --profile dist -p minikeeper-benches -- floor
  floor --pin --awake                     servers on core 1, everything else on core 0, both awake
  floor --pin --awake --depths            compare depths of look-ahead

Echo is measured in any case.")]
pub(crate) struct Args {
    #[command(flatten)]
    measured: Measured,
    #[command(flatten)]
    only: Only,
    /// Keep both cores awake: depending on the length of the pause, a virtual core may take long to
    /// wake up.
    #[arg(long)]
    awake: bool,
    /// Rounds; each runs a block of every point.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Operations in a block.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    operations: u32,
    /// Operations before each block that do not count.
    #[arg(long, default_value_t = 20)]
    warmup: u32,
    /// Measure the hand-over with every depth of look-ahead instead, for holders that keep the lock
    /// for 0, 10 us, 200 us and 1 ms.
    #[arg(long)]
    depths: bool,
}

/// A point, with its connections.
enum Point {
    Echo(Bare),
    EchoApart(Bare),
    Socket(Bare),
    Client(Client),
    SocketPipelined(Bare),
    ClientPipelined(Client),
    Lock(InterProcessMutex, Part),
    BareLock(BareLock, Part),
    HandOver(HandOver),
    BareHandOver(BareHandOver),
}

/// All points, by name.
type Points = Vec<(String, Point)>;

impl Point {
    async fn block(&mut self, count: u32) -> Result<Measure, Error> {
        let batches = count.div_ceil(4);
        match self {
            Self::Echo(bare) | Self::Socket(bare) => bare.one_by_one(count).await,
            Self::EchoApart(bare) => bare.apart(batches, Duration::from_millis(1)).await,
            Self::SocketPipelined(bare) => bare.pipelined(batches).await,
            Self::Client(client) => one_by_one(count, || client.exists("/")).await,
            Self::ClientPipelined(client) => pipelined(batches, || client.exists("/")).await,
            Self::BareLock(lock, part) => lock.cycle(*part, count).await,
            Self::Lock(lock, part) => through_client::uncontended(lock, *part, count).await,
            Self::HandOver(queue) => queue.block(count).await,
            Self::BareHandOver(bare) => bare.block(count).await,
        }
    }

    /// A queue warms up while it fills.
    const fn warmup(&self, count: u32) -> u32 {
        match self {
            Self::HandOver(_) => 0,
            _ => count,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<bool, Error> {
    let echo = args.measured.start_own(&["echo", "--raw"])?;
    let server = args.measured.start()?;
    let _awake = args.awake.then(Awake::start).transpose()?;
    let runtime = crate::runtime()?;
    let mut points = runtime.block_on(points(args, echo.addr, server.addr))?;
    let mut rounds: Vec<Vec<Measure>> = Vec::new();
    for round in 0..args.rounds {
        if round % 10 == 0 {
            note(&format!("round {} of {}", round + 1, args.rounds));
        }
        let measures;
        (points, measures) = measure(&runtime, args, points)?;
        rounds.push(measures);
    }
    let names: Vec<_> = points.into_iter().map(|(name, _)| name).collect();
    report(args, &names, &rounds).context(|| "cannot print the report".into())?;
    Ok(true)
}

fn measure(
    runtime: &Runtime,
    args: &Args,
    mut points: Points,
) -> Result<(Points, Vec<Measure>), Error> {
    let (warmup, operations) = (args.warmup, args.operations);
    // This runs in a task, as users' code does: the runtime polls the future of `block_on` only
    // after it has asked the kernel for events.
    let task = runtime.spawn(async move {
        let mut measures = Vec::new();
        for (_, point) in &mut points {
            point.block(point.warmup(warmup)).await?;
            measures.push(point.block(operations).await?);
        }
        Ok((points, measures))
    });
    runtime.block_on(task).map_err(text)?
}

async fn points(args: &Args, echo: SocketAddr, server: SocketAddr) -> Result<Points, Error> {
    let thrifty = LockOptions::default();
    let exact = LockOptions::curator_exact();
    let mut points = vec![
        ("echo".to_owned(), Point::Echo(Bare::echo(echo).await?)),
        (
            "echo, 1ms apart".to_owned(),
            Point::EchoApart(Bare::echo(echo).await?),
        ),
    ];
    let is_wanted = |name: &str| args.only.has(name);
    let mut queues = Vec::new();
    if args.depths {
        for hold in Hold::ALL {
            for look_ahead in 0..=4 {
                let mut options = thrifty.clone();
                options.look_ahead = look_ahead;
                let name = format!("depth {look_ahead}, held for {}", hold.text());
                queues.push((name, 8, options, hold));
            }
        }
    } else {
        if is_wanted("socket") {
            let bare = Bare::session(server, 1).await?;
            points.push(("socket".to_owned(), Point::Socket(bare)));
        }
        if is_wanted("client") {
            let client = connect(server).await?;
            points.push(("client".to_owned(), Point::Client(client)));
        }
        if is_wanted("socket-64") {
            let bare = Bare::session(server, DEPTH).await?;
            points.push(("socket-64".to_owned(), Point::SocketPipelined(bare)));
        }
        if is_wanted("client-64") {
            let client = connect(server).await?;
            points.push(("client-64".to_owned(), Point::ClientPipelined(client)));
        }
        for (name, part) in [
            ("acquire, bare socket", Part::Acquire),
            ("cycle, bare socket", Part::Cycle),
        ] {
            if is_wanted(name) {
                let lock = BareLock::new(server).await?;
                points.push((name.to_owned(), Point::BareLock(lock, part)));
            }
        }
        for (name, options, part) in [
            ("acquire", &thrifty, Part::Acquire),
            ("acquire-exact", &exact, Part::Acquire),
            ("cycle", &thrifty, Part::Cycle),
            ("cycle-exact", &exact, Part::Cycle),
        ] {
            if is_wanted(name) {
                let lock = through_client::lock(&connect(server).await?, options.clone())?;
                points.push((name.to_owned(), Point::Lock(lock, part)));
            }
        }
        for hold in Hold::ALL {
            let name = format!("hand-over, bare sockets, held for {}", hold.text());
            if is_wanted(&name) {
                let bare = BareHandOver::new(server, hold).await?;
                points.push((name, Point::BareHandOver(bare)));
            }
        }
        for hold in Hold::ALL {
            for (name, waiting, options) in [
                ("hand-over-8", 8, &thrifty),
                ("hand-over-8-exact", 8, &exact),
                ("hand-over-128", 128, &thrifty),
            ] {
                let name = format!("{name}, held for {}", hold.text());
                queues.push((name, waiting, options.clone(), hold));
            }
        }
    }
    for (at, (name, waiting, options, hold)) in queues.into_iter().enumerate() {
        if is_wanted(&name) {
            let path = format!("/bench/queue-{at}");
            let queue = HandOver::new(server, &path, waiting, &options, hold).await?;
            points.push((name, Point::HandOver(queue)));
        }
    }
    Ok(points)
}

fn report(args: &Args, names: &[String], rounds: &[Vec<Measure>]) -> std::io::Result<()> {
    let spread = |value: &dyn Fn(&Vec<Measure>) -> f64| {
        let values: Vec<f64> = rounds.iter().map(value).collect();
        quartiles(&values).map_or_else(
            || "-".into(),
            |[low, median, high]| format!("{} ({}-{})", number(median), number(low), number(high)),
        )
    };
    let median = |value: &dyn Fn(&Vec<Measure>) -> f64| {
        let values: Vec<f64> = rounds.iter().map(value).collect();
        quartiles(&values).map_or(0.0, |[_, median, _]| median)
    };
    say(format!(
        "{} rounds of {} operations; {}; cores {}\n\
         ratios are medians of the rounds' ratios, with their quartiles\n\n",
        args.rounds,
        args.operations,
        args.measured.pin.text(),
        if args.awake {
            "kept awake"
        } else {
            "may sleep"
        },
    ))?;
    let mut table = Table::new(&["point", "p50", "CPU", "against echo's p50"]);
    for (at, name) in names.iter().enumerate() {
        let cpu = median(&|round| round[at].cpu_ns);
        table.row(vec![
            name.clone(),
            duration_ns(median(&|round| round[at].p50_ns)),
            if cpu > 0.0 {
                duration_ns(cpu)
            } else {
                "-".into()
            },
            spread(&|round| round[at].p50_ns / round[0].p50_ns),
        ]);
    }
    say(table.text())?;
    let at = |name: &str| names.iter().position(|other| other == name);
    say("\n")?;
    if let (Some(client), Some(socket)) = (at("client"), at("socket")) {
        let above = spread(&|round| (round[client].p50_ns - round[socket].p50_ns) / 1e3);
        let cpu = spread(&|round| round[client].cpu_ns / round[socket].cpu_ns);
        say(format!(
            "client above the bare socket: {above} us; CPU {cpu} x\n"
        ))?;
    }
    if let (Some(client), Some(socket)) = (at("client-64"), at("socket-64")) {
        let rate = spread(&|round| round[socket].p50_ns / round[client].p50_ns);
        say(format!(
            "{DEPTH} outstanding: client {rate} of the bare socket's rate\n"
        ))?;
    }
    for hold in Hold::ALL {
        let name = |name: &str| at(&format!("{name}, held for {}", hold.text()));
        if let (Some(long), Some(short)) = (name("hand-over-128"), name("hand-over-8")) {
            let growth = spread(&|round| round[long].p50_ns / round[short].p50_ns);
            say(format!(
                "hand-over with 128 waiting, held for {}: {growth} x that with 8\n",
                hold.text()
            ))?;
        }
    }
    Ok(())
}
