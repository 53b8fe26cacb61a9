//! The handle of a client: its session, and how it makes requests.

use std::{fmt, future::poll_fn, sync::Arc, task::Poll, time::Duration};

use minikeeper_protocol::{AclList, Request, SessionId, Ustring, ZnodePath};
use tokio::time::{Instant, timeout};

use crate::{
    acl_provider::AclProvider,
    builder::in_range,
    call::{About, Call, FromReply},
    core::{
        hosts::{ConnectString, ConnectStringError},
        machine::Submission,
        outcome::Epoch,
        requests::{IfAbandoned, multi_paths},
        watches::WatchKind,
    },
    error::Error,
    multi,
    notifications::Slot,
    paths,
    shared::Shared,
    state::{ClientStatus, ConnectionState, States},
    watch::{OneShot, Registration, WatchEvents},
};

/// A client of a ZooKeeper service. Clones are cheap and share the session.
///
/// A method makes its request when it is called, and requests keep that order. The returned
/// [`Call`] waits for the reply; its documentation says what dropping it does.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use minikeeper_client::{Client, CreateMode};
/// # let server = minikeeper::Server::builder().start().await?;
/// # let address = server.connect_string();
/// let client = Client::connect(&address).await?;
/// client.create("/greeting", b"hello", CreateMode::Persistent).await?;
/// let (data, changed) = client.get_data_and_watch("/greeting").await?;
/// assert_eq!(data.as_bytes(), b"hello");
/// client.set_data("/greeting", b"bye", None).await?;
/// changed.await;
/// client.close().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
    /// Dropping the last clone closes the client.
    _alive: Arc<Alive>,
    timeout: Option<Duration>,
    call_timeout: Duration,
    epoch: Option<Epoch>,
    /// The znode that is `/` for the caller: the chroot and the namespace below it.
    pub(crate) root: Option<ZnodePath>,
    pub(crate) acl_provider: Option<Arc<dyn AclProvider>>,
}

