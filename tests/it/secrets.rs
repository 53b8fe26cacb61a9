//! Secrets that must not leak into replies or logs: passwords, tokens and their hashes. One test
//! per security advisory about ZooKeeper, named by its number, shows the behaviour here.
//!
//! `docs/zookeeper-protocol.md` sections 9.9, 12.6 and 18.1.

use std::{fmt::Write as _, net::SocketAddr};

use minikeeper_protocol::{
    Acl, AclList, Create, CreateMode, ErrorCode, EventKind, Perms, Reply, Request,
};
use minikeeper_test_kit::wire::{self, Wire};

use crate::{
    http::{answer, raw, request},
    kit::{Logged, Scene, TIMEOUT_MS},
};

const WORDS: [&[u8; 4]; 18] = [
    b"conf", b"cons", b"crst", b"dirs", b"dump", b"envi", b"gtmk", b"hash", b"isro", b"mntr",
    b"ruok", b"srst", b"srvr", b"stat", b"stmk", b"wchc", b"wchp", b"wchs",
];

/// The digest of `super:planted-super`.
const SUPER_DIGEST: &str = "super:bGFudGVk+planted-super-hash=";

fn auth(data: &[u8]) -> Request {
    Request::Auth {
        kind: 0,
        scheme: Some("digest".into()),
        data: Some(data.to_vec().into()),
    }
}

fn create(path: &str, entries: &[(Perms, &str, &str)]) -> Request {
    let entries: Vec<_> = entries
        .iter()
        .map(|(perms, scheme, id)| Acl {
            perms: *perms,
            scheme: Some((*scheme).into()),
            id: Some((*id).into()),
        })
        .collect();
    let mut create = Create::new(path, b"planted-data", CreateMode::Persistent);
    create.acl = AclList::new(&entries);
    Request::Create(create)
}

/// Returns the forms in which a secret may appear in a text.
fn forms(secret: &[u8]) -> [String; 4] {
    let hex = |separator: &str| {
        let bytes = secret.iter().map(|byte| format!("{byte:02x}"));
        bytes.collect::<Vec<_>>().join(separator)
    };
    let decimal: Vec<_> = secret.iter().map(u8::to_string).collect();
    [
        String::from_utf8_lossy(secret).into_owned(),
        hex(""),
        decimal.join(", "),
        secret.escape_ascii().to_string(),
    ]
}

#[track_caller]
fn assert_no_leak(text: &str, secrets: &[&[u8]]) {
    for secret in secrets {
        for form in forms(secret) {
            let line = text.lines().find(|line| line.contains(&form));
            assert_eq!(line, None, "leaks {form:?}");
        }
    }
}

fn control(address: SocketAddr, token: &str, verb: &str) -> String {
    let headers = format!("Host: localhost\r\nAuthorization: Bearer {token}\r\n");
    let answer = request(address, &format!("GET /v1/{verb}"), &headers, "");
    format!("{answer:?}")
}

/// Uses recognizable secrets wherever the server takes one, correctly and wrongly. Returns
/// everything that it discloses, and the session's password: logs at every level, four-letter
/// words, the control API's answers on sessions and itself, and the `Debug` form of settings and
/// server.
fn disclosed() -> (String, Vec<u8>) {
    let mut settings = String::new();
    let logged = Logged::start_at(tracing::Level::TRACE, |config| {
        config.super_digest = Some(SUPER_DIGEST.into());
        config.sasl_users = vec![("ann".to_owned(), "planted-sasl".into())];
        config.control.token = Some("planted-token".into());
        config.control.is_enabled = true;
        // The `Debug` form of the settings is checked too.
        let _ = writeln!(settings, "{config:?}");
    });
    let address = logged.address();
    let (mut bob, session) = Wire::open(address, TIMEOUT_MS);
    let password = session.password.clone().unwrap().to_vec();
    bob.must(&auth(b"bob:planted-digest"));
    bob.must(&auth(b"super:planted-guess"));
    bob.must(&create("/a", &[(Perms::ALL, "auth", "")]));
    bob.must(&wire::get("/a", true));
    // A token that starts the login, then one that is an invalid response to the challenge.
    for _ in 0..2 {
        bob.send(&Request::Sasl {
            token: Some(b"planted-sasl-token".to_vec().into()),
        });
    }
    bob.rest();
    // Resumes with a wrong and with the right password.
    let mut wrong = Wire::connect(address);
    let zxid = minikeeper_protocol::Zxid(0);
    wrong.resume(session.session_id, b"planted-password", zxid, TIMEOUT_MS);
    let mut again = Wire::connect(address);
    again.resume(session.session_id, &password, zxid, TIMEOUT_MS);
    let mut text = settings;
    for token in ["planted-token", "planted-wrong", ""] {
        for verb in ["sessions", "now", "openapi.json", "planted"] {
            text += &control(address, token, verb).replace("v1/planted", "");
        }
    }
    for word in WORDS {
        let mut asked = Wire::connect(address);
        asked.send_raw(word);
        asked.send_raw(&[0; 8]);
        text += &String::from_utf8_lossy(&asked.rest());
    }
    let _ = writeln!(text, "{:?}", logged.server);
    text += &logged.text();
    (text, password)
}

