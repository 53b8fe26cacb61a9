//! The load generator: connections, pipeline depth and operation mix against one server.
//!
//! One thread drives all connections. One connection with one request outstanding uses a blocking
//! loop instead ([`minikeeper_benches::single`]), which adds the least to a round trip.
//!
//! `create` and `delete` alone run in rounds: 16,384 znodes are created, then deleted, and only the
//! rounds of the requested operation are timed, so that the tree has the same size in every run. In
//! a mix with others, each connection creates its own znodes and deletes the oldest of them.

use std::{fs, net::SocketAddr, time::Duration};

use minikeeper_benches::{
    Error, IoContext as _,
    client::Client,
    connects,
    drive::{Driver, Pace, Span},
    frames::{Kind, Limited, Once, Source},
    mix::{self, Decks, Mix, Mixed},
    process,
    record::Recorder,
    single::Single,
    stats::{self, QUANTILES, as_f64},
    table::{Table, duration_ns, grouped, number, say},
};
use minikeeper_protocol::ErrorCode;
use serde_json::{Value, json};

/// Puts load on a ZooKeeper server and reports rates and latencies.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  load --addr 127.0.0.1:2181                                  one connection, one get at a time
  load --addr 127.0.0.1:2181 --connections 8 --depth 16 --mix get=90,set=10
  load --addr 127.0.0.1:2181 --connections 8 --depth 16 --mix create --json result.json
  load --addr 127.0.0.1:2181 --connections 64 --rate 50000    latency at 50,000 requests a second
  load --addr 127.0.0.1:2181 --mix connect --ops 2000         new sessions, one after the other
  load --addr 127.0.0.1:7777 --mix raw                        bare round trips to `echo --raw`

Operations: get set exists children create create2 delete ping raw connect")]
pub(crate) struct Args {
    /// Server to load.
    #[arg(long)]
    addr: SocketAddr,
    /// Connections, all driven by one thread.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=15_000))]
    connections: u16,
    /// Requests outstanding on each connection.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    depth: u16,
    /// Operations, with weights when there are several.
    #[arg(long, default_value = "get", value_parser = Mix::parse)]
    mix: Mix,
    /// Bytes of data in every znode.
    #[arg(long, default_value_t = 100)]
    data_bytes: usize,
    /// Znodes from which get, set and exists pick.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=9_999_999))]
    keys: u32,
    /// Length of the timed part, in milliseconds.
    #[arg(long, default_value_t = 2000)]
    duration_ms: u64,
    /// Number of timed requests, instead of a duration.
    #[arg(long, conflicts_with = "duration_ms")]
    ops: Option<u64>,
    /// Load before the timed part, in milliseconds.
    #[arg(long, default_value_t = 300)]
    warmup_ms: u64,
    /// Open loop: N requests a second are due, and latency counts from the due time.
    #[arg(long, value_parser = positive)]
    rate: Option<f64>,
    /// Also write the result as JSON; `-` prints it instead of the table.
    #[arg(long, value_name = "FILE")]
    json: Option<String>,
    /// Process whose CPU time is read around the timed part.
    #[arg(long, value_name = "PID")]
    server_pid: Option<u32>,
    /// Seed of the random choice of keys and operations.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if rate > 0.0 && rate <= 1e7 => Ok(rate),
        _ => Err("rate must be a number above 0 and at most 10,000,000 a second".into()),
    }
}

pub(crate) fn run(args: &Args) -> Result<bool, Error> {
    let measured = measure(args)?;
    let json = measured.json(args);
    match args.json.as_deref() {
        Some("-") => say(format!("{json:#}\n")).context(|| "cannot print the result".into())?,
        Some(path) => {
            fs::write(path, format!("{json:#}\n")).context(|| format!("cannot write {path:?}"))?;
            say(measured.table(args)).context(|| "cannot print the result".into())?;
        }
        None => say(measured.table(args)).context(|| "cannot print the result".into())?,
    }
    measured.recorder.expect_no_errors(&args.mix.text())?;
    Ok(true)
}

