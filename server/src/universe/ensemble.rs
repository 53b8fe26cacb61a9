//! Changes the servers of the ensemble that one process plays.

use std::{error::Error, fmt, net::SocketAddr};

use minikeeper_core::{
    ensemble::{Ensemble, ServerMode},
    order,
    start::ports::Listeners,
    state::reachability::Phase,
    work,
};
use minikeeper_protocol::SessionId;
use tokio::task::JoinSet;

use crate::universe::{Universe, reachable};

/// A server of the ensemble, as [`Universe::servers`](crate::Universe::servers) lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ServerStatus {
    /// Its number, from 1.
    pub id: u8,
    /// The address that clients connect to.
    pub address: SocketAddr,
    /// What it does for its clients.
    pub mode: ServerMode,
    /// Whether it says that it is the leader.
    pub is_leader: bool,
    /// The sessions of the universe that are connected to it, in the order of their ids.
    pub sessions: Vec<SessionId>,
}

/// Why a server of the ensemble was not changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum EnsembleError {
    /// There is no server with this number.
    NoServer {
        /// The number asked for.
        id: u8,
        /// The number of servers.
        servers: usize,
    },
    /// It is not up, so it cannot be the leader.
    NotUp {
        /// Its number.
        id: u8,
        /// Its mode.
        mode: ServerMode,
    },
    /// It cannot listen. It stays down; the caller may try again.
    Start(minikeeper_core::start::StartError),
}

impl fmt::Display for EnsembleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoServer { id, servers: 1 } => write!(
                f,
                "there is no server {id}, only server 1; `--servers` (`Config::servers`) adds more"
            ),
            Self::NoServer { id, servers } => {
                write!(f, "there is no server {id}, only 1 to {servers}")
            }
            Self::NotUp { id, mode } => write!(
                f,
                "server {id} cannot be the leader: it is {}, and must be up",
                mode.name()
            ),
            Self::Start(_) => f.write_str("the server cannot come up"),
        }
    }
}

impl Error for EnsembleError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Start(error) => Some(error),
            Self::NoServer { .. } | Self::NotUp { .. } => None,
        }
    }
}

impl Universe {
    /// Lists the servers of the [ensemble](crate::Config::servers): one, unless more were asked for.
    #[must_use]
    pub fn servers(&self) -> Vec<ServerStatus> {
        let ensemble = &self.root.server.ensemble;
        let leader = ensemble.leader();
        let addresses = ensemble.client_addresses();
        let mut servers: Vec<_> = ensemble
            .ids()
            .zip(addresses)
            .map(|(id, address)| ServerStatus {
                id,
                address: reachable(address),
                mode: ensemble.mode(id),
                is_leader: ensemble.size() > 1 && leader == Some(id),
                sessions: Vec::new(),
            })
            .collect();
        self.shared.turns.read(|locked| {
            for report in locked.engine.session_heads() {
                work::count(1);
                let conn = report
                    .conn
                    .and_then(|conn| locked.members.get(conn.0 as usize));
                let server = conn.and_then(|conn| {
                    servers.get_mut(usize::from(conn.stats.server).checked_sub(1)?)
                });
                if let Some(server) = server {
                    server.sessions.push(report.id);
                }
            }
        });
        for server in &mut servers {
            order::sort_by_key(&mut server.sessions, |session| *session);
        }
        servers
    }

    /// Changes what a server of the ensemble does for its clients, in all universes. See
    /// [`ServerMode`].
    ///
    /// When this returns, a server that is down no longer listens, and its connections have been
    /// ordered to close; one that is up listens at the same address as before. Servers keep their
    /// modes over a [restart](Universe::restart).
    ///
    /// Dropping the future before it returns may leave connections to a server that is down; another
    /// call closes them. Connections [inside the process](Universe::local) belong to no server.
    ///
    /// # Errors
    /// When there is no such server, or it cannot listen again.
    pub async fn set_server(&self, id: u8, mode: ServerMode) -> Result<(), EnsembleError> {
        let root = &self.root;
        let server = &root.server;
        let ensemble = &server.ensemble;
        check(ensemble, id)?;
        let _changing = ensemble.changing.lock().await;
        let before = ensemble.mode(id);
        // A call that was dropped while it waited may have left connections of a server that is down.
        if before == mode && mode != ServerMode::Down {
            return Ok(());
        }
        let is_up = server.reachability.phase() == Phase::Up;
        let mut ended = None;
        if before == ServerMode::Down && mode != ServerMode::Down && is_up {
            let _on_its_runtime = server.runtime.enter();
            let addresses = ensemble.addresses(id);
            let listeners = Listeners::bind_again(&server.reachability, addresses, &root.config);
            let listeners = listeners.map_err(EnsembleError::Start)?;
            ensemble.set_mode(id, mode);
            ended = Some(
                server
                    .reachability
                    .set_accepting(id, listeners.accept(root, id)),
            );
        } else {
            ensemble.set_mode(id, mode);
        }
        if mode == ServerMode::Down {
            ended = Some(server.reachability.set_accepting(id, JoinSet::new()));
        }
        if let Some(mut ended) = ended {
            ended.end().await;
        }
        if mode == ServerMode::Down {
            server.reachability.hold_ports([ensemble.addresses(id)]);
        }
        let changes_role = [before, mode].contains(&ServerMode::ReadOnly);
        for universe in server.universes.all().iter().chain([root]) {
            if mode == ServerMode::Down || changes_role {
                universe.turns.close_server(id);
            }
            universe.turns.wake_server(id);
        }
        Ok(())
    }

    /// Makes a server of the ensemble the leader: the one that says so in `srvr`, `stat` and `mntr`.
    /// Without a call, or while that server is not up, the first server that is up leads.
    ///
    /// As all servers serve one state, only what they say changes.
    ///
    /// # Errors
    /// When there is no such server, or it is not up.
    pub fn set_leader(&self, id: u8) -> Result<(), EnsembleError> {
        let ensemble = &self.root.server.ensemble;
        check(ensemble, id)?;
        match ensemble.mode(id) {
            ServerMode::Up => {
                ensemble.appoint(id);
                Ok(())
            }
            mode => Err(EnsembleError::NotUp { id, mode }),
        }
    }
}

/// Checks that a server exists.
fn check(ensemble: &Ensemble, id: u8) -> Result<(), EnsembleError> {
    if ensemble.ids().any(|known| known == id) {
        return Ok(());
    }
    let servers = ensemble.size();
    Err(EnsembleError::NoServer { id, servers })
}
