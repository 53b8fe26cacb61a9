//! SASL exchanges, and the requirement that clients authenticate.
//!
//! Source: `docs/zookeeper-protocol.md` sections 9.3, 9.10, 9.11 and 10.27; every outcome was
//! compared with a live 3.9.5.

use super::*;
use crate::{Counts, SaslSettings};

/// Returns settings with a SASL user. These tests never complete an exchange, which takes a
/// captured nonce: see `sasl.rs`.
fn with_logins(allow_failed: bool, demanded: &[&str]) -> Settings {
    Settings {
        sasl: Some(SaslSettings {
            users: vec![("bob".to_owned(), "secret".into())],
            super_users: vec!["bob".to_owned()],
            nonce_seed: [7; 32],
            allow_failed,
        }),
        enforce_auth_schemes: demanded.iter().map(|&scheme| scheme.to_owned()).collect(),
        ..Settings::default()
    }
}

fn sasl(token: &'static [u8]) -> Request {
    Request::Sasl {
        token: Some(token.into()),
    }
}

fn digest(login: &'static [u8]) -> Request {
    Request::Auth {
        kind: 0,
        scheme: Some("digest".into()),
        data: Some(login.into()),
    }
}

/// Returns the header of the reply, and whether the connection is still served.
fn answer(engine: &mut Engine, asked: Request) -> (ReplyHeader, bool) {
    let header = request(engine, 0, asked).reply.expect("a reply");
    let is_served = engine.sessions().any(|(_, _, conn)| conn.is_some());
    (header, is_served)
}

#[test]
fn reply_to_first_sasl_token_is_a_challenge_and_bad_response_closes_the_connection() {
    let mut engine = engine(1, with_logins(false, &[]));
    let (header, is_served) = answer(&mut engine, sasl(b""));
    assert_eq!(
        (header.error, header.zxid, is_served),
        (None, Zxid(0), true)
    );
    let (header, is_served) = answer(&mut engine, sasl(b"nonsense"));
    assert_eq!(
        (header.error, is_served),
        (Some(ErrorCode::AuthFailed), false)
    );
    // The session lives on.
    let Counts { sessions, .. } = engine.counts();
    assert_eq!(sessions, 1);
}

#[test]
fn failed_exchange_keeps_the_connection_if_configured() {
    let mut engine = engine(1, with_logins(true, &[]));
    for token in [&b""[..], b"nonsense", b"again"] {
        let (header, is_served) = answer(&mut engine, sasl(token));
        assert_eq!((header.error, is_served), (None, true));
    }
}

#[test]
fn required_sasl_overrides_allow_failed() {
    let mut engine = engine(1, with_logins(true, &["sasl"]));
    answer(&mut engine, sasl(b""));
    let (header, is_served) = answer(&mut engine, sasl(b"nonsense"));
    let error = Some(ErrorCode::SessionClosedRequireSaslAuth);
    assert_eq!((header.error, is_served), (error, false));
}

#[test]
fn requests_before_the_required_login_are_refused() {
    for asked in [
        Request::Ping,
        get("/"),
        Request::CloseSession,
        Request::WhoAmI,
    ] {
        let mut engine = engine(1, with_logins(false, &["digest"]));
        let (header, is_served) = answer(&mut engine, asked);
        let error = Some(ErrorCode::SessionClosedRequireSaslAuth);
        assert_eq!(
            (header.error, header.zxid, is_served),
            (error, Zxid(0), false)
        );
        assert_eq!(engine.counts().sessions, 1);
    }
}

#[test]
fn requests_after_the_required_login_are_served() {
    let mut engine = engine(1, with_logins(false, &["digest", "sasl"]));
    assert_eq!(answer(&mut engine, digest(b"bob:pw")).0.error, None);
    assert_eq!(outcome(&mut engine, 0, get("/")), Ok(()));
}