/// Closes the client when its last handle is dropped.
struct Alive(Arc<Shared>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0
            .with_rearm(|inner, now| inner.core.close(now, &mut inner.notifications));
        self.0.flush();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl Client {
    pub(crate) fn new(
        shared: Arc<Shared>,
        namespace: Option<&ZnodePath>,
        acl_provider: Option<Arc<dyn AclProvider>>,
        call_timeout: Duration,
    ) -> Self {
        Self {
            root: paths::root(shared.chroot.as_ref(), namespace),
            _alive: Arc::new(Alive(Arc::clone(&shared))),
            shared,
            timeout: None,
            call_timeout,
            epoch: None,
            acl_provider,
        }
    }

    // The session.

    /// Returns the state of the connection.
    #[must_use]
    pub fn state(&self) -> ConnectionState {
        self.shared.look(|inner| inner.notifications.state)
    }

    /// Returns a stream of all later changes of the state.
    #[must_use]
    pub fn states(&self) -> States {
        States::new(&self.shared)
    }

    /// Returns a stream of all later events that fire watches, each once. It registers no watch: keep
    /// those that other methods return.
    #[must_use]
    pub fn watch_events(&self) -> WatchEvents {
        WatchEvents::new(&self.shared, self.root.clone())
    }

    /// Returns the number of the latest session; 0 before the first.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.shared.look(|inner| inner.core.epoch())
    }

    /// Returns the number of connections so far, in all sessions. Conclusions from a reply and
    /// later events hold only if this number has not changed since the request was made.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.shared.look(|inner| inner.core.connections())
    }

    /// Returns why the last attempt to connect failed or the last connection ended: the server and
    /// the reason, at most 1,024 bytes. `None` before the first failure. It is for people and for
    /// logs.
    #[must_use]
    pub fn last_failure(&self) -> Option<String> {
        self.shared.look(|inner| inner.last_failure.clone())
    }

    /// Returns the id of the session, if there is one.
    #[must_use]
    pub fn session_id(&self) -> Option<SessionId> {
        self.shared
            .look(|inner| inner.core.session().map(|session| session.id))
    }

    /// Returns the timeout of the session on which the client counts, if there is one: the shortest that
    /// a server has granted in it; once an attempt to resume it got no reply, the requested one if that
    /// is shorter. A server that grants more than a minute and more than is requested does not count
    /// for more than the longer of these two.
    #[must_use]
    pub fn session_timeout(&self) -> Option<Duration> {
        self.shared
            .look(|inner| inner.core.session().map(|session| session.timeout))
    }

    /// Returns the time until which no server can have ended the session, even if the connection is
    /// down. `None` if there is no session that can hold a lock: before the first session, after a
    /// loss, in a session that a read-only server created, and from the start of [`Client::close`].
    ///
    /// It is the time at which the latest request was sent to which a server (not a read-only one)
    /// has replied, plus the session timeout, minus an allowance for clock drift (2 %, at least 20
    /// ms). While there is no connection, the requested timeout counts from the end of the last one, if
    /// it is shorter: an attempt to resume the session may set it although its reply is lost.
    ///
    /// Use [`Client::status`] to get this and the state at the same moment.
    #[must_use]
    pub fn safe_until(&self) -> Option<Instant> {
        self.status().safe_until
    }

    /// Returns the state and [`Client::safe_until`] at the same moment. Two separate calls might
    /// report on two sessions.
    #[must_use]
    pub fn status(&self) -> ClientStatus {
        let (state, safe_until) = self
            .shared
            .look(|inner| (inner.notifications.state, inner.core.safe_until()));
        ClientStatus {
            state,
            safe_until: safe_until.map(|at| self.shared.clock.at(at)),
        }
    }

    /// Returns a random number. With a [seed](crate::ClientBuilder::seed) it is the same in each
    /// run.
    #[must_use]
    pub fn random(&self) -> u128 {
        self.shared.look(|inner| inner.core.random())
    }

    /// Waits until requests can be sent.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// [`Error::NotConnected`] when that takes longer than `within`, or the client is closed;
    /// [`Error::AuthFailed`] when a server does not accept the client's identity.
    pub async fn connected(&self, within: Duration) -> Result<ConnectionState, Error> {
        let mut states = self.states();
        let wait = async {
            let mut state = self.state();
            while !state.is_connected() {
                state = states.next().await?;
            }
            Some(state)
        };
        let error = || match self.shared.look(|inner| inner.core.auth_failure()) {
            Some((host, reason)) => Error::AuthFailed {
                host: host.to_string(),
                reason,
            },
            None => Error::NotConnected {
                hosts: self.servers(),
                within,
                last: self.last_failure(),
            },
        };
        timeout(within, wait).await.ok().flatten().ok_or_else(error)
    }

    /// Returns the servers that the client knows, each as `host:port`, with commas between them: those
    /// of the connect string, or of the latest [`Client::update_servers`].
    #[must_use]
    pub fn servers(&self) -> String {
        self.shared.look(|inner| inner.core.servers().to_owned())
    }

    /// Replaces the list of servers. The session stays.
    ///
    /// If the client's server is no longer in the list, it goes to another one. If there are more
    /// servers than before, some clients move to the new ones, by chance, so that each server has
    /// about as many clients. Who moves loses the connection for a moment: its state is
    /// [`ConnectionState::Suspended`], and calls that wait for a reply fail as they do when a
    /// connection is lost. This is the rule of ZooKeeper's Java client; it depends on the client's
    /// [seed](crate::ClientBuilder::seed).
    ///
    /// [`EnsembleTracker`](crate::EnsembleTracker) calls this when the ensemble is reconfigured.
    ///
    /// # Errors
    /// The connect string is invalid, or has another chroot than the client: a client cannot change
    /// its root. Without a chroot the client's applies. The list is then unchanged.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let other = server.addr().port();
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// client.update_servers(&format!("127.0.0.1:{other},zk4:2181"))?;
    /// assert!(client.servers().ends_with(",zk4:2181"));
    /// assert!(client.update_servers("zk4:2181/elsewhere").is_err());
    /// # Ok(()) }
    /// ```
    pub fn update_servers(&self, connect_string: &str) -> Result<(), ConnectStringError> {
        let at: ConnectString = connect_string.parse()?;
        let chroot = self.shared.chroot.as_ref().map(ZnodePath::as_str);
        if at.chroot().is_some() && at.chroot() != chroot {
            return Err(ConnectStringError::OtherChroot {
                given: at.chroot().unwrap_or_default().to_owned(),
                chroot: chroot.unwrap_or_default().to_owned(),
            });
        }
        self.set_servers(at.hosts());
        Ok(())
    }

    pub(crate) fn set_servers(&self, servers: &[String]) {
        self.shared.with_rearm(|inner, now| {
            inner
                .core
                .update_servers(now, servers, &mut inner.notifications);
        });
    }

    /// Ends the session after pending clean-ups and waits until it has ended, at most for
    /// [`ClientBuilder::close_wait`](crate::ClientBuilder::close_wait).
    ///
    /// From the start of this call the state of every clone is [`ConnectionState::Closed`], and
    /// [`Client::safe_until`] is `None`: locks count as released, although the server learns of it
    /// slightly later. When this returns within the wait, the session's ephemeral znodes and
    /// watches are gone. Calls without a reply fail.
    ///
    /// # Cancel safety
    /// Once polled, closing continues when the future is dropped.
    pub async fn close(&self) {
        self.shared
            .with_rearm(|inner, now| inner.core.close(now, &mut inner.notifications));
        self.shared.flush();
        poll_fn(|cx| {
            self.shared.look(|inner| {
                if inner.core.is_stopped() {
                    return Poll::Ready(());
                }
                let wakers = &mut inner.notifications.closing;
                if !wakers.iter().any(|known| known.will_wake(cx.waker())) {
                    wakers.push(cx.waker().clone());
                }
                Poll::Pending
            })
        })
        .await;
    }

    pub(crate) fn connection_timeout(&self) -> Duration {
        self.shared.look(|inner| inner.core.connection_timeout())
    }

    /// Ends the client and leaves the session to its timeout.
    pub(crate) fn stop(&self) {
        self.shared
            .with_rearm(|inner, now| inner.core.stop(now, &mut inner.notifications));
    }

    /// Returns a handle whose calls fail after this time, with [`Error::NotSent`] or
    /// [`Error::OutcomeUnknown`]. Without a timeout, calls wait without a limit.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self {
            timeout: Some(timeout),
            ..self.clone()
        }
    }

    /// Returns a handle whose calls wait without a limit, as those of a client on which
    /// [`Client::with_timeout`] was never called.
    #[must_use]
    pub fn without_timeout(&self) -> Self {
        Self {
            timeout: None,
            ..self.clone()
        }
    }

    /// Returns the longest time that [`Client::close`] waits, see
    /// [`ClientBuilder::close_wait`](crate::ClientBuilder::close_wait).
    #[must_use]
    pub fn close_wait(&self) -> Duration {
        self.shared.look(|inner| inner.core.close_wait())
    }

    /// Returns the longest time that one call of a recipe on this client takes, see
    /// [`ClientBuilder::call_timeout`](crate::ClientBuilder::call_timeout).
    #[must_use]
    pub const fn call_timeout(&self) -> Duration {
        self.call_timeout
    }

    /// Returns a handle whose recipes have this limit for each call, in place of
    /// [`ClientBuilder::call_timeout`](crate::ClientBuilder::call_timeout).
    #[must_use]
    pub fn with_call_timeout(&self, timeout: Duration) -> Self {
        Self {
            call_timeout: in_range(timeout),
            ..self.clone()
        }
    }

    /// Returns a handle whose requests are sent in this session or not sent at all.
    #[must_use]
    pub fn in_epoch(&self, epoch: Epoch) -> Self {
        Self {
            epoch: Some(epoch),
            ..self.clone()
        }
    }

    /// Returns a handle that asks this provider for the access list of each znode that it creates,
    /// unless [`CreateOptions::acl`](crate::CreateOptions::acl) names one.
    #[must_use]
    pub fn with_acl_provider(&self, provider: impl AclProvider) -> Self {
        Self {
            acl_provider: Some(Arc::new(provider)),
            ..self.clone()
        }
    }

    /// Returns the access list for a new znode.
    ///
    /// The path is the server's.
    pub(crate) fn acl_for(&self, path: &Ustring) -> AclList {
        let Some(provider) = &self.acl_provider else {
            return AclList::world_all();
        };
        let chroot_bytes = paths::bytes_of(self.shared.chroot.as_ref());
        provider.acl(&paths::shown(path, chroot_bytes))
    }

    /// Sends the requests whose calls were not polled yet, without waiting. For a task that keeps many
    /// calls and polls only the oldest.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// let reads: Vec<_> = ["/", "/zookeeper"].map(|path| client.get_data(path)).into();
    /// client.flush();
    /// // Both are on their way.
    /// for read in reads {
    ///     read.await?;
    /// }
    /// # Ok(()) });
    /// ```
    pub fn flush(&self) {
        self.shared.flush();
    }

    // How requests are made.

    pub(crate) fn plain<T: FromReply>(
        &self,
        path: &str,
        request: impl FnOnce(Option<Ustring>) -> Request,
    ) -> Call<T> {
        self.call(path, false, None, |path| (request(Some(path)), None))
    }

    pub(crate) fn watching<T: FromReply>(
        &self,
        path: &str,
        kind: WatchKind,
        request: impl FnOnce(Option<Ustring>) -> Request,
    ) -> Call<T> {
        self.call(path, false, Some(kind), |path| (request(Some(path)), None))
    }

    pub(crate) fn call<T: FromReply>(
        &self,
        path: &str,
        is_sequential: bool,
        watch: Option<WatchKind>,
        request: impl FnOnce(Ustring) -> (Request, Option<IfAbandoned>),
    ) -> Call<T> {
        match paths::full(self.root.as_ref(), path, is_sequential) {
            Ok(path) => {
                let (request, if_abandoned) = request(path);
                self.request(request, watch, if_abandoned)
            }
            Err(error) => self.failed(&Request::Ping, error.into()),
        }
    }

    pub(crate) fn failed<T>(&self, request: &Request, error: Error) -> Call<T> {
        Call::failed(Arc::clone(&self.shared), self.about(request), error)
    }

    pub(crate) fn about(&self, request: &Request) -> About {
        About {
            op: request.op(),
            path: request.path().cloned().unwrap_or_default(),
            paths: match request {
                Request::Multi(ops) => multi_paths(ops).collect(),
                _ => Vec::new(),
            },
            root_bytes: paths::bytes_of(self.root.as_ref()),
        }
    }

    /// Makes a request for a znode outside of the chroot.
    pub(crate) fn outside_chroot<T: FromReply>(
        &self,
        request: Request,
        watch: Option<WatchKind>,
    ) -> Call<T> {
        let about = About {
            root_bytes: 0,
            ..self.about(&request)
        };
        self.submit(request, about, watch, None)
    }

    pub(crate) fn request<T: FromReply>(
        &self,
        request: Request,
        watch: Option<WatchKind>,
        if_abandoned: Option<IfAbandoned>,
    ) -> Call<T> {
        let about = self.about(&request);
        self.submit(request, about, watch, if_abandoned)
    }

    fn submit<T: FromReply>(
        &self,
        request: Request,
        about: About,
        watch: Option<WatchKind>,
        if_abandoned: Option<IfAbandoned>,
    ) -> Call<T> {
        let bytes = multi::payload_bytes(&request);
        if bytes > self.shared.frame_bytes_max {
            let error = Error::TooLarge {
                op: about.op.name(),
                path: about.shown(&about.path),
                bytes,
                bytes_max: self.shared.frame_bytes_max,
            };
            return Call::failed(Arc::clone(&self.shared), about, error);
        }
        let is_seen_to = if_abandoned.is_some();
        let submit = |inner: &mut crate::shared::Inner, now: Duration| {
            let slot = inner.notifications.slots.insert(Slot::Waiting(None));
            let watch = watch.map(|kind| {
                (
                    kind,
                    inner.notifications.add_watch(kind, about.path.clone()),
                )
            });
            let submission = Submission {
                caller: Some(u32::try_from(slot).expect("memory runs out before 2^32 calls")),
                payload_bytes: bytes,
                epoch: self.epoch,
                deadline: self.timeout.map(|timeout| now.saturating_add(timeout)),
                watch,
                if_abandoned: if_abandoned.map(Box::new),
            };
            inner
                .core
                .submit(now, &request, submission, &mut inner.notifications);
            (slot, watch.map(|(_, token)| token))
        };
        let (slot, token) = if self.timeout.is_some() {
            self.shared.with_rearm(submit)
        } else {
            self.shared.with(submit)
        };
        let watch =
            token.map(|token| OneShot::new(Registration::new(Arc::clone(&self.shared), token)));
        Call::made(Arc::clone(&self.shared), slot, about, watch).seen_to(is_seen_to)
    }
}
