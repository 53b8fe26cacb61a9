//! Random steps: all operations on few colliding paths, by few connections and identities.

mod requests;

use std::collections::VecDeque;

use super::{history::Step, known::Avoid, side::Side};
use minikeeper_test_kit::random::Random;

use crate::scenario::Line;

/// Names of connections; the last ones are spare, for sessions that move.
const NAMES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

/// How many names there are beyond the connections that are usually open.
const SPARE: usize = 2;

/// A source of steps. The same seed gives the same steps to servers that answer the same.
#[derive(Debug)]
pub struct Generator {
    random: Random,
    steps_left: usize,
    connections: usize,
    /// What the next steps are, whatever chance says.
    planned: VecDeque<String>,
    avoid: Avoid,
    /// What this history is about: some histories do without some things, so that others come
    /// up more often.
    focus: Focus,
}

#[derive(Debug)]
struct Focus {
    acls: bool,
    quotas: bool,
    time: bool,
    bursts: bool,
    /// In thousandths: reads that set a watch.
    watching: usize,
    /// In thousandths: things that happen to connections.
    unrest: usize,
}

impl Generator {
    /// Steps for this many connections.
    ///
    /// # Panics
    /// If there are too many connections to name.
    #[must_use]
    pub fn new(seed: u64, connections: usize, steps: usize, avoid: Avoid) -> Self {
        assert!(
            (1..=NAMES.len() - SPARE).contains(&connections),
            "1 to {} connections",
            NAMES.len() - SPARE
        );
        let mut random = Random::new(seed);
        // The first numbers of neighbouring seeds are alike.
        for _ in 0..8 {
            random.below(2);
        }
        let focus = Focus {
            acls: !avoid.acls && random.chance(500),
            quotas: !avoid.quotas && random.chance(250),
            time: !avoid.time && random.chance(300),
            bursts: true,
            watching: random.pick(&[100, 400, 700]),
            unrest: random.pick(&[5, 20, 60]),
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

    /// Gives the history a quota if it has none yet, for servers that enforce it. Bursts are left
    /// out then, because ZooKeeper may or may not count pending requests.
    pub fn enforce_quotas(&mut self) {
        if !self.focus.quotas {
            self.focus.quotas = true;
            self.planned.extend(quota_steps(&mut self.random));
        }
        self.focus.bursts = false;
    }

    /// The next step, given what the first server has done so far; `None` at the end.
    ///
    /// # Panics
    /// If a generated line is no line of a scenario: a mistake in this file.
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
        if self.random.chance(self.focus.unrest) {
            return vec![self.unrest(side)];
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
                // ZooKeeper may check requests behind a pending setACL by the old list or the new
                // one; and `zxid` in a setWatches is known only after the reply before it.
                .filter(|request| !request.starts_with("setACL"))
                .filter(|request| !request.starts_with("setWatches"))
                .map(|request| format!("{conn} {request}"))
                .collect();
        }
        vec![format!("{conn} {}", self.request())]
    }

    /// Some time; sometimes enough for a clean-up, in portions between which clients ping.
    fn passing_time(&mut self, side: &Side<'_>) -> String {
        let open: Vec<_> = NAMES.iter().filter(|name| side.is_open(name)).collect();
        if !open.is_empty() && self.random.chance(400) {
            // With something in it that is due one day, unless it is set again.
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

    /// A connection for a name that has none.
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

    /// Something that happens to a connection or a session.
    fn unrest(&mut self, side: &Side<'_>) -> String {
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
                // Onto another connection, with the right password or another one.
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
    /// One line of a scenario, without expectation.
    ///
    /// # Errors
    /// When it is none.
    pub fn line(text: &str) -> Result<Self, String> {
        Ok(Self(vec![Line::parse(text)?]))
    }
}
