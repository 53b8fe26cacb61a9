//! `minikeeper replay`: plays a recording again.

use std::{
    net::{SocketAddr, ToSocketAddrs as _},
    path::PathBuf,
    thread,
    time::Duration,
};

use minikeeper::{Recording, ReplayError, SessionId, replay};
use minikeeper_core::{
    files,
    replay::{ReplayClock, canonical::KnownDifferences, replay_against, version::Version},
};
use minikeeper_shell::{print_on_stdout, without_controls};
use serde_json::{Map, Value, json};

use crate::{
    ExitFailure,
    ctl::http::{self, HttpCall},
    token,
};

/// The size limit of a recording. Unit: bytes.
const RECORDING_BYTES_MAX: u64 = 4 << 30;

// The arguments of `minikeeper replay`. No doc comment: it would replace the help.
#[derive(clap::Args, Debug)]
pub(crate) struct ReplayArgs {
    /// The recording, of `--record` or of `minikeeper ctl stop-recording`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replay against the server at this address, which must be new and have no other clients
    #[arg(long, value_name = "HOST:PORT")]
    against: Option<String>,
    /// Wait at most N seconds in all for a server whose clock cannot be moved
    #[arg(long, value_name = "N", default_value = "60", requires = "against")]
    max_wait: u64,
    /// Wait only an N-th of the time for a server whose clock cannot be moved
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        requires = "against",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    speed: u32,
}

impl ReplayArgs {
    /// Replays the recording and prints the result.
    pub(crate) fn run(&self) -> Result<(), ExitFailure> {
        let name = self.file.display();
        let bytes = files::read(&self.file, RECORDING_BYTES_MAX)
            .map_err(|error| format!("cannot read {name}: {error}"))?;
        let recording = Recording::from_bytes(bytes).map_err(|error| format!("{name}: {error}"))?;
        let mut text = String::new();
        if recording.is_truncated() {
            text = format!("{name} breaks off: it is replayed up to there\n");
        }
        if let Some(why) = recording.ended() {
            text += &format!("the recording ended early: {why}\n");
        }
        let outcome = match &self.against {
            None => replay(&recording),
            Some(server) => {
                let address = address(server).map_err(|error| format!("{name}: {error}"))?;
                let known = known_differences_of(address, &mut text);
                self.replay_against(&recording, server, (address, known))
            }
        };
        let replayed = match outcome {
            Ok(replayed) => replayed,
            Err(ReplayError::Difference(difference)) => {
                // It shows what the recording and another server have.
                print_on_stdout(&without_controls(&format!("{text}{difference}\n")))?;
                return Err("the replay differs from the recording".to_owned().into());
            }
            Err(error) => return Err(format!("{name}: {error}").into()),
        };
        text += &format!(
            "equal: {} messages of clients, {} replies, events and closed connections\n",
            replayed.requests, replayed.compared
        );
        if replayed.skipped > 0 {
            text += &format!(
                "left out: {} messages that a fault or a limit answered with an error\n",
                replayed.skipped
            );
        }
        Ok(print_on_stdout(&without_controls(&text))?)
    }

    fn replay_against(
        &self,
        recording: &Recording,
        server: &str,
        (address, known): (SocketAddr, KnownDifferences),
    ) -> Result<minikeeper::Replayed, ReplayError> {
        let mut clock = OtherClock {
            server: server.to_owned(),
            is_controlled: false,
            left: Duration::from_secs(self.max_wait),
            max_wait: self.max_wait,
            speed: self.speed,
        };
        // A frozen clock shows only the moves of the recording.
        clock.is_controlled = clock.call("freeze", &Map::new()).is_ok();
        replay_against(recording, address, &mut clock, known)
    }
}

/// Returns what a server leaves out, by its version, and says so in the text.
fn known_differences_of(address: SocketAddr, text: &mut String) -> KnownDifferences {
    let Some(version) = Version::of_server(address) else {
        *text += "the server's version is not known, because it does not answer srvr: it is compared with 3.9\n";
        return KnownDifferences::default();
    };
    let known = KnownDifferences::of_version(version);
    let description = known.description();
    if !description.is_empty() {
        *text += &format!("the server is ZooKeeper {version}: {description}\n");
    }
    known
}

fn address(server: &str) -> Result<SocketAddr, String> {
    server
        .to_socket_addrs()
        .ok()
        .and_then(|mut addresses| addresses.next())
        .ok_or_else(|| format!("cannot resolve {server:?}; write HOST:PORT"))
}

/// The clock of a minikeeper with control, which runs again afterwards, or of a server that is waited
/// for.
struct OtherClock {
    server: String,
    is_controlled: bool,
    left: Duration,
    max_wait: u64,
    speed: u32,
}

impl Drop for OtherClock {
    fn drop(&mut self) {
        if self.is_controlled {
            // It stays frozen if it cannot be reached any more.
            let _ = self.call("unfreeze", &Map::new());
        }
    }
}

impl OtherClock {
    fn call(&self, name: &str, fields: &Map<String, Value>) -> Result<(), String> {
        let verb = minikeeper::control::verbs()
            .find(|verb| verb.name == name)
            .ok_or("no such verb")?;
        let token = token::of_environment();
        let answer = http::call(&HttpCall {
            server: &self.server,
            token: token.as_deref(),
            universe: None,
            verb,
            fields,
            longest: Duration::ZERO,
        })?;
        if answer.status == 200 {
            Ok(())
        } else {
            Err(format!("{name}: {}", answer.body))
        }
    }
}

impl ReplayClock for OtherClock {
    fn advance(&mut self, by_ms: u64, is_strict: bool) -> Result<(), String> {
        if self.is_controlled {
            let mut fields = Map::new();
            fields.insert("by_ms".to_owned(), json!(by_ms));
            fields.insert("strict".to_owned(), json!(is_strict));
            return self.call("advance", &fields);
        }
        let by = Duration::from_millis(by_ms) / self.speed;
        let Some(left) = self.left.checked_sub(by) else {
            let Self { max_wait, .. } = self;
            return Err(format!(
                "the recording takes more than {max_wait} s; raise --max-wait, or --speed"
            ));
        };
        self.left = left;
        thread::sleep(by);
        Ok(())
    }

    fn renews(&self) -> bool {
        self.is_controlled
    }

    fn expire(&mut self, session: SessionId) -> Result<bool, String> {
        if !self.is_controlled {
            return Ok(false);
        }
        let mut fields = Map::new();
        fields.insert("session".to_owned(), json!(session.to_string()));
        self.call("expire", &fields).map(|()| true)
    }
}
