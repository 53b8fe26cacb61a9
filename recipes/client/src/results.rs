//! What calls give.

use std::borrow::Cow;

use bytes::Bytes;
use minikeeper_protocol::{AclList, ClientInfo, ErrorCode, MultiResult, Reply, Stat, Ustring};

use crate::{
    call::{Answer, FromReply},
    error::Error,
    multi,
    watch::{OneShot, Persistent},
};

/// A znode that was created.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// # use minikeeper_client::CreateMode;
/// let created = client.create("/n-", b"", CreateMode::PersistentSequential).await?;
/// println!("{} was change {}", created.path, created.stat.czxid);
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Created {
    /// Its path, with the number if it is sequential.
    pub path: String,
    /// Its stat; `czxid` orders it among all changes.
    pub stat: Stat,
}

/// A znode's data.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// # use minikeeper_client::CreateMode;
/// # client.create("/a", b"hello", CreateMode::Persistent).await?;
/// let data = client.get_data("/a").await?;
/// assert_eq!((data.as_bytes(), data.stat.version), (&b"hello"[..], 0));
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data {
    /// The data; `None` is null, which is not the same as empty.
    pub data: Option<Bytes>,
    /// The znode's stat.
    pub stat: Stat,
}

impl Data {
    /// The data; empty for null.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.data.as_deref().unwrap_or_default()
    }
}

/// The names of a znode's children, in the server's order, which means nothing.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// # use minikeeper_client::CreateMode;
/// # client.create("/a", b"hello", CreateMode::Persistent).await?;
/// let children = client.children("/").await?;
/// for name in children.names() {
///     println!("/{name}");
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Children {
    names: Vec<Ustring>,
    stat: Stat,
}

impl Children {
    /// The names.
    pub fn names(&self) -> impl ExactSizeIterator<Item = Cow<'_, str>> {
        self.names.iter().map(Ustring::to_str_lossy)
    }

    /// The names as they are on the wire: nothing is copied or checked.
    pub fn raw_names(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.names.iter().map(Ustring::as_bytes)
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The parent's stat.
    #[must_use]
    pub const fn stat(&self) -> &Stat {
        &self.stat
    }
}

/// The names of a znode's children and nothing else, in the server's order, which means nothing.
///
/// They are slices of the server's reply: nothing is copied.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// # use minikeeper_client::CreateMode;
/// # client.create("/a", b"hello", CreateMode::Persistent).await?;
/// let names = client.child_names("/").await?;
/// for name in names.iter() {
///     println!("/{name}");
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Names(Vec<Ustring>);

impl Names {
    /// The names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Cow<'_, str>> {
        self.0.iter().map(Ustring::to_str_lossy)
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<String> for Names {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        Self(names.into_iter().map(Ustring::from).collect())
    }
}

impl From<Children> for Names {
    fn from(children: Children) -> Self {
        Self(children.names)
    }
}

/// Implements [`FromReply`] for what one kind of reply holds.
macro_rules! from_reply {
    ($type:ty, $answer:ident, $($pattern:pat => $value:expr,)+) => {
        impl FromReply for $type {
            fn from_reply($answer: Answer) -> Result<Self, Error> {
                match $answer.result {
                    $(Ok($pattern) => Ok($value),)+
                    Err(code) => Err($answer.refused(code)),
                    Ok(_) => Err($answer.unfit()),
                }
            }
        }
    };
}

from_reply!((), answer, Reply::Empty | Reply::Path(_) => (),);
from_reply!(Stat, answer, Reply::Stat(stat) => stat,);
from_reply!(Data, answer, Reply::Data(data, stat) => Self { data, stat },);
from_reply!(Children, answer, Reply::Children2(names, stat) => Self { names, stat },);
from_reply!(Names, answer, Reply::Children(names) => Self(names),);
from_reply!((AclList, Stat), answer, Reply::Acl(acl, stat) => (acl, stat),);
from_reply!(u32, answer, Reply::Count(count) => count.unsigned_abs(),);
from_reply!(Vec<ClientInfo>, answer, Reply::ClientInfos(infos) => infos,);
from_reply!(
    Created,
    answer,
    Reply::PathStat(ref path, stat) => Self {
        path: answer.about.shown(path),
        stat,
    },
);
from_reply!(
    Vec<String>,
    answer,
    Reply::Ephemerals(paths) => paths
        .iter()
        .map(|path| answer.about.shown(path))
        .collect(),
);

impl FromReply for Option<Stat> {
    fn from_reply(answer: Answer) -> Result<Self, Error> {
        match answer.result {
            Err(ErrorCode::NoNode) => Ok(None),
            _ => Stat::from_reply(answer).map(Some),
        }
    }
}

impl FromReply for Persistent {
    fn from_reply(mut answer: Answer) -> Result<Self, Error> {
        match (&answer.result, answer.watch.take()) {
            (Ok(Reply::WatchAdded), Some(watch)) => Ok(Self::from(watch)),
            (Err(code), _) => {
                let code = *code;
                Err(answer.refused(code))
            }
            (Ok(_), _) => Err(answer.unfit()),
        }
    }
}

/// With the watch that was left.
macro_rules! watched {
    ($($type:ty),+) => {$(
        impl FromReply for ($type, OneShot) {
            fn from_reply(mut answer: Answer) -> Result<Self, Error> {
                let watch = answer.watch.take();
                let value = <$type>::from_reply(answer)?;
                match watch {
                    Some(watch) => Ok((value, watch)),
                    None => unreachable!("a request with a watch keeps it until it is answered"),
                }
            }
        }
    )+};
}

watched!(Data, Children, Option<Stat>);

impl FromReply for Vec<MultiResult> {
    fn from_reply(answer: Answer) -> Result<Self, Error> {
        match answer.result {
            Ok(Reply::Multi(mut results)) => match multi::failure(&results) {
                None => {
                    for result in &mut results {
                        if let MultiResult::Create { path } | MultiResult::Create2 { path, .. } =
                            result
                        {
                            *path = answer.about.shown(path).into();
                        }
                    }
                    Ok(results)
                }
                Some((index, code)) => Err(Error::MultiRefused {
                    index,
                    path: answer
                        .about
                        .paths
                        .get(index)
                        .map(|path| answer.about.shown(path))
                        .unwrap_or_default(),
                    code,
                }),
            },
            Err(code) => Err(answer.refused(code)),
            Ok(_) => Err(answer.unfit()),
        }
    }
}
