//! Our service discovery beside Curator's, for `tests/interop/discovery`. `Discovery.java` does the
//! same, and both write what they see.

use std::{fmt::Write as _, fs, path::PathBuf, sync::Arc, time::Duration};

use minikeeper_client::{Client, Connecting, ErrorCode};
use minikeeper_recipes::{ServiceDiscovery, ServiceInstance, ServiceType};
use minikeeper_test_kit::{
    clock,
    random::{Random, seed},
};
use minikeeper_tests::access::{Access, Fault, Pair};
use serde_json::json;
use tokio::{
    io::copy_bidirectional,
    net::TcpStream,
    sync::watch,
    time::{sleep, sleep_until, timeout},
};

const NAME: &str = "app";
const SESSION_TIMEOUT: Duration = Duration::from_secs(4);
const CHANGES_A_SECOND: u64 = 1_000;

/// Registers instances, changes them or loses the session, and writes what it sees.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    pair: Pair,
    /// Instances to register.
    #[arg(long, default_value_t = 60)]
    instances: u16,
    /// Changes to make at random: updates, registrations, and ends of registrations. The session is
    /// lost afterwards only if this is 0; else whoever cuts the connections ends sessions.
    #[arg(long, default_value_t = 0)]
    changes: u64,
    /// Folder for the views.
    #[arg(long)]
    folder: PathBuf,
}

