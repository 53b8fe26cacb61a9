//! Events held back by a fault.

use minikeeper::Fault;
use minikeeper_protocol::{CreateMode, EventKind, Request};
use minikeeper_test_kit::wire;

use super::client::both;

fn create(path: &str) -> Request {
    wire::create(path, b"", CreateMode::Persistent)
}

#[test]
fn held_events_are_sent_in_order_after_the_fault_and_replies_overtake_them() {
    both(async |scene| {
        let (mut watcher, mut writer) = (scene.open().await, scene.open().await);
        for path in ["/a", "/b"] {
            watcher.must(&wire::watch(path)).await;
        }
        let held = scene.server.inject(Fault::hold_events().at("/a")).unwrap();
        for request in [create("/a"), wire::set("/a", b"x"), create("/b")] {
            writer.must(&request).await;
        }
        assert_eq!(held.hit().await, Ok(2));
        assert_eq!(scene.server.faults()[0].held, 2);
        // Other events arrive, and a reply shows the change whose event is held.
        assert_eq!(watcher.event().await, (EventKind::Created, "/b".into()));
        watcher.must(&wire::get("/a", false)).await;
        drop(held);
        assert_eq!(watcher.event().await, (EventKind::Created, "/a".into()));
        assert_eq!(watcher.event().await, (EventKind::DataChanged, "/a".into()));
        writer.must(&wire::delete("/a")).await;
        assert_eq!(watcher.event().await, (EventKind::Deleted, "/a".into()));
        watcher.check_quiet().await;
        scene.end();
    });
}

#[test]
fn events_of_one_session_are_held_including_those_of_its_own_changes() {
    both(async |scene| {
        let (mut held, session) = scene.open_session().await;
        let mut other = scene.open().await;
        for client in [&mut held, &mut other] {
            client.must(&wire::watch("/a")).await;
        }
        let fault = Fault::hold_events().of(session.session_id);
        let guard = scene.server.inject(fault).unwrap();
        held.must(&create("/a")).await;
        assert_eq!(other.event().await.1, "/a");
        held.check_quiet().await;
        guard.keep();
        scene.server.reset_faults();
        assert_eq!(held.event().await, (EventKind::Created, "/a".into()));
        scene.end();
    });
}

#[test]
fn hold_events_once_lets_the_second_event_overtake_the_first() {
    both(async |scene| {
        let (mut watcher, mut writer) = (scene.open().await, scene.open().await);
        watcher.must(&wire::watch("/a")).await;
        let held = scene.server.inject(Fault::hold_events().once()).unwrap();
        writer.must(&create("/a")).await;
        writer.must(&wire::set("/a", b"x")).await;
        assert_eq!(watcher.event().await.0, EventKind::DataChanged);
        drop(held);
        assert_eq!(watcher.event().await.0, EventKind::Created);
        scene.end();
    });
}

/// A new connection that reuses the number of a closed one gets none of its events.
#[test]
fn held_events_of_a_closed_connection_are_discarded() {
    both(async |scene| {
        let mut writer = scene.open().await;
        let mut watcher = scene.open().await;
        watcher.must(&wire::watch("/a")).await;
        let held = scene.server.inject(Fault::hold_events()).unwrap();
        writer.must(&create("/a")).await;
        assert_eq!(scene.server.faults()[0].held, 1);
        drop(watcher);
        while scene.server.connections() > 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(scene.server.faults()[0].held, 0);
        let mut next = scene.open().await;
        drop(held);
        next.check_quiet().await;
        writer.check_quiet().await;
        scene.end();
    });
}

/// `setWatches` sends the events that the client missed while disconnected.
#[test]
fn events_sent_by_set_watches_are_held() {
    both(async |scene| {
        let mut client = scene.open().await;
        client.must(&create("/a")).await;
        let held = scene.server.inject(Fault::hold_events()).unwrap();
        let set_watches = Request::SetWatches {
            relative_zxid: minikeeper_protocol::Zxid(0),
            data: vec!["/a".into()],
            exist: vec![],
            child: vec![],
        };
        client.must(&set_watches).await;
        assert_eq!(held.hits(), 1);
        drop(held);
        assert_eq!(client.event().await.1, "/a");
        scene.end();
    });
}
