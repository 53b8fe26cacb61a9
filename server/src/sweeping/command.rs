//! Sweeps of a command: `minikeeper sweep`.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, BufRead, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use minikeeper_core::{
    clock::Stopwatch, config::stories::Stories, faults::hits::Hits, recording::Recording,
};
use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;

use crate::{
    orders::{
        quiet::Threads,
        run::{OrderSeen, OrderedRun, Stopped},
        serving::{OrderedPrograms, Programs},
    },
    server::{Builder, Server},
    sweep::{
        SweepError,
        armed::{Armed, RunBy},
        plan::{Next, Plan, Run, RunResult, RunVerdict, SweepOptions},
        point::FaultPoint,
        report::{SweepFailure, SweepReport, printable, quoted},
    },
    universe::Universe,
};

/// The end of a command's output that is read for its failure. Unit: bytes.
const OUTPUT_BYTES_MAX: u64 = 64 << 10;

/// The longest output of a command; one that writes more is killed. Unit: bytes.
const OUTPUT_FILE_BYTES_MAX: u64 = 64 << 20;

/// A command that fails so soon after one of its processes was killed has failed because of that.
const NOTICING_MAX: Duration = Duration::from_secs(2);

/// How often the length of the output is looked at.
const OUTPUT_PAUSE: Duration = Duration::from_millis(50);

/// The maximum number of lines of output that a failure shows.
const LINES_MAX: usize = 6;

/// The maximum number of runs whose story, output and recording are saved.
const SAVED_MAX: u32 = 200;

/// The script that does a run again, in the folder of the report.
const AGAIN: &str = "again";

/// The longest command that a report shows instead of that script. Unit: bytes.
const REPEAT_BYTES_MAX: usize = 200;

/// The file with the points that were tried, in the folder of the report.
const TRIED: &str = "tried";

/// A sweep of a command, which passes if its exit code is 0.
#[derive(Debug)]
pub struct CommandSweep {
    /// The program and its arguments. `{}` in an argument stands for the server's address.
    pub command: Vec<OsString>,
    /// What to try.
    pub options: SweepOptions,
    /// How many commands run at a time.
    pub jobs: usize,
    /// How long a run may take, in real time.
    pub run_max: Duration,
    /// The folder for the report, the stories and the output of failed runs.
    pub folder: PathBuf,
    /// Whether to leave out what an earlier sweep with this folder has tried.
    pub resumes: bool,
    /// A file with the points that passed before: they are left out, and those that pass are added.
    pub new_since: Option<PathBuf>,
    /// The number of clients that the command starts with, if orders are tried and it is known: when each
    /// of them has a request, one is served without waiting until the programs are quiet.
    pub clients: Option<usize>,
    /// The start of the command that does a run again, such as `minikeeper sweep --tick-time 200`.
    pub again: String,
}

/// Ends the commands that run, from another thread.
#[derive(Clone, Debug, Default)]
pub struct SweepStop(Arc<Mutex<Stop>>);

#[derive(Debug, Default)]
struct Stop {
    is_asked: bool,
    running: Vec<u32>,
    supervisor: Option<ChildStdin>,
}

impl Stop {
    /// Tells the supervisor of a command that begins (`+`) or has ended (`-`).
    fn tell(&mut self, sign: char, process: u32) {
        if let Some(supervisor) = &mut self.supervisor {
            // Without it commands outlive only a sweep that is killed.
            let _ = writeln!(supervisor, "{sign}{process}");
        }
    }
}

/// Kills the commands of a sweep that ends without having ended them: it was killed itself. Reads from
/// the sweep which commands run, until the sweep's end of the pipe closes.
pub fn supervise(from: impl BufRead) {
    let mut running: Vec<u32> = Vec::new();
    for line in from.lines().map_while(Result::ok) {
        let (sign, process) = line.split_at(line.len().min(1));
        let Ok(process) = process.parse() else {
            continue;
        };
        running.retain(|known| *known != process);
        if sign == "+" {
            running.push(process);
        }
    }
    for process in running {
        kill(process);
    }
}

