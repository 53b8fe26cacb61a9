//! Random histories, made once more from what a log of their changes would have.
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

const TRACES: u32 = 75;

/// Goal: a log of changes has all of them, and nothing that did not happen. Method: random traces;
/// everything told of a trace, made once more on a fresh tree, gives the state it ended in.
#[test]
fn random_histories_can_be_made_once_more() {
    check_random(&settings());
}

/// The same with quotas enforced, whose counts no log has.
#[test]
fn random_histories_under_quotas_can_be_made_once_more() {
    let settings = Settings {
        enforce_quota: true,
        ..settings()
    };
    check_random(&settings);
}

/// Goal: what was answered outlives a crash. Method: one create with a log, then the server is
/// dropped, as if it were killed, and another one started.
#[test]
fn change_that_was_answered_outlives_a_crash() {
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
            None => Err("the change was answered, and is gone".to_owned()),
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
    once_more(&run.drive)
}

fn once_more(drive: &Drive) -> Result<(), String> {
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
        Err(format!("at first\n{first}\nonce more\n{again}"))
    }
}
