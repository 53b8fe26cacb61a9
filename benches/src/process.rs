//! Servers as child processes: start, placement, CPU time, memory, stop.

use std::{
    ffi::OsString,
    fs,
    io::{BufRead as _, BufReader},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    Error, IoContext as _,
    client::{Client, TRY_LIMIT},
    clock::Deadline,
};

/// How long a server may take to listen. A Java server needs some seconds.
pub const START_LIMIT: Duration = Duration::from_secs(60);

/// How long a server may take to stop before it is killed.
pub const STOP_LIMIT: Duration = Duration::from_secs(10);

/// A server that this program started. Dropping it stops the server.
#[derive(Debug)]
pub struct Server {
    child: Option<Child>,
    /// The address at which it listens.
    pub addr: SocketAddr,
    /// Its process id, unless another program started it.
    pub pid: Option<u32>,
}

impl Server {
    /// Returns a server that another program started. Its CPU time is unknown.
    #[must_use]
    pub fn running(addr: SocketAddr) -> Self {
        Self {
            child: None,
            addr,
            pid: None,
        }
    }

    /// Starts a server that prints `listening on HOST:PORT` as its first line.
    ///
    /// # Errors
    /// When it cannot be started or does not print that line within [`START_LIMIT`].
    pub fn start_printing(mut command: Command) -> Result<Self, Error> {
        let name = shown(&command);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = spawn(&mut command)?;
        let stdout = child.stdout.take().expect("standard output was piped");
        let (send, receive) = mpsc::sync_channel(1);
        // The thread reads to the end, so that the server never blocks on a full pipe.
        std::thread::spawn(move || {
            let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
            let _ = send.send(lines.next());
            lines.for_each(drop);
        });
        let mut server = Self::starting(child);
        let line = receive
            .recv_timeout(START_LIMIT)
            .map_err(|_| Error::Timeout {
                what: format!("first line of {name}"),
                limit_ms: START_LIMIT.as_millis(),
            })?
            .unwrap_or_default();
        let addr = line.split("listening on ").nth(1).map(str::trim);
        server.addr = addr.and_then(|addr| addr.parse().ok()).ok_or_else(|| {
            Error::Unexpected(format!(
                "{name}: first line {line:?} does not say \"listening on HOST:PORT\"; \
                 run it by hand to see why"
            ))
        })?;
        Ok(server)
    }

