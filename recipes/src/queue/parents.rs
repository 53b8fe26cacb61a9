//! Creates the directories above a znode.
//!
//! Source: `docs/curator-recipes.md` sections 1.7 and 2.4.

use minikeeper_client::{Client, CreateMode, Error, ErrorCode};

use crate::queue::naming;

/// The outcome of creating directories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Made {
    /// All of them exist.
    Directories,
    /// One was deleted in between (hazard H13): retry after a pause.
    Interrupted,
}

/// Creates a directory and those above it as containers, which the server deletes once they are
/// empty. Existing directories remain unchanged. The client decides about its root.
///
/// # Errors
/// When a server refuses or does not reply. The directories created so far remain.
pub(crate) async fn make(client: &Client, path: &str) -> Result<Made, Error> {
    // Go up until a parent exists, then down again (saving S2).
    let mut missing = vec![path];
    while let Some(lowest) = missing.last().copied() {
        match create(client, lowest).await {
            Ok(()) => {
                missing.pop();
            }
            Err(error) if !error.is(ErrorCode::NoNode) => return Err(error),
            Err(_) if naming::parent_of(lowest) != "/" => missing.push(naming::parent_of(lowest)),
            Err(_) => {
                client.create_root().await?;
                match create(client, lowest).await {
                    Err(error) if error.is(ErrorCode::NoNode) => return Ok(Made::Interrupted),
                    result => result?,
                }
            }
        }
    }
    Ok(Made::Directories)
}

/// Like [`make`], in Curator's way: checks each directory from the top, and creates it if it is
/// missing.
///
/// # Errors
/// When a server refuses or does not reply. The directories created so far remain.
pub(crate) async fn make_from_above(client: &Client, path: &str) -> Result<Made, Error> {
    let ends = path.match_indices('/').map(|(at, _)| at).skip(1);
    for end in ends.chain([path.len()]) {
        let path = &path[..end];
        if client.exists(path).await?.is_some() {
            continue;
        }
        match create(client, path).await {
            Err(error) if error.is(ErrorCode::NoNode) => {
                if naming::parent_of(path) == "/" {
                    client.create_root().await?;
                }
                return Ok(Made::Interrupted);
            }
            result => result?,
        }
    }
    Ok(Made::Directories)
}

/// Creates a directory; `/` is the client's root.
async fn create(client: &Client, path: &str) -> Result<(), Error> {
    if path == "/" {
        return client.create_root().await;
    }
    let mut result = client.create(path, b"", CreateMode::Container).await;
    if let Err(error) = &result
        && error.is(ErrorCode::Unimplemented)
    {
        // Servers before 3.5 do not have containers.
        result = client.create(path, b"", CreateMode::Persistent).await;
    }
    match result {
        Err(error) if !error.is(ErrorCode::NodeExists) => Err(error),
        _ => Ok(()),
    }
}
