//! Waiting until keys of etcd are deleted.
//!
//! Source: etcd 3.4, `clientv3/concurrency/key.go`, which also opens a stream for each key: the Go
//! client closes a stream on which nothing is watched any more.

use etcd_client::{
    Client, Error as EtcdError, EventType, GetOptions, ResponseHeader, SortOrder, SortTarget,
    WatchOptions,
};

/// Waits until no key below `name` is older than `revision`. It watches the youngest of these keys,
/// so that a deletion wakes only one waiting contender.
///
/// # Errors
/// If the server does not reply, or ends the stream.
pub(super) async fn all_deleted_before(
    client: &mut Client,
    name: &str,
    revision: i64,
) -> Result<(), EtcdError> {
    loop {
        let youngest = GetOptions::new()
            .with_prefix()
            .with_sort(SortTarget::Create, SortOrder::Descend)
            .with_max_create_revision(revision - 1)
            .with_limit(1);
        let found = client.get(format!("{name}/"), Some(youngest)).await?;
        let Some(key) = found.kvs().first() else {
            return Ok(());
        };
        let seen_at = found.header().map_or(0, ResponseHeader::revision);
        deleted(client, key.key(), seen_at).await?;
    }
}

/// Waits until the key, which existed at this revision, is deleted, or until the server cancels the
/// watch because it has compacted that revision; the caller then looks for the key again.
async fn deleted(client: &mut Client, key: &[u8], seen_at: i64) -> Result<(), EtcdError> {
    let since = WatchOptions::new().with_start_revision(seen_at);
    let mut changes = client.watch(key, Some(since)).await?;
    while let Some(change) = changes.message().await? {
        let mut events = change.events().iter();
        if change.canceled() || events.any(|event| event.event_type() == EventType::Delete) {
            return Ok(());
        }
    }
    Err(EtcdError::WatchError("the watch has ended".into()))
}
