//! Compares minikeeper with a live ZooKeeper. `tests/differential/run` builds and starts it.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a program"
)]

use std::{fs, path::PathBuf, process::ExitCode, time::Duration};

use clap::{Parser, ValueEnum};
use minikeeper_tests::differential::{
    history::Step,
    hunt::{Found, Hunted, Plan, hunt},
    known::{self, Avoid, KnownDifferences},
    original::Original,
    recordings, scenarios,
    server::{Minikeeper, Server},
};

/// The number of lines of a scenario to print; the file has all of them.
const LINES_SHOWN: usize = 40;

/// Compares minikeeper with a live ZooKeeper: the scenario files, then random histories.
///
/// Exit code 0: no difference; 1: a difference, or could not run; 2: wrong usage.
#[derive(Parser)]
struct Args {
    /// Java class path of ZooKeeper, with the classes of tests/differential/original.
    #[arg(long, required_unless_present = "known", default_value = "")]
    class_path: String,
    /// Directory for ZooKeeper's data.
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir())]
    data: PathBuf,
    /// Directory for differences, written as scenarios.
    #[arg(long, value_name = "DIR", default_value = "target/differential")]
    findings: PathBuf,
    /// Run only one of the two parts.
    #[arg(long)]
    only: Option<Part>,
    /// The first seed of random histories.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of seeds. Default: 100, or as many as the budget allows.
    #[arg(long)]
    seeds: Option<u64>,
    /// Numbers of connections; each seed runs with each of them.
    #[arg(long, value_delimiter = ',', default_value = "1,3,8", value_parser = clap::value_parser!(u8).range(1..=8))]
    connections: Vec<u8>,
    /// Number of recordings to make and replay.
    #[arg(long, default_value_t = 10)]
    recordings: u64,
    /// Steps of one history.
    #[arg(long, default_value_t = 300)]
    steps: usize,
    /// Begin no random history after this number of seconds.
    #[arg(long)]
    budget_seconds: Option<u64>,
    /// Operations to leave out of random histories, in addition to those that the version requires.
    #[arg(long, value_delimiter = ',')]
    without: Vec<Without>,
    /// Print the table of known differences, and exit.
    #[arg(long)]
    known: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Scenarios,
    Random,
    /// Recordings of random histories, replayed on ZooKeeper and in this process.
    Recordings,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Without {
    Acls,
    Quotas,
    Time,
    /// TTL znodes, which both servers then refuse.
    ExtendedTypes,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.known {
        print!("{}", known::table(None));
        return ExitCode::SUCCESS;
    }
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(fault) => {
            eprintln!("differential: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<bool, String> {
    let original = start(args, false)?;
    let version = original.version();
    let mut avoid = Avoid::for_version(version);
    avoid.acls |= args.without.contains(&Without::Acls);
    avoid.quotas |= args.without.contains(&Without::Quotas);
    avoid.time |= args.without.contains(&Without::Time);
    let mut compare = Compare {
        args,
        known: KnownDifferences::of_version(version),
        original,
        avoid,
    };
    println!("known differences to ZooKeeper {version}, all excused:");
    println!("{}", known::table(Some(version)));
    let mut is_equal = true;
    if args.only.is_none_or(|part| part == Part::Scenarios) {
        is_equal &= compare.scenarios()?;
    }
    if args.only.is_none_or(|part| part == Part::Recordings) {
        is_equal &= compare.recordings()?;
    }
    if args.only.is_none_or(|part| part == Part::Random) {
        is_equal &= compare.random()?;
    }
    Ok(is_equal)
}

/// Starts ZooKeeper with the settings from the arguments.
fn start(args: &Args, enforces_quotas: bool) -> Result<Original, String> {
    let extended = !args.without.contains(&Without::ExtendedTypes);
    let properties = [
        format!("-Dzookeeper.extendedTypesEnabled={extended}"),
        format!("-Dzookeeper.enforceQuota={enforces_quotas}"),
    ];
    let properties = properties.each_ref().map(String::as_str);
    Original::start(&args.class_path, &args.data, &properties)
}

/// Returns minikeeper with the same settings.
fn minikeeper(args: &Args, enforces_quotas: bool) -> Minikeeper {
    Minikeeper::new(|config| {
        config.extended_types = !args.without.contains(&Without::ExtendedTypes);
        config.enforce_quota = enforces_quotas;
    })
}

struct Compare<'a> {
    args: &'a Args,
    known: KnownDifferences,
    original: Original,
    avoid: Avoid,
}

impl Compare<'_> {
    fn scenarios(&mut self) -> Result<bool, String> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
        let scripts = scenarios::read(folder.as_ref())?;
        let version = self.original.version();
        let mut own = minikeeper(self.args, false);
        let summary = scenarios::run(&scripts, &mut own, &mut self.original, version, self.known)?;
        println!(
            "scenarios: {} cases equal on both; {} in which minikeeper deviates on purpose and {} \
             of later releases, all different; {} faults",
            summary.passed,
            summary.deviating,
            summary.later.len(),
            summary.faults.len(),
        );
        for later in &summary.later {
            println!("  later: {later}");
        }
        for fault in &summary.faults {
            println!("  fault: {fault}");
        }
        Ok(summary.faults.is_empty())
    }

    fn recordings(&mut self) -> Result<bool, String> {
        let Args { seed, steps, .. } = *self.args;
        let seeds = seed..seed + self.args.recordings;
        let known = (self.known, self.avoid);
        let tally = recordings::compare(seeds, steps, known, Some(&mut self.original))?;
        println!(
            "recordings: {} of {} bytes, {} messages replayed in this process and on ZooKeeper; {} \
             differences",
            tally.recordings,
            tally.bytes,
            tally.requests,
            tally.differences.len(),
        );
        for (seed, difference) in &tally.differences {
            println!("seed {seed}: {difference}");
        }
        Ok(tally.differences.is_empty())
    }

    fn random(&mut self) -> Result<bool, String> {
        let mut own = minikeeper(self.args, false);
        let hunted = self.hunt(&mut own, false)?;
        println!("random: {}", figures(&hunted));
        if let Some(found) = &hunted.found {
            self.show(found)?;
            return Ok(false);
        }
        if self.avoid.quotas {
            return Ok(true);
        }
        // ZooKeeper reads the setting that enforces quotas when its process starts.
        self.original = start(self.args, true)?;
        let mut own = minikeeper(self.args, true);
        let hunted = self.hunt(&mut own, true)?;
        println!("random, quotas enforced: {}", figures(&hunted));
        if let Some(found) = &hunted.found {
            self.show(found)?;
            return Ok(false);
        }
        Ok(true)
    }

    fn hunt(&mut self, own: &mut dyn Server, enforces_quotas: bool) -> Result<Hunted, String> {
        let args = self.args;
        let unbounded = args.budget_seconds.map_or(100, |_| u64::MAX);
        // Enforced quotas get a fifth of the seeds and of the time.
        let share = |whole: u64| {
            if enforces_quotas {
                whole / 5
            } else {
                whole - whole / 5
            }
        };
        let plan = Plan {
            seed: args.seed,
            seeds: share(args.seeds.unwrap_or(unbounded)).max(1),
            connections: args.connections.iter().copied().map(usize::from).collect(),
            steps: args.steps,
            enforces_quotas,
            budget: args.budget_seconds.map(share).map(Duration::from_secs),
        };
        hunt(&mut self.original, own, self.known, self.avoid, &plan)
    }

    /// Prints a difference and writes it to a file as a scenario.
    fn show(&mut self, found: &Found) -> Result<(), String> {
        let (seed, connections) = (found.seed, found.connections);
        println!("difference with --seed {seed} --connections {connections}");
        if !found.is_repeated {
            println!("  a second run of the history did not show it");
        }
        println!("{}", found.difference);
        println!("  left is ZooKeeper, right is minikeeper");
        let text = if found.is_repeated {
            found.scenario(&mut self.original, self.known)?
        } else {
            let lines: Vec<_> = found.steps().iter().flat_map(Step::texts).collect();
            format!("case not repeated\n{}\n", lines.join("\n"))
        };
        let version = self.original.version();
        let file = self
            .args
            .findings
            .join(format!("{version}-{seed}-{connections}.txt"));
        fs::create_dir_all(&self.args.findings)
            .and_then(|()| fs::write(&file, &text))
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let lines: Vec<_> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
        println!("{}\nwritten to {}", last.join("\n"), file.display());
        Ok(())
    }
}

fn figures(hunted: &Hunted) -> String {
    let seconds = hunted.took.as_secs_f64();
    format!(
        "{} operations compared in {} histories, {seconds:.1} s",
        hunted.operations, hunted.histories
    )
}
