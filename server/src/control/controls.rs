//! What requests act on.

use std::sync::Arc;

use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

use crate::{
    config::ControlConfig,
    control::{access::WrongTokens, fault::Fault, snapshots::Snapshots},
    universe::{Universe, state::Shared},
};

/// Accepts connections and serves them, on the calling runtime.
pub(crate) type Serve = fn(TcpListener, Arc<Controls>) -> JoinHandle<()>;

/// Everything that a verb may need of the server.
#[derive(Debug)]
pub(crate) struct Controls {
    own: Universe,
    pub(crate) snapshots: Snapshots,
    pub(crate) wrong_tokens: WrongTokens,
    /// What serves control alone. Verbs ask for it, and it serves verbs.
    serve: Serve,
    /// Becomes true when the server stops.
    stopped: watch::Sender<bool>,
}

impl Controls {
    pub(crate) fn new(own: Universe, serve: Serve) -> Self {
        Self {
            own,
            snapshots: Snapshots::default(),
            wrong_tokens: WrongTokens::default(),
            serve,
            stopped: watch::Sender::new(false),
        }
    }

    pub(crate) fn config(&self) -> &ControlConfig {
        &self.shared().config.control
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.own.shared
    }

    /// Serves control alone here, from now on.
    pub(crate) fn serve(self: &Arc<Self>, listener: TcpListener) -> JoinHandle<()> {
        (self.serve)(listener, Arc::clone(self))
    }

    /// Takes the server down.
    pub(crate) async fn go_down(&self) {
        self.own.go_down().await;
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
