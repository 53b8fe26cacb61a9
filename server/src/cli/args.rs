//! The command line.

use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroUsize,
    path::PathBuf,
    time::Duration,
};

use clap::{Parser, Subcommand};
use minikeeper::{Config, ControlConfig, DataSource, DigestAlgorithm, Secret, TxnLog};
use tracing_subscriber::filter::Targets;

use crate::{ctl::CtlArgs, token};

/// An in-memory coordination server for development and test that speaks the ZooKeeper wire
/// protocol.
#[derive(Parser, Debug)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  minikeeper                                serve on 127.0.0.1:2181
  minikeeper --port 0 --address-file addr   serve on any free port, written to the file addr
  minikeeper --tick-time 200                let sessions be as short as 400 ms
  minikeeper --config zoo.cfg --port 0      take the settings of a zoo.cfg, but not its port
  minikeeper --data-dir data                keep everything in data from one run to the next
  minikeeper --seed tree.yaml               begin with the znodes of a file
  minikeeper --import /var/lib/zookeeper    start with a copy of what a ZooKeeper server has
  minikeeper --log info                     log sessions as they come and go
  minikeeper healthcheck 127.0.0.1:2181     exit with 0 if a server answers there
  minikeeper --control                      let `minikeeper ctl` and HTTP in
  minikeeper ctl sessions                   list the sessions of such a server

Exit codes: 0 done, 1 could not run, 2 wrong usage."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Serve until interrupted (the default)
    #[command(after_help = "Example:
  minikeeper serve --port 0 --address-file addr")]
    Serve(Box<ServeArgs>),
    /// Write what a data directory holds, logs included, to another one, as one snapshot
    ///
    /// Reads directories of ZooKeeper 3.4 to 3.9 and of minikeeper; 3.8 and 3.9 start from what is
    /// written, and so does minikeeper. Nothing is written to the first directory.
    #[command(after_help = "Example:
  minikeeper export /var/lib/zookeeper copy")]
    Export(ExportArgs),
    /// Ask a running server whether it is well
    ///
    /// Sends the four-letter word ruok. Exit code 0 if the answer is imok, 1 otherwise.
    #[command(after_help = "Example:
  minikeeper healthcheck 127.0.0.1:2181")]
    Healthcheck(HealthcheckArgs),
    /// Do to a running server what a test does: time, sessions, state
    Ctl(CtlArgs),
}

