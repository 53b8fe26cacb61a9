//! The command `locks`: runs the workloads, has the judge check them, writes the report.

use std::{path::PathBuf, rc::Rc, sync::Arc, time::Duration};

use minikeeper_bench::{
    Error, IoContext as _,
    awake::Awake,
    clock,
    embedded::{self, Embedded},
    judge::{self, Finding, Verdict},
    outage::Gone,
    process::Pin,
    report::{About, NotRun, Outage, Pause, Report, Row, Workload, json, text},
    stats::Spread,
    table::say,
};
use tokio::{net::TcpStream, runtime::Runtime};

use crate::{
    contestants::{self, Contestant, Cpu},
    goals, measure,
    peers::Peers,
    plan::{self, Size},
    progress::Progress,
    rows,
    stop::Stop,
};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  minikeeper-bench locks                          all workloads on a server in this process, in less than two minutes
  minikeeper-bench locks --quick                  checks that it runs
  minikeeper-bench locks --only hand-over-8       one workload
  minikeeper-bench locks --contestant recipes     some contestants
  minikeeper-bench locks --peers --awake          with ZooKeeper, Curator, Redis, etcd and MariaDB (build with --features peers)

The report is an HTML page. A JSON file next to it has all its data.")]
pub(crate) struct Args {
    /// Number of rounds; figures are their medians.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Only workloads whose name contains this; may be repeated.
    #[arg(long)]
    only: Vec<String>,
    /// Only contestants whose name contains this; may be repeated.
    #[arg(long)]
    contestant: Vec<String>,
    /// Few operations, to check that it runs.
    #[arg(long)]
    quick: bool,
    /// Include the other servers that are installed; benches/compare/install-peers installs them.
    #[arg(long)]
    peers: bool,
    /// Show minikeeper's own goals and whether they are met.
    #[arg(long)]
    goals: bool,
    /// The jars of Curator and of ZooKeeper's client [default: Debian's].
    #[arg(long, value_name = "CLASSPATH")]
    curator: Option<String>,
    /// Placement of generator and servers [default: split if there are two cores, else none].
    #[arg(long, value_enum)]
    pin: Option<Pin>,
    /// Keep cores from sleeping (needs root).
    #[arg(long)]
    awake: bool,
    /// Folder for the report, created if missing.
    #[arg(long, value_name = "FOLDER", default_value = "lock-bench")]
    out: PathBuf,
}

/// All contestants, with the servers they use.
struct Field {
    contestants: Vec<Contestant>,
    echo: Embedded,
    servers: Vec<(String, String)>,
    not_run: Vec<NotRun>,
}

pub(crate) fn run(args: &Args) -> Result<bool, Error> {
    let size = if args.quick { Size::Quick } else { Size::Full };
    let rounds = if args.quick { 1 } else { args.rounds };
    let _awake = args.awake.then(Awake::start).transpose()?;
    // Before measuring, so that a failure costs no time.
    std::fs::create_dir_all(&args.out).context(|| {
        format!(
            "cannot create folder {:?} for the report",
            args.out.display()
        )
    })?;
    let stop = Stop::listen()?;
    // Before this thread is placed on a core: afterwards it sees only that one.
    let pin = pin(args);
    embedded::place(pin.generator_core());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context(|| "cannot start a runtime".into())?;
    let field = runtime.block_on(field(args, pin))?;
    let workloads: Vec<_> = plan::workloads(size)
        .into_iter()
        .filter(|workload| is_wanted(&args.only, &workload.name()))
        .collect();
    let outages: Vec<_> = [Outage::CutOff, Outage::Paused]
        .into_iter()
        .filter(|outage| is_wanted(&args.only, outage.name()))
        .collect();
    if workloads.is_empty() && outages.is_empty() {
        let all: Vec<_> = plan::workloads(size)
            .into_iter()
            .map(Workload::name)
            .collect();
        return Err(Error::Setup(format!(
            "no workload name contains any of {:?}; the workloads are {}, cut-off, paused",
            args.only,
            all.join(", ")
        )));
    }
    let mut report = measured(&runtime, &stop, field, &workloads, &outages, rounds, size)?;
    report.about.placement = placement(args, pin);
    if args.goals {
        report.goals = goals::goals(&report.rows);
    }
    write(args, &report)?;
    let is_clean = !report
        .rows
        .iter()
        .any(|row| row.verdict.exclusion.is_violated());
    Ok(is_clean)
}

