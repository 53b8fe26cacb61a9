//! The story of a failed test: its text, page and JSON; tests that fail on purpose, in a process of
//! their own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use expect_test::expect_file;
use minikeeper::{ErrorCode, Fault, OpCode, Server, Stories, blocking, tree};
use minikeeper_client::{Client, CreateMode};
use minikeeper_protocol::CreateMode as Mode;
use minikeeper_recipes::{InterProcessMutex, LockOptions};
use minikeeper_test_kit::wire::{self, Wire};
use serde_json::{Value, json};

use crate::{
    http::{done, get, scene},
    kit::TIMEOUT_MS,
};

/// A bound for a machine that hangs.
const WITHIN: Duration = Duration::from_secs(30);

/// Two clients queue for a lock, a read is refused, and an assertion fails.
async fn fail(server: &Server) {
    let address = server.connect_string();
    server.seed(&tree! { "/printer/paper" => "A4" }).unwrap();
    let first = Client::connect(&address).await.unwrap();
    let second = Client::connect(&address).await.unwrap();
    let mutex = |client: &Client, who: &str| {
        let options = LockOptions::default().with_data(who);
        InterProcessMutex::with_options(client.clone(), "/locks/printer", options).unwrap()
    };
    let (held, wanted) = (mutex(&first, "host-7"), mutex(&second, "host-8"));
    let _guard = held.acquire().within(WITHIN).await.unwrap();
    let waiting = tokio::spawn(async move { wanted.acquire().await.map(drop) });
    let queued = server.until_contenders("/locks/printer", 2, WITHIN);
    queued.await.unwrap();
    let first_in_queue = &server.locks().locks[0].holders[0].path;
    let watched = server.until_watched(first_in_queue, WITHIN);
    watched.await.unwrap();
    let refused = Fault::error(ErrorCode::NoAuth).on(OpCode::GetData);
    let fault = server.inject(refused.at("/printer/*").once()).unwrap();
    let _ = fault.keep();
    let paper = first.get_data("/printer/paper").await;
    let _story = server.story_on_panic();
    assert!(paper.is_ok(), "no paper");
    waiting.abort();
}

#[tokio::test]
#[ignore = "fails on purpose, in another process"]
async fn on_purpose_with_a_server() {
    let server = Server::builder().manual_clock().start().await.unwrap();
    fail(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "fails on purpose, in another process"]
async fn on_purpose_with_threads() {
    let server = Server::builder().manual_clock().start().await.unwrap();
    fail(&server).await;
}

#[test]
#[ignore = "fails on purpose, in another process"]
fn on_purpose_with_a_blocking_server() {
    let server = blocking::Server::builder().start().unwrap();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/mine", b"", Mode::Ephemeral));
    assert!(server.get("/missing").is_some());
}

#[tokio::test]
#[ignore = "fails on purpose, in another process"]
async fn on_purpose_with_a_universe() {
    let server = Server::builder().start().await.unwrap();
    let mine = server.create_universe("mine").unwrap();
    let client = Client::connect(&mine.connect_string()).await.unwrap();
    client
        .create("/a", b"secret", CreateMode::Ephemeral)
        .await
        .unwrap();
    panic!("on purpose");
}

#[tokio::test]
#[ignore = "fails on purpose, in another process"]
async fn on_purpose_without_a_story() {
    let builder = Server::builder().stories(Stories::Off);
    let _server = builder.start().await.unwrap();
    panic!("on purpose");
}

#[tokio::test]
#[ignore = "fails on purpose, in another process"]
async fn on_purpose_and_passes() {
    let server = Server::builder().start().await.unwrap();
    Client::connect(&server.connect_string()).await.unwrap();
}

/// Runs one of these tests. Returns what the process printed, and whether the test passed.
fn run(test: &str, stories: Option<&Path>) -> (String, bool) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", &format!("story::{test}")]);
    command.env("RUST_BACKTRACE", "0");
    match stories {
        Some(folder) => command.env("MINIKEEPER_STORIES", folder),
        None => command.env("MINIKEEPER_STORIES", "off"),
    };
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.success())
}

/// Creates an empty folder for the files of a test.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&folder);
    folder
}

#[track_caller]
fn assert_has(text: &str, wanted: &[&str]) {
    for wanted in wanted {
        assert!(text.contains(wanted), "{wanted:?} is missing in\n{text}");
    }
}

