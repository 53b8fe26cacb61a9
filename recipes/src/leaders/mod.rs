//! Leader election: of several processes, one leads.
//!
//! The latch and the selector each wait in the [queue](crate::queue) of a lock, in a background
//! task. `leadership` is the task of the latch. This file has the list of contenders,
//! which both share.

pub(crate) mod latch;
pub(crate) mod leadership;
pub(crate) mod selector;

pub use self::{
    latch::{CloseMode, LatchError, LatchOptions, LeaderLatch},
    leadership::{ErrorPolicy, Leadership, LeadershipChanges},
    selector::{LeaderSelector, SelectorOptions, Work},
};

use minikeeper_client::Error;

use crate::queue::{contending::Queue, order::Claim};

/// A contender for leadership, as any client can read it.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::LeaderLatch;
///
/// let latch = LeaderLatch::start(client, "/leaders/billing", "host 7")?;
/// latch.wait().await?;
/// for participant in latch.participants().await? {
///     println!("{} leads: {}", participant.id, participant.is_leader);
/// }
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Participant {
    /// The id with which it was started.
    pub id: String,
    /// The path of its znode.
    pub path: String,
    /// Whether it is first in the queue. Its process may not have noticed yet that it has become
    /// the leader or is no longer the leader.
    pub is_leader: bool,
}

/// Reads the contenders in a directory and their ids, in order of the queue. Omits contenders that
/// leave during the call.
pub(crate) async fn participants(queue: &Queue, claim: Claim) -> Result<Vec<Participant>, Error> {
    let read = queue.participants_with_data(claim).await?;
    let participant = |(place, (path, data)): (usize, (String, Vec<u8>))| Participant {
        id: String::from_utf8_lossy(&data).into_owned(),
        path,
        is_leader: place == 0,
    };
    Ok(read.into_iter().enumerate().map(participant).collect())
}