impl SweepStop {
    /// Tells a process that [supervises](supervise) the sweep, through its stdin, which commands run.
    #[must_use]
    pub fn with_supervisor(supervisor: ChildStdin) -> Self {
        let stop = Self::default();
        stop.0.lock().supervisor = Some(supervisor);
        stop
    }

    /// Kills the commands that run and begins no other.
    pub fn stop(&self) {
        let mut stop = self.0.lock();
        stop.is_asked = true;
        for process in &stop.running {
            kill(*process);
        }
    }

    fn is_asked(&self) -> bool {
        self.0.lock().is_asked
    }

    fn began(&self, process: u32) {
        let mut stop = self.0.lock();
        stop.running.push(process);
        stop.tell('+', process);
        if stop.is_asked {
            kill(process);
        }
    }

    fn ended(&self, process: u32) {
        let mut stop = self.0.lock();
        stop.running.retain(|running| *running != process);
        stop.tell('-', process);
    }
}

impl CommandSweep {
    /// Does the sweep with servers of this builder, whose tasks run on `runtime`. Calls `tell` with
    /// each failure as it is found. Writes `report.html` into the folder.
    ///
    /// # Errors
    /// When the folder cannot be written, a server cannot start or the command cannot be run.
    pub fn run(
        &self,
        runtime: &Handle,
        builder: &(dyn Fn() -> Builder + Sync),
        stop: &SweepStop,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<SweepReport, SweepError> {
        let unwritable = |error: io::Error| {
            SweepError(format!(
                "cannot write to {}: {error}",
                self.folder.display()
            ))
        };
        let tried = self.folder.join(TRIED);
        let folder = ReportFolder::open(&self.folder)?;
        let mut options = self.options.clone();
        if self.resumes {
            options.tried = read_tried(&tried)?;
        }
        if let Some(file) = &self.new_since {
            options.tried.extend(read_tried(file)?);
        }
        let tried = File::options()
            .create(true)
            .write(true)
            .append(self.resumes)
            .truncate(!self.resumes)
            .open(&tried)
            .map_err(unwritable)?;
        let sweep = Running {
            watch: Stopwatch::start(),
            passed: Mutex::default(),
            plan: Mutex::new(Plan::new(options)),
            changed: Condvar::new(),
            failure: Mutex::new(None),
            tried: Mutex::new(tried),
            saved: AtomicU32::new(0),
            of: self,
            runtime,
            builder,
            stop,
            tell,
        };
        thread::scope(|scope| {
            for job in 1..=self.jobs.max(1) {
                let sweep = &sweep;
                scope.spawn(move || sweep.work(job));
            }
        });
        if let Some(error) = sweep.failure.into_inner() {
            return Err(error);
        }
        if let Some(file) = &self.new_since {
            let passed = sweep.passed.into_inner();
            write_passed(file, &passed).map_err(|error| {
                SweepError(format!("cannot write to {}: {error}", file.display()))
            })?;
        }
        let elapsed = sweep.watch.elapsed();
        let mut report = sweep.plan.into_inner().into_report();
        report.elapsed = elapsed;
        self.write_again().map_err(unwritable)?;
        let page = report.to_html(&self.shown(), &|failure| self.repeat(failure));
        folder.write_page(&page).map_err(unwritable)?;
        Ok(report)
    }

    /// Returns the text of a report.
    #[must_use]
    pub fn text(&self, report: &SweepReport) -> String {
        report.to_text(&|failure| self.repeat(failure))
    }

    /// Returns the command that does the run of a failure again: a script in the folder, if it is long.
    fn repeat(&self, failure: &SweepFailure) -> String {
        let whole = format!("{} {} -- {}", self.again, failure.only(), self.shown());
        if whole.len() <= REPEAT_BYTES_MAX {
            return whole;
        }
        format!(
            "sh {} {}",
            self.folder.join(AGAIN).display(),
            quoted(&failure.text())
        )
    }

    /// Writes the script that does a run again.
    fn write_again(&self) -> io::Result<()> {
        let here = std::env::current_dir()?;
        let script = format!(
            "#!/bin/sh\n# Does the run with a point again, as the report names it.\ncd {} || exit 2\nexec {} --only \"$1\" -- {}\n",
            quoted(&here.display().to_string()),
            self.again,
            self.shown()
        );
        create(&self.folder.join(AGAIN))?.write_all(script.as_bytes())
    }

    fn shown(&self) -> String {
        shown(&self.command)
    }
}

/// Returns a command for a shell.
#[must_use]
pub fn shown(command: &[OsString]) -> String {
    let words = command.iter().map(|word| {
        let word = word.to_string_lossy();
        let is_plain =
            |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,@%+".contains(letter);
        if !word.is_empty() && word.chars().all(is_plain) {
            return word.into_owned();
        }
        format!("'{}'", word.replace('\'', "'\\''"))
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A command in a process group of its own that waits for a line on its stdin, which is empty then: the
/// supervisor must know the process before it begins. It does not begin if the sweep is killed before.
#[cfg(unix)]
fn waiting(program: &OsStr, arguments: &[OsString]) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", r#"read -r _ && exec "$@" </dev/null"#, "sh"])
        .arg(program)
        .args(arguments)
        .stdin(Stdio::piped());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
}

/// Nothing supervises a sweep here.
#[cfg(not(unix))]
fn waiting(program: &OsStr, arguments: &[OsString]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command
}

/// The folder of a sweep's report, which no other sweep uses meanwhile.
#[derive(Debug)]
pub struct ReportFolder {
    folder: PathBuf,
    _locked: Option<File>,
}

impl ReportFolder {
    /// Makes the folder, or takes one of an earlier sweep.
    ///
    /// # Errors
    /// When it has files that are of no sweep, symbolic links, or another sweep uses it.
    pub fn open(folder: &Path) -> Result<Self, SweepError> {
        let unwritable =
            |error: io::Error| SweepError(format!("cannot write to {}: {error}", folder.display()));
        match fs::read_dir(folder).map(Iterator::count) {
            Ok(1..) if !folder.join(TRIED).exists() => {
                return Err(SweepError(format!(
                    "{} has files that are of no sweep; name another folder with --out",
                    folder.display()
                )));
            }
            Ok(_) => {}
            Err(_) => {
                fs::create_dir_all(folder).map_err(unwritable)?;
                // It does not belong into a repository.
                fs::write(folder.join(".gitignore"), "*\n").map_err(unwritable)?;
            }
        }
        let locked = lock(folder)?;
        refuse_links(folder)?;
        let opened = Self {
            folder: folder.to_owned(),
            _locked: locked,
        };
        let tried = File::options()
            .create(true)
            .append(true)
            .open(folder.join(TRIED));
        tried.map_err(unwritable)?;
        Ok(opened)
    }

    /// Writes the report as a page. Returns its path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_page(&self, page: &str) -> io::Result<PathBuf> {
        let path = self.folder.join("report.html");
        create(&path)?.write_all(page.as_bytes())?;
        Ok(path)
    }
}

/// Locks a folder until the file is closed, so that no other sweep writes to it.
fn lock(folder: &Path) -> Result<Option<File>, SweepError> {
    #[cfg(unix)]
    {
        use rustix::fs::{FlockOperation, flock};
        let unusable =
            |error: io::Error| SweepError(format!("cannot lock {}: {error}", folder.display()));
        let file = File::open(folder).map_err(unusable)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(SweepError(format!(
                "another sweep writes to {}; wait for its end, or name another folder with --out",
                folder.display()
            ))),
            Err(error) => Err(unusable(error.into())),
        }
    }
    // Windows locks no directory.
    #[cfg(not(unix))]
    {
        let _ = folder;
        Ok(None)
    }
}

/// Refuses a folder with symbolic links: a sweep would write to where they point.
fn refuse_links(folder: &Path) -> Result<(), SweepError> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries.filter_map(Result::ok) {
        if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            return Err(SweepError(format!(
                "{} is a symbolic link, to whose end the sweep would write; remove it, or name another \
                 folder with --out",
                entry.path().display()
            )));
        }
    }
    Ok(())
}

