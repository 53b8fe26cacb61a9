//! Replays random histories from the entries that a transaction log would have.
//!
//! Source: `docs/zookeeper-protocol.md` section 22.3.

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicU64},
};

use minikeeper::{Server, TxnLog};
use minikeeper_engine::{Engine, Restoration, Settings};
use minikeeper_protocol::{Create, CreateMode, Request};
use minikeeper_tests::drive::Drive;

use crate::{
    effort,
    images::lasting,
    model::{Run, run_property, settings},
    traffic::{Client, runtime},
};

const TRACES: u32 = 45;

/// A log has every change, and nothing that did not happen: the logged changes of a random trace,
/// replayed on an empty tree, give its final state.
#[test]
fn random_histories_can_be_replayed() {
    check_random(&settings());
}

/// Enforced quotas have counts that are in no log.
#[test]
fn random_histories_under_quotas_can_be_replayed() {
    let settings = Settings {
        enforce_quota: true,
        ..settings()
    };
    check_random(&settings);
}

/// A change that was answered survives a crash: a server with a log creates a znode and is dropped
/// as if it were killed; the next one has the znode.
#[test]
fn answered_change_survives_a_crash() {
    check_crash().unwrap();
}

fn check_crash() -> Result<(), String> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("journal");
    let _ = std::fs::remove_dir_all(&dir);
    let start = || async {
        let builder = Server::builder().manual_clock().data_dir(&dir);
        let builder = builder.configure(|config| config.txn_log = TxnLog::Write);
        builder.start().await.map_err(|error| error.to_string())
    };
    runtime().block_on(async {
        let server = start().await?;
        let clock = Arc::new(AtomicU64::new(0));
        let mut client = Client::connect(&server, true, &clock)
            .await
            .map_err(|error| error.to_string())?;
        let create = Create::new("/a", b"", CreateMode::Persistent);
        client
            .ask(Request::Create(create))
            .await
            .map_err(|error| error.to_string())?;
        drop(server);
        match start().await?.get("/a") {
            Some(_) => Ok(()),
            None => Err("the change was answered, but is lost".to_owned()),
        }
    })
}

fn check_random(settings: &Settings) {
    run_property(TRACES * effort(), |steps| check(settings, steps));
}

fn check(settings: &Settings, steps: &[crate::traces::Step]) -> Result<(), String> {
    let mut run = Run::new(settings);
    for step in steps {
        run.apply_only(step)?;
    }
    replay(&run.drive)
}

/// Replays the logged changes on an empty tree, and compares the states.
fn replay(drive: &Drive) -> Result<(), String> {
    let engine = drive.engine();
    let mut restoration = Restoration::fresh(engine.settings().clone());
    for kept in drive.kept() {
        let replayed = kept.replay(&mut restoration);
        replayed.map_err(|error| format!("{kept:?}: {error}"))?;
    }
    let again = Engine::restore(restoration, engine.zxid()).map_err(|error| error.to_string())?;
    again.check().map_err(|broken| broken.to_string())?;
    let (first, again) = (lasting(engine), lasting(&again));
    if first == again {
        Ok(())
    } else {
        Err(format!("original\n{first}\nreplayed\n{again}"))
    }
}
