//! Our caches beside Curator's, for `tests/interop/cache`: makes a tree, changes it, follows it, and
//! measures. `Cacher.java` follows the same tree.
//!
//! A view is written as lines `PATH MZXID DATA`, sorted, with the data in hex. The task `truth` writes
//! those of the server; a follower waits until each of its views equals them.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::ValueEnum;
use minikeeper_client::{Call, Client, CreateMode, Data, Error, Names, Zxid};
use minikeeper_recipes::{
    CacheEvent, CacheOptions, CachedZnode, CuratorCache, NodeCache, PathChildrenCache, TreeCache,
};
use minikeeper_test_kit::{
    clock,
    random::{Random, seed},
};
use minikeeper_tests::access::{Access, Fault};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{sleep, sleep_until, timeout},
};

/// The data by path, with its mzxid.
type Tree = BTreeMap<String, (Zxid, Vec<u8>)>;

/// Requests in flight, as many as a cache has by default.
const IN_FLIGHT: usize = 256;

/// Makes, changes and follows a tree of znodes.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    access: Access,
    /// Task to run.
    #[arg(long, value_enum)]
    task: Task,
    /// Root of the tree.
    #[arg(long, default_value = "/cache")]
    path: String,
    /// Znodes to create or to read.
    #[arg(long, default_value_t = 1_000)]
    znodes: u64,
    /// Length of their data, in bytes.
    #[arg(long, default_value_t = 64)]
    data_bytes: usize,
    /// Changes to make.
    #[arg(long, default_value_t = 10_000)]
    changes: u64,
    /// Changes a second at most; 0 for no limit.
    #[arg(long, default_value_t = 0)]
    rate: u64,
    /// File of the server's tree: written by `truth`, awaited by `follow`.
    #[arg(long)]
    truth: Option<PathBuf>,
    /// File that gets the port of the proxy.
    #[arg(long)]
    port_file: Option<PathBuf>,
    /// Time between two cuts of all connections, in milliseconds.
    #[arg(long, default_value_t = 1_000)]
    cut_ms: u64,
    /// Every tenth cut lasts for this time, in milliseconds.
    #[arg(long, default_value_t = 6_000)]
    outage_ms: u64,
    /// Time limit, in seconds.
    #[arg(long, default_value_t = 300)]
    patience: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Task {
    /// Create a tree: directories of 1,000 znodes.
    Prepare,
    /// Read every znode and its children without a cache.
    Bare,
    /// Make random changes.
    Change,
    /// Set the data of the tree's znodes, then create `PATH/end`, at a constant rate.
    Stream,
    /// Follow the tree with every view until each equals the truth.
    Follow,
    /// Load the tree once, and measure; then follow until `PATH/end` exists.
    Measure,
    /// Delete what `Stream` has created.
    Unend,
    /// Write the server's tree.
    Truth,
    /// Pass connections on, and cut them now and then.
    Proxy,
}

pub(crate) async fn run(args: &Args) -> Result<bool, Fault> {
    let task = async {
        match args.task {
            Task::Prepare => prepare(args).await,
            Task::Bare => bare(args).await,
            Task::Change => change(args).await,
            Task::Stream => stream(args).await,
            Task::Follow => follow(args).await,
            Task::Measure => measure(args).await,
            Task::Unend => unend(args).await,
            Task::Truth => truth(args).await,
            Task::Proxy => proxy(args).await,
        }
    };
    let done = timeout(Duration::from_secs(args.patience), task).await;
    done.map_err(|_| format!("not done within {} s", args.patience))??;
    Ok(true)
}

async fn connect(args: &Args) -> Result<Client, Fault> {
    let builder = args.access.builder()?;
    Ok(builder
        .session_timeout(Duration::from_secs(4))
        .connect()
        .await?)
}

fn paths(args: &Args) -> impl Iterator<Item = String> {
    let directory = |number: u64| format!("{}/d{}", args.path, number / 1_000);
    (0..args.znodes).map(move |number| format!("{}/n{number}", directory(number)))
}

