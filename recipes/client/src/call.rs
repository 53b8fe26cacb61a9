//! A pending request as the future that its caller awaits, and the results into which replies are
//! converted.

use std::{
    borrow::Cow,
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use minikeeper_protocol::{
    AclList, ClientInfo, ErrorCode, MultiResult, OpCode, Reply, Stat, Ustring, Zxid,
};

use crate::{
    core::{
        outcome::{Cause, Epoch, Outcome},
        requests::IfAbandoned,
    },
    error::Error,
    multi,
    notifications::Slot,
    operations::withdrawn,
    paths,
    shared::Shared,
    watch::{OneShot, Persistent},
};

/// A request, as the future of its result.
///
/// The call to the client's method fixes its place in the order of requests. It is sent at the
/// latest when this future, or that of another request of the client, is first polled. So
/// consecutive requests are sent together.
///
/// # Cancel safety
/// Dropping the future does not recall the request; only its result is lost. A watch that the
/// request registers is removed. A request that is still waiting for a connection is not sent.
/// [`Client::create`](crate::Client::create) and
/// [`Client::delete_for_certain`](crate::Client::delete_for_certain) can do more.
///
/// # Errors
/// [`Error::Path`] and [`Error::TooLarge`] before anything is sent. [`Error::Refused`] when a
/// server refuses; nothing was changed. [`Error::NotSent`] when the request was certainly not
/// carried out: retry. [`Error::OutcomeUnknown`] when the connection, the session or the timeout
/// ended before the reply: before a retry, check whether the request was carried out. A call waits
/// for a connection without a time limit, see
/// [`Client::with_timeout`](crate::Client::with_timeout).
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_client::CreateMode;
///
/// // Both requests are sent together, in this order.
/// let created = client.create("/a", b"hello", CreateMode::Persistent);
/// let read = client.get_data("/a");
/// created.await?;
/// assert_eq!(read.await?.as_bytes(), b"hello");
/// # Ok(()) });
/// ```
#[must_use = "the outcome of the request is unknown until this is awaited"]
pub struct Call<T> {
    shared: Arc<Shared>,
    state: CallState,
    about: About,
    watch: Option<OneShot>,
    /// Whether the client must handle the outcome when the caller drops the call.
    is_seen_to: bool,
    answer: PhantomData<fn() -> T>,
}

enum CallState {
    /// It failed before it was sent.
    Failed(Option<Error>),
    /// The reply will be in this slot.
    Made {
        slot: usize,
        is_flushed: bool,
    },
    Done,
}

impl<T> Call<T> {
    pub(crate) const fn made(
        shared: Arc<Shared>,
        slot: usize,
        about: About,
        watch: Option<OneShot>,
    ) -> Self {
        let is_flushed = false;
        Self {
            shared,
            state: CallState::Made { slot, is_flushed },
            about,
            watch,
            is_seen_to: false,
            answer: PhantomData,
        }
    }

    /// Sets whether the client must handle the outcome when the caller drops the call.
    pub(crate) const fn seen_to(mut self, is_seen_to: bool) -> Self {
        self.is_seen_to = is_seen_to;
        self
    }

    pub(crate) const fn failed(shared: Arc<Shared>, about: About, error: Error) -> Self {
        Self {
            shared,
            state: CallState::Failed(Some(error)),
            about,
            watch: None,
            is_seen_to: false,
            answer: PhantomData,
        }
    }

    /// Adds the zxid and the epoch of the reply to the result.
    pub fn stamped(mut self) -> Call<Stamped<T>> {
        Call {
            shared: Arc::clone(&self.shared),
            state: std::mem::replace(&mut self.state, CallState::Done),
            about: self.about.take(),
            watch: self.watch.take(),
            is_seen_to: self.is_seen_to,
            answer: PhantomData,
        }
    }

    /// Sends the request now, without waiting for the reply. Without a connection the request is
    /// discarded, as when the call is dropped.
    pub fn detach(mut self) {
        self.shared.flush();
        if let CallState::Made { is_flushed, .. } = &mut self.state {
            *is_flushed = true;
        }
    }
}

/// A result with the zxid and the epoch of its reply.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// let seen = client.exists("/").stamped().await?;
/// assert_eq!(seen.epoch, client.epoch());
/// # Ok(()) });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamped<T> {
    /// The result.
    pub value: T,
    /// The newest change that the server had applied.
    pub zxid: Zxid,
    /// The session in which the reply was received.
    pub epoch: Epoch,
}

