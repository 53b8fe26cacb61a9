//! Random requests on few colliding paths, decided by bytes: random ones, or those of a fuzzer.

use bytes::Bytes;
use minikeeper_protocol::{
    Acl, AclList, Create, CreateOp, MultiOp, MultiReadOp, Perms, Request, Ustring, Zxid,
};

/// Credentials, with the identities that a live ZooKeeper makes of them. The last is the superuser's.
pub const LOGINS: [(&str, &str); 3] = [
    ("bob:pw", "bob:ikIaKsbtGweaHnb/jKn7OHqbunM="),
    ("alice:pw2", "alice:mrY6TCPT2kWwYMqBxXWkQ9n4Hms="),
    ("super:secret", "super:lK75jTNcA+U9vtVEw5vB51mj/w4="),
];

/// The number of slots of kinds: a kind has as many as its frequency.
pub const KINDS: u8 = 54;

/// The first kinds, which neither end the session nor change who the client is, nor move its watches.
pub const LASTING_KINDS: u8 = 47;

/// All paths, between spaces, many of them malformed.
const PATHS: &str = "/ /a /b /a/b /a/c /a/b/c /a/s /a/s0000000000 /a/s0000000001 /zookeeper /zookeeper/quota \
    /zookeeper/q /b/c /ab /é /e /e/x /s /s0000000000 /s0000000001 /s0000000002 /a/0000000000 /a/0000000001 /missing/s \
    /missing/x /missing/  a a/b /a/ // /a//b /a/. /a/../b a\0 /a\0 /a\u{7f} /\u{e000} /\u{ffff}";

/// The paths that most requests use.
const FREQUENT: [&str; 16] = [
    "/a", "/a", "/a", "/a", "/a", "/b", "/b", "/b", "/a/b", "/a/b", "/a/b", "/a/c", "/b/c",
    "/a/b/c", "/s", "/a/s",
];

/// The znodes of a quota.
const QUOTA: [&str; 3] = [
    "/zookeeper/quota/a",
    "/zookeeper/quota/a/zookeeper_limits",
    "/zookeeper/quota/a/zookeeper_stats",
];

/// Generates requests.
#[derive(Debug)]
pub struct Requests<F> {
    next: F,
    is_hostile: bool,
    is_whole: bool,
}

impl<F: FnMut() -> u8> Requests<F> {
    /// Creates a generator that `next` decides.
    pub const fn new(next: F) -> Self {
        Self {
            next,
            is_hostile: false,
            is_whole: false,
        }
    }

    /// Adds quotas, and tokens and credentials of random bytes.
    #[must_use]
    pub const fn hostile(mut self) -> Self {
        self.is_hostile = true;
        self
    }

    /// Leaves out null paths and access lists, and null ids.
    #[must_use]
    pub const fn whole(mut self) -> Self {
        self.is_whole = true;
        self
    }

    /// Returns the next byte.
    pub fn byte(&mut self) -> u8 {
        (self.next)()
    }

