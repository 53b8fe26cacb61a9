//! MariaDB on loopback.

use std::{
    io::Read as _,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::Path,
    time::Duration,
};

use super::{Running, ScratchFolder, Storage, log_to, program, with_log};
use crate::{
    Error, IoContext as _,
    process::{Pin, free_port},
};

/// The user that may log in from 127.0.0.1 without a password.
pub const USER: &str = "root";

/// The largest number of connections: a thousand contenders and some observers.
pub const CONNECTIONS_MAX: u32 = 1_300;

/// How long one greeting may take.
const GREETING_LIMIT: Duration = Duration::from_secs(2);

/// The log of changes, in bytes: the default of 96 MiB only takes time to create.
const LOG_BYTES: &str = "16M";

/// Creates its system tables, starts it on a free port and waits for its greeting.
///
/// [`Storage::AsShipped`] flushes its log to disk with every commit
/// (`innodb_flush_log_at_trx_commit=1`); [`Storage::Memory`] writes it once a second, with data in
/// memory. Other settings are as shipped, except for the buffer pool and the log file, which are
/// small, and [`CONNECTIONS_MAX`].
///
/// # Errors
/// If MariaDB is not installed, its tables cannot be created, or it sends no greeting within
/// [`START_LIMIT`](crate::process::START_LIMIT); the text quotes its log.
pub fn start(storage: Storage, pin: Pin) -> Result<Running, Error> {
    // Checked first: without the server its tables are of no use.
    let mariadbd = program("mariadbd")?;
    let folder = storage.folder("mariadb")?;
    let data = folder.path().join("data");
    install(&folder, &data)?;
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
    let mut command = pin.server(mariadbd);
    command
        .arg("--no-defaults")
        .arg(option("--datadir", &data))
        .arg(option("--socket", &folder.path().join("socket")))
        .arg(option("--pid-file", &folder.path().join("pid")))
        .arg(option("--tmpdir", folder.path()))
        .arg("--bind-address=127.0.0.1")
        .arg(format!("--port={}", addr.port()))
        .arg(format!("--max-connections={CONNECTIONS_MAX}"))
        .arg(format!("--innodb-log-file-size={LOG_BYTES}"))
        .args(["--innodb-buffer-pool-size=32M", "--skip-name-resolve"])
        .args(as_root())
        .arg(match storage {
            Storage::AsShipped => "--innodb-flush-log-at-trx-commit=1",
            Storage::Memory => "--innodb-flush-log-at-trx-commit=0",
        });
    Running::start(folder, command, addr, || Ok(greeting(addr).ok()))
}

/// Creates the system tables, with a [`USER`] without a password.
fn install(folder: &ScratchFolder, data: &Path) -> Result<(), Error> {
    let log = folder.path().join("install-log");
    // Not placed on a core: it is not measured, and is faster on a free core.
    let mut command = Pin::None.server(program("mariadb-install-db")?);
    command
        // In a shared folder, each MariaDB that starts removes the temporary tables of the others.
        .env("TMPDIR", folder.path())
        .arg("--no-defaults")
        .arg(option("--datadir", data))
        .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
        .arg("--skip-name-resolve")
        // If the machine fails now, there is no data to lose.
        .arg("--innodb-flush-method=nosync")
        .arg(format!("--innodb-log-file-size={LOG_BYTES}"))
        .args(as_root());
    log_to(&log, &mut command)?;
    let status = command
        .status()
        .context(|| "cannot start mariadb-install-db".into())?;
    if status.success() {
        return Ok(());
    }
    let error = Error::Unexpected(format!("mariadb-install-db: ended with {status}"));
    Err(with_log(&error, &log))
}

fn option(name: &str, path: &Path) -> std::ffi::OsString {
    let mut option = std::ffi::OsString::from(name);
    option.push("=");
    option.push(path);
    option
}

/// The option without which MariaDB refuses to run as root.
fn as_root() -> Option<&'static str> {
    rustix::process::geteuid()
        .is_root()
        .then_some("--user=root")
}

/// Returns the version in the server's first packet. The server sends it once it accepts
/// connections; if it has too many, it sends an error instead.
fn greeting(addr: SocketAddr) -> Result<String, Error> {
    let what = || format!("cannot read the greeting of MariaDB at {addr}");
    let mut stream = TcpStream::connect_timeout(&addr, GREETING_LIMIT).context(what)?;
    stream
        .set_read_timeout(Some(GREETING_LIMIT))
        .context(what)?;
    // Three bytes of length, one of sequence, one of protocol version, then the server's version.
    let mut head = [0; 5];
    stream.read_exact(&mut head).context(what)?;
    let length = usize::from(head[0]);
    let mut body = vec![0; length.saturating_sub(1)];
    stream.read_exact(&mut body).context(what)?;
    let version = body.split(|byte| *byte == 0).next().unwrap_or_default();
    let version = String::from_utf8_lossy(version);
    if head[4] != 10 {
        return Err(Error::Unexpected(format!(
            "MariaDB at {addr} greets with protocol version {}, not 10: {version}",
            head[4]
        )));
    }
    // The version begins with 5.5.5 for the sake of old replicas.
    Ok(version.trim_start_matches("5.5.5-").to_owned())
}