/// Awaits requests in order, with at most [`IN_FLIGHT`] pending.
struct Pipeline<T> {
    client: Client,
    calls: VecDeque<Call<T>>,
}

impl<T> Pipeline<T>
where
    Call<T>: Future<Output = Result<T, Error>>,
{
    fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            calls: VecDeque::new(),
        }
    }

    /// Adds a request. Returns the result of the oldest one if there are too many.
    async fn push(&mut self, call: Call<T>) -> Option<Result<T, Error>> {
        self.calls.push_back(call);
        if self.calls.len() < IN_FLIGHT {
            return None;
        }
        self.pop().await
    }

    async fn pop(&mut self) -> Option<Result<T, Error>> {
        let call = self.calls.pop_front()?;
        self.client.flush();
        Some(call.await)
    }
}

async fn prepare(args: &Args) -> Result<(), Fault> {
    let client = connect(args).await?;
    let data = vec![b'x'; args.data_bytes];
    let mode = CreateMode::Persistent;
    client.create(&args.path, b"", mode).await?;
    for number in 0..args.znodes.div_ceil(1_000) {
        client
            .create(&format!("{}/d{number}", args.path), b"", mode)
            .await?;
    }
    let mut pending = Pipeline::new(&client);
    for path in paths(args) {
        if let Some(created) = pending.push(client.create(&path, &data, mode)).await {
            created?;
        }
    }
    while let Some(created) = pending.pop().await {
        created?;
    }
    Ok(())
}

async fn bare(args: &Args) -> Result<(), Fault> {
    let client = connect(args).await?;
    let begin = clock::now();
    let mut data: Pipeline<Data> = Pipeline::new(&client);
    let mut lists: Pipeline<Names> = Pipeline::new(&client);
    let directories = (0..args.znodes.div_ceil(1_000)).map(|it| format!("{}/d{it}", args.path));
    let mut bytes = 0;
    for path in std::iter::once(args.path.clone())
        .chain(directories)
        .chain(paths(args))
    {
        if let Some(read) = data.push(client.get_data(&path)).await {
            bytes += read?.as_bytes().len();
        }
        if let Some(list) = lists.push(client.child_names(&path)).await {
            bytes += list?.len();
        }
    }
    while let Some(read) = data.pop().await {
        bytes += read?.as_bytes().len();
    }
    while let Some(list) = lists.pop().await {
        bytes += list?.len();
    }
    println!(
        "bare: load_ms={} bytes={bytes}",
        begin.elapsed().as_millis()
    );
    Ok(())
}

/// Waits so that this change comes at its time.
async fn pace(args: &Args, begin: tokio::time::Instant, number: u64) {
    if let Some(us) = (number * 1_000_000).checked_div(args.rate)
        && number.is_multiple_of(16)
    {
        sleep_until(begin + Duration::from_micros(us)).await;
    }
}

