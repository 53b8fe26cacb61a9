//! Four-letter words: `docs/zookeeper-protocol.md` section 18.

use std::io::{Read as _, Write as _};

use minikeeper_protocol::{CreateMode, OpCode, Request, SessionId, Zxid};
use minikeeper_test_kit::wire::{self, Wire, four_letter};

use crate::kit::{Scene, TIMEOUT_MS};

/// `docs/zookeeper-protocol.md` sections 18.1, rule 1, and 18.2: bytes after the word are ignored.
#[test]
fn known_words_are_answered_and_the_connection_closes() {
    let scene = Scene::new();
    for (word, answer) in [
        (&b"ruok"[..], "imok"),
        (b"ruok\n", "imok"),
        (b"ruok\r\nand more", "imok"),
        (b"isro", "rw"),
        (b"isro\n", "rw"),
    ] {
        assert_eq!(four_letter(scene.address(), word), answer);
    }
    scene.wait_alone();
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 18.3: the exact format, counters included.
#[test]
fn srvr_reports_version_zxid_and_counts() {
    let scene = Scene::new();
    let text = four_letter(scene.address(), b"srvr");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 9, "{text}");
    assert!(text.ends_with('\n'));
    assert!(lines[0].starts_with("Zookeeper version: 3.9."), "{text}");
    // Clients parse the number before the first dash.
    let version = lines[0].trim_start_matches("Zookeeper version: ");
    let (number, _) = version.split_once('-').unwrap();
    assert!(number.split('.').all(|part| part.parse::<u32>().is_ok()));
    assert_eq!(lines[1], "Latency min/avg/max: 0/0.0/0");
    // The bystander's handshake, create, set and get, of which the first three took a zxid, and
    // this word.
    assert_eq!(lines[2], "Received: 5");
    assert_eq!(lines[3], "Sent: 4");
    assert_eq!(lines[4], "Connections: 2");
    assert_eq!(lines[5], "Outstanding: 0");
    assert_eq!(lines[6], "Zxid: 0x3");
    assert_eq!(lines[7], "Mode: standalone");
    // The root counts twice: `docs/zookeeper-protocol.md` section 5.4, five on a fresh server.
    assert_eq!(lines[8], "Node count: 6");
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 18.6: kazoo parses `zookeeper.version`.
#[test]
fn envi_reports_the_version() {
    let scene = Scene::new();
    let text = four_letter(scene.address(), b"envi");
    assert!(
        text.starts_with("Environment:\nzookeeper.version=3.9."),
        "{text}"
    );
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 18.1, rule 2: an exception to the rule for half-closed
/// sockets (section 6.5).
#[test]
fn word_on_a_half_closed_socket_is_answered() {
    let scene = Scene::new();
    let mut client = scene.connect();
    client.send_raw(b"ruok");
    client.half_close();
    assert_eq!(client.rest(), b"imok");
    scene.end();
}

#[test]
fn word_sent_byte_by_byte_is_answered() {
    let scene = Scene::new();
    let mut client = scene.connect();
    for byte in b"ruok" {
        client.send_raw(&[*byte]);
    }
    assert_eq!(client.rest(), b"imok");
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 18.1, rule 1: other bytes are a frame length, which exceeds
/// the limit. Section 18.2: telnet's interrupt is known and has an empty answer.
#[test]
fn unknown_words_close_without_a_byte() {
    let scene = Scene::new();
    for word in [&b"abcd"[..], b"RUOK", b"stop", b"kill", b"\xff\xf4\xff\xfd"] {
        let mut client = scene.connect();
        client.send_raw(word);
        assert_eq!(client.rest(), b"", "{word:?}");
    }
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 2.1: words are recognized only before the first handshake.
#[test]
fn word_after_a_refused_handshake_is_ignored() {
    let scene = Scene::new();
    let mut client = scene.connect();
    let mut bytes = Vec::new();
    wire::resume(SessionId(1), &[0; 16], Zxid(0), 1000).encode(&mut bytes);
    bytes.extend_from_slice(b"ruok");
    client.send_raw(&bytes);
    assert_eq!(client.connect_response().timeout_ms, 0);
    client.expect_closed();
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 18.1, rules 3 and 4; the texts are ZooKeeper's.
#[test]
fn word_outside_the_whitelist_is_refused_and_srvr_always_answers() {
    let scene = Scene::with(|config| config.four_letter_whitelist = "ruok, isro".to_owned());
    let ask = |word: &[u8]| four_letter(scene.address(), word);
    assert_eq!(ask(b"ruok"), "imok");
    assert_eq!(ask(b"isro"), "rw");
    assert!(ask(b"srvr").contains("Mode: standalone\n"));
    for (word, name) in [
        (&b"mntr"[..], "mntr"),
        (b"cons", "cons"),
        (b"stmk\0\0\0\0\0\0\0\x01", "stmk"),
        (b"\xff\xf4\xff\xfd", "telnet close"),
    ] {
        let refused = format!("{name} is not executed because it is not in the whitelist.\n");
        assert_eq!(ask(word), refused);
    }
    // An unknown word closes the connection, whitelist or not.
    assert_eq!(ask(b"abcd"), "");
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 18.2: the mask is the eight bytes after the word, which
/// must have arrived with it.
#[test]
fn trace_mask_is_set_and_reported() {
    let scene = Scene::new();
    let ask = |word: &[u8]| four_letter(scene.address(), word);
    assert_eq!(ask(b"gtmk"), "306");
    assert_eq!(ask(b"stmk\0\0\0\0\0\0\x01\0"), "256");
    assert_eq!(ask(b"gtmk"), "256");
    assert_eq!(ask(b"stmk\0\0\0\0\0\0\x01"), "");
    assert_eq!(ask(b"gtmk"), "256");
    scene.end();
}

/// Captured from ZooKeeper: a connection that resumed its session has no last operation yet.
#[test]
fn resumed_connection_has_no_last_operation() {
    let scene = Scene::new();
    let (client, session) = scene.open_session();
    drop(client);
    scene.wait_alone();
    let mut client = scene.connect();
    let password = session.password.unwrap();
    client.resume(session.session_id, &password, Zxid(0), 10_000);
    let text = four_letter(scene.address(), b"cons");
    let resumed = format!("recved=1,sent=1,sid={},lop=null,", session.session_id);
    let after = "to=10000,lcxid=0x0,lzxid=0x0,lresp=0,llat=0,minlat=0,avglat=0,maxlat=0)\n";
    assert!(text.contains(&resumed) && text.contains(after), "{text}");
    scene.end();
}

/// Events count as sent, though another connection's turn sends them; `crst` resets the counts.
#[test]
fn events_from_other_connections_count_as_sent_until_crst() {
    let scene = Scene::new();
    let (mut watcher, session) = scene.open_session();
    watcher.refused(&wire::exists("/n", true));
    let mut writer = scene.open();
    writer.must(&wire::create("/n", b"", CreateMode::Persistent));
    watcher.event();
    let line_of = |text: String| {
        let sid = format!("sid={},", session.session_id);
        let line = text.lines().find(|line| line.contains(&sid));
        line.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    let line = line_of(four_letter(scene.address(), b"cons"));
    assert!(line.contains("recved=2,sent=3,"), "{line}");
    assert_eq!(
        four_letter(scene.address(), b"crst"),
        "Connection stats reset.\n"
    );
    let line = line_of(four_letter(scene.address(), b"cons"));
    assert!(line.contains("recved=0,sent=0,"), "{line}");
    drop((watcher, writer));
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 18.8: a connection whose watches have all fired still
/// counts until it removes a watch or closes.
#[test]
fn connection_with_fired_watches_counts_until_it_removes_a_watch() {
    let scene = Scene::new();
    let mut client = scene.open();
    let ask = || four_letter(scene.address(), b"wchs");
    client.refused(&wire::exists("/n", true));
    client.must(&wire::children("/", true));
    assert_eq!(
        ask(),
        "1 connections watching 1 paths\nTotal watches:1\n",
        "the watch on children is in the other table"
    );
    client.send(&wire::create("/n", b"", CreateMode::Persistent));
    client.event();
    client.event();
    client.answer(OpCode::Create).outcome.unwrap();
    assert_eq!(ask(), "1 connections watching 0 paths\nTotal watches:0\n");
    client.must(&wire::get("/n", true));
    client.must(&Request::RemoveWatches {
        path: Some("/n".into()),
        kind: 3,
    });
    assert_eq!(ask(), "0 connections watching 0 paths\nTotal watches:0\n");
    drop(client);
    scene.end();
}

/// A listing has a limited number of lines, and states how many are left out.
#[test]
fn long_listings_are_cut_and_state_what_is_left_out() {
    let scene = Scene::with(|config| config.four_letter_rows_max = 3);
    let mut client = scene.open();
    for name in ["/a", "/b", "/c", "/d"] {
        client.must(&wire::create(name, b"", CreateMode::Ephemeral));
        client.must(&wire::get(name, true));
    }
    let others: Vec<_> = (0..3).map(|_| scene.open()).collect();
    let left_out = |count: usize| {
        format!(
            "{count} more lines are left out (four_letter_rows_max 3, reply_bytes_max 67108864)\n"
        )
    };
    for (word, count, lines) in [
        // Five connections, and the one that sends the word.
        (&b"cons"[..], 3, 5),
        (b"stat", 3, 15),
        // One session and four paths; four paths with a session each.
        (b"wchc", 2, 5),
        (b"wchp", 5, 5),
        // Two deadlines, five sessions; two owners, five paths; six connections.
        (b"dump", 4 + 4 + 3, 18),
    ] {
        let text = four_letter(scene.address(), word);
        assert!(text.ends_with(&left_out(count)), "{text}");
        assert_eq!(text.lines().count(), lines, "{text}");
    }
    drop((client, others));
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 18.5: the port is the one that the server listens on.
#[test]
fn conf_reports_the_settings_in_force() {
    let scene = Scene::with(|config| {
        config.tick_time_ms = 500;
        config.connections_per_address_max = 60;
    });
    let port = scene.address().port();
    let text = four_letter(scene.address(), b"conf");
    assert!(text.starts_with(&format!("clientPort={port}\nsecureClientPort=-1\n")));
    let rest = "tickTime=500\nmaxClientCnxns=60\nminSessionTimeout=1000\n\
                maxSessionTimeout=10000\nclientPortListenBacklog=-1\nserverId=0\n";
    assert!(text.ends_with(rest), "{text}");
    scene.end();
}

/// Captured from ZooKeeper 3.9.5: quota metrics are summed per child of the root. Limits add up,
/// those of subtrees included; without a soft limit the hard limit counts.
#[test]
fn mntr_sums_quotas_per_child_of_the_root() {
    let scene = Scene::new();
    let mut client = scene.open();
    for (path, data) in [
        ("/app", "xyz"),
        ("/app/sub", ""),
        ("/b", ""),
        ("/zookeeper/quota/app", ""),
        ("/zookeeper/quota/app/zookeeper_stats", "count=2,bytes=3"),
        ("/zookeeper/quota/app/zookeeper_limits", "count=5,bytes=100"),
        ("/zookeeper/quota/app/sub", ""),
        (
            "/zookeeper/quota/app/sub/zookeeper_limits",
            "count=1,bytes=1",
        ),
        ("/zookeeper/quota/b", ""),
        (
            "/zookeeper/quota/b/zookeeper_limits",
            "count=7,bytes=-1,byteHardLimit=20",
        ),
        ("/app/new", "0123456789"),
    ] {
        client.must(&wire::create(path, data.as_bytes(), CreateMode::Persistent));
    }
    let text = four_letter(scene.address(), b"mntr");
    let mut quotas: Vec<_> = text.lines().filter(|line| line.contains("quota")).collect();
    quotas.sort_unstable();
    assert_eq!(
        quotas,
        [
            "zk_app_quota_bytes_limit_per_namespace\t101",
            "zk_app_quota_bytes_usage_per_namespace\t13",
            "zk_app_quota_count_limit_per_namespace\t6",
            "zk_app_quota_count_usage_per_namespace\t3",
            "zk_b_quota_bytes_limit_per_namespace\t20",
            "zk_b_quota_count_limit_per_namespace\t7",
        ]
    );
    drop(client);
    scene.end();
}

/// `docs/zookeeper-protocol.md` sections 18.2 and 22.2: one line per 128 zxids, none before the
/// first.
#[test]
fn hash_reports_a_digest_every_128_zxids_if_enabled() {
    let hashes: Vec<_> = [true, true, false]
        .into_iter()
        .map(|tree_digests| {
            let scene = Scene::with(|config| config.tree_digests = tree_digests);
            let mut client = scene.open();
            client.must(&wire::create("/n", b"", CreateMode::Persistent));
            assert_eq!(four_letter(scene.address(), b"hash"), "");
            let zxid = client.call(&wire::set("/n", b"0")).zxid;
            for count in zxid.0..128 {
                client.must(&wire::set("/n", count.to_string().as_bytes()));
            }
            let at_128 = four_letter(scene.address(), b"hash");
            client.must(&wire::set("/n", b"later"));
            assert_eq!(four_letter(scene.address(), b"hash"), at_128);
            drop(client);
            scene.end();
            at_128
        })
        .collect();
    assert_eq!(
        hashes[0], hashes[1],
        "the same changes give the same digest"
    );
    assert!(hashes[0].starts_with("80: ") && hashes[0].ends_with('\n'));
    assert_eq!(hashes[2], "");
}

#[test]
fn repeated_words_leave_no_connection_behind() {
    let scene = Scene::new();
    let mut client = scene.open();
    client.must(&wire::create("/n", b"", CreateMode::Persistent));
    for _ in 0..200 {
        assert!(four_letter(scene.address(), b"srvr").contains("Node count: 7\n"));
    }
    drop(client);
    scene.wait_alone();
    scene.end();
}

/// A word about millions of watches held the server until it was answered. Now a thread answers it; the
/// connection waits for that even if its client has ended its side, as `nc` does.
#[test]
fn words_about_a_large_state_are_answered_as_those_about_a_small_one() {
    const WATCHES: usize = 3_000;
    let scene = Scene::new();
    let (mut client, _) = Wire::open(scene.address(), TIMEOUT_MS);
    let exist = (0..WATCHES).map(|number| format!("/absent-{number}").as_str().into());
    client.must(&Request::SetWatches {
        relative_zxid: Zxid(1 << 40),
        data: Vec::new(),
        exist: exist.collect(),
        child: Vec::new(),
    });
    assert_eq!(
        four_letter(scene.address(), b"wchs"),
        format!("1 connections watching {WATCHES} paths\nTotal watches:{WATCHES}\n")
    );
    for (word, lines) in [(b"wchc", 1 + WATCHES), (b"wchp", 2 * WATCHES)] {
        let text = four_letter(scene.address(), word);
        assert_eq!(text.lines().filter(|line| !line.is_empty()).count(), lines);
    }
    assert_eq!(four_letter(scene.address(), b"ruok\n"), "imok");
    let mut half_closed = std::net::TcpStream::connect(scene.address()).unwrap();
    half_closed.set_read_timeout(Some(wire::PATIENCE)).unwrap();
    half_closed.write_all(b"wchs").unwrap();
    half_closed.shutdown(std::net::Shutdown::Write).unwrap();
    let mut text = String::new();
    half_closed.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("1 connections"), "{text}");
    // The watches of a client that has left are counted no more, although they are removed later.
    drop(client);
    scene.wait_alone();
    assert_eq!(
        four_letter(scene.address(), b"wchs"),
        "0 connections watching 0 paths\nTotal watches:0\n"
    );
    scene.end();
}
