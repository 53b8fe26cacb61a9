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

/// The log of changes, in bytes: as shipped it is 96 MiB, which only costs time to make.
const LOG_BYTES: &str = "16M";

/// Makes its system tables, starts it on a free port and waits until it greets.
///
/// [`Storage::AsShipped`] flushes its log to disk with every commit
/// (`innodb_flush_log_at_trx_commit=1`); [`Storage::Memory`] writes it once a second, with data
/// in memory. Other settings are as shipped, but the buffer pool and the log file, which are
/// small, and [`CONNECTIONS_MAX`].
///
/// # Errors
/// When MariaDB is not installed, its tables cannot be made, or it does not greet within
/// [`START_LIMIT`](crate::process::START_LIMIT); the text has what its log says of it.
pub fn start(storage: Storage, pin: Pin) -> Result<Running, Error> {
    // Asked first: without the server its tables are of no use.
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

/// Makes the system tables, with a [`USER`] without a password.
fn install(folder: &ScratchFolder, data: &Path) -> Result<(), Error> {
    let log = folder.path().join("install-log");
    // Not placed: it is no part of what is measured, and is faster where there is room.
    let mut command = Pin::None.server(program("mariadb-install-db")?);
    command
        // In a shared one each MariaDB that starts removes the temporary tables of the others.
        .env("TMPDIR", folder.path())
        .arg("--no-defaults")
        .arg(option("--datadir", data))
        .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
        .arg("--skip-name-resolve")
        // If the machine fails now, there is nothing to save.
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

/// The version in the packet with which the server speaks first. It does so once it takes
/// connections; when it has too many, it sends an error instead.
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
    // For the sake of old replicas it calls itself 5.5.5 first.
    Ok(version.trim_start_matches("5.5.5-").to_owned())
}