/// Creates a file in place of an earlier one, without following a link.
fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::options().write(true).create_new(true).open(path)
}

/// Reads the points that an earlier sweep has tried without finding anything.
fn read_tried(file: &Path) -> Result<Vec<Vec<FaultPoint>>, SweepError> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(SweepError(format!(
                "cannot read {}: {error}",
                file.display()
            )));
        }
    };
    let passed = text.lines().filter_map(|line| line.strip_prefix("passed "));
    passed.map(FaultPoint::parse_run).collect()
}

/// Adds points that have passed to a file.
fn write_passed(file: &Path, passed: &[String]) -> io::Result<()> {
    let mut file = File::options().create(true).append(true).open(file)?;
    let lines: String = passed
        .iter()
        .map(|point| format!("passed {point}\n"))
        .collect();
    file.write_all(lines.as_bytes())
}

/// A sweep that is being done.
struct Running<'a> {
    watch: Stopwatch,
    plan: Mutex<Plan>,
    changed: Condvar,
    failure: Mutex<Option<SweepError>>,
    tried: Mutex<File>,
    /// The points that have passed.
    passed: Mutex<Vec<String>>,
    /// The number of runs that were saved.
    saved: AtomicU32,
    of: &'a CommandSweep,
    runtime: &'a Handle,
    builder: &'a (dyn Fn() -> Builder + Sync),
    stop: &'a SweepStop,
    tell: &'a (dyn Fn(&str) + Sync),
}

