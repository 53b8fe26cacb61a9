//! The command line.

use std::{
    ffi::OsString,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches, Parser, parser::ValueSource};
use minikeeper::{Config, ControlConfig, DataSource, DigestAlgorithm, Secret, TxnLog};
use minikeeper_core::config::settings::{self, Form, Setting, Unit, Value};
use tracing_subscriber::filter::Targets;

use crate::{
    ctl::{AdviseArgs, CtlArgs},
    replay::ReplayArgs,
    sweep::SweepArgs,
    token,
};

/// An in-memory server for tests that speaks the ZooKeeper wire protocol
#[derive(Parser, Debug)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    after_long_help = "Examples:
  minikeeper                                serve on 127.0.0.1:2181
  minikeeper --port 0 --address-file addr   serve on any free port, written to the file addr
  minikeeper --tick-time 200                let sessions be as short as 400 ms
  minikeeper --config zoo.cfg --port 0      use the settings of a zoo.cfg, except its port
  minikeeper --data-dir data                keep the state in the directory data between runs
  minikeeper --seed tree.yaml               start with the znodes in a file
  minikeeper --import /var/lib/zookeeper    start with a copy of a ZooKeeper server's data
  minikeeper --log info                     log sessions as they open and close
  minikeeper healthcheck 127.0.0.1:2181     exit with 0 if a server answers there
  minikeeper ctl sessions                   list the sessions of a server on this machine
  minikeeper sweep -- pytest                run the tests once for every fault
  minikeeper --record run.rec               record what clients send, for `minikeeper replay`
  minikeeper advise                         find known mistakes of its clients
  minikeeper cli -server 127.0.0.1:2181     open a ZooKeeper shell
  minikeeper --no-control                   refuse `minikeeper ctl` and HTTP requests

An option of the server can also be set in the environment: MINIKEEPER_TICK_TIME=200 stands for
--tick-time 200, MINIKEEPER_CONTROL=true for --control. The command line overrides it. A variable
MINIKEEPER_... that stands for no option is reported on stderr.

Exit codes: 0 done, 1 could not run, 2 wrong usage."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Subcommand>,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

#[derive(clap::Subcommand, Debug)]
pub(crate) enum Subcommand {
    /// Serve until interrupted (the default)
    #[command(after_help = "Example:
  minikeeper serve --port 0 --address-file addr")]
    Serve(Deferred<ServeArgs>),
    /// Copy a data directory to a new one with a single snapshot
    ///
    /// Reads directories, logs included, of ZooKeeper 3.4 to 3.9 and of minikeeper; writes one that ZooKeeper 3.8
    /// and 3.9 and minikeeper can start from. The first directory is only read.
    #[command(after_help = "Example:
  minikeeper export /var/lib/zookeeper copy")]
    Export(ExportArgs),
    /// Check that a server answers
    ///
    /// Sends the four-letter word ruok. Exit code 0 if the answer is imok, 1 otherwise.
    #[command(after_help = "Examples:
  minikeeper healthcheck 127.0.0.1:2181
  minikeeper healthcheck --wait 10 --address-file addr")]
    Healthcheck(HealthcheckArgs),
    /// Run a command once for every fault, and report which break it
    ///
    /// Tries every fault at every request. Starts a server for each run and hands its address to the command in MINIKEEPER_CONNECT, and
    /// in place of {} in its arguments. The command passes if its exit code is 0. The first run has
    /// no fault: its requests and events are the places where something can go wrong.
    #[command(after_help = "Examples:
  minikeeper sweep -- pytest tests/test_lock.py
  minikeeper sweep --time 60 --jobs 2 -- ./worker --zookeeper {}
  minikeeper sweep --only 'reply-lost:1:create:1:/locks/*' -- ./worker --zookeeper {}

Exit codes: 0 clean: the command passes with every fault, 1 failed: it does not, or the sweep could not
run, 2 wrong usage, 3 incomplete: not every fault was tried.")]
    Sweep(Deferred<SweepArgs>),
    /// Play a recording again, and show the first difference
    ///
    /// Gives a server in this process what the recorded one was given, in the same order and at the
    /// same times, faults included. With --against, sends it to another server, such as a ZooKeeper:
    /// a minikeeper's clock is moved as the recording says, any other server is waited for.
    #[command(after_help = "Examples:
  minikeeper --record run.rec
  minikeeper replay run.rec
  minikeeper replay run.rec --against 127.0.0.1:2181

Exit codes: 0 equal, 1 different or could not run, 2 wrong usage.")]
    Replay(Deferred<ReplayArgs>),
    /// Control a running server: clock, sessions, data, faults
    Ctl(CtlArgs),
    /// Find known mistakes of clients in a journal
    ///
    /// Prints what, why it matters, and what to do. Reads the journal of a running server, or a file.
    #[command(after_help = "Examples:
  minikeeper advise
  minikeeper advise --server 127.0.0.1:4711 --ignore polling --ignore '/config/**'
  minikeeper advise minikeeper-stories/test_lock.json")]
    Advise(AdviseArgs),
    /// Run a ZooKeeper shell like zkCli.sh
    ///
    /// It has its commands and its output. Starts the program minikeeper-cli with these arguments.
    #[command(disable_help_flag = true)]
    Cli(CliArgs),
    /// Print a completion script for a shell
    #[cfg(feature = "completions")]
    #[command(after_help = "Example:
  minikeeper completions bash >/etc/bash_completion.d/minikeeper")]
    Completions(CompletionsArgs),
    /// Write the manual pages, one for each subcommand
    #[cfg(feature = "completions")]
    #[command(after_help = "Example:
  minikeeper man /usr/local/share/man/man1")]
    Man(ManArgs),
}

