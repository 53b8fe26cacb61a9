//! Random recordings: random histories run on minikeeper, which records them; then another server gets
//! the recording.

use minikeeper::{Config, Recording, ReplayError, Replayed};
use minikeeper_core::replay::{ReplayClock, replay_against};
use minikeeper_protocol::SessionId;

use super::{
    generate::Generator,
    history::Step,
    known::{Avoid, KnownDifferences},
    server::{Minikeeper, Server},
    side::Side,
};

/// The limit of a recording. Unit: bytes.
const BYTES_MAX: usize = 64 << 20;

/// Runs a random history on minikeeper and returns the recording of it.
///
/// # Errors
/// When the server is broken.
pub fn record(
    configure: impl FnOnce(&mut Config),
    known: KnownDifferences,
    mut generator: Generator,
) -> Result<Recording, String> {
    let mut server = Minikeeper::new(configure).recorded(BYTES_MAX);
    let mut side = Side::new(&mut server, known)?;
    while let Some(step) = generator.next(&side) {
        run(&mut side, &step)?;
    }
    drop(side);
    server.stop_recording()
}

fn run(side: &mut Side<'_>, step: &Step) -> Result<(), String> {
    if side.begin(&step.0)? {
        side.finish(&step.0)?;
        for name in side.names() {
            side.collect(&name);
        }
    }
    Ok(())
}

/// Replays a recording on a server that is started anew.
///
/// # Errors
/// The first difference.
pub fn replay_on(
    recording: &Recording,
    server: &mut dyn Server,
    known: KnownDifferences,
) -> Result<Replayed, ReplayError> {
    let address = server.fresh().map_err(ReplayError::Server)?;
    replay_against(recording, address, &mut Manual { server }, known)
}

/// A server with a manual clock.
struct Manual<'a> {
    server: &'a mut dyn Server,
}

impl ReplayClock for Manual<'_> {
    fn advance(&mut self, by_ms: u64, _: bool) -> Result<(), String> {
        self.server.advance(by_ms).map(drop)
    }

    fn expire(&mut self, session: SessionId) -> Result<bool, String> {
        self.server.expire(session).map(|_| true)
    }
}

/// The result of many recordings.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// The number of recordings replayed.
    pub recordings: u64,
    /// The number of messages of clients in them.
    pub requests: u64,
    /// The length of the recordings. Unit: bytes.
    pub bytes: u64,
    /// The seeds that differ, with the difference in this process or on the other server.
    pub differences: Vec<(u64, String)>,
}

/// Makes recordings from these seeds and replays each in this process, and on `other` if there is one.
///
/// # Errors
/// When a server is broken.
pub fn compare(
    seeds: impl Iterator<Item = u64>,
    steps: usize,
    (known, avoid): (KnownDifferences, Avoid),
    mut other: Option<&mut dyn Server>,
) -> Result<Tally, String> {
    let mut tally = Tally::default();
    for seed in seeds {
        let connections = [1, 3, 8][usize::try_from(seed % 3).unwrap_or(0)];
        let generator = Generator::new(seed, connections, steps, avoid);
        let recording = record(|_| {}, known, generator)?;
        tally.recordings += 1;
        tally.bytes += recording.to_bytes().len() as u64;
        let mut outcomes = vec![minikeeper::replay(&recording)];
        if let Some(other) = other.as_deref_mut() {
            outcomes.push(replay_on(&recording, other, known));
        }
        for outcome in outcomes {
            match outcome {
                Ok(replayed) => tally.requests += replayed.requests,
                Err(error) => tally.differences.push((seed, error.to_string())),
            }
        }
    }
    Ok(tally)
}
