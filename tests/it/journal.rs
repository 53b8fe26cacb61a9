//! The journal: what it contains after a scene, its filters and verifications.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpStream},
    num::NonZero,
    time::Duration,
};

use expect_test::expect;
use minikeeper::{
    Expected, Fault, JournalError, JournalFilter, Occurrence, OpCode, Universe, Znode,
    blocking::Server, tree,
};
use minikeeper_protocol::{CreateMode, ErrorCode, MultiOp, Request};
use minikeeper_test_kit::wire::{self, Wire};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::{
    http::{connect, done, get, post, said, scene},
    kit::{Scene, TIMEOUT_MS, start, wait_until},
};

/// Returns the entries as text, without times, with sessions as `S1`, `S2` in order of appearance.
fn lines(universe: &Universe, filter: &JournalFilter) -> String {
    let mut sessions = Vec::new();
    let mut text = String::new();
    for entry in universe.journal(filter).unwrap() {
        let mut line = entry.to_string().trim_start().to_owned();
        line.replace_range(..line.find(' ').unwrap(), "");
        if let Some(session) = entry.session {
            if !sessions.contains(&session) {
                sessions.push(session);
            }
            let number = sessions.iter().position(|it| *it == session).unwrap() + 1;
            line = line.replace(&session.to_string(), &format!("S{number}"));
        }
        text += line.trim_start();
        text.push('\n');
    }
    text
}

fn wait_closed(server: &Server) {
    wait_until("all connections are closed", || server.connections() == 0);
}