/// The results of the timed part.
struct Measured {
    recorder: Recorder,
    elapsed_ns: u64,
    server_cpu_ns: Option<u64>,
    generator_cpu_ns: u64,
}

fn measure(args: &Args) -> Result<Measured, Error> {
    if args.mix.only() == Some(Kind::Connect) {
        return measure_connects(args);
    }
    let decks = Decks::new(&args.mix, args.keys as usize, args.data_bytes);
    let mut generator = Generator::connect(args)?;
    set_up(args, &decks, &mut generator)?;
    let rounds = match args.mix.only() {
        Some(kind @ (Kind::Create | Kind::Create2 | Kind::Delete)) if args.rate.is_none() => {
            Some(kind)
        }
        _ => None,
    };
    let warmup = Limit {
        duration: Some(Duration::from_millis(args.warmup_ms)),
        ops: None,
    };
    let timed = Limit {
        duration: args
            .ops
            .is_none()
            .then_some(Duration::from_millis(args.duration_ms)),
        ops: args.ops,
    };
    if let Some(kind) = rounds {
        measure_rounds(args, kind, &decks, &mut generator, &warmup)?;
        return measure_rounds(args, kind, &decks, &mut generator, &timed);
    }
    let mut mixed = Mixed::new(&args.mix, &decks, generator.connections(), args.seed);
    generator.run(&mut mixed, warmup.duration, &mut Recorder::default())?;
    let mut meter = Meter::new(args.server_pid);
    let mut recorder = Recorder::default();
    meter.span(|| match timed.ops {
        Some(left) => {
            let source = &mut Limited {
                source: mixed,
                left,
            };
            generator.run(source, None, &mut recorder)
        }
        None => generator.run(&mut mixed, timed.duration, &mut recorder),
    })?;
    Ok(meter.measured(recorder))
}

/// The limit of a run, which ends at either of them.
struct Limit {
    duration: Option<Duration>,
    ops: Option<u64>,
}

impl Limit {
    fn is_reached(&self, elapsed_ns: u64, ops: u64) -> bool {
        let elapsed = Duration::from_nanos(elapsed_ns);
        self.duration.is_some_and(|limit| elapsed >= limit)
            || self.ops.is_some_and(|limit| ops >= limit)
    }
}

fn measure_connects(args: &Args) -> Result<Measured, Error> {
    if args.connections != 1 || args.depth != 1 || args.rate.is_some() {
        return Err(Error::Setup(
            "connect opens one session after the other; \
             leave out --connections, --depth and --rate"
                .into(),
        ));
    }
    let warmup = Duration::from_millis(args.warmup_ms);
    connects::run(args.addr, u64::MAX, Some(warmup), &mut Recorder::default())?;
    let mut meter = Meter::new(args.server_pid);
    let mut recorder = Recorder::default();
    let duration = args.ops.is_none();
    let duration = duration.then_some(Duration::from_millis(args.duration_ms));
    let ops_max = args.ops.unwrap_or(u64::MAX);
    meter.span(|| connects::run(args.addr, ops_max, duration, &mut recorder))?;
    Ok(meter.measured(recorder))
}

/// Creates and deletes in rounds; counts only the rounds of `kind`.
fn measure_rounds(
    args: &Args,
    kind: Kind,
    decks: &Decks,
    generator: &mut Generator,
    limit: &Limit,
) -> Result<Measured, Error> {
    let connections = generator.connections();
    let mut meter = Meter::new(args.server_pid);
    let mut recorder = Recorder::default();
    while !limit.is_reached(meter.elapsed_ns, recorder.replies) {
        for deck in [&decks.births, &decks.deaths] {
            let mut once = Once::new(deck, connections);
            if deck.kind() == kind {
                meter.span(|| generator.run(&mut once, None, &mut recorder))?;
            } else {
                let mut aside = Recorder::default();
                generator.run(&mut once, None, &mut aside)?;
                aside.expect_no_errors(deck.kind().name())?;
            }
        }
    }
    Ok(meter.measured(recorder))
}

