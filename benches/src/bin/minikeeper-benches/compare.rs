//! The comparison with the floor: all speed goals in one run.
//!
//! For each point, the program loads the floor and the server in turn, in the same placement, and
//! each round gives one ratio. Ratios of neighbouring loads say more than absolute numbers, because
//! a disturbance of the machine affects both.

use std::{
    io::Read as _,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use minikeeper_benches::{
    Error, IoContext as _,
    clock::Deadline,
    note,
    points::{Floor, Metric, POINTS, Point},
    process::{self, Server},
    stats::Spread,
    table::{Table, duration_ns, grouped, number},
};
use serde_json::{Value, json};

use crate::options::{Measured, Only, Output};

/// Compares minikeeper with an echo server under the same load and prints the ratios.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  cargo run --profile dist -p minikeeper-benches -- compare
  compare --pin --json result.json        generator on core 0, servers on core 1
  compare --pin shared --only latency-get everything on core 0, one point
  compare --rounds 3 --duration-ms 500    quick look
  compare --pin --before OLD/minikeeper   an older program in the same rounds, to see the change
  compare --server 'zkServer {port}'      another server instead of minikeeper
  compare --addr 127.0.0.1:2181           a server that already runs (its CPU time is unknown)")]
pub(crate) struct Args {
    #[command(flatten)]
    measured: Measured,
    #[command(flatten)]
    only: Only,
    #[command(flatten)]
    output: Output,
    /// Rounds per point; each loads the floor and the server once.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Timed part of each load, in milliseconds.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=600_000))]
    duration_ms: u64,
    /// Load before each timed part, in milliseconds.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(0..=600_000))]
    warmup_ms: u64,
    /// Bytes of data in every znode.
    #[arg(long, default_value_t = 100)]
    data_bytes: usize,
    /// Older program, loaded in the same rounds, to see what has changed.
    #[arg(long, value_name = "PATH")]
    before: Option<PathBuf>,
    /// Rounds after which the servers are restarted, because the memory layout of a process is
    /// random.
    #[arg(long, value_name = "ROUNDS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1000))]
    restart_after: u32,
    /// Shell command of another server to measure; {port} is replaced.
    #[arg(long, value_name = "CMD", conflicts_with_all = ["minikeeper", "addr"])]
    server: Option<String>,
    /// Running server to measure.
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "minikeeper")]
    addr: Option<SocketAddr>,
}

pub(crate) fn run(args: &Args) -> Result<bool, Error> {
    let mut rows = Vec::new();
    for point in args.only.of(POINTS, |point| point.name)? {
        rows.push(args.compare(point)?);
    }
    let json = json!({
        "placement": args.measured.pin.text(),
        "rounds": args.rounds,
        "duration_ms": args.duration_ms,
        "data_bytes": args.data_bytes,
        "points": rows.iter().map(Row::json).collect::<Vec<_>>(),
    });
    let goals = rows.iter().map(Row::holds);
    args.output.finish(&report(args, &rows), &json, goals)
}

impl Args {
    fn start_echo(&self, raw: bool) -> Result<Server, Error> {
        let data_bytes = self.data_bytes.to_string();
        let mut args = vec!["echo", "--data-bytes", &data_bytes];
        if raw {
            args.push("--raw");
        }
        self.measured.start_own(&args)
    }

