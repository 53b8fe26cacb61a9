//! The program as users run it: arguments, output, exit codes, signals.
//!
//! | module | content |
//! | --- | --- |
//! | `program` | running the program and talking to it; no assertion on a feature |
//! | `ctl`, `ctl_verbs` | the verbs of a running program |
//! | `data_dir` | the state that survives a restart |
//! | `environment` | options from variables |
//! | `open_files` | connections beyond the limit of open files |
//! | `shell` | `minikeeper cli` |
//! | `sweep` | `minikeeper sweep` |
//! | `moving` | export and import of data directories |

#![allow(
    clippy::unwrap_used,
    reason = "all of it is test code, its helpers included"
)]

mod ctl;
mod ctl_verbs;
mod data_dir;
mod environment;
mod moving;
#[cfg(unix)]
mod open_files;
mod program;
mod replay;
mod shell;
mod sweep;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    thread,
};

use minikeeper_protocol::{ConnectRequest, ConnectResponse, Create, CreateMode, Request, Xid};
use rustix::process::Signal;

use crate::program::{Running, connect, frame, hello, open, program, run, scratch_file, text};

#[test]
fn help_shows_examples_and_exit_codes() {
    for (args, example) in [
        (&["--help"][..], "minikeeper --port 0 --address-file addr"),
        (&["serve", "--help"], "minikeeper serve --port 0"),
        (
            &["healthcheck", "--help"],
            "minikeeper healthcheck 127.0.0.1:2181",
        ),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert_eq!(text(&output.stderr), "", "{args:?}");
        let help = text(&output.stdout);
        assert!(help.contains("Example"), "{help}");
        assert!(help.contains(example), "{help}");
    }
    let help = text(&run(&["--help"]).stdout);
    assert!(
        help.contains("Exit codes: 0 done, 1 could not run, 2 wrong usage"),
        "{help}"
    );
    let version = text(&run(&["--version"]).stdout);
    assert_eq!(
        version,
        format!("minikeeper {}\n", env!("CARGO_PKG_VERSION"))
    );
}

/// It had 150 lines, most of them limits that nobody sets.
#[test]
fn short_help_is_one_screen() {
    let output = run(&["-h"]);
    assert_eq!(output.status.code(), Some(0));
    let help = text(&output.stdout);
    assert!(help.lines().count() <= 24, "{help}");
    assert!(
        help.lines().all(|line| line.chars().count() <= 80),
        "{help}"
    );
    for shown in ["\n  ctl ", "\n  cli ", "--port <PORT>", "--help'"] {
        assert!(help.contains(shown), "no {shown:?} in:\n{help}");
    }
}