#[test]
fn failed_test_prints_its_story_and_saves_a_bundle() {
    for test in ["on_purpose_with_a_server", "on_purpose_with_threads"] {
        let folder = folder(test);
        let (text, passed) = run(test, Some(&folder));
        assert!(!passed);
        let name = format!("story.{test}");
        let page = folder.join(format!("{name}.html"));
        assert_has(
            &text,
            &[
                "no paper",
                &format!("\nminikeeper: story of story::{test}\nserver 127.0.0.1:"),
                "\nmutex /locks/printer (curator)\n  held by   session 0x",
                "\n  waits 1   session 0x",
                "\nsessions:\n  0x",
                "connected, expires in 60000 of 60000 ms, 1 ephemeral, 0 watches",
                "\nfaults:\n  fault 1 (error, op getData, path \"/printer/*\"): acted 1 time, matched 1\n",
                "\nall requests and events, without pings:\n    0.000 #1 connected\n",
                " createContainer /locks/printer CONTAINER -> OK\n",
                " fault 1: error getData /printer/paper\n",
                &format!("\nsaved in {}\n", page.display()),
            ],
        );
        assert_eq!(text.matches("minikeeper: story").count(), 1, "{text}");
        let page = fs::read_to_string(page).unwrap();
        assert!(page.starts_with("<!doctype html>"));
        let json = fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
        let story: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(story["title"], format!("story::{test}"));
        let lock = &story["locks"]["locks"][0];
        assert_eq!(lock["waiters"].as_array().unwrap().len(), 1);
        assert_eq!(story["sessions"].as_array().unwrap().len(), 2);
        assert_eq!(story["faults"][0]["hits"], 1);
        assert_eq!(story["entries"][0]["kind"], "connection_opened");
        assert_eq!(
            (&story["oldest"], &story["is_frozen"]),
            (&json!(1), &json!(true))
        );
    }
}

/// The server is dropped on its own thread, the handle on that of the test.
#[test]
fn blocking_server_tells_its_story_once_and_saves_none_if_off() {
    let (text, passed) = run("on_purpose_with_a_blocking_server", None);
    assert!(!passed);
    assert_eq!(text.matches("minikeeper: story").count(), 1, "{text}");
    assert_has(&text, &["no locks", "no faults", "/mine EPHEMERAL -> OK\n"]);
    assert!(!text.contains("saved"), "{text}");
}

