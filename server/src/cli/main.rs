//! The program: arguments, logs, signals, exit code. Everything else is in the library.

mod address;
mod args;
mod clock;
#[cfg(feature = "completions")]
mod completions;
mod ctl;
mod environment;
mod healthcheck;
mod help;
mod properties;
mod replay;
#[cfg(feature = "completions")]
#[path = "shell/args.rs"]
#[allow(dead_code, reason = "only the description is needed here")]
mod shell_args;
mod sibling;
mod sweep;
mod system;
mod token;
mod zoo_cfg;

use std::{
    env, fs,
    io::{self, Write as _},
    net::{IpAddr, SocketAddr},
    path::Path,
    process::ExitCode,
    thread,
    time::Duration,
};

use clap::{
    ArgMatches, CommandFactory as _, FromArgMatches as _,
    error::{ContextKind, ContextValue},
    parser::ValueSource,
};
use minikeeper::{Config, Server, StartError, Tree, jaas_users};
use minikeeper_core::files;
use minikeeper_shell::{in_one_line, print_on_stderr, without_controls};
use tokio::{
    runtime::{Handle, Runtime},
    sync::oneshot,
};

use crate::{
    args::{Args, ExportArgs, ServeArgs, Subcommand},
    system::StopSignals,
};

/// The maximum wait for connections to end when the program stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    if env::args_os()
        .nth(1)
        .is_some_and(|first| first == sweep::SUPERVISOR)
    {
        sweep::run_supervisor();
        return ExitCode::SUCCESS;
    }
    let args: Vec<_> = env::args_os().collect();
    let command = help::complete_for(Args::command(), &args);
    let arguments = match environment::add_options(&command, args) {
        Ok(arguments) => arguments,
        Err(text) => return ExitFailure { text, exit_code: 2 }.report(),
    };
    for warning in &arguments.warnings {
        print_on_stderr(&format!("minikeeper: warning: {}", in_one_line(warning)));
    }
    let matches = command.try_get_matches_from(arguments.args);
    let matches =
        matches.unwrap_or_else(|error| exit(nearest_suggestion(error), &arguments.variables));
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let outcome = match args.command {
        Some(Subcommand::Healthcheck(args)) => healthcheck::run(&args).map_err(ExitFailure::from),
        Some(Subcommand::Ctl(ctl)) => ctl.run().map_err(ExitFailure::from),
        Some(Subcommand::Advise(advise)) => advise.run().map_err(ExitFailure::from),
        Some(Subcommand::Cli(cli)) => sibling::run_shell(&cli.args).map_err(ExitFailure::from),
        Some(Subcommand::Export(args)) => export(&args),
        Some(Subcommand::Sweep(args)) => args.0.run(),
        Some(Subcommand::Replay(args)) => args.0.run(),
        #[cfg(feature = "completions")]
        Some(Subcommand::Completions(args)) => {
            completions::print(args.shell).map_err(ExitFailure::from)
        }
        #[cfg(feature = "completions")]
        Some(Subcommand::Man(args)) => {
            completions::write_pages(&args.dir).map_err(ExitFailure::from)
        }
        Some(Subcommand::Serve(serve_args)) => {
            let matches = matches.subcommand_matches("serve").unwrap_or(&matches);
            run(&serve_args.0, matches)
        }
        None => run(&args.serve, &matches),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Prints the help, or why the arguments are invalid, and exits. Lists the variables that were read, because the error
/// names only the options.
fn exit(error: clap::Error, variables: &[String]) -> ! {
    if !error.use_stderr() || variables.is_empty() {
        error.exit();
    }
    // Nothing can be reported if stderr is closed.
    let _ = error.print();
    print_on_stderr(&format!(
        "\nset in the environment: {}",
        variables.join(", ")
    ));
    std::process::exit(error.exit_code());
}

/// Keeps the nearest of the suggested subcommands: for `until-idel`, clap suggests each `until-`.
fn nearest_suggestion(mut error: clap::Error) -> clap::Error {
    // The last one is the nearest.
    if let Some(ContextValue::Strings(names)) = error.get(ContextKind::SuggestedSubcommand)
        && let Some(nearest) = names.last().cloned()
    {
        let nearest = ContextValue::Strings(vec![nearest]);
        error.insert(ContextKind::SuggestedSubcommand, nearest);
    }
    error
}

/// The error with which the program exits.
struct ExitFailure {
    text: String,
    exit_code: u8,
}

impl ExitFailure {
    fn report(&self) -> ExitCode {
        // It may quote what a server answered or a file contains.
        print_on_stderr(&format!("minikeeper: {}", without_controls(&self.text)));
        ExitCode::from(self.exit_code)
    }
}

/// Exit code 1: could not run.
impl From<String> for ExitFailure {
    fn from(text: String) -> Self {
        Self { text, exit_code: 1 }
    }
}

impl From<StartError> for ExitFailure {
    fn from(error: StartError) -> Self {
        let exit_code = if matches!(error, StartError::Config(_)) {
            2
        } else {
            1
        };
        Self {
            text: explain(&error),
            exit_code,
        }
    }
}

fn run(args: &ServeArgs, matches: &ArgMatches) -> Result<(), ExitFailure> {
    if let Some(filter) = &args.log {
        use tracing_subscriber::layer::SubscriberExt as _;
        use tracing_subscriber::{field::MakeExt as _, fmt::format};
        // One event is one line, whatever clients have named things.
        let fields = format::debug_fn(|out, field, value| {
            let value = in_one_line(&format!("{value:?}"));
            match field.name() {
                "message" => out.write_str(&value),
                name => write!(out, "{name}={value}"),
            }
        });
        let format = tracing_subscriber::fmt::layer()
            .fmt_fields(fields.delimited(" "))
            .with_writer(io::stderr)
            .with_ansi(false);
        let subscriber = tracing_subscriber::registry()
            .with(format)
            .with(filter.clone());
        tracing::subscriber::set_global_default(subscriber)
            .map_err(|error| format!("cannot start the log: {error}"))?;
    }
    let mut config = config(args, matches)?;
    system::raise_open_files_limit();
    let runtime = runtime()?;
    config.connection_runtimes = (1..args.workers)
        .map(connection_runtime)
        .collect::<Result<_, _>>()?;
    runtime.block_on(serve(args, config))
}

/// Creates a runtime that runs on one thread. Unlike a runtime with several threads it neither moves
/// tasks between them nor has to look for any.
fn runtime() -> Result<Runtime, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))
}

