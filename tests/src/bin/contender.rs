//! Contenders for locks, to stand in one queue with Curator's.
//!
//! Everybody who holds the lock reads a ledger, checks that the grant before was an earlier one,
//! and writes its own number. A ledger that has changed meanwhile, or a number that is not larger,
//! is a violation: two holders at once, or an order that is not the queue's. `Mixed.java` does the
//! same.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that reports"
)]

use std::{process::ExitCode, time::Duration};

use clap::{Parser, ValueEnum};
use minikeeper_client::{Client, CreateMode, Error, ErrorCode};
use minikeeper_recipes::{
    Guard, InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphoreMutex,
    InterProcessSemaphoreV2, LockError, LockOptions, Status,
};

/// Takes locks beside others, and checks that nobody else holds them.
#[derive(Parser)]
struct Args {
    /// Server.
    #[arg(long, value_name = "HOST:PORT,...")]
    connect: String,
    /// Kind of lock.
    #[arg(long, value_enum)]
    kind: Kind,
    /// Path of the lock. The ledger is at `<PATH>-ledger`.
    #[arg(long)]
    path: String,
    /// Contenders, each with a session of its own.
    #[arg(long, default_value_t = 4)]
    contenders: u32,
    /// How often each takes the lock.
    #[arg(long, default_value_t = 100)]
    rounds: u32,
    /// How long each holds it, in milliseconds.
    #[arg(long, default_value_t = 0)]
    hold_ms: u64,
    /// Every request as Curator makes it.
    #[arg(long)]
    exact: bool,
    /// Make the ledger, which must not be there, and end.
    #[arg(long)]
    make_ledger: bool,
    /// Begin when the others are ready: when `<PATH>-ready` is there.
    #[arg(long)]
    wait_ready: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Mutex,
    ReadWrite,
    SemaphoreMutex,
    /// With three leases.
    Semaphore,
}

/// How many of a semaphore's leases there are.
const LEASES: u32 = 3;

