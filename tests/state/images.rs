//! Saves and restores random states: `docs/zookeeper-protocol.md` section 22.1.

use minikeeper_engine::{Engine, ImageError, Restoration};

use crate::{effort, model::check_final_states};

const TRACES: u32 = 40;

/// Saving loses and changes nothing that outlives a process. The final state of each random trace
/// is restored from its image; both are equal except for what ends with the process: connections,
/// watches, deadlines, and timeouts negotiated after the first.
#[test]
fn random_states_survive_their_image() {
    check_final_states(TRACES * effort(), |drive| {
        let engine = drive.engine();
        let restored = restored(engine).map_err(|error| error.to_string())?;
        restored.check().map_err(|broken| broken.to_string())?;
        let (before, after) = (lasting(engine), lasting(&restored));
        if before == after {
            Ok(())
        } else {
            Err(format!("saved\n{before}\nrestored\n{after}"))
        }
    });
}

fn restored(engine: &Engine) -> Result<Engine, ImageError> {
    let mut restoration = Restoration::new(engine.settings().clone());
    for session in engine.image().sessions() {
        restoration.session(session)?;
    }
    for (id, list) in engine.image().access_lists() {
        restoration.access_list(id, list)?;
    }
    for znode in engine.image().znodes() {
        restoration.znode(&znode)?;
    }
    Engine::restore(restoration, engine.zxid())
}

/// Returns the part of a state that outlives the process, as text.
pub(crate) fn lasting(engine: &Engine) -> String {
    let dump = engine.dump();
    let lines = dump.lines().filter(|line| !line.starts_with("watch "));
    let mut text: String = lines
        .map(|line| match line.split_once(" timeout ") {
            Some((session, _)) if line.starts_with("session ") => format!("{session}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let order = engine.image().znodes().map(|znode| znode.path.to_vec());
    for path in order {
        text += &format!("{}\n", String::from_utf8_lossy(&path));
    }
    text + &format!("{:?}", engine.image().sessions())
}
