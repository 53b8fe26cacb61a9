//! Redis on loopback: one process, or several that know nothing of one another.

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

/// The program, as Debian's package `redis-server` names it.
const PROGRAM: &str = "redis-server";

/// How long one try to reach a starting server may take.
const TRY_LIMIT: Duration = Duration::from_millis(200);

/// More than its 10,000: a fan-out may have 15,000 subscribers. Fewer where the system's limit of
/// open files is lower.
const CLIENTS_MAX: &str = "20000";

/// How often a server is started: the free port may be taken before the server binds it.
const STARTS_MAX: u32 = 3;

/// What of its data a server writes to disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Keeping {
    /// Nothing: a crash loses every lock.
    #[default]
    Nothing,
    /// A log, flushed every second: a crash loses up to a second.
    EverySecond,
    /// A log, flushed before the answer: a crash loses nothing that was answered.
    EveryWrite,
}

impl Keeping {
    /// As tables say it.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Nothing => "none: memory only",
            Self::EverySecond => "all but the last second",
            Self::EveryWrite => "all that was answered",
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

/// A Redis process of our own; stopped when dropped, and its folder removed.
#[derive(Debug)]
pub struct Redis {
    server: Server,
    // Dropped after the server, which writes there.
    _folder: ScratchFolder,
}

impl Redis {
    /// Starts one on a free port and waits until it answers.
    ///
    /// # Errors
    /// When Redis is not installed, cannot be started, or does not answer within [`START_LIMIT`].
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
            let deadline = Deadline::new(START_LIMIT, format!("first answer of {name}"));
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
    /// As [`start`](Self::start); those that run already are stopped.
    pub fn start_many(count: usize, pin: Pin, keeping: Keeping) -> Result<Vec<Self>, Error> {
        (0..count).map(|_| Self::start(pin, keeping)).collect()
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.server.addr
    }

    /// Its process, for its CPU time and memory. `None` once it was stopped.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.server.pid
    }

    /// Stops it before its time: what it held in memory is gone, its connections are closed.
    ///
    /// # Errors
    /// When it does not end in time; it is killed then.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.server.pid = None;
        self.server.stop().map(drop)
    }
}

/// The version of the installed program, as tables name it: `7.0.15`.
///
/// # Errors
/// When it is not installed, cannot be run or does not say its version.
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
    word.map(str::to_owned)
        .ok_or_else(|| Error::Unexpected(format!("{PROGRAM} --version says {text:?}, no v=...")))
}

/// Whether a Redis answers there.
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
