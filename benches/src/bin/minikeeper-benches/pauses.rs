//! How long another client waits while the server works on a large state.
//!
//! Starts a server, loads znodes and watches, and runs each verb and word once, while another
//! connection reads one znode again and again. Prints how long each took, and the longest time that
//! a read took meanwhile. See `benches/README.md`.
#![allow(clippy::print_stdout, reason = "it prints its figures")]

use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use minikeeper_benches::{
    Error, IoContext as _,
    client::{self, Client},
    clock::now_ns,
    process::Server,
};
use minikeeper_protocol::{Create, CreateMode, Request, Ustring, Zxid};

use crate::options::Measured;

/// How long another client waits while the server works on a large state.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  cargo run --profile dist -p minikeeper-benches -- pauses
  pauses --minikeeper OLD/minikeeper      an older build, to see the change
  pauses --znodes 30000 --watches 300000  quick look")]
pub(crate) struct Args {
    #[command(flatten)]
    measured: Measured,
    /// Number of znodes
    #[arg(long, default_value_t = 300_000)]
    znodes: usize,
    /// Number of watches, all of one client
    #[arg(long, default_value_t = 3_000_000)]
    watches: usize,
    /// Depth of the tree with a lock in each znode
    #[arg(long, default_value_t = 6_000)]
    depth: usize,
}

/// The reads of the other client.
#[derive(Debug, Default)]
struct Reads {
    longest_ns: AtomicU64,
    /// When the read under way began; 0 if there is none.
    began_ns: AtomicU64,
    is_over: AtomicBool,
}