    /// Starts minikeeper on a free port and waits for its address file.
    ///
    /// # Errors
    /// When it cannot be started, ends, or does not write the file within [`START_LIMIT`].
    pub fn start_minikeeper(mut command: Command) -> Result<Self, Error> {
        let scratch = Scratch::new("address")?;
        command
            .args(["--port", "0", "--address-file"])
            .arg(&scratch.path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let name = shown(&command);
        let mut server = Self::starting(spawn(&mut command)?);
        let deadline = Deadline::new(START_LIMIT, format!("address file of {name}"));
        server.addr = deadline.poll(Duration::from_micros(200), || {
            server.expect_alive(&name)?;
            let text = fs::read_to_string(&scratch.path).unwrap_or_default();
            // Without its newline the text may be incomplete.
            Ok(text.strip_suffix('\n').and_then(|line| line.parse().ok()))
        })?;
        Ok(server)
    }

    /// Starts any server on a port chosen here and waits until it grants a session.
    ///
    /// # Errors
    /// When it cannot be started, ends, or grants no session within [`START_LIMIT`].
    pub fn start_at(mut command: Command, addr: SocketAddr) -> Result<Self, Error> {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self::start_when(command, addr, || {
            match Client::connect_within(addr, TRY_LIMIT) {
                Ok(client) => client.close().map(Some),
                Err(_) => Ok(None),
            }
        })
    }

    /// Starts any server on a port chosen here and calls `ready` every 20 ms until it returns a
    /// value. The command decides where the output goes.
    ///
    /// # Errors
    /// The error of `ready`; or the server cannot be started, ends, or is not ready within
    /// [`START_LIMIT`].
    pub fn start_when(
        mut command: Command,
        addr: SocketAddr,
        mut ready: impl FnMut() -> Result<Option<()>, Error>,
    ) -> Result<Self, Error> {
        let name = shown(&command);
        command.stdin(Stdio::null());
        let mut server = Self::starting(spawn(&mut command)?);
        server.addr = addr;
        let deadline = Deadline::new(START_LIMIT, format!("first answer of {name}"));
        deadline.poll(Duration::from_millis(20), || {
            server.expect_alive(&name)?;
            ready()
        })?;
        Ok(server)
    }

    /// Takes ownership of a child whose address is not known yet.
    #[must_use]
    pub fn starting(child: Child) -> Self {
        Self {
            pid: Some(child.id()),
            child: Some(child),
            addr: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        }
    }

    /// Checks that a starting server has not ended.
    ///
    /// # Errors
    /// It has ended; `name` is its name in the message.
    pub fn expect_alive(&mut self, name: &str) -> Result<(), Error> {
        let ended = match &mut self.child {
            Some(child) => child
                .try_wait()
                .context(|| format!("cannot watch {name}"))?,
            None => None,
        };
        ended.map_or(Ok(()), |status| {
            Err(Error::Unexpected(format!(
                "{name}: ended with {status} before it listened; run it by hand to see why"
            )))
        })
    }

    /// Sends SIGTERM and waits for the end.
    ///
    /// # Errors
    /// It does not end within [`STOP_LIMIT`]; then it is killed.
    pub fn stop(&mut self) -> Result<Option<ExitStatus>, Error> {
        let Some(mut child) = self.child.take() else {
            return Ok(None);
        };
        let pid = Pid::from_child(&child);
        if child.try_wait().ok().flatten().is_none() {
            // It may have ended meanwhile; then there is no process to signal.
            let _ = kill_process(pid, Signal::TERM);
        }
        let deadline = Deadline::new(STOP_LIMIT, "end of the server after SIGTERM");
        let ended = deadline.poll(Duration::from_micros(50), || {
            child
                .try_wait()
                .context(|| "cannot wait for a server".into())
        });
        if ended.is_err() {
            let _ = child.kill();
            let _ = child.wait();
        }
        ended.map(Some)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

fn spawn(command: &mut Command) -> Result<Child, Error> {
    let name = shown(command);
    command.spawn().context(|| format!("cannot start {name}"))
}

/// Returns a command and its arguments on one line, for error messages.
#[must_use]
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

/// The cores of the servers and the generator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Pin {
    /// The kernel chooses.
    None,
    /// The generator on core 0, servers on core 1.
    Split,
    /// Everything on core 0.
    Shared,
}

impl Pin {
    /// Returns the text for reports.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::None => "not pinned, the kernel places generator and server",
            Self::Split => "generator on core 0, server on core 1",
            Self::Shared => "generator and server share core 0",
        }
    }

    /// Returns the core for servers inside this process.
    #[must_use]
    pub const fn server_core(self) -> Option<usize> {
        match self {
            Self::None => None,
            Self::Split => Some(1),
            Self::Shared => Some(0),
        }
    }

    /// Returns the core of the generator.
    #[must_use]
    pub const fn generator_core(self) -> Option<usize> {
        match self {
            Self::None => None,
            Self::Split | Self::Shared => Some(0),
        }
    }

    /// Returns how many cores a generator with threads may use.
    #[must_use]
    pub fn generator_cores(self) -> f64 {
        match self {
            Self::None => std::thread::available_parallelism()
                .map_or(1.0, |cores| crate::stats::as_f64(cores.get() as u64)),
            Self::Split | Self::Shared => 1.0,
        }
    }

    /// Returns the command for a server, pinned to its core.
    #[must_use]
    pub fn server(self, program: impl Into<OsString>) -> Command {
        match self {
            Self::None => Command::new(program.into()),
            Self::Split => on_core("1", program),
            Self::Shared => on_core("0", program),
        }
    }

