//! The znode of a counter: reading it, and changing it if it is what was read.
//!
//! Source: `docs/curator-recipes.md` sections 14.6 and 17.

use minikeeper_client::{CreateMode, Epoch, ErrorCode, Stat};

use crate::{
    client::ZooKeeper,
    error::AtomicError,
    queue::{
        contending::{Queue, Wait},
        naming,
        pace::Pace,
        parents,
    },
};

/// What was read: the value, and what it is recognised by.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) value: i64,
    /// `None` if the znode is missing.
    pub(crate) stat: Option<Stat>,
}

/// The znode.
#[derive(Clone)]
pub(crate) struct Counter<C: ZooKeeper> {
    pub(crate) queue: Queue<C>,
}

impl<C: ZooKeeper> Counter<C> {
    pub(crate) async fn read(&self) -> Result<Seen, AtomicError> {
        let Queue { client, path, .. } = &self.queue;
        let mut pace = Pace::of(client);
        loop {
            self.queue.connected(Wait::FOR_EVER).await?;
            match client.data(path).await {
                Ok(data) => {
                    let bytes = data.as_bytes();
                    let value = match bytes.first_chunk() {
                        Some(value) => i64::from_be_bytes(*value),
                        None if bytes.is_empty() => 0,
                        None => {
                            return Err(AtomicError::Corrupted {
                                path: path.to_string(),
                                bytes: bytes.len(),
                            });
                        }
                    };
                    let stat = Some(data.stat);
                    return Ok(Seen { value, stat });
                }
                Err(error) if error.is(ErrorCode::NoNode) => {
                    return Ok(Seen {
                        value: 0,
                        stat: None,
                    });
                }
                Err(error) if error.is_retryable() => pace.after(&error).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sets the value if the counter is what was seen; false if it is not any more.
    pub(crate) async fn write(&self, seen: Seen, value: i64) -> Result<bool, AtomicError> {
        let Queue { client, path, .. } = &self.queue;
        let bytes = value.to_be_bytes();
        let mut pace = Pace::of(client);
        loop {
            let epoch = self.queue.connected(Wait::FOR_EVER).await?;
            let result = match seen.stat {
                // As a version it would mean any; it comes after 2^32 changes, if ever.
                Some(stat) if stat.version == -1 => return Ok(false),
                Some(stat) => {
                    let set = client.set_data(path, &bytes, Some(stat.version));
                    set.await.map(drop)
                }
                None => {
                    let create = client.create(path, &bytes, CreateMode::Persistent, false);
                    create.await.map(drop)
                }
            };
            match result {
                Ok(()) => return Ok(true),
                Err(error) if error.is(ErrorCode::NoNode) && seen.stat.is_none() => {
                    match parents::make(client, naming::parent_of(path)).await {
                        // One of them was cleared away in between.
                        Err(error) if error.is(ErrorCode::NoNode) => pace.pause().await,
                        Err(error) if error.is_retryable() => pace.after(&error).await,
                        Err(error) => return Err(error.into()),
                        Ok(()) => {}
                    }
                }
                Err(error)
                    if error.is(ErrorCode::BadVersion)
                        || error.is(ErrorCode::NodeExists)
                        || error.is(ErrorCode::NoNode) =>
                {
                    return Ok(false);
                }
                Err(error) if error.is_outcome_unknown() && error.is_retryable() => {
                    if !self.is_certainly_not_made(epoch, seen, value).await? {
                        return Err(error.into());
                    }
                }
                Err(error) if error.is_retryable() => pace.after(&error).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether a change that was not answered was not made, and never will be.
    async fn is_certainly_not_made(
        &self,
        epoch: Epoch,
        seen: Seen,
        value: i64,
    ) -> Result<bool, AtomicError> {
        let Queue { client, path, .. } = &self.queue;
        let mut pace = Pace::of(client);
        loop {
            // The server has ended the connection it came by before it takes the session's next:
            // after a sync it is made, or never will be (section 14.6).
            if self.queue.connected(Wait::FOR_EVER).await? != epoch {
                return Ok(false);
            }
            match client.sync(path).await {
                Ok(()) => {}
                Err(error) if error.is_retryable() => {
                    pace.after(&error).await;
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            let now = self.read().await?;
            if self.queue.connected(Wait::FOR_EVER).await? != epoch {
                return Ok(false);
            }
            return Ok(match (seen.stat, now.stat) {
                (None, None) => true,
                (None, Some(now_stat)) => now_stat.version == 0 && now.value != value,
                // Deleted since, perhaps with the change.
                (Some(_), None) => false,
                (Some(seen_stat), Some(now_stat)) => {
                    let is_same_znode = seen_stat.czxid == now_stat.czxid;
                    let changes = now_stat.version.wrapping_sub(seen_stat.version);
                    is_same_znode && (changes == 0 || changes == 1 && now.value != value)
                }
            });
        }
    }
}
