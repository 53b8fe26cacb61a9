//! Java Curator: whole contests, and contenders in separate processes.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use minikeeper_bench::{
    clock::{Deadline, nanos, now_ns},
    history::{Event, History, What},
    judge::{self, Finding},
    outage,
    peers::{
        Access, Belief, Kind, LockUnderTest,
        curator::{CuratorLock, Order, Program, SESSION_TIMEOUT},
        recipes::Algorithm,
    },
    process::Pin,
    relay::{Relay, Wire},
    report::Outage,
    servers::zookeeper::{Setup, ZooKeeper},
};

use crate::{LIMIT, behaves, ephemerals, recipe, run, server};

fn mutex(server: &ZooKeeper, session_timeout: Duration) -> CuratorLock {
    static PROGRAM: LazyLock<Arc<Program>> = LazyLock::new(|| {
        let program = Program::compile(None);
        Arc::new(program.unwrap_or_else(|error| panic!("{}", error.chain())))
    });
    CuratorLock {
        program: Arc::clone(&PROGRAM),
        pin: Pin::None,
        server: server.name(),
        durability: server.setup().durability(),
        addr: server.addr(),
        kind: Kind::Mutex,
        session_timeout,
    }
}

/// Four contenders, 50 grants.
fn order(resource: &str, kind: Kind) -> Order {
    Order {
        resource: resource.into(),
        kind,
        contenders: 4,
        readers: 0,
        in_turn: true,
        hold: Duration::from_micros(200),
        grants: 50,
        due_ns: Vec::new(),
        limit: LIMIT,
        via: None,
    }
}

/// The times of each contender, in the order asked, granted, releasing, released, repeatedly.
fn rounds(history: &History) -> Vec<Vec<[u64; 4]>> {
    let mut all = Vec::new();
    for contender in 0..u32::try_from(history.sessions.len()).unwrap() {
        let own = |event: &&Event| event.contender == contender;
        let own: Vec<&Event> = history.events.iter().filter(own).collect();
        let rounds = own.chunks(4).map(|round| {
            let whats: Vec<What> = round.iter().map(|event| event.what).collect();
            assert_eq!(
                whats,
                [
                    What::Asked(Access::Exclusive),
                    What::Granted { token: None },
                    What::Releasing,
                    What::Released
                ],
                "contender {contender}"
            );
            let times: Vec<u64> = round.iter().map(|event| event.at_ns).collect();
            <[u64; 4]>::try_from(times).unwrap()
        });
        all.push(rounds.collect());
    }
    all
}

#[test]
fn contest_of_curators_is_a_whole_history() {
    let server = server();
    let mut curator = mutex(&server, SESSION_TIMEOUT).start().unwrap();
    let order = order("contest", Kind::Mutex);
    // The second contest finds its clients connected.
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let before = now_ns();
        let (recorders, cpu_ns) = curator.contest(&order).unwrap();
        let after = now_ns();
        let history = History::of(Kind::Mutex, recorders);
        assert!(cpu_ns > 0);

        let mut distinct = history.sessions.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 4, "{:?}", history.sessions);
        sessions.push(history.sessions.clone());

        let error = curator.clock_error_ns();
        assert!(error < 10_000_000, "clocks compared to {error} ns");
        for event in &history.events {
            assert!(event.at_ns + error >= before, "{event:?} before {before}");
            assert!(event.at_ns <= after + error, "{event:?} after {after}");
        }

        let rounds = rounds(&history);
        let mut holds = Vec::new();
        for [asked, granted, releasing, released] in rounds.iter().flatten().copied() {
            assert!(asked < granted && granted <= releasing && releasing <= released);
            assert!(releasing - granted >= nanos(order.hold));
            holds.push((granted, releasing));
        }
        assert_eq!(holds.len(), 50);
        holds.sort_unstable();
        let overlap = holds.windows(2).find(|pair| pair[0].1 > pair[1].0);
        assert_eq!(overlap, None, "two holders");
        // The first holder waits for the others, so all have asked before the second grant.
        for one in &rounds {
            let [asked, ..] = one.first().expect("each contender gets the lock");
            assert!(*asked < holds[1].0);
        }
    }
    assert_eq!(sessions[0], sessions[1]);

    let alone = Order {
        contenders: 1,
        grants: 20,
        ..order
    };
    let (recorders, _) = curator.contest(&alone).unwrap();
    let history = History::of(Kind::Mutex, recorders);
    assert_eq!(rounds(&history)[0].len(), 20);
    assert_eq!(history.sessions[0], sessions[0][0]);
}

