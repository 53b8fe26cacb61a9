//! Random steps: all operations on few colliding paths, by few connections and identities.

mod requests;

use std::collections::VecDeque;

use super::{history::Step, known::Avoid, side::Side};
use minikeeper_test_kit::random::Random;

use crate::scenario::Line;

/// Names of connections. The last ones are spare, for sessions that move.
const NAMES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

/// The number of spare names, beyond the connections that are usually open.
const SPARE: usize = 2;

/// Generates steps. The same seed yields the same steps for servers with the same replies.
#[derive(Debug)]
pub struct Generator {
    random: Random,
    steps_left: usize,
    connections: usize,
    /// Fixed next steps, before any random ones.
    planned: VecDeque<String>,
    avoid: Avoid,
    /// The subset of operations in this history: leaving some out makes the others more frequent.
    focus: Focus,
}

#[derive(Debug)]
struct Focus {
    acls: bool,
    quotas: bool,
    time: bool,
    bursts: bool,
    /// Reads that set a watch, in thousandths.
    watching: usize,
    /// Steps that reconnect, disconnect or expire, in thousandths.
    churn: usize,
}

impl Generator {
    /// Creates a generator of `steps` steps for this many connections.
    ///
    /// # Panics
    /// If `connections` is 0 or exceeds the names.
    #[must_use]
    pub fn new(seed: u64, connections: usize, steps: usize, avoid: Avoid) -> Self {
        assert!(
            (1..=NAMES.len() - SPARE).contains(&connections),
            "1 to {} connections",
            NAMES.len() - SPARE
        );
        let mut random = Random::new(seed);
        // The first random numbers of consecutive seeds are similar.
        for _ in 0..8 {
            random.below(2);
        }
        let focus = Focus {
            acls: !avoid.acls && random.chance(500),
            quotas: !avoid.quotas && random.chance(250),
            time: !avoid.time && random.chance(300),
            bursts: true,
            watching: random.pick(&[100, 400, 700]),
            churn: random.pick(&[5, 20, 60]),
        };
        let mut planned: VecDeque<String> = NAMES[..connections]
            .iter()
            .map(|name| format!("connect {name} timeout=20000"))
            .collect();
        if focus.quotas {
            planned.extend(quota_steps(&mut random));
        }
        Self {
            random,
            steps_left: steps,
            connections,
            planned,
            avoid,
            focus,
        }
    }

    /// Adds a quota, for servers that enforce it, unless the history has one. Removes bursts,
    /// because ZooKeeper may or may not count pending requests.
    pub fn enforce_quotas(&mut self) {
        if !self.focus.quotas {
            self.focus.quotas = true;
            self.planned.extend(quota_steps(&mut self.random));
        }
        self.focus.bursts = false;
    }

    /// Returns the next step, given the state of the first server; `None` at the end.
    ///
    /// # Panics
    /// If a generated line does not parse, which is a bug in this file.
    pub fn next(&mut self, side: &Side<'_>) -> Option<Step> {
        let lines = if let Some(line) = self.planned.pop_front() {
            vec![line]
        } else if self.steps_left == 0 {
            return None;
        } else {
            self.steps_left -= 1;
            self.lines(side)
        };
        Some(Step::parse(&lines).unwrap_or_else(|fault| panic!("generated: {fault}")))
    }

    fn lines(&mut self, side: &Side<'_>) -> Vec<String> {
        if self.random.chance(self.focus.churn) {
            return vec![self.churn(side)];
        }
        if self.focus.time && self.random.chance(25) {
            return vec![self.passing_time(side)];
        }
        let open: Vec<_> = NAMES.iter().filter(|name| side.is_open(name)).collect();
        if open.len() < self.connections {
            return vec![self.connect(side)];
        }
        let conn = self.random.pick(&open);
        if self.focus.bursts && self.random.chance(100) {
            let count = 2 + self.random.below(9);
            return (0..count)
                .map(|_| self.plain_request())
                // ZooKeeper may check requests after a pending setACL against the old or the new
                // list; and the `zxid` of a setWatches is known only after the reply before it.
                .filter(|request| !request.starts_with("setACL"))
                .filter(|request| !request.starts_with("setWatches"))
                .map(|request| format!("{conn} {request}"))
                .collect();
        }
        vec![format!("{conn} {}", self.request())]
    }