/// The options of a subcommand that has many. Deferred: clap builds them only if the subcommand is given, because the
/// memory of what a server builds at its start, the code included, stays resident. A doc comment on `T` would replace the
/// subcommand's help.
#[derive(Debug)]
pub(crate) struct Deferred<T>(pub(crate) Box<T>);

impl<T: clap::Args> clap::Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(T::augment_args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(|args| Self(Box::new(args)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

#[derive(clap::Args, Debug)]
pub(crate) struct HealthcheckArgs {
    /// The server's address, or several with commas, of which one must be healthy
    #[arg(default_value = "127.0.0.1:2181", value_name = "ADDR")]
    pub(crate) address: String,
    /// Take the address from this file, which a server with the same option writes
    #[arg(long, value_name = "FILE", conflicts_with = "address")]
    pub(crate) address_file: Option<PathBuf>,
    /// Ask again until a server is healthy, for at most N seconds
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) wait: u32,
    /// Ask over TLS, and trust certificates signed by one of these; a PEM file
    ///
    /// The certificate must be for the host in ADDR.
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Client certificate for servers that ask for one, a PEM file
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", requires_all = ["tls_ca", "tls_key"])]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of that certificate, a PEM file
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct CliArgs {
    /// Options and command of the shell
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARG"
    )]
    pub(crate) args: Vec<OsString>,
}

#[cfg(feature = "completions")]
#[derive(clap::Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(feature = "completions")]
#[derive(clap::Args, Debug)]
pub(crate) struct ManArgs {
    /// The directory to write to
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ExportArgs {
    /// The directory to read
    #[arg(value_name = "FROM")]
    from: PathBuf,
    /// The directory to write; must be empty or not exist
    #[arg(value_name = "TO")]
    pub(crate) to: PathBuf,
    /// Directory of the transaction logs, if they are elsewhere (dataLogDir)
    #[arg(long, value_name = "DIR")]
    import_logs: Option<PathBuf>,
    /// Read logs without a snapshot, as ZooKeeper before 3.5.3 left them
    #[arg(long)]
    trust_empty_snapshot: bool,
    /// Accept damaged or missing files, and omit what is unreadable
    #[arg(long)]
    trust_damaged_data: bool,
}

impl ExportArgs {
    pub(crate) fn source(&self) -> DataSource {
        data_source(
            &self.from,
            self.import_logs.as_ref(),
            self.trust_empty_snapshot,
            self.trust_damaged_data,
        )
    }
}

fn data_source(
    dir: &PathBuf,
    logs: Option<&PathBuf>,
    trusts_empty: bool,
    trusts_damaged: bool,
) -> DataSource {
    let mut source = DataSource::new(dir);
    if let Some(logs) = logs {
        source = source.log_dir(logs);
    }
    if trusts_empty {
        source = source.trust_empty_snapshot();
    }
    if trusts_damaged {
        source = source.trust_damaged_data();
    }
    source
}

#[derive(clap::Args, Debug)]
pub(crate) struct ServeArgs {
    /// Read settings from a zoo.cfg; options override them
    ///
    /// Keys that have no effect on a single server in memory are listed on stderr.
    #[arg(long, help_heading = "Server", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Read SASL users from the section Server of a JAAS login configuration
    #[arg(long, help_heading = "Access", value_name = "FILE")]
    pub(crate) jaas_config: Option<PathBuf>,
    /// Address to listen on
    #[arg(
        long,
        help_heading = "Server",
        value_name = "IP",
        default_value = "127.0.0.1"
    )]
    listen: IpAddr,
    /// Port to listen on; 0 takes any free one
    #[arg(long, help_heading = "Server", default_value_t = 2181)]
    port: u16,
    /// Write the connect string, with the actual port, to this file once the server listens
    ///
    /// Appears in one step. A file of an earlier run is deleted before the start.
    #[arg(long, help_heading = "Server", value_name = "FILE")]
    pub(crate) address_file: Option<PathBuf>,
    /// Add the znodes in this file to the tree at the start; YAML, or JSON (.json)
    ///
    /// Of a directory, its files .yaml, .yml and .json by name; a later file overrides an earlier one. A
    /// --data-dir with a saved state is not seeded, see --seed-always.
    #[arg(long, help_heading = "Data", value_name = "FILE")]
    pub(crate) seed: Option<PathBuf>,
    /// Exit when stdin closes, so that the server ends with its parent process
    #[arg(long, help_heading = "Server")]
    pub(crate) exit_on_stdin_eof: bool,
    /// Start with a copy of the state in a ZooKeeper data directory
    ///
    /// Reads the newest snapshot, compressed or not, and the transaction logs after it, of
    /// versions 3.4 to 3.9. If --data-dir is given too, it must be empty.
    #[arg(long, help_heading = "Data", value_name = "DIR")]
    import: Option<PathBuf>,
    /// Directory of the imported transaction logs, if they are elsewhere (dataLogDir)
    #[arg(long, help_heading = "Data", value_name = "DIR", requires = "import")]
    import_logs: Option<PathBuf>,
    /// Import logs without a snapshot, as ZooKeeper before 3.5.3 left them
    #[arg(long, help_heading = "Data", requires = "import")]
    trust_empty_snapshot: bool,
    /// Accept a --data-dir or --import with damaged or missing files
    ///
    /// The changes that cannot be read are lost, and those after them. Without this option such a
    /// directory is refused. Files in --data-dir that were not read are renamed to unread.NAME.
    #[arg(long, help_heading = "Data")]
    trust_damaged_data: bool,
    /// Which changes since the last save survive a crash, in a transaction log
    #[arg(
        long,
        help_heading = "Data",
        value_name = "WHAT",
        value_enum,
        default_value_t = LogChanges::Off,
        requires = "data_dir"
    )]
    txn_log: LogChanges,
    /// When silent sessions end
    ///
    /// With --config the default is `tick`.
    #[arg(long, help_heading = "Sessions", value_name = "WHEN", value_enum, default_value_t = Expiry::Exact)]
    expiry: Expiry,
    /// Log to stderr: error, warn, info, debug, trace, or target=level pairs
    #[arg(long, help_heading = "Diagnostics", value_name = "FILTER")]
    pub(crate) log: Option<Targets>,
    /// Number of threads that serve, 1 to 256; one is fastest on few cores
    #[arg(
        long,
        help_heading = "Server",
        value_name = "N",
        default_value = "1",
        value_parser = clap::value_parser!(u16).range(1..=256)
    )]
    pub(crate) workers: u16,
    #[command(flatten)]
    control: ControlArgs,
    #[command(flatten)]
    access: AccessArgs,
    #[cfg(feature = "tls")]
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    settings: SettingArgs,
}

