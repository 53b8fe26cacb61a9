//! The judge's verdict on these locks when a holder is away, and on the broken one.

use minikeeper_bench::{
    contest::Contest,
    judge::{Verdict, judge},
    outage,
    peers::{
        redis_set::RedisSet,
        redisson::{Lease, Redisson},
        redlock::Redlock,
    },
    relay::{Relay, Wire},
    report::Outage,
};

use super::{imitation::imitation, redis_set::redis_set, redisson::redisson, *};

/// The verdict on a holder that is away for longer than its lease, and whether its late write was
/// accepted.
async fn away<L: LockUnderTest>(
    outage: Outage,
    servers: &[Redis],
    lock: impl Fn(Vec<SocketAddr>) -> L,
) -> (Verdict, Option<bool>) {
    let relays: Vec<Relay> = servers
        .iter()
        .map(|server| Relay::start(server.addr(), Wire::Redis).unwrap())
        .collect();
    let direct = lock(servers.iter().map(Redis::addr).collect());
    let relayed = lock(relays.iter().map(|relay| relay.addr).collect());
    let gone = outage::run(outage, &direct, &relayed, &relays, SOON, KEY).await;
    let gone = gone.unwrap();
    assert!(
        gone.granted_after.is_some(),
        "{outage:?}: the other contender still waits"
    );
    (judge(&gone.history, None), gone.late_write_accepted)
}

fn redlock(addrs: Vec<SocketAddr>) -> Redlock {
    Redlock {
        server: "5 Redis".into(),
        durability: "",
        addrs,
        ttl: SHORT,
        instance_limit: Duration::from_millis(50),
        extensions_max: 0,
        seed: 1,
    }
}

/// A lease that ends while its holder is paused: no lock without a token can prevent the lost
/// update.
#[test]
fn paused_holder_of_redlock_loses_an_update() {
    run(async {
        let servers = many(5);
        let (verdict, late_write) = away(Outage::Paused, &servers, redlock).await;
        assert_eq!(late_write, Some(true));
        assert!(verdict.exclusion.is_violated(), "{verdict:?}");
        assert!(verdict.fencing.is_violated(), "{verdict:?}");
        assert!(verdict.refusal.is_some());
    });
}

/// It knows its validity, so a holder that asks in time stops in time.
#[test]
fn cut_off_holder_of_redlock_knows() {
    run(async {
        let servers = many(5);
        let (verdict, late_write) = away(Outage::CutOff, &servers, redlock).await;
        assert_eq!(late_write, None);
        assert!(!verdict.exclusion.is_violated(), "{verdict:?}");
    });
}

/// Neither client can report that its key is gone.
#[test]
fn cut_off_holders_of_one_redis_do_not_know() {
    run(async {
        let server = [started()];
        let set = |addrs: Vec<SocketAddr>| RedisSet {
            addr: addrs[0],
            ..redis_set(&server[0], SHORT)
        };
        let (verdict, late_write) = away(Outage::CutOff, &server, set).await;
        assert_eq!(late_write, Some(true), "SET NX PX");
        assert!(verdict.exclusion.is_violated(), "SET NX PX: {verdict:?}");

        let server = [started()];
        let rlock = |addrs: Vec<SocketAddr>| Redisson {
            addr: addrs[0],
            ..redisson(&server[0], Lease::Watched(SHORT))
        };
        let (verdict, _) = away(Outage::CutOff, &server, rlock).await;
        assert!(verdict.exclusion.is_violated(), "RLock: {verdict:?}");
    });
}

/// Defect 1: the second hold of a process has no watchdog, so its lease ends while it is held.
#[test]
fn judge_finds_the_imitation_broken_and_the_original_not() {
    let contest = Contest {
        contenders: 2,
        readers: 0,
        in_turn: false,
        hold: SHORT + Duration::from_millis(300),
        warmup: 0,
        grants: 4,
        limit: SOON,
    };
    run(async {
        let server = started();
        let bad = imitation(&server, SHORT);
        let contested = contest.run(&bad, KEY).await.unwrap();
        let verdict = judge(&contested.history, None);
        assert!(verdict.exclusion.is_violated(), "{verdict:?}");

        let good = redisson(&server, Lease::Watched(SHORT));
        let contested = contest.run(&good, "good").await.unwrap();
        let verdict = judge(&contested.history, None);
        assert!(!verdict.exclusion.is_violated(), "{verdict:?}");
        assert_eq!(verdict.refusal, None);
    });
}