pub(crate) async fn run(args: &Args) -> Result<bool, Fault> {
    let (is_cut, cut) = watch::channel(false);
    let mut builder = args.access.builder()?.session_timeout(SESSION_TIMEOUT);
    if args.changes == 0 {
        builder = builder.transport(move |host: &str| connect(host.to_owned(), cut.clone()));
    }
    let client = builder.connect().await?;
    let discovery: ServiceDiscovery = ServiceDiscovery::new(client.clone(), &args.pair.base)?;
    let cache = discovery.cache(NAME)?;
    let provider = discovery.provider(NAME).start()?;
    let patience = Duration::from_secs(args.pair.patience);
    let mut kept = 0;
    for number in 0..args.instances {
        let instance = discovery
            .register(instance(&args.pair.name, number)?)
            .await?;
        if number % 2 == 0 {
            let changed = ServiceInstance::clone(&instance).ssl_port(1_000 + number);
            discovery.update(changed).await?;
        }
        if is_kept(number) {
            kept += 1;
        } else {
            discovery.unregister(&instance).await?;
        }
    }
    args.pair.meet(&client, "registered", "").await?;
    if args.changes == 0 {
        let epoch = client.epoch();
        is_cut.send_replace(true);
        sleep(2 * SESSION_TIMEOUT).await;
        is_cut.send_replace(false);
        while client.epoch() == epoch || client.session_id().is_none() {
            sleep(Duration::from_millis(20)).await;
        }
    } else {
        change(&discovery, args).await?;
    }
    args.pair.meet(&client, "changed", "").await?;
    let views = async {
        loop {
            let query = discovery.query_for_instances(NAME).await?;
            let cached = cache.instances();
            let views = [
                view(&query.instances),
                view(&cached.instances),
                view(&provider.all_instances()),
            ];
            let is_same = views.iter().all(|view| *view == views[0]);
            if query.instances.len() == 2 * kept && is_same && query.damaged.is_empty() {
                return Ok::<_, Fault>(views);
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let views = timeout(patience, views).await??;
    for (name, view) in ["query", "cache", "provider"].iter().zip(views) {
        fs::write(args.folder.join(format!("{}-{name}", args.pair.name)), view)?;
    }
    // Curator's cache takes a znode that was created again while it was cut off, and has by chance the
    // version that it knew, for the same one (hazard H54 in docs/curator-recipes.md). It sees another
    // version. What we see has been checked by now.
    for instance in &cache.instances().instances {
        let path = format!("{}/{NAME}/{}", args.pair.base, instance.id);
        timeout(patience, set_again(&client, &path)).await??;
    }
    args.pair.meet(&client, "seen", "").await?;
    discovery.close().await?;
    args.pair.meet(&client, "closed", "").await?;
    let emptied = async {
        while !cache.instances().instances.is_empty() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(patience, emptied).await?;
    let count = 2 * kept;
    println!(
        "{}: {count} instances in query, cache and provider, none after closing; connections={} sessions={}",
        args.pair.name,
        client.connections(),
        client.epoch().0
    );
    Ok(true)
}

/// Sets the data that a znode has, unless its session has just ended.
async fn set_again(client: &Client, path: &str) -> Result<(), Fault> {
    loop {
        let set = match client.get_data(path).await {
            Ok(data) => client.set_data(path, data.as_bytes(), None).await.map(drop),
            Err(error) => Err(error),
        };
        match set {
            Err(error) if error.is(ErrorCode::NoNode) => return Ok(()),
            Err(error) if error.is_retryable() => sleep(Duration::from_millis(20)).await,
            set => return Ok(set?),
        }
    }
}

/// Makes changes at random, then leaves the instances that were kept before, each with an SSL port of
/// its own.
async fn change(discovery: &ServiceDiscovery, args: &Args) -> Result<(), Fault> {
    let mut random = Random::new(seed());
    let instances: Vec<_> = (0..args.instances)
        .map(|number| instance(&args.pair.name, number))
        .collect::<Result<_, _>>()?;
    let mut is_registered: Vec<_> = (0..args.instances).map(is_kept).collect();
    let begin = clock::now();
    for change in 0..args.changes {
        sleep_until(begin + Duration::from_micros(1_000_000 * change / CHANGES_A_SECOND)).await;
        let number = random.below(args.instances.into());
        let instance = instances[number]
            .clone()
            .ssl_port(u16::try_from(change % 50_000)?);
        if !is_registered[number] {
            discovery.register(instance).await?;
            is_registered[number] = true;
        } else if random.below(4) == 0 {
            discovery.unregister(&instance).await?;
            is_registered[number] = false;
        } else {
            discovery.update(instance).await?;
        }
    }
    for (number, instance) in (0..).zip(instances) {
        let is_registered = is_registered[usize::from(number)];
        let instance = instance.ssl_port(50_000 + number);
        match (is_kept(number), is_registered) {
            (false, _) => discovery.unregister(&instance).await?,
            (true, false) => drop(discovery.register(instance).await?),
            (true, true) => drop(discovery.update(instance).await?),
        }
    }
    println!(
        "{}: changes={} seconds={}",
        args.pair.name,
        args.changes,
        begin.elapsed().as_secs()
    );
    Ok(())
}

/// Tells whether an instance remains registered.
fn is_kept(number: u16) -> bool {
    number % 3 != 2
}

/// Connects through a pipe that can be cut.
fn connect(host: String, mut cut: watch::Receiver<bool>) -> Connecting {
    Box::pin(async move {
        if *cut.borrow() {
            return Err(std::io::ErrorKind::ConnectionRefused.into());
        }
        let mut server = TcpStream::connect(host).await?;
        let (client, mut end) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move {
            tokio::select! {
                _ = copy_bidirectional(&mut server, &mut end) => {}
                _ = cut.wait_for(|is_cut| *is_cut) => {}
            }
        });
        let (reader, writer) = tokio::io::split(client);
        Ok((Box::new(reader) as _, Box::new(writer) as _))
    })
}

fn instance(name: &str, number: u16) -> Result<ServiceInstance, Fault> {
    let instance = ServiceInstance::new(NAME)
        .id(format!("{name}-{number}"))
        .address(format!("10.0.1.{number}"))
        .port(number)
        .uri_spec("{scheme}://{address}:{port}/{[}".parse()?)
        .service_type(match number % 5 {
            4 => ServiceType::Permanent,
            _ => ServiceType::Dynamic,
        });
    Ok(match number % 7 {
        0 => instance.payload(format!("täxt \"{number}")),
        1 => instance.payload(number),
        2 => instance.payload(json!(["a", number])),
        3 => instance.payload(json!({"zone": "a", "limit": number})),
        4 => instance
            .payload(json!({"zone": "a", "limit": 7}))
            .payload_class("Discovery$Meta"),
        5 => instance.payload(5_000_000_000 + u64::from(number)),
        _ => instance,
    })
}

/// Returns one line for each instance, sorted.
fn view(instances: &[Arc<ServiceInstance>]) -> String {
    let number =
        |port: Option<u16>| port.map_or_else(|| "null".to_owned(), |port| port.to_string());
    let line = |one: &Arc<ServiceInstance>| {
        let payload = one.payload.clone().unwrap_or_default();
        format!(
            "{}|{}|{}|{}|{payload}|{}|{}|{}|{}",
            one.id,
            one.address.as_deref().unwrap_or("null"),
            number(one.port),
            number(one.ssl_port),
            one.registration_time_utc,
            match one.service_type {
                ServiceType::Permanent => "PERMANENT",
                _ => "DYNAMIC",
            },
            one.build_uri_spec(),
            one.enabled
        )
    };
    let mut lines: Vec<_> = instances.iter().map(line).collect();
    lines.sort();
    let mut view = String::new();
    for line in lines {
        let _ = writeln!(view, "{line}");
    }
    view
}
