//! Reports the locks in the tree.

use std::collections::BTreeSet;

use minikeeper_core::{
    ensemble::ServerMode,
    faults::{FaultInfo, who::FaultFor},
    order,
};
use minikeeper_protocol::SessionId;

use crate::{
    locks::{self, Locks},
    universe::Universe,
};

impl Universe {
    /// Reports every lock, semaphore and election in the tree: who holds it, who waits in which
    /// order and for whom, what is wrong, and deadlocks.
    ///
    /// Recognises the znodes of Curator, this project's recipes, kazoo, go-zookeeper, the crate
    /// zookeeper-client and ZooKeeper's own recipes by their names. The report shows one instant. It
    /// includes at most 1 000 locks and 10 000 contenders, 1 000 of one lock
    /// ([`Locks::is_truncated`]).
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::LockKind;
    /// use minikeeper_client::{Client, CreateMode};
    /// let server = minikeeper::Server::builder().start().await?;
    /// let client = Client::connect(&server.connect_string()).await?;
    /// client.create("/lock", b"", CreateMode::Persistent).await?;
    /// client.create("/lock/lock-", b"worker 1", CreateMode::EphemeralSequential).await?;
    ///
    /// let report = server.locks();
    /// assert_eq!(report.locks[0].kind, LockKind::Mutex);
    /// assert_eq!(report.locks[0].holders[0].path, "/lock/lock-0000000000");
    /// assert!(report.deadlocks.is_empty());
    /// println!("{report}");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn locks(&self) -> Locks {
        let mut silenced = silenced(&self.faults());
        if let Some(root) = self.elsewhere() {
            silenced.append(&mut self::silenced(&root.turns.faults.infos()));
        }
        let cut_off =
            (self.servers().into_iter()).filter(|server| server.mode == ServerMode::CutOff);
        silenced.extend(cut_off.flat_map(|server| server.sessions));
        locks::locks(&self.shared.turns, &silenced)
    }
}

/// Returns the sessions that these faults silence.
fn silenced(faults: &[FaultInfo]) -> BTreeSet<SessionId> {
    let session = |info: &FaultInfo| match info.fault.who {
        FaultFor::Session(session) if info.fault.silences(session) => Some(session),
        _ => None,
    };
    order::collect(faults.iter().filter_map(session))
}