/// Starts a further thread that serves connections, until the program exits.
fn connection_runtime(number: u16) -> Result<Handle, String> {
    let runtime = runtime()?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name(format!("worker-{number}"))
        .spawn(move || runtime.block_on(std::future::pending::<()>()))
        .map_err(|error| format!("cannot start thread {number}: {error}"))?;
    Ok(handle)
}

async fn serve(args: &ServeArgs, config: Config) -> Result<(), ExitFailure> {
    let mut signals =
        StopSignals::listen().map_err(|error| format!("cannot listen for signals: {error}"))?;
    let mut stdin_ended = args.exit_on_stdin_eof.then(watch_stdin).transpose()?;
    let control_is_default = !config.control.allows_directories;
    let has_seed = !config.seed.is_empty();
    if let Some(path) = &args.address_file {
        // Its address would be taken for that of this server. If it cannot be deleted, it cannot be replaced either.
        let _ = fs::remove_file(path);
    }
    let mut server = Server::start(config).await?;
    if let Some(path) = &args.address_file {
        write_address(path, &server.connect_string())
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    announce(&server, control_is_default);
    if has_seed {
        announce_seed(&server);
    }
    let mut recording = None;
    // Turns run on this task's runtime too, so this loop only waits for events that are rare.
    let outcome = loop {
        tokio::select! {
            () = signals.next() => break Ok(()),
            () = ended(stdin_ended.as_mut()) => break Ok(()),
            failure = server.closed() => break Err(chain(&failure).into()),
            error = server.save_failed() => {
                let error = chain(&error);
                print_on_stderr(&format!("minikeeper: {error}; continues to serve, and tries again"));
            }
            end = server.recording_ended(), if recording.is_none() => {
                let why = &end.reason;
                print_on_stderr(&format!("minikeeper: the recording has ended: {why}; continues to serve"));
                recording = Some(end);
            }
        }
    };
    let saved = server.stop_within(STOP_TIMEOUT).await;
    let outcome = outcome.and_then(|()| saved.map_err(|error| chain(&error).into()));
    if recording.is_none() {
        // Its last bytes may have failed.
        recording = tokio::select! {
            biased;
            end = server.recording_ended() => Some(end),
            () = std::future::ready(()) => None,
        };
    }
    let outcome = outcome.and_then(|()| match recording {
        Some(end) if end.is_failure => {
            Err(format!("the recording is not whole: {}", end.reason).into())
        }
        _ => Ok(()),
    });
    if outcome.is_ok() {
        // Exits without freeing millions of znodes one by one.
        std::process::exit(0);
    }
    outcome
}

/// Reads and discards stdin until it ends, on a separate thread: a runtime that shuts down waits for
/// the reads it has started.
fn watch_stdin() -> Result<oneshot::Receiver<()>, ExitFailure> {
    let (sender, receiver) = oneshot::channel();
    thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            // A read error counts as the end.
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            let _ = sender.send(());
        })
        .map_err(|error| format!("cannot watch stdin: {error}"))?;
    Ok(receiver)
}

