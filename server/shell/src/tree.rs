//! Commands that walk a tree. Nothing recurses; requests are sent ahead of their use, up to
//! [`AHEAD_MAX`] at a time.

use std::collections::VecDeque;

use minikeeper_client::{AclList, Call, Children, Client, ErrorCode, Multi, OneShot};

use crate::{
    connection::{Connection, Table},
    failure::{self, Failure},
    output::Output,
};

/// How many requests wait for their replies.
const AHEAD_MAX: usize = 64;

/// The most bytes of paths in one multi, below the limit of servers.
const MULTI_BYTES_MAX: usize = 256 << 10;

/// The most multis that wait for their replies, as in zkCli.
const MULTIS_MAX: usize = 10;

/// Returns the path of a child.
fn child(path: &str, name: &str) -> String {
    let parent = if path == "/" { "" } else { path };
    format!("{parent}/{name}")
}

/// A znode whose children are still to be visited.
struct Pending {
    path: String,
    /// The request for its children, if it was sent ahead.
    children: Option<Listing>,
}

/// A request for the children of a znode.
enum Listing {
    Plain(Call<Children>),
    Watching(Call<(Children, OneShot)>),
}

impl Listing {
    fn start(client: &Client, path: &str, is_watching: bool) -> Self {
        if is_watching {
            Self::Watching(client.children_and_watch(path))
        } else {
            Self::Plain(client.children(path))
        }
    }
}

/// Visits the znodes of a tree as ZooKeeper's `visitSubTreeDFS` does: the root; then, for each znode, all
/// of its children before any grandchild.
pub(crate) struct Walk {
    is_watching: bool,
    /// The next znode is the last.
    pending: Vec<Pending>,
    /// How many requests were sent ahead.
    ahead: usize,
}

impl Walk {
    /// Begins with the children of `path`, which the caller has visited.
    pub(crate) fn new(path: &str, is_watching: bool) -> Self {
        let root = Pending {
            path: path.to_owned(),
            children: None,
        };
        Self {
            is_watching,
            pending: vec![root],
            ahead: 0,
        }
    }

    /// Returns the next siblings in order; `None` at the end. The caller sends what it has to say about
    /// them before it calls this again.
    ///
    /// # Errors
    /// When a znode cannot be listed. One that was deleted meanwhile is passed over.
    pub(crate) async fn next(
        &mut self,
        connection: &mut Connection,
    ) -> Result<Option<Vec<String>>, Failure> {
        loop {
            self.send_ahead(&connection.client);
            let Some(Pending { path, children }) = self.pending.pop() else {
                return Ok(None);
            };
            if children.is_some() {
                self.ahead -= 1;
            }
            let listing = children
                .unwrap_or_else(|| Listing::start(&connection.client, &path, self.is_watching));
            let listed = match listing {
                Listing::Plain(call) => call.await,
                Listing::Watching(call) => call.await.map(|(children, watch)| {
                    connection.keep_one_shot(Table::Child, &path, watch);
                    children
                }),
            };
            let children = match listed {
                Ok(children) => children,
                Err(error) if error.is(ErrorCode::NoNode) => continue,
                Err(error) => return Err(Failure::of(&error, &path)),
            };
            let mut paths: Vec<_> = children.names().map(|name| child(&path, &name)).collect();
            paths.sort_unstable();
            self.pending.extend(paths.iter().rev().map(|path| Pending {
                path: path.clone(),
                children: None,
            }));
            if !paths.is_empty() {
                return Ok(Some(paths));
            }
        }
    }

    fn send_ahead(&mut self, client: &Client) {
        for next in self.pending.iter_mut().rev().take(AHEAD_MAX) {
            if self.ahead == AHEAD_MAX {
                return;
            }
            if next.children.is_none() {
                next.children = Some(Listing::start(client, &next.path, self.is_watching));
                self.ahead += 1;
            }
        }
    }
}

/// Prints the paths of a tree.
pub(crate) async fn list(
    connection: &mut Connection,
    output: &Output,
    path: &str,
    is_watching: bool,
) -> Result<(), Failure> {
    read_root(connection, path, is_watching).await?;
    output.line(path);
    let mut walk = Walk::new(path, is_watching);
    while let Some(paths) = walk.next(connection).await? {
        for path in paths {
            output.line(&path);
        }
        if output.is_closed() {
            break;
        }
    }
    Ok(())
}