    /// Advances the clock; sometimes far enough for a clean-up, in portions with pings between
    /// them.
    fn passing_time(&mut self, side: &Side<'_>) -> String {
        let open: Vec<_> = NAMES.iter().filter(|name| side.is_open(name)).collect();
        if !open.is_empty() && self.random.chance(400) {
            // A TTL znode, which will expire unless its data is set again.
            let conn = self.random.pick(&open);
            let ttl_ms = self.random.pick(&[20_000, 40_000, 70_000]);
            let create = format!("{conn} createTTL /ttl \"\" ttl ttl_ms={ttl_ms}");
            self.planned.push_back(create);
            for _ in 0..5 {
                let pings = open.iter().map(|name| format!("{name} ping"));
                self.planned.extend(pings);
                if self.random.chance(300) {
                    self.planned
                        .push_back(format!("{conn} setData /ttl \"\" -1"));
                }
                self.planned.push_back("advance 15000ms".to_owned());
            }
        }
        let by_ms = self.random.pick(&[400, 1_000, 3_000, 6_000]);
        format!("advance {by_ms}ms")
    }

    /// Connects a name that has no connection.
    fn connect(&mut self, side: &Side<'_>) -> String {
        let names = &NAMES[..self.connections + SPARE];
        let free: Vec<_> = names.iter().filter(|name| !side.is_open(name)).collect();
        let name = self.random.pick(&free);
        let known: Vec<_> = names.iter().filter(|name| side.has_session(name)).collect();
        let mut line = format!("connect {name}");
        if !known.is_empty() && self.random.chance(600) {
            line += &format!(" session={}", self.random.pick(&known));
            if self.random.chance(100) {
                line += &format!(" password={}", self.random.pick(&["wrong", "null", "long"]));
            }
        } else if self.random.chance(20) {
            line += " session=0x1234";
        }
        let timeout = [
            20_000,
            20_000,
            20_000,
            10_000,
            5_000,
            2_000,
            0,
            -1,
            i32::MAX,
        ];
        line += &format!(" timeout={}", self.random.pick(&timeout));
        if self.random.chance(50) {
            line += " readonly=yes";
        } else if self.random.chance(50) {
            line += " readonly=none";
        }
        if self.random.chance(100) {
            let seen = ["zxid", "zxid-1", "zxid+1", "zxid+1000", "-5"];
            line += &format!(" seen={}", self.random.pick(&seen));
        }
        line
    }

    /// Reconnects, disconnects, closes, expires or moves a session.
    fn churn(&mut self, side: &Side<'_>) -> String {
        let names = &NAMES[..self.connections + SPARE];
        let open: Vec<_> = names.iter().filter(|name| side.is_open(name)).collect();
        let known: Vec<_> = names.iter().filter(|name| side.has_session(name)).collect();
        if open.is_empty() || known.is_empty() {
            return self.connect(side);
        }
        let conn = self.random.pick(&open);
        match self.random.below(8) {
            0 | 1 => format!("reconnect {conn}"),
            2 => format!("disconnect {conn}"),
            3 => format!("{conn} closeSession"),
            4 | 5 => format!("expire {}", self.random.pick(&known)),
            _ => {
                // Moves the session to another connection, sometimes with a wrong password.
                let free: Vec<_> = names.iter().filter(|name| !side.is_open(name)).collect();
                if free.is_empty() {
                    return format!("disconnect {conn}");
                }
                let name = self.random.pick(&free);
                let wrong = if self.random.chance(300) {
                    " password=wrong"
                } else {
                    ""
                };
                format!("connect {name} session={conn} timeout=20000{wrong}")
            }
        }
    }
}

/// Sets a quota on /a, as ZooKeeper's command line does.
fn quota_steps(random: &mut Random) -> Vec<String> {
    let limits = random.pick(&[
        "count=3,bytes=10=;byteHardLimit=-1;countHardLimit=-1",
        "count=-1,bytes=-1=;byteHardLimit=30;countHardLimit=3",
        "count=2,bytes=5",
    ]);
    let mut steps = vec!["a create /a \"\"".to_owned()];
    steps.push("a create /zookeeper/quota/a \"\"".to_owned());
    steps.push(format!(
        "a create /zookeeper/quota/a/zookeeper_limits {limits}"
    ));
    steps.push("a create /zookeeper/quota/a/zookeeper_stats \"count=1,bytes=0\"".to_owned());
    steps
}

impl Step {
    /// Parses one line of a scenario, without expectation.
    ///
    /// # Errors
    /// When the line does not parse.
    pub fn line(text: &str) -> Result<Self, String> {
        Ok(Self(vec![Line::parse(text)?]))
    }
}
