//! Four-letter words, which administrators send over a new connection.
//!
//! [`words`] finds a word, and [`state::words`](crate::state::words) admits and answers it. Their
//! functions are in `server_words` and `client_words`; `java_text` prints values as Java does.
//!
//! Source: `docs/zookeeper-protocol.md` section 18; ZooKeeper's `FourLetterCommands` and the classes
//! beside it.

pub(crate) mod client_words;
pub(crate) mod java_text;
pub(crate) mod server_words;
pub(crate) mod words;
