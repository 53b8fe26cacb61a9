//! Access lists and identities take only memory that is counted, and work that is bounded.

use allocation_counter::measure;
use minikeeper_protocol::{Acl, Perms, Ustring};

use super::*;
use crate::work;

/// About the longest id that fits into a frame, by default 1,048,575 bytes. Unit: bytes.
const LONG: usize = 900_000;

/// Applies a request without the check of the whole state, which allocates.
fn serve(engine: &mut Engine, conn: u32, asked: Request) -> Option<ReplyHeader> {
    let input = Input::Request {
        conn: ConnId(conn),
        xid: Xid(1),
        request: asked,
    };
    let mut seen = Seen::default();
    engine.apply(Now::default(), &input, &mut seen);
    seen.reply
}

fn entry(scheme: &str, id: &str) -> Acl {
    Acl {
        perms: Perms::ALL,
        scheme: Some(scheme.into()),
        id: Some(id.into()),
    }
}

fn auth(data: String) -> Request {
    Request::Auth {
        kind: 0,
        scheme: Some(Ustring::from("digest")),
        data: Some(data.into()),
    }
}

/// 300 such creates took 265 MB in spite of a limit of 20 MB.
#[test]
fn access_lists_count_against_the_limit_of_the_tree() {
    let settings = Settings {
        tree_bytes_max: 20 << 20,
        ..Settings::default()
    };
    let mut engine = engine(1, settings);
    let held = measure(|| {
        for number in 0..60 {
            let id = format!("{number}{}:x", "u".repeat(LONG));
            let list = AclList::new(&[entry("digest", &id)]);
            let path = format!("/n{number}");
            serve(&mut engine, 0, Request::Create(create_with(&path, list)));
        }
    });
    assert!(
        held.bytes_current < 22 << 20,
        "{} bytes are held",
        held.bytes_current
    );
    engine.check().unwrap();
}

/// Each of 5,000 `auth` entries was replaced by 500 identities: one create took 374 MB at its peak.
#[test]
fn auth_entries_for_many_identities_take_bounded_memory() {
    let mut engine = engine(1, Settings::default());
    for number in 0..500 {
        serve(&mut engine, 0, auth(format!("user{number}:password")));
    }
    apply(&mut engine, &Input::Disconnect { conn: ConnId(0) });
    open(&mut engine, 0);
    for number in 0..50 {
        serve(&mut engine, 0, auth(format!("user{number}:password")));
    }
    let entries: Vec<_> = (0..5_000)
        .map(|number| entry("auth", &number.to_string()))
        .collect();
    let list = AclList::new(&entries);
    drop(entries);
    let taken = measure(|| {
        serve(&mut engine, 0, Request::Create(create_with("/a", list)));
    });
    assert!(taken.bytes_max < 4 << 20, "{} bytes", taken.bytes_max);
}

/// 200 auth requests of 900 KB on one connection took 183 MB, and each copied all earlier
/// identities.
#[test]
fn identities_of_a_connection_take_bounded_memory() {
    let mut engine = engine(1, Settings::default());
    let held = measure(|| {
        for number in 0..200 {
            serve(
                &mut engine,
                0,
                auth(format!("{number}{}:password", "u".repeat(LONG))),
            );
        }
    });
    let held = held.bytes_current;
    assert!(held < 1 << 20, "{held} bytes are held");
}

/// The memory that an engine may hold without counting it: tables with room to grow. Unit: bytes.
const UNCOUNTED_BYTES: usize = 64 << 10;

/// The memory that serving one request may take, in multiples of its length.
const TIMES_THE_REQUEST: usize = 4;

/// The memory that serving one request may take in addition. Unit: bytes.
const BESIDE_THE_REQUEST: usize = 2 << 20;

