//! The client's root (chroot and namespace), and the access lists of new znodes.

use std::sync::{Arc, Mutex};

use minikeeper::Server;
use minikeeper_client::{
    Acl, AclList, Client, ClientBuilder, CreateMode, CreateOptions, Error, ErrorCode, Multi, Perms,
};

use crate::{
    kit::{builder, create, start, until},
    link::{Direction, Link},
};

fn to(server: &Arc<Server>, connect_string: &str) -> ClientBuilder {
    let builder = Client::builder(connect_string).unwrap();
    builder.transport(Link::to(server)).seed(1)
}

fn only(scheme: &str, id: &str) -> AclList {
    AclList::new(&[Acl::new(Perms::ALL, scheme, id)])
}

#[tokio::test(start_paused = true)]
async fn chroot_is_created_only_if_asked() {
    let server = start().await;
    let client = to(&server, "server/app/one").connect().await.unwrap();
    let error = client.create_root().await.unwrap_err();
    assert!(
        matches!(&error, Error::NoRoot { root, .. } if root == "/app/one"),
        "{error}"
    );
    assert!(server.get("/app").is_none());

    let asked = to(&server, "server/app/one").create_chroot(true);
    let client = asked.connect().await.unwrap();
    create(&client, "/a").await;
    assert!(server.get("/app/one/a").is_some());
    // Deleted in between: it can be created again.
    client.delete("/a", None).await.unwrap();
    client.delete("/", None).await.unwrap();
    let refused = client.create("/a", b"", CreateMode::Persistent).await;
    assert!(refused.unwrap_err().is(ErrorCode::NoNode));
    client.create_root().await.unwrap();
    create(&client, "/a").await;
}

