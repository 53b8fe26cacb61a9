//! `minikeeper ctl` against a running program.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Output, Stdio},
};

use crate::program::{Running, open, output_on_terminal, program, run, scratch_file, text};

/// Starts a program with control.
pub(crate) fn server(more: &[&str]) -> Running {
    Running::start(&[&["--port", "0", "--control"], more].concat())
}

pub(crate) fn ctl(server: &Running, args: &[&str]) -> Output {
    let address = server.address().to_string();
    run(&[&["ctl", "--server", &address], args].concat())
}

/// Runs a verb, which must succeed. Returns its stdout.
#[track_caller]
pub(crate) fn done(server: &Running, args: &[&str]) -> String {
    let output = ctl(server, args);
    assert_eq!(text(&output.stderr), "", "{args:?}");
    assert_eq!(output.status.code(), Some(0), "{args:?}");
    text(&output.stdout)
}

/// Runs a verb, which must fail. Returns its stderr.
#[track_caller]
fn fails(server: &Running, args: &[&str]) -> String {
    let output = ctl(server, args);
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    assert_eq!(text(&output.stdout), "", "{args:?}");
    text(&output.stderr)
}

/// The parameter `server` once took the place of the option `--server`, and the program panicked.
#[test]
fn server_of_the_ensemble_is_no_address() {
    let server = server(&[]);
    assert_eq!(done(&server, &["set-server", "1", "read-only"]), "{}\n");
    assert!(done(&server, &["servers"]).contains("\"mode\":\"read-only\""));
    let refused = fails(&server, &["set-leader", "1"]);
    assert!(refused.contains("server 1 cannot be the leader: it is read-only, and must be up"));
    assert_eq!(
        fails(&server, &["set-server", "2", "down"]),
        "minikeeper: there is no server 2, only server 1; `--servers` (`Config::servers`) adds more\n"
    );
}

/// The next `minikeeper ctl` with the same address could not connect, and nothing said why or how to go on.
#[test]
fn taking_down_the_only_address_is_done_with_a_warning() {
    let server = Running::start(&["--port", "0", "--servers", "2"]);
    let (_, line) = server.first_line.split_once(" listening on ").unwrap();
    let (first, second) = line.trim_end().split_once(',').unwrap();
    let set = |addresses: &str, args: &[&str]| {
        let output = run(&[&["ctl", "--server", addresses, "set-server"], args].concat());
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        text(&output.stderr)
    };
    let warning = set(first, &["1", "down"]);
    let command = format!("minikeeper ctl --server {second} set-server 1 up");
    assert_eq!(
        warning,
        format!(
            "minikeeper: warning: server 1 was the one at {first}, the only address of --server; to take it up again: {command}\n"
        )
    );
    assert_eq!(set(second, &["1", "up"]), "");
    // The next call reaches another server.
    assert_eq!(set(first, &["2", "down"]), "");
    assert_eq!(set(first, &["2", "up"]), "");
    let both = format!("{first},{second}");
    assert_eq!(set(&both, &["2", "down"]), "");
    // An address that does not listen is no reason to stop.
    assert_eq!(set(&format!("{second},{first}"), &["2", "up"]), "");
}

#[test]
fn first_of_several_servers_that_listens_is_asked() {
    let server = server(&[]);
    // The second one is no address, and ended the search.
    for first in ["127.0.0.1:1", "nowhere"] {
        let list = format!("{first},{}", server.address());
        for args in [
            &["ctl", "--server", &list, "now"][..],
            &["healthcheck", &list],
        ] {
            assert_eq!(run(args).status.code(), Some(0), "{args:?}");
        }
    }
    for args in [
        &["ctl", "--server", "127.0.0.1:1,127.0.0.1:2", "now"][..],
        &["healthcheck", "127.0.0.1:1,127.0.0.1:2"],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(text(&output.stderr).contains("127.0.0.1:2"), "{args:?}");
    }
}

