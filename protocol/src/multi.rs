//! multi and multiRead: several operations in one request, and their outcomes.
//!
//! Source: `docs/zookeeper-protocol.md` section 13; ZooKeeper's `MultiOperationRecord` and
//! `MultiResponse`.

use bytes::Bytes;

use crate::{
    create::{Create, CreateOp},
    error::{DecodeError, ErrorCode},
    jute::{self, Reader, Ustring},
    request::OpCode,
    stat::Stat,
    within::Within,
};

/// One operation of a multi.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(
    missing_docs,
    reason = "the fields are the wire's own: path, data, version"
)]
pub enum MultiOp {
    /// create, create2, createContainer, createTTL.
    Create(Create),
    /// delete.
    Delete { path: Option<Ustring>, version: i32 },
    /// setData.
    SetData {
        path: Option<Ustring>,
        data: Option<Bytes>,
        version: i32,
    },
    /// check: fails the multi unless the version matches.
    Check { path: Option<Ustring>, version: i32 },
}

impl MultiOp {
    /// Returns the operation code.
    #[must_use]
    pub const fn op(&self) -> OpCode {
        match self {
            Self::Create(create) => create.op.op(),
            Self::Delete { .. } => OpCode::Delete,
            Self::SetData { .. } => OpCode::SetData,
            Self::Check { .. } => OpCode::Check,
        }
    }
}

/// One operation of a multiRead. Servers ignore the watch flag.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the fields are the wire's own: path, watch")]
pub enum MultiReadOp {
    /// getData.
    GetData { path: Option<Ustring>, watch: bool },
    /// getChildren.
    GetChildren { path: Option<Ustring>, watch: bool },
}

/// The outcome of one operation of a multi or multiRead.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(
    missing_docs,
    reason = "the fields are the wire's own: path, data, stat"
)]
pub enum MultiResult {
    /// create.
    Create { path: Ustring },
    /// create2, createContainer, createTTL.
    Create2 { path: Ustring, stat: Stat },
    /// delete.
    Delete,
    /// setData, with the stat after this operation, not after the multi.
    SetData { stat: Stat },
    /// check.
    Check,
    /// getData in a multiRead.
    GetData { data: Option<Bytes>, stat: Stat },
    /// getChildren in a multiRead.
    GetChildren { names: Vec<Ustring> },
    /// The operation or its multi has failed. `None` (zero on the wire) before the failed
    /// operation, then its error, and [`ErrorCode::RuntimeInconsistency`] after it.
    Error(Option<ErrorCode>),
}

struct MultiHeader {
    op: i32,
    done: bool,
    error: i32,
}

impl MultiHeader {
    const END: Self = Self {
        op: -1,
        done: true,
        error: -1,
    };

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            op: reader.int()?,
            done: reader.bool()?,
            error: reader.int()?,
        })
    }

    fn wire(&self) -> [u8; HEADER_BYTES] {
        let mut wire = [0; HEADER_BYTES];
        wire[..4].copy_from_slice(&self.op.to_be_bytes());
        wire[4] = u8::from(self.done);
        wire[5..].copy_from_slice(&self.error.to_be_bytes());
        wire
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.wire());
    }
}

/// Reads the operations of a multi.
///
/// # Errors
/// When an operation is malformed or not permitted in a multi, or the end marker is missing.
pub fn decode_ops(reader: &mut Reader<'_>) -> Result<Vec<MultiOp>, DecodeError> {
    let mut ops = Vec::new();
    loop {
        let header = MultiHeader::decode(reader)?;
        if header.done {
            return Ok(ops);
        }
        ops.push(match OpCode::from_code(header.op) {
            Some(OpCode::Create) => MultiOp::Create(Create::decode(CreateOp::Create, reader)?),
            Some(OpCode::Create2) => MultiOp::Create(Create::decode(CreateOp::Create2, reader)?),
            Some(OpCode::CreateContainer) => {
                MultiOp::Create(Create::decode(CreateOp::Container, reader)?)
            }
            Some(OpCode::CreateTtl) => MultiOp::Create(Create::decode(CreateOp::Ttl, reader)?),
            Some(OpCode::Delete) => MultiOp::Delete {
                path: reader.ustring()?,
                version: reader.int()?,
            },
            Some(OpCode::SetData) => MultiOp::SetData {
                path: reader.ustring()?,
                data: reader.buffer()?,
                version: reader.int()?,
            },
            Some(OpCode::Check) => MultiOp::Check {
                path: reader.ustring()?,
                version: reader.int()?,
            },
            _ => return Err(DecodeError::MultiOp { op: header.op }),
        });
    }
}

