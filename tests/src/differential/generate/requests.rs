//! The requests of random steps: every operation, on few colliding paths.

use minikeeper_protocol::{OpCode, Xid};

use super::Generator;
use crate::{
    differential::generate_words::{
        ACLS_BAD, ACLS_GOOD, DATA, ODD_PATHS, PLAIN, Plain, QUOTA_DATA,
    },
    scenario::{Env, message, plain_words},
};

impl Generator {
    /// Any request, including malformed ones and those that may close the connection.
    pub(super) fn request(&mut self) -> String {
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

    /// A request with a truncated body.
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
    pub(super) fn plain_request(&mut self) -> String {
        let kind = self.random.pick_weighted(PLAIN);
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
        // Its access list lets clients only read it.
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

    /// A list of paths. Only paths without special characters can stand in a list.
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

    /// An `acl=` option with a leading space, or nothing for the default.
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
        // A null path fails the whole multi.
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