/// Longer than a whole run takes.
const PATIENCE: Duration = Duration::from_secs(180);

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args).await {
        Ok(Report {
            acquisitions,
            violations,
            losses,
            switches,
        }) => {
            println!(
                "contender: acquisitions={acquisitions} violations={violations} losses={losses} \
                 switches={switches}"
            );
            ExitCode::from(u8::from(violations > 0))
        }
        Err(error) => {
            eprintln!("contender: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Report {
    acquisitions: u32,
    violations: u32,
    /// Locks that were lost while they were held: no fault, if a server or session went.
    losses: u32,
    /// How often a grant to one program followed one to the other: whether they were in the queue
    /// at the same time.
    switches: u64,
}

async fn run(args: &Args) -> Result<Report, Box<dyn std::error::Error + Send + Sync>> {
    if args.make_ledger {
        let client = Client::connect(&args.connect).await?;
        let ledger = format!("{}-ledger", args.path);
        client
            .create(&ledger, b"0 0 - 0", CreateMode::Persistent)
            .await?;
        client.close().await;
        return Ok(Report {
            acquisitions: 0,
            violations: 0,
            losses: 0,
            switches: 0,
        });
    }
    if args.wait_ready {
        let client = Client::connect(&args.connect).await?;
        let (ready, created) = client
            .exists_and_watch(&format!("{}-ready", args.path))
            .await?;
        if ready.is_none() {
            tokio::time::timeout(PATIENCE, created).await?;
        }
        client.close().await;
    }
    let mut tasks = Vec::new();
    for number in 0..args.contenders {
        let builder = Client::builder(&args.connect)?;
        let client = builder
            .session_timeout(Duration::from_secs(4))
            .connect()
            .await?;
        let options = if args.exact {
            LockOptions::curator_exact()
        } else {
            LockOptions::default()
        };
        let (kind, path, rounds) = (args.kind, args.path.clone(), args.rounds);
        let hold = Duration::from_millis(args.hold_ms);
        tasks.push(tokio::spawn(async move {
            let contender = Contender {
                client,
                ledger: format!("{path}-ledger"),
                hold,
            };
            let seen = match kind {
                Kind::Mutex => contender.mutex(&path, options, rounds).await,
                Kind::ReadWrite => contender.read_write(&path, options, rounds, number).await,
                Kind::SemaphoreMutex => contender.semaphore_mutex(&path, options, rounds).await,
                Kind::Semaphore => contender.semaphore(&path, options, rounds).await,
            };
            contender.client.close().await;
            seen
        }));
    }
    let mut seen = Seen::default();
    for task in tasks {
        let one = tokio::time::timeout(PATIENCE, task).await???;
        seen.violations += one.violations;
        seen.losses += one.losses;
    }
    let client = Client::connect(&args.connect).await?;
    let ledger = client.get_data(&format!("{}-ledger", args.path)).await?;
    client.close().await;
    Ok(Report {
        acquisitions: args.contenders * args.rounds,
        violations: seen.violations,
        losses: seen.losses,
        switches: Entry::parse(ledger.as_bytes()).switches,
    })
}

struct Contender {
    client: Client,
    ledger: String,
    hold: Duration,
}

/// What one contender has seen.
#[derive(Default)]
struct Seen {
    violations: u32,
    /// Locks that were lost while they were held.
    losses: u32,
}

impl Contender {
    async fn mutex(
        &self,
        path: &str,
        options: LockOptions,
        rounds: u32,
    ) -> Result<Seen, LockError> {
        let lock = InterProcessMutex::with_options(self.client.clone(), path, options)?;
        let mut seen = Seen::default();
        for _ in 0..rounds {
            let guard = patiently(|| lock.acquire()).await?;
            self.write(&guard, &mut seen).await?;
            let _ = guard.release().await;
        }
        Ok(seen)
    }

    async fn semaphore_mutex(
        &self,
        path: &str,
        options: LockOptions,
        rounds: u32,
    ) -> Result<Seen, LockError> {
        let client = self.client.clone();
        let lock = InterProcessSemaphoreMutex::with_options(client, path, options)?;
        let mut seen = Seen::default();
        for _ in 0..rounds {
            let guard = patiently(|| lock.acquire()).await?;
            self.write(&guard, &mut seen).await?;
            let _ = guard.release().await;
        }
        Ok(seen)
    }

    /// Those inside mark themselves, and count the marks.
    async fn semaphore(
        &self,
        path: &str,
        options: LockOptions,
        rounds: u32,
    ) -> Result<Seen, LockError> {
        let client = self.client.clone();
        let semaphore = InterProcessSemaphoreV2::with_options(client, path, LEASES, options)?;
        let gauge = format!("{path}-ready");
        let mut seen = Seen::default();
        for _ in 0..rounds {
            let lease = patiently(|| semaphore.acquire()).await?;
            let mode = CreateMode::EphemeralSequential;
            let mark = self.client.create(&format!("{gauge}/"), b"", mode).await?;
            let inside = self.client.children(&gauge).await?.len();
            seen.violations += u32::from(inside > LEASES as usize);
            tokio::time::sleep(self.hold).await;
            self.client.delete(&mark.path, None).await?;
            let _ = lease.release().await;
        }
        Ok(seen)
    }

    async fn read_write(
        &self,
        path: &str,
        options: LockOptions,
        rounds: u32,
        number: u32,
    ) -> Result<Seen, LockError> {
        let lock = InterProcessReadWriteLock::with_options(self.client.clone(), path, options)?;
        let mut seen = Seen::default();
        for round in 0..rounds {
            if (round + number).is_multiple_of(4) {
                let guard = patiently(|| lock.acquire_write()).await?;
                self.write(&guard, &mut seen).await?;
                if round.is_multiple_of(8) {
                    match guard.downgrade().await {
                        Ok(reader) => self.read(&reader, &mut seen).await?,
                        Err(LockError::HoldLost { .. }) => seen.losses += 1,
                        Err(error) => return Err(error),
                    }
                }
            } else {
                let guard = patiently(|| lock.acquire_read()).await?;
                self.read(&guard, &mut seen).await?;
                let _ = guard.release().await;
            }
        }
        Ok(seen)
    }

    /// What a holder does who is alone: writes only under the lock, and goes on over lost
    /// connections as long as the lock is held.
    async fn write(&self, guard: &Guard<Client>, seen: &mut Seen) -> Result<(), Error> {
        let token = guard.token().czxid;
        loop {
            let outcome = self.write_once(guard, token).await;
            match outcome {
                Ok(is_violation) => {
                    seen.violations += u32::from(is_violation);
                    tokio::time::sleep(self.hold).await;
                    return Ok(());
                }
                // The check of the own znode, which goes along, has failed.
                Err(Error::MultiRefused { index: 0, .. }) => {
                    seen.losses += 1;
                    return Ok(());
                }
                Err(Error::MultiRefused {
                    code: ErrorCode::BadVersion,
                    ..
                }) => {
                    seen.violations += 1;
                    return Ok(());
                }
                Err(error) if error.is_retryable() => {
                    if let Status::Lost(_) = guard.status() {
                        seen.losses += 1;
                        return Ok(());
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the grant before was not an earlier one.
    async fn write_once(&self, guard: &Guard<Client>, token: i64) -> Result<bool, Error> {
        let data = self.client.get_data(&self.ledger).await?;
        let before = Entry::parse(data.as_bytes());
        if before.token == token {
            // Written by an attempt whose answer was lost.
            return Ok(false);
        }
        let entry = Entry {
            token,
            count: before.count + 1,
            program: "rust".into(),
            switches: before.switches + u64::from(before.program != "rust"),
        };
        let (entry, version) = (entry.text(), Some(data.stat.version));
        guard
            .multi(|multi| multi.set_data(self.ledger.as_str(), entry.as_bytes(), version))
            .await?;
        Ok(before.token > token)
    }

    /// What a reader does: nobody writes meanwhile.
    async fn read(&self, guard: &Guard<Client>, seen: &mut Seen) -> Result<(), Error> {
        let versions = async {
            let before = self.client.get_data(&self.ledger).await?;
            tokio::time::sleep(self.hold).await;
            let after = self.client.get_data(&self.ledger).await?;
            Ok::<_, Error>(before.stat.version == after.stat.version)
        };
        let is_same = match versions.await {
            Err(error) if error.is_retryable() => return Ok(()),
            other => other?,
        };
        match guard.status() {
            Status::Lost(_) => seen.losses += 1,
            _ => seen.violations += u32::from(!is_same),
        }
        Ok(())
    }
}

/// Takes a lock again and again while that may help.
async fn patiently<T, F>(acquire: impl Fn() -> F) -> Result<T, LockError>
where
    F: Future<Output = Result<T, LockError>>,
{
    loop {
        match acquire().await {
            Err(LockError::Client(error)) if error.is_retryable() => {}
            Err(LockError::Lost { .. }) => {}
            other => return other,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What the ledger says.
struct Entry {
    /// The newest grant's number.
    token: i64,
    count: u64,
    /// Which program it went to.
    program: String,
    switches: u64,
}

impl Entry {
    fn parse(ledger: &[u8]) -> Self {
        let text = String::from_utf8_lossy(ledger);
        let words: Vec<_> = text.split(' ').collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse().ok());
        Self {
            token: number(0).unwrap_or(0),
            count: number(1).unwrap_or(0).unsigned_abs(),
            program: words.get(2).copied().unwrap_or_default().to_owned(),
            switches: number(3).unwrap_or(0).unsigned_abs(),
        }
    }

    fn text(&self) -> String {
        let Self {
            token,
            count,
            program,
            switches,
        } = self;
        format!("{token} {count} {program} {switches}")
    }
}
