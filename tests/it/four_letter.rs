//! Four-letter words. Source: reference section 18.

use minikeeper_protocol::{CreateMode, SessionId};
use minikeeper_tests::wire::{self, four_letter};

use crate::kit::Scene;

/// Reference section 18.1, rule 1, and 18.2: bytes behind the word are ignored.
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

/// Reference section 18.3: the exact shape, counters included.
#[test]
fn srvr_tells_version_zxid_and_counts() {
    let scene = Scene::new();
    let text = four_letter(scene.address(), b"srvr");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 9, "{text}");
    assert!(text.ends_with('\n'));
    assert!(lines[0].starts_with("Zookeeper version: 3.9."), "{text}");
    // Clients parse the number in front of the first dash.
    let version = lines[0].trim_start_matches("Zookeeper version: ");
    let (number, _) = version.split_once('-').unwrap();
    assert!(number.split('.').all(|part| part.parse::<u32>().is_ok()));
    assert_eq!(lines[1], "Latency min/avg/max: 0/0.0/0");
    // The bystander's handshake, create, set and get; three of them changed something.
    assert_eq!(lines[2], "Received: 4");
    assert_eq!(lines[3], "Sent: 4");
    assert_eq!(lines[4], "Connections: 2");
    assert_eq!(lines[5], "Outstanding: 0");
    assert_eq!(lines[6], "Zxid: 0x3");
    assert_eq!(lines[7], "Mode: standalone");
    // The root counts twice: reference section 5.4, five on a fresh server.
    assert_eq!(lines[8], "Node count: 6");
    scene.end();
}

/// Reference section 18.6: `zookeeper.version` is what kazoo parses.
#[test]
fn envi_tells_the_version() {
    let scene = Scene::new();
    let text = four_letter(scene.address(), b"envi");
    assert!(
        text.starts_with("Environment:\nzookeeper.version=3.9."),
        "{text}"
    );
    scene.end();
}

/// Reference section 18.1, rule 2: the exception among half-closed sockets (section 6.5).
#[test]
fn word_on_a_half_closed_socket_is_answered() {
    let scene = Scene::new();
    let mut client = scene.connect();
    client.send_raw(b"ruok");
    client.half_close();
    assert_eq!(client.rest(), b"imok");
    scene.end();
}

/// Four bytes are four bytes, however they arrive.
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

/// Reference section 18.1, rule 1: anything else is a length, and far too long.
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

/// Reference section 2.1: words count only while no handshake has been accepted.
#[test]
fn word_after_a_refused_handshake_is_not_looked_at() {
    let scene = Scene::new();
    let mut client = scene.connect();
    let mut bytes = Vec::new();
    wire::resume(SessionId(1), &[0; 16], minikeeper_protocol::Zxid(0), 1000).encode(&mut bytes);
    bytes.extend_from_slice(b"ruok");
    client.send_raw(&bytes);
    assert_eq!(client.connect_response().timeout_ms, 0);
    client.expect_closed();
    scene.end();
}

/// A scrape counts as a connection and leaves nothing behind.
#[test]
fn many_scrapes_leave_nothing_behind() {
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
