//! Service discovery. Tests that Curator's `TestServiceDiscovery`, `TestServiceCache`,
//! `TestServiceProvider`, `TestDownInstanceManager` and `TestJsonInstanceSerializer` also have keep
//! their names.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use minikeeper::{Fault, Server};
use minikeeper_client::{Client, CreateMode, ErrorCode};
use minikeeper_recipes::{
    DiscoveryError, DownInstancePolicy, InstanceError, LockError, RandomStrategy, ServiceCache,
    ServiceChanges, ServiceDiscovery, ServiceInstance, ServiceProvider, ServiceProviderBuilder,
    ServiceType, StickyStrategy, UriSpec,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    kit::{SESSION_TIMEOUT, client, create, soon, spawn, start, until},
    link::Mode,
};

const BASE: &str = "/services";
const DIRECTORY: &str = "/services/test";
const PATH: &str = "/services/test/thing";

fn discovery(client: &Client) -> ServiceDiscovery {
    ServiceDiscovery::new(client.clone(), BASE).unwrap()
}

fn thing() -> ServiceInstance {
    ServiceInstance::new("test")
        .id("thing")
        .address("h")
        .port(10064)
        .payload("thing")
}

fn ids(instances: &[Arc<ServiceInstance>]) -> Vec<&str> {
    instances.iter().map(|instance| &*instance.id).collect()
}

fn data(server: &Server, path: &str) -> Vec<u8> {
    server.get(path).unwrap().0.unwrap_or_default().to_vec()
}

/// Java's bytes for the same instance; `tests/interop/discovery` compares with Java itself.
#[test]
fn test_basic_json_is_javas() {
    let instance: ServiceInstance = ServiceInstance::new("name")
        .id("id")
        .address("address")
        .port(10)
        .ssl_port(20)
        .payload("payload")
        .uri_spec("{a}/b/{c}".parse().unwrap());
    let json = concat!(
        r#"{"name":"name","id":"id","address":"address","port":10,"sslPort":20,"payload":"payload","#,
        r#""registrationTimeUTC":0,"serviceType":"DYNAMIC","uriSpec":{"parts":[{"value":"a","#,
        r#""variable":true},{"value":"/b/","variable":false},{"value":"c","variable":true}]}}"#
    );
    assert_eq!(
        String::from_utf8(instance.to_json().unwrap()).unwrap(),
        json
    );
    assert_eq!(ServiceInstance::from_json(json.as_bytes()), Ok(instance));
}

#[test]
fn test_no_enabled_state_and_every_missing_field_has_javas_default() {
    let empty: ServiceInstance = ServiceInstance::from_json(b"{}").unwrap();
    assert_eq!(empty, ServiceInstance::new(""));
    assert!(empty.enabled && empty.service_type == ServiceType::Dynamic);
    let nulls =
        br#"{"name":"a","address":null,"port":null,"payload":null,"uriSpec":null,"more":[]}"#;
    assert_eq!(
        ServiceInstance::from_json(nulls),
        Ok(ServiceInstance::<Value>::new("a"))
    );
}