/// Creates the znodes that the mix needs, regardless of what an earlier run left behind.
fn set_up(args: &Args, decks: &Decks, generator: &mut Generator) -> Result<(), Error> {
    if args.mix.only() == Some(Kind::Raw) {
        return Ok(());
    }
    let mut client = Client::connect(args.addr)?;
    mix::plant_parents(&mut client)?;
    let connections = generator.connections();
    let mut deal = |deck, tolerated: &[ErrorCode], what: &str| {
        let mut recorder = Recorder::tolerating(tolerated);
        generator.fill(&mut Once::new(deck, connections), &mut recorder)?;
        recorder.expect_no_errors(what)
    };
    if args.mix.has(&[Kind::Get, Kind::Set, Kind::Exists]) {
        deal(&decks.plant, &[ErrorCode::NodeExists], "creating keys")?;
        deal(&decks.refresh, &[], "setting keys")?;
        mix::check_key(&mut client, args.data_bytes)?;
    }
    if args.mix.has(&[Kind::Create, Kind::Create2, Kind::Delete]) {
        deal(&decks.deaths, &[ErrorCode::NoNode], "clearing new znodes")?;
    }
    client.close()
}

/// One of the two ways to drive connections.
enum Generator {
    Single(Single),
    Many(Driver, Pace),
}

impl Generator {
    fn connect(args: &Args) -> Result<Self, Error> {
        let raw = args.mix.only() == Some(Kind::Raw);
        let (connections, depth) = (usize::from(args.connections), usize::from(args.depth));
        let pace = match args.rate {
            None if connections == 1 && depth == 1 => {
                return Single::connect(args.addr, raw).map(Self::Single);
            }
            None => Pace::Closed { depth },
            Some(rate) => Pace::Open { rate, depth },
        };
        Ok(Self::Many(
            Driver::connect(args.addr, connections, raw)?,
            pace,
        ))
    }

    fn connections(&self) -> usize {
        match self {
            Self::Single(_) => 1,
            Self::Many(driver, _) => driver.connections(),
        }
    }

    /// Runs a source to its end at full speed, regardless of the pace of the load.
    fn fill<S: Source>(&mut self, source: &mut S, recorder: &mut Recorder) -> Result<(), Error> {
        match self {
            Self::Single(single) => single.run(source, None, recorder),
            Self::Many(driver, _) => {
                let pace = Pace::Closed { depth: FILL_DEPTH };
                driver.run(source, pace, None, recorder)
            }
        }
        .map(drop)
    }

    /// Runs a source until the time is over or it ends.
    fn run<S: Source>(
        &mut self,
        source: &mut S,
        duration: Option<Duration>,
        recorder: &mut Recorder,
    ) -> Result<Span, Error> {
        match self {
            Self::Single(single) => single.run(source, duration, recorder),
            Self::Many(driver, pace) => driver.run(source, *pace, duration, recorder),
        }
    }
}

/// Adds up time and CPU time over the timed parts of a run.
struct Meter {
    server_pid: Option<u32>,
    elapsed_ns: u64,
    server_cpu_ns: u64,
    generator_cpu_ns: u64,
}

impl Meter {
    fn new(server_pid: Option<u32>) -> Self {
        Self {
            server_pid,
            elapsed_ns: 0,
            server_cpu_ns: 0,
            generator_cpu_ns: 0,
        }
    }

    fn cpu_ns(&self) -> Result<(u64, u64), Error> {
        let server = self.server_pid.map_or(Ok(0), process::cpu_ns)?;
        Ok((server, process::cpu_ns(std::process::id())?))
    }

    fn span(&mut self, part: impl FnOnce() -> Result<Span, Error>) -> Result<(), Error> {
        let before = self.cpu_ns()?;
        self.elapsed_ns += part()?.elapsed_ns();
        let after = self.cpu_ns()?;
        self.server_cpu_ns += after.0.saturating_sub(before.0);
        self.generator_cpu_ns += after.1.saturating_sub(before.1);
        Ok(())
    }