/// The server's own universe has seen nothing but the handshake.
#[test]
fn universe_of_a_failed_test_tells_its_story_rather_than_the_server() {
    let (text, _) = run("on_purpose_with_a_universe", None);
    assert_eq!(text.matches("minikeeper: story").count(), 1, "{text}");
    assert_has(
        &text,
        &[
            "story::on_purpose_with_a_universe mine\nserver 127.0.0.1:",
            "/mine, at ",
        ],
    );
    assert_has(&text, &[" create2 /a EPHEMERAL 6 B -> OK\n"]);
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn stories_are_off_for_tests_that_pass_or_ask_for_none() {
    for (test, passes) in [
        ("on_purpose_without_a_story", false),
        ("on_purpose_and_passes", true),
    ] {
        let folder = folder(test);
        let (text, passed) = run(test, Some(&folder));
        assert_eq!(passed, passes);
        assert!(!text.contains("minikeeper: ") && !folder.exists(), "{text}");
    }
}

#[test]
fn folder_that_cannot_be_written_is_named() {
    let file = folder("file-not-folder");
    fs::write(&file, "").unwrap();
    let (text, _) = run("on_purpose_with_a_blocking_server", Some(&file));
    assert_has(&text, &["minikeeper: story", "\nnot saved: "]);
}

#[test]
fn text_is_short_and_on_one_line_each_whatever_clients_send() {
    let server = blocking::Server::builder().manual_clock().start().unwrap();
    let hostile = "/a\u{1b}[31m\nline";
    let mut wires: Vec<_> = (0..30)
        .map(|_| Wire::open(server.addr(), TIMEOUT_MS).0)
        .collect();
    for (number, wire) in wires.iter_mut().enumerate() {
        wire.must(&wire::create(
            &format!("/lock{number}"),
            b"",
            Mode::Persistent,
        ));
        for _ in 0..30 {
            let path = format!("/lock{number}/lock-");
            wire.must(&wire::create(
                &path,
                b"\x1b[31m\n",
                Mode::EphemeralSequential,
            ));
        }
        let _ = wire.call(&wire::exists(hostile, false));
        let _ = wire.call(&wire::exists(&format!("/{}", "x".repeat(10_000)), false));
    }
    for _ in 0..30 {
        server
            .inject(Fault::cut().at(hostile).optional())
            .unwrap()
            .keep();
    }
    let story = server
        .story()
        .with_title(hostile)
        .with_failure(&"x".repeat(5_000));
    assert_eq!(story.failure.len(), 4_003);
    let text = story.to_string();
    assert!(text.lines().count() <= 110, "{}", text.lines().count());
    assert!(
        text.lines().all(|line| line.chars().count() <= 203),
        "{text}"
    );
    assert!(
        !text.contains('\u{1b}') && !text.contains("\nline"),
        "{text}"
    );
    assert_has(
        &text,
        &[
            "and 29 more locks",
            "and 20 more sessions",
            "and 24 more faults",
        ],
    );
    assert_has(&text, &["the last 50 requests and events, without pings:"]);
}

#[test]
fn fault_that_is_removed_is_listed_with_its_hits() {
    let server = blocking::Server::builder().start().unwrap();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    let refused = Fault::error(ErrorCode::NoAuth).on(OpCode::GetData);
    let guard = server.inject(refused).unwrap();
    client.refused(&wire::get("/a", false));
    client.refused(&wire::get("/b", false));
    drop(guard);
    let text = server.story().to_string();
    let line = "\nfaults:\n  fault 1: error getData /b, acted 2 times, removed\n";
    assert_has(&text, &[line]);
}

#[test]
fn server_without_a_journal_says_so() {
    let builder = blocking::Server::builder().configure(|config| config.journal_bytes = Some(0));
    let server = builder.start().unwrap();
    let text = server.story().to_string();
    assert!(
        text.ends_with(
            "\nno locks\n\nno sessions\n\nno faults\n\nno journal: journal_bytes is 0\n"
        ),
        "{text}"
    );
}

#[test]
fn verb_returns_text_page_json_and_file_name() {
    let scene = scene(|_| {});
    let before = scene.server.next_journal_entry();
    let answer = done(get(
        scene.address(),
        "story?title=a%20test%3A%3Aof%2Flocks&failure=%3Cb%3E",
    ));
    assert_eq!(
        scene.server.next_journal_entry(),
        before,
        "the verb leaves no entry"
    );
    let text = answer["text"].as_str().unwrap();
    assert!(
        text.starts_with("minikeeper: story of a test::of/locks\n"),
        "{text}"
    );
    let name = answer["file_name"].as_str().unwrap();
    assert!(name.starts_with("a-test.of-locks-"), "{name}");
    let json: Value = serde_json::from_str(answer["json"].as_str().unwrap()).unwrap();
    assert_eq!(json["failure"], "<b>");
    for (field, verb) in [
        ("sessions", "sessions"),
        ("faults", "faults"),
        ("entries", "journal"),
    ] {
        let listed = &done(get(scene.address(), verb))[field];
        assert_eq!(&json[field], listed, "{verb}");
    }
    assert_eq!(json["locks"], done(get(scene.address(), "locks")));
    assert!(
        answer["html"]
            .as_str()
            .unwrap()
            .starts_with("<!doctype html>")
    );
    scene.end();
}

/// `docs/stories.md` shows this text.
#[test]
fn story_of_the_guide() {
    let (text, _) = run("on_purpose_with_a_server", None);
    let start = text.find("minikeeper: story").unwrap();
    let end = text[start..].find("\n\n\n").unwrap();
    let shown = normalised(&text[start..][..end]);
    expect_file!["../../docs/stories/rust.txt"].assert_eq(&(shown + "\n"));
}

/// Replaces what differs from run to run: ports, ids of sessions, UUIDs.
fn normalised(text: &str) -> String {
    let mut seen: Vec<String> = Vec::new();
    let mut number_of = |found: &str| {
        let known = seen.iter().position(|known| known == found);
        known.unwrap_or_else(|| {
            seen.push(found.to_owned());
            seen.len() - 1
        })
    };
    let mut out = String::new();
    for part in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && !"_:.-".contains(c)) {
        let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let end = &part[word.len()..];
        if let Some(port) = word.strip_prefix("127.0.0.1:") {
            out += &format!("127.0.0.1:{}{end}", 40_000 + number_of(port));
        } else if word.starts_with("0x1") {
            out += &format!("0x1000000000{:05x}{end}", number_of(word));
        } else if let Some((_, kind)) = word
            .strip_prefix("_c_")
            .and_then(|name| name.split_at_checked(36))
        {
            let number = number_of(&word[..39]);
            out += &format!("_c_{number:08x}{kind}{end}");
        } else {
            out += part;
        }
    }
    out
}
