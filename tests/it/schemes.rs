//! Authentication schemes and the whitelist of words, ported from ZooKeeper's tests AuthTest,
//! AuthSHA2Test, AuthSHA3Test, EnsembleAuthTest, KeyAuthClientTest and
//! FourLetterWordsWhiteListTest. `docs/zookeeper-protocol.md` sections 9.7, 9.8 and 18.1.

use minikeeper::{Config, DigestAlgorithm};
use minikeeper_protocol::{Acl, AclList, Create, CreateMode, ErrorCode, Perms, Request, Ustring};
use minikeeper_test_kit::wire::{self, Wire};

use crate::kit::Scene;

fn auth(scheme: &str, data: &[u8]) -> Request {
    Request::Auth {
        kind: 0,
        scheme: Some(scheme.into()),
        data: Some(data.to_vec().into()),
    }
}

fn list(scheme: &str, id: &str) -> AclList {
    AclList::new(&[Acl {
        perms: Perms::ALL,
        scheme: Some(scheme.into()),
        id: Some(id.into()),
    }])
}

/// Returns the create of a znode that only its creator may access.
fn create_own(path: &str) -> Request {
    let mut create = Create::new(path, b"", CreateMode::Persistent);
    create.acl = list("auth", "");
    Request::Create(create)
}

fn set_acl(path: &str, acl: AclList) -> Request {
    Request::SetAcl {
        path: Some(path.into()),
        acl,
        version: -1,
    }
}

/// Opens a session, and authenticates with this scheme and data if given.
fn client(scene: &Scene, shown: Option<(&str, &str)>) -> Wire {
    let mut client = scene.open();
    if let Some((scheme, data)) = shown {
        client.must(&auth(scheme, data.as_bytes()));
    }
    client
}

fn digest(scene: &Scene, data: &str) -> Wire {
    client(scene, Some(("digest", data)))
}

/// `testSuper`, `testSuperACL` and `testOrdinaryACL` with each hash algorithm.
#[test]
fn digest_algorithm_applies_to_logins_lists_and_the_super_user() {
    for (name, super_digest) in [
        ("SHA1", "super:D/InIHSb7yEEbrWz8b9l71RjZJU="),
        (
            "SHA-256",
            "super:wjySwxg860UATFtciuZ1lpzrCHrPeov6SPu/ZD56uig=",
        ),
        (
            "SHA3-256",
            "super:cRy/KPYuDpW/dtsepniTMpuiuupnWgdU9txltIfv3hA=",
        ),
    ] {
        let scene = Scene::with(|config| {
            config.digest_algorithm = name.parse::<DigestAlgorithm>().unwrap();
            config.super_digest = Some(super_digest.into());
        });
        digest(&scene, "pat:pass").must(&create_own("/path1"));
        let read = wire::get("/path1", false);
        for stranger in [None, Some("pat:pass2"), Some("super:test2")] {
            let mut stranger = client(&scene, stranger.map(|data| ("digest", data)));
            assert_eq!(stranger.refused(&read), ErrorCode::NoAuth, "{name}");
        }
        digest(&scene, "pat:pass").must(&read);
        let mut root = digest(&scene, "super:test");
        root.must(&read);
        root.must(&set_acl("/path1", list("world", "anyone")));
        root.must(&create_own("/path1/foo"));
        let mut user = digest(&scene, "username1:password1");
        // The id of the scheme `auth` is ignored.
        user.must(&set_acl("/path1", list("auth", "username1:password1")));
        root.must(&read);
        assert_eq!(scene.open().refused(&read), ErrorCode::NoAuth, "{name}");
        digest(&scene, "username1:password1").must(&read);
        scene.end();
    }
}

/// `testBadAuthNotifiesWatch` and `testBadAuthThenSendOtherCommands`.
#[test]
fn auth_with_an_unknown_scheme_fails_and_closes_the_connection() {
    let scene = Scene::new();
    for scheme in ["FOO", "INVALID", "ensemble", "key"] {
        let mut client = scene.open();
        let refused = client.refused(&auth(scheme, b"BAR"));
        assert_eq!(refused, ErrorCode::AuthFailed, "{scheme}");
        client.expect_closed();
    }
    scene.end();
}

