//! SASL DIGEST-MD5, and other identities, against a server with users.

use std::{sync::Arc, time::Duration};

use minikeeper::{Config, Server};
use minikeeper_client::{
    Acl, AclList, Client, ConnectionState, CreateMode, CreateOptions, Error, ErrorClass, ErrorCode,
    LostReason, Perms, SaslError,
};
use minikeeper_test_kit::servers::server;

use crate::{
    kit::{builder, lost, state},
    link::{Direction, Link, Mode},
};

async fn serve(configure: impl FnOnce(&mut Config)) -> Arc<Server> {
    let server = server().configure(|config| {
        let users = [("bob", "sécret"), ("иван", "пароль")];
        config.sasl_users = users.map(|(user, word)| (user.into(), word.into())).into();
        configure(config);
    });
    Arc::new(server.start().await.unwrap())
}

async fn connect(server: &Arc<Server>, user: &str, password: &str) -> Result<Client, Error> {
    let builder = builder(&Link::to(server)).sasl_digest_md5(user, password);
    builder.connect().await
}

/// Returns an ACL that allows everything to the identities of the creator.
fn creators() -> AclList {
    AclList::new(&[Acl {
        perms: Perms::ALL,
        scheme: Some("auth".into()),
        id: Some("".into()),
    }])
}

