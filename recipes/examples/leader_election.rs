//! Three candidates, and three ways in which a term ends: the leader's session expires, the leader
//! is killed, the leader leaves. Each time the next candidate leads, with a larger token than all
//! before it.
//!
//! ```sh
//! cargo run -p minikeeper-recipes --example leader_election
//! ```

#![allow(clippy::print_stdout, reason = "an example prints what happens")]

use std::time::Duration;

use minikeeper_client::Client;
use minikeeper_recipes::{FencingToken, LeaderLatch, Leadership};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

type Failure = Box<dyn std::error::Error>;

/// A candidate with its own client, like a separate process.
struct Candidate {
    name: &'static str,
    client: Client,
    /// The client's task.
    driver: JoinHandle<()>,
    latch: LeaderLatch,
}

/// A change of leadership, with the number of its candidate.
type News = (usize, Leadership);

impl Candidate {
    async fn start(
        address: &str,
        name: &'static str,
        number: usize,
        news: mpsc::Sender<News>,
    ) -> Result<Self, Failure> {
        let builder = Client::builder(address)?.session_timeout(Duration::from_secs(1));
        let (client, driver) = builder.build();
        let driver = tokio::spawn(driver.run());
        client.connected(Duration::from_secs(5)).await?;
        let latch = LeaderLatch::start(client.clone(), "/leaders/billing", name)?;
        let mut changes = latch.changes();
        tokio::spawn(async move {
            while let Some(change) = changes.next().await {
                if news.send((number, change)).await.is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            name,
            client,
            driver,
            latch,
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let server = minikeeper::Server::builder()
        .tick_time(Duration::from_millis(50))
        .start()
        .await?;
    let (sender, mut news) = mpsc::channel(16);
    let mut candidates = Vec::new();
    for (number, name) in ["anna", "boris", "clara"].into_iter().enumerate() {
        let address = server.connect_string();
        let candidate = Candidate::start(&address, name, number, sender.clone()).await?;
        candidates.push(candidate);
    }

    let mut terms: Vec<(usize, FencingToken)> = Vec::new();
    // A leader that loses its session knows that before the next candidate leads.
    let mut knows: Option<usize> = None;
    loop {
        let next = timeout(Duration::from_secs(10), news.recv()).await?;
        let (number, change) =
            next.ok_or("the candidates report changes until they are dropped")?;
        let candidate = &candidates[number];
        let Leadership::Leader { token } = change else {
            println!("{} no longer leads", candidate.name);
            continue;
        };
        println!("{} leads with token {token}", candidate.name);
        assert!(
            terms.iter().all(|(_, earlier)| *earlier < token),
            "token {token} is not larger than those before: {terms:?}"
        );
        if let Some(before) = knows.take() {
            let before = &candidates[before];
            assert!(!before.latch.has_leadership(), "{} leads too", before.name);
        }
        terms.push((number, token));
        match terms.len() {
            1 => {
                let session = candidate.client.session_id();
                server.expire(session.ok_or("a leader has a session")?)?;
                println!("  its session expires; it will queue again in a new one");
            }
            2 => {
                candidate.driver.abort();
                println!("  it is killed; its session will end after 1 s of silence");
                knows = Some(number);
            }
            3 => {
                println!("  it leaves");
                candidate.latch.close().await?;
                knows = Some(number);
            }
            _ => break,
        }
    }
    let leader = candidates[terms[3].0].latch.leader().await?;
    println!(
        "according to the server, {:?} leads",
        leader.map(|it| it.id)
    );
    println!("four terms, each with a larger token than the one before");
    Ok(())
}
