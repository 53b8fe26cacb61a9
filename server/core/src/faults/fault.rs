//! A fault: what it matches, and what it does.

use std::{fmt, time::Duration};

use minikeeper_protocol::{ErrorCode, SessionId};

use crate::faults::{action::FaultAction, op::FaultOp, who::FaultFor};

/// A fault to inject: what it matches, and what it does.
///
/// By default it matches every request of every client, any number of times. If several faults
/// match a request, the one injected first acts, and the others do not count the request. A delay
/// is the exception: when it is over, the faults injected after it are checked too.
///
/// Plain data: the methods only fill the fields. [`inject`](../minikeeper/struct.Universe.html#method.inject) refuses a
/// fault that makes no sense.
///
/// # Examples
/// The reply to one particular create is lost, and nothing else:
/// ```no_run
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use minikeeper::{Fault, OpCode};
/// let server = minikeeper::Server::builder().start().await?;
/// let lost = server.inject(Fault::lose_reply().on(OpCode::Create).at("/locks/a/**").once())?;
/// // ... a client takes the lock at /locks/a; later:
/// println!("{} replies were lost", lost.hits());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Fault {
    /// The action.
    pub action: FaultAction,
    /// The operations of the requests it matches; empty for any.
    pub ops: Vec<FaultOp>,
    /// A pattern that the request's path must match; in a multi, any of its paths. `*` matches any
    /// characters within one name, `**` any characters at all. Requests without a path never match.
    ///
    /// The path is the one that the client sent: for a sequential create, without the number.
    pub path: Option<String>,
    /// The sessions whose requests, connections or events it matches.
    pub who: FaultFor,
    /// The number of matches skipped first.
    pub skip: u64,
    /// The maximum number of times it acts; `None` for no limit. After that the fault stays until
    /// it is removed, and keeps holding what it holds.
    pub count: Option<u64>,
    /// The probability that it acts on a match after the skipped ones. Range: 0 to 1.
    pub probability: f64,
    /// The seed of its random choices: the same seed gives the same choices for the same matches.
    pub seed: u64,
    /// Whether it may end without having acted: see [`Fault::optional`]. Default: `false`, except
    /// for [`Fault::silence`].
    pub is_optional: bool,
}

impl Fault {
    /// Creates a fault that applies this action to every request of every client.
    ///
    /// # Examples
    /// ```
    /// use minikeeper::{Fault, FaultAction};
    /// let mut fault = Fault::new(FaultAction::Cut);
    /// fault.path = Some("/a/*".to_owned());
    /// assert_eq!(fault, Fault::cut().at("/a/*"));
    /// ```
    #[must_use]
    pub const fn new(action: FaultAction) -> Self {
        Self {
            action,
            ops: Vec::new(),
            path: None,
            who: FaultFor::Anyone,
            skip: 0,
            count: None,
            probability: 1.0,
            seed: 0,
            is_optional: false,
        }
    }