/// CVE-2026-24308: ZooKeeper's client logged the values of its settings, including passwords of key
/// stores.
#[test]
fn cve_2026_24308_no_secret_is_disclosed() {
    let (text, password) = disclosed();
    // The text has what it should: logs, settings and answers.
    for known in [
        "token: Some(Secret)",
        "wrong control token",
        "zk_znode_count",
    ] {
        assert!(text.contains(known), "{known}");
    }
    assert_no_leak(
        &text,
        &[
            SUPER_DIGEST.as_bytes(),
            b"planted-super",
            b"planted-sasl",
            b"planted-token",
            b"planted-wrong",
            b"planted-digest",
            b"planted-guess",
            b"planted-password",
            &password,
        ],
    );
}

/// CVE-2026-24281: if a certificate had no matching address, ZooKeeper accepted the name that a
/// reverse look-up of the address gave. Nothing here does reverse look-ups: the standard library
/// cannot, and no dependency can. (`tls.rs` has the other half.)
#[test]
fn cve_2026_24281_no_package_looks_up_names_of_addresses() {
    let lock = include_str!("../../Cargo.lock");
    assert!(lock.contains("name = \"tokio\""));
    for package in ["dns-lookup", "hickory", "trust-dns", "c-ares", "resolv"] {
        let has_it = |line: &str| line.starts_with(&format!("name = \"{package}"));
        assert!(!lock.lines().any(has_it), "{package}");
    }
}

/// CVE-2025-58457: `snapshot` and `restore` of ZooKeeper's admin server required no permission.
/// Here every verb requires the token, those two and all future ones.
#[test]
fn cve_2025_58457_every_verb_requires_the_token() {
    let scene = Scene::with(|config| {
        config.control.is_enabled = true;
        config.control.token = Some("s3cret".into());
    });
    let mut names: Vec<_> = minikeeper::control::verbs().map(|verb| verb.name).collect();
    assert!(names.contains(&"snapshot") && names.contains(&"restore"));
    names.push("openapi.json");
    for name in names {
        for prefix in ["/v1", "/v1/universes/x"] {
            for method in ["GET", "POST"] {
                let head = format!(
                    "{method} {prefix}/{name} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                     Content-Length: 2\r\n\r\n{{}}"
                );
                let status = answer(&raw(scene.address(), head.as_bytes())).status;
                assert_eq!(status, 401, "{method} {prefix}/{name}");
            }
        }
    }
    scene.end();
}

/// CVE-2024-23944: a persistent watch on a parent disclosed the paths of children that the client
/// may not read.
#[test]
fn cve_2024_23944_persistent_watches_disclose_no_unreadable_path() {
    let scene = Scene::new();
    let mut bob = scene.open();
    bob.must(&auth(b"bob:secret"));
    bob.must(&wire::create("/a", b"", CreateMode::Persistent));
    let mut eve = scene.open();
    eve.must(&Request::AddWatch {
        path: Some("/a".into()),
        mode: 1,
    });
    bob.must(&create("/a/private", &[(Perms::ALL, "auth", "")]));
    bob.must(&wire::set("/a/private", b"1"));
    bob.must(&wire::delete("/a/private"));
    // The first event is that of a readable znode.
    bob.must(&wire::create("/a/public", b"", CreateMode::Persistent));
    let event = eve.event();
    assert_eq!(
        (event.kind, &*event.path),
        (EventKind::Created, "/a/public")
    );
    scene.end();
}

/// CVE-2019-0201: getACL required no permission, and disclosed the hashes of digest identities.
#[test]
fn cve_2019_0201_get_acl_requires_permission_and_hides_hashes() {
    let scene = Scene::new();
    let mut bob = scene.open();
    bob.must(&auth(b"bob:pw"));
    let own = (Perms::ALL, "auth", "");
    bob.must(&create("/closed", &[own]));
    bob.must(&create("/open", &[own, (Perms::READ, "world", "anyone")]));
    let get_acl = |path: &str| Request::GetAcl {
        path: Some(path.into()),
    };
    let mut eve = scene.open();
    assert_eq!(eve.refused(&get_acl("/closed")), ErrorCode::NoAuth);
    for (client, id) in [
        (&mut eve, "bob:x"),
        (&mut bob, "bob:ikIaKsbtGweaHnb/jKn7OHqbunM="),
    ] {
        let Reply::Acl(acl, _) = client.must(&get_acl("/open")) else {
            panic!("another reply");
        };
        assert_eq!(acl.entries().next().unwrap().id, Some(id.into()));
    }
    scene.end();
}

/// CVE-2017-5637: any client could run `wchp` and `wchc`, whose cost grows with the number of
/// watches. Here they list up to a limit, and by default answer this machine only
/// (`star_allows_other_machines_no_words_about_clients`).
#[test]
fn cve_2017_5637_wchp_and_wchc_have_a_limit() {
    const ROWS_MAX: usize = 5;
    let scene = Scene::with(|config| config.four_letter_rows_max = ROWS_MAX);
    let mut client = scene.open();
    for index in 0..100 {
        client.must(&Request::AddWatch {
            path: Some(format!("/{index}").as_str().into()),
            mode: 0,
        });
    }
    for word in [b"wchp", b"wchc"] {
        let text = wire::four_letter(scene.address(), word);
        // Heads and rows, an empty line, and the number of rows left out.
        assert!(text.lines().count() <= 2 * ROWS_MAX + 2, "{text}");
        assert!(text.contains("left out"), "{text}");
    }
    scene.end();
}
