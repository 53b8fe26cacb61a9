//! Compares four-letter words with ZooKeeper's replies to the same clients.
//!
//! `captured/four_letter_3.9.5.txt` has the replies of ZooKeeper 3.9.5 in the conversation below,
//! with `4lw.commands.whitelist=*`. Values that differ between runs are masked: ports, session ids,
//! times, latencies, the version and the lines about the Java machine. Rows in the order of a hash
//! table are sorted in our order, and deadlines in `dump` without a session are omitted. Source:
//! `docs/zookeeper-protocol.md` sections 18 and 20.1.

use minikeeper_protocol::{CreateMode, OpCode, Request, SessionId, Xid};
use minikeeper_test_kit::wire::{self, Wire, four_letter};

use crate::kit::{Scene, wait_until};

/// The metrics that have the same meaning in both servers.
const COMPARED: [&str; 26] = [
    "znode_count",
    "watch_count",
    "ephemerals_count",
    "approximate_data_size",
    "global_sessions",
    "local_sessions",
    "num_alive_connections",
    "outstanding_requests",
    "packets_received",
    "packets_sent",
    "bytes_received_count",
    "response_bytes",
    "watch_bytes",
    "last_client_response_size",
    "max_client_response_size",
    "min_client_response_size",
    "connection_request_count",
    "connection_revalidate_count",
    "connection_drop_count",
    "connection_rejected",
    "stale_sessions_expired",
    "sessionless_connections_expired",
    "cnt_readlatency",
    "cnt_updatelatency",
    "server_state",
    "connection_drop_probability",
];

/// The masked answers so far, and the replacements for ports and session ids.
struct Transcript {
    text: String,
    names: Vec<(String, String)>,
}

impl Transcript {
    fn name_port(&mut self, wire: &Wire, name: &str) {
        let port = wire.local_address().port();
        self.names.push((format!(":{port}"), format!(":<{name}>")));
    }

    fn name_session(&mut self, session: SessionId, name: &str) {
        self.names
            .push((session.to_string(), format!("<session {name}>")));
    }

    fn ask(&mut self, scene: &Scene, words: &str) {
        for word in words.split(' ') {
            let answer = four_letter(scene.address(), word.as_bytes());
            self.text.push_str(&format!("== {word}\n"));
            if word == "mntr" {
                for key in COMPARED {
                    let line = |line: &&str| line.starts_with(&format!("zk_{key}\t"));
                    let found: Vec<_> = answer.lines().filter(line).collect();
                    assert_eq!(found.len(), 1, "{key} in {answer}");
                    self.text.push_str(found[0]);
                    self.text.push('\n');
                }
                continue;
            }
            let mut part = "";
            for line in answer.split_inclusive('\n') {
                if line.ends_with(" dump:\n") {
                    part = line;
                }
                // Which connections expire together depends on when the clock ticks.
                if part.starts_with("Connections") && line.contains(" expire at ") {
                    continue;
                }
                self.text.push_str(&self.mask(word, line));
            }
            if !answer.ends_with('\n') {
                self.text.push_str("<end>\n");
            }
        }
    }

    fn mask(&self, word: &str, line: &str) -> String {
        let mut line = line.to_owned();
        for (what, name) in &self.names {
            line = replace_word(&line, what, name);
        }
        if let Some((front, port)) = line.split_once("/127.0.0.1:")
            && port.starts_with(|c: char| c.is_ascii_digit())
        {
            let port = port.trim_start_matches(|c: char| c.is_ascii_digit());
            line = format!("{front}/127.0.0.1:<word>{port}");
        }
        for key in ["est=", "lresp=", "llat=", "minlat=", "avglat=", "maxlat="] {
            if let Some((front, rest)) = line.split_once(&format!(",{key}")) {
                let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
                line = format!("{front},{key}#{rest}");
            }
        }
        for (start, end) in [
            ("Latency min/avg/max: ", "#/#/#\n"),
            ("Zookeeper version: ", "<version>\n"),
            ("clientPort=", "#\n"),
            ("dataDir=", "#\n"),
            ("dataDirSize=", "#\n"),
            ("dataLogDir=", "#\n"),
            ("dataLogSize=", "#\n"),
            ("datadir_size: ", "#\n"),
            ("logdir_size: ", "#\n"),
        ] {
            if line.starts_with(start) {
                line = format!("{start}{end}");
            }
        }
        if word == "envi"
            && let Some((key, _)) = line.split_once('=')
        {
            line = format!("{key}=#\n");
        }
        if let Some((front, _)) = line.split_once(" expire at ") {
            line = format!("{front} expire at <date>:\n");
        }
        if let Some((front, rest)) = line.split_once(" Sets (")
            && let Some((_, rest)) = rest.split_once(')')
        {
            line = format!("{front} Sets (#){rest}");
        }
        line
    }
}