#[tokio::test(start_paused = true)]
async fn users_of_the_server_are_identities_of_scheme_sasl() {
    let server = serve(|_| {}).await;
    for (user, password) in [("bob", "sécret"), ("иван", "пароль")] {
        let client = connect(&server, user, password).await.unwrap();
        let who = client.who_am_i().await.unwrap();
        assert!(
            who.iter().any(|it| it.scheme == "sasl" && it.user == user),
            "{who:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn znodes_of_each_identity_stay_accessible_across_connections_and_sessions() {
    let server = serve(|_| {}).await;
    let link = Link::to(&server);
    let client = builder(&link)
        .sasl_digest_md5("bob", "sécret")
        .identity("digest", "ann:1")
        .identity("digest", "eve:2")
        .connect()
        .await
        .unwrap();
    client.add_identity("digest", b"late:3").await.unwrap();
    // Each znode is accessible to one identity only.
    let mut paths = Vec::new();
    for (number, identity) in ["sasl", "ann:1", "eve:2", "late:3"].into_iter().enumerate() {
        let creator = builder(&Link::to(&server));
        let creator = match identity {
            "sasl" => creator.sasl_digest_md5("bob", "sécret"),
            _ => creator.identity("digest", identity),
        };
        let creator = creator.connect().await.unwrap();
        let path = format!("/{number}");
        let options = CreateOptions::new(CreateMode::Persistent).acl(creators());
        creator.create(&path, b"", options).await.unwrap();
        paths.push(path);
    }
    let stranger = builder(&Link::to(&server)).connect().await.unwrap();
    let mut states = client.states();
    for round in 0..4 {
        // The requests are made while there is no connection, so that they leave at once with it.
        link.set(Mode::Cut);
        link.cut();
        state(&mut states, |state| {
            matches!(state, ConnectionState::Suspended { .. })
        })
        .await;
        if round >= 2 {
            server.expire(client.session_id().unwrap()).unwrap();
        }
        let reads: Vec<_> = paths.iter().map(|path| client.get_data(path)).collect();
        link.set(Mode::Pass);
        for read in reads {
            read.await.unwrap();
        }
        state(&mut states, |state| {
            matches!(state, ConnectionState::Reconnected { .. })
        })
        .await;
        for path in &paths {
            let refused = stranger.get_data(path).await.unwrap_err();
            assert!(refused.is(ErrorCode::NoAuth), "{refused}");
        }
    }
    assert_eq!(client.epoch().0, 3);
}

#[tokio::test(start_paused = true)]
async fn wrong_password_ends_the_client_with_the_reason() {
    let refused = |error: Error| match error {
        Error::AuthFailed { reason, .. } => reason,
        other => panic!("{other:?}"),
    };
    let server = serve(|_| {}).await;
    let error = connect(&server, "bob", "wrong").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "server:2181: session ended: SASL: the server refused the user or the password: \
         authentication failed (AUTHFAILED -115)"
    );
    let error = refused(connect(&server, "eve", "sécret").await.unwrap_err());
    assert_eq!(
        error,
        LostReason::Sasl(SaslError::Refused(ErrorCode::AuthFailed))
    );

    let strict = serve(|config| config.enforce_auth_schemes = vec!["sasl".into()]).await;
    let error = refused(connect(&strict, "bob", "wrong").await.unwrap_err());
    let code = ErrorCode::SessionClosedRequireSaslAuth;
    assert_eq!(error, LostReason::Sasl(SaslError::Refused(code)));
    connect(&strict, "bob", "sécret").await.unwrap();

    // This server keeps the connection, without the identity.
    let lenient = serve(|config| config.sasl_allow_failed = true).await;
    let error = refused(connect(&lenient, "bob", "wrong").await.unwrap_err());
    assert_eq!(error, LostReason::Sasl(SaslError::NotProven));

    let without = serve(|config| config.sasl_users.clear()).await;
    let error = refused(connect(&without, "bob", "sécret").await.unwrap_err());
    assert_eq!(error, LostReason::Sasl(SaslError::NotOffered));
}

#[tokio::test(start_paused = true)]
async fn password_that_a_later_server_refuses_ends_a_working_client() {
    let (first, second) = (
        serve(|_| {}).await,
        serve(|config| config.sasl_users.clear()).await,
    );
    let link = Link::to(&first);
    let client = builder(&link)
        .sasl_digest_md5("bob", "sécret")
        .connect()
        .await
        .unwrap();
    let mut states = client.states();
    link.down();
    link.up(&second);
    let reason = lost(&mut states).await;
    assert!(matches!(
        reason,
        LostReason::Replaced | LostReason::Expired | LostReason::Sasl(_)
    ));
    state(&mut states, |state| {
        matches!(state, ConnectionState::Closed)
    })
    .await;
    assert!(
        client
            .last_failure()
            .unwrap()
            .contains("the server does not offer it")
    );
    let error = client.connected(Duration::from_secs(1)).await.unwrap_err();
    assert!(matches!(error, Error::AuthFailed { .. }), "{error}");
}

/// Reads a protected znode on a new connection that is cut after `at` bytes. Returns `false` if it
/// carried fewer.
async fn read_with_cut(server: &Arc<Server>, direction: Direction, at: usize) -> bool {
    let link = Link::to(server);
    let client = builder(&link)
        .sasl_digest_md5("bob", "sécret")
        .identity("digest", "ann:1");
    let client = client.connect().await.unwrap();
    let session = client.session_id();
    link.cut_behind(direction, at);
    link.cut();
    for path in ["/sasl", "/digest"] {
        while let Err(error) = client.get_data(path).await {
            // Never NOAUTH: no request leaves before the identities.
            assert_eq!(
                error.class(),
                ErrorClass::Again,
                "{direction:?}, {at} bytes: {error}"
            );
        }
    }
    assert_eq!(client.session_id(), session);
    !link.is_cut_pending()
}

#[tokio::test(start_paused = true)]
async fn no_request_leaves_before_the_identities_after_a_cut_at_any_byte() {
    let server = serve(|_| {}).await;
    let options = || CreateOptions::new(CreateMode::Persistent).acl(creators());
    let bob = connect(&server, "bob", "sécret").await.unwrap();
    bob.create("/sasl", b"", options()).await.unwrap();
    let ann = builder(&Link::to(&server)).identity("digest", "ann:1");
    let ann = ann.connect().await.unwrap();
    ann.create("/digest", b"", options()).await.unwrap();
    for direction in [Direction::Requests, Direction::Replies] {
        let mut at = 0;
        while read_with_cut(&server, direction, at).await {
            at += 1;
            assert!(at < 10_000, "too many bytes");
        }
        assert!(at > 200, "{at} bytes");
    }
}