    fn start_measured(&self) -> Result<Server, Error> {
        if let Some(addr) = self.addr {
            return Ok(Server::running(addr));
        }
        if let Some(text) = &self.server {
            let port = process::free_port()?;
            let text = text.replace("{port}", &port.to_string());
            let mut command = self.measured.pin.server("sh");
            command.args(["-c", &format!("exec {text}")]);
            return Server::start_at(command, SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        }
        self.measured.start()
    }

    fn start_all(&self, point: &Point) -> Result<Servers, Error> {
        Ok(Servers {
            raw: match point.floor {
                Floor::RoundTrip => Some(self.start_echo(true)?),
                Floor::Echo => None,
            },
            echo: self.start_echo(false)?,
            before: match &self.before {
                Some(path) => Some(Server::start_minikeeper(self.measured.command(path))?),
                None => None,
            },
            measured: self.start_measured()?,
        })
    }

    /// Makes all rounds of one point, on servers started for it.
    fn compare(&self, point: &'static Point) -> Result<Row, Error> {
        let mut servers = self.start_all(point)?;
        let mut row = Row {
            point,
            rounds: Vec::new(),
        };
        for number in 0..self.rounds {
            note(&format!(
                "{}: round {} of {}",
                point.name,
                number + 1,
                self.rounds
            ));
            if number > 0 && number % self.restart_after == 0 {
                drop(servers);
                servers = self.start_all(point)?;
            }
            row.rounds
                .push(self.round(point, &servers, number % 2 == 1)?);
        }
        Ok(row)
    }

    /// Loads each server once. Every other round goes in reverse order, so that a drift favours no
    /// server.
    fn round(&self, point: &Point, servers: &Servers, backwards: bool) -> Result<Round, Error> {
        let mut round = Round::default();
        let measured = Some(&servers.measured);
        let mut loads = [
            (&mut round.raw, "raw", servers.raw.as_ref()),
            (&mut round.echo, point.mix, Some(&servers.echo)),
            (&mut round.before, point.mix, servers.before.as_ref()),
            (&mut round.server, point.mix, measured),
        ];
        if backwards {
            loads.reverse();
        }
        for (result, mix, server) in loads {
            if let Some(server) = server {
                *result = self.load(point, mix, server)?;
            }
        }
        Ok(round)
    }

    /// Runs one load; returns its result as `load` prints it.
    fn load(&self, point: &Point, mix: &str, server: &Server) -> Result<Value, Error> {
        let mut command = self.measured.generator()?;
        let addr = server.addr.to_string();
        let numbers = [
            ("--connections", u64::from(point.connections)),
            ("--depth", u64::from(point.depth)),
            ("--duration-ms", self.duration_ms),
            ("--warmup-ms", self.warmup_ms),
            ("--data-bytes", self.data_bytes as u64),
        ];
        command.args(["--addr", &addr, "--mix", mix, "--json", "-"]);
        for (name, value) in numbers {
            command.args([name, &value.to_string()]);
        }
        if let Some(pid) = server.pid {
            command.args(["--server-pid", &pid.to_string()]);
        }
        let limit = Duration::from_millis(self.duration_ms * 4 + self.warmup_ms * 4) + LOAD_MARGIN;
        let text = output(&mut command, limit, &format!("load {mix} on {addr}"))?;
        serde_json::from_str(&text)
            .map_err(|error| Error::Unexpected(format!("load printed no result: {error}")))
    }
}

/// Runs a command to its end and returns its output; its messages go to our standard error.
fn output(command: &mut Command, limit: Duration, what: &str) -> Result<String, Error> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context(|| format!("cannot start {what}"))?;
    let deadline = Deadline::new(limit, format!("end of {what}"));
    let ended = deadline.poll(Duration::from_millis(5), || {
        child
            .try_wait()
            .context(|| format!("cannot wait for {what}"))
    });
    let status = match ended {
        Ok(status) => status,
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(error);
        }
    };
    if !status.success() {
        return Err(Error::Unexpected(format!("{what}: ended with {status}")));
    }
    let mut text = String::new();
    let mut stdout = child.stdout.take().expect("standard output was piped");
    stdout
        .read_to_string(&mut text)
        .context(|| format!("cannot read what {what} printed"))?;
    Ok(text)
}

/// The servers that the rounds of a point load.
struct Servers {
    raw: Option<Server>,
    echo: Server,
    before: Option<Server>,
    measured: Server,
}

/// The results of one round; null where there is no such server.
#[derive(Default)]
struct Round {
    raw: Value,
    echo: Value,
    before: Value,
    server: Value,
}

/// All rounds of a point.
struct Row {
    point: &'static Point,
    rounds: Vec<Round>,
}

impl Row {
    fn spread(&self, value: impl Fn(&Round) -> Option<f64>) -> Option<Spread> {
        let values: Option<Vec<f64>> = self.rounds.iter().map(value).collect();
        Spread::of(&values?)
    }

    fn floor(&self, round: &Round) -> Option<f64> {
        match self.point.floor {
            Floor::RoundTrip => self.point.metric.of(&round.raw),
            Floor::Echo => self.point.metric.of(&round.echo),
        }
    }

    fn ratio(&self) -> Option<Spread> {
        let metric = self.point.metric;
        self.spread(|round| Some(metric.of(&round.server)? / self.floor(round)?))
    }

    /// Returns the ratio of the echo itself to the floor, where that is not 1 by definition.
    fn echo_ratio(&self) -> Option<Spread> {
        let metric = self.point.metric;
        match self.point.floor {
            Floor::RoundTrip => {
                self.spread(|round| Some(metric.of(&round.echo)? / self.floor(round)?))
            }
            Floor::Echo => None,
        }
    }