impl Running<'_> {
    fn work(&self, job: usize) {
        loop {
            let mut plan = self.plan.lock();
            let run = loop {
                if self.failure.lock().is_some() || self.stop.is_asked() {
                    self.changed.notify_all();
                    return;
                }
                match plan.next(self.watch.elapsed()) {
                    Next::Run(run) => break run,
                    Next::Wait => self.changed.wait(&mut plan),
                    Next::Over => {
                        self.changed.notify_all();
                        return;
                    }
                }
            };
            drop(plan);
            match self.do_run(job, &run) {
                Ok(_) if self.stop.is_asked() => {}
                Ok(result) => self.ended(run, result),
                Err(error) => *self.failure.lock() = Some(error),
            }
            self.changed.notify_all();
        }
    }

    fn ended(&self, run: Run, result: RunResult) {
        let text = run.text();
        if !run.points.is_empty() {
            let how = match &result.verdict {
                // It is tried again when the sweep is resumed.
                RunVerdict::Passed if !result.is_reached => "unreached",
                RunVerdict::Passed => "passed",
                RunVerdict::Failed(_) => "failed",
                RunVerdict::Hung(_) => "hung",
            };
            if how == "passed" {
                self.passed.lock().push(text.clone());
            }
            // What cannot be noted is tried again when the sweep is resumed.
            let _ = writeln!(self.tried.lock(), "{how} {text}");
            if !matches!(result.verdict, RunVerdict::Passed) && !run.is_repeated() {
                (self.tell)(&printable(&format!("{how}: {text}")));
            }
        }
        let mut plan = self.plan.lock();
        let was_known = plan.nondeterminism().is_some();
        plan.ended(run, result);
        if let Some(difference) = plan.nondeterminism().filter(|_| !was_known) {
            (self.tell)(&printable(difference));
        }
    }

    fn do_run(&self, job: usize, run: &Run) -> Result<RunResult, SweepError> {
        let server = self.runtime.block_on(async {
            let server = (self.builder)().stories(Stories::Off).start().await;
            server.map_err(|error| SweepError(format!("cannot start a server: {error}")))
        })?;
        let armed = Armed::new(server.universe(), run, RunBy::Command)?;
        let order = run
            .goal
            .as_ref()
            .map(|goal| OrderedRun::begin(server.universe(), goal.clone()));
        let output = self.of.folder.join(format!("output-{job}"));
        let (mut verdict, seen) = self.run_command((&server, run, &armed), order, &output)?;
        if let Some(stopped @ (Stopped::Endless | Stopped::Crowded)) = &seen.stopped {
            verdict = RunVerdict::Hung(stopped.to_string());
        }
        let has_failed = verdict != RunVerdict::Passed;
        let story = has_failed.then(|| {
            let universe = server.universe();
            self.save((universe, armed.recording()), run, &verdict, &output)
        });
        let mut result = self.runtime.block_on(armed.end(verdict));
        result.story = story.flatten();
        result.order = seen;
        let _ = fs::remove_file(&output);
        let mut server = server;
        // Nothing is saved.
        let _ = self.runtime.block_on(server.stop_within(Duration::ZERO));
        Ok(result)
    }

    /// Runs the command with the address of a server, twice if it is killed in between.
    fn run_command(
        &self,
        (server, run, armed): (&Server, &Run, &Armed),
        order: Option<OrderedRun>,
        output: &Path,
    ) -> Result<(RunVerdict, OrderSeen), SweepError> {
        let failed = |what: &str, error: io::Error| SweepError(format!("cannot {what}: {error}"));
        let address = server.connect_string();
        let words = self.of.command.iter().map(|word| match word.to_str() {
            Some(text) => OsString::from(text.replace("{}", &address)),
            None => word.clone(),
        });
        let words: Vec<_> = words.collect();
        let Some((program, arguments)) = words.split_first() else {
            return Err(SweepError("no command".to_owned()));
        };
        let written = create(output).map_err(|error| failed("write the output", error))?;
        let start = |number: u32| {
            let outputs = written
                .try_clone()
                .and_then(|out| Ok((out, written.try_clone()?)));
            let (out, err) = outputs.map_err(|error| failed("write the output", error))?;
            let mut command = waiting(program, arguments);
            command
                .env("MINIKEEPER_CONNECT", &address)
                .env("MINIKEEPER_SWEEP_RUN", run.number.to_string())
                .env("MINIKEEPER_SWEEP_POINTS", run.text())
                .env("MINIKEEPER_SWEEP_START", number.to_string())
                .stdout(out)
                .stderr(err);
            let child = command.spawn();
            let mut child = child
                .map_err(|error| failed(&format!("run {}", program.to_string_lossy()), error))?;
            self.stop.began(child.id());
            if let Some(mut gate) = child.stdin.take() {
                // It may have been killed.
                let _ = gate.write_all(b"\n");
            }
            Ok::<_, SweepError>(child)
        };
        let mut child = start(1)?;
        let mut process = child.id();
        let is_over = AtomicBool::new(false);
        let (mut ended, seen, restarted) = thread::scope(|scope| {
            let serving = order.map(|run| {
                let programs = OrderedPrograms {
                    run,
                    programs: Some(Programs::Group(process)),
                    clients: self.of.clients,
                };
                let is_over = &is_over;
                // An order that cannot be followed tells nothing more.
                scope.spawn(move || programs.serve(is_over, || kill(process)))
            });
            let crash = armed.crash().map(|hits| {
                let (is_over, output) = (&is_over, &written);
                scope.spawn(move || crash(armed, &hits, process, output, is_over))
            });
            let ended = wait(&mut child, self.of.run_max, output);
            is_over.store(true, Ordering::Release);
            let seen =
                serving.map(|serving| serving.join().unwrap_or_else(|_| OrderSeen::broken()));
            let restarted = crash.and_then(|crash| crash.join().unwrap_or_default());
            (ended, seen.unwrap_or_default(), restarted)
        });
        match restarted {
            Some(Restarted::Command) => {
                self.stop.ended(process);
                child = start(2)?;
                process = child.id();
                ended = wait(&mut child, self.of.run_max, output);
            }
            // It is killed with the group.
            Some(Restarted::Process { mut again, killed }) => {
                let has_failed = !ended.as_ref().is_ok_and(CommandEnd::is_success);
                // The command has noticed, and ends: as a whole it is what has died.
                let has_noticed = has_failed && killed.elapsed() < NOTICING_MAX;
                if !has_failed {
                    ended = wait(&mut again, self.of.run_max, output);
                }
                kill(process);
                let _ = again.wait();
                if has_noticed {
                    self.stop.ended(process);
                    child = start(2)?;
                    process = child.id();
                    ended = wait(&mut child, self.of.run_max, output);
                }
            }
            None => {}
        }
        self.stop.ended(process);
        // What it has started and left behind must not use the next run's server.
        kill(process);
        let verdict = match ended.map_err(|error| failed("wait for the command", error))? {
            CommandEnd::Late => RunVerdict::Hung(format!(
                "it did not end within {} s\n{}",
                self.of.run_max.as_secs_f64(),
                last_lines(output)
            )),
            CommandEnd::TooMuch => RunVerdict::Failed(format!(
                "its output exceeds the limit of {OUTPUT_FILE_BYTES_MAX} bytes\n{}",
                last_lines(output)
            )),
            CommandEnd::Exited(status) if status.success() => RunVerdict::Passed,
            CommandEnd::Exited(status) => {
                RunVerdict::Failed(format!("{status}\n{}", last_lines(output)))
            }
        };
        Ok((verdict, seen))
    }

    /// Saves the story, the output and the recording of a failed run, the first of them. Returns the
    /// page.
    fn save(
        &self,
        (universe, recording): (&Universe, Option<Recording>),
        run: &Run,
        verdict: &RunVerdict,
        output: &Path,
    ) -> Option<String> {
        let (RunVerdict::Failed(message) | RunVerdict::Hung(message)) = verdict else {
            return None;
        };
        let new = u32::from(!run.is_repeated());
        if self.saved.fetch_add(new, Ordering::Relaxed) >= SAVED_MAX {
            return None;
        }
        let title = match &run.text()[..] {
            "" => "without a fault".to_owned(),
            points => points.to_owned(),
        };
        let story = universe.story().with_title(&title).with_failure(message);
        let page = story.save(&self.of.folder).ok()?;
        // A report is complete without them.
        let _ = fs::copy(output, page.with_extension("out"));
        if let Some(recording) = recording {
            let _ = recording.save(&page.with_extension("rec"));
        }
        Some(page.display().to_string())
    }
}

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CommandEnd {
    Exited(ExitStatus),
    /// It was killed because its time was over.
    Late,
    /// It was killed because it wrote too much.
    TooMuch,
}

