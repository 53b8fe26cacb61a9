//! What requests act on.

use tokio::sync::watch;

use crate::{
    config::ControlConfig,
    control::{fault::Fault, snapshots::Snapshots},
    universe::Universe,
};

/// Everything that a verb may need of the server.
#[derive(Debug)]
pub(crate) struct Controls {
    own: Universe,
    pub(crate) snapshots: Snapshots,
    /// Becomes true when the server stops.
    stopped: watch::Sender<bool>,
}

impl Controls {
    pub(crate) fn new(own: Universe) -> Self {
        Self {
            own,
            snapshots: Snapshots::default(),
            stopped: watch::Sender::new(false),
        }
    }

    pub(crate) fn config(&self) -> &ControlConfig {
        &self.own.shared.config.control
    }

    /// The universe that a request means; without a name the server's own.
    pub(crate) fn universe(&self, name: Option<&str>) -> Result<Universe, Fault> {
        match name {
            None => Ok(self.own.clone()),
            Some(name) => {
                let found = self.own.universe_named(name).filter(|_| !name.is_empty());
                found.ok_or_else(|| Fault::not_found(format!("no universe {name:?}")))
            }
        }
    }

    /// Ends every connection for control, once it has answered.
    pub(crate) fn stop(&self) {
        self.stopped.send_replace(true);
    }

    /// Waits until the server stops.
    pub(crate) async fn stopped(&self) {
        // Fails only when nobody can stop it any more, which `self` makes impossible.
        let _ = self.stopped.subscribe().wait_for(|stopped| *stopped).await;
    }
}
