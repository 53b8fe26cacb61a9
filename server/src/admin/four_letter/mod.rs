//! Four-letter words: questions an administrator types into a fresh connection.
//!
//! Source: `docs/zookeeper-protocol.md` section 18; the original's `FourLetterCommands` and the
//! classes beside it.

mod connection_words;
mod java_text;
mod process_words;
mod rows;
mod server_words;
mod session_words;
mod watch_words;
pub(crate) mod words;
