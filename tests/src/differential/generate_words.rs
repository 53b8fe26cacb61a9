//! The building blocks of random requests.

/// A kind of request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Plain {
    Create(&'static str),
    Delete,
    SetData,
    Read(&'static str),
    GetAcl,
    SetAcl,
    Sync,
    Ephemerals,
    Count,
    Multi,
    MultiRead,
    AddWatch,
    Watches(&'static str),
    SetWatches,
    Other(&'static str),
}

use Plain::{
    AddWatch, Count, Create, Delete, Ephemerals, GetAcl, Multi, MultiRead, Other, Read, SetAcl,
    SetData, SetWatches, Sync, Watches,
};

/// The kinds of requests, each with its frequency.
pub(super) const PLAIN: &[(usize, Plain)] = &[
    (7, Create("create")),
    (3, Create("create2")),
    (2, Create("createContainer")),
    (2, Create("createTTL")),
    (6, Delete),
    (5, SetData),
    (4, Read("getData")),
    (4, Read("exists")),
    (3, Read("getChildren")),
    (3, Read("getChildren2")),
    (2, GetAcl),
    (2, SetAcl),
    (1, Sync),
    (2, Ephemerals),
    (1, Count),
    (5, Multi),
    (1, MultiRead),
    (2, AddWatch),
    (1, Watches("removeWatches")),
    (1, Watches("checkWatches")),
    (2, SetWatches),
    (1, Other("ping")),
    (1, Other("reconfig")),
    (1, Other("whoAmI")),
];

/// Unusual and invalid paths, as words of a scenario.
pub(super) const ODD_PATHS: &[&str] = &[
    "\"\"",
    "a",
    "/a/",
    "//",
    "/a//x",
    "/a/.",
    "/a/..",
    "\"/a\\0\"",
    "\"/a\\x01\"",
    "\"/\\u{e000}\"",
    "\"/\\u{ffff}\"",
    "\"/\\u{e9}\"",
    "\"/\\u{1f600}\"",
    "\"/a\\x7f\"",
    "/...",
    "a/x",
    "null",
    "\"/\\u{f900}\"",
    "/zookeeper/x",
    "\"/a b\"",
    "\"/\\xff\"",
    "/x/y/z",
];

/// Data, as words of a scenario.
pub(super) const DATA: &[&str] = &[
    "null",
    "\"\"",
    "\"1\"",
    "\"22\"",
    "\"\\xff\\x00\"",
    "\"333333333333333333333333333333333333333333333333333333333333333333\"",
];

/// The data written to the znodes of a quota. ZooKeeper crashes on anything else.
pub(super) const QUOTA_DATA: &[&str] = &[
    "count=3,bytes=10",
    "count=2,bytes=-1",
    "count=1,bytes=0",
    "count=5,bytes=20=;byteHardLimit=20;countHardLimit=5",
    "count=-1,bytes=-1=;byteHardLimit=4;countHardLimit=-1",
];

/// Entries of valid access lists. Connections authenticate as `bob` and `alice`.
pub(super) const ACLS_GOOD: &[&str] = &[
    "31@world:anyone",
    "1@world:anyone",
    "30@world:anyone",
    "29@world:anyone",
    "27@world:anyone",
    "23@world:anyone",
    "15@world:anyone",
    "2@world:anyone,16@world:anyone",
    "31@digest:bob:ikIaKsbtGweaHnb/jKn7OHqbunM=",
    "31@digest:bob:ikIaKsbtGweaHnb/jKn7OHqbunM=,1@world:anyone",
    "31@digest:bob:ikIaKsbtGweaHnb/jKn7OHqbunM=,30@world:anyone",
    "1@digest:alice:mrY6TCPT2kWwYMqBxXWkQ9n4Hms=,30@digest:bob:ikIaKsbtGweaHnb/jKn7OHqbunM=",
    "31@digest:nobody:x,22@world:anyone",
    "31@auth:",
    "31@auth:x,1@world:anyone",
    "1@auth:~,31@world:anyone",
    "31@ip:127.0.0.1",
    "31@ip:127.0.0.0/8,1@world:anyone",
    "31@ip:10.0.0.1,14@world:anyone",
    "1@world:anyone,31@ip:127.1.2.3/8",
];

/// Access lists that are invalid, some only for a connection without identities.
pub(super) const ACLS_BAD: &[&str] = &[
    "null",
    "[]",
    "[31@world:foo]",
    "[31@world:~]",
    "[31@~:x]",
    "[31@nope:x]",
    "[31@super:]",
    "[31@digest:bob]",
    "[31@digest:~]",
    "[31@digest:a:b:c]",
    "[31@ip:300.1.1.1]",
    "[31@ip:127.0.0.1/33]",
    "[31@ip:127.0.0.1/]",
    "[31@ip:x]",
    "[31@ip:~]",
    "[31@sasl:bob]",
    "[31@x509:CN=bob]",
    "[31@world:anyone,31@world:foo]",
    "[31@world:anyone,31@world:anyone]",
    "[31@auth:]",
];
