//! Each kind of fault of a request.

use minikeeper::{ErrorCode, Fault, FaultOp, OpCode};
use minikeeper_protocol::{CreateMode, MultiOp, Reply, Request};
use minikeeper_test_kit::wire;

use super::client::{Scene, both};

fn create(path: &str) -> Request {
    wire::create(path, b"", CreateMode::Persistent)
}

async fn with_parents(scene: &Scene) {
    let mut client = scene.open().await;
    client.must(&create("/locks")).await;
    client.must(&create("/other")).await;
}

#[test]
fn lost_reply_to_a_create_leaves_its_znode_and_closes_the_connection() {
    both(async |scene| {
        with_parents(&scene).await;
        let fault = Fault::lose_reply().on(OpCode::Create).at("/locks/*").once();
        let lost = scene.server.inject(fault).unwrap();
        let mut client = scene.open().await;
        client.must(&create("/other/a")).await;
        client.send(&[create("/locks/a")]).await;
        client.expect_end().await;
        assert_eq!(lost.hit().await, Ok(1));
        assert!(scene.server.get("/locks/a").is_some());
        // The fault acts once, and only on matching paths.
        let mut other = scene.open().await;
        other.must(&create("/locks/b")).await;
        assert_eq!(lost.hits(), 1);
        scene.end();
    });
}

/// Earlier requests are answered, later ones are not served.
#[test]
fn lost_reply_in_a_batch_ends_it() {
    both(async |scene| {
        let _lost = scene
            .server
            .inject(Fault::lose_reply().on(OpCode::Create).at("/b"));
        let mut client = scene.open().await;
        client.send(&["/a", "/b", "/c"].map(create)).await;
        client.answer(OpCode::Create).await.unwrap();
        client.expect_end().await;
        assert_eq!(scene.server.children("/").unwrap(), ["zookeeper", "a", "b"]);
        scene.end();
    });
}

/// The client's create fires its own watch: the event is sent, the reply is not.
#[test]
fn event_before_a_lost_reply_is_sent() {
    both(async |scene| {
        let _lost = scene.server.inject(Fault::lose_reply().on(OpCode::Create));
        let mut client = scene.open().await;
        assert_eq!(
            client.call(&wire::exists("/a", true)).await,
            Err(ErrorCode::NoNode)
        );
        client.send(&[create("/a")]).await;
        assert_eq!(client.event().await.1, "/a");
        client.expect_end().await;
        scene.end();
    });
}

#[test]
fn never_answered_request_is_executed_and_the_connection_stays_open() {
    both(async |scene| {
        let silent = scene
            .server
            .inject(Fault::never_answer().on(OpCode::Create).once())
            .unwrap();
        let mut client = scene.open().await;
        client.send(&[create("/a"), create("/b")]).await;
        let reply = client.answer(OpCode::Create).await.unwrap();
        assert_eq!(reply, Reply::Path(Some("/b".into())));
        assert!(scene.server.get("/a").is_some());
        assert_eq!(silent.hits(), 1);
        client.check_quiet().await;
        scene.end();
    });
}

#[test]
fn dropped_request_changes_nothing_and_is_not_answered() {
    both(async |scene| {
        let _dropped = scene
            .server
            .inject(Fault::drop_request().on(OpCode::Create).at("/a"));
        let mut client = scene.open().await;
        client.send(&[create("/a")]).await;
        client.check_quiet().await;
        assert!(scene.server.get("/a").is_none());
        scene.end();
    });
}

#[test]
fn injected_error_is_answered_in_order_and_the_request_not_executed() {
    both(async |scene| {
        let full = Fault::error(ErrorCode::QuotaExceeded).on(OpCode::Create);
        let _full = scene.server.inject(full);
        let mut client = scene.open().await;
        client.send(&[create("/a"), Request::Ping]).await;
        let refused = client.answer(OpCode::Create).await;
        assert_eq!(refused, Err(ErrorCode::QuotaExceeded));
        client.answer(OpCode::Ping).await.unwrap();
        assert!(scene.server.get("/a").is_none());
        scene.end();
    });
}

#[test]
fn cut_closes_the_connection_without_executing_the_request() {
    both(async |scene| {
        let cut = scene.server.inject(Fault::cut().on(OpCode::Create).nth(2));
        let mut client = scene.open().await;
        client.send(&["/a", "/b", "/c"].map(create)).await;
        client.answer(OpCode::Create).await.unwrap();
        client.expect_end().await;
        assert_eq!(scene.server.children("/").unwrap(), ["zookeeper", "a"]);
        assert_eq!(cut.unwrap().hits(), 1);
        scene.end();
    });
}

