//! Eight workers, of which at most three work at a time. Then an operator raises the limit to five
//! while they work. The first jobs last until five are at work, the later ones two milliseconds.
//!
//! ```sh
//! cargo run -p minikeeper-recipes --example limited_workers
//! ```

#![allow(clippy::print_stdout, reason = "an example prints what happens")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

use minikeeper_client::Client;
use minikeeper_recipes::{InterProcessSemaphoreV2, SharedCount};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const WORKERS: u32 = 8;
const PATIENCE: Duration = Duration::from_secs(10);

/// The state that the workers share, besides the semaphore.
struct Site {
    at_work: watch::Sender<u32>,
    /// The number of workers allowed at the moment.
    allowed: AtomicU32,
    /// Whether the first jobs may end.
    jobs_end: watch::Sender<bool>,
    is_over: AtomicBool,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let server = minikeeper::Server::builder().start().await?;
    let office = Client::connect(&server.connect_string()).await?;
    let limit = SharedCount::start(office, "/limits/workers", 3).await?;
    let site = Arc::new(Site {
        at_work: watch::Sender::new(0),
        allowed: AtomicU32::new(3),
        jobs_end: watch::Sender::new(false),
        is_over: AtomicBool::new(false),
    });
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        // For the semaphore, each worker is a separate process.
        let client = Client::connect(&server.connect_string()).await?;
        workers.push(tokio::spawn(work(client, Arc::clone(&site))));
    }

    let mut at_work = site.at_work.subscribe();
    timeout(PATIENCE, at_work.wait_for(|count| *count == 3)).await??;
    println!("3 of {WORKERS} are at work, as many as allowed");

    site.allowed.store(5, SeqCst);
    limit.set(5).await?;
    println!("the limit is raised to 5 while they work");
    timeout(PATIENCE, at_work.wait_for(|count| *count == 5)).await??;
    println!("5 are at work");
    site.jobs_end.send_replace(true);
    sleep(Duration::from_millis(100)).await;

    site.is_over.store(true, SeqCst);
    let mut jobs = 0;
    for (number, worker) in workers.into_iter().enumerate() {
        let (done, peak) = worker.await??;
        println!("worker {number} did {done} jobs, with at most {peak} at a time");
        jobs += done;
    }
    println!("{jobs} jobs, never more at a time than allowed");
    Ok(())
}

/// Works until the end. Returns the number of jobs done, and the largest number of workers at the
/// same time.
async fn work(client: Client, site: Arc<Site>) -> Result<(u32, u32), Failure> {
    let limit = SharedCount::start(client.clone(), "/limits/workers", 3).await?;
    let semaphore = InterProcessSemaphoreV2::new(client, "/semaphores/workers", limit)?;
    let mut jobs_end = site.jobs_end.subscribe();
    let (mut done, mut peak) = (0, 0);
    while !site.is_over.load(SeqCst) {
        let lease = semaphore.acquire().await?;
        let mut now = 0;
        site.at_work.send_modify(|count| {
            *count += 1;
            now = *count;
        });
        let allowed = site.allowed.load(SeqCst);
        assert!(now <= allowed, "{now} at work, {allowed} are allowed");
        peak = peak.max(now);
        jobs_end.wait_for(|may_end| *may_end).await?;
        sleep(Duration::from_millis(2)).await;
        done += 1;
        site.at_work.send_modify(|count| *count -= 1);
        lease.release().await?;
    }
    Ok((done, peak))
}
