//! Five windows sell 250 tickets, each once: a mutex around "read how many are left, sell one".
//!
//! ```sh
//! cargo run -p minikeeper-recipes --example ticket_office
//! ```

#![allow(clippy::print_stdout, reason = "an example prints what happens")]

use std::{collections::BTreeSet, time::Duration};

use minikeeper_client::{Client, CreateMode};
use minikeeper_recipes::InterProcessMutex;

const TICKETS: u32 = 250;
const WINDOWS: u32 = 5;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let server = minikeeper::Server::builder().start().await?;
    let address = server.connect_string();
    let office = Client::connect(&address).await?;
    office
        .create(
            "/left",
            TICKETS.to_string().as_bytes(),
            CreateMode::Persistent,
        )
        .await?;
    let mut windows = Vec::new();
    for number in 0..WINDOWS {
        // For the lock, each window is a separate process.
        let client = Client::connect(&address).await?;
        windows.push(tokio::spawn(sell(client, number)));
    }
    let mut sold = BTreeSet::new();
    for window in windows {
        let (number, tickets) = window.await??;
        println!("window {number} sold {} tickets", tickets.len());
        for ticket in tickets {
            assert!(sold.insert(ticket), "ticket {ticket} was sold twice");
        }
    }
    println!("{} tickets sold, none of them twice", sold.len());
    Ok(())
}

/// Sells until nothing is left.
async fn sell(
    client: Client,
    number: u32,
) -> Result<(u32, Vec<u32>), Box<dyn std::error::Error + Send + Sync>> {
    let lock = InterProcessMutex::new(client.clone(), "/locks/office")?;
    let mut tickets = Vec::new();
    loop {
        let guard = lock.acquire().within(Duration::from_secs(10)).await?;
        let data = client.get_data("/left").await?;
        let left: u32 = std::str::from_utf8(data.as_bytes())?.parse()?;
        if left > 0 {
            client
                .set_data("/left", (left - 1).to_string().as_bytes(), None)
                .await?;
            tickets.push(left);
        }
        guard.release().await?;
        if left == 0 {
            return Ok((number, tickets));
        }
    }
}
