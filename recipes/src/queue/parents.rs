//! Creates the directories above a znode.
//!
//! Source: `docs/curator-recipes.md` sections 1.7 and 2.4.

use minikeeper_client::{CreateMode, Error, ErrorCode};

use crate::{client::ZooKeeper, queue::naming};

/// Creates a directory and those above it as containers, which the server deletes once they are
/// empty. Existing directories remain unchanged.
///
/// # Errors
/// When a server refuses or does not reply. The directories created so far remain.
pub(crate) async fn make<C: ZooKeeper>(client: &C, path: &str) -> Result<(), Error> {
    // Go up until a parent exists, then down again (saving S2).
    let mut missing = vec![path];
    while let Some(lowest) = missing.last().copied() {
        match create(client, lowest).await {
            Ok(()) => {
                missing.pop();
            }
            // Nothing can be created above the client's root.
            Err(error) if error.is(ErrorCode::NoNode) && lowest != "/" => {
                missing.push(naming::parent_of(lowest));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Like [`make`], in Curator's way: checks each directory from the top, and creates it if it is
/// missing.
///
/// # Errors
/// When a server refuses or does not reply. The directories created so far remain.
pub(crate) async fn make_from_above<C: ZooKeeper>(client: &C, path: &str) -> Result<(), Error> {
    let ends = path.match_indices('/').map(|(at, _)| at).skip(1);
    for end in ends.chain([path.len()]) {
        let path = &path[..end];
        if client.exists(path).await?.value.is_none() {
            create(client, path).await?;
        }
    }
    Ok(())
}

async fn create<C: ZooKeeper>(client: &C, path: &str) -> Result<(), Error> {
    let mut result = client.create(path, b"", CreateMode::Container, false).await;
    if let Err(error) = &result
        && error.is(ErrorCode::Unimplemented)
    {
        // Servers before 3.5 do not have containers.
        result = client
            .create(path, b"", CreateMode::Persistent, false)
            .await;
    }
    match result {
        Err(error) if !error.is(ErrorCode::NodeExists) => Err(error),
        _ => Ok(()),
    }
}