#[derive(clap::Args, Debug)]
pub(crate) struct HealthcheckArgs {
    /// The server's address
    #[arg(default_value = "127.0.0.1:2181", value_name = "ADDR")]
    pub(crate) address: String,
    /// Ask over TLS, of a server whose certificate is signed by one of these, a PEM file
    ///
    /// The certificate must be for the host in ADDR.
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Show this certificate to a server that asks for one, a PEM file
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", requires_all = ["tls_ca", "tls_key"])]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of that certificate, a PEM file
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ExportArgs {
    /// The directory to read
    #[arg(value_name = "FROM")]
    from: PathBuf,
    /// The directory to write; made if there is none, and must be empty if there is one
    #[arg(value_name = "TO")]
    pub(crate) to: PathBuf,
    /// Where the transaction logs are, if it is another directory (dataLogDir)
    #[arg(long, value_name = "DIR")]
    import_logs: Option<PathBuf>,
    /// Read logs without a snapshot, as versions before 3.5.3 left them
    #[arg(long)]
    trust_empty_snapshot: bool,
    /// Read what can be read where files are damaged or missing
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
    /// Take settings from a zoo.cfg; options given here win over it
    ///
    /// What means nothing to a single server in memory is named on stderr and left out.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Take SASL users from the section Server of a JAAS login configuration
    #[arg(long, value_name = "FILE")]
    pub(crate) jaas_config: Option<PathBuf>,
    /// Address to listen on
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    listen: IpAddr,
    /// Port to listen on; 0 takes any free one
    #[arg(long, default_value_t = 2181)]
    port: u16,
    /// Write the real address to this file once the server listens
    #[arg(long, value_name = "FILE")]
    pub(crate) address_file: Option<PathBuf>,
    /// Put the znodes of this file into the tree at the start; YAML, or JSON (.json)
    #[arg(long, value_name = "FILE")]
    pub(crate) seed: Option<PathBuf>,
    /// Stop when stdin ends, as after SIGTERM: with whoever holds the other end of its pipe
    #[arg(long)]
    pub(crate) exit_on_stdin_eof: bool,
    /// Save the state here when stopped, load it when started [default: keep nothing]
    ///
    /// The files are those of an original's dataDir: snapshots are exchangeable with Apache
    /// ZooKeeper. What a killed process keeps is the last save, and what --txn-log has.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Start with the state in a ZooKeeper data directory, without writing there
    ///
    /// Takes the newest snapshot, compressed or not, and the transaction logs behind it, of
    /// versions 3.4 to 3.9. With --data-dir too, that must be empty.
    #[arg(long, value_name = "DIR")]
    import: Option<PathBuf>,
    /// Where the imported transaction logs are, if it is another directory (dataLogDir)
    #[arg(long, value_name = "DIR", requires = "import")]
    import_logs: Option<PathBuf>,
    /// Import logs without a snapshot, as versions before 3.5.3 left them
    #[arg(long, requires = "import")]
    trust_empty_snapshot: bool,
    /// Go on with what can be read of --data-dir or --import where files are damaged or missing
    ///
    /// The changes that cannot be read are lost, and those behind them. Without this option such
    /// a directory is refused. Files in --data-dir that were not read are renamed to unread.NAME.
    #[arg(long)]
    trust_damaged_data: bool,
    /// Save every so many milliseconds too; 0 only when stopped
    #[arg(long, value_name = "MS", default_value_t = 0, requires = "data_dir")]
    save_interval: u64,
    /// What a crash keeps of the changes since the last save, in a transaction log
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        default_value_t = LogChanges::Off,
        requires = "data_dir"
    )]
    txn_log: LogChanges,
    /// Save, and begin another transaction log, after so many changes
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 100_000,
        requires = "data_dir"
    )]
    snap_count: u64,
    /// Unit of session timeouts, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 3000)]
    tick_time: u32,
    /// When silent sessions end: exactly after their timeout, or at the next tick past it as in
    /// the original [default: exact; with --config: tick]
    #[arg(long, value_name = "WHEN")]
    expiry: Option<Expiry>,
    /// Shortest session timeout granted, in milliseconds [default: 2 ticks]
    #[arg(long, value_name = "MS")]
    min_session_timeout: Option<u32>,
    /// Longest session timeout granted, in milliseconds [default: 20 ticks]
    #[arg(long, value_name = "MS")]
    max_session_timeout: Option<u32>,
    /// Log to stderr: error, warn, info, debug, trace, or target=level pairs
    #[arg(long, value_name = "FILTER")]
    pub(crate) log: Option<Targets>,
    /// Threads that serve; one is fastest on few cores
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) workers: NonZeroUsize,
    /// Four-letter words to answer, separated by commas; * is all, srvr ZooKeeper's default
    ///
    /// To other machines * leaves out cons, dump, wchc and wchp, because they list session ids and
    /// paths. Name them if those machines are to have them: '*,dump'
    #[arg(long = "4lw-whitelist", value_name = "LIST", default_value = "*")]
    four_letter_whitelist: String,
    /// Answer isro whatever the whitelist says, as ZooKeeper does with readonlymode.enabled
    #[arg(long)]
    read_only_mode: bool,
    /// Note a digest of the whole tree every 128 changes, for the word hash
    #[arg(long)]
    digest: bool,
    #[command(flatten)]
    control: ControlArgs,
    #[command(flatten)]
    znodes: ZnodeArgs,
    #[command(flatten)]
    access: AccessArgs,
    #[cfg(feature = "tls")]
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

/// When silent sessions end.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Expiry {
    /// After exactly their timeout.
    Exact,
    /// At the first multiple of the tick past it.
    Tick,
}

