//! Options that come from environment variables, as in a container.

use std::fs;

use minikeeper_protocol::ConnectRequest;

use crate::program::{Running, connect, hello, run_with, scratch_file, text};

/// Returns the longest timeout that a server grants: 20 ticks.
fn timeout_ms(server: &Running) -> u32 {
    let mut client = connect(server.address());
    let response = hello(&mut client, &ConnectRequest::new(600_000));
    response.timeout_ms.try_into().unwrap()
}

#[test]
fn variable_sets_an_option_that_the_command_line_does_not_set() {
    let variables = [("MINIKEEPER_TICK_TIME", "100")];
    for serve in [&[][..], &["serve"]] {
        let args = [serve, &["--port", "0"]].concat();
        assert_eq!(timeout_ms(&Running::start_with(&args, &variables)), 2_000);
        let args = [serve, &["--port", "0", "--tick-time", "200"]].concat();
        assert_eq!(timeout_ms(&Running::start_with(&args, &variables)), 4_000);
    }
}

#[test]
fn variable_overrides_the_config_file() {
    let path = scratch_file("environment_zoo.cfg");
    fs::write(&path, "tickTime=100\n").unwrap();
    let args = ["--port", "0", "--config", path.to_str().unwrap()];
    assert_eq!(timeout_ms(&Running::start(&args)), 2_000);
    let variables = [("MINIKEEPER_TICK_TIME", "200")];
    assert_eq!(timeout_ms(&Running::start_with(&args, &variables)), 4_000);
}

#[test]
fn switch_is_set_by_true_and_not_by_false() {
    let control = |value| {
        let listen = [
            ("MINIKEEPER_LISTEN", "0.0.0.0"),
            ("MINIKEEPER_CONTROL", value),
        ];
        let server = Running::start_with(&["--port", "0"], &listen);
        server.terminate().1.contains("control on ")
    };
    assert!(control("true") && control("1"));
    assert!(!control("false") && !control("0") && !control(""));
    // Of the table of settings.
    let digest = |value| {
        let variables = [
            ("MINIKEEPER_NO_DIGEST", value),
            ("MINIKEEPER_ENFORCE_AUTH_SCHEMES", "ip,digest"),
        ];
        run_with(&["--port", "0", "--exit-on-stdin-eof"], &variables)
            .status
            .code()
    };
    assert_eq!((digest("true"), digest("false")), (Some(2), Some(0)));
}

/// Both are set for other reasons: the port by Kubernetes and Docker beside a service named minikeeper, the seed for
/// random tests.
#[test]
fn variables_of_others_are_not_read() {
    let variables = [
        ("MINIKEEPER_PORT", "tcp://10.0.0.1:2181"),
        ("MINIKEEPER_SEED", "17"),
    ];
    let server = Running::start_with(&["--port", "0"], &variables);
    assert_eq!(server.terminate().0.code(), Some(0));
}

#[test]
fn port_is_taken_from_the_environment() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = free.local_addr().unwrap().port().to_string();
    let output = run_with(&[], &[("MINIKEEPER_PORT", &taken)]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    let expected = format!("minikeeper: cannot listen on 127.0.0.1:{taken}: ");
    assert!(complaint.starts_with(&expected), "{complaint}");
}

#[test]
fn unknown_variable_is_named_on_stderr_and_the_server_starts() {
    let variables = [("MINIKEEPER_TICKTIME", "100")];
    let server = Running::start_with(&["--port", "0"], &variables);
    let (status, _, err) = server.terminate();
    assert_eq!(status.code(), Some(0));
    assert_eq!(
        err,
        "minikeeper: warning: MINIKEEPER_TICKTIME has no effect, because it stands for no option; the nearest variable is \
         MINIKEEPER_TICK_TIME\n"
    );
    // Commands that start no server do not read it.
    assert_eq!(text(&run_with(&["--version"], &variables).stderr), "");
}

#[test]
fn invalid_variable_exits_with_2_and_is_named() {
    let variables = [("MINIKEEPER_TICK_TIME", "soon")];
    for args in [&["--port", "0"][..], &["serve", "--port", "0"]] {
        let output = run_with(args, &variables);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let complaint = text(&output.stderr);
        assert!(
            complaint.starts_with("error: invalid value 'soon' for '--tick-time <MS>'"),
            "{complaint}"
        );
        assert!(
            complaint.ends_with("\nset in the environment: MINIKEEPER_TICK_TIME\n"),
            "{complaint}"
        );
    }
    let switch = run_with(&["--port", "0"], &[("MINIKEEPER_CONTROL", "maybe")]);
    assert_eq!(switch.status.code(), Some(2));
    let complaint = text(&switch.stderr);
    let expected = "minikeeper: MINIKEEPER_CONTROL is \"maybe\"; it must be true or false\n";
    assert_eq!(complaint, expected);
    // Commands that start no server do not read it.
    for args in [&["--version"][..], &["export", "--help"]] {
        assert_eq!(
            run_with(args, &variables).status.code(),
            Some(0),
            "{args:?}"
        );
    }
    let output = run_with(&["healthcheck", "127.0.0.1:0"], &variables);
    assert_eq!(output.status.code(), Some(1));
}
