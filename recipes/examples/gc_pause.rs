//! A holder is paused until its session is over, and a second contender gets the lock. Then the
//! first wakes up and continues to write. Without a fencing token that damages the data; with one
//! it does not.
//!
//! ```sh
//! cargo run -p minikeeper-recipes --example gc_pause
//! ```

#![allow(clippy::print_stdout, reason = "an example prints what happens")]

use minikeeper_client::Client;
use minikeeper_recipes::{FencingToken, InterProcessMutex, Status};

/// A resource outside ZooKeeper: a file, a row, a device.
#[derive(Default)]
struct Register {
    value: &'static str,
}

impl Register {
    const fn write(&mut self, value: &'static str) {
        self.value = value;
    }
}

/// A resource that remembers the largest token and refuses smaller ones.
#[derive(Default)]
struct FencedRegister {
    value: &'static str,
    largest: Option<FencingToken>,
}

impl FencedRegister {
    /// Writes the value; returns whether the token was accepted. The same token may write again: it
    /// belongs to the same grant.
    fn write(&mut self, value: &'static str, token: FencingToken) -> bool {
        if self.largest.is_some_and(|largest| token < largest) {
            return false;
        }
        self.largest = Some(token);
        self.value = value;
        true
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = minikeeper::Server::builder().start().await?;
    let address = server.connect_string();
    let (mut plain, mut fenced) = (Register::default(), FencedRegister::default());

    let first = Client::connect(&address).await?;
    let session = first
        .session_id()
        .ok_or("a connected client has a session")?;
    let paused = InterProcessMutex::new(first, "/locks/register")?
        .acquire()
        .await?;
    println!(
        "the first has the lock, with token {}, and is paused",
        paused.token()
    );

    // The server sees this: the first sends nothing for its whole session timeout.
    server.expire(session)?;
    let second = Client::connect(&address).await?;
    let guard = InterProcessMutex::new(second, "/locks/register")?
        .acquire()
        .await?;
    println!(
        "the second has the lock, with token {}, and writes",
        guard.token()
    );
    plain.write("second");
    fenced.write("second", guard.token());

    println!("the first wakes up in the middle of its work, and writes");
    plain.write("first");
    let is_written = fenced.write("first", paused.token());
    println!(
        "  without a token: the register contains {:?}, the second's write is lost",
        plain.value
    );
    println!(
        "  with a token: written {is_written}, the register contains {:?}",
        fenced.value
    );
    assert!(!is_written && fenced.value == "second");

    let loss = paused.lost().await;
    println!("the first's guard reports: {:?}", Status::Lost(loss));
    Ok(())
}
