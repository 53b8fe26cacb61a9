//! Several changes in one request: the server makes all of them or none.

use bytes::Bytes;
use minikeeper_protocol::{MultiOp, MultiResult, PathError, Request, Ustring};

use crate::{client::Client, operations::CreateOptions, paths};

/// The operations of a multi, in order.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_client::{CreateMode, Multi};
///
/// client.create("/old", b"data", CreateMode::Persistent).await?;
/// let moved = Multi::new()
///     .create("/new", b"data", CreateMode::Persistent)
///     .delete("/old", Some(0));
/// client.multi(moved).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is changed until it is passed to `Client::multi`"]
pub struct Multi {
    ops: Vec<Op>,
}

/// One operation of a [`Multi`], for adapters of other clients.
///
/// # Examples
/// ```
/// use minikeeper_client::{Multi, MultiStep};
/// let multi = Multi::new().check("/lock", Some(3));
/// let (path, version) = ("/lock", Some(3));
/// assert_eq!(multi.steps().next(), Some(MultiStep::Check { path, version }));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MultiStep<'a> {
    /// See [`Multi::check`].
    Check {
        /// The znode.
        path: &'a str,
        /// The version that it must have; `None` matches any.
        version: Option<i32>,
    },
    /// See [`Multi::create`].
    Create {
        /// The znode.
        path: &'a str,
        /// Its data.
        data: &'a [u8],
        /// Its mode, access list and time to live.
        options: &'a CreateOptions,
    },
    /// See [`Multi::set_data`].
    SetData {
        /// The znode.
        path: &'a str,
        /// Its new data.
        data: &'a [u8],
        /// The version that it must have; `None` matches any.
        version: Option<i32>,
    },
    /// See [`Multi::delete`].
    Delete {
        /// The znode.
        path: &'a str,
        /// The version that it must have; `None` matches any.
        version: Option<i32>,
    },
}

impl<'a> MultiStep<'a> {
    /// Returns the path of the znode.
    #[must_use]
    pub const fn path(&self) -> &'a str {
        match self {
            Self::Check { path, .. }
            | Self::Create { path, .. }
            | Self::SetData { path, .. }
            | Self::Delete { path, .. } => path,
        }
    }
}

#[derive(Clone, Debug)]
struct Op {
    path: String,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Check(i32),
    Create(Bytes, CreateOptions),
    SetData(Bytes, i32),
    Delete(i32),
}

impl Multi {
    /// Creates an empty list of operations.
    pub const fn new() -> Self {
        Self { ops: Vec::new() }
    }

    /// Requires that the znode exists and has this version; `None` matches any.
    pub fn check(self, path: impl Into<String>, version: Option<i32>) -> Self {
        self.with(path.into(), What::Check(version.unwrap_or(-1)))
    }

    /// Creates a znode. [`CreateOptions::withdrawn_if_dropped`] has no effect here.
    pub fn create(
        self,
        path: impl Into<String>,
        data: &[u8],
        options: impl Into<CreateOptions>,
    ) -> Self {
        let data = Bytes::copy_from_slice(data);
        self.with(path.into(), What::Create(data, options.into()))
    }

    /// Sets a znode's data if the znode has this version; `None` matches any.
    pub fn set_data(self, path: impl Into<String>, data: &[u8], version: Option<i32>) -> Self {
        let data = Bytes::copy_from_slice(data);
        self.with(path.into(), What::SetData(data, version.unwrap_or(-1)))
    }

    /// Deletes a znode if it has this version; `None` matches any.
    pub fn delete(self, path: impl Into<String>, version: Option<i32>) -> Self {
        self.with(path.into(), What::Delete(version.unwrap_or(-1)))
    }

    /// Returns the operations in order, for adapters of other clients.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = MultiStep<'_>> {
        self.ops.iter().map(Op::step)
    }

    fn with(mut self, path: String, what: What) -> Self {
        self.ops.push(Op { path, what });
        self
    }

    pub(crate) fn encode(&self, client: &Client) -> Result<Vec<MultiOp>, PathError> {
        self.ops.iter().map(|op| op.encode(client)).collect()
    }
}