#[test]
fn advise_reads_a_server_a_file_or_stdin() {
    let server = server(&[]);
    let address = server.address().to_string();
    let output = run(&["advise", "--server", &address]);
    assert!(text(&output.stdout).starts_with("no known mistakes in "));
    let file = scratch_file("advise.json");
    let path = file.to_str().unwrap();
    let journal = r#"{"entries":[{"number":1,"kind":"request","session":"0x1","op":"create2",
        "path":"/lock-","mode":"EPHEMERAL_SEQUENTIAL","result":"OK","created":"/lock-0000000000"}]}"#;
    fs::write(&file, journal).unwrap();
    let found = "unprotected-sequential: sequential ephemeral whose name does not tell who created it\n  session 0x1 created \
                 /lock- as EPHEMERAL_SEQUENTIAL (entry #1)\n  why: ";
    let output = run(&["advise", path]);
    assert!(text(&output.stdout).starts_with(found), "{output:?}");
    assert_eq!(output.status.code(), Some(0));
    let stdin = fs::File::open(&file).unwrap();
    let output = program(&["advise", "-"]).stdin(stdin).output().unwrap();
    assert!(text(&output.stdout).starts_with(found), "{output:?}");
    let json = text(&run(&["advise", "--json", path]).stdout);
    assert!(
        json.starts_with("{\"entry_count\":1,\"findings\":[{"),
        "{json}"
    );
    let ignored = [
        "advise",
        path,
        "--ignore",
        "herd",
        "--ignore",
        "unprotected-sequential,/a/**",
    ];
    assert_eq!(
        text(&run(&ignored).stdout),
        "no known mistakes in 1 entries\n"
    );
    for (content, wanted) in [
        (
            &b"{}"[..],
            "not the JSON of a journal: it has no list \"entries\"; write it with minikeeper ctl journal --json",
        ),
        (
            b"{\"entries\":[{\"kind\":\"what\"}]}",
            "\"entries\" number 0 is no entry of a journal",
        ),
        (b"", "EOF while parsing"),
        (b"[]", "it has no list \"entries\""),
        (
            b"mk\xff",
            "not a text in UTF-8: the byte at offset 2 is invalid",
        ),
    ] {
        fs::write(&file, content).unwrap();
        let output = run(&["advise", path]);
        assert_eq!(output.status.code(), Some(1), "{content:?}");
        let error = text(&output.stderr);
        assert!(
            error.starts_with(&format!("minikeeper: {path}: ")) && error.contains(wanted),
            "{error}"
        );
    }
    let output = run(&["advise", "--server", &address, "--ignore", "heard"]);
    assert!(
        text(&output.stderr).contains("\"heard\" is not the name of a rule"),
        "{output:?}"
    );
}

#[test]
fn verbs_print_the_server_answer() {
    let server = server(&[]);
    let (_stream, session, _) = open(server.address());
    let id = session.session_id.to_string();
    assert!(done(&server, &["sessions"]).contains(&format!("\"id\":\"{id}\"")));
    assert!(done(&server, &["get", "/e"]).starts_with("{\"data\":\"\",\"stat\":{"));
    assert_eq!(
        done(&server, &["children", "/"]),
        "{\"children\":[\"zookeeper\",\"e\"]}\n"
    );
    assert_eq!(done(&server, &["expire", &id]), "{\"count\":1}\n");
    assert_eq!(
        fails(&server, &["get", "/e"]),
        "minikeeper: no znode \"/e\"\n"
    );
    assert_eq!(done(&server, &["disconnect-all"]), "{}\n");
    // Plain text, for pipes.
    assert!(done(&server, &["dump"]).starts_with("znode / "));
    assert!(done(&server, &["now"]).starts_with("{\"elapsed_ms\":"));
}

