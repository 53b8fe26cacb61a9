//! Follows a run with watches of a separate session, and feeds the judge.

use std::time::Duration;

use minikeeper_client::{AddWatchMode, ClientBuilder, CreateMode, EventKind, WatchEvent};

use super::{
    Fault,
    judge::{Change, Judge},
    names::{self, Kind},
};

/// Runs until the znode that marks the end is created.
pub(crate) async fn audit(
    client: ClientBuilder,
    kind: Kind,
    path: &str,
    patience: Duration,
) -> Result<Judge, Fault> {
    let client = client.connect().await?;
    let mut events = client
        .add_watch("/", AddWatchMode::PersistentRecursive)
        .await?;
    let audited = names::audited(path);
    client.create(&audited, b"", CreateMode::Persistent).await?;
    let end = names::end(path);
    let mut judge = Judge::new(kind, path);
    let watching = async {
        loop {
            let (kind, path) = match events.next().await {
                WatchEvent::Event { kind, path, .. } => (kind, path),
                other => {
                    return Err(Fault::from(format!("the audit missed events: {other:?}")));
                }
            };
            let change = match kind {
                EventKind::Created if path == end => return Ok(()),
                EventKind::Created => Change::Created,
                EventKind::Deleted => Change::Deleted,
                EventKind::DataChanged => Change::Written,
                _ => continue,
            };
            judge.see(change, &path);
        }
    };
    tokio::time::timeout(patience, watching).await??;
    if client.connections() != 1 {
        return Err("the audit lost its connection, and with it events".into());
    }
    client.close().await;
    judge.finish();
    Ok(judge)
}
