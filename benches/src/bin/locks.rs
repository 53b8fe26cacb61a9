//! What a lock costs: acquire, release and hand-over, against the bare round trip of the same run;
//! and what the client under it costs, against a bare socket.
//!
//! Everything runs on one current-thread runtime; the servers are processes of their own. Each
//! round measures every point once, so that what disturbs the machine disturbs all of them.

use std::{
    net::SocketAddr,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use clap::Parser;
use minikeeper_benches::{
    Error, IoContext as _,
    clock::now_ns,
    note,
    process::{self, Pin, Server},
    stats::{self, Spread},
    table::{Table, duration_ns, number, say},
};
use minikeeper_client::Client;
use minikeeper_protocol::{ConnectRequest, Request, Xid};
use minikeeper_recipes::{InterProcessMutex, LockOptions};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    runtime::Runtime,
};

/// Measures locks and the client under them on minikeeper.
#[derive(Parser)]
#[command(after_help = "Examples:
  cargo run --release -p minikeeper-benches --bin locks
  locks --pin --rounds 20                 servers on core 1, everything else on core 0

Build first: cargo build --release --workspace")]
struct Args {
    /// Placement of the servers; without a value: split.
    #[arg(long, value_enum, default_value = "none", num_args = 0..=1, default_missing_value = "split")]
    pin: Pin,
    /// Rounds; each measures every point once.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Requests, or locks, a point and round.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    operations: u32,
    /// Program to measure [default: minikeeper next to this program].
    #[arg(long, value_name = "PATH")]
    minikeeper: Option<std::path::PathBuf>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    minikeeper_benches::exit("locks", run(&args))
}

/// One measurement of one round.
#[derive(Clone, Copy, Default)]
struct Measure {
    p50_ns: f64,
    /// CPU time of this process for one operation.
    cpu_ns: f64,
}

const POINTS: [&str; 11] = [
    "echo",
    "socket",
    "client",
    "socket-64",
    "client-64",
    "acquire",
    "acquire-exact",
    "cycle",
    "cycle-exact",
    "hand-over-8",
    "hand-over-8-exact",
];

fn run(args: &Args) -> Result<bool, Error> {
    let mut command = args.pin.server(process::sibling("echo")?);
    command.arg("--raw");
    let echo = Server::start_printing(command)?;
    let program = match &args.minikeeper {
        Some(path) => path.clone(),
        None => process::sibling("minikeeper")?,
    };
    let server = Server::start_minikeeper(args.pin.server(program))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context(|| "cannot start a runtime".into())?;
    let bench = Bench {
        runtime,
        echo: echo.addr,
        server: server.addr,
        operations: args.operations,
    };
    let mut rounds: Vec<Vec<Measure>> = Vec::new();
    let mut queue = Vec::new();
    for round in 0..args.rounds {
        note(&format!("round {} of {}", round + 1, args.rounds));
        let mut measures = Vec::new();
        for name in POINTS {
            measures.push(bench.measure(name, round)?);
        }
        queue.push(bench.hand_over(128, LockOptions::default(), round)?.p50_ns);
        rounds.push(measures);
    }
    report(&rounds, &queue).context(|| "cannot print the report".into())?;
    Ok(true)
}

struct Bench {
    runtime: Runtime,
    echo: SocketAddr,
    server: SocketAddr,
    operations: u32,
}

impl Bench {
    fn measure(&self, name: &str, round: u32) -> Result<Measure, Error> {
        let thrifty = LockOptions::default;
        let exact = LockOptions::curator_exact;
        match name {
            "echo" => self.runtime.block_on(self.bare(self.echo, false)),
            "socket" => self.runtime.block_on(self.bare(self.server, true)),
            "client" => self.runtime.block_on(self.client()),
            "socket-64" => self.runtime.block_on(self.bare_pipelined()),
            "client-64" => self.runtime.block_on(self.client_pipelined()),
            "acquire" => self.runtime.block_on(self.lock(thrifty(), false)),
            "acquire-exact" => self.runtime.block_on(self.lock(exact(), false)),
            "cycle" => self.runtime.block_on(self.lock(thrifty(), true)),
            "cycle-exact" => self.runtime.block_on(self.lock(exact(), true)),
            "hand-over-8" => self.hand_over(8, thrifty(), round),
            _ => self.hand_over(8, exact(), round),
        }
    }

    /// One request after the other on a socket, without any client.
    async fn bare(&self, addr: SocketAddr, is_session: bool) -> Result<Measure, Error> {
        let mut stream = connect(addr, is_session).await?;
        let mut frame = Vec::new();
        exists().encode(Xid(1), &mut frame);
        let mut timer = Timer::start(self.operations)?;
        let mut reply = [0; 256];
        for _ in 0..self.operations {
            timer.begin();
            stream.write_all(&frame).await.context(write_failed)?;
            let count = stream.read(&mut reply).await.context(read_failed)?;
            timer.end();
            assert!(count > 0, "the server has closed the connection");
        }
        timer.measure()
    }