impl Numbers {
    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())]
    }

    fn id(&mut self) -> String {
        let length = match self.below(60) {
            0 => LONG,
            1 => 70_000,
            2..6 => 2_000,
            _ => 3,
        };
        let number = self.below(400);
        format!("{number}{}", "i".repeat(length))
    }

    fn list(&mut self) -> AclList {
        let count = self.one_of(&[1, 2, 20, 200, 200, 300, 5_000]);
        let distinct = self.one_of(&[1, 3, 200, 100_000]);
        let schemes = ["digest", "digest", "auth", "ip", "world", "sasl", "x509"];
        let only = self.below(2).eq(&0).then(|| self.one_of(&schemes));
        let mut bytes = 0;
        let mut entries = Vec::new();
        for _ in 0..count {
            let scheme = only.unwrap_or_else(|| self.one_of(&schemes));
            let number = self.below(distinct);
            let id = match scheme {
                "world" => "anyone".to_owned(),
                "ip" => format!("10.0.{}.{}/24", number % 200, number % 250),
                "x509" => format!("CN={number}"),
                _ => format!("user{number}:hash"),
            };
            bytes += 12 + scheme.len() + id.len();
            if bytes > LONG {
                break;
            }
            entries.push(entry(scheme, &id));
        }
        if self.below(6) == 0 {
            let id = format!("{}:x", "i".repeat(self.one_of(&[1_000, 150_000, 150_000])));
            entries.push(entry("digest", &id));
        }
        AclList::new(&entries)
    }

    /// Returns a request that stores identities or access lists, or reads them.
    fn request(&mut self) -> Request {
        let path = format!("/n{}", self.below(30));
        match self.below(10) {
            0..4 => auth(format!("{}:password", self.id())),
            4..6 => Request::Create(create_with(&path, self.list())),
            6..8 => Request::SetAcl {
                path: Some(path.as_str().into()),
                acl: self.list(),
                version: -1,
            },
            8 => delete(&path),
            _ => Request::GetData {
                path: Some(path.as_str().into()),
                watch: false,
            },
        }
    }
}

fn length_of(asked: &Request) -> usize {
    let mut out = Vec::new();
    asked.encode(Xid(1), &mut out);
    out.len()
}

/// The rule behind the cases above: an engine counts the memory it holds, and serving a request
/// takes memory and work in proportion to its length, whatever was stored before.
#[test]
fn requests_about_access_hold_what_is_counted_and_do_bounded_work() {
    let settings = Settings {
        tree_bytes_max: 3 << 20,
        sasl: Some(crate::SaslSettings::default()),
        x509: true,
        ..Settings::default()
    };
    let (mut long_lists, mut long_looks) = (0, 0);
    for seed in 0..8 {
        let mut numbers = Numbers(seed);
        let mut engine = engine(3, settings.clone());
        let mut held = 0;
        for number in 0..200 {
            let conn = u32::try_from(numbers.below(3)).unwrap();
            if engine.state.session_of(ConnId(conn)).is_none() {
                open(&mut engine, conn);
            }
            let asked = numbers.request();
            let (op, length) = (asked.op(), length_of(&asked));
            let before = engine.state.counted_bytes();
            let mut steps = 0;
            let input = Input::Request {
                conn: ConnId(conn),
                xid: Xid(1),
                request: asked,
            };
            let taken = measure(|| {
                let mut seen = Seen::default();
                steps = work::visits(|| engine.apply(Now::default(), &input, &mut seen));
            });
            let what = || format!("request {number} of seed {seed}: {op:?}, {length} bytes");
            let peak = usize::try_from(taken.bytes_max).unwrap();
            assert!(
                peak <= TIMES_THE_REQUEST * length + BESIDE_THE_REQUEST,
                "{peak} bytes to serve {}",
                what()
            );
            // Each sent entry is hashed once and compared once; then for each entry of an access
            // list there is a search among the identities.
            let entries_max = settings.acl_entries_max;
            let searched = settings.identities_max.ilog2() as usize + 2;
            let steps_max = 3 * (length / 12) + entries_max * 2 * searched + 1_000;
            assert!(steps <= steps_max, "{steps} steps to serve {}", what());
            held += taken.bytes_current;
            long_lists += usize::from(taken.bytes_current > 90_000);
            long_looks += usize::from(length < 100 && steps > 500);
            let counted = engine.state.counted_bytes();
            assert!(counted <= settings.tree_bytes_max, "{}", what());
            let grown = i64::try_from(counted).unwrap() - i64::try_from(before).unwrap();
            assert!(
                taken.bytes_current <= grown.max(0) + i64::try_from(UNCOUNTED_BYTES).unwrap(),
                "{} bytes held, {grown} counted after {}",
                taken.bytes_current,
                what()
            );
        }
        let counted = engine.state.counted_bytes();
        assert!(
            usize::try_from(held.max(0)).unwrap() <= counted + UNCOUNTED_BYTES,
            "{held} bytes are held, {counted} counted, seed {seed}"
        );
        engine.check().unwrap();
    }
    assert!(
        long_lists > 10 && long_looks > 10,
        "too few requests are expensive: {long_lists}, {long_looks}"
    );
}