/// Waits for the end of stdin; forever if no thread watches it.
async fn ended(stdin: Option<&mut oneshot::Receiver<()>>) {
    match stdin {
        Some(receiver) => drop(receiver.await),
        None => std::future::pending().await,
    }
}

/// Returns the settings of the options, and of the file of `--config` where there is no option. Lists
/// the keys without effect on stderr, whether there is a log or not.
fn config(args: &ServeArgs, matches: &ArgMatches) -> Result<Config, ExitFailure> {
    let wrong = |text| ExitFailure { text, exit_code: 2 };
    let cannot_read =
        |path: &Path, error| wrong(format!("cannot read {}: {error}", path.display()));
    let mut config = args.config().map_err(wrong)?;
    if let Some(path) = &args.config {
        let text = files::read(path, files::SETTINGS_BYTES_MAX)
            .map_err(|error| cannot_read(path, error))?;
        let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let ignored = zoo_cfg::apply(&text, &mut config, is_given)
            .map_err(|error| wrong(format!("{}:{error}", path.display())))?;
        for ignored in ignored {
            let path = path.display();
            print_on_stderr(&format!("minikeeper: warning: {path}:{ignored}"));
        }
    }
    args.apply_late_defaults(&mut config);
    if let Some(path) = &args.seed {
        config.seed = seed(path).map_err(wrong)?;
    }
    if let Some(path) = &args.jaas_config {
        let text = files::read_to_string(path, files::SETTINGS_BYTES_MAX)
            .map_err(|error| cannot_read(path, error))?;
        let users = jaas_users(&text, "Server")
            .map_err(|error| wrong(format!("{}: {error}", path.display())))?;
        // Without that section, ZooKeeper starts without SASL.
        let users = users.unwrap_or_default().into_iter();
        config.sasl_users = users
            .map(|(name, password)| (name, password.into()))
            .collect();
    }
    Ok(config)
}