impl Op {
    fn step(&self) -> MultiStep<'_> {
        let path = self.path.as_str();
        let wanted = |version: i32| (version != -1).then_some(version);
        match &self.what {
            What::Check(version) => MultiStep::Check {
                path,
                version: wanted(*version),
            },
            What::Create(data, options) => MultiStep::Create {
                path,
                data,
                options,
            },
            What::SetData(data, version) => MultiStep::SetData {
                path,
                data,
                version: wanted(*version),
            },
            What::Delete(version) => MultiStep::Delete {
                path,
                version: wanted(*version),
            },
        }
    }

    fn encode(&self, client: &Client) -> Result<MultiOp, PathError> {
        let is_sequential =
            matches!(&self.what, What::Create(_, options) if options.mode.is_sequential());
        let path = paths::full(client.root.as_ref(), &self.path, is_sequential)?;
        Ok(match &self.what {
            What::Check(version) => MultiOp::Check {
                path: Some(path),
                version: *version,
            },
            What::Create(data, options) => {
                MultiOp::Create(options.encode(client, path, data.clone()))
            }
            What::SetData(data, version) => MultiOp::SetData {
                path: Some(path),
                data: Some(data.clone()),
                version: *version,
            },
            What::Delete(version) => MultiOp::Delete {
                path: Some(path),
                version: *version,
            },
        })
    }
}

/// Returns the operation that failed a multi, and its error code.
///
/// The operations after it have the code for "not tried", those before it no error.
pub(crate) fn failure(results: &[MultiResult]) -> Option<(usize, minikeeper_protocol::ErrorCode)> {
    use minikeeper_protocol::ErrorCode::RuntimeInconsistency;
    let errors = || {
        results
            .iter()
            .enumerate()
            .filter_map(|(index, result)| match result {
                MultiResult::Error(Some(code)) => Some((index, *code)),
                _ => None,
            })
    };
    errors()
        .find(|(_, code)| *code != RuntimeInconsistency)
        .or_else(|| errors().next())
}

/// Returns the size of the parts of a request that can be large: paths and data. Unit: bytes.
pub(crate) fn payload_bytes(request: &Request) -> usize {
    let text = |path: &Option<Ustring>| path.as_ref().map_or(0, |path| path.as_bytes().len());
    let data = |data: &Option<Bytes>| data.as_ref().map_or(0, Bytes::len);
    match request {
        Request::Create(create) => text(&create.path) + data(&create.data),
        Request::SetData { path, data: it, .. } => text(path) + data(it),
        Request::Multi(ops) => ops
            .iter()
            .map(|op| match op {
                MultiOp::Create(create) => text(&create.path) + data(&create.data),
                MultiOp::SetData { path, data: it, .. } => text(path) + data(it),
                MultiOp::Delete { path, .. } | MultiOp::Check { path, .. } => text(path),
            })
            .sum(),
        other => other.path().map_or(0, |path| path.as_bytes().len()),
    }
}

#[cfg(test)]
mod tests {
    use minikeeper_protocol::CreateMode;

    use super::*;

    #[test]
    fn steps_list_every_operation_in_order() {
        let multi = Multi::new()
            .check("/a", Some(3))
            .create("/b", b"x", CreateMode::Ephemeral)
            .set_data("/c", b"y", None)
            .delete("/d", Some(-1));
        let (path, version) = ("/d", None);
        let options = CreateOptions::from(CreateMode::Ephemeral);
        let expected = [
            MultiStep::Check {
                path: "/a",
                version: Some(3),
            },
            MultiStep::Create {
                path: "/b",
                data: b"x",
                options: &options,
            },
            MultiStep::SetData {
                path: "/c",
                data: b"y",
                version: None,
            },
            MultiStep::Delete { path, version },
        ];
        assert_eq!(multi.steps().collect::<Vec<_>>(), expected);
    }
}