/// When silent sessions end.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Expiry {
    /// Exactly after their timeout.
    Exact,
    /// At the first tick after their timeout, as in ZooKeeper.
    Tick,
}

/// Which changes since the last save survive a crash.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum LogChanges {
    /// None.
    Off,
    /// All with a reply, if the process is killed.
    Write,
    /// All with a reply, even if the machine loses power; as slow as the disk.
    Sync,
}

impl From<LogChanges> for TxnLog {
    fn from(what: LogChanges) -> Self {
        match what {
            LogChanges::Off => Self::Off,
            LogChanges::Write => Self::Write,
            LogChanges::Sync => Self::Sync,
        }
    }
}

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Control")]
struct ControlArgs {
    /// Answer HTTP on the client port, from this machine; `minikeeper ctl` needs it
    ///
    /// On by default if the server listens on a loopback address, without --control-listen. Any user
    /// of this machine can then read and change everything, whatever the access lists say. Only this
    /// option, or a token, permits the verbs export_data and import_data, which write and read
    /// directories.
    #[arg(long)]
    control: bool,
    /// Do not answer HTTP
    #[arg(
        long,
        conflicts_with_all = ["control", "control_listen", "control_token", "control_token_file"]
    )]
    no_control: bool,
    /// Answer HTTP on a separate port, also while the server is down
    #[arg(long, value_name = "IP:PORT")]
    control_listen: Option<SocketAddr>,
    /// Answer HTTP requests that carry this token, from any machine
    ///
    /// Other users of this machine can read it in the process list. --control-token-file, or the variable,
    /// keeps it secret. The variable alone does not enable control.
    #[arg(
        long,
        value_name = "TOKEN",
        conflicts_with = "control_token_file",
        allow_hyphen_values = true
    )]
    control_token: Option<String>,
    /// Like --control-token, with the token in a file
    #[arg(long, value_name = "FILE")]
    control_token_file: Option<PathBuf>,
}