/// Appends the operations of a multi and the end marker.
pub fn encode_ops(ops: &[MultiOp], out: &mut Vec<u8>) {
    for op in ops {
        MultiHeader {
            op: op.op().code(),
            done: false,
            error: -1,
        }
        .encode(out);
        match op {
            MultiOp::Create(create) => create.encode(out),
            MultiOp::Delete { path, version } | MultiOp::Check { path, version } => {
                jute::put_ustring(out, path.as_ref());
                jute::put_int(out, *version);
            }
            MultiOp::SetData {
                path,
                data,
                version,
            } => {
                jute::put_ustring(out, path.as_ref());
                jute::put_buffer(out, data.as_deref());
                jute::put_int(out, *version);
            }
        }
    }
    MultiHeader::END.encode(out);
}

/// Reads the operations of a multiRead.
///
/// # Errors
/// When an operation is malformed or not permitted in a multiRead, or the end marker is missing.
pub fn decode_read_ops(reader: &mut Reader<'_>) -> Result<Vec<MultiReadOp>, DecodeError> {
    let mut ops = Vec::new();
    loop {
        let header = MultiHeader::decode(reader)?;
        if header.done {
            return Ok(ops);
        }
        ops.push(match OpCode::from_code(header.op) {
            Some(OpCode::GetData) => MultiReadOp::GetData {
                path: reader.ustring()?,
                watch: reader.bool()?,
            },
            Some(OpCode::GetChildren) => MultiReadOp::GetChildren {
                path: reader.ustring()?,
                watch: reader.bool()?,
            },
            _ => return Err(DecodeError::MultiOp { op: header.op }),
        });
    }
}

/// Reads the operations of a multiRead, or those of a multi if the first one changes something:
/// ZooKeeper also decodes those, and only refuses to serve them.
///
/// # Errors
/// When an operation is malformed or of another kind than the first, or the end marker is missing.
pub fn decode_read_or_changes(
    reader: &mut Reader<'_>,
) -> Result<Result<Vec<MultiReadOp>, Vec<MultiOp>>, DecodeError> {
    let first = MultiHeader::decode(&mut reader.clone())?;
    let changes = matches!(
        OpCode::from_code(first.op),
        Some(
            OpCode::Create
                | OpCode::Create2
                | OpCode::CreateContainer
                | OpCode::CreateTtl
                | OpCode::Delete
                | OpCode::SetData
                | OpCode::Check
        )
    );
    if changes && !first.done {
        decode_ops(reader).map(Err)
    } else {
        decode_read_ops(reader).map(Ok)
    }
}

/// Appends the operations of a multiRead and the end marker.
pub fn encode_read_ops(ops: &[MultiReadOp], out: &mut Vec<u8>) {
    for op in ops {
        let (code, path, watch) = match op {
            MultiReadOp::GetData { path, watch } => (OpCode::GetData, path, watch),
            MultiReadOp::GetChildren { path, watch } => (OpCode::GetChildren, path, watch),
        };
        MultiHeader {
            op: code.code(),
            done: false,
            error: -1,
        }
        .encode(out);
        jute::put_ustring(out, path.as_ref());
        jute::put_bool(out, *watch);
    }
    MultiHeader::END.encode(out);
}

/// The size of the header in front of each result, and of the end marker. Unit: bytes.
const HEADER_BYTES: usize = 9;

/// Appends the outcomes and the end marker. Returns `None` if they do not fit.
pub(crate) fn put_results(results: &[MultiResult], out: &mut Within<'_>) -> Option<()> {
    for result in results {
        match result {
            MultiResult::Create { path } => {
                out.put_small(done(OpCode::Create))?;
                out.put_buffer(Some(path.as_bytes()))?;
            }
            MultiResult::Create2 { path, stat } => {
                out.put_small(done(OpCode::Create2))?;
                out.put_buffer(Some(path.as_bytes()))?;
                out.put_stat(stat)?;
            }
            MultiResult::Delete => out.put_small(done(OpCode::Delete))?,
            MultiResult::SetData { stat } => {
                out.put_small(done(OpCode::SetData))?;
                out.put_stat(stat)?;
            }
            MultiResult::Check => out.put_small(done(OpCode::Check))?,
            MultiResult::GetData { data, stat } => put_data(out, data.as_deref(), stat)?,
            MultiResult::GetChildren { names } => {
                put_children(out, &mut names.iter().map(Ustring::as_bytes))?;
            }
            MultiResult::Error(error) => put_error(out, *error)?,
        }
    }
    out.put_small(MultiHeader::END.wire())
}

/// Returns the header of an operation that succeeded.
fn done(op: OpCode) -> [u8; HEADER_BYTES] {
    MultiHeader {
        op: op.code(),
        done: false,
        error: 0,
    }
    .wire()
}

fn put_data(out: &mut Within<'_>, data: Option<&[u8]>, stat: &Stat) -> Option<()> {
    out.put_small(done(OpCode::GetData))?;
    out.put_data(data, stat)
}

