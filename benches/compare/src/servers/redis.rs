//! Redis on loopback: one process, or several independent ones.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    process::Stdio,
    time::Duration,
};

use super::{ScratchFolder, program};
use crate::{
    Error, IoContext as _,
    clock::Deadline,
    process::{Pin, START_LIMIT, Server, free_port, shown},
};

/// The program's name in Debian's package `redis-server`.
const PROGRAM: &str = "redis-server";

/// How long one try to reach a starting server may take.
const TRY_LIMIT: Duration = Duration::from_millis(200);

/// More than the default 10,000: a fan-out may have 15,000 subscribers. Redis lowers it if the
/// limit on open files is lower.
const CLIENTS_MAX: &str = "20000";

/// How often a start is tried: the free port may be taken before the server binds it.
const STARTS_MAX: u32 = 3;

/// Which of its data a server writes to disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Keeping {
    /// Nothing: a crash loses every lock.
    #[default]
    Nothing,
    /// A log, flushed every second: a crash loses up to a second.
    EverySecond,
    /// A log, flushed before the reply: a crash loses nothing that was acknowledged.
    EveryWrite,
}

impl Keeping {
    /// Its name in tables.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Nothing => "none: memory only",
            Self::EverySecond => "all but the last second",
            Self::EveryWrite => "everything acknowledged",
        }
    }

    const fn arguments(self) -> [&'static str; 4] {
        match self {
            Self::Nothing => ["--appendonly", "no", "--appendfsync", "no"],
            Self::EverySecond => ["--appendonly", "yes", "--appendfsync", "everysec"],
            Self::EveryWrite => ["--appendonly", "yes", "--appendfsync", "always"],
        }
    }
}

/// A Redis process of this bench; stopped when dropped, and its folder removed.
#[derive(Debug)]
pub struct Redis {
    server: Server,
    // Dropped after the server, which writes to it.
    _folder: ScratchFolder,
}

impl Redis {
    /// Starts one on a free port and waits until it replies.
    ///
    /// # Errors
    /// If Redis is not installed, cannot be started, or does not reply within [`START_LIMIT`].
    pub fn start(pin: Pin, keeping: Keeping) -> Result<Self, Error> {
        let program = program(PROGRAM)?;
        let mut starts = 0;
        loop {
            let port = free_port()?;
            let folder = ScratchFolder::new("redis")?;
            let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let mut command = pin.server(&program);
            command
                .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
                .args(["--maxclients", CLIENTS_MAX])
                .args(["--save", "", "--daemonize", "no", "--dir"])
                .arg(folder.path())
                .args(keeping.arguments())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let name = shown(&command);
            let child = command.spawn().context(|| format!("cannot start {name}"))?;
            let mut server = Server::starting(child);
            server.addr = addr;
            starts += 1;
            let deadline = Deadline::new(START_LIMIT, format!("first reply of {name}"));
            let answered = deadline.poll(Duration::from_millis(5), || {
                server.expect_alive(&name)?;
                Ok(ping(addr).then_some(()))
            });
            match answered {
                Ok(()) => {
                    return Ok(Self {
                        server,
                        _folder: folder,
                    });
                }
                Err(Error::Unexpected(_)) if starts < STARTS_MAX => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Starts N servers, each with its own port and folder.
    ///
    /// # Errors
    /// Like [`start`](Self::start); servers already running are stopped.
    pub fn start_many(count: usize, pin: Pin, keeping: Keeping) -> Result<Vec<Self>, Error> {
        (0..count).map(|_| Self::start(pin, keeping)).collect()
    }

    /// The address it listens on.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.server.addr
    }

    /// Its process id, for its CPU time and memory. `None` once it was stopped.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.server.pid
    }

    /// Stops it early: its data in memory is lost and its connections are closed.
    ///
    /// # Errors
    /// If it does not end in time; it is then killed.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.server.pid = None;
        self.server.stop().map(drop)
    }
}

/// The version of the installed program: `7.0.15`.
///
/// # Errors
/// If it is not installed, cannot be run or does not report a version.
pub fn version() -> Result<String, Error> {
    let mut command = Pin::None.server(program(PROGRAM)?);
    let output = command
        .arg("--version")
        .output()
        .context(|| format!("cannot run {PROGRAM} --version"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let word = text
        .split_whitespace()
        .find_map(|word| word.strip_prefix("v="));
    word.map(str::to_owned).ok_or_else(|| {
        Error::Unexpected(format!(
            "{PROGRAM} --version printed {text:?}, which has no v=..."
        ))
    })
}

/// Whether a Redis replies there.
fn ping(addr: SocketAddr) -> bool {
    let asked = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(&addr, TRY_LIMIT)?;
        stream.set_read_timeout(Some(TRY_LIMIT))?;
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 7];
        stream.read_exact(&mut answer)?;
        Ok(answer == *b"+PONG\r\n")
    };
    asked().unwrap_or(false)
}