/// What a crash keeps of the changes since the last save.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum LogChanges {
    /// Nothing.
    Off,
    /// All that were answered, if the process is killed.
    Write,
    /// The same if the machine loses its power: as slow as the disk.
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
    /// Answer HTTP on the same port, from this machine: what `minikeeper ctl` needs
    #[arg(long)]
    control: bool,
    /// Answer it on a port of its own, also while the server is down
    #[arg(long, value_name = "IP:PORT")]
    control_listen: Option<SocketAddr>,
    /// The same for whoever shows this token, from any machine
    ///
    /// Others on this machine can see it in the list of processes: --control-token-file, or
    /// MINIKEEPER_CONTROL_TOKEN in the environment, keep it secret. The variable needs --control or
    /// --control-listen beside it.
    #[arg(
        long,
        value_name = "TOKEN",
        conflicts_with = "control_token_file",
        allow_hyphen_values = true
    )]
    control_token: Option<String>,
    /// The same with the token in a file
    #[arg(long, value_name = "FILE")]
    control_token_file: Option<PathBuf>,
}

impl ControlArgs {
    /// # Errors
    /// Why the file has no token.
    fn config(&self) -> Result<ControlConfig, String> {
        let mut control = ControlConfig::default();
        let token = match &self.control_token_file {
            None => self.control_token.clone().map(Secret::from),
            Some(file) => Some(token::read(file)?),
        };
        control.listen = self.control_listen;
        control.is_enabled = self.control || token.is_some() && control.listen.is_none();
        let is_on = control.is_enabled || control.listen.is_some();
        control.token = token.or_else(|| token::of_environment().filter(|_| is_on));
        Ok(control)
    }
}

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Znodes")]
struct ZnodeArgs {
    /// Refuse times to live, as the original does by default (extendedTypesEnabled=false)
    #[arg(long)]
    no_extended_types: bool,
    /// List children in ZooKeeper's order instead of that of their creation
    #[arg(long)]
    java_listing_order: bool,
    /// How often containers and times to live are looked at, in milliseconds; 0 is never
    #[arg(long, value_name = "MS", default_value_t = Config::default().container_check_interval_ms)]
    container_check_interval: u32,
    /// Most containers and expired znodes deleted in a minute
    #[arg(long, value_name = "N", default_value_t = Config::default().container_max_per_minute)]
    container_max_per_minute: u32,
    /// How long a container without a first child is kept, in milliseconds; 0 is for ever
    #[arg(long, value_name = "MS", default_value_t = 0)]
    container_max_never_used: u64,
    /// Keep the hard limits of quotas
    #[arg(long)]
    enforce_quota: bool,
    /// Answer reconfig as a standalone server with reconfiguration enabled
    #[arg(long)]
    reconfig_enabled: bool,
}

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Access")]
struct AccessArgs {
    /// Store access lists without looking at them
    #[arg(long)]
    skip_acl: bool,
    /// Digest identity that may do everything: super:BASE64(SHA1(super:PASSWORD))
    ///
    /// Of another hash with --digest-alg.
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    super_digest: Option<String>,
    /// Hash of digest identities, as Java names it: SHA1, SHA-256, SHA-512, SHA3-256, ...
    #[arg(long, value_name = "NAME", default_value = "SHA1")]
    digest_alg: DigestAlgorithm,
    /// Close connections whose client names another ensemble than these, in scheme ensemble
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    ensemble_auth_name: Option<Vec<String>>,
    /// Offer ZooKeeper's sample scheme key: multiples of the number in the znode /key
    #[arg(long)]
    key_auth: bool,
    /// Switch the digest scheme off
    #[arg(long)]
    no_digest: bool,
    /// SASL user that may do everything; may be given several times
    #[arg(long, value_name = "USER")]
    sasl_super_user: Vec<String>,
    /// Keep connections whose SASL exchange failed
    #[arg(long)]
    allow_sasl_failed_clients: bool,
    /// Schemes of which a connection needs an identity before any request (ip, digest, sasl)
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    enforce_auth_schemes: Vec<String>,
}

