//! The server carries out a create, and its reply is lost with the connection. A naive client
//! retries and leaves an orphan, for which all contenders then wait. The mutex finds its znode
//! again.
//!
//! ```sh
//! cargo run -p minikeeper-recipes --example lost_reply
//! ```

#![allow(clippy::print_stdout, reason = "an example prints what happens")]

use minikeeper::{Fault, OpCode, Server};
use minikeeper_client::{Client, CreateMode};
use minikeeper_recipes::InterProcessMutex;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let server = Server::builder().start().await?;
    naive(&server).await?;
    protected(&server).await
}

/// Returns the fault: the first create below this path is carried out, and its reply is lost.
fn lose_first_create(path: &str) -> Fault {
    let below = format!("{path}/*");
    Fault::lose_reply().on(OpCode::Create).at(below).once()
}

/// A hand-written queue: create, and if that fails, create again.
async fn naive(server: &Server) -> Result<(), Failure> {
    let client = Client::connect(&server.connect_string()).await?;
    client.create("/naive", b"", CreateMode::Persistent).await?;
    let lost = server.inject(lose_first_create("/naive"))?;

    let join = || client.create("/naive/n-", b"", CreateMode::EphemeralSequential);
    let Err(error) = join().await else {
        return Err("the reply was not lost".into());
    };
    println!("the naive client gets: {error}");
    let joined = join().await?;
    println!("it tries again and is {}", joined.path);
    assert_eq!(lost.hits(), 1);

    let queue = server.children("/naive").unwrap_or_default();
    println!("in the queue: {queue:?}; the first is an orphan that lives as long as the session");
    assert_eq!(queue.len(), 2);
    Ok(())
}

/// The same with a lock that marks its znode, and looks for it when the reply is lost.
async fn protected(server: &Server) -> Result<(), Failure> {
    let client = Client::connect(&server.connect_string()).await?;
    let lost = server.inject(lose_first_create("/protected"))?;

    let lock = InterProcessMutex::new(client, "/protected")?;
    let guard = lock.acquire().await?;
    assert_eq!(lost.hits(), 1);
    let queue = server.children("/protected").unwrap_or_default();
    println!("the mutex lost a reply too, and holds {}", guard.path());
    println!("in the queue: {queue:?}");
    assert_eq!(queue.len(), 1);

    guard.release().await?;
    assert_eq!(server.children("/protected"), Some(Vec::new()));
    println!("released: nothing is left");
    Ok(())
}