/// Sets the access list of every znode of a tree. Prints those that refuse, and continues.
pub(crate) async fn set_acl(
    connection: &mut Connection,
    output: &Output,
    path: &str,
    acl: &AclList,
    version: Option<i32>,
) -> Result<(), Failure> {
    read_root(connection, path, false).await?;
    let mut siblings = vec![path.to_owned()];
    let mut walk = Walk::new(path, false);
    loop {
        for paths in siblings.chunks(AHEAD_MAX) {
            let client = &connection.client;
            let calls: Vec<_> = paths
                .iter()
                .map(|path| client.set_acl(path, acl, version))
                .collect();
            for (path, call) in paths.iter().zip(calls) {
                match call.await {
                    Ok(_) => {}
                    Err(error) => match error.code() {
                        Some(code) => output.line(&failure::raw(code, path)),
                        None => return Err(Failure::of(&error, path)),
                    },
                }
            }
        }
        match walk.next(connection).await? {
            Some(paths) => siblings = paths,
            None => return Ok(()),
        }
    }
}

/// Reads the root of a tree, which must exist.
pub(crate) async fn read_root(
    connection: &mut Connection,
    path: &str,
    is_watching: bool,
) -> Result<(), Failure> {
    let failed = |error: &_| Failure::of(error, path);
    if is_watching {
        let read = connection.client.get_data_and_watch(path).await;
        let (_, watch) = read.map_err(|error| failed(&error))?;
        connection.keep_one_shot(Table::Data, path, watch);
    } else {
        let read = connection.client.get_data(path).await;
        read.map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// Deletes a tree, leaves first, `batch_size` znodes in a multi; without one each znode by itself.
/// Returns whether all of it was deleted.
///
/// # Errors
/// When the tree cannot be listed, or, without batches, a znode cannot be deleted.
pub(crate) async fn delete(
    client: &Client,
    path: &str,
    batch_size: usize,
) -> Result<bool, Failure> {
    let mut tree = list_breadth_first(client, path).await?;
    let mut waiting = VecDeque::new();
    if batch_size == 0 {
        while let Some(path) = tree.pop() {
            let deleted = client.delete(&path, None).await;
            deleted.map_err(|error| Failure::of(&error, &path))?;
        }
        return Ok(true);
    }
    let mut is_whole = true;
    while !tree.is_empty() && is_whole {
        let (mut multi, mut count, mut bytes) = (Multi::new(), 0, 0);
        while count < batch_size
            && bytes < MULTI_BYTES_MAX
            && let Some(path) = tree.pop()
        {
            count += 1;
            bytes += path.len();
            multi = multi.delete(path, None);
        }
        if waiting.len() == MULTIS_MAX {
            is_whole &= finished(waiting.pop_front(), path).await?;
        }
        let mut call = Box::pin(client.multi(multi));
        // Sends it; the reply is awaited later.
        if let Some(outcome) = now_or_later(&mut call).await {
            is_whole &= deleted(outcome, path)?;
        } else {
            waiting.push_back(call);
        }
    }
    while !waiting.is_empty() {
        is_whole &= finished(waiting.pop_front(), path).await?;
    }
    Ok(is_whole)
}

type MultiCall = std::pin::Pin<Box<Call<Vec<minikeeper_client::MultiResult>>>>;
type MultiOutcome = Result<Vec<minikeeper_client::MultiResult>, minikeeper_client::Error>;

async fn finished(call: Option<MultiCall>, path: &str) -> Result<bool, Failure> {
    match call {
        Some(call) => deleted(call.await, path),
        None => Ok(true),
    }
}

/// Returns whether a batch was deleted. A refusal is no error: zkCli reports all of them together.
fn deleted(outcome: MultiOutcome, path: &str) -> Result<bool, Failure> {
    match outcome {
        Ok(_) => Ok(true),
        Err(error) if error.code().is_some() => Ok(false),
        Err(error) => Err(Failure::of(&error, path)),
    }
}

/// Polls a call once, which sends it.
async fn now_or_later(call: &mut MultiCall) -> Option<MultiOutcome> {
    std::future::poll_fn(|cx| {
        std::task::Poll::Ready(match call.as_mut().poll(cx) {
            std::task::Poll::Ready(outcome) => Some(outcome),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

/// Lists a tree, parents before children.
async fn list_breadth_first(client: &Client, root: &str) -> Result<Vec<String>, Failure> {
    let mut tree = vec![root.to_owned()];
    let mut waiting = VecDeque::new();
    let (mut asked, mut listed) = (0, 0);
    while listed < tree.len() {
        while asked < tree.len() && waiting.len() < AHEAD_MAX {
            waiting.push_back(client.child_names(&tree[asked]));
            asked += 1;
        }
        let Some(call) = waiting.pop_front() else {
            break;
        };
        let path = tree[listed].clone();
        let names = call.await.map_err(|error| Failure::of(&error, &path))?;
        tree.extend(names.iter().map(|name| child(&path, &name)));
        listed += 1;
    }
    Ok(tree)
}