/// JSON was printed on a terminal too.
#[test]
fn terminal_gets_text_and_a_pipe_gets_json() {
    let server = server(&[]);
    let (_stream, session, _) = open(server.address());
    let address = server.address().to_string();
    let on_terminal = |args: &[&str]| {
        let args = [&["ctl", "--server", &address], args].concat();
        output_on_terminal(&mut program(&args))
    };
    let table = on_terminal(&["sessions"]);
    assert!(table.starts_with("SESSION "), "{table}");
    assert!(table.contains(&session.session_id.to_string()), "{table}");
    assert!(table.contains("  connected  127.0.0.1:"), "{table}");
    assert!(!table.contains('{'), "{table}");
    let piped = done(&server, &["sessions"]);
    assert!(piped.starts_with("{\"sessions\":["), "{piped}");
    let forced = done(&server, &["sessions", "--text"]);
    assert!(forced.starts_with("SESSION "), "{forced}");
    let json = on_terminal(&["--json", "sessions"]);
    assert!(json.starts_with("{\"sessions\":["), "{json}");
    // Verbs with plain text print it in both, unless JSON is asked for.
    assert!(on_terminal(&["dump"]).starts_with("znode / "));
    assert!(done(&server, &["dump", "--json"]).starts_with("{\"dump\":\"znode / "));
    assert_eq!(
        run(&["ctl", "dump", "--json", "--text"]).status.code(),
        Some(2)
    );
    // Data does not control the terminal, in any form.
    done(&server, &["create", "/bell", "\u{1b}[2J\u{9b}2J\u{7}"]);
    for args in [
        &["get", "/bell"][..],
        &["get", "/bell", "--json"],
        &["export-tree"],
    ] {
        let shown = on_terminal(args);
        let is_harmless = |symbol: char| !symbol.is_control() || "\r\n".contains(symbol);
        assert!(shown.contains("2J"), "{shown}");
        assert!(shown.chars().all(is_harmless), "{args:?}: {shown:?}");
    }
    assert_eq!(
        done(&server, &["tree", "/e", "--text"]),
        format!("/e  ephemeral of {}\n", session.session_id)
    );
}

