//! The list of servers changes while the client runs.

use std::{
    io::ErrorKind,
    sync::{Arc, Mutex},
    time::Duration,
};

use minikeeper::Server;
use minikeeper_client::{
    Client, ClientBuilder, ConnectStringError, Connecting, ConnectionState, CreateMode,
    EnsembleTracker, EnsembleTrackerError, Transport as _,
};
use minikeeper_test_kit::servers::{client_builder, server};
use tokio::time::sleep;

use crate::{
    kit::{SESSION_TIMEOUT, state, until},
    link::{Link, Mode},
};

const CONFIG: &str = "/zookeeper/config";

/// A client whose connections all lead to one server, and the names that it connected to.
struct Named {
    server: Arc<Server>,
    link: Link,
    client: Client,
    /// May change the configuration, as reconfig does.
    operator: Client,
    tried: Arc<Mutex<Vec<String>>>,
}

impl Named {
    async fn new(servers: &str, change: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Self {
        let server = server().configure(|config| {
            // The password is admin.
            config.super_digest = Some("super:xQJmxLMiHGwaqBvst5y6rkB6HQs=".into());
        });
        let server = Arc::new(server.start().await.unwrap());
        let link = Link::to(&server);
        let operator = client_builder(&Link::to(&server), 2).identity("digest", "super:admin");
        let operator = operator.connect().await.unwrap();
        let tried = Arc::new(Mutex::new(Vec::new()));
        let (mut to, log) = (link.clone(), Arc::clone(&tried));
        let transport = move |host: &str| -> Connecting {
            log.lock().unwrap().push(host.to_owned());
            if host.starts_with("dead") {
                return Box::pin(async { Err(ErrorKind::ConnectionRefused.into()) });
            }
            to.connect(host)
        };
        let builder = Client::builder(servers).unwrap().transport(transport);
        let builder = change(builder.session_timeout(SESSION_TIMEOUT).seed(1));
        let client = builder.connect().await.unwrap();
        Self {
            server,
            link,
            client,
            operator,
            tried,
        }
    }

    fn current(&self) -> String {
        self.tried.lock().unwrap().last().unwrap().clone()
    }

    async fn configure(&self, config: &str) {
        let change = self.operator.set_data(CONFIG, config.as_bytes(), None);
        change.await.unwrap();
    }
}

fn members(names: &[&str]) -> String {
    let line = |name: &&str| format!("server.1={name}:2888:3888:participant;0.0.0.0:2181\n");
    names.iter().map(line).collect::<String>() + "version=1"
}

#[tokio::test(start_paused = true)]
async fn client_leaves_a_removed_server_with_its_session() {
    let scene = Named::new("old/app", |builder| builder.create_chroot(true)).await;
    let client = &scene.client;
    client
        .create("/mine", b"", CreateMode::Ephemeral)
        .await
        .unwrap();
    let session = client.session_id();
    let mut states = client.states();
    client.update_servers("new1,new2/app").unwrap();
    assert_eq!(client.servers(), "new1:2181,new2:2181");
    state(&mut states, |state| {
        matches!(state, ConnectionState::Suspended { .. })
    })
    .await;
    state(&mut states, |state| {
        matches!(state, ConnectionState::Reconnected { .. })
    })
    .await;
    assert!(scene.current().starts_with("new"), "{}", scene.current());
    assert_eq!(client.session_id(), session);
    assert!(client.exists("/mine").await.unwrap().is_some());

    // The same servers: the client stays. Without a chroot, the client's applies.
    let connections = client.connections();
    client.update_servers("new2,new1").unwrap();
    client.sync("/").await.unwrap();
    assert_eq!(client.connections(), connections);

    for wrong in ["new1/other", "new1/app/deeper"] {
        let error = client.update_servers(wrong).unwrap_err();
        assert!(
            matches!(error, ConnectStringError::OtherChroot { .. }),
            "{error}"
        );
    }
    assert!(client.update_servers(",").is_err());
    assert_eq!(client.servers(), "new2:2181,new1:2181");
    client.close().await;
    client.update_servers("late").unwrap();
}

#[tokio::test(start_paused = true)]
async fn change_while_no_server_answers_is_used_at_once() {
    let scene = Named::new("old", |builder| builder).await;
    let client = &scene.client;
    let mut states = client.states();
    scene.link.set(Mode::Cut);
    scene.link.cut();
    state(&mut states, |state| {
        matches!(state, ConnectionState::Suspended { .. })
    })
    .await;
    scene.link.set(Mode::Pass);
    client.update_servers("new").unwrap();
    state(&mut states, ConnectionState::is_connected).await;
    assert_eq!(scene.current(), "new:2181");
}

#[tokio::test(start_paused = true)]
async fn tracker_follows_the_configuration_in_every_session() {
    let scene = Named::new("old/app", |builder| builder.create_chroot(true)).await;
    let client = &scene.client;
    let tracker = EnsembleTracker::start(client).unwrap();
    // A standalone server's configuration is empty.
    until("it is read", || {
        tracker.last_error() == Some(EnsembleTrackerError::NoServers)
    })
    .await;
    assert_eq!(client.servers(), "old:2181");

    scene.configure(&members(&["a", "b", "c"])).await;
    until("it is applied", || {
        client.servers() == "a:2181,b:2181,c:2181"
    })
    .await;
    assert_eq!(tracker.last_error(), None);
    until("it has moved", || {
        client.state().is_connected() && scene.current() != "old:2181"
    })
    .await;
    assert_eq!(client.epoch().0, 1);

    // Nothing that names no server is applied.
    scene.configure("version=2").await;
    until("it is read", || {
        tracker.last_error() == Some(EnsembleTrackerError::NoServers)
    })
    .await;
    scene.configure("server.1=a:x").await;
    until("it is read", || {
        matches!(
            tracker.last_error(),
            Some(EnsembleTrackerError::Line { .. })
        )
    })
    .await;
    assert_eq!(client.servers(), "a:2181,b:2181,c:2181");

    // A change that happens between two sessions, and one in the next.
    scene.link.set(Mode::Cut);
    scene.link.cut();
    scene.server.expire(client.session_id().unwrap()).unwrap();
    scene.configure(&members(&["b", "d"])).await;
    sleep(Duration::from_secs(1)).await;
    scene.link.set(Mode::Pass);
    until("it is applied", || client.servers() == "b:2181,d:2181").await;
    assert_eq!(client.epoch().0, 2);
    scene.configure(&members(&["d"])).await;
    until("it is applied", || client.servers() == "d:2181").await;

    drop(tracker);
    scene.configure(&members(&["e"])).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(client.servers(), "d:2181");
}

#[tokio::test(start_paused = true)]
async fn tracker_returns_to_the_first_servers_from_a_configuration_of_dead_ones() {
    // The client tried the dead servers only, and never heard of a later configuration.
    let scene = Named::new("old", |builder| builder).await;
    let client = &scene.client;
    let _tracker = EnsembleTracker::start(client).unwrap();
    scene.configure(&members(&["dead1", "dead2"])).await;
    until("it has left", || !client.state().is_connected()).await;
    until("it is back", || client.state().is_connected()).await;
    assert_eq!(client.servers(), "dead1:2181,dead2:2181,old:2181");
    assert_eq!(scene.current(), "old:2181");
    scene.configure(&members(&["a"])).await;
    until("it is applied", || client.servers() == "a:2181").await;
    until("it has moved", || {
        client.state().is_connected() && scene.current() == "a:2181"
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn tracker_ends_with_its_client() {
    let scene = Named::new("old", |builder| builder).await;
    let tracker = EnsembleTracker::start_with_port(&scene.client, 2281).unwrap();
    scene.configure(&members(&["a"])).await;
    until("it is applied", || scene.client.servers() == "a:2281").await;
    scene.client.close().await;
    until("it has ended", || {
        matches!(tracker.last_error(), Some(EnsembleTrackerError::Read(_)))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn h62_known_configuration_is_not_applied_again() {
    let scene = Named::new("name", |builder| builder).await;
    let client = &scene.client;
    let _tracker = EnsembleTracker::start(client).unwrap();
    scene.configure(&members(&["10.0.0.1", "10.0.0.2"])).await;
    until("it is applied", || {
        client.servers() == "10.0.0.1:2181,10.0.0.2:2181"
    })
    .await;
    until("it has moved", || {
        client.state().is_connected() && scene.current() != "name:2181"
    })
    .await;
    let mut states = client.states();
    for round in 0..20 {
        let connections = client.connections();
        if round % 2 == 0 {
            let reordered = ["10.0.0.2", "10.0.0.1"];
            scene.configure(&members(&reordered)).await;
        }
        if round == 10 {
            scene.server.expire(client.session_id().unwrap()).unwrap();
        }
        scene.link.cut();
        state(&mut states, ConnectionState::is_connected).await;
        sleep(Duration::from_secs(2)).await;
        assert!(client.connections() <= connections + 2, "round {round}");
        assert_eq!(client.servers(), "10.0.0.1:2181,10.0.0.2:2181");
    }
    assert_eq!(client.epoch().0, 2);
}