/// Reads the tree in a file, or in the files of a directory.
fn seed(path: &Path) -> Result<Tree, String> {
    if !path.is_dir() {
        return seed_file(path);
    }
    let cannot_read = |error: io::Error| format!("cannot read {}: {error}", path.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(cannot_read)? {
        let file = entry.map_err(cannot_read)?.path();
        if is_seed(&file) {
            // A sort of the standard library would be several kB for these few names.
            let at = files.partition_point(|it| *it < file);
            files.insert(at, file);
        }
    }
    let mut tree = Tree::new();
    for file in files {
        for (path, znode) in seed_file(&file)?.iter() {
            tree.insert(path, znode.clone());
        }
    }
    Ok(tree)
}

/// Returns whether a file in a directory of `--seed` is read, by its name. Hidden ones are copies of editors and the
/// like.
fn is_seed(file: &Path) -> bool {
    let is_hidden = file
        .file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let extension = file.extension().and_then(|it| it.to_str());
    !is_hidden && matches!(extension, Some("yaml" | "yml" | "json"))
}

fn seed_file(path: &Path) -> Result<Tree, String> {
    let text = files::read_to_string(path, files::SEED_BYTES_MAX)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let tree = if path.extension().is_some_and(|it| it == "json") {
        Tree::from_json(&text)
    } else {
        Tree::from_yaml(&text)
    };
    tree.map_err(|error| format!("{}: {error}", path.display()))
}

/// Prints where the server listens. The first line is stable: `minikeeper VERSION listening on
/// ADDRESS`.
fn announce(server: &Server, control_is_default: bool) {
    let (address, version) = (server.connect_string(), env!("CARGO_PKG_VERSION"));
    let listening = listening(server.addr().ip(), &address);
    // The reader may have closed stdout; that is no reason to stop.
    let _ = writeln!(
        io::stdout(),
        "minikeeper {version} listening on {listening}"
    );
    #[cfg(feature = "tls")]
    let is_plain = server.secure_addr() != Some(server.addr());
    #[cfg(not(feature = "tls"))]
    let is_plain = true;
    // The examples are for clients without TLS.
    if is_plain {
        let from = if server.addr().ip().is_unspecified() {
            " from this machine"
        } else {
            ""
        };
        let _ = writeln!(
            io::stdout(),
            "connect{from} with\n  \
         Java, Curator  CuratorFrameworkFactory.newClient(\"{address}\", new RetryOneTime(100))\n  \
         Python, kazoo  KazooClient(hosts=\"{address}\")\n  \
         shell          minikeeper cli -server {address}"
        );
    }
    if let Some(address) = server.control_addr() {
        let hint = if control_is_default {
            "; --no-control turns it off"
        } else {
            ""
        };
        let _ = writeln!(
            io::stdout(),
            "control on http://{address}/v1/openapi.json{hint}\npage on http://{address}/"
        );
    }
    #[cfg(feature = "tls")]
    if let Some(address) = server.secure_addr() {
        let _ = writeln!(io::stdout(), "clients over TLS on {address}");
    }
}

/// Returns where each server listens: the connect string, with the addresses that the servers listen on in place of
/// one that reaches them.
fn listening(ip: IpAddr, connect_string: &str) -> String {
    let mut text = String::new();
    for address in connect_string.split(',') {
        let comma = if text.is_empty() { "" } else { "," };
        text += comma;
        match address.parse::<SocketAddr>() {
            Ok(address) => text += &SocketAddr::new(ip, address.port()).to_string(),
            Err(_) => text += address,
        }
    }
    text
}

/// Prints what the start did with `--seed`.
fn announce_seed(server: &Server) {
    let _ = match server.seeded() {
        Some(seeded) => writeln!(
            io::stdout(),
            "seeded: {} created, {} changed",
            seeded.created,
            seeded.changed
        ),
        None => writeln!(
            io::stdout(),
            "not seeded: the data directory has a saved state; --seed-always applies --seed to it"
        ),
    };
}

/// Writes the address to a temporary file and renames it, so that a reader sees all of it or nothing.
fn write_address(path: &Path, address: &str) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    fs::write(&beside, format!("{address}\n"))?;
    fs::rename(&beside, path)
}

/// Returns the text of an error and its causes, joined by colons.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn explain(error: &StartError) -> String {
    let mut text = chain(error);
    if let StartError::Listen { source, .. } = error
        && source.kind() == io::ErrorKind::AddrInUse
    {
        text.push_str("; another server may be running: try --port 0 for any free port");
    }
    text
}

fn export(args: &ExportArgs) -> Result<(), ExitFailure> {
    let state = args.source().read().map_err(|error| chain(&error))?;
    let zxid = state.export_data(&args.to).map_err(|error| chain(&error))?;
    let _ = writeln!(
        io::stdout(),
        "{} has everything up to zxid {zxid}",
        args.to.display()
    );
    Ok(())
}