    async fn client(&self) -> Result<Measure, Error> {
        let client = self.connect().await?;
        let mut timer = Timer::start(self.operations)?;
        for _ in 0..self.operations {
            timer.begin();
            client.exists("/").await.map_err(refused)?;
            timer.end();
        }
        let measure = timer.measure();
        client.close().await;
        measure
    }

    /// 64 requests outstanding on one socket. The time is that of one request's share.
    async fn bare_pipelined(&self) -> Result<Measure, Error> {
        let mut stream = connect(self.server, true).await?;
        let mut frames = Vec::new();
        for xid in 0..64 {
            exists().encode(Xid(xid + 1), &mut frames);
        }
        let rounds = self.operations.div_ceil(64) * 4;
        let mut timer = Timer::start(rounds * 64)?;
        let mut reply = vec![0; 64 * 256];
        for _ in 0..rounds {
            timer.begin();
            stream.write_all(&frames).await.context(write_failed)?;
            let mut left = 64 * REPLY_BYTES;
            while left > 0 {
                let count = stream.read(&mut reply).await.context(read_failed)?;
                assert!(count > 0, "the server has closed the connection");
                left -= count.min(left);
            }
            timer.end_of(64);
        }
        timer.measure()
    }

    async fn client_pipelined(&self) -> Result<Measure, Error> {
        let client = self.connect().await?;
        let rounds = self.operations.div_ceil(64) * 4;
        let mut timer = Timer::start(rounds * 64)?;
        for _ in 0..rounds {
            timer.begin();
            let calls: Vec<_> = (0..64).map(|_| client.exists("/")).collect();
            for call in calls {
                call.await.map_err(refused)?;
            }
            timer.end_of(64);
        }
        let measure = timer.measure();
        client.close().await;
        measure
    }

    /// A free lock, taken and given back. The time is that of taking it, or of both.
    async fn lock(&self, options: LockOptions, is_cycle: bool) -> Result<Measure, Error> {
        let client = self.connect().await?;
        let lock = InterProcessMutex::with_options(client.clone(), "/bench/lock", options)
            .map_err(refused)?;
        let mut timer = Timer::start(self.operations)?;
        for _ in 0..self.operations {
            timer.begin();
            let guard = lock.acquire().await.map_err(lock_failed)?;
            if !is_cycle {
                timer.end();
            }
            guard.release().await.map_err(refused)?;
            if is_cycle {
                timer.end();
            }
        }
        let measure = timer.measure();
        client.close().await;
        measure
    }

    /// So many sessions wait for a lock; the time from giving it back to the next one's having it.
    fn hand_over(&self, waiters: u32, options: LockOptions, round: u32) -> Result<Measure, Error> {
        self.runtime.block_on(async {
            let path = format!("/bench/queue-{waiters}-{}-{round}", options.look_ahead);
            let released_at = Arc::new(AtomicU64::new(0));
            let rounds = (self.operations / waiters).clamp(2, 100);
            let mut tasks = Vec::new();
            for _ in 0..=waiters {
                let client = self.connect().await?;
                let lock = InterProcessMutex::with_options(client.clone(), &path, options.clone())
                    .map_err(refused)?;
                let released_at = Arc::clone(&released_at);
                tasks.push(tokio::spawn(async move {
                    let mut times = Vec::new();
                    for _ in 0..rounds {
                        let guard = lock.acquire().await.map_err(lock_failed)?;
                        let released = released_at.load(Ordering::Relaxed);
                        if released > 0 {
                            times.push(now_ns() - released);
                        }
                        // Long enough for those behind to settle.
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        released_at.store(now_ns(), Ordering::Relaxed);
                        guard.release().await.map_err(refused)?;
                    }
                    client.close().await;
                    Ok::<_, Error>(times)
                }));
            }
            let mut histogram = stats::latencies();
            for task in tasks {
                let times = task
                    .await
                    .map_err(|error| Error::Unexpected(error.to_string()))??;
                for time in times {
                    histogram.saturating_record(time.max(1));
                }
            }
            Ok(Measure {
                p50_ns: stats::interpolated(&histogram, 0.5),
                cpu_ns: 0.0,
            })
        })
    }

    async fn connect(&self) -> Result<Client, Error> {
        let builder = Client::builder(&self.server.to_string())
            .map_err(|error| Error::Unexpected(error.to_string()))?;
        builder.connect().await.map_err(refused)
    }
}

