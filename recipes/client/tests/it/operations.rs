//! Every operation, with and without a chroot; errors keep the path.

use std::time::Duration;

use minikeeper_client::{
    Acl, AclList, Client, CreateMode, CreateOptions, Error, ErrorCode, Multi, MultiResult, Perms,
    Reconfiguration,
};

use crate::{
    kit::{create, scene, start},
    link::Link,
};

#[tokio::test(start_paused = true)]
async fn missing_chroot_is_named_in_the_error() {
    // The error was a bare NONODE with a path that the caller had not used.
    let server = start().await;
    let transport = Link::to(&server);
    let builder = Client::builder("server/app/one").unwrap();
    let client = builder.transport(transport).connect().await.unwrap();
    let error = client
        .create("/a", b"", CreateMode::Ephemeral)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "create2 \"/a\": the client's root \"/app/one\" does not exist; create it with \
         Client::create_root, and set ClientBuilder::create_chroot if the chroot is missing"
    );
    assert!(error.is(ErrorCode::NoNode) && !error.is_retryable());
    let is_named = |error: Error| matches!(error, Error::NoRoot { .. });
    assert!(is_named(client.children("/").await.unwrap_err()));
    assert!(is_named(client.get_data("/").await.unwrap_err()));
    // Here another znode may be missing.
    assert!(!is_named(client.get_data("/a").await.unwrap_err()));
    let deep = client.create("/a/b", b"", CreateMode::Ephemeral).await;
    assert!(!is_named(deep.unwrap_err()));
}

