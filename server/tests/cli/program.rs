//! Runs the program, and talks to it over a plain socket.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read, Write as _},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio},
    thread,
    time::Duration,
};

use bytes::Bytes;
use minikeeper_protocol::{
    ConnectRequest, ConnectResponse, Create, CreateMode, Reader, ReplyHeader, Request, Xid, Zxid,
};
use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};

/// The limit of every wait before the test fails. A limit, never a delay.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minikeeper"));
    command
        .args(args)
        .env_remove("MINIKEEPER_CONTROL_TOKEN")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a command whose stdout is a terminal. Returns what the terminal gets.
#[track_caller]
pub(crate) fn output_on_terminal(command: &mut Command) -> String {
    let (mut terminal, path) = terminal();
    let mut options = fs::OpenOptions::new();
    let stdout = options.read(true).write(true).open(path);
    let mut child = command
        .stdout(stdout.expect("a terminal"))
        .spawn()
        .expect("the program runs");
    // The command holds the terminal open too.
    command.stdout(Stdio::null());
    let mut bytes = Vec::new();
    // Linux reports the end as an error.
    let _ = terminal.read_to_end(&mut bytes);
    wait(&mut child);
    String::from_utf8(bytes).expect("text")
}

/// Opens a terminal. Returns the side of the user, and the path of the program's side.
#[track_caller]
pub(crate) fn terminal() -> (fs::File, String) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let terminal = openpt(flags).expect("a terminal");
    grantpt(&terminal).expect("a terminal");
    unlockpt(&terminal).expect("a terminal");
    let path = ptsname(&terminal, Vec::new()).expect("a terminal");
    (fs::File::from(terminal), path.into_string().expect("text"))
}

/// A running program, killed on drop.
pub(crate) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) first_line: String,
}

impl Running {
    /// Starts a server and waits until it says that it listens.
    #[track_caller]
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::spawn(&mut program(args))
    }

    /// Starts a server with these variables in its environment.
    #[track_caller]
    pub(crate) fn start_with(args: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::spawn(program(args).envs(variables.iter().copied()))
    }

    /// Starts a server whose stdin stays open until [`end_stdin`](Self::end_stdin).
    #[track_caller]
    pub(crate) fn start_with_stdin(args: &[&str]) -> Self {
        Self::spawn(program(args).stdin(Stdio::piped()))
    }

    /// Starts a command that becomes a server.
    #[track_caller]
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("the program runs");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut first_line = String::new();
        stdout.read_line(&mut first_line).expect("text on stdout");
        Self {
            child,
            stdout,
            first_line,
        }
    }

    #[track_caller]
    pub(crate) fn address(&self) -> SocketAddr {
        let address = self.first_line.trim_end().rsplit(' ').next();
        address
            .and_then(|address| address.parse().ok())
            .unwrap_or_else(|| panic!("no address in {:?}", self.first_line))
    }

    pub(crate) fn end_stdin(&mut self) {
        self.child.stdin = None;
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the program runs");
    }

    /// Waits for a line on stdout with this beginning. Returns the rest of the line.
    #[track_caller]
    pub(crate) fn line_after(&mut self, beginning: &str) -> String {
        loop {
            let mut line = String::new();
            let count = self.stdout.read_line(&mut line).expect("text on stdout");
            assert_ne!(count, 0, "no line begins with {beginning:?}");
            if let Some(rest) = line.strip_prefix(beginning) {
                return rest.trim_end().to_owned();
            }
        }
    }

    /// Waits for one line on stderr.
    #[track_caller]
    pub(crate) fn error_line(&mut self) -> String {
        let stderr = self.child.stderr.as_mut().expect("piped");
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            let mut byte = [0];
            stderr.read_exact(&mut byte).expect("a whole line");
            line.extend(byte);
        }
        String::from_utf8(line).expect("text")
    }

    /// Waits until the program exits. Returns its status, the rest of stdout, and all of stderr.
    #[track_caller]
    pub(crate) fn end(mut self) -> (ExitStatus, String, String) {
        let mut stderr = self.child.stderr.take().expect("piped");
        let (status, out, err) = thread::scope(|scope| {
            let out = scope.spawn(|| bytes(&mut self.stdout));
            let err = scope.spawn(|| bytes(&mut stderr));
            let status = wait(&mut self.child);
            (status, out.join(), err.join())
        });
        let [out, err] = [out, err].map(|bytes| text(&bytes.expect("no panic")));
        (status, out, err)
    }

    /// Waits until the program exits, without reading its output. Returns the exit code.
    #[track_caller]
    pub(crate) fn exit_code(mut self) -> Option<i32> {
        wait(&mut self.child).code()
    }

    #[track_caller]
    pub(crate) fn terminate(self) -> (ExitStatus, String, String) {
        self.signal(Signal::TERM);
        self.end()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if the program has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let pause = Duration::from_millis(1);
    for _ in 0..PATIENCE.as_millis() {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            return status;
        }
        thread::park_timeout(pause);
    }
    let _ = child.kill();
    panic!("the program did not end");
}