fn put_children(
    out: &mut Within<'_>,
    names: &mut dyn ExactSizeIterator<Item = &[u8]>,
) -> Option<()> {
    out.put_small(done(OpCode::GetChildren))?;
    out.put_buffers(names)
}

fn put_error(out: &mut Within<'_>, error: Option<ErrorCode>) -> Option<()> {
    let code = error.map_or(0, ErrorCode::code);
    let header = MultiHeader {
        op: -1,
        done: false,
        error: code,
    };
    out.put_small(header.wire())?;
    out.put_int(code)
}

/// Writes the results of a multiRead straight into the reply, one by one. Once one does not fit,
/// the reply is abandoned and the remaining results cost nothing.
pub struct MultiReadResults<'a, 'b> {
    /// `None` once a result did not fit.
    out: Option<&'a mut Within<'b>>,
}

impl std::fmt::Debug for MultiReadResults<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MultiReadResults").finish_non_exhaustive()
    }
}

impl<'a, 'b> MultiReadResults<'a, 'b> {
    /// The size of the end marker. Unit: bytes.
    pub const END_BYTES: usize = HEADER_BYTES;

    /// The size of an error among the results. Unit: bytes.
    pub const ERROR_BYTES: usize = HEADER_BYTES + 4;

    /// Returns the size of a getData result. Unit: bytes.
    #[must_use]
    pub const fn data_bytes(data_bytes: usize) -> usize {
        (HEADER_BYTES + 4 + Stat::BYTES).saturating_add(data_bytes)
    }

    /// Returns the size of a listing of `names` names with `names_bytes` bytes in total. Unit:
    /// bytes.
    #[must_use]
    pub const fn children_bytes(names: usize, names_bytes: usize) -> usize {
        names
            .saturating_mul(4)
            .saturating_add(names_bytes)
            .saturating_add(HEADER_BYTES + 4)
    }

    /// Appends a getData result.
    pub fn data(&mut self, data: Option<&[u8]>, stat: &Stat) {
        self.put(|out| put_data(out, data, stat));
    }

    /// Appends a getChildren result.
    pub fn children(&mut self, names: &mut dyn ExactSizeIterator<Item = &[u8]>) {
        self.put(|out| put_children(out, names));
    }

    /// Appends the error of a refused operation.
    pub fn error(&mut self, error: ErrorCode) {
        self.put(|out| put_error(out, Some(error)));
    }

    fn put(&mut self, put: impl FnOnce(&mut Within<'b>) -> Option<()>) {
        if self.out.as_deref_mut().and_then(put).is_none() {
            self.out = None;
        }
    }

    /// Appends the results that `results` writes, and the end marker. Returns `None` if they do not
    /// fit.
    pub(crate) fn encode(
        results: &dyn Fn(&mut MultiReadResults<'_, '_>),
        out: &'a mut Within<'b>,
    ) -> Option<()> {
        let mut taken = MultiReadResults { out: Some(out) };
        results(&mut taken);
        taken.out?.put_small(MultiHeader::END.wire())
    }
}

/// Reads the outcomes of a multi or multiRead.
///
/// # Errors
/// When an outcome is malformed or the end marker is missing.
pub fn decode_results(reader: &mut Reader<'_>) -> Result<Vec<MultiResult>, DecodeError> {
    let mut results = Vec::new();
    loop {
        let header = MultiHeader::decode(reader)?;
        if header.done {
            return Ok(results);
        }
        if header.op == -1 {
            let code = reader.int()?;
            results.push(MultiResult::Error(
                (code != 0).then(|| ErrorCode::from_code(code)),
            ));
            continue;
        }
        results.push(match OpCode::from_code(header.op) {
            Some(OpCode::Create) => MultiResult::Create {
                path: path(reader)?,
            },
            Some(OpCode::Create2) => MultiResult::Create2 {
                path: path(reader)?,
                stat: Stat::decode(reader)?,
            },
            Some(OpCode::Delete) => MultiResult::Delete,
            Some(OpCode::SetData) => MultiResult::SetData {
                stat: Stat::decode(reader)?,
            },
            Some(OpCode::Check) => MultiResult::Check,
            Some(OpCode::GetData) => MultiResult::GetData {
                data: reader.buffer()?,
                stat: Stat::decode(reader)?,
            },
            Some(OpCode::GetChildren) => MultiResult::GetChildren {
                names: reader.ustrings()?.unwrap_or_default(),
            },
            _ => return Err(DecodeError::MultiOp { op: header.op }),
        });
    }
}

fn path(reader: &mut Reader<'_>) -> Result<Ustring, DecodeError> {
    reader.ustring()?.ok_or(DecodeError::Null { field: "path" })
}