    fn measured(self, recorder: Recorder) -> Measured {
        Measured {
            recorder,
            elapsed_ns: self.elapsed_ns,
            server_cpu_ns: self.server_pid.map(|_| self.server_cpu_ns),
            generator_cpu_ns: self.generator_cpu_ns,
        }
    }
}

impl Measured {
    fn ops_per_second(&self) -> f64 {
        as_f64(self.recorder.replies) / (as_f64(self.elapsed_ns.max(1)) / 1e9)
    }

    fn server_cpu_ns_per_op(&self) -> Option<f64> {
        let ops = as_f64(self.recorder.replies.max(1));
        self.server_cpu_ns.map(|ns| as_f64(ns) / ops)
    }

    fn share(&self, cpu_ns: u64) -> f64 {
        as_f64(cpu_ns) / as_f64(self.elapsed_ns.max(1))
    }

    fn json(&self, args: &Args) -> Value {
        let by_op: serde_json::Map<_, _> = self
            .recorder
            .by_kind()
            .map(|(kind, histogram)| (kind.name().into(), stats::latencies_json(histogram)))
            .collect();
        json!({
            "addr": args.addr.to_string(),
            "mix": args.mix.text(),
            "connections": args.connections,
            "depth": args.depth,
            "rate": args.rate,
            "data_bytes": args.data_bytes,
            "keys": args.keys,
            "elapsed_ns": self.elapsed_ns,
            "ops": self.recorder.replies,
            "ops_per_s": self.ops_per_second(),
            "errors": self.recorder.errors(),
            "latency_ns": stats::latencies_json(&self.recorder.total()),
            "by_op": by_op,
            "server_cpu_ns_per_op": self.server_cpu_ns_per_op(),
            "server_cpu_share": self.server_cpu_ns.map(|ns| self.share(ns)),
            "generator_cpu_share": self.share(self.generator_cpu_ns),
        })
    }

    fn table(&self, args: &Args) -> String {
        let loop_text = args.rate.map_or_else(
            || "closed loop".to_owned(),
            |rate| format!("open loop, {} requests/s due", grouped(rate)),
        );
        let mut text = format!(
            "{}: {} connections x {} deep, {} bytes of data, {loop_text}, {} timed\n\n",
            args.mix.text(),
            args.connections,
            args.depth,
            args.data_bytes,
            duration_ns(as_f64(self.elapsed_ns)),
        );
        let mut heading = vec!["op", "ops", "ops/s"];
        heading.extend(QUANTILES.map(|(name, _)| name));
        heading.push("max");
        let mut table = Table::new(&heading);
        let seconds = as_f64(self.elapsed_ns.max(1)) / 1e9;
        let mut row = |name: &str, histogram: &hdrhistogram::Histogram<u64>| {
            let ops = as_f64(histogram.len());
            let mut cells = vec![name.into(), grouped(ops), grouped(ops / seconds)];
            cells.extend(QUANTILES.map(|(_, at)| duration_ns(stats::interpolated(histogram, at))));
            cells.push(duration_ns(as_f64(histogram.max())));
            table.row(cells);
        };
        for (kind, histogram) in self.recorder.by_kind() {
            row(kind.name(), histogram);
        }
        if args.mix.only().is_none() {
            row("all", &self.recorder.total());
        }
        text += &table.text();
        text += &format!("\nerrors: {}", self.recorder.errors());
        if self.recorder.errors() > 0 {
            text += &format!(" ({})", self.recorder.errors_text());
        }
        text += &format!(
            "\ngenerator: {} of a core\n",
            number(self.share(self.generator_cpu_ns))
        );
        if let (Some(per_op), Some(cpu_ns)) = (self.server_cpu_ns_per_op(), self.server_cpu_ns) {
            let (share, per_op) = (number(self.share(cpu_ns)), duration_ns(per_op));
            text += &format!("server: {share} of a core, {per_op} of CPU an operation\n");
        }
        text
    }
}

/// Requests outstanding on a connection while znodes are set up.
const FILL_DEPTH: usize = 64;