/// Runs a program and waits until it ends.
#[track_caller]
pub(crate) fn run(args: &[&str]) -> Output {
    run_with(args, &[])
}

/// Runs a program with these variables in its environment, and waits until it ends.
#[track_caller]
pub(crate) fn run_with(args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = program(args);
    let mut child = command
        .envs(variables.iter().copied())
        .spawn()
        .expect("the program runs");
    let mut out = child.stdout.take().expect("piped");
    let mut err = child.stderr.take().expect("piped");
    thread::scope(|scope| {
        let stdout = scope.spawn(move || bytes(&mut out));
        let stderr = scope.spawn(move || bytes(&mut err));
        let status = wait(&mut child);
        Output {
            status,
            stdout: stdout.join().expect("no panic"),
            stderr: stderr.join().expect("no panic"),
        }
    })
}

/// Runs a program whose stdout and stderr have no reader. Returns its exit code.
#[cfg(unix)]
#[track_caller]
pub(crate) fn run_unread(args: &[&str]) -> Option<i32> {
    let mut child = program(args)
        .stdout(unread())
        .stderr(unread())
        .spawn()
        .expect("the program runs");
    wait(&mut child).code()
}

/// Returns an output that has no reader: writing to it fails.
#[cfg(unix)]
pub(crate) fn unread() -> Stdio {
    let (writer, _reader) = std::os::unix::net::UnixStream::pair().expect("two sockets");
    std::os::fd::OwnedFd::from(writer).into()
}

/// Reads to the end. A program that writes more than a pipe holds ends only when its output is read.
fn bytes(pipe: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes).expect("a pipe of ours");
    bytes
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output in UTF-8")
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    stream
}

pub(crate) fn frame(stream: &mut TcpStream) -> Bytes {
    let mut prefix = [0; 4];
    stream.read_exact(&mut prefix).expect("a frame");
    let length = usize::try_from(u32::from_be_bytes(prefix)).expect("a length");
    let mut message = vec![0; length];
    stream.read_exact(&mut message).expect("a whole frame");
    message.into()
}

pub(crate) fn hello(stream: &mut TcpStream, hello: &ConnectRequest) -> ConnectResponse {
    let mut out = Vec::new();
    hello.encode(&mut out);
    stream.write_all(&out).expect("the server reads");
    ConnectResponse::decode(&mut Reader::new(&frame(stream))).expect("a connect response")
}

/// Opens a session and creates the ephemeral `/e`. Returns also the zxid of that change.
pub(crate) fn open(address: SocketAddr) -> (TcpStream, ConnectResponse, Zxid) {
    let mut stream = connect(address);
    let session = hello(&mut stream, &ConnectRequest::new(10_000));
    let mut out = Vec::new();
    Request::Create(Create::new("/e", b"", CreateMode::Ephemeral)).encode(Xid(1), &mut out);
    stream.write_all(&out).expect("the server reads");
    let header = ReplyHeader::decode(&mut Reader::new(&frame(&mut stream))).expect("a header");
    assert_eq!(header.error, None);
    (stream, session, header.zxid)
}

pub(crate) fn scratch_file(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    path
}
