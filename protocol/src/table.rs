//! The macro behind the table of operations in `request.rs`.
//!
//! `requests` generates [`OpCode`](crate::OpCode), [`Request`](crate::Request), their encodings and
//! the visitors over paths from one row per operation. `field` defines each kind of field: its type
//! in Rust, its encoding, and whether it contains paths.

/// One kind of field: its type, its decoding and encoding, and the paths in it.
macro_rules! field {
    (type path) => { Option<Ustring> };
    (type paths) => { Vec<Ustring> };
    (type ustring) => { Option<Ustring> };
    (type buffer) => { Option<Bytes> };
    (type acl) => { AclList };
    (type bool) => { bool };
    (type int) => { i32 };
    (type long) => { i64 };
    (type zxid) => { Zxid };

    (kind path) => { FieldKind::Path };
    (kind paths) => { FieldKind::Paths };
    (kind ustring) => { FieldKind::Ustring };
    (kind buffer) => { FieldKind::Buffer };
    (kind acl) => { FieldKind::Acl };
    (kind bool) => { FieldKind::Bool };
    (kind int) => { FieldKind::Int };
    (kind long) => { FieldKind::Long };
    (kind zxid) => { FieldKind::Zxid };

    (decode path $name:ident $reader:ident) => { $reader.ustring()? };
    (decode paths $name:ident $reader:ident) => {
        $reader.ustrings()?.ok_or(DecodeError::Null { field: stringify!($name) })?
    };
    (decode ustring $name:ident $reader:ident) => { $reader.ustring()? };
    (decode buffer $name:ident $reader:ident) => { $reader.buffer()? };
    (decode acl $name:ident $reader:ident) => { AclList::decode($reader)? };
    (decode bool $name:ident $reader:ident) => { $reader.bool()? };
    (decode int $name:ident $reader:ident) => { $reader.int()? };
    (decode long $name:ident $reader:ident) => { $reader.long()? };
    (decode zxid $name:ident $reader:ident) => { Zxid($reader.long()?) };

    (encode path $value:ident $out:ident) => { jute::put_ustring($out, $value.as_ref()) };
    (encode paths $value:ident $out:ident) => { jute::put_ustrings($out, Some($value)) };
    (encode ustring $value:ident $out:ident) => { jute::put_ustring($out, $value.as_ref()) };
    (encode buffer $value:ident $out:ident) => { jute::put_buffer($out, $value.as_deref()) };
    (encode acl $value:ident $out:ident) => { $value.encode($out) };
    (encode bool $value:ident $out:ident) => { jute::put_bool($out, *$value) };
    (encode int $value:ident $out:ident) => { jute::put_int($out, *$value) };
    (encode long $value:ident $out:ident) => { jute::put_long($out, *$value) };
    (encode zxid $value:ident $out:ident) => { jute::put_long($out, $value.0) };

    (any path $value:ident $is_match:ident) => { $value.iter().any(&mut $is_match) };
    (any paths $value:ident $is_match:ident) => { $value.iter().any(&mut $is_match) };
    (any $kind:ident $value:ident $is_match:ident) => {{ let _ = $value; false }};

    (all path $value:ident $change:ident) => { $value.iter_mut().all(&mut $change) };
    (all paths $value:ident $change:ident) => { $value.iter_mut().all(&mut $change) };
    (all $kind:ident $value:ident $change:ident) => {{ let _ = $value; true }};
}

