//! Random steps: all operations on few colliding paths, by few connections and identities.

use std::collections::VecDeque;

use super::{
    generate_words::{ACLS_BAD, ACLS_GOOD, DATA, ODD_PATHS, PLAIN, Plain, QUOTA_DATA},
    history::Step,
    known::Avoid,
    side::Side,
};
use crate::{
    random::Random,
    scenario::{Env, Line, message, plain_words},
};
use minikeeper_protocol::{OpCode, Xid};

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
    /// out then: the original counts what is under way or not, as it happens.
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
                // The original judges what is under way behind a setACL by the old list, or not;
                // and what `zxid` means to a setWatches is known when the answer before it is.
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

    /// A request that may be anything.
    fn request(&mut self) -> String {
        match self.random.below(1_000) {
            0..4 => self
                .random
                .pick(&["raw op=999", "raw op=0", "raw op=-1"])
                .to_owned(),
            4..6 if !self.avoid.check_alone => format!("check {} -1", self.path()),
            6..40 if self.focus.acls => self.auth(),
            40..60 => "sasl \"\"".to_owned(),
            60..80 => self.broken(),
            _ => self.plain_request(),
        }
    }

    fn auth(&mut self) -> String {
        let good = [
            "auth digest \"bob:pw\"",
            "auth digest \"bob:pw\"",
            "auth digest \"alice:pw2\"",
            "auth digest \"bob:other\"",
            "auth digest \"super:secret\"",
            "auth digest \"\"",
            "auth ip \"\"",
            "auth ip null",
        ];
        let bad = [
            "auth digest null",
            "auth world anyone",
            "auth super \"\"",
            "auth nope x",
            "auth null null",
            "auth auth \"\"",
        ];
        let list: &[&str] = if self.random.chance(950) { &good } else { &bad };
        self.random.pick(list).to_owned()
    }

    /// A body cut short.
    fn broken(&mut self) -> String {
        let whole = self.plain_request();
        let words = plain_words(&whole).expect("a generated line");
        let (message, _, op) =
            message(&words, &Env::default(), Xid(1), true).expect("a generated request");
        let Some(op) = op else { return whole };
        let body = &message[8..];
        let kept = self.random.below(body.len().max(1));
        let hex: String = body[..kept]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        if self.avoid.broken_writes && is_write(op) {
            return whole;
        }
        format!("raw op={} body={hex}", op.code())
    }

    /// A well-formed request that leaves its connection open.
    fn plain_request(&mut self) -> String {
        let kind = self.random.pick(PLAIN);
        let path = self.path();
        match kind {
            Plain::Create(op) => self.create(op),
            Plain::Delete => format!("delete {path} {}", self.version()),
            Plain::SetData => {
                let data = self.data(&path);
                format!("setData {path} {data} {}", self.version())
            }
            Plain::Read("exists") if self.focus.acls && self.avoid.exists_with_acls => {
                format!("getData {path}{}", self.watch())
            }
            Plain::Read(op) => format!("{op} {path}{}", self.watch()),
            Plain::GetAcl => format!("getACL {path}"),
            Plain::SetAcl => {
                let acl = self.acl();
                format!("setACL {path}{acl} {}", self.version())
            }
            Plain::Sync => format!("sync {path}"),
            Plain::Ephemerals => {
                let prefix = ["null", "\"\"", "/", "/a", "/a/x", "/b", "\" \""];
                format!("getEphemerals {}", self.random.pick(&prefix))
            }
            Plain::Count => format!("getAllChildrenNumber {path}"),
            Plain::Multi => self.multi(),
            Plain::MultiRead => self.multi_read(),
            Plain::AddWatch => self.add_watch(&path),
            Plain::Watches(op) => self.watches(op, &path),
            Plain::SetWatches => self.set_watches(),
            Plain::Other("whoAmI") if self.avoid.acls => "ping".to_owned(),
            Plain::Other(text) => text.to_owned(),
        }
    }

    fn path(&mut self) -> String {
        let path = self.any_path();
        // It may be read by everybody and changed by nobody.
        if self.avoid.acls && path == "/zookeeper/config" {
            return "/".to_owned();
        }
        path
    }

    fn any_path(&mut self) -> String {
        let top = self.random.pick(&["/a", "/a", "/b", "/c"]);
        match self.random.below(100) {
            0..55 => top.to_owned(),
            55..78 => format!("{top}/{}", self.random.pick(&["x", "y"])),
            78..85 => format!("{top}/x/{}", self.random.pick(&["1", "2"])),
            85..90 => self
                .random
                .pick(&["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"])
                .to_owned(),
            90..95 if self.focus.quotas => self
                .random
                .pick(&[
                    "/zookeeper/quota/a/zookeeper_stats",
                    "/zookeeper/quota/a/zookeeper_limits",
                    "/zookeeper/quota/a",
                ])
                .to_owned(),
            90..96 => "/a/x".to_owned(),
            _ => self.random.pick(ODD_PATHS).to_owned(),
        }
    }

    /// For lists, which cannot hold every path.
    fn listed_paths(&mut self) -> String {
        let count = self.random.below(3);
        let paths: Vec<_> = (0..count)
            .map(|_| {
                self.random
                    .pick(&["/a", "/b", "/c", "/a/x", "/b/y", "/", "/zookeeper", "odd"])
            })
            .collect();
        format!("[{}]", paths.join(","))
    }

    fn data(&mut self, path: &str) -> &'static str {
        if path.contains("/zookeeper_") {
            return self.random.pick(QUOTA_DATA);
        }
        self.random.pick(DATA)
    }

    fn version(&mut self) -> i32 {
        self.random.pick(&[-1, -1, -1, 0, 0, 1, 2, -2, 5])
    }

    fn watch(&mut self) -> &'static str {
        if self.random.chance(self.focus.watching) {
            " watch"
        } else {
            ""
        }
    }

    /// With a space in front, unless it is the usual one.
    fn acl(&mut self) -> String {
        let share = if self.focus.acls { 350 } else { 30 };
        if self.avoid.acls || !self.random.chance(share) {
            return String::new();
        }
        if !self.focus.acls || self.random.chance(150) {
            return format!(" acl={}", self.random.pick(ACLS_BAD));
        }
        let list = self.random.pick(ACLS_GOOD);
        if !self.avoid.ipv6 && self.random.chance(20) {
            return format!(" acl=[{list},1@ip:::1/64]");
        }
        format!(" acl=[{list}]")
    }

    fn create(&mut self, op: &str) -> String {
        let path = self.path();
        let (data, acl) = (self.data(&path), self.acl());
        let modes: &[&str] = match op {
            "createContainer" => &[
                "container",
                "container",
                "container",
                "persistent",
                "flags=9",
            ],
            "createTTL" => &[
                "ttl",
                "ttl",
                "ttl",
                "ttl_sequential",
                "persistent",
                "flags=9",
            ],
            _ => &[
                "persistent",
                "persistent",
                "persistent",
                "ephemeral",
                "ephemeral",
                "sequential",
                "ephemeral_sequential",
                "container",
                "ttl",
                "flags=7",
                "flags=-1",
            ],
        };
        let mode = self.random.pick(modes);
        let mut line = format!("{op} {path} {data} {mode}{acl}");
        if op == "createTTL" {
            let ttl = [
                1_000,
                5_000,
                20_000,
                70_000,
                70_000,
                0,
                1 << 40,
                (1 << 40) - 1,
            ];
            line += &format!(" ttl_ms={}", self.random.pick::<i64>(&ttl));
        }
        line
    }

    fn multi(&mut self) -> String {
        let count = self.random.below(5);
        let ops: Vec<_> = (0..count).map(|_| self.multi_op()).collect();
        format!("multi {{ {} }}", ops.join(" ; ")).replace("{  }", "{ }")
    }

    fn multi_op(&mut self) -> String {
        let path = self.path();
        // Rather paths that may work, or nearly every multi fails.
        let path = if path == "null" {
            "/a".to_owned()
        } else {
            path
        };
        let version = self.random.pick(&[-1, -1, -1, 0]);
        match self.random.below(10) {
            0..5 => {
                let op = self
                    .random
                    .pick(&["create", "create", "create2", "createContainer"]);
                let modes: &[&str] = if op == "createContainer" {
                    &["container"]
                } else {
                    &[
                        "persistent",
                        "persistent",
                        "ephemeral",
                        "sequential",
                        "ephemeral_sequential",
                    ]
                };
                let mode = self.random.pick(modes);
                let mode = if self.avoid.odd_flags_in_multi || !self.random.chance(20) {
                    mode
                } else {
                    self.random.pick(&["container", "ttl", "flags=9"])
                };
                let acl = if self.random.chance(60) {
                    self.acl()
                } else {
                    String::new()
                };
                let acl = if self.avoid.odd_flags_in_multi && acl.contains("null") {
                    String::new()
                } else {
                    acl
                };
                format!("{op} {path} {} {mode}{acl}", self.data(&path))
            }
            5 | 6 => format!("delete {path} {version}"),
            7 | 8 => format!("setData {path} {} {version}", self.data(&path)),
            _ => format!("check {path} {version}"),
        }
    }

    fn multi_read(&mut self) -> String {
        let count = self.random.below(4);
        let ops: Vec<_> = (0..count)
            .map(|_| {
                let op = self.random.pick(&["getData", "getChildren"]);
                format!("{op} {}{}", self.path(), self.watch())
            })
            .collect();
        format!("multiRead {{ {} }}", ops.join(" ; ")).replace("{  }", "{ }")
    }

    fn add_watch(&mut self, path: &str) -> String {
        let path = if path == "null" { "/a" } else { path };
        if self.avoid.mixed_watch_modes {
            return format!("getData {path}");
        }
        let mode = self.random.pick(&[
            "persistent",
            "persistent",
            "recursive",
            "recursive",
            "2",
            "-1",
        ]);
        format!("addWatch {path} {mode}")
    }

    fn watches(&mut self, op: &str, path: &str) -> String {
        let path = if path == "null" { "/a" } else { path };
        if self.avoid.check_watches && op == "checkWatches" {
            return format!("getData {path}");
        }
        let kinds: &[&str] = if self.avoid.watcher_types_4_5 {
            &["children", "data", "any"]
        } else {
            &[
                "children",
                "data",
                "any",
                "persistent",
                "recursive",
                "0",
                "6",
            ]
        };
        format!("{op} {path} {}", self.random.pick(kinds))
    }

    fn set_watches(&mut self) -> String {
        let since = ["zxid", "zxid-1", "zxid-3", "zxid-10", "zxid+2", "0"];
        let since = self.random.pick(&since);
        let mut list = |name| format!(" {name}={}", self.listed_paths());
        let one_shot = [list("data"), list("exist"), list("child")].concat();
        let lasting = [list("persistent"), list("recursive")].concat();
        if self.avoid.mixed_watch_modes || self.random.chance(500) {
            return format!("setWatches since={since}{one_shot}");
        }
        format!("setWatches2 since={since}{one_shot}{lasting}")
    }
}

const fn is_write(op: OpCode) -> bool {
    matches!(
        op,
        OpCode::Create
            | OpCode::Create2
            | OpCode::CreateContainer
            | OpCode::CreateTtl
            | OpCode::Delete
            | OpCode::SetData
            | OpCode::SetAcl
            | OpCode::Multi
            | OpCode::Reconfig
    )
}

/// Sets a quota on /a, as the original's command line does.
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
