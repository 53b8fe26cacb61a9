//! A program without a runtime: four threads, each with a connection of its own, book seats one at a
//! time. Then the program is told to stop while a thread waits for the lock.
//!
//! ```sh
//! cargo run -p minikeeper-recipes --features blocking --example blocking
//! ```

#![allow(clippy::print_stdout, reason = "an example prints what happens")]

use std::{thread, time::Duration};

use minikeeper_client::{CreateMode, Error};
use minikeeper_recipes::{
    LockError,
    blocking::{Client, InterProcessMutex, Interrupt},
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const THREADS: usize = 4;
const BOOKINGS: usize = 5;
const PATIENCE: Duration = Duration::from_secs(10);
const LOCK: &str = "/locks/seats";

fn main() -> Result<(), Failure> {
    let server = minikeeper::blocking::Server::builder().start()?;
    let address = server.connect_string();
    let client = Client::connect(&address)?;
    client.create("/seats", b"100", CreateMode::Persistent)?;

    thread::scope(|scope| {
        let book = || scope.spawn(|| book(&address));
        let threads: Vec<_> = (0..THREADS).map(|_| book()).collect();
        for thread in threads {
            thread.join().expect("no thread panics")?;
        }
        Ok::<(), Failure>(())
    })?;
    let left = free(&client)?;
    println!("{THREADS} threads booked {BOOKINGS} seats each; {left} of 100 are free");
    assert_eq!(left, 100 - THREADS * BOOKINGS);

    let guard = InterProcessMutex::new(&client, LOCK)?.acquire()?;
    let interrupt = Interrupt::default();
    let waiter = InterProcessMutex::new(&client.with_interrupt(&interrupt), LOCK)?;
    let waiting = thread::spawn(move || waiter.acquire());
    server.until_contenders(LOCK, 2, PATIENCE)?;
    interrupt.trigger();
    match waiting.join().expect("no thread panics") {
        Err(LockError::Client(error @ Error::Interrupted { .. })) => println!("stopped: {error}"),
        other => return Err(format!("expected an interrupted wait, not {other:?}").into()),
    }
    guard.release()?;
    client.close()?;
    Ok(())
}

/// Books seats. The change carries the check that the lock is still held.
fn book(address: &str) -> Result<(), Failure> {
    let client = Client::connect(address)?;
    let seats = InterProcessMutex::new(&client, LOCK)?;
    for _ in 0..BOOKINGS {
        let guard = seats.acquire_timeout(PATIENCE)?;
        let left = (free(&client)? - 1).to_string();
        guard.multi(|multi| multi.set_data("/seats", left.as_bytes(), None))?;
        guard.release()?;
    }
    Ok(())
}

fn free(client: &Client) -> Result<usize, Failure> {
    let data = client.get_data("/seats")?;
    Ok(std::str::from_utf8(data.as_bytes())?.parse()?)
}