#[test]
fn logins_and_refused_requests_do_not_renew_a_session() {
    // `docs/zookeeper-protocol.md` sections 7.1 and 14.2.
    let mut engine = engine(1, with_logins(false, &["digest"]));
    let deadline_ms = engine.next_deadline_ms(Now::default());
    let later = Now {
        elapsed_ms: 5_000,
        wall_ms: 5_000,
    };
    for asked in [digest(b"bob:pw"), sasl(b""), sasl(b"nonsense"), get("/")] {
        let input = Input::Request {
            conn: ConnId(0),
            xid: Xid(1),
            request: asked,
        };
        if engine.sessions().any(|(_, _, conn)| conn.is_none()) {
            break;
        }
        engine.apply(later, &input, &mut Seen::default());
        assert_eq!(engine.next_deadline_ms(Now::default()), deadline_ms);
    }
}

#[test]
fn identities_end_with_their_connection() {
    let mut engine = engine(2, Settings::default());
    outcome(&mut engine, 0, digest(b"bob:pw")).unwrap();
    let list = AclList::new(&[minikeeper_protocol::Acl {
        perms: minikeeper_protocol::Perms::ALL,
        scheme: Some("auth".into()),
        id: None,
    }]);
    let asked = Request::Create(create_with("/x", list));
    outcome(&mut engine, 0, asked).unwrap();
    assert_eq!(outcome(&mut engine, 0, get("/x")), Ok(()));
    assert_eq!(outcome(&mut engine, 1, get("/x")), Err(ErrorCode::NoAuth));
    apply(&mut engine, &Input::Disconnect { conn: ConnId(0) });
    open(&mut engine, 0);
    assert_eq!(outcome(&mut engine, 0, get("/x")), Err(ErrorCode::NoAuth));
}

#[test]
fn address_of_the_connection_is_an_identity() {
    // `docs/zookeeper-protocol.md` section 9.6.
    let mut engine = Engine::new(Settings::default());
    let peer = core::net::Ipv4Addr::new(10, 1, 2, 3).into();
    apply(
        &mut engine,
        &Input::Open {
            conn: ConnId(0),
            peer,
        },
    );
    open(&mut engine, 0);
    open(&mut engine, 1);
    let list = AclList::new(&[minikeeper_protocol::Acl {
        perms: minikeeper_protocol::Perms::ALL,
        scheme: Some("ip".into()),
        id: Some("10.0.0.0/8".into()),
    }]);
    let asked = Request::Create(create_with("/x", list));
    outcome(&mut engine, 1, asked).unwrap();
    assert_eq!(outcome(&mut engine, 0, get("/x")), Ok(()));
    assert_eq!(outcome(&mut engine, 1, get("/x")), Err(ErrorCode::NoAuth));
}

#[test]
fn skipped_access_lists_refuse_nothing_but_must_be_valid() {
    // `docs/zookeeper-protocol.md` section 9.3, rule 1.
    let mut engine = engine(
        1,
        Settings {
            skip_acl: true,
            ..Settings::default()
        },
    );
    let unknown = AclList::new(&[minikeeper_protocol::Acl {
        perms: minikeeper_protocol::Perms(0),
        scheme: Some("world".into()),
        id: Some("anyone".into()),
    }]);
    let asked = Request::Create(create_with("/x", unknown));
    outcome(&mut engine, 0, asked).unwrap();
    for asked in [
        get("/x"),
        list("/x"),
        set("/x", b"1"),
        create("/x/y", CreateMode::Persistent),
        delete("/x/y"),
        set("/zookeeper/config", b"1"),
    ] {
        assert_eq!(outcome(&mut engine, 0, asked), Ok(()));
    }
    let asked = Request::Create(create_with("/z", AclList::new(&[])));
    let refused = outcome(&mut engine, 0, asked);
    assert_eq!(refused, Err(ErrorCode::InvalidAcl));
}

#[test]
fn reconfig_of_a_standalone_server_is_unimplemented() {
    // `docs/zookeeper-protocol.md` section 10.27: it takes a zxid, and the connection stays open.
    let mut engine = engine(
        1,
        Settings {
            reconfig_enabled: true,
            ..Settings::default()
        },
    );
    let asked = Request::Reconfig {
        joining: None,
        leaving: None,
        members: None,
        config_id: -1,
    };
    let before = engine.zxid();
    let (header, is_served) = answer(&mut engine, asked);
    assert_eq!(header.error, Some(ErrorCode::Unimplemented));
    assert_eq!(header.zxid, Zxid(before.0 + 1));
    assert!(is_served);
}
