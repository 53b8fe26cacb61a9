//! From nothing to a lock: into the queue, through it, and again if the session goes meanwhile.

use minikeeper_client::CreateMode;

use crate::{
    client::ZooKeeper,
    error::LockError,
    queue::{
        contending::{Queue, Wait},
        order::Claim,
        queue_node::QueueNode,
        waiting::{self, Outcome},
    },
};

impl<C: ZooKeeper> Queue<C> {
    /// Waits in the queue until the claim is granted.
    pub(crate) async fn acquire(
        &self,
        claim: Claim,
        wait: Wait,
    ) -> Result<QueueNode<C>, LockError> {
        for _ in 0..self.options.attempts_max.max(1) {
            self.connected(wait).await?;
            let mode = CreateMode::EphemeralSequential;
            let entered = self.enter(claim.lock_name(), mode, wait).await?;
            let Some((place, listing)) = entered else {
                continue;
            };
            match waiting::wait(self, claim, place, listing, wait).await? {
                Outcome::Granted(place) => return Ok(place),
                Outcome::Gone => {}
                Outcome::TimedOut => return Err(self.timed_out(wait)),
            }
        }
        Err(LockError::Lost {
            path: self.path.to_string(),
            attempts: self.options.attempts_max.max(1),
        })
    }
}