/// The placement. By default on fixed cores: on cores that the kernel chooses, runs cannot be
/// compared.
fn pin(args: &Args) -> Pin {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let default = if cores > 1 { Pin::Split } else { Pin::None };
    args.pin.unwrap_or(default)
}

fn is_wanted(parts: &[String], name: &str) -> bool {
    parts.is_empty() || parts.iter().any(|part| name.contains(part.as_str()))
}

async fn field(args: &Args, pin: Pin) -> Result<Field, Error> {
    let server = Rc::new(Embedded::minikeeper(pin)?);
    let local = minikeeper::Server::builder().start().await;
    let local = local.map_err(|error| Error::Setup(error.to_string()))?;
    let cpu = Cpu::Embedded(Rc::clone(&server));
    let shortest = Duration::from_millis(400);
    let mut contestants =
        contestants::recipes("minikeeper", "nothing", server.addr, &cpu, shortest);
    contestants.push(contestants::in_process(Arc::new(local)));
    let mut not_run = Vec::new();
    if args.peers {
        let mut peers = Peers::new(pin, &mut not_run);
        let program = peers.curator_program(args.curator.as_deref());
        if let Some(program) = &program {
            peers.curator(
                program,
                "minikeeper",
                server.addr,
                &cpu,
                "nothing",
                shortest,
            );
        }
        peers.zookeepers(program.as_ref());
        peers.others().await;
        contestants.extend(peers.contestants);
    }
    let all: Vec<_> = contestants.iter().map(Contestant::name).collect();
    contestants.retain(|contestant| is_wanted(&args.contestant, &contestant.name()));
    if contestants.is_empty() {
        let missing = not_run
            .iter()
            .map(|not_run| format!("\n{} did not start: {}", not_run.what, not_run.why));
        return Err(Error::Setup(format!(
            "no contestant name contains any of {:?}; the contestants are {}{}",
            args.contestant,
            all.join("; "),
            missing.collect::<String>()
        )));
    }
    // Only the servers of the remaining contestants: the others have stopped.
    let mut servers = vec![("minikeeper".into(), env!("CARGO_PKG_VERSION").into())];
    for contestant in &contestants {
        if let Cpu::Processes { about, .. } = &contestant.cpu
            && !servers.contains(about)
        {
            servers.push(about.clone());
        }
    }
    Ok(Field {
        contestants,
        echo: Embedded::echo(pin)?,
        servers,
        not_run,
    })
}