/// EnsembleAuthTest: the names that each setting admits.
#[test]
fn ensemble_scheme_admits_clients_that_name_this_ensemble() {
    // `None`: the client does not use the scheme.
    for (names, shown, is_served) in [
        // emptyAuth, skipAuth, passAuth, passAuthCSV, failAuth
        (&[][..], Some("foo"), true),
        (&["woo"], None, true),
        (&["woo"], Some(""), true),
        (&["woo"], Some("woo"), true),
        (&["foo", "bar", "baz"], Some("foo"), true),
        (&["foo", "bar", "baz"], Some("baz"), true),
        (&["woo"], Some("goo"), false),
        (&["woo"], Some(" woo"), false),
    ] {
        let scene = Scene::with(|config| {
            config.ensemble_names = Some(names.iter().map(|&name| name.to_owned()).collect());
        });
        let mut client = scene.open();
        if let Some(shown) = shown {
            client.send(&auth("ensemble", shown.as_bytes()));
            if !is_served {
                // No reply: after an error the client would give up instead of trying another
                // server.
                client.expect_closed();
                scene.end();
                continue;
            }
            client.answer(minikeeper_protocol::OpCode::Auth);
        }
        client.must(&wire::get("/", false));
        // The scheme adds no identity.
        let refused = client.refused(&set_acl("/", list("auth", "")));
        assert_eq!(refused, ErrorCode::InvalidAcl);
        let refused = client.refused(&set_acl("/", list("ensemble", "woo")));
        assert_eq!(refused, ErrorCode::InvalidAcl);
        scene.end();
    }
}

/// KeyAuthClientTest, step by step.
#[test]
fn key_scheme_requires_a_multiple_of_the_number_in_the_tree() {
    let scene = Scene::with(|config| config.key_scheme = true);
    let key = |number| client(&scene, Some(("key", number)));
    // Without a key in the tree, any number passes.
    let mut first = key("25");
    for path in ["/pre", "/abc", "/key"] {
        first.must(&create_own(path));
    }
    first.must(&wire::set("/abc", b"testData1"));
    first.must(&wire::set("/key", b"5"));
    let mut stranger = scene.open();
    for request in [wire::get("/abc", false), wire::set("/abc", b"testData2")] {
        assert_eq!(stranger.refused(&request), ErrorCode::NoAuth);
    }
    for number in ["25", "125"] {
        let mut other = key(number);
        other.must(&create_own(&format!("/valid{number}")));
        other.must(&wire::get("/abc", false));
        other.must(&wire::set("/abc", b"testData3"));
    }
    let mut wrong = scene.open();
    assert_eq!(wrong.refused(&auth("key", b"26")), ErrorCode::AuthFailed);
    wrong.expect_closed();
    // The identity does not depend on the number.
    let mut reader = key("5");
    let acl = reader.must(&Request::GetAcl {
        path: Some("/abc".into()),
    });
    let minikeeper_protocol::Reply::Acl(acl, _) = acl else {
        panic!("another reply: {acl:?}");
    };
    let entry = acl.entries().next().unwrap();
    assert_eq!(entry.scheme, Some(Ustring::from("key")));
    assert_eq!(entry.id, Some(Ustring::from("")));
    scene.end();
}

/// The server refused to start, with exit code 2. ZooKeeper starts, and refuses all clients until
/// users are configured.
#[test]
fn enforced_sasl_without_users_refuses_all_clients() {
    let scene = minikeeper::blocking::Server::builder()
        .manual_clock()
        .configure(|config| config.enforce_auth_schemes = vec!["sasl".to_owned()])
        .start()
        .unwrap();
    let (mut client, _) = Wire::open(scene.addr(), 10_000);
    let refused = client.refused(&wire::get("/", false));
    assert_eq!(refused, ErrorCode::SessionClosedRequireSaslAuth);
    client.expect_closed();
}

const REFUSED: &str = " is not executed because it is not in the whitelist.\n";

/// FourLetterWordsWhiteListTest: the words that each list allows.
#[test]
fn whitelist_allows_the_words_it_names_and_srvr() {
    const WORDS: [&str; 17] = [
        "conf", "cons", "crst", "dirs", "dump", "envi", "gtmk", "hash", "isro", "mntr", "ruok",
        "srst", "srvr", "stat", "wchc", "wchp", "wchs",
    ];
    let check = |change: fn(&mut Config), answered: &[&str]| {
        let scene = Scene::with(change);
        for word in WORDS {
            let answer = wire::four_letter(scene.address(), word.as_bytes());
            let is_answered = answer != format!("{word}{REFUSED}");
            assert_eq!(is_answered, answered.contains(&word), "{word}: {answer}");
        }
        scene.end();
    };
    check(
        |config| config.four_letter_whitelist = "stat".to_owned(),
        &["stat", "srvr"],
    );
    check(
        |config| config.four_letter_whitelist = "stat, ruok, isro".to_owned(),
        &["stat", "ruok", "isro", "srvr"],
    );
    check(
        |config| {
            config.four_letter_whitelist = "foo bar foo,,, bar :.,@#$%^&*() , , , , bar, bar, \
                                            stat,        "
                .to_owned();
        },
        &["stat", "srvr"],
    );
    check(
        |config| config.four_letter_whitelist = "*".to_owned(),
        &WORDS,
    );
    // testISROEnabledWhenReadOnlyModeEnabled
    check(
        |config| {
            config.four_letter_whitelist = "stat".to_owned();
            config.read_only_mode = true;
        },
        &["stat", "isro", "srvr"],
    );
    let scene = Scene::with(|config| config.read_only_mode = true);
    assert_eq!(wire::four_letter(scene.address(), b"isro"), "rw");
    scene.end();
}