impl ControlArgs {
    /// # Errors
    /// When the file has no token.
    fn config(&self) -> Result<ControlConfig, String> {
        let mut control = ControlConfig::default();
        let token = match &self.control_token_file {
            None => self.control_token.clone().map(Secret::from),
            Some(file) => Some(token::read(file)?),
        };
        control.listen = self.control_listen;
        control.is_enabled = self.control || token.is_some() && control.listen.is_none();
        let is_on = control.is_on();
        control.token = token.or_else(|| token::of_environment().filter(|_| is_on));
        Ok(control)
    }

    /// Serves control on the client port if no option decides and only this machine reaches the
    /// server. Must be called once the addresses are final.
    fn enable_on_loopback(&self, config: &mut Config) {
        let is_decided =
            self.no_control || config.control.is_enabled || config.control.listen.is_some();
        if is_decided || !is_local(config) {
            return;
        }
        config.control.is_enabled = true;
        config.control.allows_directories = false;
        config.control.token = token::of_environment();
    }
}

/// Returns whether only clients on this machine reach the server, on a port without TLS.
fn is_local(config: &Config) -> bool {
    #[cfg(feature = "tls")]
    if config.secure_only || (config.secure_listen).is_some_and(|at| !at.ip().is_loopback()) {
        return false;
    }
    config.listen.ip().is_loopback()
}

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Access")]
struct AccessArgs {
    /// Hash algorithm of digest identities, as Java names it: SHA1, SHA-256, SHA-512, SHA3-256, ...
    #[arg(long, value_name = "NAME", default_value = "SHA1")]
    digest_alg: DigestAlgorithm,
    /// SASL user who may do everything; may be given several times
    #[arg(long, value_name = "USER")]
    sasl_super_user: Vec<String>,
}

#[cfg(feature = "tls")]
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "TLS")]
struct TlsArgs {
    /// Port for clients over TLS, in addition to --port; 0 takes any free one
    #[arg(long, value_name = "PORT")]
    secure_port: Option<u16>,
    /// Serve clients only over TLS: do not listen on --port
    #[arg(long, conflicts_with = "port")]
    no_plain_port: bool,
}

impl ServeArgs {
    fn import_source(&self) -> Option<DataSource> {
        let dir = self.import.as_ref()?;
        Some(data_source(
            dir,
            self.import_logs.as_ref(),
            self.trust_empty_snapshot,
            self.trust_damaged_data,
        ))
    }

    /// Applies the defaults that depend on the final addresses: control, and the journal, which only control and a
    /// recording can read.
    pub(crate) fn apply_late_defaults(&self, config: &mut Config) {
        self.control.enable_on_loopback(config);
        if config.journal_bytes.is_none() && !config.control.is_on() && config.record.is_none() {
            config.journal_bytes = Some(0);
        }
    }

    /// # Errors
    /// When the options are not valid together.
    pub(crate) fn config(&self) -> Result<Config, String> {
        let access = &self.access;
        let mut config = Config {
            control: self.control.config()?,
            listen: SocketAddr::new(self.listen, self.port),
            import: self.import_source(),
            trust_damaged_data: self.trust_damaged_data,
            txn_log: self.txn_log.into(),
            rounds_expiry: self.expiry == Expiry::Tick,
            digest_algorithm: access.digest_alg,
            sasl_super_users: access.sasl_super_user.clone(),
            #[cfg(feature = "tls")]
            secure_listen: (self.tls.secure_port).map(|port| SocketAddr::new(self.listen, port)),
            #[cfg(feature = "tls")]
            secure_only: self.tls.no_plain_port,
            ..Config::default()
        };
        for (setting, value) in &self.settings.0 {
            setting.set(&mut config, value.clone());
        }
        Ok(config)
    }
}

