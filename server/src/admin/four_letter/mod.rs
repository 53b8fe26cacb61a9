//! Four-letter words, which administrators send over a new connection.
//!
//! [`words`] finds a word, and [`state::words`](minikeeper_core::state::words) admits and answers it. Their
//! functions are in `server_words` and `client_words`; `java_text` prints values as Java does.
//!
//! Source: `docs/zookeeper-protocol.md` section 18; ZooKeeper's `FourLetterCommands` and the classes
//! beside it.

pub(crate) mod client_words;
pub(crate) mod java_text;
pub(crate) mod server_words;
pub(crate) mod words;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use crate::Server;

    /// A word about a large state that waited for a thread was closed without an answer.
    #[tokio::test]
    async fn word_that_waits_for_a_thread_is_no_handshake() {
        let server = Server::builder().start().await.unwrap();
        let client = minikeeper_client::Client::connect(&server.connect_string())
            .await
            .unwrap();
        let mut watches = Vec::new();
        for number in 0..2_001 {
            let path = format!("/{number}");
            watches.push(client.exists_and_watch(&path).await.unwrap());
        }
        let threads = &server.shared.server.word_threads;
        let all = u32::try_from(threads.available_permits()).unwrap();
        let permits = threads.acquire_many(all).await.unwrap();
        let mut stream = tokio::net::TcpStream::connect(server.addr()).await.unwrap();
        stream.write_all(b"srvr").await.unwrap();
        let has_asked = || {
            let turns = &server.shared.turns;
            turns.read(|locked| {
                locked
                    .members
                    .iter()
                    .any(|(_, member)| member.stats.is_word)
            })
        };
        while !has_asked() {
            tokio::task::yield_now().await;
        }
        server.advance(server.shared.config.handshake_timeout + Duration::from_secs(1));
        drop(permits);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("Zookeeper version"), "{answer:?}");
        client.close().await;
    }
}
