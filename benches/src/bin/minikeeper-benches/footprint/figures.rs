//! The rows of the footprint, and how each is measured.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use bytes::Bytes;
use minikeeper_benches::{
    Error, IoContext as _,
    client::{Client, TRY_LIMIT},
    clock::{Deadline, now_ns},
    drive::{Driver, Pace},
    frames::{Counting, Kind, put_frame, request},
    mix,
    process::{self, START_LIMIT, Scratch, Server},
    record::Recorder,
    stats::{Spread, as_f64},
    table::duration_ns,
};
use minikeeper_protocol::{Request, Xid};

use super::{
    Args, embedded, expect_files,
    row::{Row, Unit},
};

/// Groups of rows that are measured together, by name.
pub(crate) const FIGURES: &[(&str, Figure)] = &[
    ("start-stop", start_and_stop),
    ("embedded", |_| {
        Ok(vec![embedded::start_to_first_operation()?])
    }),
    ("idle-memory", idle_memory),
    ("binary-size", binary_size),
    ("znodes", znodes),
    ("sessions", sessions),
    ("watches", watches),
    ("fan-out", fan_out),
];

/// Measures a group of rows.
pub(crate) type Figure = fn(&Args) -> Result<Vec<Row>, Error>;

/// Measures from spawning the program to the first granted session, and from SIGTERM to its end.
fn start_and_stop(args: &Args) -> Result<Vec<Row>, Error> {
    let program = args.measured.program()?;
    let (mut start, mut stop) = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        let port = process::free_port()?;
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut command = args.measured.command(&program);
        command
            .args(["--port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let deadline = Deadline::new(START_LIMIT, "first session of minikeeper");
        let before_ns = now_ns();
        let child = command
            .spawn()
            .context(|| format!("cannot start {:?}", program.display()))?;
        let mut server = Server::starting(child);
        // Refused connections cost microseconds; yielding lets a server on the same core start.
        let client = loop {
            match Client::connect_within(addr, TRY_LIMIT) {
                Ok(client) => break client,
                Err(_) => deadline.check()?,
            }
            thread::yield_now();
        };
        start.push(as_f64(now_ns() - before_ns));
        let before_ns = now_ns();
        server.stop()?;
        stop.push(as_f64(now_ns() - before_ns));
        drop(client);
    }
    Ok(vec![
        Row::new("start", start, Unit::Time, 3e6).with_note("spawn to first granted session"),
        Row::new("stop", stop, Unit::Time, 5e6).with_note("SIGTERM to exit, one session open"),
    ])
}

/// Measures the resident memory after a quiet moment without a connection.
fn idle_memory(args: &Args) -> Result<Vec<Row>, Error> {
    let mut values = Vec::new();
    for _ in 0..args.rounds {
        let server = args.measured.start()?;
        thread::sleep(SETTLE);
        values.push(rss(&server)?);
    }
    let row = Row::new("idle-memory", values, Unit::Mebibytes, 4.0 * 1_048_576.0);
    Ok(vec![row.with_note("resident, no connection")])
}

/// Measures the size of the program without symbols.
fn binary_size(args: &Args) -> Result<Vec<Row>, Error> {
    let program = args.measured.program()?;
    let scratch = Scratch::new("stripped")?;
    let strip = Command::new("strip")
        .arg("-o")
        .args([&scratch.path, &program])
        .stderr(Stdio::null())
        .status();
    let (path, note) = match strip {
        Ok(status) if status.success() => (&scratch.path, "stripped"),
        _ => (&program, "as built; strip is not installed"),
    };
    let size = fs::metadata(path)
        .context(|| format!("cannot read the size of {:?}", path.display()))?
        .len();
    let row = Row::new("binary-size", vec![as_f64(size)], Unit::Megabytes, 4e6);
    Ok(vec![row.with_note(note)])
}

/// Measures the growth of the resident memory and the time of a fill over one pipelined connection.
fn znodes(args: &Args) -> Result<Vec<Row>, Error> {
    const PATH_BYTES: usize = 33;
    const DIGITS: usize = PATH_BYTES - "/fill/p0000/".len();
    let server = args.measured.start()?;
    let mut client = Client::connect(server.addr)?;
    create(&mut client, "/fill")?;
    let data = mix::data(100);
    let mut parents = Vec::new();
    for parent in 0..args.parents {
        let path = format!("/fill/p{parent:04}");
        create(&mut client, &path)?;
        parents.push(Counting::new(
            Kind::Create,
            &format!("{path}/"),
            DIGITS,
            &data,
        ));
    }
    let mut driver = Driver::connect(server.addr, 1, false)?;
    thread::sleep(SETTLE);
    let before = rss(&server)?;
    let share = args.znodes.div_ceil(args.parents);
    let mut number = 0;
    let mut fill = |_: usize, xid: Xid, out: &mut Vec<u8>| {
        if number == args.znodes {
            return None;
        }
        let kind = parents[number / share].deal(number % share, xid, out);
        number += 1;
        Some(kind)
    };
    let mut recorder = Recorder::default();
    let pace = Pace::Closed { depth: 256 };
    let span = driver.run(&mut fill, pace, None, &mut recorder)?;
    recorder.expect_no_errors("creating znodes")?;
    thread::sleep(SETTLE);
    let each = (rss(&server)? - before) / args.znodes as f64;
    let note = format!(
        "{} znodes, {PATH_BYTES}-byte paths, 100 bytes of data, {} parents",
        args.znodes, args.parents
    );
    Ok(vec![
        Row::new("znode-memory", vec![each], Unit::Bytes, 260.0).with_note(note),
        Row::new(
            "fill-time",
            vec![as_f64(span.elapsed_ns())],
            Unit::Time,
            2.5e9,
        )
        .with_note("one connection, 256 deep"),
    ])
}

/// Measures the memory of idle sessions, and the CPU time of their heartbeats.
fn sessions(args: &Args) -> Result<Vec<Row>, Error> {
    expect_files(args.sessions + 100)?;
    let server = args.measured.start()?;
    let warm = Driver::connect(server.addr, 1, false)?;
    thread::sleep(SETTLE);
    let before = rss(&server)?;
    let mut driver = Driver::connect(server.addr, args.sessions, false)?;
    thread::sleep(SETTLE);
    let each = (rss(&server)? - before) / args.sessions as f64;
    let share = heartbeats(args, &server, &mut driver)?;
    drop((warm, server, driver));
    let echo = args.measured.start_own(&["echo"])?;
    let mut driver = Driver::connect(echo.addr, args.sessions, false)?;
    let floor = Spread::of(&heartbeats(args, &echo, &mut driver)?);
    let floor = floor.map_or(0.0, |floor| floor.median);
    let note = format!("{} idle sessions", args.sessions);
    Ok(vec![
        Row::new("session-memory", vec![each], Unit::Bytes, 1024.0).with_note(note),
        Row::new("heartbeats", share, Unit::Percent, 0.02).with_note(format!(
            "of a core, each session pings every {} s; echo: {}",
            args.ping_interval_s,
            Unit::Percent.text(floor)
        )),
    ])
}

/// Returns the share of a core that a server spends on pings, one reading per round.
fn heartbeats(args: &Args, server: &Server, driver: &mut Driver) -> Result<Vec<f64>, Error> {
    let pid = server.pid.expect("the server was started here");
    let rate = args.sessions as f64 / f64::from(args.ping_interval_s);
    let mut frame = Vec::new();
    Request::Ping.encode(Xid::PING, &mut frame);
    let mut ping = |_: usize, _: Xid, out: &mut Vec<u8>| {
        put_frame(&frame, Xid::PING, out);
        Some(Kind::Ping)
    };
    let mut shares = Vec::new();
    for _ in 0..args.rounds {
        let before = process::cpu_ns(pid)?;
        let mut recorder = Recorder::default();
        let pace = Pace::Open { rate, depth: 1 };
        let span = driver.run(&mut ping, pace, Some(HEARTBEATS), &mut recorder)?;
        recorder.expect_no_errors("pinging")?;
        let used = process::cpu_ns(pid)?.saturating_sub(before);
        shares.push(as_f64(used) / as_f64(span.elapsed_ns()));
    }
    Ok(shares)
}

/// Measures the growth of the resident memory by data watches.
fn watches(args: &Args) -> Result<Vec<Row>, Error> {
    const CONNECTIONS: usize = 10;
    const ZNODES: usize = 100_000;
    let server = args.measured.start()?;
    let mut client = Client::connect(server.addr)?;
    create(&mut client, "/watched")?;
    let mut driver = Driver::connect(server.addr, CONNECTIONS, false)?;
    let mut births = Counting::new(Kind::Create, "/watched/", 7, &mix::data(100));
    let mut watch = Counting::new(Kind::Exists, "/watched/", 7, &Bytes::new()).watching();
    let mut dealt = [0; CONNECTIONS];
    let mut born = |at: usize, xid: Xid, out: &mut Vec<u8>| {
        if at > 0 || dealt[at] == ZNODES {
            return None;
        }
        dealt[at] += 1;
        Some(births.deal(dealt[at] - 1, xid, out))
    };
    let pace = Pace::Closed { depth: 128 };
    let mut recorder = Recorder::default();
    driver.run(&mut born, pace, None, &mut recorder)?;
    recorder.expect_no_errors("creating znodes")?;
    thread::sleep(SETTLE);
    let before = rss(&server)?;
    let mut dealt = [0; CONNECTIONS];
    let mut watched = |at: usize, xid: Xid, out: &mut Vec<u8>| {
        if dealt[at] == ZNODES {
            return None;
        }
        dealt[at] += 1;
        Some(watch.deal(dealt[at] - 1, xid, out))
    };
    let mut recorder = Recorder::default();
    let span = driver.run(&mut watched, pace, None, &mut recorder)?;
    recorder.expect_no_errors("setting watches")?;
    thread::sleep(SETTLE);
    let each = (rss(&server)? - before) / (CONNECTIONS * ZNODES) as f64;
    let row = Row::new("watch-memory", vec![each], Unit::Bytes, 80.0);
    Ok(vec![row.with_note(format!(
        "{CONNECTIONS} connections x {ZNODES} znodes, set in {}",
        duration_ns(as_f64(span.elapsed_ns()))
    ))])
}

/// Measures one change to a znode that many connections watch, against one thread that writes as
/// many frames.
fn fan_out(args: &Args) -> Result<Vec<Row>, Error> {
    expect_files(2 * args.watchers + 100)?;
    let server = args.measured.start()?;
    create(&mut Client::connect(server.addr)?, FAN_OUT_PATH)?;
    let watchers = args.watchers.to_string();
    let floor = ["footprint", "--fan-out-floor", &watchers];
    let floor = args.measured.start_own(&floor)?;
    // The last connection is the writer.
    let mut watching = Driver::connect(server.addr, args.watchers + 1, false)?;
    let mut listening = Driver::connect(floor.addr, args.watchers + 1, false)?;
    let (mut ratios, mut times, mut floors, mut replies) = (vec![], vec![], vec![], vec![]);
    for _ in 0..args.rounds {
        let (floor_ns, _) = change(args, &mut listening)?;
        arm(args, &mut watching)?;
        let (time_ns, reply_ns) = change(args, &mut watching)?;
        ratios.push(time_ns / floor_ns);
        times.push(time_ns);
        floors.push(floor_ns);
        replies.push(reply_ns);
    }
    // Stop the servers first: the side that closes first keeps the port busy for a minute.
    drop((server, floor));
    let early = replies
        .iter()
        .zip(&times)
        .filter(|(reply, end)| reply < end);
    let early = format!("{} of {} replies came before", early.count(), args.rounds);
    let time = |name, values| Row::new(name, values, Unit::Time, 0.0).without_goal();
    Ok(vec![
        Row::new("fan-out", ratios, Unit::Ratio, 1.15).with_note(format!(
            "{} watchers, time to the last event / floor",
            args.watchers
        )),
        time("fan-out-time", times).with_note("sending the change to reading the last event"),
        time("fan-out-floor", floors).with_note("one thread writing as many frames"),
        time("fan-out-reply", replies).with_note(format!("writer's reply; {early} the last event")),
    ])
}

/// Sets a watch from every connection but the writer's.
pub(crate) fn arm(args: &Args, driver: &mut Driver) -> Result<(), Error> {
    let mut dealt = vec![false; args.watchers];
    let mut frame = Vec::new();
    let path = Some(FAN_OUT_PATH.into());
    Request::Exists { path, watch: true }.encode(Xid(0), &mut frame);
    let mut watch = |at: usize, xid: Xid, out: &mut Vec<u8>| {
        let armed = dealt.get_mut(at).filter(|armed| !**armed)?;
        *armed = true;
        put_frame(&frame, xid, out);
        Some(Kind::Exists)
    };
    let mut recorder = Recorder::default();
    driver.run(&mut watch, Pace::Closed { depth: 1 }, None, &mut recorder)?;
    recorder.expect_no_errors("setting watches")
}

/// Sends one change. Returns the times to the last event and to the reply, in nanoseconds.
pub(crate) fn change(args: &Args, driver: &mut Driver) -> Result<(f64, f64), Error> {
    let mut frame = Vec::new();
    request(Kind::Set, FAN_OUT_PATH, &mix::data(100)).encode(Xid(0), &mut frame);
    let mut sent = false;
    let mut set = |at: usize, xid: Xid, out: &mut Vec<u8>| {
        if at < args.watchers || std::mem::replace(&mut sent, true) {
            return None;
        }
        put_frame(&frame, xid, out);
        Some(Kind::Set)
    };
    let mut recorder = Recorder::default();
    let span = driver.run(&mut set, Pace::Closed { depth: 1 }, None, &mut recorder)?;
    recorder.expect_no_errors("changing the watched znode")?;
    driver.collect_events(args.watchers as u64, &mut recorder)?;
    Ok((
        as_f64(recorder.last_event_ns - span.start_ns),
        as_f64(recorder.last_reply_ns - span.start_ns),
    ))
}

pub(crate) fn create(client: &mut Client, path: &str) -> Result<(), Error> {
    let (header, _) = client.call(&request(Kind::Create, path, &Bytes::new()))?;
    header.error.map_or(Ok(()), |error| {
        Err(Error::Unexpected(format!(
            "cannot create {path:?}: {error}"
        )))
    })
}

fn rss(server: &Server) -> Result<f64, Error> {
    let pid = server.pid.expect("the server was started here");
    process::rss_bytes(pid).map(as_f64)
}

/// The znode of the fan-out.
pub(crate) const FAN_OUT_PATH: &str = "/fan-out";

/// How long a server may finish its work before its memory is read.
const SETTLE: Duration = Duration::from_millis(200);

/// The length of one reading of the heartbeats' cost.
const HEARTBEATS: Duration = Duration::from_secs(2);