impl CommandEnd {
    fn is_success(&self) -> bool {
        matches!(self, Self::Exited(status) if status.success())
    }
}

/// What is started again after it was killed.
#[derive(Debug)]
enum Restarted {
    /// The command with all of its processes.
    Command,
    /// One of the processes that it has started.
    Process { again: Child, killed: Stopwatch },
}

/// Kills the process whose request a fault has acted on, and starts it again, if several of the command are
/// connected. Otherwise kills the command.
fn crash(
    armed: &Armed,
    hits: &Hits,
    command: u32,
    output: &File,
    is_over: &AtomicBool,
) -> Option<Restarted> {
    while hits.until_blocking(1, OUTPUT_PAUSE).hits == 0 {
        if is_over.load(Ordering::Acquire) {
            return None;
        }
    }
    let one_of_several = || {
        let (ports, of_fault) = armed.ports(hits);
        let owners = Threads::of(Programs::Group(command))?.owning(&ports);
        let process = *owners.get(&of_fault?)?;
        let is_alone = owners.values().all(|owner| *owner == process);
        (!is_alone && process != command).then_some(process)
    };
    let again = one_of_several().and_then(|process| {
        let mut again = same_again(process, command, output)?;
        kill_one(process);
        again.spawn().ok()
    });
    Some(again.map_or_else(
        || {
            kill(command);
            armed.all_died();
            Restarted::Command
        },
        |again| Restarted::Process {
            again,
            killed: Stopwatch::start(),
        },
    ))
}