/// Exclusive locks have one holder at a time, shared ones several.
#[test]
fn curators_other_recipes_share_as_much_as_allowed() {
    let server = server();
    let mut curator = mutex(&server, SESSION_TIMEOUT).start().unwrap();
    // A hold that is to meet others lasts far longer than acquiring a lock takes on a busy machine.
    for (name, kind, readers, grants, hold_ms) in [
        ("writers", Kind::ReadWrite, 0, 50, 5),
        ("readers", Kind::ReadWrite, 80, 12, 500),
        ("leases", Kind::Semaphore(3), 0, 12, 500),
    ] {
        let order = Order {
            readers,
            in_turn: false,
            grants,
            hold: Duration::from_millis(hold_ms),
            ..order(name, kind)
        };
        let (recorders, _) = curator.contest(&order).unwrap();
        let history = History::of(kind, recorders);
        let verdict = judge::judge(&history, None);
        let wanted = Finding::Holds {
            checked: usize::try_from(grants).unwrap(),
        };
        assert_eq!(verdict.exclusion, wanted, "{name}: {verdict:?}");
        let mut inside = 0;
        let mut most = 0;
        for event in &history.events {
            match event.what {
                What::Granted { .. } => inside += 1,
                What::Releasing => inside -= 1,
                _ => {}
            }
            most = most.max(inside);
        }
        match name {
            "writers" => assert_eq!(most, 1),
            "readers" => assert!(most > 1),
            _ => assert_eq!(most, 3),
        }
    }
}

#[test]
fn open_loop_of_curators_asks_when_requests_are_due() {
    let server = server();
    let mut curator = mutex(&server, SESSION_TIMEOUT).start().unwrap();
    let due_ns: Vec<u64> = (1..=20).map(|ask| ask * 5_000_000).collect();
    let order = Order {
        in_turn: false,
        hold: Duration::ZERO,
        grants: 20,
        due_ns: due_ns.clone(),
        ..order("open-loop", Kind::Mutex)
    };
    let (recorders, _) = curator.contest(&order).unwrap();
    let history = History::of(Kind::Mutex, recorders);
    let all = |what: What| history.events.iter().filter(move |e| e.what == what);
    let due: Vec<u64> = all(What::Due).map(|event| event.at_ns).collect();
    let since_first: Vec<u64> = due.iter().map(|at_ns| at_ns - due[0]).collect();
    let wanted: Vec<u64> = due_ns.iter().map(|at_ns| at_ns - due_ns[0]).collect();
    assert_eq!(since_first, wanted);
    assert_eq!(all(What::Released).count(), 20);
    let asked = all(What::Asked(Access::Exclusive)).map(|event| event.at_ns);
    assert!(asked.zip(&due).all(|(asked, due)| asked >= *due));
}

#[test]
fn contest_over_a_relay_has_its_own_sessions_and_is_counted() {
    let server = server();
    let relay = Relay::start(server.addr(), Wire::ZooKeeper).unwrap();
    let mut curator = mutex(&server, SESSION_TIMEOUT).start().unwrap();
    let direct = order("direct", Kind::Mutex);
    let (near, _) = curator.contest(&direct).unwrap();
    assert_eq!(relay.traffic().events, Some(0));
    let relayed = Order {
        via: Some(relay.addr),
        ..order("relayed", Kind::Mutex)
    };
    let (far, _) = curator.contest(&relayed).unwrap();
    // One event per hand-over, and nearly all of the 50 grants are hand-overs.
    let events = relay.traffic().events.unwrap();
    assert!((40..=60).contains(&events), "{events} events");
    let sessions = [near, far].map(|recorders| History::of(Kind::Mutex, recorders).sessions);
    assert_ne!(sessions[0], sessions[1]);
}

