//! TLS for clients: certificates and keys from `files`, the `stream` of a connection, and the `subject`
//! of a client's certificate.
//!
//! Source: `docs/zookeeper-protocol.md` section 9.12.

mod files;
pub mod stream;
mod subject;

pub use self::files::TlsError;
pub(crate) use self::{files::acceptor, stream::TlsStream};
