//! A request on its way, as the future its caller waits for.

use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use minikeeper_protocol::{ErrorCode, OpCode, Reply, Ustring, Zxid};

use crate::{
    core::{
        outcome::{Cause, Epoch, Outcome},
        requests::IfAbandoned,
    },
    create::withdrawn,
    error::Error,
    notifications::Slot,
    paths,
    shared::Shared,
    watch::OneShot,
};

/// What a reply is turned into for the caller.
pub(crate) trait FromReply: Sized {
    fn from_reply(answer: Answer) -> Result<Self, Error>;
}

/// A reply with everything that helps to make sense of it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) result: Result<Reply, ErrorCode>,
    pub(crate) zxid: Zxid,
    pub(crate) epoch: Epoch,
    pub(crate) about: About,
    /// The watch that the request has left, if it was to leave one.
    pub(crate) watch: Option<OneShot>,
}

impl Answer {
    pub(crate) fn refused(self, code: ErrorCode) -> Error {
        if code == ErrorCode::NoNode
            && let Some(chroot) = self.about.missing_chroot()
        {
            return Error::NoChroot {
                op: self.about.op.name(),
                path: self.about.shown(&self.about.path),
                chroot,
            };
        }
        Error::answered(
            self.about.op.name(),
            self.about.shown(&self.about.path),
            code,
        )
    }

    /// A reply that does not fit the request cannot come: its kind follows from the request's.
    pub(crate) fn unfit(self) -> Error {
        self.refused(ErrorCode::MarshallingError)
    }
}

/// What a request is about, for messages.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) op: OpCode,
    /// As the servers know it.
    pub(crate) path: Ustring,
    /// Those of a multi's operations.
    pub(crate) paths: Vec<Ustring>,
    pub(crate) chroot_bytes: usize,
}

impl About {
    /// The path as the caller knows it.
    pub(crate) fn shown(&self, path: &Ustring) -> String {
        paths::shown(path, self.chroot_bytes)
    }

    /// The client's root, if a missing znode can only be that: the one that was asked for is, or its
    /// parent in which something was to be created.
    fn missing_chroot(&self) -> Option<String> {
        let (chroot, below) = self.path.as_bytes().split_at_checked(self.chroot_bytes)?;
        let is_create = matches!(
            self.op,
            OpCode::Create | OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl
        );
        let is_child = is_create && below.iter().rposition(|byte| *byte == b'/') == Some(0);
        let is_it = !chroot.is_empty() && (is_child || below.is_empty() && !is_create);
        is_it.then(|| String::from_utf8_lossy(chroot).into_owned())
    }

    fn take(&mut self) -> Self {
        Self {
            op: self.op,
            path: std::mem::take(&mut self.path),
            paths: std::mem::take(&mut self.paths),
            chroot_bytes: self.chroot_bytes,
        }
    }
}

/// A request that was made, and will be answered.
///
/// It has its place in the order of requests from the moment it was made; it goes out at the
/// latest when this future or that of another request of the client is polled first, so that
/// several requests made one after the other leave together.
///
/// Dropping it does not recall a request that was sent; it only forgets the answer.
///
/// # Errors
/// [`Error::Path`] and [`Error::TooLarge`] before anything is sent. [`Error::Refused`] when a
/// server refuses: nothing was changed. [`Error::NotSent`] when it was certainly not carried out:
/// make it again. [`Error::OutcomeUnknown`] when the connection, the session or the time ended
/// first: look whether it was carried out before it is made again. Calls wait for a connection as
/// long as it takes, see [`Client::with_timeout`](crate::Client::with_timeout).
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_client::CreateMode;
///
/// // Both requests leave in one piece, in this order.
/// let created = client.create("/a", b"hello", CreateMode::Persistent);
/// let read = client.get_data("/a");
/// created.await?;
/// assert_eq!(read.await?.as_bytes(), b"hello");
/// # Ok(()) }
/// ```
#[must_use = "the request is made, but its outcome is not known before this is awaited"]
pub struct Call<T> {
    shared: Arc<Shared>,
    state: CallState,
    about: About,
    watch: Option<OneShot>,
    /// Whether something is to be done about its outcome if nobody looks at it.
    is_seen_to: bool,
    answer: PhantomData<fn() -> T>,
}

enum CallState {
    /// It failed before it was sent.
    Failed(Option<Error>),
    /// In this slot the answer will be.
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

    /// Whether something is to be done about its outcome if nobody looks at it.
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

    /// The same call, with the zxid and epoch of its reply beside its result.
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

    /// Sends the request now, and does not wait for the answer.
    pub fn detach(mut self) {
        self.shared.flush();
        if let CallState::Made { is_flushed, .. } = &mut self.state {
            *is_flushed = true;
        }
    }
}

/// A result, and where in the history it belongs.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// let seen = client.exists("/").stamped().await?;
/// assert_eq!(seen.epoch, client.epoch());
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamped<T> {
    /// The result.
    pub value: T,
    /// The newest change the server had applied when it answered.
    pub zxid: Zxid,
    /// The session it was answered in.
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
                // It came between the last look and now: to its caller it is as if it never had.
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