impl<T: FromReply> FromReply for Stamped<T> {
    fn from_reply(answer: Answer) -> Result<Self, Error> {
        let (zxid, epoch) = (answer.zxid, answer.epoch);
        let value = T::from_reply(answer)?;
        Ok(Self { value, zxid, epoch })
    }
}

impl<T: FromReply> Future for Call<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let slot = match &mut this.state {
            CallState::Failed(error) => {
                let error = error.take().expect("a call is not polled after its end");
                this.state = CallState::Done;
                return Poll::Ready(Err(error));
            }
            CallState::Done => panic!("a call is not polled after its end"),
            CallState::Made { slot, is_flushed } => {
                if !std::mem::replace(is_flushed, true) {
                    this.shared.flush();
                }
                *slot
            }
        };
        let outcome = this
            .shared
            .look(|inner| match &mut inner.notifications.slots[slot] {
                Slot::Done(_) => match inner.notifications.slots.remove(slot) {
                    Slot::Done(outcome) => Some(outcome),
                    Slot::Waiting(_) => None,
                },
                Slot::Waiting(waker) => {
                    if !waker
                        .as_ref()
                        .is_some_and(|known| known.will_wake(cx.waker()))
                    {
                        *waker = Some(cx.waker().clone());
                    }
                    None
                }
            });
        let Some(outcome) = outcome else {
            return Poll::Pending;
        };
        this.state = CallState::Done;
        let about = this.about.take();
        let watch = this.watch.take();
        Poll::Ready(match outcome {
            Outcome::Answered {
                result,
                zxid,
                epoch,
            } => T::from_reply(Answer {
                result,
                zxid,
                epoch,
                about,
                watch,
            }),
            Outcome::Unknown(cause) => Err(unknown(&about, cause)),
            Outcome::NotSent(cause) => Err(not_sent(&about, cause)),
        })
    }
}

fn unknown(about: &About, cause: Cause) -> Error {
    Error::OutcomeUnknown {
        op: about.op.name(),
        path: about.shown(&about.path),
        cause,
    }
}

fn not_sent(about: &About, cause: Cause) -> Error {
    Error::NotSent {
        op: about.op.name(),
        path: about.shown(&about.path),
        cause,
    }
}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        let CallState::Made { slot, is_flushed } = self.state else {
            return;
        };
        self.shared.with_rearm(|inner, now| {
            match inner.notifications.slots.remove(slot) {
                Slot::Waiting(_) => {
                    let caller = u32::try_from(slot).unwrap_or(u32::MAX);
                    inner.core.abandon(now, caller);
                }
                // The reply came after the last poll, so the caller has not seen it.
                Slot::Done(outcome) if self.is_seen_to => {
                    let path = &self.about.path;
                    let if_abandoned = match self.about.op {
                        OpCode::Delete => IfAbandoned::DeleteStill(path.clone()),
                        _ => withdrawn(path),
                    };
                    inner.core.handle_unseen(now, if_abandoned, outcome);
                }
                Slot::Done(_) => {}
            }
        });
        if !is_flushed {
            self.shared.flush();
        }
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("about", &self.about)
            .finish_non_exhaustive()
    }
}

/// Converts a reply into the result of a call.
pub(crate) trait FromReply: Sized {
    fn from_reply(answer: Answer) -> Result<Self, Error>;
}

/// A reply, with its request and its watch.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) result: Result<Reply, ErrorCode>,
    pub(crate) zxid: Zxid,
    pub(crate) epoch: Epoch,
    pub(crate) about: About,
    /// The watch that the request registered.
    pub(crate) watch: Option<OneShot>,
}

impl Answer {
    pub(crate) fn refused(self, code: ErrorCode) -> Error {
        if code == ErrorCode::NoNode
            && let Some(root) = self.about.missing_root()
        {
            return Error::NoRoot {
                op: self.about.op.name(),
                path: self.about.shown(&self.about.path),
                root,
            };
        }
        Error::answered(
            self.about.op.name(),
            self.about.shown(&self.about.path),
            code,
        )
    }

    /// Returns the error for a reply of the wrong kind. This cannot occur: the request determines
    /// how the reply is decoded.
    pub(crate) fn unfit(self) -> Error {
        self.refused(ErrorCode::MarshallingError)
    }
}

