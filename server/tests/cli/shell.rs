//! `minikeeper cli`: one command, lines from a pipe, and a session on a terminal.

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
};

use crate::program::{PATIENCE, Running, program, run, terminal, text, wait};

/// Runs one command. Returns its exit code, stdout and stderr.
#[track_caller]
fn one(server: &str, words: &[&str]) -> (i32, String, String) {
    let output = run(&[&["cli", "-server", server], words].concat());
    let code = output.status.code().expect("an exit code");
    (code, text(&output.stdout), text(&output.stderr))
}

/// Runs lines from a pipe. Returns the exit code, and both outputs.
#[track_caller]
fn lines(server: &str, lines: &str) -> (i32, String, String) {
    let mut child = program(&["cli", "-server", server])
        .stdin(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut stdin = child.stdin.take().expect("piped");
    let output = thread::scope(|scope| {
        // Both pipes are read meanwhile: a full one would stop the program.
        scope.spawn(move || {
            stdin
                .write_all(lines.as_bytes())
                .expect("the program reads");
        });
        child.wait_with_output().expect("a child of ours")
    });
    let code = output.status.code().expect("an exit code");
    (code, text(&output.stdout), text(&output.stderr))
}

fn server() -> (Running, String) {
    let server = Running::start(&["--port", "0"]);
    let address = server.address().to_string();
    (server, address)
}

#[test]
fn one_command_prints_its_result_alone() {
    let (_server, at) = server();
    let nothing = String::new;
    let done = |out: &str, err: &str| (0, out.to_owned(), err.to_owned());
    // x=$(minikeeper cli create -s /a-) is the path.
    assert_eq!(one(&at, &["create", "/a", "two words"]), done("/a\n", ""));
    assert_eq!(
        one(&at, &["create", "-s", "/a/"]),
        done("/a/0000000000\n", "")
    );
    assert_eq!(one(&at, &["delete", "/a/0000000000"]), done("", ""));
    assert_eq!(one(&at, &["get", "/a"]), done("two words\n", ""));
    assert_eq!(one(&at, &["ls", "/"]), done("[a, zookeeper]\n", ""));
    let failed = (1, nothing(), "Node does not exist: /b\n".to_owned());
    assert_eq!(one(&at, &["get", "/b"]), failed);
    let (code, _, err) = one(&at, &["none"]);
    assert_eq!(code, 127);
    assert!(
        err.ends_with("\nCommand not found: Command not found none\n"),
        "{err}"
    );
    // Below a chroot, and with the options of either spelling.
    let chroot = format!("127.0.0.1:1,{at}/a");
    assert_eq!(one(&chroot, &["create", "/b"]), done("/b\n", ""));
    let output = run(&[
        "cli", "--server", &chroot, "-timeout", "9000", "-r", "ls", "/",
    ]);
    assert_eq!(text(&output.stdout), "[b]\n");
}

#[test]
fn shell_connects_to_the_server_of_the_environment_unless_one_is_named() {
    let (_running, address) = server();
    let shell = |environment: &str, arguments: &[&str]| {
        let mut command = program(&[&["cli"], arguments].concat());
        command.env("MINIKEEPER_CONNECT", environment);
        command.output().unwrap().status.success()
    };
    assert!(shell(&address, &["ls", "/"]));
    assert!(shell("127.0.0.1:1", &["-server", &address, "ls", "/"]));
}

#[test]
fn wrong_usage_of_the_shell_exits_with_2() {
    for args in [
        &["cli", "-x", "ls"][..],
        &["cli", "-server"],
        &["cli", "-timeout", "0", "ls"],
    ] {
        assert_eq!(run(args).status.code(), Some(2), "{args:?}");
    }
    let output = run(&["cli", "-server", "host:port", "ls", "/"]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    assert!(
        complaint.contains("the port is not a number"),
        "{complaint}"
    );
}

#[test]
fn without_a_server_a_command_fails_with_the_reason() {
    let (server, at) = server();
    server.terminate();
    let (code, out, err) = one(&at, &["get", "/a"]);
    assert_eq!((code, out.as_str()), (1, ""));
    let reason = format!("cannot connect to {at}: ");
    assert!(err.starts_with(&reason), "{err}");
    assert!(
        err.ends_with("\nKeeperErrorCode = ConnectionLoss for /a\n"),
        "{err}"
    );
}

#[test]
fn lines_of_a_pipe_are_run_in_order() {
    let (_server, at) = server();
    let (code, out, err) = lines(
        &at,
        "create /a \"1 2\"\n\nget -w /a\r\nset /a x\n   \nredo 1\nhistory\ncreate -e /e\nget /none",
    );
    assert_eq!(code, 1, "that of the last command");
    assert_eq!(err, "Created /a\nCreated /e\nNode does not exist: /none\n");
    let event = "\nWATCHER::\n\nWatchedEvent state:SyncConnected type:NodeDataChanged path:/a\n";
    assert!(out.contains(event), "{out}");
    let rest =
        "x\n0 - create /a \"1 2\"\n1 - get -w /a\n2 - set /a x\n3 - get -w /a\n4 - history\n";
    assert_eq!(out.replace(event, ""), format!("1 2\n{rest}"));
    // The session was closed, not left to its timeout.
    assert_eq!(one(&at, &["ls", "/"]).1, "[a, zookeeper]\n");
    assert_eq!(lines(&at, "none\nquit\nls /\n").0, 127);
}

#[test]
fn deep_and_wide_trees_are_walked_without_recursion() {
    let (_server, at) = server();
    let mut script = "create /t\n".to_owned();
    let mut path = "/t".to_owned();
    for _ in 0..300 {
        path.push_str("/d");
        script.push_str(&format!("create {path}\n"));
    }
    for number in 0..300 {
        script.push_str(&format!("create /t/n{number:03}\n"));
    }
    let (code, ..) = lines(&at, &script);
    assert_eq!(code, 0);
    let (_, out, _) = one(&at, &["ls", "-R", "/t"]);
    let listed: Vec<_> = out.lines().collect();
    assert_eq!(listed.len(), 601);
    assert_eq!(&listed[..3], ["/t", "/t/d", "/t/n000"]);
    assert_eq!(listed[302], "/t/d/d");
    let acl = one(&at, &["setAcl", "-R", "/t", "world:anyone:cdrw"]);
    assert_eq!(acl, (0, String::new(), String::new()));
    assert_eq!(one(&at, &["getAcl", &path]).1, "'world,'anyone\n: cdrw\n");
    let deleted = one(&at, &["deleteall", "/t", "-b", "7"]);
    assert_eq!(deleted, (0, String::new(), String::new()));
    assert_eq!(one(&at, &["ls", "/"]).1, "[zookeeper]\n");
}

#[test]
fn rejected_identity_ends_the_connection_and_connect_starts_another() {
    let (_server, at) = server();
    let (code, out, _) = lines(&at, "addauth none x\nls /\nconnect\nls /\n");
    assert_eq!(code, 0);
    let event = "\nWATCHER::\n\nWatchedEvent state:AuthFailed type:None path:null\n";
    assert!(out.contains(event), "{out}");
    assert!(out.contains("Not connected\n"), "{out}");
    assert!(out.ends_with("[zookeeper]\n"), "{out}");
}

/// A session on a terminal.
struct Session {
    child: Child,
    keyboard: fs::File,
    screen: mpsc::Receiver<Vec<u8>>,
    seen: String,
}

impl Session {
    fn start(at: &str, home: &Path) -> Self {
        let (keyboard, path) = terminal();
        let open = || {
            let mut options = fs::OpenOptions::new();
            options
                .read(true)
                .write(true)
                .open(&path)
                .expect("a terminal")
        };
        let mut command: Command = program(&["cli", "-server", at]);
        command
            .env("XDG_STATE_HOME", home)
            .env("TERM", "xterm")
            .stdin(open())
            .stdout(open())
            .stderr(open());
        let child = command.spawn().expect("the program runs");
        drop(command);
        let (sender, screen) = mpsc::sync_channel(1_000);
        let mut reader = keyboard.try_clone().expect("a terminal");
        thread::spawn(move || {
            let mut buffer = [0; 4_096];
            // Linux reports the end as an error.
            while let Ok(count) = reader.read(&mut buffer) {
                if count == 0 || sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            keyboard,
            screen,
            seen: String::new(),
        }
    }

    fn type_keys(&mut self, keys: &str) {
        self.keyboard
            .write_all(keys.as_bytes())
            .expect("a terminal");
    }

    /// Waits until the screen has shown a text since the last call.
    #[track_caller]
    fn expect(&mut self, wanted: &str) {
        // A program that prints without an end does not keep this waiting.
        for _ in 0..10_000 {
            if let Some(at) = self.seen.find(wanted) {
                self.seen.drain(..at + wanted.len());
                return;
            }
            match self.screen.recv_timeout(PATIENCE) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => break,
            }
        }
        panic!("no {wanted:?} in {:?}", self.seen);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Fails if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn session_on_a_terminal_has_completion_history_and_events() {
    let (server, at) = server();
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli_state");
    let _ = fs::remove_dir_all(&home);
    let mut session = Session::start(&at, &home);
    session.expect("Welcome to minikeeper cli!");
    session.expect("WatchedEvent state:SyncConnected type:None path:null");
    // A terminal drops what is typed while an editor begins, so each line waits for its prompt.
    session.expect(") 0] ");
    session.type_keys("create /greeting hello\r");
    session.expect("Created /greeting");
    session.expect("CONNECTED) 1] ");
    // The command, its option and the path are completed.
    session.type_keys("sta\t -w /gree\t\r");
    session.expect("dataLength = 5");
    session.expect("CONNECTED) 2] ");
    // What another client writes is shown above the line, its control characters escaped.
    let control = "\u{1b}[2J";
    assert_eq!(one(&at, &["set", "/greeting", control]).0, 0);
    session.expect("WatchedEvent state:SyncConnected type:NodeDataChanged path:/greeting");
    session.expect("CONNECTED) 2] ");
    session.type_keys("get /greeting\r");
    session.expect("\\u001b[2J");
    session.expect("CONNECTED) 3] ");
    // Ctrl-C gives up a line.
    session.type_keys("delete /greeting\u{3}");
    session.expect("delete /greeting");
    session.expect("CONNECTED) 3] ");
    session.type_keys("addauth digest me:secret\r");
    session.expect("CONNECTED) 4] ");
    session.type_keys("whoami\r");
    session.expect("digest: me");
    session.expect("CONNECTED) 5] ");
    // Ctrl-P brings back the line before; the one with the password is not remembered.
    session.type_keys("\u{10}\u{10}\r");
    session.expect("\\u001b[2J");
    session.expect("CONNECTED) 6] ");
    server.terminate();
    session.expect("WatchedEvent state:Disconnected type:None path:null");
    session.type_keys("ls /\r");
    session.expect("KeeperErrorCode = ConnectionLoss for /");
    session.expect("CONNECTING) 7] ");
    // Ctrl-D on an empty line.
    session.type_keys("\u{4}");
    assert_eq!(wait(&mut session.child).code(), Some(1));
    let history = home.join("minikeeper/cli_history");
    let mode = fs::metadata(&history).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let remembered = fs::read_to_string(&history).expect("text");
    assert!(remembered.contains("get /greeting\n"), "{remembered}");
    assert!(!remembered.contains("secret"), "{remembered}");
}

#[cfg(feature = "completions")]
#[test]
fn completions_and_manual_pages_describe_the_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&run(&["completions", shell]).stdout);
        assert!(script.contains("waitforconnection"), "{shell}");
        // Programs that users get do not have this command.
        assert!(!script.contains("completions"), "{shell}");
    }
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("man");
    let _ = fs::remove_dir_all(&dir);
    let output = run(&["man", dir.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let page = fs::read_to_string(dir.join("minikeeper-cli.1")).expect("a page");
    assert!(page.contains("minikeeper cli"), "{page}");
    let mut pages: Vec<_> = fs::read_dir(&dir)
        .expect("a directory")
        .map(|page| page.expect("a page").file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let of = [
        "-advise",
        "-cli",
        "-ctl",
        "-export",
        "-healthcheck",
        "-replay",
        "-serve",
        "-sweep",
        "",
    ];
    assert_eq!(pages, of.map(|command| format!("minikeeper{command}.1")));
}

/// After `cargo run` there is no minikeeper-cli beside minikeeper, and `minikeeper cli` was an error.
#[test]
fn cargo_builds_the_shell_in_a_checkout_where_it_is_missing() {
    let checkout = Path::new(env!("CARGO_TARGET_TMPDIR")).join("checkout");
    let _ = fs::remove_dir_all(&checkout);
    let release = checkout.join("target/release");
    fs::create_dir_all(&release).unwrap();
    let alone = release.join("minikeeper");
    fs::hard_link(env!("CARGO_BIN_EXE_minikeeper"), &alone).unwrap();
    let cli = || {
        let mut command = Command::new(&alone);
        // In place of cargo: it prints its arguments.
        command.args(["cli", "ls", "/"]).env("CARGO", "/bin/echo");
        command.env("PATH", "/usr/bin:/bin").output().unwrap()
    };
    // No folder of cargo's.
    let output = cli();
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    assert!(
        complaint.contains("cannot start minikeeper-cli: "),
        "{complaint}"
    );
    let source = checkout.join("server/src/cli/shell");
    fs::create_dir_all(&source).unwrap();
    fs::write(source.join("main.rs"), "").unwrap();
    fs::write(checkout.join("target/CACHEDIR.TAG"), "").unwrap();
    let manifest = checkout.canonicalize().unwrap().join("Cargo.toml");
    let arguments = format!(
        "run --manifest-path {} --release --bin minikeeper-cli -- ls /\n",
        manifest.display()
    );
    assert_eq!(text(&cli().stdout), arguments);
}