impl Reads {
    fn run(&self, addr: SocketAddr) -> Result<(), Error> {
        let mut client = Client::connect(addr)?;
        let path = Some("/".into());
        let watch = false;
        let read = Request::GetData { path, watch };
        while !self.is_over.load(Ordering::Acquire) {
            let began_ns = now_ns();
            self.began_ns.store(began_ns, Ordering::Release);
            client.call(&read)?;
            self.longest_ns
                .fetch_max(now_ns() - began_ns, Ordering::AcqRel);
            self.began_ns.store(0, Ordering::Release);
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Does something. Prints how long that took, and the longest read meanwhile.
    fn during(&self, what: &str, act: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        self.longest_ns.store(0, Ordering::Release);
        let from_ns = now_ns();
        let done = act();
        let took_ns = now_ns() - from_ns;
        // A read that is still under way has waited, too.
        let began_ns = self.began_ns.load(Ordering::Acquire);
        let waiting_ns = if began_ns == 0 {
            0
        } else {
            now_ns() - began_ns
        };
        let longest_ns = self.longest_ns.load(Ordering::Acquire).max(waiting_ns);
        let ms = |ns: u64| ns.div_ceil(1_000_000);
        let note = match done {
            Ok(()) => String::new(),
            Err(error) => format!("  failed: {error}"),
        };
        println!(
            "{what:<28} {:>9} ms {:>9} ms{note}",
            ms(took_ns),
            ms(longest_ns)
        );
        Ok(())
    }
}

pub(crate) fn run(args: &Args) -> Result<bool, Error> {
    let dir = std::env::temp_dir().join(format!("minikeeper-pauses-{}", std::process::id()));
    let mut command = args.measured.command(&args.measured.program()?);
    command
        .arg("--control")
        .args(["--4lw-whitelist", "*", "--max-watches", "10000000"])
        // The client with the watches sends no pings.
        .args(["--min-session-timeout", "1200000"])
        .args(["--max-session-timeout", "1200000"])
        .arg("--data-dir")
        .arg(&dir);
    let server = Server::start_minikeeper(command)?;
    let addr = server.addr;
    let reads = Arc::new(Reads::default());
    let reading = {
        let reads = Arc::clone(&reads);
        thread::spawn(move || reads.run(addr))
    };
    println!("{:<28} {:>12} {:>12}", "", "took", "longest read");
    let measured = measure(args, addr, &reads, &dir);
    reads.is_over.store(true, Ordering::Release);
    let read = reading.join().expect("no panic");
    drop(server);
    let _ = std::fs::remove_dir_all(&dir);
    let _ = std::fs::remove_dir_all(dir.with_extension("export"));
    measured.and(read)?;
    Ok(true)
}

fn measure(
    args: &Args,
    addr: SocketAddr,
    reads: &Reads,
    dir: &std::path::Path,
) -> Result<(), Error> {
    let get = |target: String| move || http(addr, "GET", &target, "").map(drop);
    let post =
        |target: &'static str, body: String| move || http(addr, "POST", target, &body).map(drop);
    let say = |said: &'static str| move || word(addr, said).map(drop);

    reads.during("nothing, for 2 s", || {
        thread::sleep(Duration::from_secs(2));
        Ok(())
    })?;
    let mut tree = String::from("{\"tree\":{");
    for number in 0..args.znodes {
        let comma = if number == 0 { "" } else { "," };
        write!(
            tree,
            "{comma}\"/wide/{}/{number:07}\":\"some data\"",
            number % 100
        )
        .expect("writing to a string");
    }
    tree += "}}";
    reads.during("seed", post("/v1/seed", tree.clone()))?;
    reads.during("seed again, no change", post("/v1/seed", tree))?;

    // 40,000 paths of 20 bytes are a request below 1 MB.
    let mut watcher = Client::connect(addr)?;
    reads.during("set watches", || {
        let numbers: Vec<_> = (0..args.watches).collect();
        for some in numbers.chunks(40_000) {
            let exist = some
                .iter()
                .map(|number| Ustring::from(&*format!("/watched/{number:08}")));
            let request = Request::SetWatches {
                relative_zxid: Zxid(1 << 40),
                data: Vec::new(),
                exist: exist.collect(),
                child: Vec::new(),
            };
            watcher.call(&request)?;
        }
        Ok(())
    })?;
    for verb in [
        "export_tree",
        "export_tree?format=yaml",
        "dump",
        "tree",
        "find_znodes?containing=0000&in_data=true",
        "list_children?path=/wide/7",
        "sessions",
        "locks",
        "advise",
        "story",
    ] {
        reads.during(verb, get(format!("/v1/{verb}")))?;
    }
    let stars = format!("/{}b", "*a".repeat(400));
    reads.during(
        "journal, 400 stars",
        get(format!("/v1/journal?path={stars}")),
    )?;
    reads.during(
        "advise --ignore, 400 stars",
        get(format!("/v1/advise?ignore={stars}")),
    )?;
    reads.during("snapshot", post("/v1/snapshot", "{}".into()))?;
    let more = (0..20_000).map(|number| format!("\"/more/{number:07}\":\"x\""));
    let more = format!("{{\"tree\":{{{}}}}}", more.collect::<Vec<_>>().join(","));
    reads.during("seed 20,000 more", post("/v1/seed", more))?;
    reads.during("changes_since", get("/v1/changes_since?snapshot=1".into()))?;
    reads.during("restore", post("/v1/restore", "{\"snapshot\":1}".into()))?;
    reads.during(
        "drop_snapshot",
        post("/v1/drop_snapshot", "{\"snapshot\":1}".into()),
    )?;
    reads.during("fork", post("/v1/fork", "{\"name\":\"copy\"}".into()))?;
    reads.during(
        "drop_universe",
        post("/v1/drop_universe", "{\"name\":\"copy\"}".into()),
    )?;
    reads.during("save", post("/v1/save", "{}".into()))?;
    let to = dir.with_extension("export");
    reads.during("export_data", || {
        http(
            addr,
            "POST",
            "/v1/export_data",
            &format!("{{\"dir\":{to:?}}}"),
        )
        .map(drop)
    })?;
    for said in ["mntr", "stat", "cons", "dump", "wchs", "wchc", "wchp"] {
        reads.during(said, say(said))?;
    }
    for command in [
        "watches",
        "watches_by_path",
        "watch_summary",
        "connections",
        "dump",
        "monitor",
    ] {
        reads.during(
            &format!("commands/{command}"),
            get(format!("/commands/{command}")),
        )?;
    }
    reads.during("metrics", get("/metrics".into()))?;
    let path = Some("/".into());
    watcher.call(&Request::GetData { path, watch: false })?;
    reads.during("client with watches leaves", || {
        drop(watcher);
        thread::sleep(Duration::from_secs(10));
        Ok(())
    })?;

    let mut planter = Client::connect(addr)?;
    let mut path = String::new();
    for _ in 0..args.depth {
        path += "/l";
        for path in [path.clone(), format!("{path}/lock-0000000001")] {
            let create = Create::new(&path, b"", CreateMode::Persistent);
            planter.call(&Request::Create(create))?;
        }
    }
    let path = Some("/".into());
    planter.call(&Request::AddWatch { path, mode: 1 })?;
    reads.during("locks, deep", get("/v1/locks".into()))?;
    reads.during(
        "delete, recursively",
        post(
            "/v1/delete",
            "{\"path\":\"/wide\",\"recursive\":true}".into(),
        ),
    )?;
    Ok(())
}

/// Sends a request for a verb. Returns the answer.
fn http(addr: SocketAddr, method: &str, target: &str, body: &str) -> Result<String, Error> {
    let mut stream = client::dial(addr)?;
    stream
        .set_read_timeout(Some(Duration::from_secs(120)))
        .context(|| "cannot set a timeout".into())?;
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut answer = String::new();
    stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(body.as_bytes()))
        .and_then(|()| stream.read_to_string(&mut answer))
        .context(|| format!("no answer to {target}"))?;
    let status = answer.lines().next().unwrap_or_default();
    if status.contains(" 200 ") {
        return Ok(answer);
    }
    let end: String = answer
        .chars()
        .skip(answer.len().saturating_sub(200))
        .collect();
    Err(Error::Unexpected(format!("{status}: {end}")))
}

/// Sends a four-letter word. Returns the answer.
fn word(addr: SocketAddr, word: &str) -> Result<String, Error> {
    let mut stream = client::dial(addr)?;
    stream
        .set_read_timeout(Some(Duration::from_secs(120)))
        .context(|| "cannot set a timeout".into())?;
    let mut answer = String::new();
    stream
        .write_all(word.as_bytes())
        .and_then(|()| stream.read_to_string(&mut answer))
        .context(|| format!("no answer to {word}"))?;
    Ok(answer)
}
