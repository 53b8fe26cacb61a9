//! A cache with many readers and two writers. Readers read at the same time and never see half a
//! refresh, and a writer turns into a reader before the other one writes.
//!
//! ```sh
//! cargo run -p minikeeper-recipes --example shared_cache
//! ```

#![allow(clippy::print_stdout, reason = "an example prints what happens")]

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::SeqCst},
};

use minikeeper_client::Client;
use minikeeper_recipes::InterProcessReadWriteLock;
use tokio::{sync::Barrier, task::yield_now};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const READERS: usize = 6;
const READS: u32 = 20;
const WRITERS: u32 = 2;
const REFRESHES: u32 = 10;

/// Two values that belong together, and are written one after the other.
#[derive(Default)]
struct Cache {
    names: AtomicU32,
    prices: AtomicU32,
    readers: AtomicU32,
    readers_max: AtomicU32,
}

impl Cache {
    /// Reads both values; returns their version.
    async fn read(&self) -> u32 {
        let readers = self.readers.fetch_add(1, SeqCst) + 1;
        self.readers_max.fetch_max(readers, SeqCst);
        let names = self.names.load(SeqCst);
        yield_now().await;
        let prices = self.prices.load(SeqCst);
        assert_eq!(names, prices, "half a refresh was read");
        self.readers.fetch_sub(1, SeqCst);
        names
    }

    /// Writes both values; returns their version.
    async fn refresh(&self) -> u32 {
        let version = self.names.load(SeqCst) + 1;
        self.names.store(version, SeqCst);
        yield_now().await;
        self.prices.store(version, SeqCst);
        version
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let server = minikeeper::Server::builder().start().await?;
    let cache = Arc::new(Cache::default());
    let all_in = Arc::new(Barrier::new(READERS + 1));
    let mut tasks = Vec::new();
    for _ in 0..READERS {
        let lock = lock(&server.connect_string()).await?;
        tasks.push(tokio::spawn(read(lock, cache.clone(), all_in.clone())));
    }
    // A writer that queued among the readers would keep those behind it waiting.
    all_in.wait().await;
    for _ in 0..WRITERS {
        let lock = lock(&server.connect_string()).await?;
        tasks.push(tokio::spawn(write(lock, cache.clone())));
    }
    for task in tasks {
        task.await??;
    }
    let versions = cache.names.load(SeqCst);
    println!("{versions} refreshes, and no reader saw half a refresh");
    assert_eq!(versions, WRITERS * REFRESHES, "a refresh was lost");
    println!(
        "up to {} readers at the same time",
        cache.readers_max.load(SeqCst)
    );
    Ok(())
}

/// Returns a lock object with its own client: for the lock, each is a separate process.
async fn lock(address: &str) -> Result<InterProcessReadWriteLock, Failure> {
    let client = Client::connect(address).await?;
    Ok(InterProcessReadWriteLock::new(client, "/locks/cache")?)
}

async fn read(
    lock: InterProcessReadWriteLock,
    cache: Arc<Cache>,
    all_in: Arc<Barrier>,
) -> Result<(), Failure> {
    let mut newest = 0;
    for number in 0..READS {
        let guard = lock.acquire_read().await?;
        if number == 0 {
            // Wait until all readers hold the lock at the same time.
            all_in.wait().await;
        }
        let version = cache.read().await;
        assert!(version >= newest, "{version} was read after {newest}");
        newest = version;
        guard.release().await?;
    }
    Ok(())
}

async fn write(lock: InterProcessReadWriteLock, cache: Arc<Cache>) -> Result<(), Failure> {
    for _ in 0..REFRESHES {
        let guard = lock.acquire_write().await?;
        let written = cache.refresh().await;
        // Waiting readers read now; the other writer waits until this reader releases.
        let guard = guard.downgrade().await?;
        let version = cache.read().await;
        assert_eq!(version, written, "another writer refreshed in between");
        guard.release().await?;
    }
    Ok(())
}
