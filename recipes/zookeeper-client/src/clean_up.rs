//! Clean-up in the background: deletes znodes whose caller no longer waits.
//!
//! Each clean-up is a task. It retries until the server confirms the deletion or the session is
//! over, which deletes ephemeral znodes anyway.

use std::{sync::Arc, time::Duration};

use minikeeper_client::{Cause, Epoch};
use tokio::time::sleep;
use zookeeper_client::Error;

use crate::{
    calls::{AtOnce, ask},
    convert,
    session::{Session, Shared},
};
use minikeeper_recipes::naming;

/// The wait before a failed clean-up is retried. It doubles up to the maximum.
const BACKOFF_MIN: Duration = Duration::from_millis(20);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// Deletes a znode that was created in this epoch. The first request is made at once.
pub(crate) fn named(shared: &Arc<Shared>, epoch: Epoch, path: &str) {
    let session = shared.session();
    // A znode of an earlier session is deleted with that session; this only shortens the wait.
    let is_once = !shared.has_session_of(epoch);
    let first = delete(shared, &session, path);
    let (owner, path) = (Arc::clone(shared), path.to_owned());
    shared.runtime.spawn(async move {
        let mut pause = BACKOFF_MIN;
        let mut result = first.await;
        while !is_once && !is_done(&result) {
            sleep(pause).await;
            pause = (pause * 2).min(BACKOFF_MAX);
            result = delete(&owner, &session, &path).await;
        }
    });
}

/// Like [`named`], for a child of `parent` whose name begins with `prefix` and whose creation got
/// no reply.
pub(crate) fn unanswered(shared: &Arc<Shared>, epoch: Epoch, parent: &str, prefix: &str) {
    if !shared.has_session_of(epoch) {
        return;
    }
    let (session, owner) = (shared.session(), Arc::clone(shared));
    let (parent, prefix) = (parent.to_owned(), prefix.to_owned());
    shared.runtime.spawn(async move {
        let mut pause = BACKOFF_MIN;
        loop {
            // Another server may show the znode only after a sync.
            let sync = ask(&owner, &session, &parent, |client, path| async move {
                client.sync(&path).await
            });
            let list = ask(&owner, &session, &parent, |client, path| async move {
                client.list_children(&path).await
            });
            let found = match sync.await {
                Ok(()) => list.await,
                Err(error) => Err(error),
            };
            if let Ok(names) = &found {
                let mut are_gone = true;
                for name in names.iter().filter(|name| name.starts_with(&prefix)) {
                    let deleted = delete(&owner, &session, &naming::join(&parent, name)).await;
                    are_gone &= is_done(&deleted);
                }
                if are_gone {
                    return;
                }
            } else if is_done(&found) {
                return;
            }
            sleep(pause).await;
            pause = (pause * 2).min(BACKOFF_MAX);
        }
    });
}

fn delete(shared: &Arc<Shared>, session: &Session, path: &str) -> AtOnce<Result<(), Error>> {
    ask(shared, session, path, |client, path| async move {
        client.delete(&path, None).await
    })
}

/// Returns whether the clean-up is done, or retries cannot help.
fn is_done<T>(result: &Result<T, Error>) -> bool {
    match result {
        Ok(_) | Err(Error::NoNode | Error::NoAuth | Error::BadArguments(_)) => true,
        Err(error) => matches!(
            convert::error("delete", "", error).cause(),
            Some(Cause::SessionLost | Cause::Closed)
        ),
    }
}