/// The operation and the paths of a request, for messages.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) op: OpCode,
    /// As the servers know it, with the root of the client.
    pub(crate) path: Ustring,
    /// The paths of a multi's operations.
    pub(crate) paths: Vec<Ustring>,
    pub(crate) root_bytes: usize,
}

impl About {
    /// Returns the path as the caller knows it, without the root.
    pub(crate) fn shown(&self, path: &Ustring) -> String {
        paths::shown(path, self.root_bytes)
    }

    /// Returns the root if it must be the missing znode: the path of the request is the root,
    /// or the request creates a child of it.
    fn missing_root(&self) -> Option<String> {
        let (root, below) = self.path.as_bytes().split_at_checked(self.root_bytes)?;
        let is_create = matches!(
            self.op,
            OpCode::Create | OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl
        );
        let is_child = is_create && below.iter().rposition(|byte| *byte == b'/') == Some(0);
        let is_it = !root.is_empty() && (is_child || below.is_empty() && !is_create);
        is_it.then(|| String::from_utf8_lossy(root).into_owned())
    }

    fn take(&mut self) -> Self {
        Self {
            op: self.op,
            path: std::mem::take(&mut self.path),
            paths: std::mem::take(&mut self.paths),
            root_bytes: self.root_bytes,
        }
    }
}

/// A znode that was created.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_client::CreateMode;
/// let created = client.create("/n-", b"", CreateMode::PersistentSequential).await?;
/// println!("{} was change {}", created.path, created.stat.czxid);
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Created {
    /// Its path, including the number if it is sequential.
    pub path: String,
    /// Its stat; `czxid` is the zxid of its creation.
    pub stat: Stat,
}

/// The data and the stat of a znode.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_client::CreateMode;
/// # client.create("/a", b"hello", CreateMode::Persistent).await?;
/// let data = client.get_data("/a").await?;
/// assert_eq!((data.as_bytes(), data.stat.version), (&b"hello"[..], 0));
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data {
    /// The data; `None` means null, which differs from empty.
    pub data: Option<Bytes>,
    /// The znode's stat.
    pub stat: Stat,
}

impl Data {
    /// Returns the data; empty for null.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.data.as_deref().unwrap_or_default()
    }
}

/// The names of a znode's children in no particular order, and the znode's stat.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_client::CreateMode;
/// # client.create("/a", b"hello", CreateMode::Persistent).await?;
/// let children = client.children("/").await?;
/// for name in children.names() {
///     println!("/{name}");
/// }
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Children {
    names: Vec<Ustring>,
    stat: Stat,
}

impl Children {
    /// Returns the names.
    pub fn names(&self) -> impl ExactSizeIterator<Item = Cow<'_, str>> {
        self.names.iter().map(Ustring::to_str_lossy)
    }

    /// Returns the names as sent by the server, neither copied nor checked.
    pub fn raw_names(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.names.iter().map(Ustring::as_bytes)
    }

    /// Returns the number of names.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns whether there are no names.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the parent's stat.
    #[must_use]
    pub const fn stat(&self) -> &Stat {
        &self.stat
    }
}

/// The names of a znode's children, in no particular order. They are slices of the reply, not
/// copies.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_client::CreateMode;
/// # client.create("/a", b"hello", CreateMode::Persistent).await?;
/// let names = client.child_names("/").await?;
/// for name in names.iter() {
///     println!("/{name}");
/// }
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Names(Vec<Ustring>);

impl Names {
    /// Returns the names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Cow<'_, str>> {
        self.0.iter().map(Ustring::to_str_lossy)
    }

    /// Returns the number of names.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no names.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Children> for Names {
    fn from(children: Children) -> Self {
        Self(children.names)
    }
}

/// Implements [`FromReply`] for the contents of one kind of reply.
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
            (Ok(Reply::WatchAdded), Some(watch)) => Ok(Self::new(watch, answer.about.root_bytes)),
            (Err(code), _) => {
                let code = *code;
                Err(answer.refused(code))
            }
            (Ok(_), _) => Err(answer.unfit()),
        }
    }
}

/// Implements [`FromReply`] for a result with the watch that the request registered.
macro_rules! watched {
    ($($type:ty),+) => {$(
        impl FromReply for ($type, OneShot) {
            fn from_reply(mut answer: Answer) -> Result<Self, Error> {
                let watch = answer.watch.take();
                let value = <$type>::from_reply(answer)?;
                match watch {
                    Some(watch) => Ok((value, watch)),
                    None => unreachable!("a request with a watch keeps it until the reply"),
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
