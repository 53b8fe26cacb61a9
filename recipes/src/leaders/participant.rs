//! Who contends, by the data of their znodes.

use minikeeper_client::{Error, ErrorCode};

use crate::{
    client::ZooKeeper,
    queue::{
        contending::{Queue, in_session, no_session},
        naming,
        order::{self, Claim},
    },
};

/// A contender, as the others see it.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::LeaderLatch;
///
/// let latch = LeaderLatch::start(client, "/leaders/billing", "host 7")?;
/// latch.wait().await?;
/// for participant in latch.participants().await? {
///     println!("{} leads: {}", participant.id, participant.is_leader);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Participant {
    /// What it calls itself.
    pub id: String,
    /// Its znode.
    pub path: String,
    /// Whether it is the first. It may not know that yet, or any more.
    pub is_leader: bool,
}

/// The contenders in a directory whose data are ids, the first one first. Those that go meanwhile
/// are left out.
pub(crate) async fn participants<C: ZooKeeper>(
    queue: &Queue<C>,
    claim: Claim,
) -> Result<Vec<Participant>, Error> {
    let client = &queue.client;
    let list = in_session(client, client.children(&queue.path)).await;
    let names = match list.unwrap_or_else(|| Err(no_session("getChildren2", &queue.path))) {
        Ok(list) => order::sorted(claim, list.value),
        Err(error) if error.is(ErrorCode::NoNode) => Vec::new(),
        Err(error) => return Err(error),
    };
    let paths: Vec<_> = names
        .iter()
        .map(|name| naming::join(&queue.path, name))
        .collect();
    // All in one flush.
    let reads: Vec<_> = paths.iter().map(|path| client.data(path)).collect();
    let mut participants = Vec::new();
    for (path, read) in paths.into_iter().zip(reads) {
        let read = in_session(client, read).await;
        match read.unwrap_or_else(|| Err(no_session("getData", &path))) {
            Ok(data) => participants.push(Participant {
                id: String::from_utf8_lossy(data.as_bytes()).into_owned(),
                path,
                is_leader: participants.is_empty(),
            }),
            Err(error) if error.is(ErrorCode::NoNode) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(participants)
}