/// Replaces a number except where it is the beginning of a longer one.
fn replace_word(line: &str, what: &str, name: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(what) {
        let (front, found) = rest.split_at(at);
        let after = &found[what.len()..];
        let is_longer = after.starts_with(|c: char| c.is_ascii_hexdigit());
        out.push_str(front);
        out.push_str(if is_longer { what } else { name });
        rest = after;
    }
    out + rest
}

#[test]
fn words_are_answered_as_by_zookeeper() {
    let scene = Scene::new();
    let mut transcript = Transcript {
        text: String::new(),
        names: Vec::new(),
    };
    transcript.name_port(scene.bystander(), "bystander");
    let bystander = scene.server.sessions()[0].id;
    transcript.name_session(bystander, "bystander");
    let silent = scene.connect();
    transcript.name_port(&silent, "silent");
    wait_until("the connection is accepted", || {
        scene.server.connections() == 2
    });
    transcript.ask(&scene, "cons");

    let (mut a, session) = scene.open_session();
    transcript.name_port(&a, "a");
    transcript.name_session(session.session_id, "a");
    transcript.ask(&scene, "cons");
    let create = wire::create("/a", b"", CreateMode::Persistent);
    a.must(&create);
    transcript.ask(&scene, "cons");
    a.refused(&create);
    transcript.ask(&scene, "cons");
    a.refused(&wire::get("/nope", false));
    transcript.ask(&scene, "cons");
    a.send_as(Xid::PING, &Request::Ping);
    a.answer(OpCode::Ping);
    transcript.ask(&scene, "cons");
    a.must(&wire::create("/a/e", b"", CreateMode::Ephemeral));
    a.must(&wire::get("/a", true));
    a.must(&wire::children("/a", true));
    a.refused(&wire::exists("/none", true));

    let (mut c, session) = Wire::open(scene.address(), 20_000);
    transcript.name_port(&c, "c");
    transcript.name_session(session.session_id, "c");
    c.must(&Request::AddWatch {
        path: Some("/a".into()),
        mode: 1,
    });
    c.must(&wire::watch("/zz"));
    c.must(&wire::get("/a", true));
    transcript.ask(
        &scene,
        "ruok isro srvr stat conf envi dirs gtmk hash wchs wchc wchp dump cons mntr",
    );

    a.send(&wire::set("/a", b"1"));
    a.event();
    a.answer(OpCode::SetData).outcome.unwrap();
    a.send(&wire::delete("/a/e"));
    a.event();
    a.answer(OpCode::Delete).outcome.unwrap();
    transcript.ask(&scene, "wchs wchc wchp dump cons mntr crst cons");
    a.must(&wire::get("/a", false));
    transcript.ask(&scene, "cons srst srvr mntr");
    a.must(&Request::CloseSession);
    a.expect_closed();
    wait_until("the connection is closed", || {
        scene.server.connections() == 3
    });
    transcript.ask(&scene, "wchs wchc dump cons mntr");

    let captured = include_str!("captured/four_letter_3.9.5.txt");
    for (line, (transcript, captured)) in (1..).zip(transcript.text.lines().zip(captured.lines())) {
        assert_eq!(transcript, captured, "line {line} of the capture");
    }
    assert_eq!(transcript.text.len(), captured.len());
}