    /// Returns an element of a list, which must not be empty.
    pub fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[usize::from(self.byte()) % list.len()].clone()
    }

    /// Returns fewer than `end` bytes.
    pub fn bytes(&mut self, end: u8) -> Vec<u8> {
        self.list(end, Self::byte)
    }

    fn flag(&mut self) -> bool {
        self.byte().is_multiple_of(2)
    }

    fn list<T>(&mut self, end: u8, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.byte() % end).map(|_| one(self)).collect()
    }

    /// Returns a request of a kind below [`KINDS`].
    pub fn request(&mut self, kind: u8) -> Request {
        match kind {
            0..=7 => Request::Create(self.create()),
            8..=12 => Request::Delete {
                path: self.path(),
                version: self.version(),
            },
            13..=16 => Request::SetData {
                path: self.path(),
                data: self.data(),
                version: self.version(),
            },
            17..=19 => Request::Exists {
                path: self.path(),
                watch: self.flag(),
            },
            20..=22 => Request::GetData {
                path: self.path(),
                watch: self.flag(),
            },
            23..=24 => Request::GetChildren {
                path: self.path(),
                watch: self.flag(),
            },
            25 => Request::GetChildren2 {
                path: self.path(),
                watch: self.flag(),
            },
            26 => Request::GetAcl { path: self.path() },
            27 => Request::SetAcl {
                path: self.path(),
                acl: self.acl(64),
                version: self.version(),
            },
            28 => Request::Sync { path: self.path() },
            29 => Request::GetEphemerals {
                prefix: self.path(),
            },
            30 => Request::GetAllChildrenNumber { path: self.path() },
            31..=34 => Request::AddWatch {
                path: self.path(),
                mode: i32::from(self.byte() % 3),
            },
            35 => Request::CheckWatches {
                path: self.path(),
                kind: i32::from(self.byte() % 7),
            },
            36..=37 => Request::RemoveWatches {
                path: self.path(),
                kind: i32::from(self.byte() % 7),
            },
            38..=45 => Request::Multi(self.list(6, Self::multi_op)),
            46 => Request::MultiRead(self.list(4, Self::multi_read_op)),
            47..=48 => Request::SetWatches2 {
                relative_zxid: self.seen(),
                data: self.paths(),
                exist: self.paths(),
                child: self.paths(),
                persistent: self.paths(),
                persistent_recursive: self.paths(),
            },
            49 => Request::SetWatches {
                relative_zxid: self.seen(),
                data: self.paths(),
                exist: self.paths(),
                child: self.paths(),
            },
            50 => self.pick(&[
                Request::CloseSession,
                Request::WhoAmI,
                Request::CreateSession,
                Request::Reconfig {
                    joining: None,
                    leaving: None,
                    members: None,
                    config_id: -1,
                },
            ]),
            51 => Request::Sasl {
                token: Some(self.secret(64)),
            },
            52 => self.auth(),
            _ => match self.flag() {
                true => Request::Ping,
                false => self.auth(),
            },
        }
    }

    fn auth(&mut self) -> Request {
        let [bob, alice, admin] = LOGINS.map(|(login, _)| ("digest", Some(login)));
        let odd = [
            ("digest", None),
            ("ip", Some("")),
            ("world", Some("anyone")),
            ("x509", Some("CN=a")),
        ];
        let (scheme, data) = match self.byte() {
            choice @ 0..216 => [bob, alice, admin][usize::from(choice % 3)],
            choice => odd[usize::from(choice % 4)],
        };
        let data = data.map(|data| Bytes::from_static(data.as_bytes()));
        let scheme = Some(scheme.into());
        let data = match self.is_hostile && self.flag() {
            true => Some(self.secret(16)),
            false => data,
        };
        Request::Auth {
            kind: 0,
            scheme,
            data,
        }
    }

    /// Fewer than `end` bytes if they are hostile, otherwise none.
    fn secret(&mut self, end: u8) -> Bytes {
        match self.is_hostile {
            true => self.bytes(end).into(),
            false => Bytes::new(),
        }
    }

    fn path(&mut self) -> Option<Ustring> {
        let choice = usize::from(self.byte());
        let path = match choice {
            240.. if self.is_hostile => QUOTA[choice % QUOTA.len()],
            125..=130 if !self.is_whole => return None,
            _ => (PATHS.split(' ').nth(choice)).unwrap_or(FREQUENT[choice % FREQUENT.len()]),
        };
        Some(path.into())
    }

    fn paths(&mut self) -> Vec<Ustring> {
        self.list(3, Self::path).into_iter().flatten().collect()
    }

    fn version(&mut self) -> i32 {
        self.pick(&[-1, -1, -1, 0, 1, 2, -2, i32::MAX, -1, -1, -1, 0, 0, 1])
    }

    /// A zxid that a client has seen.
    fn seen(&mut self) -> Zxid {
        Zxid(i64::from(self.byte() % 32) - 1)
    }

    fn data(&mut self) -> Option<Bytes> {
        match self.byte() {
            240.. if self.is_hostile => {
                Some(Bytes::from_static(b"count=2,bytes=9=;byteHardLimit=50"))
            }
            choice if choice % 16 == 8 => Some(Bytes::new()),
            choice if choice % 8 == 0 => None,
            choice => Some(vec![choice; usize::from(choice % 8 * 20)].into()),
        }
    }

    /// An access list, which lets all clients do everything with a probability of `open` / 256.
    fn acl(&mut self, open: u8) -> AclList {
        let entry = |perms: i32, scheme: &str, id: Option<&str>| Acl {
            perms: Perms(perms),
            scheme: Some(scheme.into()),
            id: id.map(Into::into),
        };
        let world = |perms| entry(perms, "world", Some("anyone"));
        let digest = entry(1, "digest", Some("bob:x"));
        let [bob, alice, _] = LOGINS.map(|(_, identity)| entry(31, "digest", Some(identity)));
        let lists = [
            vec![digest.clone()],
            vec![world(31), digest, world(31)],
            vec![entry(-1, "ip", Some("127.0.0.1"))],
            vec![entry(13, "ip", Some("127.0.0.0/8")), bob.clone()],
            vec![world(16), alice.clone()],
            vec![world(30), bob, alice],
            vec![entry(31, "super", Some(""))],
            vec![entry(31, "world", Some("foo"))],
            vec![entry(31, "auth", Some(""))],
            vec![entry(31, "digest", Some("bob"))],
            vec![],
            vec![world(1), entry(31, "auth", None)],
            vec![entry(31, "world", None)],
        ];
        let lists = match self.is_whole {
            true => &lists[..11],
            false => &lists[..],
        };
        match self.byte() {
            choice if choice < open => AclList::world_all(),
            253.. if !self.is_whole => AclList::null(),
            // The first six, which are valid, come twice.
            choice => AclList::new(&lists[usize::from(choice) % (lists.len() + 6) % lists.len()]),
        }
    }

    fn create(&mut self) -> Create {
        let op = match self.byte() % 12 {
            2 => CreateOp::Container,
            3 => CreateOp::Ttl,
            choice => [CreateOp::Create, CreateOp::Create2][usize::from(choice % 2)],
        };
        Create {
            op,
            path: self.path(),
            data: self.data(),
            acl: self.acl(210),
            flags: match self.byte() % 32 {
                // None, ephemeral, sequential, or both.
                choice @ 0..28 => [0, 1, 2, 3, 0, 1, 0][usize::from(choice % 7)],
                choice => i32::from(choice % 4 + 4),
            },
            ttl_ms: match op {
                CreateOp::Ttl => self.pick(&[1_000, 1, 60_000, (1 << 40) - 1, 1 << 40, 0, -1]),
                _ => 0,
            },
        }
    }

    fn multi_op(&mut self) -> MultiOp {
        match self.byte() % 8 {
            0..=3 => MultiOp::Create(self.create()),
            4..=5 => MultiOp::Delete {
                path: self.path(),
                version: self.version(),
            },
            6 => MultiOp::SetData {
                path: self.path(),
                data: self.data(),
                version: self.version(),
            },
            _ => MultiOp::Check {
                path: self.path(),
                version: self.version(),
            },
        }
    }

    fn multi_read_op(&mut self) -> MultiReadOp {
        let (path, watch) = (self.path(), self.flag());
        match self.flag() {
            true => MultiReadOp::GetData { path, watch },
            false => MultiReadOp::GetChildren { path, watch },
        }
    }
}