#[tokio::test(start_paused = true)]
async fn every_operation_has_its_result() {
    let scene = scene().await;
    let client = &scene.client;
    let created = client
        .create("/a", b"1", CreateMode::Persistent)
        .await
        .unwrap();
    assert_eq!((created.path.as_str(), created.stat.version), ("/a", 0));
    assert_eq!(client.get_data("/a").await.unwrap().as_bytes(), b"1");
    let stat = client.set_data("/a", b"22", Some(0)).await.unwrap();
    assert_eq!((stat.version, stat.data_length), (1, 2));
    client
        .create("/a/b", b"", CreateMode::Ephemeral)
        .await
        .unwrap();
    let children = client.children("/a").await.unwrap();
    assert_eq!(children.names().collect::<Vec<_>>(), ["b"]);
    assert_eq!(children.stat().num_children, 1);
    assert_eq!(client.ephemerals("/a").await.unwrap(), ["/a/b"]);
    assert_eq!(client.all_children_number("/a").await.unwrap(), 1);
    let (acl, stat) = client.get_acl("/a").await.unwrap();
    assert_eq!((acl, stat.aversion), (AclList::world_all(), 0));
    let read_only = AclList::new(&[Acl {
        perms: Perms::READ,
        scheme: Some("world".into()),
        id: Some("anyone".into()),
    }]);
    assert_eq!(
        client
            .set_acl("/a", &read_only, Some(0))
            .await
            .unwrap()
            .aversion,
        1
    );
    client.sync("/a").await.unwrap();
    client.delete("/a/b", None).await.unwrap_err();
    assert_eq!(client.exists("/missing").await.unwrap(), None);
    let reads = client.multi_read(&["/a", "/missing"], &["/a"]).await;
    assert!(
        matches!(reads, Err(Error::MultiRefused { index: 1, .. })),
        "{reads:?}"
    );
    assert_eq!(client.who_am_i().await.unwrap().len(), 1);
    client.add_identity("digest", b"bob:secret").await.unwrap();
    assert_eq!(client.who_am_i().await.unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn znodes_of_container_ttl_and_sequential_modes_are_created() {
    let scene = scene().await;
    let client = &scene.client;
    client
        .create("/box", b"", CreateMode::Container)
        .await
        .unwrap();
    let ttl = CreateOptions::new(CreateMode::PersistentWithTtl).ttl(Duration::from_secs(5));
    client.create("/ttl", b"", ttl).await.unwrap();
    let created = client
        .create("/box/", b"", CreateMode::EphemeralSequential)
        .await
        .unwrap();
    assert_eq!(created.path, "/box/0000000000");
    assert_eq!(Some(created.stat.ephemeral_owner), client.session_id());
}

#[tokio::test(start_paused = true)]
async fn errors_keep_the_path_and_the_reason() {
    let scene = scene().await;
    let client = &scene.client;
    let error = client.get_data("/no/such").await.unwrap_err();
    assert!(error.is(ErrorCode::NoNode) && !error.is_retryable());
    let text = "getData \"/no/such\": znode does not exist (NONODE -101)";
    assert_eq!(error.to_string(), text);
    let error = client.get_data("relative").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "path \"relative\": does not start with a slash"
    );
    let error = client.set_data("/", &[0; 1 << 20], None).await.unwrap_err();
    let text = "setData \"/\": request of 1048577 bytes exceeds the limit of 1048575 bytes";
    assert_eq!(error.to_string(), text);
}

#[tokio::test(start_paused = true)]
async fn multi_is_carried_out_all_or_none() {
    let scene = scene().await;
    let client = &scene.client;
    let multi = Multi::new()
        .create("/a", b"", CreateMode::Persistent)
        .create("/a/n-", b"", CreateMode::PersistentSequential)
        .set_data("/a", b"x", Some(0))
        .check("/a", Some(1));
    let results = client.multi(multi).await.unwrap();
    assert!(matches!(&results[1], MultiResult::Create2 { path, .. } if *path == "/a/n-0000000000"));
    let multi = Multi::new()
        .delete("/a/n-0000000000", None)
        .check("/a", Some(7));
    let error = client.multi(multi).await.unwrap_err();
    let text = "multi: operation 1 on \"/a\": version does not match (BADVERSION -103)";
    assert_eq!(error.to_string(), text);
    assert_eq!(scene.server.children("/a").unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn chroot_is_prefixed_to_every_path() {
    let server = start().await;
    let link = Link::to(&server);
    let root = Client::builder("server").unwrap().transport(link.clone());
    let root = root.connect().await.unwrap();
    create(&root, "/app").await;
    let client = Client::builder("server/app").unwrap().transport(link);
    let client = client.connect().await.unwrap();
    let created = client
        .create("/a-", b"", CreateMode::EphemeralSequential)
        .await
        .unwrap();
    assert_eq!(created.path, "/a-0000000000");
    assert!(server.get("/app/a-0000000000").is_some());
    assert_eq!(client.ephemerals("/").await.unwrap(), ["/a-0000000000"]);
    assert_eq!(client.children("/").await.unwrap().len(), 1);
    let multi = Multi::new().create("/m", b"", CreateMode::Persistent);
    let results = client.multi(multi).await.unwrap();
    assert!(matches!(&results[0], MultiResult::Create2 { path, .. } if *path == "/m"));
    let error = client.delete("/none", None).await.unwrap_err();
    assert!(
        error.to_string().starts_with("delete \"/none\":"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn config_is_read_outside_of_the_chroot() {
    let server = start().await;
    let builder = Client::builder("server/app").unwrap();
    let client = builder
        .transport(Link::to(&server))
        .connect()
        .await
        .unwrap();
    let config = client.config().await.unwrap();
    let expected = server.get("/zookeeper/config").unwrap();
    assert_eq!(config.stat, expected.1);
    let (_, watch) = client.config_and_watch().await.unwrap();
    assert_eq!(watch.fired(), None);
    // The chroot is missing, but that is not what the server refuses.
    let change = Reconfiguration::new().leaving("1").from_version(Some(7));
    let error = client.reconfigure(change).await.unwrap_err();
    assert!(error.is(ErrorCode::ReconfigDisabled), "{error}");
}

#[tokio::test(start_paused = true)]
async fn null_data_is_not_empty_data() {
    let client = scene().await.client;
    let null = CreateOptions::new(CreateMode::Persistent).null_data(true);
    client.create("/null", b"ignored", null).await.unwrap();
    create(&client, "/empty").await;
    assert_eq!(client.get_data("/null").await.unwrap().data, None);
    let empty = client.get_data("/empty").await.unwrap().data;
    assert_eq!(empty.as_deref(), Some(&b""[..]));
}

#[tokio::test]
async fn calls_over_tcp_succeed() {
    let server = start().await;
    let client = Client::connect(&server.connect_string()).await.unwrap();
    create(&client, "/a").await;
    let calls: Vec<_> = (0..1000).map(|_| client.get_data("/a")).collect();
    for call in calls {
        call.await.unwrap();
    }
    let large = vec![7; 900_000];
    client.set_data("/a", &large, None).await.unwrap();
    assert_eq!(client.get_data("/a").await.unwrap().as_bytes(), large);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_tasks_share_one_client() {
    let server = start().await;
    let client = Client::connect(&server.connect_string()).await.unwrap();
    create(&client, "/n").await;
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                for _ in 0..50 {
                    client
                        .create("/n/", b"", CreateMode::PersistentSequential)
                        .await
                        .unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(client.children("/n").await.unwrap().len(), 800);
}
