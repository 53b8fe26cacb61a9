//! A service whose instances register, find each other, elect a leader, do jobs under a lock, and
//! report. Without arguments it is a test on minikeeper; the same code runs on an ensemble.
//!
//! ```sh
//! cargo run -p minikeeper-recipes --features discovery --example service -- \
//!     zk1:2181,zk2:2181,zk3:2181/app NAME:PASSWORD
//! cargo run -p minikeeper-recipes --features discovery --example service
//! ```

#![allow(clippy::print_stdout, reason = "an example prints what happens")]

use std::time::Duration;

use minikeeper_client::{Acl, AclList, Client, ClientBuilder, CreateMode, ErrorCode, Perms};
use minikeeper_recipes::{
    FencingToken, InterProcessMutex, LeaderLatch, LockError, ServiceDiscovery, ServiceInstance,
    TokenCheck,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const JOBS: &str = "/mailer/jobs-done";

/// What the mail server would do: refuse tokens of earlier holders.
static MAIL_SERVER: TokenCheck = TokenCheck::new("mail server");

/// What one instance reports at its end.
#[derive(Debug)]
struct Report {
    jobs: u32,
    peers: usize,
    token: Option<FencingToken>,
}

/// Runs one instance until it has done its jobs.
async fn run(client: Client, id: &str, jobs: u32) -> Result<Report, Failure> {
    let discovery: ServiceDiscovery = ServiceDiscovery::new(client.clone(), "/services")?;
    let here = ServiceInstance::new("mailer")
        .id(id)
        .address("10.0.0.7")
        .port(8080);
    let mut here = (*discovery.register(here).await?).clone();
    let mailers = discovery.provider("mailer").start()?;
    mailers.initialized().await?;
    let latch = LeaderLatch::start(client.clone(), "/mailer/leaders", id)?;
    let mut report = Report {
        jobs: 0,
        peers: 0,
        token: None,
    };
    match client.create(JOBS, b"0", CreateMode::Persistent).await {
        Err(error) if !error.is(ErrorCode::NodeExists) => return Err(error.into()),
        _ => {}
    }
    let queue = InterProcessMutex::new(client.clone(), "/mailer/queue")?;
    while report.jobs < jobs {
        let acquire = queue.acquire().within(Duration::from_secs(30));
        let done = acquire.with_lock(async |guard| -> Result<(), Failure> {
            MAIL_SERVER.check(guard.token())?;
            let before = client.get_data(JOBS).await?;
            let count: u64 = String::from_utf8_lossy(before.as_bytes()).parse()?;
            // Carried out only while the lock is held.
            let (count, version) = ((count + 1).to_string(), Some(before.stat.version));
            guard
                .multi(|multi| multi.set_data(JOBS, count.as_bytes(), version))
                .await?;
            Ok(())
        });
        match done.await {
            Ok(Ok(())) => {
                report.jobs += 1;
                // Operators and the other instances see it.
                here = here.payload(serde_json::json!({"jobs": report.jobs}));
                discovery.update(here.clone()).await?;
            }
            Ok(Err(error)) => println!("{id}: job failed, try again: {error}"),
            Err(LockError::WorkDropped { loss, .. }) => println!("{id}: {loss}, try again"),
            Err(error) => return Err(error.into()),
        }
        report.peers = report.peers.max(mailers.all_instances().len());
    }
    // Each instance leads until it leaves, one after the other.
    report.token = Some(latch.wait().await?);
    report.peers = report.peers.max(mailers.all_instances().len());
    println!("{id} leads with token {:?}", report.token);
    latch.close().await?;
    discovery.close().await?;
    Ok(report)
}

/// Returns settings for production: a namespace, and znodes that belong to this user alone.
fn settings(connect_string: &str, user: &str) -> Result<ClientBuilder, Failure> {
    let owner = Acl::new(Perms::ALL, "auth", "");
    Ok(Client::builder(connect_string)?
        .session_timeout(Duration::from_secs(4))
        .identity("digest", user)
        .acl_provider(AclList::new(&[owner]))
        .create_chroot(true)
        .namespace("mail")?)
}

/// Runs three instances, each with a session of its own.
async fn run_three(connect_string: &str, user: &str, jobs: u32) -> Result<Vec<Report>, Failure> {
    let mut instances = Vec::new();
    for number in 1..=3 {
        let client = settings(connect_string, user)?.connect().await?;
        client.with_namespace("mail/mailer")?.create_root().await?;
        let id = format!("mailer-{number}");
        instances.push(tokio::spawn(async move { run(client, &id, jobs).await }));
    }
    let mut reports = Vec::new();
    for instance in instances {
        reports.push(instance.await??);
    }
    Ok(reports)
}

/// Without arguments it runs on minikeeper, where a session ends in the middle of the jobs.
#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    if let [connect_string, user] = &args[..] {
        println!("{:#?}", run_three(connect_string, user, 100).await?);
        return Ok(());
    }
    let server = minikeeper::Server::builder().start().await?;
    let expire = minikeeper::Fault::expire().on(minikeeper::OpCode::Multi);
    let expired = server.inject(expire.skip(7).once())?;
    let reports = run_three(&server.connect_string(), "mail:secret", 10).await?;
    println!("{reports:#?}");
    assert_eq!(expired.hits(), 1);
    assert!(
        reports
            .iter()
            .all(|report| report.jobs == 10 && report.peers > 0)
    );
    Ok(())
}