    /// Resets connections when they are accepted: [`FaultAction::Refuse`].
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use minikeeper::Fault;
    /// # use tokio::io::AsyncReadExt as _;
    /// # let server = minikeeper::Server::builder().start().await?;
    /// let refusing = server.inject(Fault::refuse().once())?;
    /// assert_eq!(server.local().read(&mut [0]).await?, 0);
    /// assert_eq!(refusing.hits(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn refuse() -> Self {
        Self::new(FaultAction::Refuse)
    }

    /// Delays requests: [`FaultAction::Delay`].
    ///
    /// # Examples
    /// ```no_run
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use std::time::Duration;
    /// use minikeeper::{Fault, OpCode};
    /// let server = minikeeper::Server::builder().manual_clock().start().await?;
    /// let slow = server.inject(Fault::delay(Duration::from_secs(3)).on(OpCode::SetData))?;
    /// // ... a client writes, and waits; then:
    /// server.advance(Duration::from_secs(3)); // serves the write
    /// # drop(slow);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn delay(by: Duration) -> Self {
        Self::new(FaultAction::Delay(by))
    }

    /// Loses requests on their way to the server: [`FaultAction::DropRequest`].
    ///
    /// # Examples
    /// ```
    /// use minikeeper::{Fault, OpCode};
    /// let heartbeats_lost = Fault::drop_request().on(OpCode::Ping);
    /// # drop(heartbeats_lost);
    /// ```
    #[must_use]
    pub const fn drop_request() -> Self {
        Self::new(FaultAction::DropRequest)
    }

    /// Carries requests out and closes the connection without a reply: [`FaultAction::LoseReply`].
    ///
    /// # Examples
    /// ```
    /// use minikeeper::{Fault, OpCode};
    /// let third_create = Fault::lose_reply().on(OpCode::Create).nth(3);
    /// # drop(third_create);
    /// ```
    #[must_use]
    pub const fn lose_reply() -> Self {
        Self::new(FaultAction::LoseReply)
    }

    /// Carries requests out and never answers them: [`FaultAction::NeverAnswer`].
    ///
    /// # Examples
    /// ```
    /// use minikeeper::{Fault, OpCode};
    /// let silent = Fault::never_answer().on(OpCode::Sync).once();
    /// # drop(silent);
    /// ```
    #[must_use]
    pub const fn never_answer() -> Self {
        Self::new(FaultAction::NeverAnswer)
    }

    /// Answers requests with an error instead of carrying them out: [`FaultAction::Error`].
    ///
    /// # Examples
    /// ```
    /// use minikeeper::{ErrorCode, Fault, OpCode};
    /// let full = Fault::error(ErrorCode::QuotaExceeded).on(OpCode::Create).at("/app/**");
    /// # drop(full);
    /// ```
    #[must_use]
    pub const fn error(code: ErrorCode) -> Self {
        Self::new(FaultAction::Error(code))
    }

    /// Closes the connection instead of serving a request: [`FaultAction::Cut`].
    ///
    /// # Examples
    /// ```
    /// use minikeeper::{Fault, FaultOp};
    /// // The session is never opened, or never resumed.
    /// let handshakes = Fault::cut().on(FaultOp::Connect);
    /// # drop(handshakes);
    /// ```
    #[must_use]
    pub const fn cut() -> Self {
        Self::new(FaultAction::Cut)
    }

    /// Closes the connection in the middle of a reply: [`FaultAction::CutReply`].
    ///
    /// # Examples
    /// ```
    /// use minikeeper::{Fault, OpCode};
    /// let half = Fault::cut_reply().on(OpCode::GetChildren).at("/large");
    /// # drop(half);
    /// ```
    #[must_use]
    pub const fn cut_reply() -> Self {
        Self::new(FaultAction::CutReply)
    }

    /// Holds watch events back until the fault is removed: [`FaultAction::HoldEvents`].
    ///
    /// # Examples
    /// ```no_run
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use minikeeper::Fault;
    /// # let server = minikeeper::Server::builder().start().await?;
    /// let held = server.inject(Fault::hold_events().at("/config/**"))?;
    /// // ... /config/a changes, and no watcher gets its event; then:
    /// drop(held); // now all watchers do
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn hold_events() -> Self {
        Self::new(FaultAction::HoldEvents)
    }

    /// Holds each watch event back until its watcher's next request has been served:
    /// [`FaultAction::DelayEvents`].
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use minikeeper::Fault;
    /// let late = Fault::delay_events(Duration::from_millis(100)).at("/config/**").once();
    /// # drop(late);
    /// ```
    #[must_use]
    pub const fn delay_events(at_most: Duration) -> Self {
        Self::new(FaultAction::DelayEvents(at_most))
    }

    /// Carries requests out and sends their replies later: [`FaultAction::DelayReply`].
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use minikeeper::{Fault, OpCode};
    /// let slow = Fault::delay_reply(Duration::from_secs(3)).on(OpCode::Create);
    /// # drop(slow);
    /// ```
    #[must_use]
    pub const fn delay_reply(by: Duration) -> Self {
        Self::new(FaultAction::DelayReply(by))
    }

    /// Closes the connection after the reply: [`FaultAction::CutAfter`].
    ///
    /// # Examples
    /// ```
    /// use minikeeper::{Fault, OpCode};
    /// let after_the_create = Fault::cut_after().on(OpCode::Create).once();
    /// # drop(after_the_create);
    /// ```
    #[must_use]
    pub const fn cut_after() -> Self {
        Self::new(FaultAction::CutAfter)
    }

    /// Expires the client's session after the reply: [`FaultAction::Expire`].
    ///
    /// # Examples
    /// ```
    /// use minikeeper::{Fault, OpCode};
    /// let loses_the_lock = Fault::expire().on(OpCode::Create).at("/locks/**").once();
    /// # drop(loses_the_lock);
    /// ```
    #[must_use]
    pub const fn expire() -> Self {
        Self::new(FaultAction::Expire)
    }

    /// Lets a client stand still for longer than its session's timeout: [`FaultAction::Pause`].
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use minikeeper::{Fault, OpCode};
    /// // It believes that it holds the lock, and for 100 ms hears nothing else.
    /// let holder = Fault::pause(Duration::from_millis(100)).on(OpCode::GetChildren).at("/lock").once();
    /// # drop(holder);
    /// ```
    #[must_use]
    pub const fn pause(by: Duration) -> Self {
        Self::new(FaultAction::Pause(by))
    }

    /// Serves nothing from a request on: [`FaultAction::Outage`].
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use minikeeper::{Fault, OpCode};
    /// let down_for_a_second = Fault::outage(Duration::from_secs(1)).on(OpCode::SetData).once();
    /// let down_until_removed = Fault::outage(Duration::MAX).once();
    /// # drop((down_for_a_second, down_until_removed));
    /// ```
    #[must_use]
    pub const fn outage(lasting: Duration) -> Self {
        Self::new(FaultAction::Outage(lasting))
    }

    /// Serves nothing of a client from a request on: [`FaultAction::ClientOutage`].
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use minikeeper::{Fault, OpCode};
    /// let cut_off = Fault::client_outage(Duration::from_secs(1)).on(OpCode::SetData).once();
    /// # drop(cut_off);
    /// ```
    #[must_use]
    pub const fn client_outage(lasting: Duration) -> Self {
        Self::new(FaultAction::ClientOutage(lasting))
    }

    /// Lets all clients die: [`FaultAction::Crash`].
    ///
    /// # Examples
    /// ```
    /// use minikeeper::{Fault, OpCode};
    /// let while_it_works = Fault::crash().on(OpCode::Create).at("/jobs/*").once();
    /// # drop(while_it_works);
    /// ```
    #[must_use]
    pub const fn crash() -> Self {
        Self::new(FaultAction::Crash)
    }

    /// Takes the last changes back: [`FaultAction::Rollback`].
    ///
    /// # Examples
    /// ```
    /// use minikeeper::{Fault, OpCode};
    /// let write_is_forgotten = Fault::rollback(1).on(OpCode::SetData).once();
    /// # drop(write_is_forgotten);
    /// ```
    #[must_use]
    pub const fn rollback(changes: u32) -> Self {
        Self::new(FaultAction::Rollback(changes))
    }

    /// Only tells that a request was served: [`FaultAction::Trigger`].
    ///
    /// # Examples
    /// ```no_run
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use minikeeper::{Fault, OpCode};
    /// let server = minikeeper::Server::builder().start().await?;
    /// let created = server.inject(Fault::trigger().on(OpCode::Create).at("/jobs/*"))?;
    /// // ... a client works; then:
    /// created.hit().await?;
    /// println!("{}", created.last_hit().expect("it was hit"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn trigger() -> Self {
        Self::new(FaultAction::Trigger)
    }

    /// Ignores a session: nothing that it sends is answered or keeps it alive, not even an attempt
    /// to reconnect. To the server this looks like a long pause of the client: unless it ends in
    /// time, the session expires. The fault is [optional](Fault::optional), because a session may
    /// expire without sending anything more.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use minikeeper::Fault;
    /// # let server = minikeeper::Server::builder().start().await?;
    /// for session in server.sessions() {
    ///     server.inject(Fault::silence(session.id))?.keep();
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn silence(session: SessionId) -> Self {
        let mut fault = Self::new(FaultAction::DropRequest);
        fault.who = FaultFor::Session(session);
        fault.is_optional = true;
        fault
    }

    /// Returns whether this equals [`Fault::silence`] for this session, optional or not.
    pub fn silences(&self, session: SessionId) -> bool {
        let silence = Self::silence(session);
        *self == silence || !self.is_optional && self.clone().optional() == silence
    }

    /// Applies to requests with this operation, in addition to those named before.
    ///
    /// # Examples
    /// ```
    /// use minikeeper::{Fault, OpCode};
    /// let writes = Fault::cut().on(OpCode::Create).on(OpCode::SetData).on(OpCode::Delete);
    /// assert_eq!(writes.ops.len(), 3);
    /// ```
    #[must_use]
    pub fn on(mut self, op: impl Into<FaultOp>) -> Self {
        self.ops.push(op.into());
        self
    }

    /// Applies to requests or events whose path matches this pattern: see [`Fault::path`].
    ///
    /// # Examples
    /// ```
    /// use minikeeper::Fault;
    /// let of_one_lock = Fault::lose_reply().at("/locks/printer/*");
    /// let of_all_locks = Fault::lose_reply().at("/locks/**");
    /// # drop((of_one_lock, of_all_locks));
    /// ```
    #[must_use]
    pub fn at(mut self, pattern: impl Into<String>) -> Self {
        self.path = Some(pattern.into());
        self
    }

    /// Applies only to this session, or to connections from this address.
    ///
    /// # Examples
    /// ```
    /// use minikeeper::{Fault, FaultFor, SessionId};
    /// let fault = Fault::cut().of(SessionId(7));
    /// assert_eq!(fault.who, FaultFor::Session(SessionId(7)));
    /// ```
    #[must_use]
    pub fn of(mut self, who: impl Into<FaultFor>) -> Self {
        self.who = who.into();
        self
    }

    /// Skips the first `matches` matches.
    ///
    /// # Examples
    /// ```
    /// use minikeeper::{Fault, OpCode};
    /// let all_but_the_first = Fault::cut().on(OpCode::Create).skip(1);
    /// # drop(all_but_the_first);
    /// ```
    #[must_use]
    pub const fn skip(mut self, matches: u64) -> Self {
        self.skip = matches;
        self
    }

    /// Acts at most `count` times.
    ///
    /// # Examples
    /// ```
    /// use minikeeper::{ErrorCode, Fault};
    /// let twice = Fault::error(ErrorCode::ThrottledOp).times(2);
    /// assert_eq!(twice.count, Some(2));
    /// ```
    #[must_use]
    pub const fn times(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    /// Acts on the first match only.
    ///
    /// # Examples
    /// ```
    /// # use minikeeper::Fault;
    /// assert_eq!(Fault::cut().once(), Fault::cut().times(1));
    /// ```
    #[must_use]
    pub const fn once(self) -> Self {
        self.times(1)
    }

    /// Acts on one match only: that with this number, counted from 1.
    ///
    /// # Examples
    /// ```
    /// # use minikeeper::Fault;
    /// assert_eq!(Fault::cut().nth(3), Fault::cut().skip(2).once());
    /// ```
    #[must_use]
    pub const fn nth(self, number: u64) -> Self {
        self.skip(number.saturating_sub(1)).once()
    }

    /// Permits the fault to end without having acted.
    ///
    /// A fault that never acted has tested nothing, so otherwise this is an error:
    /// [`FaultGuard`](../minikeeper/struct.FaultGuard.html) panics when dropped, and
    /// [`remove_fault`](../minikeeper/struct.Universe.html#method.remove_fault) returns an error.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use minikeeper::Fault;
    /// let server = minikeeper::Server::builder().start().await?;
    /// let maybe = server.inject(Fault::cut().with_probability(0.01, 42).optional())?;
    /// drop(maybe); // whether it has acted or not
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn optional(mut self) -> Self {
        self.is_optional = true;
        self
    }

    /// Acts with this probability; the same seed gives the same choices.
    ///
    /// # Examples
    /// ```
    /// use minikeeper::Fault;
    /// let one_in_ten = Fault::cut().with_probability(0.1, 42);
    /// # drop(one_in_ten);
    /// ```
    #[must_use]
    pub const fn with_probability(mut self, probability: f64, seed: u64) -> Self {
        self.probability = probability;
        self.seed = seed;
        self
    }
}

/// Describes the fault in a few words: `lose-reply, op create, path "/locks/*"`.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.action.name())?;
        if !self.ops.is_empty() {
            let ops: Vec<_> = self.ops.iter().map(|op| op.name()).collect();
            write!(f, ", op {}", ops.join(","))?;
        }
        if let Some(path) = &self.path {
            write!(f, ", path {path:?}")?;
        }
        match self.who {
            FaultFor::Anyone => Ok(()),
            FaultFor::Session(session) => write!(f, ", session {session}"),
            FaultFor::Client(number) => write!(f, ", client {number}"),
            FaultFor::Address(address) => write!(f, ", address {address}"),
            FaultFor::Ip(ip) => write!(f, ", address {ip}"),
        }
    }
}
