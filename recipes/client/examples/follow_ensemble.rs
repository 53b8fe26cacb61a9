//! Works on a znode while the members of an ensemble change, and prints what it notices.
//!
//! ```sh
//! cargo run -p minikeeper-client --example follow_ensemble -- zk1:2181
//! ```
//!
//! Commands on standard input: `join server.4=zk4:2888:3888;2181`, `leave 3`, `quit`. Changing an
//! ensemble needs `reconfigEnabled=true` and the right to change `/zookeeper/config`.

use std::{error::Error, io::BufRead as _, time::Duration};

use minikeeper_client::{
    Client, ConnectionState, CreateMode, EnsembleTracker, Error as ClientError, Reconfiguration,
};
use tokio::{
    sync::mpsc,
    time::{interval, sleep, timeout},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let servers = std::env::args().nth(1).ok_or("name a server: host:port")?;
    let client = Client::builder(&servers)?
        .session_timeout(Duration::from_secs(6))
        .connect()
        .await?;
    let mut states = client.states();
    let mut commands = commands();
    let work = client
        .create("/work-", b"", CreateMode::EphemeralSequential)
        .await?
        .path;
    print(&format!("session {:?}", client.session_id()));

    let mut known = client.servers();
    // From here on the client may move to another server, which cuts off the requests in flight.
    let tracker = EnsembleTracker::start(&client)?;
    let (mut changes, mut unsure) = (0, 0);
    let mut ticks = interval(Duration::from_millis(20));
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                let set = client.with_timeout(Duration::from_secs(5)).set_data(&work, b"x", None);
                match set.await {
                    Ok(_) => changes += 1,
                    Err(error) if error.is_retryable() => unsure += 1,
                    Err(error) => return Err(error.into()),
                }
                let servers = client.servers();
                if servers != known {
                    print(&format!("servers {servers}"));
                    known = servers;
                }
            }
            state = states.next() => match state {
                Some(ConnectionState::Lost { reason, .. }) => return Err(reason.to_string().into()),
                Some(state) => print(&format!("state {state:?}")),
                None => break,
            },
            command = commands.recv() => {
                let command = command.unwrap_or_else(|| "quit".to_owned());
                let change = match command.split_once(' ') {
                    Some(("join", members)) => Reconfiguration::new().joining(members),
                    Some(("leave", members)) => Reconfiguration::new().leaving(members),
                    _ => break,
                };
                match timeout(Duration::from_secs(30), reconfigure(&client, &change)).await? {
                    Ok(()) => print("reconfigured"),
                    Err(error) => print(&format!("not reconfigured: {error}")),
                }
            }
        }
    }
    print(&format!(
        "{changes} changes, {unsure} unsure, session {:?}, error {:?}",
        client.session_id(),
        tracker.last_error()
    ));
    client.close().await;
    Ok(())
}

/// Changes the members, and repeats that after an unknown outcome, which is harmless: a server that
/// leaves may close the connection before it replies.
async fn reconfigure(client: &Client, change: &Reconfiguration) -> Result<(), ClientError> {
    loop {
        match client.reconfigure(change.clone()).await {
            Err(error) if error.is_retryable() => sleep(Duration::from_millis(200)).await,
            done => return done.map(drop),
        }
    }
}

/// Returns the lines of standard input.
fn commands() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

#[expect(clippy::print_stdout, reason = "this is what the program is for")]
fn print(line: &str) {
    println!("{line}");
}
