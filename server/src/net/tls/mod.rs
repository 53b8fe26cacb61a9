//! TLS for clients: what is read from files, the handshake, and who has shown a certificate.
//!
//! Source: `docs/zookeeper-protocol.md` section 9.12.

mod files;
mod stream;
mod subject;

pub use self::files::TlsError;
pub(crate) use self::{files::acceptor, stream::TlsStream};