#[test]
fn typing_error_suggests_the_verb_or_the_option() {
    for (args, tip) in [
        (&["ctl", "sesions"][..], "'sessions'"),
        (&["ctl", "until-idel"], "'until-idle'"),
        (&["ctl", "delete", "/a", "--recursiv"], "'--recursive'"),
        (&["ctl", "export-tree", "--format", "yml"], "'yaml'"),
        (&["ctl", "--servr", "a:1", "now"], "'--server'"),
        (&["healthchek"], "'healthcheck'"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = text(&output.stderr);
        assert!(said.contains(&format!(": {tip}")), "{args:?}: {said}");
    }
}

#[test]
fn frozen_clock_advances_on_request_and_automatically() {
    let server = server(&[]);
    let (mut client, session, _) = open(server.address());
    let elapsed_ms = || -> u64 {
        let now = done(&server, &["now"]);
        let rest = now.strip_prefix("{\"elapsed_ms\":").unwrap();
        rest.split_once(',').unwrap().0.parse().unwrap()
    };
    done(&server, &["freeze"]);
    let before = elapsed_ms();
    done(&server, &["advance", "100ms"]);
    assert_eq!(elapsed_ms(), before + 100);
    done(&server, &["unfreeze"]);
    assert!(done(&server, &["now"]).contains("\"is_frozen\":false"));
    done(&server, &["freeze"]);
    assert!(done(&server, &["now"]).contains("\"is_frozen\":true"));
    done(&server, &["silence", &session.session_id.to_string()]);
    // Advances until the silenced session expires. Reads from the open connection, because a new one
    // might not finish its handshake before the clock advances past its deadline.
    done(&server, &["auto-advance", "1ms"]);
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
}

#[test]
fn exported_tree_seeds_another_server() {
    let seed = scratch_file("ctl_seed.yaml");
    fs::write(&seed, "/a: x\n/b: {data_base64: /w==}\n").unwrap();
    let first = server(&["--seed", seed.to_str().unwrap()]);
    let yaml = done(&first, &["export-tree", "--format", "yaml"]);
    assert_eq!(yaml, "/a: \"x\"\n/b: {data_base64: \"/w==\"}\n");
    let exported = scratch_file("ctl_exported.json");
    fs::write(&exported, done(&first, &["export-tree"])).unwrap();
    let second = server(&[]);
    let exported = exported.to_str().unwrap();
    assert_eq!(
        done(&second, &["seed", exported]),
        "{\"changed\":0,\"created\":2}\n"
    );
    assert_eq!(done(&second, &["export-tree", "--format", "yaml"]), yaml);
    let missing = fails(&second, &["seed", "no-such-file.yaml"]);
    assert!(
        missing.starts_with("minikeeper: cannot read no-such-file.yaml: "),
        "{missing}"
    );
}

/// As a mounted ConfigMap is: files are links into a hidden directory.
#[test]
fn seed_directory_is_read_in_the_order_of_its_names() {
    let folder = scratch_file("seed_directory");
    let _ = fs::remove_dir_all(&folder);
    let hidden = folder.join("..data");
    fs::create_dir_all(&hidden).unwrap();
    let option = folder.to_str().unwrap();
    let seeded = || {
        let server = server(&["--seed", option]);
        done(&server, &["export-tree", "--format", "yaml"])
    };
    assert_eq!(seeded(), "{}\n");
    for (name, content) in [
        ("20-b.yml", "/a: second\n/b: second\n"),
        ("10-a.yaml", "/a: first\n/c: first\n"),
        ("30-c.json", "{\"/b\": \"third\"}"),
        ("40-d.txt", "not read"),
        (".50-e.yaml", "not read"),
    ] {
        fs::write(hidden.join(name), content).unwrap();
        std::os::unix::fs::symlink(Path::new("..data").join(name), folder.join(name)).unwrap();
    }
    let tree = "/a: \"second\"\n/b: \"third\"\n/c: \"first\"\n";
    assert_eq!(seeded(), tree);

    fs::write(folder.join("60-f.yaml"), "/a: [").unwrap();
    let output = run(&["--port", "0", "--seed", option]);
    assert_eq!(output.status.code(), Some(2));
    let complaint = format!("minikeeper: {option}/60-f.yaml: line 2, column 1: ");
    let said = text(&output.stderr);
    assert!(said.starts_with(&complaint), "{said}");
}

#[test]
fn invalid_seed_file_keeps_the_program_from_starting() {
    for (name, content, complaint) in [
        (
            "bad_seed.yaml",
            "/a: [",
            ": line 2, column 1: while parsing",
        ),
        (
            "bad_seed.json",
            "{\"/a\": 5}",
            ": path \"/a\": 5 is not text, null or an object",
        ),
        (
            "bad_path.yaml",
            "a: x",
            "cannot seed the tree: path \"a\": does not start with a slash",
        ),
    ] {
        let file = scratch_file(name);
        fs::write(&file, content).unwrap();
        let output = run(&["--port", "0", "--seed", file.to_str().unwrap()]);
        assert_ne!(output.status.code(), Some(0), "{name}");
        let said = text(&output.stderr);
        assert!(
            said.starts_with("minikeeper: ") && said.contains(complaint),
            "{said}"
        );
    }
}

#[test]
fn option_universe_selects_the_universe() {
    let server = server(&[]);
    let address = server.address();
    assert_eq!(
        done(&server, &["create-universe", "one"]),
        format!("{address}/one\n")
    );
    let inside = ["--universe", "one", "get", "/"];
    assert!(done(&server, &inside).starts_with("{\"data\":\"\""));
    assert_eq!(done(&server, &["drop-universe", "one"]), "{}\n");
    assert_eq!(fails(&server, &inside), "minikeeper: no universe \"one\"\n");
}

#[test]
fn verbs_need_the_token() {
    let server = Running::start(&["--port", "0", "--control-token", "s3cret"]);
    let refused = fails(&server, &["now"]);
    assert!(refused.contains("missing or wrong token"), "{refused}");
    done(&server, &["--token", "s3cret", "now"]);
    let nonsense = fails(&server, &["--token", "a b", "now"]);
    assert!(nonsense.contains("the token must be"), "{nonsense}");
}

/// The token could only be given on the command line, which every process of the machine can read.
#[test]
fn token_comes_from_a_file_or_the_environment() {
    let file = scratch_file("token");
    fs::write(&file, "s3cret\n").unwrap();
    let file = file.to_str().unwrap();
    let of_file = Running::start(&["--port", "0", "--control-token-file", file]);
    let of_environment = Running::start_with(
        &["--port", "0", "--control"],
        &[("MINIKEEPER_CONTROL_TOKEN", "s3cret")],
    );
    for server in [&of_file, &of_environment] {
        let refused = fails(server, &["now"]);
        assert!(refused.contains("missing or wrong token"), "{refused}");
        done(server, &["--token-file", file, "now"]);
        let address = server.address().to_string();
        let mut shown = program(&["ctl", "--server", &address, "now"]);
        let output = shown
            .env("MINIKEEPER_CONTROL_TOKEN", "s3cret")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    // Control that is on by default needs the token too.
    let variable = [("MINIKEEPER_CONTROL_TOKEN", "s3cret")];
    let other = Running::start_with(&["--port", "0"], &variable);
    let refused = fails(&other, &["now"]);
    assert!(refused.contains("missing or wrong token"), "{refused}");
    done(&other, &["--token", "s3cret", "now"]);
    // The variable alone does not enable control: it may be meant for `ctl`.
    let other = Running::start_with(&["--port", "0", "--no-control"], &variable);
    let refused = fails(&other, &["--token", "s3cret", "now"]);
    assert!(
        refused.contains("does the server answer HTTP?"),
        "{refused}"
    );
}

/// `--control-token ''` was accepted as a token.
#[test]
fn invalid_token_exits_with_2_and_is_not_printed() {
    let empty = scratch_file("no_token");
    fs::write(&empty, "tell me\n").unwrap();
    let empty = empty.to_str().unwrap();
    for args in [
        &["--control-token", ""][..],
        &["--control-token", " "],
        &["--control-token", "tell me"],
        &["--control-token-file", empty],
        &["--control-token-file", "/nowhere/token"],
        &["--control-token", "tell me", "--control-token-file", empty],
    ] {
        let output = run(&[&["--port", "0"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let complaint = text(&output.stderr);
        assert!(complaint.contains("token"), "{complaint}");
        assert!(!complaint.contains("tell me"), "{complaint}");
    }
}

#[test]
fn error_tells_a_server_without_control_from_no_server() {
    let server = Running::start(&["--port", "0", "--no-control"]);
    let refused = fails(&server, &["now"]);
    assert!(
        refused.contains("does the server answer HTTP?"),
        "{refused}"
    );
    let address = server.address().to_string();
    server.terminate();
    let output = run(&["ctl", "--server", &address, "now"]);
    let refused = text(&output.stderr);
    assert!(refused.contains("is a server running there?"), "{refused}");
    let output = run(&["ctl", "--server", "nonsense", "now"]);
    assert!(text(&output.stderr).contains("write HOST:PORT"));
}

/// Any user of the machine can call control that is on by default, so it touches no files.
#[test]
fn server_on_loopback_has_control_without_directories() {
    let mut server = Running::start(&["--port", "0"]);
    let line = server.line_after("control on http://");
    let url = format!("{}/v1/openapi.json", server.address());
    assert_eq!(line, format!("{url}; --no-control turns it off"));
    let page = server.line_after("page on http://");
    assert_eq!(page, format!("{}/", server.address()));
    done(&server, &["now"]);
    for verb in ["export-data", "import-data"] {
        let refused = fails(&server, &[verb, "/tmp/nowhere"]);
        assert!(
            refused.contains("start the server with --control"),
            "{refused}"
        );
    }
    // An option that decides otherwise, or an address that other machines reach.
    let cfg = scratch_file("any_address.cfg");
    fs::write(&cfg, "clientPortAddress=0.0.0.0\n").unwrap();
    for args in [
        &["--no-control"][..],
        &["--listen", "0.0.0.0"],
        &["--control-listen", "127.0.0.1:0"],
        &["--config", cfg.to_str().unwrap()],
    ] {
        let server = Running::start(&[&["--port", "0"], args].concat());
        let address = format!("127.0.0.1:{}", server.address().port());
        let output = run(&["ctl", "--server", &address, "now"]);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
    }
    let both = run(&["--no-control", "--control-listen", "127.0.0.1:0"]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn wrong_usage_of_a_verb_exits_with_2() {
    for args in [
        &["ctl"][..],
        &["ctl", "nonsense"],
        &["ctl", "get"],
        &["ctl", "get", "/a", "/b"],
        &["ctl", "advance", "5"],
        &["ctl", "advance", "-5s"],
        &["ctl", "export-tree", "--format", "xml"],
        &["ctl", "restore", "first"],
    ] {
        assert_eq!(run(args).status.code(), Some(2), "{args:?}");
    }
}

/// The help comes from the same table as the routes; each verb has a summary.
#[test]
fn help_lists_every_verb() {
    let help = text(&run(&["ctl", "--help"]).stdout);
    for verb in minikeeper::control::verbs() {
        let name = verb.name.replace('_', "-");
        let line = help
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{name} ")));
        assert!(line.is_some(), "{name} is not in {help}");
        let own = run(&["ctl", &name, "--help"]);
        assert_eq!(own.status.code(), Some(0), "{name}");
        assert!(text(&own.stdout).starts_with(verb.summary()), "{name}");
    }
}

#[test]
fn tail_prints_entries_until_the_server_stops() {
    let server = server(&[]);
    let address = server.address().to_string();
    let mut tail = program(&[
        "ctl", "--server", &address, "--text", "tail", "--kind", "verb",
    ]);
    let mut tail = tail.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    // A stream that has begun shows what follows; until then each attempt makes an entry more.
    let line = std::thread::scope(|scope| {
        let line = scope.spawn(|| lines.next().unwrap().unwrap());
        while !line.is_finished() {
            done(&server, &["create", "/a"]);
            done(&server, &["delete", "/a"]);
        }
        line.join().unwrap()
    });
    assert!(line.contains(" path=\"/a\""), "{line}");
    drop(server);
    assert_eq!(tail.wait().unwrap().code(), Some(0));
    let json = run(&["ctl", "--server", &address, "tail"]);
    assert_eq!(json.status.code(), Some(1));
    assert!(text(&json.stderr).contains("is a server running there?"));
}

/// It had no journal unless `--control` was given, although its page and control are on by default.
#[test]
fn server_without_options_has_a_journal() {
    let server = Running::start(&["--port", "0"]);
    drop(open(server.address()));
    assert!(done(&server, &["journal"]).contains("\"path\":\"/e\""));
    assert_eq!(
        done(&server, &["count", "--path", "/e", "--kind", "request"]),
        "1\n"
    );
}

#[test]
fn tail_without_a_journal_says_how_to_get_one() {
    let server = server(&["--journal-bytes", "0"]);
    let refused = ctl(&server, &["tail"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("--journal-bytes"));
}

/// A hostile server wrote to the user's terminal: its errors went there as they were.
#[test]
fn answers_of_a_hostile_server_do_not_reach_the_terminal() {
    const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\rgone";
    let json = serde_json::json!({"error": HOSTILE}).to_string();
    let chunk = format!("HTTP/1.1 200 OK\r\n\r\n{HOSTILE}\n");
    let answers = [
        ("409 Conflict", json.as_str()),
        ("500 Oops", HOSTILE),
        ("200 OK", HOSTILE),
    ];
    let answers = answers.map(|(status, body)| {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}")
    });
    for answer in answers.iter().chain([&chunk]) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let output = std::thread::scope(|scope| {
            scope.spawn(|| {
                use std::io::{Read as _, Write as _};
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 4096]);
                stream.write_all(answer.as_bytes()).unwrap();
            });
            run(&["ctl", "--server", &address, "now"])
        });
        assert_eq!(output.status.code(), Some(1));
        let shown = text(&output.stderr);
        assert!(
            shown.chars().all(|it| it == '\n' || !it.is_control()),
            "{shown:?}"
        );
        assert!(!shown.is_empty());
    }
}

#[test]
fn seed_file_with_a_path_twice_is_refused() {
    let server = server(&[]);
    let file = scratch_file("twice.json");
    fs::write(&file, r#"{"/a": "1", "/b": "2", "/a": "3"}"#).unwrap();
    let path = file.to_str().unwrap();
    let refused = fails(&server, &["seed", path]);
    assert!(refused.contains("duplicate \"/a\" at line 1"), "{refused}");
    let start = run(&["--port", "0", "--seed", path]);
    assert!(text(&start.stderr).contains("duplicate \"/a\" at line 1"));
}

/// They were read until there was no memory.
#[test]
fn answers_that_do_not_end_are_refused() {
    for (verb, head, piece, error) in [
        (
            "now",
            "HTTP/1.1 200 OK\r\n\r\n",
            "x",
            "answer of ADDRESS is longer than the limit of 268435456 bytes",
        ),
        (
            "tail",
            "",
            "x",
            "head of the answer of ADDRESS is longer than the limit of 65536 bytes",
        ),
        (
            "tail",
            "HTTP/1.0 200 OK\r\n\r\n",
            "x",
            "line of the answer of ADDRESS is longer than the limit of 16777216 bytes",
        ),
    ] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            use std::io::{Read as _, Write as _};
            let (mut socket, _) = listener.accept().unwrap();
            let _ = socket.read(&mut [0; 4096]).unwrap();
            socket.write_all(head.as_bytes()).unwrap();
            // Until the client has had enough.
            while socket.write_all(piece.repeat(1 << 16).as_bytes()).is_ok() {}
        });
        let output = run(&["ctl", "--server", &address, verb]);
        server.join().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&error.replace("ADDRESS", &address)), "{said}");
    }
}