/// Declares the operations. `families` are those whose requests have their own modules
/// (`create.rs`, `multi.rs`) and are handled below by hand; `records` are all others.
macro_rules! requests {
    (
        families {
            $($family:ident = $family_code:literal, $family_name:literal, $family_short:literal
                => $family_reply:ident;)*
        }
        records {
            $(
                #[doc = $doc:literal]
                $(#[doc = $more_doc:literal])*
                $op:ident = $code:literal, $name:literal, $short:literal => $reply:ident
                $({ $($field:ident: $kind:ident),* })?;
            )*
        }
    ) => {
        /// An operation of the protocol.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum OpCode {
            $(#[doc = concat!("`", $family_name, "`, code ", $family_code, ".")] $family = $family_code,)*
            $(#[doc = concat!("`", $name, "`, code ", $code, ".")] $op = $code,)*
        }

        impl OpCode {
            /// Every operation.
            pub const ALL: &'static [Self] = &[$(Self::$family,)* $(Self::$op),*];

            /// Returns the number on the wire.
            #[must_use]
            pub const fn code(self) -> i32 {
                self as i32
            }

            /// Returns the name of the operation, such as `getData`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$family => $family_name,)*
                    $(Self::$op => $name,)*
                }
            }

            /// Returns the abbreviation that ZooKeeper's statistics print, such as `GETD`; `NA` for
            /// operations that they do not count.
            #[must_use]
            pub const fn short_name(self) -> &'static str {
                match self {
                    $(Self::$family => $family_short,)*
                    $(Self::$op => $short,)*
                }
            }

            /// Returns the operation with this name, as in [`OpCode::name`].
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|op| op.name() == name)
            }

            /// Returns the operation with this number.
            #[must_use]
            // Inlining saves one percent of a getData, counted; it has several callers.
            #[inline(always)]
            pub const fn from_code(code: i32) -> Option<Self> {
                match code {
                    $($family_code => Some(Self::$family),)*
                    $($code => Some(Self::$op),)*
                    _ => None,
                }
            }

            /// Returns the record of a successful reply; [`ReplyKind::None`] if there is no reply.
            #[must_use]
            pub const fn reply(self) -> ReplyKind {
                match self {
                    $(Self::$family => ReplyKind::$family_reply,)*
                    $(Self::$op => ReplyKind::$reply,)*
                }
            }

            /// Returns the names and kinds of the fields of a request, in the order of the wire.
            /// `None` for the creates and multis, whose records are not lists of fields.
            #[must_use]
            pub const fn fields(self) -> Option<&'static [(&'static str, FieldKind)]> {
                match self {
                    $(Self::$family => None,)*
                    $(Self::$op => Some(&[
                        $($((stringify!($field), field!(kind $kind))),*)?
                    ]),)*
                }
            }
        }

        /// A client's request; one variant per operation, or per family with one body.
        ///
        /// Paths are optional because strings on the wire may be null, and each operation replies
        /// to null in its own way (`docs/zookeeper-protocol.md` section 7.5).
        #[derive(Clone, PartialEq, Eq, Debug)]
        #[expect(
            missing_docs,
            reason = "the fields are the wire's own: path, data, version, watch"
        )]
        pub enum Request {
            /// create, create2, createContainer, createTTL.
            Create(Create),
            $(
                #[doc = $doc]
                $(#[doc = $more_doc])*
                $op $({ $($field: field!(type $kind)),* })?,
            )*
            /// multi: all or nothing.
            Multi(Vec<MultiOp>),
            /// multiRead: several reads, each with its own outcome.
            MultiRead(Vec<MultiReadOp>),
            /// multiRead with operations that change something: ZooKeeper decodes it, but refuses
            /// it.
            MultiReadOfChanges(Vec<MultiOp>),
        }

        impl Request {
            /// Returns the operation code.
            #[must_use]
            pub const fn op(&self) -> OpCode {
                match self {
                    Self::Create(create) => create.op.op(),
                    Self::Multi(_) => OpCode::Multi,
                    Self::MultiRead(_) | Self::MultiReadOfChanges(_) => OpCode::MultiRead,
                    $(Self::$op { .. } => OpCode::$op,)*
                }
            }

            /// Decodes the body of an operation. Ignores trailing bytes, as ZooKeeper does.
            ///
            /// # Errors
            /// When the body is malformed. The frame was complete, so the connection can continue.
            pub fn decode(op: OpCode, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                Ok(match op {
                    OpCode::Create => Self::Create(Create::decode(CreateOp::Create, reader)?),
                    OpCode::Create2 => Self::Create(Create::decode(CreateOp::Create2, reader)?),
                    OpCode::CreateContainer => {
                        Self::Create(Create::decode(CreateOp::Container, reader)?)
                    }
                    OpCode::CreateTtl => Self::Create(Create::decode(CreateOp::Ttl, reader)?),
                    OpCode::Multi => Self::Multi(multi::decode_ops(reader)?),
                    OpCode::MultiRead => match multi::decode_read_or_changes(reader)? {
                        Ok(ops) => Self::MultiRead(ops),
                        Err(changes) => Self::MultiReadOfChanges(changes),
                    },
                    $(OpCode::$op => Self::$op
                        $({ $($field: field!(decode $kind $field reader)),* })?,)*
                })
            }

            fn encode_body(&self, out: &mut Vec<u8>) {
                match self {
                    Self::Create(create) => create.encode(out),
                    Self::Multi(ops) | Self::MultiReadOfChanges(ops) => multi::encode_ops(ops, out),
                    Self::MultiRead(ops) => multi::encode_read_ops(ops, out),
                    $(Self::$op $({ $($field),* })? => {
                        $($(field!(encode $kind $field out);)*)?
                    })*
                }
            }

            /// Returns whether any path of the request matches. Visits the paths in the order of
            /// the fields, up to the first match.
            pub fn any_path<'a>(
                &'a self,
                mut is_match: impl FnMut(&'a Ustring) -> bool,
            ) -> bool {
                match self {
                    Self::Create(create) => create.path.iter().any(is_match),
                    Self::Multi(ops) | Self::MultiReadOfChanges(ops) => {
                        ops.iter().filter_map(MultiOp::path).any(is_match)
                    }
                    Self::MultiRead(ops) => ops.iter().filter_map(MultiReadOp::path).any(is_match),
                    $(Self::$op $({ $($field),* })? => {
                        false $($(|| field!(any $kind $field is_match))*)?
                    })*
                }
            }

            /// Changes the paths of the request, in the order of the fields, up to the first for
            /// which `change` returns false. Returns true if there is no such path.
            pub(crate) fn change_paths(
                &mut self,
                mut change: impl FnMut(&mut Ustring) -> bool,
            ) -> bool {
                match self {
                    Self::Create(create) => create.path.iter_mut().all(change),
                    Self::Multi(ops) | Self::MultiReadOfChanges(ops) => {
                        ops.iter_mut().filter_map(MultiOp::path_mut).all(change)
                    }
                    Self::MultiRead(ops) => {
                        ops.iter_mut().filter_map(MultiReadOp::path_mut).all(change)
                    }
                    $(Self::$op $({ $($field),* })? => {
                        true $($(&& field!(all $kind $field change))*)?
                    })*
                }
            }
        }
    };
}