/// Makes changes at random. Some are refused: the znode exists, is missing, or has children.
async fn change(args: &Args) -> Result<(), Fault> {
    let client = connect(args).await?;
    let begin = clock::now();
    let mut random = Random::new(seed());
    let mut made = 0;
    let mut number = 0;
    let mode = CreateMode::Persistent;
    let mut pending: VecDeque<std::pin::Pin<Box<dyn Future<Output = bool> + Send>>> =
        VecDeque::new();
    while made < args.changes {
        pace(args, begin, number).await;
        number += 1;
        // Three levels: 20 znodes, 10 below each, and 4 below each of those.
        let [first, second, third] = [20, 10, 4].map(|below| random.below(below));
        let path = match random.below(10) {
            0 => format!("{}/r{first}", args.path),
            1..4 => format!("{}/r{first}/s{second}", args.path),
            _ => format!("{}/r{first}/s{second}/t{third}", args.path),
        };
        let data = number.to_be_bytes();
        pending.push_back(match random.below(8) {
            0 | 1 => Box::pin(done(client.delete(&path, None))),
            2..4 => Box::pin(done(client.create(&path, &data, mode))),
            _ => Box::pin(done(client.set_data(&path, &data, None))),
        });
        if pending.len() >= IN_FLIGHT
            && let Some(oldest) = pending.pop_front()
        {
            client.flush();
            made += u64::from(oldest.await);
        }
    }
    for rest in pending {
        made += u64::from(rest.await);
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!("changes: made={made} seconds={seconds:.1}");
    Ok(())
}

async fn done<T>(call: Call<T>) -> bool
where
    Call<T>: Future<Output = Result<T, Error>>,
{
    call.await.is_ok()
}

async fn stream(args: &Args) -> Result<(), Fault> {
    let client = connect(args).await?;
    let (begin, begin_ms) = (clock::now(), clock::since_1970_ms());
    let paths: Vec<_> = paths(args).collect();
    let mut pending = Pipeline::new(&client);
    for number in 0..args.changes {
        pace(args, begin, number).await;
        let path = &paths[usize::try_from(number * 7_919 % args.znodes)?];
        let data = number.to_be_bytes();
        if let Some(set) = pending.push(client.set_data(path, &data, None)).await {
            set?;
        }
        client.flush();
    }
    while let Some(set) = pending.pop().await {
        set?;
    }
    let end = format!("{}/end", args.path);
    let text = format!("{begin_ms}");
    client
        .create(&end, text.as_bytes(), CreateMode::Persistent)
        .await?;
    println!(
        "stream: changes={} ms={}",
        args.changes,
        begin.elapsed().as_millis()
    );
    Ok(())
}

async fn unend(args: &Args) -> Result<(), Fault> {
    let client = connect(args).await?;
    client.delete(&format!("{}/end", args.path), None).await?;
    Ok(())
}

fn hex(data: &[u8]) -> String {
    data.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn lines(tree: &Tree) -> String {
    tree.iter()
        .fold(String::new(), |mut text, (path, (mzxid, data))| {
            let _ = writeln!(text, "{path} {} {}", mzxid.0, hex(data));
            text
        })
}

async fn truth(args: &Args) -> Result<(), Fault> {
    let client = connect(args).await?;
    let mut tree = Tree::new();
    let mut level = vec![args.path.clone()];
    while !level.is_empty() {
        let reads: Vec<_> = level
            .iter()
            .map(|it| (client.get_data(it), client.child_names(it)))
            .collect();
        let mut next = Vec::new();
        for (path, (read, list)) in level.into_iter().zip(reads) {
            let (read, list) = (read.await?, list.await?);
            next.extend(list.iter().map(|name| format!("{path}/{name}")));
            tree.insert(path, (read.stat.mzxid, read.as_bytes().to_vec()));
        }
        level = next;
    }
    let file = args.truth.as_deref().ok_or("--truth is missing")?;
    let unfinished = file.with_extension("unfinished");
    fs::write(&unfinished, lines(&tree))?;
    fs::rename(unfinished, file)?;
    println!("truth: znodes={}", tree.len());
    Ok(())
}

fn entry(znode: &CachedZnode) -> (String, (Zxid, Vec<u8>)) {
    (
        znode.path().to_owned(),
        (znode.stat().mzxid, znode.data().to_vec()),
    )
}

/// Applies the changes of a cache until they lead to the truth.
async fn fold(
    cache: CuratorCache,
    truth: watch::Receiver<Option<String>>,
) -> Result<(u64, u64), String> {
    let (snapshot, mut changes) = cache.subscribe();
    let mut tree: Tree = snapshot.iter().map(|znode| entry(znode)).collect();
    let (mut count, mut lagged) = (0, 0);
    loop {
        let wanted = truth.borrow().clone();
        if wanted.is_some_and(|wanted| wanted == lines(&tree)) {
            return Ok((count, lagged));
        }
        // More than one change is applied before the next comparison.
        let mut wait = Duration::from_millis(200);
        while let Ok(event) = timeout(wait, changes.next()).await {
            wait = Duration::from_millis(20);
            count += 1;
            match event.map_err(|error| error.to_string())? {
                CacheEvent::Created { znode: new } | CacheEvent::Changed { new, .. } => {
                    let (path, new) = entry(&new);
                    if let Some(old) = tree.insert(path.clone(), new.clone())
                        && old.0 >= new.0
                    {
                        return Err(format!("{path} goes back from {} to {}", old.0, new.0));
                    }
                }
                CacheEvent::Deleted { znode } => drop(tree.remove(znode.path())),
                CacheEvent::Lagged { snapshot, .. } => {
                    lagged += 1;
                    tree = snapshot.iter().map(|znode| entry(znode)).collect();
                }
                _ => {}
            }
        }
    }
}

/// Returns the lines of the truth that are of these paths.
fn part(truth: &str, is_wanted: impl Fn(&str) -> bool) -> String {
    let lines = truth
        .lines()
        .filter(|line| is_wanted(line.split(' ').next().unwrap_or_default()));
    lines.fold(String::new(), |text, line| text + line + "\n")
}

async fn follow(args: &Args) -> Result<(), Fault> {
    let client = connect(args).await?;
    let cache = CuratorCache::start(client.clone(), &args.path)?;
    let single =
        CuratorCache::with_options(client.clone(), &args.path, CacheOptions::single_node())?;
    let children = PathChildrenCache::start(client.clone(), &args.path)?;
    let node = NodeCache::start(client.clone(), &args.path)?;
    let tree = TreeCache::start(client.clone(), &args.path)?;
    for cache in [
        &cache,
        &single,
        children.cache(),
        node.cache(),
        tree.cache(),
    ] {
        cache.initialized().await?;
    }
    println!("ours: initialized znodes={}", cache.len());
    let wanted = watch::Sender::new(None);
    let folded = tokio::spawn(fold(cache.clone(), wanted.subscribe()));
    let file = args.truth.as_deref().ok_or("--truth is missing")?;
    let text = await_file(file).await?;
    wanted.send_replace(Some(text.clone()));
    let all = |cache: &CuratorCache| -> Tree {
        cache.snapshot().iter().map(|znode| entry(znode)).collect()
    };
    let of = |znodes: Vec<std::sync::Arc<CachedZnode>>| -> Tree {
        znodes.iter().map(|znode| entry(znode)).collect()
    };
    let is_child = |path: &str| {
        path.strip_prefix(&args.path)
            .is_some_and(|below| below.matches('/').count() == 1)
    };
    let root = part(&text, |path| path == args.path);
    let first = part(&text, is_child);
    let begin = clock::now();
    let limit = Duration::from_secs(60);
    let mut differ = Vec::new();
    loop {
        differ.clear();
        let views = [
            ("CuratorCache", lines(&all(&cache)) == text),
            ("single node", lines(&all(&single)) == root),
            (
                "PathChildrenCache",
                lines(&of(children.current_data())) == first,
            ),
            (
                "NodeCache",
                lines(&of(node.current_data().into_iter().collect())) == root,
            ),
            ("TreeCache", lines(&all(tree.cache())) == text),
        ];
        differ.extend(
            views
                .into_iter()
                .filter(|(_, is_equal)| !is_equal)
                .map(|(name, _)| name),
        );
        if differ.is_empty() || begin.elapsed() > limit {
            break;
        }
        sleep(Duration::from_millis(100)).await;
    }
    if !differ.is_empty() {
        return Err(format!("these views differ from the server: {}", differ.join(", ")).into());
    }
    let (count, lagged) = timeout(limit, folded).await???;
    let (epoch, connections) = (client.epoch(), client.connections());
    println!(
        "ours: views=5 equal znodes={} changes={count} lagged={lagged} connections={connections} sessions={}",
        text.lines().count(),
        epoch.0
    );
    Ok(())
}

async fn await_file(file: &Path) -> Result<String, Fault> {
    while !file.exists() {
        sleep(Duration::from_millis(50)).await;
    }
    Ok(fs::read_to_string(file)?)
}

/// Returns the resident memory of this process, in KiB.
fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.unwrap_or_default()
}

async fn measure(args: &Args) -> Result<(), Fault> {
    let client = connect(args).await?;
    let (begin, before) = (clock::now(), resident_kib());
    let cache = CuratorCache::start(client, &args.path)?;
    cache.initialized().await?;
    let load_ms = begin.elapsed().as_millis();
    let znodes = cache.len();
    let bytes = (resident_kib() - before) * 1024 / u64::try_from(znodes)?;
    // How long reads take while the cache follows changes.
    let reader = cache.clone();
    let path = format!("{}/d0/n7", args.path);
    let reads = tokio::task::spawn_blocking(move || {
        let mut times: Vec<_> = Vec::new();
        while reader.get("/end").is_none() && times.len() < 2_000_000 && reader.end().is_none() {
            let begin = clock::now();
            std::hint::black_box(reader.get(&path));
            times.push(begin.elapsed());
            if times.len().is_multiple_of(64) {
                std::thread::sleep(Duration::from_micros(200));
                if reader.get(&format!("{}/end", reader.path())).is_some() {
                    break;
                }
            }
        }
        times.sort_unstable();
        times
    });
    println!("ours: load_ms={load_ms} znodes={znodes} resident_per_znode={bytes}");
    let end = format!("{}/end", args.path);
    let (_, mut changes) = cache.subscribe();
    let mut count = 0_u64;
    let begun = loop {
        if let Some(end) = cache.get(&end) {
            break String::from_utf8_lossy(end.data()).parse::<u128>()?;
        }
        match changes.next().await? {
            CacheEvent::Lagged { missed, .. } => count += missed,
            _ => count += 1,
        }
    };
    let followed_ms = clock::since_1970_ms() - begun;
    let times = reads.await?;
    let at = |part: usize| {
        times
            .get(times.len() * part / 1_000)
            .map_or(0, Duration::as_nanos)
    };
    println!(
        "ours: followed_ms={followed_ms} events={count} read_ns_median={} read_ns_999={} read_ns_max={}",
        at(500),
        at(999),
        times.last().map_or(0, Duration::as_nanos)
    );
    Ok(())
}

async fn proxy(args: &Args) -> Result<(), Fault> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let file = args.port_file.as_deref().ok_or("--port-file is missing")?;
    fs::write(file, listener.local_addr()?.port().to_string())?;
    // How often connections were cut, and whether they pass.
    let state = watch::Sender::new((0_u64, true));
    let states = state.subscribe();
    let (cut_ms, outage_ms) = (args.cut_ms, args.outage_ms);
    tokio::spawn(async move {
        loop {
            sleep(Duration::from_millis(cut_ms)).await;
            let is_long = state.borrow().0 % 10 == 4;
            state.send_modify(|(cuts, passes)| {
                *cuts += 1;
                *passes = !is_long;
            });
            if is_long {
                sleep(Duration::from_millis(outage_ms)).await;
                state.send_modify(|(_, passes)| *passes = true);
            }
        }
    });
    loop {
        let (mut near, _) = listener.accept().await?;
        let mut states = states.clone();
        states.mark_unchanged();
        let server = args.access.connect.clone();
        tokio::spawn(async move {
            if !states.borrow().1 {
                return;
            }
            let Ok(mut far) = TcpStream::connect(&server).await else {
                return;
            };
            let _ = (near.set_nodelay(true), far.set_nodelay(true));
            tokio::select! {
                _ = copy_bidirectional(&mut near, &mut far) => {}
                _ = states.changed() => {}
            }
        });
    }
}