/// The size of a reply to exists, its length included.
const REPLY_BYTES: usize = 4 + 16 + 68;

fn exists() -> Request {
    Request::Exists {
        path: Some("/".into()),
        watch: false,
    }
}

async fn connect(addr: SocketAddr, is_session: bool) -> Result<TcpStream, Error> {
    let mut stream = TcpStream::connect(addr)
        .await
        .context(|| format!("cannot connect to {addr}"))?;
    stream.set_nodelay(true).context(write_failed)?;
    if is_session {
        let mut hello = Vec::new();
        ConnectRequest::new(30_000).encode(&mut hello);
        stream.write_all(&hello).await.context(write_failed)?;
        let mut reply = [0; 256];
        stream.read(&mut reply).await.context(read_failed)?;
    }
    Ok(stream)
}

fn write_failed() -> String {
    "cannot send a request".into()
}

fn read_failed() -> String {
    "cannot read a reply".into()
}

#[expect(clippy::needless_pass_by_value, reason = "the shape map_err wants")]
fn refused(error: minikeeper_client::Error) -> Error {
    Error::Unexpected(error.to_string())
}

#[expect(clippy::needless_pass_by_value, reason = "the shape map_err wants")]
fn lock_failed(error: minikeeper_recipes::LockError) -> Error {
    Error::Unexpected(error.to_string())
}

/// Times operations, and what of this process's time they take.
struct Timer {
    histogram: hdrhistogram::Histogram<u64>,
    began_ns: u64,
    cpu_before_ns: u64,
    operations: u32,
}

impl Timer {
    fn start(operations: u32) -> Result<Self, Error> {
        Ok(Self {
            histogram: stats::latencies(),
            began_ns: 0,
            cpu_before_ns: process::cpu_ns(std::process::id())?,
            operations,
        })
    }

    fn begin(&mut self) {
        self.began_ns = now_ns();
    }

    fn end(&mut self) {
        self.end_of(1);
    }

    fn end_of(&mut self, share: u64) {
        let time = (now_ns() - self.began_ns) / share;
        self.histogram.saturating_record(time.max(1));
    }

    fn measure(self) -> Result<Measure, Error> {
        let cpu_ns = process::cpu_ns(std::process::id())? - self.cpu_before_ns;
        Ok(Measure {
            p50_ns: stats::interpolated(&self.histogram, 0.5),
            cpu_ns: stats::as_f64(cpu_ns) / f64::from(self.operations),
        })
    }
}

fn report(rounds: &[Vec<Measure>], queue: &[f64]) -> std::io::Result<()> {
    let at = |name: &str| POINTS.iter().position(|point| *point == name).unwrap_or(0);
    let spread = |value: &dyn Fn(&Vec<Measure>) -> f64| {
        let values: Vec<f64> = rounds.iter().map(value).collect();
        Spread::of(&values).map_or_else(
            || "-".into(),
            |spread| {
                format!(
                    "{} ({}-{})",
                    number(spread.median),
                    number(spread.min),
                    number(spread.max)
                )
            },
        )
    };
    let median = |values: Vec<f64>| Spread::of(&values).map_or(0.0, |spread| spread.median);
    let p50 = |name: &'static str| move |round: &Vec<Measure>| round[at(name)].p50_ns;
    let mut table = Table::new(&["point", "p50", "CPU", "against echo's p50"]);
    for (place, name) in POINTS.iter().enumerate() {
        let cpu = median(rounds.iter().map(|round| round[place].cpu_ns).collect());
        table.row(vec![
            (*name).into(),
            duration_ns(median(
                rounds.iter().map(|round| round[place].p50_ns).collect(),
            )),
            if cpu > 0.0 {
                duration_ns(cpu)
            } else {
                "-".into()
            },
            spread(&|round| round[place].p50_ns / round[at("echo")].p50_ns),
        ]);
    }
    say(table.text())?;
    let ratio = |over: &'static str, under: &'static str| {
        spread(&move |round: &Vec<Measure>| p50(over)(round) / p50(under)(round))
    };
    let above = spread(&|round| (p50("client")(round) - p50("socket")(round)) / 1e3);
    let cpu = spread(&|round| round[at("client")].cpu_ns / round[at("socket")].cpu_ns);
    let long = median(queue.to_vec());
    let queues: Vec<f64> = rounds
        .iter()
        .zip(queue)
        .map(|(round, long)| long / p50("hand-over-8")(round))
        .collect();
    say(format!(
        "\nclient above the bare socket: {above} us; CPU {cpu} x\n\
         64 outstanding: client {} of the bare socket's rate\n\
         hand-over with 128 waiting: {}, {} x that with 8\n",
        ratio("socket-64", "client-64"),
        duration_ns(long),
        number(median(queues)),
    ))
}