    fn cpu_ratio(&self) -> Option<Spread> {
        let cpu = |result: &Value| Metric::ServerCpu.of(result).filter(|ns| *ns > 0.0);
        self.spread(|round| Some(cpu(&round.server)? / cpu(&round.echo)?))
    }

    /// Returns the ratio of the older program.
    fn before(&self) -> Option<Spread> {
        let metric = self.point.metric;
        self.spread(|round| Some(metric.of(&round.before)? / self.floor(round)?))
    }

    /// Returns the ratio of the server to the older program, round by round.
    fn change(&self) -> Option<Spread> {
        let metric = self.point.metric;
        self.spread(|round| Some(metric.of(&round.server)? / metric.of(&round.before)?))
    }

    fn holds(&self) -> Option<bool> {
        self.ratio()
            .map(|ratio| self.point.goal.holds(ratio.median))
    }

    fn cells(&self) -> Vec<String> {
        let metric = self.point.metric;
        let value = |spread: Option<Spread>| {
            spread.map_or_else(
                || "-".into(),
                |spread| match metric {
                    Metric::Rate => format!("{}/s", grouped(spread.median)),
                    Metric::P50 | Metric::ServerCpu => duration_ns(spread.median),
                },
            )
        };
        let median = |spread: Option<Spread>| {
            spread.map_or_else(|| "-".into(), |spread| number(spread.median))
        };
        let ratio = self.ratio();
        vec![
            self.point.name.into(),
            value(self.spread(|round| self.floor(round))),
            value(self.spread(|round| metric.of(&round.server))),
            median(ratio),
            ratio.map_or_else(
                || "-".into(),
                |ratio| format!("{}-{}", number(ratio.min), number(ratio.max)),
            ),
            self.point.goal.text(),
            match self.holds() {
                Some(true) => "yes".into(),
                Some(false) => "NO".into(),
                None => "not measured".into(),
            },
            median(self.echo_ratio()),
            median(self.cpu_ratio()),
            median(self.before()),
            median(self.change()),
        ]
    }

    fn json(&self) -> Value {
        let spread = |spread: Option<Spread>| spread.map(|spread| spread.json());
        let rounds = self
            .rounds
            .iter()
            .map(|round| json!({ "raw": round.raw, "echo": round.echo, "before": round.before, "server": round.server }));
        json!({
            "name": self.point.name,
            "goal": self.point.goal.text(),
            "holds": self.holds(),
            "ratio": spread(self.ratio()),
            "echo_ratio": spread(self.echo_ratio()),
            "cpu_ratio": spread(self.cpu_ratio()),
            "before_ratio": spread(self.before()),
            "change": spread(self.change()),
            "rounds": rounds.collect::<Vec<_>>(),
        })
    }
}

fn report(args: &Args, rows: &[Row]) -> String {
    let server = match (&args.server, args.addr) {
        (Some(command), _) => command.clone(),
        (None, Some(addr)) => addr.to_string(),
        (None, None) => "minikeeper".into(),
    };
    let mut text = format!(
        "{server} against echo: {} rounds of {} ms, {} bytes of data, {}\n\
         medians; ratio = server / floor, round by round, with its smallest and largest\n\n",
        args.rounds,
        args.duration_ms,
        args.data_bytes,
        args.measured.pin.text()
    );
    let mut columns = vec![
        "point", "floor", "server", "ratio", "min-max", "goal", "holds", "echo/E", "cpu", "before",
        "change",
    ];
    // The last two columns are for an older program.
    columns.truncate(columns.len() - if args.before.is_some() { 0 } else { 2 });
    let mut table = Table::new(&columns);
    for row in rows {
        let mut cells = row.cells();
        cells.truncate(columns.len());
        table.row(cells);
    }
    text += &table.text();
    text += "\nfloor   latency and new-session: E, the median bare round trip (echo --raw, frames of\n\
             \x20       a getData reply's size); others: the same load on echo\n\
             echo/E  what echo itself reaches against E, the best one can hope for\n\
             cpu     CPU time of the server for one operation, divided by echo's\n";
    if args.before.is_some() {
        text += "before  the ratio of the older program\n\
                 change  the server divided by the older program, round by round\n";
    }
    text
}

/// How much longer than its timed parts a load may take, to connect and to create znodes.
const LOAD_MARGIN: Duration = Duration::from_secs(60);