/// Returns the command that starts a process again: the same words, folder and environment.
///
/// Source: Linux, `proc(5)`.
#[cfg(unix)]
fn same_again(process: u32, group: u32, output: &File) -> Option<Command> {
    use std::os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        process::CommandExt as _,
    };
    let parts = |name: &str| {
        let bytes = fs::read(format!("/proc/{process}/{name}")).ok()?;
        let parts = bytes
            .split(|byte| *byte == 0)
            .filter(|part| !part.is_empty());
        Some(parts.map(<[u8]>::to_vec).collect::<Vec<_>>())
    };
    let mut words = parts("cmdline")?.into_iter().map(OsString::from_vec);
    let program = fs::read_link(format!("/proc/{process}/exe")).ok()?;
    let mut command = Command::new(program);
    command.arg0(words.next()?).args(words).env_clear();
    for variable in parts("environ")? {
        let equals = variable.iter().position(|byte| *byte == b'=')?;
        let (name, value) = variable.split_at(equals);
        command.env(OsStr::from_bytes(name), OsStr::from_bytes(&value[1..]));
    }
    command
        .env("MINIKEEPER_SWEEP_START", "2")
        .current_dir(fs::read_link(format!("/proc/{process}/cwd")).ok()?)
        .stdin(Stdio::null())
        .stdout(output.try_clone().ok()?)
        .stderr(output.try_clone().ok()?)
        .process_group(i32::try_from(group).ok()?);
    Some(command)
}