/// The options given that are in the table of settings.
#[derive(Clone, Debug, Default)]
struct SettingArgs(Vec<(&'static Setting, Value)>);

impl clap::Args for SettingArgs {
    fn augment_args(command: Command) -> Command {
        command.args(settings::settings().map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Self::default();
        given.update_from_arg_matches(matches)?;
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in settings::settings() {
            let id = setting.name;
            if matches.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            let value = match setting.spec.form {
                Form::Number { .. } => matches.get_one(id).copied().map(Value::Number),
                Form::Switch(is_on) => Some(Value::Switch(is_on)),
                Form::Text(_) | Form::Secret(_) => matches.get_one(id).cloned().map(Value::Text),
                Form::File(_) => matches.get_one(id).cloned().map(Value::File),
                Form::List => {
                    let texts = matches.get_many::<String>(id);
                    texts.map(|texts| Value::List(texts.cloned().collect()))
                }
            };
            self.0.extend(value.map(|value| (setting, value)));
        }
        Ok(())
    }
}

/// Creates the option of a setting. Its id in clap is the name of the field.
fn option(setting: &'static Setting) -> Arg {
    let spec = &setting.spec;
    let help = setting.help();
    let mut option = Arg::new(setting.name)
        .long(spec.option)
        .help_heading(spec.heading)
        .help(&help);
    if let Some((key, _)) = spec.key {
        option = option.long_help(format!("{help}\n\nzoo.cfg: {key}"));
    }
    if let Some(needs) = spec.needs {
        option = option.requires(needs);
    }
    option = match spec.form {
        Form::Switch(_) => option.action(ArgAction::SetTrue),
        Form::Text(name) => option.value_name(name),
        Form::Secret(name) => option.value_name(name).allow_hyphen_values(true),
        Form::File(name) => option
            .value_name(name)
            .value_parser(clap::value_parser!(PathBuf)),
        Form::List => option
            .value_name("LIST")
            .value_delimiter(',')
            .action(ArgAction::Append),
        Form::Number { unit, .. } => option
            .value_name(match unit {
                Unit::Count => "N",
                Unit::Bytes => "BYTES",
                Unit::Ms => "MS",
            })
            .value_parser(clap::value_parser!(u64).range(..=setting.largest)),
    };
    match setting.of(&Config::default()) {
        Some(Value::Number(default)) => option.default_value(default.to_string()),
        Some(Value::Text(default)) => option.default_value(default),
        Some(Value::Switch(_) | Value::File(_) | Value::List(_)) | None => option,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the size of the journal that these arguments ask for; `None` is the default size.
    fn journal_bytes(args: &[&str]) -> Option<usize> {
        let args = [&["minikeeper"], args].concat();
        let serve = Args::parse_from(args).serve;
        let mut config = serve.config().unwrap();
        serve.apply_late_defaults(&mut config);
        config.journal_bytes
    }

    /// Control is on by default on a loopback address, and the journal was off, so that Timeline, Advice and `ctl tail`
    /// were errors on a server without options.
    #[test]
    fn journal_is_on_where_something_can_read_it() {
        for args in [
            &[][..],
            &["--listen", "0.0.0.0", "--control"],
            &["--no-control", "--record", "run.rec"],
            &["--listen", "0.0.0.0", "--control-listen", "127.0.0.1:0"],
            &["--listen", "0.0.0.0", "--control-token", "token"],
        ] {
            assert_eq!(journal_bytes(args), None, "{args:?}");
        }
        for args in [
            &["--no-control"][..],
            &["--listen", "0.0.0.0"],
            &["--journal-bytes", "0"],
        ] {
            assert_eq!(journal_bytes(args), Some(0), "{args:?}");
        }
        assert_eq!(
            journal_bytes(&["--no-control", "--journal-bytes", "9"]),
            Some(9)
        );
    }

    #[test]
    fn every_option_has_a_heading() {
        use clap::CommandFactory as _;
        let command = Args::command();
        let without: Vec<_> = command
            .get_arguments()
            .filter(|arg| arg.get_help_heading().is_none())
            .filter_map(Arg::get_long)
            .collect();
        assert_eq!(
            without, [""; 0],
            "only help and version are listed without one"
        );
    }
}