fn measured(
    runtime: &Runtime,
    stop: &Stop,
    field: Field,
    workloads: &[Workload],
    outages: &[Outage],
    rounds: u32,
    size: Size,
) -> Result<Report, Error> {
    let Field {
        contestants,
        echo,
        servers,
        mut not_run,
    } = field;
    let contestants = Rc::new(contestants);
    // In the order of the report: by workload.
    let mut all: Vec<(usize, Row)> = Vec::new();
    for workload in workloads {
        for (at, contestant) in contestants.iter().enumerate() {
            if contestant.takes(*workload) {
                let timeout = contestant
                    .shortest
                    .filter(|_| *workload == Workload::Recovery);
                let timeout_ns = timeout.map(|timeout| timeout.as_secs_f64() * 1e9);
                all.push((at, rows::row(*workload, contestant, timeout_ns)));
            }
        }
    }
    let away: Vec<(usize, Outage)> = (0..contestants.len())
        .filter(|at| contestants[*at].takes(Workload::Recovery))
        .flat_map(|at| outages.iter().map(move |outage| (at, *outage)))
        .collect();
    let mut progress = Progress::new(all.len() * rounds as usize + away.len());
    let local = tokio::task::LocalSet::new();
    let echo_addr = echo.addr;
    let stream = local
        .block_on(runtime, TcpStream::connect(echo_addr))
        .context(|| "cannot reach the echo".into())?;
    let _ = stream.set_nodelay(true);
    let mut echo = measure::Echo::new(stream);
    let mut echoes = Vec::new();
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..all.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            stop.check()?;
            let (contestant, row) = &mut all[at];
            let shortest = contestants[*contestant].shortest;
            if round >= plan::rounds(row.workload, shortest, rounds) {
                continue;
            }
            progress.step(&format!(
                "round {} of {rounds}: {}, {}",
                round + 1,
                row.workload.name(),
                row.contestant
            ));
            let resource = format!("{}-{at}-{round}", row.workload.name());
            let contestant = &contestants[*contestant];
            // In a task, like users' code.
            let done = local.block_on(runtime, async {
                let echo_ns = echo.quiet_ns().await?;
                let block =
                    measure::block(contestant, row.workload, round, size, &resource).await?;
                Ok::<_, Error>((echo_ns, block))
            });
            match done {
                Ok((echo_ns, block)) => {
                    echoes.push(echo_ns);
                    rows::add(row, &block, echo_ns);
                }
                Err(error) => rows::refuse(row, format!("it failed: {}", error.chain())),
            }
        }
    }
    let mut pauses = Vec::new();
    for (at, outage) in away {
        stop.check()?;
        let contestant = &contestants[at];
        let name = contestant.name();
        progress.step(&format!("{}, {name}", outage.name()));
        let resource = format!("{}-{at}", outage.name());
        match local.block_on(runtime, measure::away(contestant, outage, &resource)) {
            Ok(gone) => pauses.push(pause(contestant, outage, &gone)),
            Err(error) => not_run.push(NotRun {
                what: format!("{}: {name}", outage.name()),
                why: error.chain(),
            }),
        }
    }
    progress.end();
    Ok(Report {
        about: About {
            date: clock::today(),
            command: std::env::args().collect::<Vec<_>>().join(" "),
            machine: machine(),
            placement: String::new(),
            rounds,
            servers,
            echo_ns: Spread::of(&echoes).map_or(0.0, |spread| spread.median),
        },
        rows: all.into_iter().map(|(_, row)| row).collect(),
        pauses,
        goals: Vec::new(),
        not_run,
    })
}

fn pause(contestant: &Contestant, outage: Outage, gone: &Gone) -> Pause {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Pause {
        contestant: contestant.name(),
        outage,
        timeout_ms: contestant.shortest.map_or(0, millis),
        granted_after_ms: gone.granted_after.map(millis),
        belief: gone.belief,
        late_write_accepted: gone.late_write_accepted,
        verdict: judged(outage, gone),
    }
}

/// A paused holder cannot know that it lost the lock: with any lock, two contenders then believe
/// that they have it, and the question is whether the late write is refused.
fn judged(outage: Outage, gone: &Gone) -> Verdict {
    let verdict = judge::judge(&gone.history, None);
    if outage != Outage::Paused || !verdict.exclusion.is_violated() {
        return verdict;
    }
    let why = "a paused holder cannot know of the loss; only its late write counts";
    Verdict {
        exclusion: Finding::NotChecked(why.into()),
        refusal: verdict.refusal.filter(|_| verdict.fencing.is_violated()),
        ..verdict
    }
}

fn placement(args: &Args, pin: Pin) -> String {
    let sleep = if args.awake {
        "kept awake"
    } else {
        "may sleep"
    };
    format!("{}; cores {sleep}", pin.text())
}

fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| {
            rest.trim_start_matches([' ', '\t', ':'])
        });
    let cores = info
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    format!(
        "{cores} x {model}, Linux {}",
        read("/proc/sys/kernel/osrelease").trim()
    )
}

fn write(args: &Args, report: &Report) -> Result<(), Error> {
    let failed = |path: &PathBuf| format!("cannot write {:?}", path.display());
    let page = args.out.join("locks.html");
    std::fs::write(&page, json::html(report)).context(|| failed(&page))?;
    let raw = args.out.join("locks.json");
    std::fs::write(&raw, format!("{:#}\n", json::json(report))).context(|| failed(&raw))?;
    say(text::text(report)).context(|| "cannot print the report".into())?;
    say(format!("\n{}\n{}\n", page.display(), raw.display())).context(|| "cannot print".into())
}
