//! `minikeeper sweep`: runs a command once for every fault.
//!
//! A second process of this program kills the commands if the sweep is killed itself. It is told which
//! run, and finds the end of the sweep by the end of its stdin.

use std::{
    env,
    ffi::OsString,
    io,
    path::PathBuf,
    process::{ChildStdin, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use minikeeper::{
    FaultPoint, RequestOrder, Server, SweepError, SweepFault, SweepOptions, SweepRule, SweepState,
    sweeping::command::{CommandSweep, ReportFolder, SweepStop, shown, supervise},
};
use serde_json::{Map, Value};

use minikeeper_shell::print_on_stdout;

use crate::{
    ExitFailure,
    ctl::{
        command,
        http::{self, HttpCall},
    },
    system::StopSignals,
};

/// The variable with the address of the server of a suite.
const SUITE: &str = "MINIKEEPER_SWEEP_SUITE";

/// How often the command of a suite is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Why the sweep of a suite without tests is incomplete.
const NO_TESTS: &str = "no test was swept; does one use the fixture minikeeper of pytest, @Minikeeper of JUnit, or withServer \
                        of Node?";

/// The exit code of a sweep that found nothing, and did not try every point.
const INCOMPLETE: u8 = 3;

#[derive(clap::Args, Debug)]
pub(crate) struct SweepArgs {
    /// Try two faults a run, too, until --time or --runs is over; with --orders, try one fault in an order
    #[arg(long, value_name = "1|2", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=2))]
    depth: u16,
    /// Try equivalent points, too: the same fault at the same request after the same one
    #[arg(long)]
    all: bool,
    /// Try only this fault; may be given several times, or "all". By default all that a sound client survives:
    /// not outage, client-outage, client-crash and rollback. With --orders: event-late for late events, others need
    /// --depth 2
    #[arg(long = "fault", value_name = "FAULT", value_parser = fault_parser())]
    faults: Vec<NamedFault>,
    /// How long an outage lasts, in milliseconds of the server's clock, or "forever"
    #[arg(long, value_name = "N", default_value = "1000", value_parser = outage)]
    outage_ms: Duration,
    /// How many changes a rollback takes back
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rollback: u32,
    /// Try the orders in which requests can be served, instead of faults
    #[arg(long, conflicts_with_all = ["allow_unreached", "resume"])]
    orders: bool,
    /// With --orders: try all orders with at most N unforced changes (of client, late events, with --depth 2 a
    /// fault); "all" for all orders
    #[arg(long, value_name = "N", default_value = "2", requires = "orders", value_parser = changes)]
    changes: Changes,
    /// With --orders: then try N further orders, random ones among them; by default 1000, or until --time or
    /// --runs is over
    #[arg(long, value_name = "N", requires = "orders")]
    more: Option<u64>,
    /// With --orders: up to 4 clients that begin a run do the same; orders that differ only in which of them is
    /// which are equivalent
    #[arg(long, requires = "orders")]
    alike: bool,
    /// With --orders: the command starts with N clients; their requests are served as soon as each has one
    #[arg(long, value_name = "N", requires = "orders")]
    clients: Option<u16>,
    /// Run the command once, a whole suite of tests in pytest, JUnit or Node, and sweep each test that uses the server: they
    /// share the budget, the report, and points that are equivalent
    #[arg(long, conflicts_with_all = ["orders", "only", "resume", "new_since", "clients", "tree", "runs"])]
    suite: bool,
    /// Expect failures: a fault or point, "raises" and a part of the output, "because" and the reason; may be given
    /// several times
    #[arg(long, value_name = "RULE", conflicts_with = "orders")]
    allow: Vec<SweepRule>,
    /// Do not try points: a fault or point, "because" and the reason; may be given several times
    #[arg(long, value_name = "RULE", conflicts_with = "orders")]
    leave_out: Vec<SweepRule>,
    /// End with the first failure, once it is confirmed
    #[arg(long)]
    first: bool,
    /// Let a run also fail if it leaves other znodes, clients or watches than the runs without faults
    #[arg(long, conflicts_with = "orders")]
    compare: bool,
    /// Do only the run with this point, + stands between two, or this order; may be given several times
    #[arg(long, value_name = "POINT")]
    only: Vec<String>,
    /// Begin no run after this time, such as 90, 90s or 5m; the most different points come first
    #[arg(long, visible_alias = "budget", value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
    /// Do at most N runs
    #[arg(long, value_name = "N")]
    runs: Option<u64>,
    /// Run N commands at a time
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: u16,
    /// Count the sweep as clean though up to N points are not reached
    #[arg(long, value_name = "N", default_value = "0")]
    allow_unreached: u64,
    /// Count the sweep as clean though --time or --runs leaves up to N points untried
    #[arg(long, value_name = "N", default_value = "0")]
    allow_untried: u64,
    /// The order in which points are tried, a number
    #[arg(long, value_name = "N", default_value = "0")]
    seed: u64,
    /// Kill a run after N seconds: it hangs
    #[arg(long, value_name = "N", default_value = "60")]
    run_time: u64,
    /// The folder for the report, and the stories and outputs of failed runs
    #[arg(long, value_name = "DIR", default_value = "minikeeper-sweep")]
    out: PathBuf,
    /// Leave out what an earlier sweep with the same folder has tried
    #[arg(long)]
    resume: bool,
    /// Leave out the points in this file, which passed before, and add those that pass: what a pipeline has not tried
    #[arg(long, value_name = "FILE", conflicts_with_all = ["orders", "only"])]
    new_since: Option<PathBuf>,
    /// Let the server's tick time be N milliseconds: sessions may be as short as two ticks
    #[arg(long, value_name = "N")]
    tick_time: Option<u64>,
    /// Start each server with the znodes in this file
    #[arg(long, value_name = "FILE")]
    tree: Option<PathBuf>,
    /// The command and its arguments; {} stands for the server's address
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The maximum number of changes; `None` for no limit.
#[derive(Clone, Copy, Debug)]
struct Changes(Option<u32>);

fn changes(text: &str) -> Result<Changes, String> {
    if text == "all" {
        return Ok(Changes(None));
    }
    let number = text.parse().map(Some).map(Changes);
    number.map_err(|_| "expected a number or \"all\"".to_owned())
}

/// A fault; `None` for all.
#[derive(Clone, Copy, Debug)]
struct NamedFault(Option<SweepFault>);

fn fault_parser() -> impl clap::builder::TypedValueParser<Value = NamedFault> {
    use clap::builder::{PossibleValuesParser, TypedValueParser as _};
    let names = SweepFault::NAMES.into_iter().chain(["all"]);
    PossibleValuesParser::new(names).map(|name| NamedFault(name.parse().ok()))
}

fn time(text: &str) -> Result<Duration, String> {
    let (number, unit_s) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60),
        None => (text.strip_suffix('s').unwrap_or(text), 1),
    };
    let seconds = number.parse::<u64>().ok();
    seconds
        .and_then(|number| number.checked_mul(unit_s))
        .map(Duration::from_secs)
        .ok_or_else(|| {
            "expected a number of seconds, such as 90 or 90s, or of minutes, such as 5m".to_owned()
        })
}

fn outage(text: &str) -> Result<Duration, String> {
    if text == "forever" {
        return Ok(Duration::MAX);
    }
    let number = text.parse().ok().filter(|number| *number > 0);
    number
        .map(Duration::from_millis)
        .ok_or_else(|| "expected a number from 1 on, or \"forever\"".to_owned())
}

/// Returns the fields of the verb `suite_start` for these options.
fn fields_of(options: &SweepOptions) -> Map<String, Value> {
    let faults: Vec<_> = options.faults.iter().map(|fault| fault.name()).collect();
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let rules = |rules: &[SweepRule]| {
        let lines: Vec<_> = rules.iter().map(ToString::to_string).collect();
        lines.join("\n")
    };
    let fields: [(&str, Value); 13] = [
        ("faults", faults.join(",").into()),
        (
            "outage_ms",
            match options.outage {
                Duration::MAX => 0.into(),
                outage => millis(outage).into(),
            },
        ),
        ("rollback", options.rollback.into()),
        ("all", options.all.into()),
        ("depth", options.depth.into()),
        ("seed", options.seed.into()),
        ("time_ms", options.time_max.map(millis).into()),
        ("first", options.first.into()),
        ("compare", options.compare.into()),
        ("allow", rules(&options.allow).into()),
        ("leave_out", rules(&options.leave_out).into()),
        ("allow_unreached", options.allow_unreached.into()),
        ("allow_untried", options.allow_untried.into()),
    ];
    let given = fields
        .into_iter()
        .filter(|(_, value)| !value.is_null() && *value != "");
    given
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Calls a verb of the server of a suite.
fn call(server: &str, verb: &str, fields: &Map<String, Value>) -> Result<Value, String> {
    let answer = http::call(&HttpCall {
        server,
        token: None,
        universe: None,
        verb: command::find(verb).ok_or_else(|| format!("no verb {verb}"))?,
        fields,
        longest: Duration::ZERO,
    })?;
    let value: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    match answer.status {
        200 => Ok(value),
        _ => Err(value["error"].as_str().unwrap_or(&answer.body).to_owned()),
    }
}

/// Runs the command of a suite with the server at this address, until it ends or `stopped` closes. Returns how it
/// ended, and the report.
fn run_tests(
    command: &[OsString],
    address: &str,
    options: &SweepOptions,
    mut stopped: tokio::sync::oneshot::Receiver<()>,
) -> Result<(ExitStatus, Value), String> {
    call(address, "suite-start", &fields_of(options))?;
    let (program, arguments) = command.split_first().ok_or("no command")?;
    let mut tests = Command::new(program);
    tests.args(arguments).env(SUITE, address);
    let child = tests.spawn();
    let mut child =
        child.map_err(|error| format!("cannot run {}: {error}", program.to_string_lossy()))?;
    let ended = loop {
        if stopped.try_recv() == Err(tokio::sync::oneshot::error::TryRecvError::Closed) {
            // It may have ended.
            let _ = child.kill();
            break child.wait();
        }
        match child.try_wait() {
            Ok(None) => thread::sleep(LOOK),
            Ok(Some(status)) => break Ok(status),
            Err(error) => break Err(error),
        }
    };
    let ended = ended.map_err(|error| format!("cannot wait for the command: {error}"))?;
    let mut fields = Map::new();
    fields.insert("title".to_owned(), shown(command).into());
    Ok((ended, call(address, "suite-report", &fields)?))
}

/// The argument with which the program supervises a sweep, see [`supervise`].
pub(crate) const SUPERVISOR: &str = "sweep-supervisor";

/// Supervises the sweep at the other end of stdin: kills its commands if it ends without having ended
/// them.
pub(crate) fn run_supervisor() {
    supervise(io::stdin().lock());
}

/// Starts a process that supervises this one. Returns the way to it.
fn supervisor() -> io::Result<ChildStdin> {
    let mut command = Command::new(env::current_exe()?);
    command
        .arg(SUPERVISOR)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Signals of the terminal are for the sweep.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn()?;
    child
        .stdin
        .take()
        .ok_or_else(|| io::ErrorKind::BrokenPipe.into())
}

impl SweepArgs {
    fn builder_of_suite(&self) -> minikeeper::Builder {
        let builder = Server::builder().control();
        match self.tick_time {
            Some(tick_ms) => builder.tick_time(Duration::from_millis(tick_ms)),
            None => builder,
        }
    }

    /// Runs a suite of tests once, which sweep themselves, and prints the report of all.
    fn run_suite(&self, options: &SweepOptions) -> Result<(), ExitFailure> {
        let folder = ReportFolder::open(&self.out).map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("cannot start a runtime: {error}"))?;
        let mut signals = {
            let _inside = runtime.enter();
            StopSignals::listen()
                .and_then(StopSignals::with_hangup)
                .map_err(|error| format!("cannot handle signals: {error}"))?
        };
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (ended, found) = thread::scope(|scope| {
            let (told, asked) = tokio::sync::oneshot::channel::<String>();
            let (tests, builder) = (&self.command, self.builder_of_suite());
            let tests = scope.spawn(move || {
                // No address comes if the server cannot start.
                let address = asked.blocking_recv().unwrap_or_default();
                run_tests(tests, &address, options, stopped)
            });
            runtime.block_on(async {
                let server = builder.start().await;
                let server = server.map_err(|error| format!("cannot start a server: {error}"))?;
                // The other end waits for it.
                let _ = told.send(server.connect_string());
                let mut stop = Some(stop);
                while !tests.is_finished() {
                    tokio::select! {
                        () = tokio::time::sleep(LOOK) => {}
                        () = signals.next() => drop(stop.take()),
                    }
                }
                Ok::<_, String>(())
            })?;
            tests.join().expect("it does not panic")
        })?;
        let text = |name: &str| found[name].as_str().unwrap_or_default();
        let page = folder.write_page(text("html"));
        let page = page.map_err(|error| format!("cannot write the report: {error}"))?;
        print_on_stdout(&format!("{}\nreport: {}\n", text("text"), page.display()))?;
        let tests = found["tests"].as_u64().unwrap_or(0);
        if text("state") == "failed" {
            return Err(format!("{} of {tests} tests are clean", found["clean"]).into());
        }
        if !ended.success() {
            return Err(format!("the suite fails, and its sweeps do not: {ended}").into());
        }
        let reasons = found["reasons"].as_array().into_iter().flatten();
        let reasons: Vec<_> = reasons.filter_map(Value::as_str).collect();
        let why = match tests {
            0 => NO_TESTS.to_owned(),
            _ => reasons.join("; "),
        };
        if why.is_empty() {
            return Ok(());
        }
        Err(ExitFailure {
            text: format!("the sweep is incomplete: {why}"),
            exit_code: INCOMPLETE,
        })
    }

    /// Does the sweep and prints the report.
    pub(crate) fn run(self) -> Result<(), ExitFailure> {
        let usage = |error: SweepError| ExitFailure {
            text: error.to_string(),
            exit_code: 2,
        };
        let mut options = SweepOptions::default();
        for text in &self.only {
            if RequestOrder::is_meant(text) {
                let order = text.parse().map_err(SweepError::from).map_err(usage)?;
                options.only_orders.push(order);
            } else {
                options
                    .only
                    .push(FaultPoint::parse_run(text).map_err(usage)?);
            }
        }
        options.orders = self.orders || !options.only_orders.is_empty();
        if options.orders && !options.only.is_empty() {
            return Err(usage(SweepError::from(
                "--only names a point, and orders are tried; name orders, or leave --orders out"
                    .to_owned(),
            )));
        }
        options.changes_max = self.changes.0;
        options.more_max = self.more;
        options.alike = self.alike;
        options.all = self.all;
        options.depth = self.depth.into();
        options.seed = self.seed;
        options.runs_max = self.runs;
        options.allow_unreached = self.allow_unreached;
        options.allow_untried = self.allow_untried;
        options.time_max = self.time;
        options.allow.clone_from(&self.allow);
        options.leave_out.clone_from(&self.leave_out);
        options.first = self.first;
        options.compare = self.compare;
        options.outage = self.outage_ms;
        options.rollback = self.rollback;
        if !self.faults.is_empty() {
            let named: Option<Vec<_>> = self.faults.iter().map(|fault| fault.0).collect();
            options.faults = named.unwrap_or_else(|| SweepFault::ALL.to_vec());
        }
        options.check().map_err(usage)?;
        if self.suite {
            return self.run_suite(&options);
        }
        let tree = match &self.tree {
            Some(file) => Some(crate::seed(file)?),
            None => None,
        };
        let mut again = "minikeeper sweep".to_owned();
        if let Some(tick_ms) = self.tick_time {
            again += &format!(" --tick-time {tick_ms}");
        }
        if let Some(file) = &self.tree {
            again += &format!(" --tree {}", file.display());
        }
        let usual = SweepOptions::default();
        if options.outage != usual.outage {
            let lasting = match options.outage {
                Duration::MAX => "forever".to_owned(),
                lasting => lasting.as_millis().to_string(),
            };
            again += &format!(" --outage-ms {lasting}");
        }
        if options.rollback != usual.rollback {
            again += &format!(" --rollback {}", options.rollback);
        }
        if options.compare {
            again += " --compare";
        }
        if options.orders {
            again += " --orders";
        }
        if let Some(clients) = self.clients {
            again += &format!(" --clients {clients}");
        }
        let tick_ms = self.tick_time;
        let has_orders = options.orders;
        let builder = move || {
            let mut builder = Server::builder().control();
            if has_orders {
                builder = builder.manual_clock();
            }
            if let Some(tick_ms) = tick_ms {
                builder = builder.tick_time(Duration::from_millis(tick_ms));
            }
            match &tree {
                Some(tree) => builder.seed(tree.clone()),
                None => builder,
            }
        };
        let sweep = CommandSweep {
            command: self.command,
            options,
            jobs: self.jobs.into(),
            run_max: Duration::from_secs(self.run_time),
            folder: self.out,
            resumes: self.resume,
            new_since: self.new_since,
            clients: self.clients.map(usize::from),
            again,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("cannot start a runtime: {error}"))?;
        // Before any command runs, so that none is left behind.
        let mut signals = {
            let _inside = runtime.enter();
            StopSignals::listen()
                .and_then(StopSignals::with_hangup)
                .map_err(|error| format!("cannot handle signals: {error}"))?
        };
        // Without it, commands outlive a sweep that is killed with SIGKILL.
        let stop = supervisor().map_or_else(|_| SweepStop::default(), SweepStop::with_supervisor);
        let tell = minikeeper_shell::print_on_stderr;
        let report = thread::scope(|scope| {
            let (done, is_done) = tokio::sync::oneshot::channel();
            let handle = runtime.handle().clone();
            let (sweep, builder, stop) = (&sweep, &builder, &stop);
            scope.spawn(move || {
                // The other end waits until the sweep is over.
                let _ = done.send(sweep.run(&handle, builder, stop, &tell));
            });
            runtime.block_on(async {
                tokio::pin!(is_done);
                tokio::select! {
                    report = &mut is_done => return report.expect("it is sent"),
                    () = signals.next() => stop.stop(),
                }
                is_done.await.expect("it is sent")
            })
        });
        let report = report.map_err(|error| error.to_string())?;
        let page = sweep.folder.join("report.html");
        let text = format!("{}\nreport: {}\n", sweep.text(&report), page.display());
        print_on_stdout(&text)?;
        match report.state() {
            SweepState::Clean => return Ok(()),
            SweepState::Incomplete => {
                return Err(ExitFailure {
                    text: format!("the sweep is incomplete: {}", report.reasons().join("; ")),
                    exit_code: INCOMPLETE,
                });
            }
            _ => {}
        }
        let text = match &report.without_faults {
            Some(_) => "the command fails without any fault".to_owned(),
            None if report.failures.len() == 1 => "1 failure".to_owned(),
            None => format!("{} failures", report.failures.len()),
        };
        Err(text.into())
    }
}
