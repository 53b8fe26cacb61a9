//! Universes and snapshots over HTTP.

use minikeeper_protocol::CreateMode;
use minikeeper_test_kit::wire::{self, Wire};
use serde_json::json;

use crate::http::{done, get, post, said, scene};

#[test]
fn universe_is_created_used_forked_and_dropped() {
    let scene = scene(|_| {});
    let address = scene.address();
    let made = done(post(address, "create_universe", &json!({"name": "one"})));
    assert_eq!(made["connect_string"], format!("{address}/one"));
    let (mut client, _) = Wire::open(address, 10_000);
    client.must(&wire::create("/one/a", b"x", CreateMode::Persistent));
    assert_eq!(done(get(address, "universes/one/get?path=/a"))["data"], "x");
    assert_eq!(get(address, "get?path=/one/a").status, 404);
    assert_eq!(
        done(get(address, "universes")),
        json!({"universes": ["one"]})
    );
    let copy = done(post(address, "universes/one/fork", &json!({"name": "two"})));
    assert_eq!(copy["connect_string"], format!("{address}/two"));
    done(post(
        address,
        "universes/two/seed",
        &json!({"yaml": "/a: y"}),
    ));
    assert_eq!(done(get(address, "universes/one/get?path=/a"))["data"], "x");
    assert_eq!(done(get(address, "universes/two/get?path=/a"))["data"], "y");
    done(post(address, "drop_universe", &json!({"name": "one"})));
    client.expect_closed();
    for (answer, status, sentence) in [
        (
            get(address, "universes/one/now"),
            404,
            "no universe \"one\"",
        ),
        (get(address, "universes//now"), 404, "no universe \"\""),
        (get(address, "universes/two/nonsense"), 404, "nothing at"),
        (
            get(address, "universes/two/universes"),
            400,
            "universes applies to the whole server, not to universe \"two\" alone; call it without",
        ),
        (
            post(address, "drop_universe", &json!({"name": "one"})),
            404,
            "no universe \"one\"",
        ),
        (
            post(address, "drop_universe", &json!({"name": ""})),
            404,
            "no universe \"\"",
        ),
        (
            post(address, "create_universe", &json!({"name": "two"})),
            409,
            "the name \"two\" is taken",
        ),
        (
            post(address, "create_universe", &json!({"name": "a/b"})),
            400,
            "\"a/b\" cannot name",
        ),
    ] {
        let said = said(&answer, status);
        assert!(said.starts_with(sentence), "{said}");
    }
    scene.end();
}

#[test]
fn snapshot_can_be_restored_repeatedly_until_it_is_dropped() {
    let scene = scene(|_| {});
    let address = scene.address();
    done(post(address, "seed", &json!({"yaml": "/a: 1"})));
    let snapshot = done(post(address, "snapshot", &json!({})));
    for _ in 0..2 {
        done(post(address, "seed", &json!({"yaml": "/a: 2\n/b: 3"})));
        assert_eq!(done(post(address, "restore", &snapshot)), json!({}));
        assert_eq!(done(get(address, "get?path=/a"))["data"], "1");
        assert_eq!(get(address, "get?path=/b").status, 404);
    }
    done(post(address, "create_universe", &json!({"name": "other"})));
    let elsewhere = post(address, "universes/other/restore", &snapshot);
    assert_eq!(
        said(&elsewhere, 409),
        "the snapshot belongs to another universe"
    );
    done(post(address, "drop_snapshot", &snapshot));
    assert_eq!(
        said(&post(address, "restore", &snapshot), 404),
        "no snapshot 1"
    );
    assert_eq!(
        said(&post(address, "drop_snapshot", &snapshot), 404),
        "no snapshot 1"
    );
    // Dropping a universe drops its snapshots.
    let inside = done(post(address, "universes/other/snapshot", &json!({})));
    done(post(address, "drop_universe", &json!({"name": "other"})));
    assert_eq!(
        said(&post(address, "drop_snapshot", &inside), 404),
        "no snapshot 2"
    );
    scene.end();
}
