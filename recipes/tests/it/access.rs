//! Every recipe in a namespace and with access lists: whatever it creates has the list of the
//! client's provider, and only its identity can use it.

use std::sync::Arc;

use minikeeper::Server;
use minikeeper_client::{Acl, AclList, Client, ClientBuilder, ErrorCode, Perms};
use minikeeper_recipes::{
    InterProcessMutex, LockError, LockOptions, PersistentNode, Released, SharedCount,
};
use tokio::time::{Duration, sleep};

use crate::{
    every_recipe::Recipe,
    kit::{PATH, both_ways, builder, soon, start, until},
    link::Link,
};

fn secured(server: &Arc<Server>, seed: u64) -> ClientBuilder {
    let owner = Acl::new(Perms::ALL, "auth", "");
    builder(&Link::to(server), seed)
        .identity("digest", "app:secret")
        .acl_provider(AclList::new(&[owner]))
        .namespace("secured")
        .unwrap()
}

/// Returns the paths of all znodes but ZooKeeper's own.
async fn all(admin: &Client) -> Vec<String> {
    let mut paths = vec!["/".to_owned()];
    let mut next = 0;
    while next < paths.len() {
        let path = paths[next].trim_end_matches('/').to_owned();
        if let Ok(names) = admin.children(&paths[next]).await {
            let names = names.names().map(|name| format!("{path}/{name}"));
            paths.extend(names.filter(|path| path != "/zookeeper"));
        }
        next += 1;
    }
    paths.split_off(1)
}

/// Checks the access lists of all znodes; returns how many there are.
async fn check(recipe: Recipe, admin: &Client, stranger: &Client) -> usize {
    let paths = all(admin).await;
    for path in &paths {
        let list = match admin.get_acl(path).await {
            Ok((list, _)) => list,
            Err(error) if error.is(ErrorCode::NoNode) => continue,
            Err(error) => panic!("{recipe:?}: {error}"),
        };
        let owner = list.entries().next().and_then(|entry| entry.id);
        let is_its = owner.is_some_and(|id| id.as_bytes().starts_with(b"app:"));
        assert!(is_its, "{recipe:?}: {path} has {list:?}");
        let theirs = stranger.get_data(path).await;
        assert!(theirs.is_err(), "{recipe:?}: {path} is open");
    }
    paths.len()
}

async fn check_access(recipe: Recipe, options: &LockOptions) {
    let server = start().await;
    let one = secured(&server, 1).connect().await.unwrap();
    let two = secured(&server, 2).connect().await.unwrap();
    let admin = one.with_namespace("").unwrap();
    let stranger = builder(&Link::to(&server), 3).connect().await.unwrap();
    let delay = Duration::from_millis(50);
    let mut waiting = recipe.enter_contended(&one, options, &two, delay).await;
    let mut seen = 0;
    let kept = loop {
        tokio::select! {
            kept = &mut waiting => break kept.unwrap(),
            () = sleep(Duration::from_millis(5)) => {
                seen = seen.max(check(recipe, &admin, &stranger).await);
            }
        }
    };
    seen = seen.max(check(recipe, &admin, &stranger).await);
    // The namespace is one of them.
    assert!(seen > 1, "{recipe:?}");
    kept.give_back().await;
}

#[tokio::test(start_paused = true)]
async fn every_recipe_gives_its_znodes_the_access_list_of_the_provider() {
    for &recipe in Recipe::ALL {
        for options in both_ways() {
            soon(check_access(recipe, &options)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn lock_that_others_own_is_refused() {
    let server = start().await;
    let one = secured(&server, 1).connect().await.unwrap();
    let lock = InterProcessMutex::new(one, PATH).unwrap();
    let guard = lock.acquire().await.unwrap();
    let stranger = builder(&Link::to(&server), 2).namespace("secured").unwrap();
    let stranger = stranger.connect().await.unwrap();
    let theirs = InterProcessMutex::new(stranger.clone(), PATH).unwrap();
    let refused = soon(theirs.acquire()).await.unwrap_err();
    assert!(
        matches!(&refused, LockError::Client(error) if error.is(ErrorCode::NoAuth)),
        "{refused}"
    );
    let refused = soon(SharedCount::start(stranger.clone(), "/count", 1)).await;
    assert!(refused.unwrap_err().is(ErrorCode::NoAuth));
    let mode = minikeeper_client::CreateMode::Ephemeral;
    let node = PersistentNode::start(stranger, "/n", b"", mode).unwrap();
    let refused = soon(node.created()).await.unwrap_err().to_string();
    assert!(refused.contains("NOAUTH"), "{refused}");
    assert_eq!(guard.release().await.unwrap(), Released::Done);
}

#[tokio::test(start_paused = true)]
async fn deleted_root_is_created_again_if_the_client_may() {
    for options in both_ways() {
        let server = start().await;
        let link = Link::to(&server);
        let admin = builder(&link, 1).connect().await.unwrap();
        let client = admin.with_namespace("a/b").unwrap();
        for _ in 0..2 {
            let lock =
                InterProcessMutex::with_options(client.clone(), PATH, options.clone()).unwrap();
            let guard = soon(lock.acquire()).await.unwrap();
            assert!(server.get("/a/b/locks/a").is_some());
            guard.release().await.unwrap();
            until("the containers are gone", || {
                server.get("/a/b/locks").is_none()
            })
            .await;
            admin.delete("/a/b", None).await.unwrap();
            admin.delete("/a", None).await.unwrap();
        }
        // A chroot that is missing is an error, not a reason to wait.
        let chroot = Client::builder("server/x").unwrap().transport(link);
        let client = chroot.connect().await.unwrap();
        let lock = InterProcessMutex::with_options(client.clone(), PATH, options).unwrap();
        let error = soon(lock.acquire()).await.unwrap_err().to_string();
        assert!(error.contains("root \"/x\" does not exist"), "{error}");
        let mode = minikeeper_client::CreateMode::Ephemeral;
        let node = PersistentNode::start(client, "/n", b"", mode).unwrap();
        let error = soon(node.created()).await.unwrap_err().to_string();
        assert!(error.contains("root \"/x\" does not exist"), "{error}");
    }
}