#[test]
fn cut_reply_sends_half_the_reply() {
    both(async |scene| {
        let mut client = scene.open().await;
        client.must(&create("/a")).await;
        client.must(&wire::set("/a", &[7; 1_000])).await;
        client.send(&[wire::get("/a", false)]).await;
        let whole = client.frame().await.unwrap();
        let _cut = scene
            .server
            .inject(Fault::cut_reply().on(OpCode::GetData).at("/a"));
        client.send(&[wire::get("/a", false)]).await;
        let half = client.rest().await;
        assert_eq!(half.len(), (4 + whole.len()) / 2);
        // The length is that of the whole reply, and the bytes are equal except for xid and zxid.
        assert_eq!(half[..4], u32::try_from(whole.len()).unwrap().to_be_bytes());
        assert_eq!(half[16..], whole[12..half.len() - 4]);
        scene.end();
    });
}

#[test]
fn fault_matches_a_multi_by_any_of_its_paths() {
    both(async |scene| {
        let _fault = scene.server.inject(
            Fault::error(ErrorCode::NoAuth)
                .on(OpCode::Multi)
                .at("/b/**"),
        );
        let mut client = scene.open().await;
        let check = |path: &str| MultiOp::Check {
            path: Some(path.into()),
            version: -1,
        };
        let away = Request::Multi(vec![check("/"), check("/zookeeper")]);
        client.must(&away).await;
        let met = Request::Multi(vec![check("/"), check("/b/c")]);
        assert_eq!(client.call(&met).await, Err(ErrorCode::NoAuth));
        scene.end();
    });
}

#[test]
fn matches_are_skipped_and_counted() {
    both(async |scene| {
        let fault = Fault::error(ErrorCode::NoAuth).on(OpCode::Exists);
        let guard = scene.server.inject(fault.skip(2).times(3)).unwrap();
        let mut client = scene.open().await;
        let mut refused = Vec::new();
        for _ in 0..8 {
            refused.push(client.call(&wire::exists("/", false)).await.is_err());
        }
        assert_eq!(
            refused,
            [false, false, true, true, true, false, false, false]
        );
        let info = &scene.server.faults()[0];
        assert_eq!((info.matches, info.hits), (8, 3));
        assert_eq!(guard.hits(), 3);
        scene.end();
    });
}

/// The same requests and seed give the same hits over both kinds of connection.
#[test]
fn probability_is_determined_by_the_seed() {
    let runs = std::cell::RefCell::new(Vec::new());
    for seed in [1, 1, 2] {
        both(async |scene| {
            let fault = Fault::error(ErrorCode::NoAuth).on(OpCode::Exists);
            let _guard = scene.server.inject(fault.with_probability(0.3, seed));
            let mut client = scene.open().await;
            let mut refused = Vec::new();
            for _ in 0..60 {
                refused.push(client.call(&wire::exists("/", false)).await.is_err());
            }
            runs.borrow_mut().push(refused);
        });
    }
    let runs = runs.into_inner();
    assert_eq!(runs.len(), 6);
    assert!(runs[..4].iter().all(|run| *run == runs[0]));
    assert_ne!(runs[0], runs[4]);
    let hits = runs[0].iter().filter(|refused| **refused).count();
    assert!((8..30).contains(&hits), "{hits} of 60");
}

#[test]
fn first_injected_fault_wins() {
    both(async |scene| {
        let inject = |error| scene.server.inject(Fault::error(error).on(OpCode::Exists));
        let first = inject(ErrorCode::NoAuth).unwrap();
        let second = inject(ErrorCode::Closing).unwrap();
        let mut client = scene.open().await;
        let asked = wire::exists("/", false);
        assert_eq!(client.call(&asked).await, Err(ErrorCode::NoAuth));
        assert_eq!(scene.server.faults()[1].matches, 0);
        drop(first);
        assert_eq!(client.call(&asked).await, Err(ErrorCode::Closing));
        drop(second);
        client.must(&asked).await;
        scene.end();
    });
}

/// [`FaultOp::Any`] matches every request, also one with an unknown operation code.
#[test]
fn any_matches_an_unknown_operation() {
    both(async |scene| {
        let mut client = scene.open().await;
        let _cut = scene.server.inject(Fault::cut().on(FaultOp::Any));
        // An operation that does not exist.
        use tokio::io::AsyncWriteExt as _;
        let unknown = [0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 3, 231];
        client.stream.write_all(&unknown).await.unwrap();
        client.expect_end().await;
        scene.end();
    });
}