    /// Returns the command for the generator, pinned to its core.
    #[must_use]
    pub fn generator(self, program: impl Into<OsString>) -> Command {
        match self {
            Self::None => Command::new(program.into()),
            Self::Split | Self::Shared => on_core("0", program),
        }
    }
}

/// Returns a command under `taskset`, which replaces itself with the program and keeps the process
/// id.
fn on_core(core: &str, program: impl Into<OsString>) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core]).arg(program.into());
    command
}

/// Returns the path of a program in the same folder as this one.
///
/// # Errors
/// The program does not exist; the message says how to build it.
pub fn sibling(name: &str) -> Result<PathBuf, Error> {
    let own = std::env::current_exe().context(|| "cannot find the path of this program".into())?;
    let path = own.with_file_name(name);
    if path.is_file() {
        return Ok(path);
    }
    Err(Error::Setup(format!(
        "program {:?} does not exist; build everything with: cargo build --profile dist --workspace",
        path.display()
    )))
}

/// Returns the CPU time of all threads of a process, in nanoseconds.
///
/// # Errors
/// When the process is gone or the kernel keeps no such statistics.
pub fn cpu_ns(pid: u32) -> Result<u64, Error> {
    let tasks = PathBuf::from(format!("/proc/{pid}/task"));
    let entries =
        fs::read_dir(&tasks).context(|| format!("cannot list threads of process {pid}"))?;
    let mut total = 0;
    for entry in entries {
        let entry = entry.context(|| format!("cannot list threads of process {pid}"))?;
        // A thread may end between the listing and the read; its time is lost in either case.
        let text = fs::read_to_string(entry.path().join("schedstat")).unwrap_or_default();
        let first = text.split_whitespace().next();
        total += first.and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(total)
}

/// Returns the CPU time of the calling thread, in nanoseconds.
///
/// # Errors
/// When the kernel keeps no such statistics.
pub fn thread_cpu_ns() -> Result<u64, Error> {
    one_thread_cpu_ns("thread-self")
}

/// Returns the CPU time of one thread, by its folder in `/proc`.
pub(crate) fn one_thread_cpu_ns(thread: &str) -> Result<u64, Error> {
    let path = format!("/proc/{thread}/schedstat");
    let text = fs::read_to_string(&path).context(|| format!("cannot read {path}"))?;
    let first = text.split_whitespace().next();
    first
        .and_then(|word| word.parse().ok())
        .ok_or_else(|| Error::Unexpected(format!("{path} has no times: {text:?}")))
}

/// Returns the resident memory of a process, in bytes.
///
/// # Errors
/// When the process is gone.
pub fn rss_bytes(pid: u32) -> Result<u64, Error> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).context(|| format!("cannot read {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line
        .and_then(|line| line.split_whitespace().next())
        .and_then(|word| word.parse::<u64>().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| Error::Unexpected(format!("{path} has no VmRSS; has the process ended?")))
}

/// Returns a loopback port on which no server listens.
///
/// # Errors
/// When the system has none.
pub fn free_port() -> Result<u16, Error> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    listener
        .and_then(|listener| listener.local_addr())
        .map(|addr| addr.port())
        .context(|| "cannot find a free port".into())
}

/// A unique file name in the temporary folder. Dropping it removes the file.
#[derive(Debug)]
pub struct Scratch {
    /// The path of the file.
    pub path: PathBuf,
}

impl Scratch {
    /// Returns an unused name.
    ///
    /// # Errors
    /// A file of an earlier run exists and cannot be removed.
    pub fn new(purpose: &str) -> Result<Self, Error> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("minikeeper-{purpose}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        remove(&path)?;
        Ok(Self { path })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = remove(&self.path);
    }
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).context(|| format!("cannot remove {:?}", path.display()))
        }
        _ => Ok(()),
    }
}