/// The system does not tell how a process was started.
#[cfg(not(unix))]
fn same_again(_: u32, _: u32, _: &File) -> Option<Command> {
    None
}

/// Waits until a child has ended, or kills it after this time, or when its output is too long.
fn wait(child: &mut Child, within: Duration, output: &Path) -> io::Result<CommandEnd> {
    let (give_up, over) = mpsc::sync_channel::<()>(1);
    let process = child.id();
    thread::scope(|scope| {
        let watchdog = scope.spawn(move || {
            let watch = Stopwatch::start();
            loop {
                let left = within.saturating_sub(watch.elapsed());
                let pause = left.min(OUTPUT_PAUSE);
                if over.recv_timeout(pause) != Err(mpsc::RecvTimeoutError::Timeout) {
                    return None;
                }
                let length = fs::metadata(output).map_or(0, |output| output.len());
                let why = if length > OUTPUT_FILE_BYTES_MAX {
                    CommandEnd::TooMuch
                } else if left <= pause {
                    CommandEnd::Late
                } else {
                    continue;
                };
                kill(process);
                return Some(why);
            }
        });
        let status = child.wait();
        drop(give_up);
        let killed = watchdog.join().unwrap_or(None);
        status.map(|status| killed.unwrap_or(CommandEnd::Exited(status)))
    })
}

/// Kills a command with everything that it has started.
#[cfg(unix)]
fn kill(process: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    if let Some(process) = process {
        // It may have ended.
        let _ = kill_process_group(process, Signal::KILL);
    }
}

/// Kills one process.
#[cfg(unix)]
fn kill_one(process: u32) {
    use rustix::process::{Pid, Signal, kill_process};
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    if let Some(process) = process {
        // It may have ended.
        let _ = kill_process(process, Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill_one(process: u32) {
    kill(process);
}

/// Kills a command with everything that it has started.
#[cfg(windows)]
fn kill(process: u32) {
    // It may have ended.
    let _ = Command::new("taskkill")
        .args(["/F", "/T", "/PID", &process.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// Returns the last lines of a command's output, which may be of any length.
fn last_lines(output: &Path) -> String {
    let read = || {
        let mut file = File::open(output)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(OUTPUT_BYTES_MAX)))?;
        let mut bytes = Vec::new();
        file.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes)?;
        io::Result::Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].join("\n")
}