#[test]
fn contest_ends_at_its_limit_with_the_others_refused() {
    let server = server();
    let mut curator = mutex(&server, SESSION_TIMEOUT).start().unwrap();
    // Each hold lasts longer than half the limit, so at most two fit in.
    let order = Order {
        in_turn: false,
        hold: Duration::from_millis(600),
        grants: 100,
        limit: Duration::from_secs(1),
        ..order("limit", Kind::Mutex)
    };
    let (recorders, _) = curator.contest(&order).unwrap();
    let history = History::of(Kind::Mutex, recorders);
    let count = |what: What| history.events.iter().filter(|e| e.what == what).count();
    let granted = count(What::Granted { token: None });
    assert!((1..=2).contains(&granted), "{history:?}");
    assert_eq!(count(What::Released), granted, "{history:?}");
    // At the limit one contender holds the lock; all others are refused and leave nothing behind.
    let asked = count(What::Asked(Access::Exclusive));
    assert_eq!(count(What::Refused), asked - granted, "{history:?}");
    assert!(count(What::Refused) >= 2, "{history:?}");
    run(async {
        let eyes = recipe(&server, Algorithm::Mutex).client().await.unwrap();
        let left = ephemerals(&eyes, "/bench/limit").await;
        assert!(left.is_empty(), "{left:?}");
    });
}

/// Only the compiler's message helps then.
#[test]
fn class_path_without_curator_fails_with_the_compilers_message() {
    let compiled = Program::compile(Some("/usr/share/java/guava.jar"));
    let text = compiled.unwrap_err().to_string();
    assert!(text.contains("/usr/share/java/guava.jar"), "{text}");
    assert!(text.contains("CuratorFramework"), "{text}");
}

#[test]
fn curators_in_separate_processes_exclude_on_a_real_zookeeper() {
    let server = server();
    let lock = mutex(&server, SESSION_TIMEOUT);
    run(async {
        let eyes = recipe(&server, Algorithm::Mutex).client().await.unwrap();
        behaves(&lock, "processes", &eyes).await;
        let shared = CuratorLock {
            kind: Kind::ReadWrite,
            ..lock
        };
        let refused = shared.contender("processes").await.err().unwrap();
        assert!(refused.to_string().contains("read-write"), "{refused}");
    });
}

#[test]
fn killed_holders_lock_is_granted_after_the_session_timeout_and_not_before() {
    let server = server();
    let timeout = Duration::from_secs(2);
    let lock = mutex(&server, timeout);
    let relay = Relay::start(server.addr(), Wire::ZooKeeper).unwrap();
    let relayed = CuratorLock {
        addr: relay.addr,
        ..lock.clone()
    };
    let relays = [relay];
    let gone = run(outage::run(
        Outage::Killed,
        &lock,
        &relayed,
        &relays,
        LIMIT,
        "killed",
    ));
    let after = gone.unwrap().granted_after.expect("the holder is dead");
    // The server last heard from it at most a third of the time-out ago.
    assert!(
        after >= timeout / 2,
        "{after:?} after the holder was killed"
    );
    // At most one tick later; the rest is for a busy machine.
    let latest = timeout + 2 * Setup::Kindest.tick() + Duration::from_secs(5);
    assert!(after <= latest, "{after:?} after the holder was killed");
}

/// Curator's documentation asks users to treat SUSPENDED as a loss until RECONNECTED.
#[test]
fn cut_off_holder_is_unsure_and_then_learns_of_the_loss() {
    let server = server();
    let relay = Relay::start(server.addr(), Wire::ZooKeeper).unwrap();
    let lock = CuratorLock {
        addr: relay.addr,
        ..mutex(&server, Duration::from_secs(1))
    };
    run(async {
        let mut holder = lock.contender("cut-off").await.unwrap();
        holder.acquire(Access::Exclusive).await.unwrap();
        assert_eq!(holder.belief(), Belief::Held);
        relay.hold();
        for wanted in [Belief::Unsure, Belief::Lost] {
            let deadline = Deadline::new(LIMIT, format!("{wanted:?}"));
            while holder.belief() != wanted {
                deadline.check().unwrap();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        relay.open();
        // After reconnecting, a lost lock stays lost.
        let _ = holder.release().await;
        assert_eq!(holder.belief(), Belief::Lost);
        holder.acquire(Access::Exclusive).await.unwrap();
        assert_eq!(holder.belief(), Belief::Held);
    });
}