#[test]
fn journal_contains_what_clients_did_and_what_it_caused() {
    let server = start();
    let (mut one, _) = Wire::open(server.addr(), TIMEOUT_MS);
    let (mut two, _) = Wire::open(server.addr(), TIMEOUT_MS);
    one.must(&wire::create("/a", b"four", CreateMode::Persistent));
    one.must(&wire::create("/a/n-", b"", CreateMode::EphemeralSequential));
    two.must(&wire::get("/a", true));
    two.refused(&wire::get("/missing", false));
    one.must(&wire::set("/a", b"sixsix"));
    two.event();
    let set = MultiOp::SetData {
        path: Some("/a".into()),
        data: Some(b"x".to_vec().into()),
        version: 7,
    };
    one.send(&Request::Multi(vec![set]));
    let _ = one.answer(OpCode::Multi);
    one.must(&wire::exists("/a", false));
    one.must(&Request::CloseSession);
    one.expect_closed();
    drop(two);
    wait_closed(&server);
    expect![[r#"
        #1 connected
        #1 S1 createSession timeout 10000 ms -> OK
        #1 S1 session opened, timeout 10000 ms
        #2 connected
        #2 S2 createSession timeout 10000 ms -> OK
        #2 S2 session opened, timeout 10000 ms
        #1 S1 create /a PERSISTENT 4 B -> OK
        #1 S1 create /a/n- EPHEMERAL_SEQUENTIAL -> OK /a/n-0000000000
        #2 S2 getData /a watch -> OK
        #2 S2 getData /missing -> NONODE
        #1 S1 setData /a 6 B -> OK
        #2 S2 <- NodeDataChanged /a
        #1 S1 multi [setData /a version 7 1 B] -> BADVERSION
        #1 S1 exists /a -> OK
        #1 S1 closeSession -> OK
        S1 deleted /a/n-0000000000 (session closed)
        S1 session closed
        #1 S1 disconnected: session closed by its client
        #2 S2 disconnected: closed by the client
    "#]]
    .assert_eq(&lines(&server, &JournalFilter::new()));
}

#[test]
fn journal_shows_faults_clock_and_expiry() {
    let server = start();
    let (mut one, _) = Wire::open(server.addr(), TIMEOUT_MS);
    one.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    let (mut two, _) = Wire::open(server.addr(), 60_000);
    two.must(&wire::exists("/e", true));
    let fault = Fault::lose_reply().on(OpCode::Create);
    server.inject(fault).unwrap().keep();
    one.send(&wire::create("/lost", b"", CreateMode::Persistent));
    one.expect_closed();
    server.advance(Duration::from_secs(20));
    two.event();
    let kinds = |kind: &str| lines(&server, &JournalFilter::new().kind(kind));
    expect![[r#"
        #1 S1 fault 1: lose-reply create /lost
    "#]]
    .assert_eq(&kinds("fault"));
    expect![[r#"
        clock advanced by 10000 ms
        clock advanced by 10000 ms
    "#]]
    .assert_eq(&kinds("clock"));
    expect![[r#"
        #1 S1 session opened, timeout 10000 ms
        #2 S2 session opened, timeout 60000 ms
        S1 session expired
    "#]]
    .assert_eq(&kinds("session"));
    expect![[r#"
        #2 S1 <- NodeDeleted /e
    "#]]
    .assert_eq(&kinds("event"));
}

/// The record of a request that a fault had refused was without operation and path, so that no filter
/// found it.
#[test]
fn request_that_a_fault_refuses_keeps_its_operation_and_path() {
    let server = start();
    let (mut one, _) = Wire::open(server.addr(), TIMEOUT_MS);
    let fault = Fault::error(ErrorCode::BadVersion).on(OpCode::Create);
    server.inject(fault).unwrap().keep();
    let create = wire::create("/a", b"12", CreateMode::Ephemeral);
    assert_eq!(one.refused(&create), ErrorCode::BadVersion);
    expect![[r#"
        #1 S1 create /a EPHEMERAL 2 B -> BADVERSION
    "#]]
    .assert_eq(&lines(&server, &"create /a -> BADVERSION".parse().unwrap()));
}

/// Clients saw events of deletions, and their locks gone, without an entry that said why.
#[test]
fn journal_contains_what_the_server_deletes_itself() {
    let scene = scene(|config| config.container_check_interval_ms = 1_000);
    let server = &scene.server;
    let (mut one, expiring) = Wire::open(scene.address(), TIMEOUT_MS);
    let (mut two, _) = Wire::open(scene.address(), TIMEOUT_MS);
    let znode = Znode::from("").time_to_live(Duration::from_secs(5));
    let container = Znode::from("").container();
    server
        .seed(&tree! { "/ttl" => znode, "/locks" => container })
        .unwrap();
    one.must(&wire::create("/locks/a", b"", CreateMode::Ephemeral));
    one.must(&wire::create("/unwatched", b"", CreateMode::Ephemeral));
    two.must(&wire::create("/own", b"", CreateMode::Ephemeral));
    two.must(&wire::exists("/locks/a", true));
    server.clear_journal().unwrap();
    let mut tail = server.tail("deleted".parse().unwrap()).unwrap();
    server.expire(expiring.session_id).unwrap();
    two.event();
    one.expect_closed();
    server.advance(Duration::from_secs(6));
    two.must(&Request::CloseSession);
    two.expect_closed();
    expect![[r#"
        S1 deleted /locks/a (session expired)
        S1 deleted /unwatched (session expired)
        deleted /locks (empty container)
        deleted /ttl (time to live over)
        S2 deleted /own (session closed)
    "#]]
    .assert_eq(&lines(server, &"deleted".parse().unwrap()));
    expect![[r#"
        S1 deleted /locks/a (session expired)
        #3 S2 <- NodeDeleted /locks/a
    "#]]
    .assert_eq(&lines(server, &"/locks/a".parse().unwrap()));
    let deleted = done(get(scene.address(), "journal?kind=deleted"));
    let mut shown = String::new();
    for entry in deleted["entries"].as_array().unwrap() {
        let cause = entry["cause"].as_u64().map(|number| {
            let since = format!("journal?since={number}&limit=1000");
            let all = done(get(scene.address(), &since));
            all["entries"][0]["op"].clone()
        });
        let owned = entry["session"].is_string();
        shown += &format!("{} {} {owned} {cause:?}\n", entry["path"], entry["why"]);
        assert!(entry["zxid"].as_str().unwrap().starts_with("0x"), "{entry}");
    }
    expect![[r#"
        "/locks/a" "session_expired" true None
        "/unwatched" "session_expired" true None
        "/locks" "empty_container" false None
        "/ttl" "time_to_live" false None
        "/own" "session_closed" true Some(String("closeSession"))
    "#]]
    .assert_eq(&shown);
    let runtime = Builder::new_current_thread().build().unwrap();
    let tailed = runtime.block_on(tail.next(NonZero::<usize>::MIN)).unwrap();
    assert!(matches!(&tailed[0].what, Occurrence::Deleted { path, .. } if path == "/locks/a"));
    scene.end();
}

#[test]
fn event_names_the_request_that_caused_it() {
    let server = start();
    let (mut one, _) = Wire::open(server.addr(), TIMEOUT_MS);
    one.must(&wire::create("/a", b"", CreateMode::Persistent));
    one.must(&wire::exists("/a", true));
    one.send(&wire::delete("/a"));
    one.event();
    let delete = JournalFilter::new().op("delete").unwrap();
    let delete = server.journal(&delete).unwrap().remove(0);
    let event = server.journal(&JournalFilter::new().kind("event")).unwrap();
    let Occurrence::Event { cause, .. } = event[0].what else {
        panic!("{event:?}");
    };
    assert_eq!(cause, Some(delete.number));
}

#[test]
fn journal_of_a_universe_contains_its_own_clients_only() {
    let server = start();
    let mine = server.create_universe("mine").unwrap();
    let (mut other, _) = Wire::open(server.addr(), TIMEOUT_MS);
    other.must(&wire::create("/other", b"", CreateMode::Persistent));
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/mine/a", b"", CreateMode::Persistent));
    client.must(&Request::CloseSession);
    client.expect_closed();
    wait_until("the connection is closed", || mine.connections() == 0);
    expect![[r#"
        #2 S1 connected
        #2 S1 create /a PERSISTENT -> OK
        #2 S1 closeSession -> OK
        S1 session closed
        #2 S1 disconnected: session closed by its client
    "#]]
    .assert_eq(&lines(&mine, &JournalFilter::new()));
    let of_mine = JournalFilter::new().path("/mine/**").unwrap();
    assert_eq!(server.count(&of_mine), Ok(0));
}

#[test]
fn numbers_of_connections_are_never_reused() {
    let server = start();
    for _ in 0..3 {
        let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
        client.must(&Request::CloseSession);
        client.expect_closed();
        wait_closed(&server);
    }
    let opened = JournalFilter::new().kind("connection_opened");
    let opened = server.journal(&opened).unwrap();
    let numbers: Vec<_> = opened.iter().map(|entry| entry.connection).collect();
    assert_eq!(numbers, [Some(1), Some(2), Some(3)]);
}

/// Neither data of znodes nor passwords, in any representation of an entry.
#[test]
fn journal_contains_no_data_and_no_secret() {
    let scene = scene(|_| {});
    let mut client = scene.open();
    client.must(&wire::create("/a", b"s3cret", CreateMode::Persistent));
    client.must(&wire::set("/a", b"s3cret"));
    client.must(&Request::Auth {
        kind: 0,
        scheme: Some("digest".into()),
        data: Some(b"user:s3cret".to_vec().into()),
    });
    done(post(
        scene.address(),
        "seed",
        &json!({"yaml": "/b: s3cret"}),
    ));
    for (verb, data) in [("create", "data"), ("set", "data"), ("set", "data_base64")] {
        let body = json!({"path": "/c", data: "s3cret++"});
        done(post(scene.address(), verb, &body));
    }
    let all = done(get(scene.address(), "journal"));
    assert!(!all.to_string().contains("s3cret"), "{all}");
    for line in [
        r#"verb create path=\"/c\" data=..."#,
        r#"verb set path=\"/c\" data_base64=..."#,
    ] {
        assert!(all.to_string().contains(line), "{line}: {all}");
    }
    let debug = format!("{:?}", scene.server.journal(&JournalFilter::new()));
    assert!(!debug.contains("s3cret"), "{debug}");
    assert!(all.to_string().contains("verb seed yaml=..."), "{all}");
    scene.end();
}

#[test]
fn verification_counts_and_shows_the_nearest_misses() {
    let server = start();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/locks", b"", CreateMode::Persistent));
    client.must(&wire::create("/locks/a", b"", CreateMode::Ephemeral));
    let creates: JournalFilter = "create /locks/* -> OK".parse().unwrap();
    assert_eq!(server.verify(&creates, Expected::Exactly(1)), Ok(1));
    assert_eq!(server.verify(&creates, Expected::AtMost(1)), Ok(1));
    let missing: JournalFilter = "create /lock/* -> OK".parse().unwrap();
    assert_eq!(server.verify(&missing, Expected::Exactly(0)), Ok(0));
    let error = server.verify(&missing, Expected::AtLeast(1)).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("create /lock/* -> OK: 0 found, at least 1 expected; nearest:\n  "),
        "{text}"
    );
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.contains("create /locks/a EPHEMERAL -> OK"), "{text}");

    let [first, second] = ["create /locks", "create /locks/a"].map(|text| text.parse().unwrap());
    let order: [JournalFilter; 2] = [first, second];
    assert_eq!(server.verify_order(&order), Ok(()));
    let reversed = [order[1].clone(), order[0].clone()];
    let text = server.verify_order(&reversed).unwrap_err().to_string();
    assert!(
        text.starts_with("create /locks: not found after "),
        "{text}"
    );
    assert!(text.ends_with("(too early)"), "{text}");
}

#[test]
fn dropped_entries_are_an_error_unless_the_question_is_about_later_ones() {
    let scene = Scene::with(|config| config.journal_bytes = Some(10_000));
    let mut client = scene.open();
    let gets = JournalFilter::new().op("getData").unwrap();
    for _ in 0..500 {
        client.must(&wire::get("/bystander", false));
    }
    let Err(JournalError::Incomplete { oldest }) = scene.server.count(&gets) else {
        panic!("{:?}", scene.server.count(&gets));
    };
    assert!(oldest > 400, "{oldest}");
    let next = scene.server.next_journal_entry().unwrap();
    client.must(&wire::get("/bystander", false));
    assert_eq!(scene.server.count(&gets.clone().since(next)), Ok(1));
    scene.server.clear_journal().unwrap();
    assert_eq!(scene.server.count(&gets), Ok(0));
    scene.end();
}

#[test]
fn verbs_read_and_verify_the_journal() {
    let scene = scene(|_| {});
    let mut client = scene.open();
    client.must(&wire::create("/a", b"12", CreateMode::Persistent));
    client.refused(&wire::get("/b", false));
    let failed = done(get(scene.address(), "journal?result=error"));
    let entries = failed["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "{failed}");
    let entry = &entries[0];
    assert_eq!(
        (&entry["op"], &entry["path"], &entry["result"]),
        (&json!("getData"), &json!("/b"), &json!("NONODE"))
    );
    assert_eq!(entry["kind"], "request");
    assert!(entry["address"].as_str().unwrap().starts_with("127.0.0.1:"));
    let next = failed["next"].as_u64().unwrap();
    assert!(next > entry["number"].as_u64().unwrap());
    let later = done(get(scene.address(), &format!("journal?since={next}")));
    assert_eq!(later["entries"], json!([]));
    let last = done(get(scene.address(), "journal?op=create&limit=1"));
    assert_eq!(last["entries"][0]["path"], "/a");
    let count = done(get(scene.address(), "count?path=/a&op=create"));
    assert_eq!(count["count"], 1);
    let verified = post(
        scene.address(),
        "verify",
        &json!({"path": "/a", "exactly": 1}),
    );
    assert_eq!(done(verified)["count"], 1);
    let refused = post(scene.address(), "verify", &json!({"path": "/c"}));
    assert!(said(&refused, 409).starts_with("/c: 0 found, at least 1 expected"));
    let order = json!({"in_order": ["create /a", "getData /b -> NONODE"]});
    assert_eq!(done(post(scene.address(), "verify", &order))["count"], 2);
    for (wrong, sentence) in [
        ("journal?op=get", "filter: \"get\" is not an operation"),
        ("journal?result=BAD", "filter: \"BAD\" is not OK"),
        ("journal?session=x", "is not a session id"),
        ("journal?path=a", "must begin with"),
        ("count?kind=x", "is not one of"),
    ] {
        let refused = get(scene.address(), wrong);
        assert!(said(&refused, 400).contains(sentence), "{refused:?}");
    }
    done(post(scene.address(), "clear_journal", &json!({})));
    assert_eq!(done(get(scene.address(), "count?op=create"))["count"], 0);
    scene.end();
}

#[test]
fn server_without_a_journal_says_how_to_get_one() {
    let scene = scene(|config| config.journal_bytes = Some(0));
    for answer in [
        get(scene.address(), "journal"),
        get(scene.address(), "count"),
        get(scene.address(), "tail"),
        post(scene.address(), "verify", &json!({})),
        post(scene.address(), "clear_journal", &json!({})),
    ] {
        assert!(said(&answer, 409).contains("--journal-bytes"), "{answer:?}");
    }
    scene.end();
}

/// A client that follows the journal over HTTP.
struct Follower(BufReader<TcpStream>);

impl Follower {
    fn open(address: SocketAddr, path: &str) -> Self {
        let mut stream = connect(address);
        // The answer to HTTP 1.0 comes without chunks.
        let request = format!("GET /v1/{path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut follower = Self(BufReader::new(stream));
        assert_eq!(
            follower.line().as_deref(),
            Some("HTTP/1.0 200 OK"),
            "{path}"
        );
        while follower.line().unwrap() != "" {}
        follower
    }

    /// Returns the next line; `None` at the end.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let length = self.0.read_line(&mut line).unwrap();
        (length > 0).then(|| line.trim_end().to_owned())
    }

    /// Returns the next entry; `None` at the end.
    fn entry(&mut self) -> Option<Value> {
        loop {
            let line = self.line()?;
            if !line.is_empty() {
                return Some(serde_json::from_str(&line).unwrap());
            }
        }
    }
}

#[test]
fn stream_has_entries_as_they_are_made_until_the_universe_is_dropped() {
    let scene = scene(|_| {});
    let mut client = scene.open();
    client.must(&wire::get("/bystander", false));
    let universe = scene.server.create_universe("u").unwrap().keep();
    let mut gets = Follower::open(scene.address(), "tail?op=getData");
    let mut verbs = Follower::open(scene.address(), "universes/u/tail?kind=verb&since=1");
    client.must(&wire::exists("/bystander", false));
    client.refused(&wire::get("/missing", false));
    let entry = gets.entry().unwrap();
    assert_eq!(
        (&entry["path"], &entry["result"]),
        (&json!("/missing"), &json!("NONODE"))
    );
    client.must(&wire::get("/bystander", false));
    assert_eq!(gets.entry().unwrap()["path"], "/bystander");

    done(post(
        scene.address(),
        "universes/u/create",
        &json!({"path": "/x"}),
    ));
    let verb = verbs.entry().unwrap();
    assert!(
        verb["what"].as_str().unwrap().starts_with("create"),
        "{verb}"
    );
    scene.server.drop_universe(&universe.name());
    assert_eq!(verbs.entry(), None);
    drop(gets);
    scene.end();
}

#[test]
fn slow_reader_learns_how_many_entries_it_has_lost() {
    let scene = Scene::with(|config| config.journal_bytes = Some(10_000));
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let mut client = scene.open();
    let max = NonZero::new(100_000).unwrap();
    let mut tail = scene.server.tail(JournalFilter::new()).unwrap();
    let first = scene.server.next_journal_entry().unwrap();
    for _ in 0..500 {
        client.must(&wire::get("/bystander", false));
    }
    let entries = runtime.block_on(tail.next(max)).unwrap();
    let Occurrence::Omitted { count } = entries[0].what else {
        panic!("{:?}", entries[0]);
    };
    assert!(count > 400, "{count}");
    assert_eq!(entries[0].number, first);
    assert_eq!(entries[1].number, first + count);
    assert_eq!(entries.len() as u64, 500 - count + 1);
    client.must(&wire::get("/bystander", false));
    let next = runtime.block_on(tail.next(max)).unwrap();
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].number, first + 500);
    scene.end();
}

#[test]
fn number_of_streams_has_a_limit() {
    let scene = scene(|_| {});
    let mut streams: Vec<_> = (0..64)
        .map(|_| Follower::open(scene.address(), "tail"))
        .collect();
    let refused = get(scene.address(), "tail");
    assert!(said(&refused, 409).starts_with("64 clients follow the journal"));
    streams.pop();
    wait_until("a stream has ended", || {
        get_head(scene.address(), "tail") == "HTTP/1.0 200 OK"
    });
    drop(streams);
    scene.end();
}

/// Returns the first line of an answer, and closes the connection.
fn get_head(address: SocketAddr, path: &str) -> String {
    let mut stream = connect(address);
    let request = format!("GET /v1/{path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}