#[cfg(feature = "tls")]
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "TLS")]
struct TlsArgs {
    /// Port for clients over TLS, beside the other; 0 takes any free one
    #[arg(long, value_name = "PORT")]
    secure_port: Option<u16>,
    /// Serve clients over TLS alone: --port is not listened on
    #[arg(long, conflicts_with = "port")]
    no_plain_port: bool,
    /// The server's certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Demand certificates of clients that are signed by one of these, a PEM file
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,
    /// Subject of the certificate that may do everything, as in CN=admin,O=Example
    #[arg(long, value_name = "NAME", requires = "tls_client_ca")]
    x509_super_user: Option<String>,
}

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// Largest request accepted, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = Config::default().frame_bytes_max)]
    jute_maxbuffer: usize,
    /// Time to finish a handshake, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    handshake_timeout: u64,
    /// Most connections at a time
    #[arg(long, value_name = "N", default_value_t = Config::default().connections_max)]
    max_connections: usize,
    /// Most connections from one address; 0 is no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_client_cnxns: usize,
    /// Most connections waiting to be accepted
    #[arg(long, value_name = "N", default_value_t = Config::default().listen_backlog)]
    listen_backlog: u32,
    /// Most handshakes at once; 0 is no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    connection_throttle_tokens: u32,
    /// How often another handshake may come then, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1)]
    connection_throttle_fill_time: u64,
    /// How many handshakes may come each time
    #[arg(long, value_name = "N", default_value_t = 1)]
    connection_throttle_fill_count: u32,
    /// Longest wait of a request before it is refused, in milliseconds; 0 is no limit
    #[arg(long, value_name = "MS", default_value_t = 0)]
    throttled_op_wait_time: u64,
    /// Longest request that is not large, in bytes; 0: none is large
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    large_request_threshold: usize,
    /// Most bytes of large requests at a time
    #[arg(long, value_name = "BYTES", default_value_t = Config::default().large_request_bytes_max)]
    large_request_max_bytes: usize,
    /// Most memory for requests that cannot be served yet, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = Config::default().unserved_bytes_max)]
    max_unserved_bytes: usize,
    /// Most sessions at a time
    #[arg(long, value_name = "N", default_value_t = Config::default().sessions_max)]
    max_sessions: usize,
    /// Most watches at a time
    #[arg(long, value_name = "N", default_value_t = Config::default().watches_max)]
    max_watches: usize,
    /// Most memory for the tree, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = Config::default().tree_bytes_max)]
    max_tree_bytes: usize,
    /// Longest reply, in bytes [default: 64 MiB, or 4 times --jute-maxbuffer and 1 KiB]
    #[arg(long, value_name = "BYTES")]
    max_reply_bytes: Option<usize>,
    /// Most operations in one multi or multiRead
    #[arg(long, value_name = "N", default_value_t = Config::default().multi_operations_max)]
    max_multi_operations: usize,
    /// Most entries of an access list
    #[arg(long, value_name = "N", default_value_t = Config::default().acl_entries_max)]
    max_acl_entries: usize,
    /// Most identities that one connection proves
    #[arg(long, value_name = "N", default_value_t = Config::default().identities_max)]
    max_identities: usize,
    /// Most unread events of one connection, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = Config::default().outbox_bytes_max)]
    max_outbox_bytes: usize,
    /// Most memory for what clients have not read yet, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = Config::default().unsent_bytes_max)]
    max_unsent_bytes: usize,
    /// Unwritten replies beyond which a connection is not served, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = Config::default().write_backlog_bytes_max)]
    max_write_backlog_bytes: usize,
    /// Most requests served in one turn
    #[arg(long, value_name = "N", default_value_t = Config::default().turn_requests_max)]
    max_turn_requests: usize,
    /// Most rows that a four-letter word lists
    #[arg(long = "max-4lw-rows", value_name = "N", default_value_t = Config::default().four_letter_rows_max)]
    max_four_letter_rows: usize,
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

    /// # Errors
    /// Why the options make no settings.
    pub(crate) fn config(&self) -> Result<Config, String> {
        let (limits, znodes, access) = (&self.limits, &self.znodes, &self.access);
        Ok(Config {
            control: self.control.config()?,
            listen: SocketAddr::new(self.listen, self.port),
            data_dir: self.data_dir.clone(),
            import: self.import_source(),
            trust_damaged_data: self.trust_damaged_data,
            save_interval: Duration::from_millis(self.save_interval),
            txn_log: self.txn_log.into(),
            snap_count: self.snap_count,
            tick_time_ms: self.tick_time,
            // Who brings the original's settings wants what follows from them there.
            rounds_expiry: match self.expiry {
                Some(when) => when == Expiry::Tick,
                None => self.config.is_some(),
            },
            session_timeout_min_ms: self.min_session_timeout,
            session_timeout_max_ms: self.max_session_timeout,
            frame_bytes_max: limits.jute_maxbuffer,
            handshake_timeout: Duration::from_millis(limits.handshake_timeout),
            connections_max: limits.max_connections,
            connections_per_address_max: limits.max_client_cnxns,
            listen_backlog: limits.listen_backlog,
            connection_throttle_tokens: limits.connection_throttle_tokens,
            connection_throttle_fill_time: Duration::from_millis(
                limits.connection_throttle_fill_time,
            ),
            connection_throttle_fill_count: limits.connection_throttle_fill_count,
            throttled_op_wait_time: Duration::from_millis(limits.throttled_op_wait_time),
            large_request_threshold: limits.large_request_threshold,
            large_request_bytes_max: limits.large_request_max_bytes,
            unserved_bytes_max: limits.max_unserved_bytes,
            sessions_max: limits.max_sessions,
            watches_max: limits.max_watches,
            tree_bytes_max: limits.max_tree_bytes,
            reply_bytes_max: limits.max_reply_bytes,
            multi_operations_max: limits.max_multi_operations,
            acl_entries_max: limits.max_acl_entries,
            identities_max: limits.max_identities,
            outbox_bytes_max: limits.max_outbox_bytes,
            unsent_bytes_max: limits.max_unsent_bytes,
            write_backlog_bytes_max: limits.max_write_backlog_bytes,
            turn_requests_max: limits.max_turn_requests,
            extended_types: !znodes.no_extended_types,
            java_listing_order: znodes.java_listing_order,
            container_check_interval_ms: znodes.container_check_interval,
            container_max_per_minute: znodes.container_max_per_minute,
            container_max_never_used_ms: znodes.container_max_never_used,
            enforce_quota: znodes.enforce_quota,
            reconfig_enabled: znodes.reconfig_enabled,
            skip_acl: access.skip_acl,
            digest_enabled: !access.no_digest,
            digest_algorithm: access.digest_alg,
            ensemble_names: access.ensemble_auth_name.clone(),
            key_scheme: access.key_auth,
            read_only_mode: self.read_only_mode,
            super_digest: access.super_digest.clone().map(Secret::from),
            sasl_super_users: access.sasl_super_user.clone(),
            sasl_allow_failed: access.allow_sasl_failed_clients,
            enforce_auth_schemes: access.enforce_auth_schemes.clone(),
            tree_digests: self.digest,
            four_letter_whitelist: self.four_letter_whitelist.clone(),
            four_letter_rows_max: limits.max_four_letter_rows,
            #[cfg(feature = "tls")]
            secure_listen: (self.tls.secure_port).map(|port| SocketAddr::new(self.listen, port)),
            #[cfg(feature = "tls")]
            secure_only: self.tls.no_plain_port,
            #[cfg(feature = "tls")]
            tls_certificate: self.tls.tls_cert.clone(),
            #[cfg(feature = "tls")]
            tls_key: self.tls.tls_key.clone(),
            #[cfg(feature = "tls")]
            tls_client_ca: self.tls.tls_client_ca.clone(),
            #[cfg(feature = "tls")]
            x509_super_user: self.tls.x509_super_user.clone(),
            ..Config::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_end_at_a_tick_if_asked_for_or_with_settings_of_the_original() {
        for (options, rounds) in [
            ("", false),
            ("--expiry tick", true),
            ("--config zoo.cfg", true),
            ("--config zoo.cfg --expiry exact", false),
        ] {
            let args =
                Args::try_parse_from(["minikeeper"].into_iter().chain(options.split_whitespace()));
            assert_eq!(
                args.unwrap().serve.config().unwrap().rounds_expiry,
                rounds,
                "{options}"
            );
        }
    }
}