#[tokio::test(start_paused = true)]
async fn namespace_is_a_root_below_the_chroot() {
    let server = start().await;
    let base = to(&server, "server").connect().await.unwrap();
    create(&base, "/app").await;
    let app = to(&server, "server/app").connect().await.unwrap();
    let one = app.with_namespace("team/one").unwrap();
    let error = one.create("/a", b"", CreateMode::Persistent).await;
    assert!(matches!(error.unwrap_err(), Error::NoRoot { root, .. } if root == "/app/team/one"));
    one.create_root().await.unwrap();
    let created = one.create("/a", b"", CreateMode::Persistent).await.unwrap();
    assert_eq!(created.path, "/a");
    assert!(server.get("/app/team/one/a").is_some());
    // Paths in errors, events, multis and clean-ups are those of the handle.
    let error = one.delete("/b", None).await.unwrap_err().to_string();
    assert!(error.starts_with("delete \"/b\""), "{error}");
    let mut events = one.watch_events();
    let (_, changed) = one.exists_and_watch("/c").await.unwrap();
    let multi = Multi::new().create("/c", b"", CreateMode::Persistent);
    one.multi(multi).await.unwrap();
    changed.await;
    let event = format!("{:?}", events.next().await.unwrap());
    assert!(event.contains("\"/c\""), "{event}");
    one.clean_up(one.epoch(), "/c").unwrap();
    until("the znode is cleaned up", || {
        server.get("/app/team/one/c").is_none()
    })
    .await;
    // Another namespace replaces the first; an empty one means none.
    let two = one.with_namespace("two").unwrap();
    two.create_root().await.unwrap();
    assert!(server.get("/app/two").is_some());
    assert!(
        two.with_namespace("")
            .unwrap()
            .exists("/two")
            .await
            .unwrap()
            .is_some()
    );
    // The session is shared.
    assert_eq!(one.session_id(), app.session_id());
    for wrong in ["/a", "a/", "a//b", "a/../b"] {
        assert!(app.with_namespace(wrong).is_err(), "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn builder_creates_its_namespace_without_permission_for_the_znodes_above() {
    // `/team` exists and permits only reading, `/team/one` permits everything.
    let server = start().await;
    let admin = to(&server, "server").connect().await.unwrap();
    let create = |path, perms| {
        let acl = AclList::new(&[Acl::new(perms, "world", "anyone")]);
        let options = CreateOptions::new(CreateMode::Persistent).acl(acl);
        admin.create(path, b"", options)
    };
    create("/team", Perms::ALL).await.unwrap();
    create("/team/one", Perms::ALL).await.unwrap();
    let readable = AclList::new(&[Acl::new(Perms::READ, "world", "anyone")]);
    admin.set_acl("/team", &readable, None).await.unwrap();
    let one = to(&server, "server").namespace("team/one").unwrap();
    one.connect().await.unwrap();
    let below = to(&server, "server").namespace("team/one/below").unwrap();
    below.connect().await.unwrap();
    assert!(server.get("/team/one/below").is_some());
    let beside = to(&server, "server").namespace("team/two").unwrap();
    let error = beside.connect().await.unwrap_err();
    assert!(error.is(ErrorCode::NoAuth), "{error}");
}

#[tokio::test(start_paused = true)]
async fn provider_chooses_the_access_list_of_every_creation() {
    let server = start().await;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let client = to(&server, "server/chroot/app")
        .identity("digest", "app:secret")
        .create_chroot(true)
        .namespace("one")
        .unwrap()
        .acl_provider(move |path: &str| {
            seen.lock().unwrap().push(path.to_owned());
            only("auth", "")
        })
        .connect()
        .await
        .unwrap();
    create(&client, "/a").await;
    client
        .create("/s-", b"", CreateMode::PersistentSequential)
        .await
        .unwrap();
    let multi = Multi::new().create("/m", b"", CreateMode::Container);
    client.multi(multi).await.unwrap();
    // A list in the options has precedence.
    let open = CreateOptions::new(CreateMode::Persistent).acl(AclList::world_all());
    client.create("/open", b"", open).await.unwrap();
    let expected = ["/", "/", "/one", "/one/a", "/one/s-", "/one/m"];
    assert_eq!(*asked.lock().unwrap(), expected);

    let stranger = to(&server, "server").connect().await.unwrap();
    for path in [
        "",
        "/app",
        "/app/one",
        "/app/one/a",
        "/app/one/s-0000000001",
        "/app/one/m",
    ] {
        let read = stranger.get_data(&format!("/chroot{path}")).await;
        assert!(read.unwrap_err().is(ErrorCode::NoAuth), "{path}");
    }
    assert!(stranger.get_data("/chroot/app/one/open").await.is_ok());
    // A handle has a provider of its own.
    let public = client.with_acl_provider(AclList::world_all());
    create(&public, "/public").await;
    assert!(stranger.get_data("/chroot/app/one/public").await.is_ok());
    // The server checks the list.
    let empty = client.with_acl_provider(AclList::new(&[]));
    let error = empty.create("/b", b"", CreateMode::Persistent).await;
    assert!(error.unwrap_err().is(ErrorCode::InvalidAcl));
}

#[tokio::test(start_paused = true)]
async fn identities_are_sent_again_in_every_session() {
    let server = start().await;
    let link = Link::to(&server);
    let client = builder(&link)
        .identity("digest", "one:1")
        .identity("digest", "two:2")
        .connect()
        .await
        .unwrap();
    client.add_identity("digest", b"three:3").await.unwrap();
    let path = |name: &str| format!("/{name}");
    for name in ["one", "two", "three"] {
        let secret = match name {
            "one" => "1",
            "two" => "2",
            _ => "3",
        };
        let owner = to(&server, "server").identity("digest", format!("{name}:{secret}"));
        let owner = owner
            .acl_provider(only("auth", ""))
            .connect()
            .await
            .unwrap();
        owner
            .create(&path(name), b"", CreateMode::Persistent)
            .await
            .unwrap();
    }
    for round in 0..4 {
        for name in ["one", "two", "three"] {
            client.get_data(&path(name)).await.unwrap();
        }
        let connections = client.connections();
        match round % 2 {
            0 => link.cut(),
            _ => drop(server.expire(client.session_id().unwrap())),
        }
        until("the client is connected again", || {
            client.connections() > connections
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn connecting_with_a_namespace_survives_a_lost_reply() {
    // The first lost reply ended the connect, although the requests may be repeated.
    for at in 0..400 {
        let server = start().await;
        let link = Link::to(&server);
        link.cut_behind(Direction::Replies, at);
        let builder = Client::builder("server").unwrap().transport(link.clone());
        let builder = builder.seed(1).namespace("app/one").unwrap();
        let client = builder.connect().await;
        let client = client.unwrap_or_else(|error| panic!("cut after {at} bytes: {error}"));
        assert!(server.get("/app/one").is_some());
        if link.is_cut_pending() {
            assert!(at > 100, "{at} bytes");
            return;
        }
        client.close().await;
    }
    panic!("more bytes than expected");
}
