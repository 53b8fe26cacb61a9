//! Four-letter words: questions an administrator types into a fresh connection.
//!
//! Source: `docs/zookeeper-protocol.md` section 18; the original's `FourLetterCommands` and the
//! classes beside it.

mod client_words;
mod java_text;
mod server_words;
pub(crate) mod words;