/// One create of 954 KB with 20,000 entries made 200 million comparisons.
#[test]
fn duplicates_are_found_without_comparing_each_with_each() {
    let mut engine = engine(1, Settings::default());
    for distinct in [1, 200, 20_000] {
        let entries: Vec<_> = (0..20_000)
            .map(|number| entry("digest", &format!("user{}:hash", number % distinct)))
            .collect();
        let asked = Request::Create(create_with("/a", AclList::new(&entries)));
        let steps = work::visits(|| {
            serve(&mut engine, 0, asked);
        });
        assert!(steps <= 3 * 20_000, "{steps} steps");
        serve(&mut engine, 0, delete("/a"));
    }
}

/// `docs/zookeeper-protocol.md` section 9.5: the first of equal entries keeps its position.
#[test]
fn entries_keep_their_order_without_their_duplicates() {
    let mut engine = engine(1, Settings::default());
    serve(&mut engine, 0, auth("bob:secret".to_owned()));
    let sent = ["c:x", "a:x", "c:x", "b:x", "a:x"].map(|id| entry("digest", id));
    let mut sent = sent.to_vec();
    // `auth` entries are replaced after duplicates are removed, so the identity may occur twice.
    sent.extend([entry("auth", "1"), entry("auth", "2"), entry("auth", "1")]);
    let created = create_with("/a", AclList::new(&sent));
    assert_eq!(outcome(&mut engine, 0, Request::Create(created)), Ok(()));
    let stored = engine
        .state
        .acls
        .get(engine.state.tree[engine.state.tree.find(b"/a").unwrap()].acl);
    let ids: Vec<_> = stored
        .entries()
        .map(|entry| entry.id.unwrap().to_str_lossy().into_owned())
        .collect();
    let bob =
        crate::auth::digest::digest_identity(b"bob:secret", crate::DigestAlgorithm::default());
    assert_eq!(ids, ["c:x", "a:x", "b:x", &bob, &bob]);
}

#[test]
fn list_beyond_the_limit_of_entries_is_refused() {
    let settings = Settings {
        acl_entries_max: 3,
        ..Settings::default()
    };
    let mut engine = engine(1, settings);
    for number in 0..4 {
        serve(&mut engine, 0, auth(format!("user{number}:password")));
    }
    let sent = |count: usize| {
        let entries: Vec<_> = (0..count)
            .map(|number| entry("digest", &format!("{number}:x")))
            .collect();
        Request::Create(create_with("/a", AclList::new(&entries)))
    };
    let auth_for_all = AclList::new(&[entry("auth", "")]);
    let too_long = [sent(4), Request::Create(create_with("/a", auth_for_all))];
    for asked in too_long {
        let seen = request(&mut engine, 0, asked);
        assert_eq!(seen.reply.unwrap().error, Some(ErrorCode::InvalidAcl));
        assert_eq!(seen.limits, [(Limit::AclEntries, 3)]);
    }
    assert_eq!(outcome(&mut engine, 0, sent(3)), Ok(()));
}

#[test]
fn identity_beyond_the_limit_closes_the_connection() {
    let settings = Settings {
        identities_max: 2,
        ..Settings::default()
    };
    let mut engine = engine(1, settings);
    // Authenticating again as the same identity adds nothing.
    for name in ["a", "b", "a", "b"] {
        let asked = auth(format!("{name}:password"));
        assert_eq!(outcome(&mut engine, 0, asked), Ok(()));
    }
    let seen = request(&mut engine, 0, auth("c:password".to_owned()));
    assert_eq!(seen.reply.unwrap().error, Some(ErrorCode::AuthFailed));
    assert_eq!(seen.limits, [(Limit::Identities, 2)]);
    assert_eq!(engine.counts().sessions, 1, "the session lives on");
}

/// A certificate's subject is an identity too.
#[test]
fn subject_beyond_the_limit_closes_the_connection() {
    let settings = Settings {
        x509: true,
        ..Settings::default()
    };
    let mut engine = engine(1, settings);
    let subject = format!("CN={}", "n".repeat(70_000));
    let conn = ConnId(0);
    let seen = apply(&mut engine, &Input::Identify { conn, subject });
    assert_eq!(seen.limits.len(), 1);
    assert!(engine.state.session_of(conn).is_none());
}