#[test]
fn long_help_shows_the_variable_of_each_option_of_the_server() {
    for args in [&["--help"][..], &["serve", "--help"]] {
        let help = text(&run(args).stdout);
        for (option, variable) in [
            ("--port <PORT>", "MINIKEEPER_PORT"),
            ("--seed <FILE>", "MINIKEEPER_SEED_PATH"),
            ("--tick-time <MS>", "MINIKEEPER_TICK_TIME"),
            ("--no-control", "MINIKEEPER_NO_CONTROL"),
            ("--control-token <TOKEN>", "MINIKEEPER_CONTROL_TOKEN"),
        ] {
            let (_, at) = help.split_once(&format!("  {option}\n")).unwrap();
            let (entry, _) = at.split_once("\n      --").unwrap();
            assert!(
                entry.contains(&format!("[env: {variable}]")),
                "{args:?} {option}: {entry}"
            );
        }
        let options = help.matches("\n      --").count();
        assert_eq!(help.matches("[env: MINIKEEPER_").count(), options, "{help}");
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    for args in [
        &["--no-such-flag"][..],
        &["--port", "70000"],
        &["--port", "none"],
        &["--listen", "nowhere"],
        &["--workers", "0"],
        &["--workers", "257"],
        &["--log", "session=loud"],
        &["no-such-command"],
        &["healthcheck", "a:1", "b:2"],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
        let complaint = text(&output.stderr);
        assert!(complaint.starts_with("error: "), "{args:?}: {complaint}");
    }
}

#[test]
fn invalid_setting_exits_with_2_and_is_named() {
    for (args, name) in [
        (&["--tick-time", "0"][..], "tick_time_ms"),
        (
            &["--min-session-timeout", "70000"],
            "session_timeout_min_ms",
        ),
        (&["--max-turn-requests", "0"], "turn_requests_max"),
    ] {
        let output = run(&[&["--port", "0"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let complaint = text(&output.stderr);
        assert!(complaint.starts_with("minikeeper: "), "{complaint}");
        assert!(complaint.contains(name), "{complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
}

/// `minikeeper sweep ... 2>&1 | head` panicked with exit code 101, as did each message on a stderr that
/// its reader had closed.
#[cfg(unix)]
#[test]
fn exit_code_is_the_same_when_nothing_reads_the_output() {
    use crate::program::{run_unread, run_with, unread};
    let server = ctl::server(&[]);
    let address = server.address().to_string();
    let recording = scratch_file("unread.rec");
    let recording = recording.to_str().unwrap();
    let recorded = Running::start(&["--port", "0", "--record", recording]);
    drop(open(recorded.address()));
    drop(recorded.terminate());
    let zoo_cfg = scratch_file("unread.cfg");
    fs::write(&zoo_cfg, "electionAlg=1\ntickTime=0\n").unwrap();
    let sweep_folder = scratch_file("unread-sweep");
    let create = format!(
        "{} cli -server {{}} create /a",
        env!("CARGO_BIN_EXE_minikeeper")
    );
    let cases: &[(&[&str], i32)] = &[
        (&["--help"], 0),
        (&["--no-such-flag"], 2),
        (&["--tick-time", "0"], 2),
        (&["--config", zoo_cfg.to_str().unwrap()], 2),
        (&["healthcheck", &address], 0),
        (&["healthcheck", "127.0.0.1:1"], 1),
        (&["ctl", "--server", &address, "now"], 0),
        (&["ctl", "--server", &address, "drop-snapshot", "9"], 1),
        (&["ctl", "--server", "127.0.0.1:1", "now"], 1),
        (&["advise", "--server", &address], 0),
        (&["advise", "/no/such/file"], 1),
        (&["replay", recording], 0),
        (&["replay", "/no/such/file"], 1),
        (&["cli", "-server", &address, "ls", "/"], 0),
        (&["cli", "-server", &address, "ls", "/absent"], 1),
        (&["cli", "-x"], 2),
        (
            &[
                "sweep",
                "--out",
                sweep_folder.to_str().unwrap(),
                "--fault",
                "request-lost",
                "--",
                "sh",
                "-c",
                &create,
            ],
            1,
        ),
    ];
    for (args, exit_code) in cases {
        let read = run_with(args, &[]);
        assert_eq!(read.status.code(), Some(*exit_code), "{args:?}: {read:?}");
        assert_eq!(run_unread(args), Some(*exit_code), "{args:?}");
    }
    // A disk that is full is another matter: what was asked for is lost.
    #[cfg(target_os = "linux")]
    for args in [
        &["ctl", "--server", &address, "dump"][..],
        &["ctl", "--server", &address, "tail", "--since", "0"],
        &["advise", "--server", &address],
        &["replay", recording],
        &["cli", "-server", &address, "ls", "/"],
    ] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = program(args).stdout(full).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {text}");
        assert!(
            text.contains("cannot write to stdout: "),
            "{args:?}: {text}"
        );
    }
    // The log, and what the server says without one.
    let mut command = program(&["--port", "0", "--log", "trace"]);
    let logging = Running::spawn(command.stderr(unread()));
    drop(open(logging.address()));
    logging.signal(Signal::TERM);
    assert_eq!(logging.exit_code(), Some(0));
}

/// The error about a wrong `--super-digest` quoted it, and errors go to logs and screens. No error
/// quotes the value of a secret.
#[test]
fn error_about_a_secret_does_not_show_it() {
    let zoo_cfg = scratch_file("secrets_zoo.cfg");
    let jaas = scratch_file("secrets_jaas.conf");
    let (zoo_cfg, jaas) = (zoo_cfg.to_str().unwrap(), jaas.to_str().unwrap());
    let of_config = ["--config", zoo_cfg];
    let of_jaas = ["--jaas-config", jaas];
    let module = "org.apache.zookeeper.server.auth.DigestLoginModule required";
    for (args, file, text_of_file) in [
        (&["--super-digest", "planted"][..], zoo_cfg, String::new()),
        (&["--super-digest", "-planted"], zoo_cfg, String::new()),
        (
            &["--control-token", "planted token"],
            zoo_cfg,
            String::new(),
        ),
        (
            &["--control-token", "-planted token"],
            zoo_cfg,
            String::new(),
        ),
        (
            &of_config,
            zoo_cfg,
            "DigestAuthenticationProvider.superDigest=planted\n".to_owned(),
        ),
        (
            &of_config,
            zoo_cfg,
            "ssl.keyStore.password=planted\ntickTime=x\n".to_owned(),
        ),
        (
            &of_jaas,
            jaas,
            format!("Server {{ {module} user_bob=\"planted; }};"),
        ),
        (
            &of_jaas,
            jaas,
            format!("Server {{ {module} user_bob=planted planted }};"),
        ),
        (
            &of_jaas,
            jaas,
            format!("Server {{ {module} user_bob=${{planted}}; }};"),
        ),
        (
            &of_jaas,
            jaas,
            format!("Server {{ {module} user_bob=\"planted\" 1; }};"),
        ),
    ] {
        fs::write(file, &text_of_file).unwrap();
        let output = run(&[&["--port", "0", "--log", "trace"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?} {text_of_file}");
        let printed = text(&output.stderr) + &text(&output.stdout);
        assert!(!printed.contains("planted"), "{printed}");
    }
}

#[test]
fn healthcheck_of_invalid_address_exits_with_1_and_shows_the_format() {
    let output = run(&["healthcheck", "nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    assert!(
        complaint.starts_with("minikeeper: cannot resolve \"nowhere\": "),
        "{complaint}"
    );
    assert!(complaint.contains("HOST:PORT"), "{complaint}");
}

#[test]
fn taken_port_exits_with_1_and_suggests_another() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    let output = run(&["--port", &address.port().to_string()]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "");
    let complaint = text(&output.stderr);
    let expected = format!("minikeeper: cannot listen on {address}: ");
    assert!(complaint.starts_with(&expected), "{complaint}");
    assert!(complaint.contains("--port 0"), "{complaint}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
}

#[test]
fn first_line_has_version_and_address_and_stderr_is_empty() {
    let server = Running::start(&["--port", "0"]);
    let expected = format!(
        "minikeeper {} listening on {}\n",
        env!("CARGO_PKG_VERSION"),
        server.address()
    );
    assert_eq!(server.first_line, expected);
    assert_eq!(server.address().ip().to_string(), "127.0.0.1");
    let address = server.address().to_string();
    let (_client, ..) = open(server.address());
    let (status, out, err) = server.terminate();
    assert_eq!(status.code(), Some(0));
    assert!(
        out.contains(&format!("minikeeper cli -server {address}")),
        "{out}"
    );
    assert_eq!(err, "");
}

/// It said 127.0.0.1, so a server that every machine reaches looked like one that none does.
#[test]
fn first_line_has_the_addresses_that_the_server_listens_on_and_the_others_one_to_connect_to() {
    for (servers, listen) in [("1", "0.0.0.0"), ("2", "0.0.0.0"), ("1", "127.0.0.1")] {
        let path = scratch_file(&format!("unspecified_{servers}_{listen}"));
        let file = path.to_str().unwrap();
        let mut server = Running::start(&[
            "--listen",
            listen,
            "--port",
            "0",
            "--servers",
            servers,
            "--address-file",
            file,
        ]);
        let connect = fs::read_to_string(&path).unwrap().trim_end().to_owned();
        assert!(connect.starts_with("127.0.0.1:"), "{connect}");
        let listening = connect.replace("127.0.0.1", listen);
        let line = format!(
            "minikeeper {} listening on {listening}\n",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(server.first_line, line);
        let shell = server.line_after("  shell          minikeeper cli -server ");
        assert_eq!(shell, connect);
    }
}

#[test]
fn address_file_has_the_actual_address_once_the_server_listens() {
    let path = scratch_file("address_file");
    let server = Running::start(&["--port", "0", "--address-file", path.to_str().unwrap()]);
    // The file is written before the first line is printed.
    let written = fs::read_to_string(&path).unwrap();
    assert_eq!(written, format!("{}\n", server.address()));
    let address: SocketAddr = written.trim().parse().unwrap();
    let (_client, ..) = open(address);
}

/// A script that waited for the file read the address of an earlier run.
#[test]
fn address_file_of_an_earlier_run_is_deleted_if_the_server_does_not_start() {
    let path = scratch_file("stale_address_file");
    fs::write(&path, "127.0.0.1:1\n").unwrap();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port().to_string();
    let output = run(&["--port", &port, "--address-file", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!path.exists());
}

/// A `zoo.cfg`, as far as it applies to a single server in memory.
#[test]
fn config_file_is_applied_and_keys_without_effect_are_reported() {
    let path = scratch_file("zoo.cfg");
    fs::write(&path, "clientPort=1\ntickTime=100\ninitLimit=5\n").unwrap();
    let file = path.to_str().unwrap();
    let server = Running::start(&["--config", file, "--port", "0"]);
    assert_ne!(server.address().port(), 1);
    // 20 ticks of the file.
    let mut client = connect(server.address());
    let response = hello(&mut client, &ConnectRequest::new(60_000));
    assert_eq!(response.timeout_ms, 2_000);
    let (status, _, err) = server.terminate();
    assert_eq!(status.code(), Some(0));
    let warning = format!("minikeeper: warning: {file}:3: initLimit has no effect: ");
    assert!(err.starts_with(&warning), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
}

#[test]
fn invalid_config_file_exits_with_2_and_the_line() {
    let path = scratch_file("nonsense.cfg");
    let file = path.to_str().unwrap();
    let missing = run(&["--config", file]);
    fs::write(&path, "# mine\ntickTime=soon\n").unwrap();
    let nonsense = run(&["--config", file]);
    for (output, complaint) in [
        (missing, format!("minikeeper: cannot read {file}: ")),
        (
            nonsense,
            format!("minikeeper: {file}:2: tickTime is \"soon\"; it must be "),
        ),
    ] {
        assert_eq!(output.status.code(), Some(2));
        let err = text(&output.stderr);
        assert!(err.starts_with(&complaint), "{err}");
    }
    // The error quotes nothing that may be a password.
    fs::write(&path, "Server {\nm required user_bob=secret").unwrap();
    let output = run(&["--jaas-config", file]);
    assert_eq!(output.status.code(), Some(2));
    let err = text(&output.stderr);
    let complaint = format!("minikeeper: {file}: line 2: ");
    assert!(
        err.starts_with(&complaint) && !err.contains("secret"),
        "{err}"
    );
}

#[test]
fn address_file_that_cannot_be_written_exits_with_1() {
    let path = scratch_file("no_such_folder").join("addr");
    let output = run(&["--port", "0", "--address-file", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    assert!(
        complaint.starts_with("minikeeper: cannot write "),
        "{complaint}"
    );
}

#[test]
fn serve_is_the_default_command() {
    let server = Running::start(&["serve", "--port", "0"]);
    let (_client, ..) = open(server.address());
    assert_eq!(server.terminate().0.code(), Some(0));
}

/// They take turns, so two of three connections are served by threads other than the first.
#[test]
fn every_worker_serves_connections() {
    let server = Running::start(&["--port", "0", "--workers", "3"]);
    let clients: Vec<_> = (0..7)
        .map(|_| {
            let mut client = connect(server.address());
            hello(&mut client, &ConnectRequest::new(10_000));
            client
        })
        .collect();
    drop(clients);
    assert_eq!(server.terminate().0.code(), Some(0));
}

/// Clients that are idle, silent, or do not read must not keep the program from exiting.
#[test]
fn termination_and_interrupt_exit_with_0_and_close_clients() {
    for signal in [Signal::TERM, Signal::INT] {
        let server = Running::start(&["--port", "0"]);
        let (mut idle, ..) = open(server.address());
        let mut silent = connect(server.address());
        let mut busy = connect(server.address());
        hello(&mut busy, &ConnectRequest::new(10_000));
        let mut out = Vec::new();
        let large = Create::new("/mb", &vec![1; 1_000_000], CreateMode::Persistent);
        Request::Create(large).encode(Xid(1), &mut out);
        for xid in 2..60 {
            let get = Request::GetData {
                path: Some("/mb".into()),
                watch: false,
            };
            get.encode(Xid(xid), &mut out);
        }
        busy.write_all(&out).unwrap();
        server.signal(signal);
        let (status, _, err) = server.end();
        assert_eq!(status.code(), Some(0), "{signal:?}");
        assert_eq!(err, "", "{signal:?}");
        for stream in [&mut idle, &mut silent] {
            assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0, "{signal:?}");
        }
    }
}

/// The program that started a server for a test may be killed; then the pipe between them closes.
#[test]
fn end_of_stdin_stops_the_program_like_sigterm_only_with_the_option() {
    let dir = scratch_file("saved_when_stdin_ended");
    let _ = fs::remove_dir_all(&dir);
    let data_dir = ["--port", "0", "--data-dir", dir.to_str().unwrap()];
    let mut server = Running::start_with_stdin(&[&data_dir[..], &["--exit-on-stdin-eof"]].concat());
    let (mut client, ..) = open(server.address());
    server.end_stdin();
    let (status, _, err) = server.end();
    assert_eq!((status.code(), err.as_str()), (Some(0), ""));
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(fs::read_dir(dir.join("version-2")).unwrap().count(), 1);

    // Without the option: stdin is closed from the start, as in every other test here.
    let server = Running::start(&["--port", "0"]);
    let (_client, ..) = open(server.address());
    assert_eq!(server.terminate().0.code(), Some(0));
}

#[test]
fn healthcheck_exits_with_0_only_if_a_server_answers() {
    let server = Running::start(&["--port", "0"]);
    let address = server.address().to_string();
    let output = run(&["healthcheck", &address]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), format!("{address} is healthy\n"));
    assert_eq!(server.terminate().0.code(), Some(0));
    let output = run(&["healthcheck", &address]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    let expected = format!("minikeeper: {address} is not healthy: ");
    assert!(complaint.starts_with(&expected), "{complaint}");
}

/// The lines of README are typed one after the other: nothing waited for the server.
#[test]
fn healthcheck_waits_for_a_server_that_starts_after_it() {
    let path = scratch_file("awaited_address_file");
    let file = path.to_str().unwrap();
    let waiting = program(&["healthcheck", "--wait", "60", "--address-file", file])
        .spawn()
        .unwrap();
    let server = Running::start(&["--port", "0", "--address-file", file]);
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(
        text(&output.stdout),
        format!("{} is healthy\n", server.address())
    );
    assert_eq!(output.status.code(), Some(0));
    // Without the option, once.
    drop(server);
    fs::remove_file(&path).unwrap();
    let output = run(&["healthcheck", "--address-file", file]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    assert!(
        complaint.starts_with("minikeeper: cannot read the address in "),
        "{complaint}"
    );
}

#[test]
fn healthcheck_of_a_different_server_exits_with_1() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let answering = thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let mut word = [0; 4];
        stream.read_exact(&mut word).unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
        word
    });
    let output = run(&["healthcheck", &address]);
    assert_eq!(&answering.join().unwrap(), b"ruok");
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    assert!(complaint.contains("instead of \"imok\""), "{complaint}");
}

#[test]
fn log_info_reports_sessions_on_stderr() {
    let server = Running::start(&["--port", "0", "--log", "info"]);
    let address = server.address();
    let (mut client, session, _) = open(address);
    let mut out = Vec::new();
    Request::CloseSession.encode(Xid(2), &mut out);
    client.write_all(&out).unwrap();
    frame(&mut client);
    let (status, out, err) = server.terminate();
    assert_eq!(status.code(), Some(0));
    let line = |words: &[&str]| {
        assert!(
            err.lines()
                .any(|line| words.iter().all(|word| line.contains(word))),
            "no line with {words:?} in:\n{err}"
        );
    };
    let session = session.session_id.to_string();
    line(&["INFO", "listening", &address.to_string()]);
    line(&["INFO", "session opened", &session, "timeout_ms=10000"]);
    line(&["INFO", "session ended", &session, "expired=false"]);
    assert!(!out.contains("INFO"), "the log is on stdout: {out}");
}

/// The port is free at once, although the server closed the connections. And the second run tells a
/// client of the first that its session has expired: `docs/zookeeper-protocol.md` sections 6.4, rule
/// 5, and 14.7. A server that starts at zxid 0 would close the connection without an answer, forever.
#[test]
fn next_run_takes_the_same_port_and_refuses_sessions_of_the_last() {
    let server = Running::start(&["--port", "0"]);
    let address = server.address();
    let port = address.port().to_string();
    let (_client, session, mut zxid) = open(address);
    assert_eq!(server.terminate().0.code(), Some(0));
    for _ in 0..2 {
        let server = Running::start(&["--port", &port]);
        assert_eq!(server.address(), address);
        let mut again = connect(address);
        let response = hello(
            &mut again,
            &ConnectRequest {
                session_id: session.session_id,
                password: session.password.clone(),
                last_zxid_seen: zxid,
                ..ConnectRequest::new(10_000)
            },
        );
        assert_eq!(response, ConnectResponse::refused(Some(false)));
        assert_eq!(
            again.read(&mut [0; 1]).unwrap(),
            0,
            "closed after the refusal"
        );
        let newest = open(address).2;
        assert!(newest > zxid);
        zxid = newest;
        assert_eq!(server.terminate().0.code(), Some(0));
    }
}

#[test]
fn limits_are_taken_from_the_command_line() {
    let options = "--port 0 --max-sessions 1 --tick-time 100 \
                   --large-request-threshold 100 --large-request-max-bytes 1000";
    let server = Running::start(&options.split_whitespace().collect::<Vec<_>>());
    let (mut client, session, _) = open(server.address());
    // 20 ticks at most.
    assert_eq!(session.timeout_ms, 2_000);
    let mut second = connect(server.address());
    let mut out = Vec::new();
    ConnectRequest::new(10_000).encode(&mut out);
    second.write_all(&out).unwrap();
    assert_eq!(second.read(&mut [0; 1]).unwrap(), 0);
    client.write_all(&1_001_i32.to_be_bytes()).unwrap();
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
}

/// A path with the end of a line made a line of the log that looked like another event.
#[test]
fn client_cannot_forge_lines_of_the_log() {
    let server = Running::start(&["--port", "0", "--log", "trace"]);
    let mut client = connect(server.address());
    hello(&mut client, &ConnectRequest::new(10_000));
    let forged = "/a\n2026-01-01T00:00:00Z ERROR minikeeper: forged\r\u{1b}[2Jx";
    let mut out = Vec::new();
    Request::Create(Create::new(forged, b"", CreateMode::Persistent)).encode(Xid(1), &mut out);
    client.write_all(&out).unwrap();
    frame(&mut client);
    let mut browser = connect(server.address());
    browser
        .write_all(b"GET /%0aforged HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    browser.read_to_end(&mut Vec::new()).unwrap();
    let (_, _, log) = server.terminate();
    assert!(log.contains("forged"), "{log}");
    assert!(
        !log.lines().any(|line| line.starts_with("2026-01-01")),
        "{log}"
    );
    assert!(
        log.chars().all(|it| it == '\n' || !it.is_control()),
        "{log:?}"
    );
}
