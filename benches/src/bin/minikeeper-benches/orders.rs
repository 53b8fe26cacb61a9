//! `orders`: how many orders of requests a sweep tries in a second.

use std::{sync::Arc, time::Duration};

use minikeeper::{Server, Sweep};
use minikeeper_benches::Error;
use minikeeper_client::{Client, Connecting};
use minikeeper_recipes::InterProcessMutex;

/// Sweeps the orders of contenders for a mutex in the process.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many contenders there are
    #[arg(long, default_value_t = 3)]
    contenders: u64,
    /// On how many threads
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// For how many seconds
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Try equivalent orders, too
    #[arg(long)]
    all: bool,
}

async fn contend(server: Arc<Server>, seed: u64) -> Client {
    let transport = move |_: &str| -> Connecting {
        let (reader, writer) = tokio::io::split(server.local());
        Box::pin(async move { Ok((Box::new(reader) as _, Box::new(writer) as _)) })
    };
    let builder = Client::builder("in-process").expect("a host");
    let client = builder.transport(transport).seed(seed).connect().await;
    let client = client.expect("the server listens");
    let mutex = InterProcessMutex::new(client.clone(), "/lock").expect("a path");
    let guard = mutex.acquire().await.expect("nothing fails");
    guard.release().await.expect("nothing fails");
    client
}

pub(crate) fn run(args: &Args) -> Result<bool, Error> {
    let contenders = args.contenders;
    let test = move |server: Arc<Server>| async move {
        let contend = |seed| tokio::spawn(contend(Arc::clone(&server), seed));
        let contenders: Vec<_> = (0..contenders).map(contend).collect();
        // A client that is dropped closes its session, which is a request, too.
        let mut clients = Vec::new();
        for contender in contenders {
            clients.push(contender.await.expect("it does not panic"));
        }
    };
    let mut sweep = Sweep::new(test)
        .orders()
        .time(Duration::from_secs(args.seconds))
        .jobs(args.jobs);
    if args.all {
        sweep = sweep.all();
    }
    let report = sweep.run();
    println!("{}", report.summary());
    let seconds = report.elapsed.as_secs_f64();
    println!("{:.0} orders a second", report.runs as f64 / seconds);
    Ok(true)
}