/// Curator's serialiser leaves `enabled` out by default, so that a disabled instance is enabled for
/// all other processes.
#[test]
fn h63_a_disabled_instance_is_disabled_for_others() {
    let instance = thing().enabled(false);
    let json = instance.to_json().unwrap();
    assert!(json.ends_with(br#","enabled":false}"#));
    assert_eq!(ServiceInstance::from_json(&json), Ok(instance));
}

#[test]
fn test_payload_class_as_list_and_as_map() {
    let read = |payload: &str| {
        let json = format!(r#"{{"name":"n","payload":{payload}}}"#);
        let read: ServiceInstance = ServiceInstance::from_json(json.as_bytes()).unwrap();
        let written: Value = serde_json::from_slice(&read.to_json().unwrap()).unwrap();
        assert_eq!(
            written["payload"],
            serde_json::from_str::<Value>(payload).unwrap()
        );
        (read.payload, read.payload_class)
    };
    let class = |name: &str| Some(name.to_owned());
    assert_eq!(
        read(r#"{"@class":"com.example.Meta","zone":"a"}"#),
        (Some(json!({"zone": "a"})), class("com.example.Meta"))
    );
    assert_eq!(
        read(r#"["java.util.ArrayList",["a","b"]]"#),
        (Some(json!(["a", "b"])), None)
    );
    assert_eq!(
        read(r#"["java.util.LinkedList",["a"]]"#),
        (Some(json!(["a"])), class("java.util.LinkedList"))
    );
    assert_eq!(
        read(r#"["java.lang.Long",5]"#),
        (Some(json!(5)), class("java.lang.Long"))
    );
    for natural in [r#""text""#, "7", "7.5", "true", r#"{"zone":"a"}"#] {
        let payload = serde_json::from_str(natural).unwrap();
        assert_eq!(read(natural), (Some(payload), None));
    }
    let typed = ServiceInstance::<BTreeMap<String, u32>>::from_json(
        br#"{"payload":{"@class":"java.util.HashMap","a":1}}"#,
    );
    assert_eq!(
        typed.unwrap().payload,
        Some(BTreeMap::from([("a".to_owned(), 1)]))
    );
}

#[test]
fn test_wrong_payload_type_and_every_other_damage_is_an_error() {
    let wrong = ServiceInstance::<u32>::from_json(br#"{"payload":"text"}"#).unwrap_err();
    assert!(matches!(&wrong, InstanceError::Payload { message } if message.contains("text")));
    let deep = [b"{\"payload\":".to_vec(), vec![b'['; 100_000]].concat();
    for damaged in [&b""[..], b"null", b"[]", b"{", b"\xff\xfe", b"{}x", &deep] {
        let read = ServiceInstance::<Value>::from_json(damaged);
        assert!(
            matches!(read, Err(InstanceError::NotJson { .. })),
            "{read:?}"
        );
    }
    for (field, damaged) in [
        ("name", r#"{"name":7}"#),
        ("port", r#"{"port":65536}"#),
        ("sslPort", r#"{"sslPort":-1}"#),
        ("port", r#"{"port":"eighty"}"#),
        ("registrationTimeUTC", r#"{"registrationTimeUTC":{}}"#),
        ("serviceType", r#"{"serviceType":"LAZY"}"#),
        ("uriSpec", r#"{"uriSpec":{"parts":7}}"#),
        ("enabled", r#"{"enabled":7}"#),
    ] {
        match ServiceInstance::<Value>::from_json(damaged.as_bytes()) {
            Err(InstanceError::Field { field: found, .. }) => assert_eq!(found, field),
            other => panic!("{damaged}: {other:?}"),
        }
    }
    let long = format!(r#"{{"name":["{}"]}}"#, "ä".repeat(100_000));
    let error = ServiceInstance::<Value>::from_json(long.as_bytes()).unwrap_err();
    assert!(error.to_string().len() < 1_000);
}

#[tokio::test(start_paused = true)]
async fn test_basic_and_multiple_instances() {
    let server = start().await;
    let (ours, _) = client(&server, 1).await;
    let (theirs, _) = client(&server, 2).await;
    let (here, there) = (discovery(&ours), discovery(&theirs));
    assert_eq!(there.query_for_names().await.unwrap(), [""; 0]);
    let empty = there.query_for_instances("test").await.unwrap();
    assert!(empty.instances.is_empty() && empty.damaged.is_empty());
    assert_eq!(
        there.query_for_instance("test", "thing").await.unwrap(),
        None
    );

    let first = here.register(thing()).await.unwrap();
    assert!(first.registration_time_utc > 1_500_000_000_000);
    let second = here.register(ServiceInstance::new("test")).await.unwrap();
    assert_eq!(second.id.len(), 36);
    here.register(ServiceInstance::new("more")).await.unwrap();
    assert_eq!(there.query_for_names().await.unwrap(), ["more", "test"]);
    let found = there.query_for_instances("test").await.unwrap();
    let mut all = [first.clone(), second.clone()];
    all.sort_by(|a, b| a.id.cmp(&b.id));
    assert_eq!(found.instances, all);
    let one = there.query_for_instance("test", "thing").await.unwrap();
    assert_eq!(one.as_ref(), Some(&*first));
    assert_eq!(here.registered().len(), 3);

    soon(here.unregister(&first)).await.unwrap();
    soon(here.unregister(&first)).await.unwrap();
    assert_eq!(
        there.query_for_instances("test").await.unwrap().instances,
        [second]
    );
    soon(here.close()).await.unwrap();
    assert!(here.registered().is_empty());
    assert!(
        there
            .query_for_instances("test")
            .await
            .unwrap()
            .instances
            .is_empty()
    );
    until("no watch is left", || !server.dump().contains("watch")).await;
}

#[tokio::test(start_paused = true)]
async fn test_crashed_server_every_type_is_registered_again_with_its_last_data() {
    let types = [
        ServiceType::Dynamic,
        ServiceType::Static,
        ServiceType::Permanent,
        ServiceType::DynamicSequential,
    ];
    for service_type in types {
        let server = start().await;
        let (ours, link) = client(&server, 1).await;
        let here = discovery(&ours);
        here.register(thing().service_type(service_type))
            .await
            .unwrap();
        let after = thing().service_type(service_type).port(1);
        let after = soon(here.update(after)).await.unwrap();
        for round in 0..3 {
            if round == 1 {
                link.set(Mode::Cut);
                sleep(Duration::from_millis(300)).await;
                link.set(Mode::Pass);
            }
            server.expire(ours.session_id().unwrap()).unwrap();
            sleep(Duration::from_secs(10)).await;
            let found = soon(here.query_for_instances("test")).await.unwrap();
            assert_eq!(
                found.instances,
                std::slice::from_ref(&after),
                "{service_type:?}, {round}"
            );
            assert_eq!(found.damaged, []);
        }
        let names = server.children(DIRECTORY).unwrap();
        let owner = server
            .get(&format!("{DIRECTORY}/{}", names[0]))
            .unwrap()
            .1
            .ephemeral_owner;
        let is_ephemeral = owner.0 != 0;
        assert_eq!(
            is_ephemeral,
            !matches!(service_type, ServiceType::Static | ServiceType::Permanent)
        );
        drop(here);
        until("dropping it unregisters", || {
            server.children(DIRECTORY).unwrap_or_default().is_empty()
        })
        .await;
    }
}

/// Curator registers a sequential instance again after each reconnect, and its `unregisterService`
/// deletes the name without the number, which does not exist.
#[tokio::test(start_paused = true)]
async fn h64_a_sequential_instance_is_registered_once_and_unregistered() {
    let server = start().await;
    let (ours, link) = client(&server, 1).await;
    let here = discovery(&ours);
    let sequential = thing().service_type(ServiceType::DynamicSequential);
    let registered = here.register(sequential).await.unwrap();
    for _ in 0..3 {
        link.set(Mode::Cut);
        sleep(Duration::from_millis(100)).await;
        link.set(Mode::Pass);
        sleep(Duration::from_secs(2)).await;
    }
    assert_eq!(server.children(DIRECTORY).unwrap().len(), 1);
    soon(here.unregister(&registered)).await.unwrap();
    assert_eq!(server.children(DIRECTORY).unwrap_or_default(), [""; 0]);
}

/// Curator keeps registrations by id alone: the second service of an id is not registered again.
#[tokio::test(start_paused = true)]
async fn h65_two_services_with_one_id_both_come_back() {
    let server = start().await;
    let (ours, _) = client(&server, 1).await;
    let here = discovery(&ours);
    for name in ["a", "b"] {
        here.register(ServiceInstance::new(name).id("7"))
            .await
            .unwrap();
    }
    server.expire(ours.session_id().unwrap()).unwrap();
    sleep(Duration::from_secs(10)).await;
    for name in ["a", "b"] {
        assert_eq!(
            here.query_for_instances(name)
                .await
                .unwrap()
                .instances
                .len(),
            1
        );
    }
}

/// Curator's query throws for all instances if one is damaged, and its cache drops the change.
#[tokio::test(start_paused = true)]
async fn h66_a_damaged_instance_is_reported_and_hides_no_other() {
    let server = start().await;
    let (ours, _) = client(&server, 1).await;
    let here = discovery(&ours);
    let cache = here.cache("test").unwrap();
    soon(cache.initialized()).await.unwrap();
    let good = here.register(thing()).await.unwrap();
    let bad = "/services/test/bad";
    ours.create(bad, b"{\"port\":7", CreateMode::Persistent)
        .await
        .unwrap();
    let found = here.query_for_instances("test").await.unwrap();
    assert_eq!(found.instances, std::slice::from_ref(&good));
    assert_eq!(found.damaged.len(), 1);
    assert_eq!(found.damaged[0].path, bad);
    match here.query_for_instance("test", "bad").await {
        Err(DiscoveryError::Damaged { path, .. }) => assert_eq!(path, bad),
        other => panic!("{other:?}"),
    }
    until("the cache has both", || {
        cache.instances().damaged.len() == 1
    })
    .await;
    assert_eq!(*cache.instances(), found);
    // Repaired by its owner.
    ours.set_data(bad, &good.to_json().unwrap(), None)
        .await
        .unwrap();
    until("it is read again", || cache.instances().damaged.is_empty()).await;
    assert_eq!(cache.instances().instances.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn names_that_are_no_znodes_are_refused_without_a_request() {
    let server = start().await;
    let (ours, _) = client(&server, 1).await;
    let here = discovery(&ours);
    let before = server.dump();
    for name in ["", ".", "..", "a/b", "/", "a\u{0}", "\u{7f}"] {
        let refused = [
            here.register(ServiceInstance::new(name)).await.err(),
            here.query_for_instances(name).await.err(),
            here.cache(name).err(),
            here.provider(name).start().err(),
            here.query_for_instance("test", name).await.err(),
        ];
        for error in refused {
            let is_refused =
                matches!(&error, Some(DiscoveryError::Name { name: odd, .. }) if odd == name);
            assert!(is_refused, "{name:?}: {error:?}");
        }
        if !name.is_empty() {
            let id = here.register(thing().id(name)).await;
            assert!(matches!(id, Err(DiscoveryError::Name { .. })), "{id:?}");
        }
    }
    assert_eq!(server.dump(), before);
    for odd in ["zoë", "a b", "...", "_c_x", "日本"] {
        let there = here
            .register(ServiceInstance::new(odd).id(odd))
            .await
            .unwrap();
        assert_eq!(
            here.query_for_instances(odd).await.unwrap().instances,
            [there]
        );
    }
}

/// The first one waited for data that the znode never had.
#[tokio::test(start_paused = true)]
async fn an_update_that_another_one_overtakes_ends() {
    let server = start().await;
    let (ours, _) = client(&server, 1).await;
    let here = discovery(&ours);
    here.register(thing()).await.unwrap();
    let updates = (1..4).map(|port| {
        let here = here.clone();
        spawn(async move { here.update(thing().port(port)).await })
    });
    for update in updates.collect::<Vec<_>>() {
        soon(update).await.unwrap().unwrap();
    }
    let read = here.query_for_instance("test", "thing").await.unwrap();
    assert_eq!(read.unwrap().port, Some(3));
}

/// CURATOR-617: the failed call forgot the instance, so that the next one did nothing.
#[tokio::test(start_paused = true)]
async fn h69_unregistering_without_a_session_deletes_the_znode_later() {
    for service_type in [ServiceType::Dynamic, ServiceType::Static] {
        let server = start().await;
        let (ours, link) = client(&server, 1).await;
        let here = discovery(&ours);
        let registered = here.register(thing().service_type(service_type)).await;
        link.down();
        let unregistering = spawn(async move { here.unregister(&registered.unwrap()).await });
        sleep(10 * SESSION_TIMEOUT).await;
        link.up(&server);
        soon(unregistering).await.unwrap().unwrap();
        let left = server.children(DIRECTORY).unwrap_or_default();
        assert!(left.is_empty(), "{service_type:?}: {left:?}");
    }
}

/// It waited for a minute, and then said that it continued in the background.
#[tokio::test(start_paused = true)]
async fn id_of_another_session_that_lives_is_an_error_that_names_it() {
    for is_kept in [true, false] {
        let server = start().await;
        let (ours, _) = client(&server, 1).await;
        let (theirs, _) = client(&server, 2).await;
        let session = theirs.session_id().unwrap();
        let path = format!("{DIRECTORY}/7");
        theirs.create_root().await.unwrap();
        let mut parent = String::new();
        for name in DIRECTORY.split('/').skip(1) {
            parent = format!("{parent}/{name}");
            let _ = theirs.create(&parent, b"", CreateMode::Persistent).await;
        }
        theirs
            .create(&path, b"", CreateMode::Ephemeral)
            .await
            .unwrap();
        // Creates it again whenever it is deleted, faster than the caller.
        let keeping = spawn({
            let path = path.clone();
            async move {
                let mut watcher = minikeeper_client::PersistentWatcher::new(
                    theirs.clone(),
                    &path,
                    minikeeper_client::AddWatchMode::Persistent,
                )
                .unwrap();
                while watcher.next().await.is_ok() {
                    if is_kept {
                        let _ = theirs.create(&path, b"", CreateMode::Ephemeral).await;
                    }
                }
            }
        });
        sleep(Duration::from_millis(100)).await;
        // The reply to the deletion takes longer than the other's event and its creation.
        let here = discovery(&ours);
        let fault = Fault::delay(Duration::from_millis(50));
        let fault = fault
            .of(ours.session_id().unwrap())
            .on(minikeeper::OpCode::Create2);
        let _fault = server.inject(fault.optional()).unwrap();
        let begin = minikeeper_test_kit::clock::now();
        let registered = here.register(ServiceInstance::new("test").id("7")).await;
        if is_kept {
            match registered {
                Err(DiscoveryError::Taken { path: taken, owner }) => {
                    assert_eq!((taken, owner), (path.clone(), session));
                }
                other => panic!("the id is taken, but {other:?}"),
            }
            assert!(here.registered().is_empty());
        } else {
            registered.unwrap();
        }
        assert!(begin.elapsed() < SESSION_TIMEOUT, "{:?}", begin.elapsed());
        keeping.abort();
    }
}

/// The process whose id another one took over waited without a word: `path` returned `None`, and
/// `update` did not return.
#[tokio::test(start_paused = true)]
async fn process_whose_id_is_taken_over_learns_by_whom() {
    let server = start().await;
    let (ours, _) = client(&server, 1).await;
    let (theirs, _) = client(&server, 2).await;
    let (here, there) = (discovery(&ours), discovery(&theirs));
    let instance = || ServiceInstance::new("test").id("7");
    let registered = here.register(instance()).await.unwrap();
    let node = here.node(&registered).unwrap();
    assert_eq!(node.taken_by(), None);
    // The other process is faster than the one that creates its znode again.
    let fault = Fault::delay(Duration::from_millis(50));
    let fault = fault
        .of(ours.session_id().unwrap())
        .on(minikeeper::OpCode::Create2);
    let slow = server.inject(fault).unwrap();
    there.register(instance().port(2)).await.unwrap();
    assert_eq!(soon(node.taken()).await, theirs.session_id());
    assert_eq!(node.taken_by(), theirs.session_id());
    drop(slow);
    match soon(here.update(instance().port(3))).await {
        Err(DiscoveryError::Taken { path, owner }) => {
            assert_eq!(path, format!("{DIRECTORY}/7"));
            assert_eq!(Some(owner), theirs.session_id());
        }
        other => panic!("the id is taken, but {other:?}"),
    }
    // It has the id again once the other one is gone, with the data that was set last.
    there.close().await.unwrap();
    soon(node.updated()).await.unwrap();
    assert_eq!(node.taken_by(), None);
    let found = here.query_for_instance("test", "7").await.unwrap();
    assert_eq!(found.unwrap().port, Some(3));
    here.close().await.unwrap();
    assert_eq!(soon(node.taken()).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_starts_again_need_not_wait_for_its_old_session() {
    let server = start().await;
    let (old, link) = client(&server, 1).await;
    discovery(&old).register(thing()).await.unwrap();
    let crashed = discovery(&old);
    crashed.register(thing().port(1)).await.unwrap();
    link.set(Mode::SwallowRequests);
    let (new, _) = client(&server, 2).await;
    let again = discovery(&new);
    let begin = minikeeper_test_kit::clock::now();
    for service_type in [
        ServiceType::Dynamic,
        ServiceType::Static,
        ServiceType::Dynamic,
    ] {
        let registered = again
            .register(thing().port(2).service_type(service_type))
            .await;
        let found = again.query_for_instances("test").await.unwrap();
        assert_eq!(found.instances, [registered.unwrap()]);
    }
    assert!(
        begin.elapsed() < Duration::from_secs(1),
        "{:?}",
        begin.elapsed()
    );
    assert_eq!(server.children(DIRECTORY).unwrap(), ["thing"]);
    let owner = server.get(PATH).unwrap().1.ephemeral_owner;
    assert_eq!(Some(owner), new.session_id());
    drop(crashed);
}

#[tokio::test(start_paused = true)]
async fn a_refused_registration_is_no_registration() {
    let server = start().await;
    let (ours, _) = client(&server, 1).await;
    let here = discovery(&ours);
    let fault = Fault::error(ErrorCode::NoAuth).at(PATH).times(9);
    let _guard = server.inject(fault).unwrap();
    match here.register(thing()).await {
        Err(DiscoveryError::Failed(LockError::Client(error))) => {
            assert!(error.is(ErrorCode::NoAuth), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert!(here.registered().is_empty());
    match here.update(thing()).await {
        Err(DiscoveryError::NotRegistered { name, id }) => {
            assert_eq!((&*name, &*id), ("test", "thing"));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn test_update_waits_until_the_znode_has_the_data() {
    let server = start().await;
    let (ours, link) = client(&server, 1).await;
    link.delay_replies(Duration::from_millis(5));
    let here = discovery(&ours);
    here.register(thing()).await.unwrap();
    for port in 1..20 {
        let updated = here.update(thing().port(port)).await.unwrap();
        assert_eq!(data(&server, PATH), updated.to_json().unwrap());
    }
    // The znode is not created anew: watchers of its data see each change.
    assert_eq!(server.get(PATH).unwrap().1.version, 19);
}

#[tokio::test(start_paused = true)]
async fn test_cache_follows_and_keeps_the_last_instances_without_a_connection() {
    let server = start().await;
    let (ours, _) = client(&server, 1).await;
    let (theirs, link) = client(&server, 2).await;
    let here = discovery(&ours);
    let cache = discovery(&theirs).cache("test").unwrap();
    soon(cache.initialized()).await.unwrap();
    let mut changes = cache.changes();
    let first = here.register(thing()).await.unwrap();
    assert_eq!(
        soon(changes.next()).await.unwrap().instances,
        std::slice::from_ref(&first)
    );
    let second = here.update(thing().port(1)).await.unwrap();
    assert_eq!(
        soon(changes.next()).await.unwrap().instances,
        std::slice::from_ref(&second)
    );
    // What has not changed is read once.
    assert!(Arc::ptr_eq(&cache.instances(), &cache.instances()));
    here.register(ServiceInstance::new("test").id("zz"))
        .await
        .unwrap();
    let before = soon(changes.next()).await.unwrap();
    assert_eq!(ids(&before.instances), ["thing", "zz"]);
    let instances = &cache.instances().instances;
    assert!(Arc::ptr_eq(&instances[0], &before.instances[0]));

    link.set(Mode::Cut);
    soon(here.close()).await.unwrap();
    sleep(Duration::from_secs(30)).await;
    assert_eq!(ids(&cache.instances().instances), ["thing", "zz"]);
    link.set(Mode::Pass);
    until("it follows again", || {
        cache.instances().instances.is_empty()
    })
    .await;
    soon(cache.close()).await;
    assert!(changes.next().await.is_ok());
    drop((cache, changes));
    until("no watch is left", || !server.dump().contains("watch")).await;
}

#[tokio::test(start_paused = true)]
async fn test_disabled_and_filtered_instances_are_not_chosen() {
    let server = start().await;
    let (ours, _) = client(&server, 1).await;
    let here = discovery(&ours);
    for id in ["a", "b", "c"] {
        let instance = ServiceInstance::new("test").id(id).enabled(id != "b");
        here.register(instance).await.unwrap();
    }
    let provider = here.provider("test").start().unwrap();
    soon(provider.initialized()).await.unwrap();
    assert_eq!(ids(&provider.all_instances()), ["a", "c"]);
    let chosen: Vec<_> = (0..4)
        .map(|_| provider.instance().unwrap().id.clone())
        .collect();
    assert_eq!(chosen, ["a", "c", "a", "c"]);
    assert_eq!(provider.cache().instances().instances.len(), 3);

    let only_c = here
        .provider("test")
        .filter(|one| one.id == "c")
        .start()
        .unwrap();
    soon(only_c.initialized()).await.unwrap();
    assert_eq!(ids(&only_c.all_instances()), ["c"]);
    let sticky = StickyStrategy::new(RandomStrategy);
    let sticky = here.provider("test").strategy(sticky).start().unwrap();
    soon(sticky.initialized()).await.unwrap();
    let first = sticky.instance().unwrap();
    for port in 1..20 {
        here.update(ServiceInstance::clone(&first).port(port))
            .await
            .unwrap();
        assert_eq!(sticky.instance().unwrap().id, first.id);
    }
    soon(here.unregister(&first)).await.unwrap();
    until("another one", || sticky.instance().unwrap().id != first.id).await;
    soon(provider.close()).await;
    assert!(provider.instance().is_some());
}

#[tokio::test(start_paused = true)]
async fn test_threshold_and_expiration_of_errors() {
    let server = start().await;
    let (ours, _) = client(&server, 1).await;
    let here = discovery(&ours);
    let a = here
        .register(ServiceInstance::new("test").id("a"))
        .await
        .unwrap();
    let b = here
        .register(ServiceInstance::new("test").id("b"))
        .await
        .unwrap();
    let mut policy = DownInstancePolicy::default();
    policy.timeout = Duration::from_secs(10);
    let provider = here
        .provider("test")
        .down_instance_policy(policy)
        .start()
        .unwrap();
    soon(provider.initialized()).await.unwrap();
    provider.note_error(&a);
    assert_eq!(provider.all_instances().len(), 2);
    sleep(Duration::from_secs(5)).await;
    provider.note_error(&a);
    assert_eq!(ids(&provider.all_instances()), ["b"]);
    // An update is no reason to choose it again, unlike in Curator; registering it anew is.
    let a = here
        .update(ServiceInstance::clone(&a).port(1))
        .await
        .unwrap();
    until("the cache has it", || {
        provider.cache().instances().instances.contains(&a)
    })
    .await;
    assert_eq!(ids(&provider.all_instances()), ["b"]);
    provider.note_error(&b);
    provider.note_error(&b);
    assert!(provider.instance().is_none());
    sleep(Duration::from_millis(4_900)).await;
    assert_eq!(ids(&provider.all_instances()), [""; 0]);
    sleep(Duration::from_millis(101)).await;
    assert_eq!(ids(&provider.all_instances()), ["a"]);
    let anew = ServiceInstance::clone(&b).registration_time_utc(0);
    sleep(Duration::from_millis(10)).await;
    let anew = anew.registration_time_utc(b.registration_time_utc + 1);
    here.register(anew).await.unwrap();
    until("it is chosen", || provider.all_instances().len() == 2).await;
    // Instances that no process has registered take no memory.
    for number in 0..1_000 {
        provider.note_error(&ServiceInstance::new("test").id(number.to_string()));
    }
    assert!(!format!("{provider:?}").is_empty());
}

#[tokio::test(start_paused = true)]
async fn dropped_and_concurrent_registrations_leave_at_most_one_znode() {
    for delay_ms in 0..12 {
        let server = start().await;
        let (ours, link) = client(&server, 1).await;
        link.delay_replies(Duration::from_millis(1));
        let here = discovery(&ours);
        let wait = Duration::from_millis(delay_ms);
        let _ = tokio::time::timeout(wait, here.register(thing())).await;
        let (first, second) = tokio::join!(
            here.register(thing().port(1)),
            here.register(thing().port(2))
        );
        assert!(first.is_ok() && second.is_ok(), "{delay_ms}");
        sleep(Duration::from_secs(5)).await;
        let registered = here.registered();
        assert_eq!(registered.len(), 1);
        let found = here.query_for_instances("test").await.unwrap();
        assert_eq!(found.instances, registered, "{delay_ms}");
        soon(here.close()).await.unwrap();
        assert!(server.children(DIRECTORY).unwrap_or_default().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_instances_are_read_many_at_a_time() {
    let server = start().await;
    let (ours, link) = client(&server, 1).await;
    let here = discovery(&ours);
    create(&ours, BASE).await;
    create(&ours, DIRECTORY).await;
    for number in 0..1_000 {
        let json = thing().id(number.to_string()).to_json().unwrap();
        let path = format!("{DIRECTORY}/{number}");
        ours.create(&path, &json, CreateMode::Persistent)
            .await
            .unwrap();
    }
    link.delay_replies(Duration::from_millis(100));
    let begin = minikeeper_test_kit::clock::now();
    let found = here.query_for_instances("test").await.unwrap();
    assert_eq!(found.instances.len(), 1_000);
    // The link delays each part of a long reply.
    assert!(
        begin.elapsed() < Duration::from_secs(10),
        "{:?}",
        begin.elapsed()
    );
}

/// Refuses each request once: those that a retry helps change nothing, others are the call's error,
/// and the next call succeeds.
#[tokio::test(start_paused = true)]
async fn every_refusal_of_every_request_has_its_outcome() {
    for code in [
        ErrorCode::ConnectionLoss,
        ErrorCode::ThrottledOp,
        ErrorCode::NoAuth,
    ] {
        for step in 0..14 {
            let server = start().await;
            let (ours, _) = client(&server, 1).await;
            let here = discovery(&ours);
            let fault = Fault::error(code).at("/**").skip(step).once().optional();
            let _fault = server.inject(fault).unwrap();
            let mut errors = Vec::new();
            let registered = soon(here.register(thing())).await;
            errors.extend(registered.err());
            errors.extend(soon(here.update(thing().port(1))).await.err());
            errors.extend(soon(here.query_for_names()).await.err());
            errors.extend(soon(here.query_for_instances("test")).await.err());
            errors.extend(soon(here.query_for_instance("test", "thing")).await.err());
            let again = soon(here.register(thing().port(2))).await;
            errors.extend(again.err());
            for error in errors {
                let is_right = match &error {
                    DiscoveryError::Failed(LockError::Client(error)) => error.is(code),
                    DiscoveryError::NotRegistered { .. } => true,
                    _ => false,
                };
                assert!(
                    is_right && code == ErrorCode::NoAuth,
                    "{code:?} at {step}: {error}"
                );
            }
            let last = soon(here.register(thing().port(3))).await.unwrap();
            let found = here.query_for_instances("test").await.unwrap();
            assert_eq!(
                found.instances,
                std::slice::from_ref(&last),
                "{code:?} at {step}"
            );
            assert_eq!(here.node(&last).unwrap().path().as_deref(), Some(PATH));
            soon(here.close()).await.unwrap();
            until("nothing is left", || {
                server.children(DIRECTORY).unwrap_or_default().is_empty()
                    && !server.dump().contains("watch")
            })
            .await;
        }
    }
}

#[test]
fn uri_of_an_instance_follows_its_template() {
    let spec: UriSpec = "{scheme}://{address}:{port}".parse().unwrap();
    assert_eq!(thing().uri_spec(spec).build_uri_spec(), "http://h:10064");
    assert_eq!(thing().build_uri_spec(), "");
}

#[test]
fn every_type_is_shared_and_every_future_sent_between_threads() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>(_: &T) {}
    shared::<(
        DiscoveryError,
        InstanceError,
        ServiceDiscovery,
        ServiceInstance,
    )>();
    shared::<(
        ServiceCache,
        ServiceChanges,
        ServiceProvider,
        ServiceProviderBuilder,
    )>();
    let _ = |here: ServiceDiscovery, provider: ServiceProvider, mut changes: ServiceChanges| {
        sent(&here.register(thing()));
        sent(&here.update(thing()));
        sent(&here.unregister(&thing()));
        sent(&here.close());
        sent(&here.query_for_names());
        sent(&here.query_for_instances(""));
        sent(&here.query_for_instance("", ""));
        sent(&provider.initialized());
        sent(&provider.close());
        sent(&changes.next());
    };
}

#[tokio::test(start_paused = true)]
async fn h70_every_call_ends_within_its_limit_when_no_server_replies() {
    const LIMIT: Duration = Duration::from_millis(500);
    let server = start().await;
    let (ours, link) = client(&server, 1).await;
    let ours = ours.with_call_timeout(LIMIT);
    let here = discovery(&ours);
    let registered = here.register(thing()).await.unwrap();
    link.set(Mode::SwallowReplies);
    let late = |error: DiscoveryError, call: &str| {
        let text = error.to_string();
        assert!(text.contains("no result within 500 ms"), "{call}: {text}");
    };
    late(here.query_for_names().await.unwrap_err(), "names");
    late(
        here.query_for_instances("test").await.unwrap_err(),
        "instances",
    );
    late(
        here.query_for_instance("test", "1").await.unwrap_err(),
        "instance",
    );
    late(
        here.register(thing().id("2")).await.unwrap_err(),
        "register",
    );
    late(here.update(thing().port(9)).await.unwrap_err(), "update");
    late(
        here.unregister(&registered).await.unwrap_err(),
        "unregister",
    );
    late(here.close().await.unwrap_err(), "close");
    // What timed out continues, and can be asked for again.
    link.set(Mode::Pass);
    link.cut();
    soon(here.unregister(&registered)).await.unwrap();
    let left = server.children(DIRECTORY).unwrap_or_default();
    assert!(!left.contains(&registered.id), "{left:?}");
}
