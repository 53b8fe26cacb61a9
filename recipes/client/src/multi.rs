//! Several changes in one request: the server makes all of them or none.

use bytes::Bytes;
use minikeeper_protocol::{MultiOp, MultiResult, PathError, Request, Ustring};

use crate::{client::Client, operations::CreateOptions, paths};

/// The operations of a multi, in order.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_client::{CreateMode, Multi};
///
/// client.create("/old", b"data", CreateMode::Persistent).await?;
/// let moved = Multi::new()
///     .create("/new", b"data", CreateMode::Persistent)
///     .delete("/old", Some(0));
/// client.multi(moved).await?;
/// # Ok(()) });
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is changed until it is passed to `Client::multi`"]
pub struct Multi {
    ops: Vec<Op>,
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

    fn with(mut self, path: String, what: What) -> Self {
        self.ops.push(Op { path, what });
        self
    }

    pub(crate) fn encode(&self, client: &Client) -> Result<Vec<MultiOp>, PathError> {
        self.ops.iter().map(|op| op.encode(client)).collect()
    }
}

impl Op {
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
