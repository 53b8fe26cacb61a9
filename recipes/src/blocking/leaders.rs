//! The blocking leader latch and selector.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
    thread,
    time::Duration,
};

use minikeeper_client::Error;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::{
    CloseMode, FencingToken, LatchError, LatchOptions, Leadership, LockError, Participant,
    SelectorOptions, Work,
    blocking::{Blocking, Client, Guard, Interrupt, session::no_thread, waits},
};

/// A contender for leadership, compatible with Curator's; see [`LeaderLatch`](crate::LeaderLatch).
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
/// use std::time::Duration;
///
/// use minikeeper_recipes::blocking::LeaderLatch;
///
/// let first = LeaderLatch::start(&client, "/leaders/billing", "host 7")?;
/// println!("leading with token {}", first.wait()?);
/// let second = LeaderLatch::start(&client, "/leaders/billing", "host 8")?;
/// assert_eq!(second.wait_timeout(Duration::from_millis(10))?, None);
/// first.close()?;
/// second.wait()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type LeaderLatch = Blocking<crate::LeaderLatch>;

impl LeaderLatch {
    /// Starts to contend for leadership at this path. Other clients can read the id.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid, [`Error::InRuntime`], [`Error::Interrupted`].
    pub fn start(client: &Client, path: &str, id: &str) -> Result<Self, Error> {
        Self::start_with(client, path, id, LatchOptions::default())
    }

    /// Like [`Self::start`], with these options.
    ///
    /// # Errors
    /// Those of [`Self::start`].
    pub fn start_with(
        client: &Client,
        path: &str,
        id: &str,
        options: LatchOptions,
    ) -> Result<Self, Error> {
        let start = async { crate::LeaderLatch::start_with(client.to_async(), path, id, options) };
        let latch = client.session.wait("LeaderLatch::start", start)?;
        Ok(client.bind(latch))
    }

    /// Like [`Self::wait`], and waits at most this long; `None` if the latch does not lead by then.
    ///
    /// # Errors
    /// Those of [`Self::wait`].
    pub fn wait_timeout(&self, within: Duration) -> Result<Option<FencingToken>, LatchError> {
        let wait = async {
            let waited = tokio::time::timeout(within, self.object.wait());
            waited.await.ok().transpose()
        };
        self.session.wait("LeaderLatch::wait_timeout", wait)
    }

    /// Returns a stream of changes of leadership. If the latch leads now, that is the first change.
    #[must_use]
    pub fn changes(&self) -> LeadershipChanges {
        self.with(self.object.changes())
    }
}

waits! { LeaderLatch of "crate" {
    wait wait() -> FencingToken, LatchError;
    wait participants() -> Vec<Participant>, Error;
    wait leader() -> Option<Participant>, Error;
    finish close() -> (), Error;
    finish close_with(mode: CloseMode) -> (), Error;
} }

/// A stream of changes of leadership. Returned by [`LeaderLatch::changes`].
pub type LeadershipChanges = Blocking<crate::LeadershipChanges>;

impl LeadershipChanges {
    /// Waits for the next change; `None` once the latch is closed or has failed.
    ///
    /// # Errors
    /// [`Error::InRuntime`], [`Error::Interrupted`].
    #[expect(
        clippy::should_implement_trait,
        reason = "it is no iterator: it can fail"
    )]
    pub fn next(&mut self) -> Result<Option<Leadership>, Error> {
        let next = async { Ok(self.object.next().await) };
        self.session.wait("LeadershipChanges::next", next)
    }
}

/// A contender for leadership that runs work on a thread while it leads, compatible with Curator's;
/// see [`LeaderSelector`](crate::LeaderSelector).
///
/// When the turn has to end, because the lock is in doubt, or by
/// [`interrupt`](crate::LeaderSelector::interrupt), [`LeaderSelector::close`] or the drop of the
/// selector, the calls of the turn's objects fail with [`Error::Interrupted`]. The turn ends when
/// the work returns: until then the lock is not released, and no other turn of this selector begins.
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
/// use minikeeper_recipes::{SelectorOptions, blocking::LeaderSelector};
///
/// let options = SelectorOptions::default();
/// let selector = LeaderSelector::start(&client, "/leaders/report", "host 7", options, |turn| {
///     println!("reporting with token {}", turn.guard().token());
///     while !turn.is_over() {
///         println!("the next part");
///         # break;
///     }
/// })?;
/// selector.done()?;
/// selector.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type LeaderSelector = Blocking<crate::LeaderSelector>;

impl LeaderSelector {
    /// Starts to contend for leadership at this path, and runs the work once per turn, each on a
    /// thread of its own. Other clients can read the id, which may be empty.
    ///
    /// A turn whose thread the system does not start fails with
    /// [`LockError::WorkPanicked`], and the selector goes on as after a panic of the work.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid, [`Error::InRuntime`], [`Error::Interrupted`].
    pub fn start(
        client: &Client,
        path: &str,
        id: &str,
        options: SelectorOptions,
        work: impl Fn(&LeaderTurn) + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let current = Arc::new(Mutex::new(Interrupt::default()));
        let turns = turns(client, Arc::clone(&current), work);
        let stop = Box::new(move || current.lock().trigger());
        let start = async {
            let client = client.to_async();
            crate::LeaderSelector::start_with_stop(client, path, id, options, turns, Some(stop))
        };
        let selector = client.session.wait("LeaderSelector::start", start)?;
        Ok(client.bind(selector))
    }
}

waits! { LeaderSelector of "crate" {
    wait done() -> (), LockError;
    wait participants() -> Vec<Participant>, Error;
    wait leader() -> Option<Participant>, Error;
    finish close() -> (), Error;
} }

/// Returns what runs the work on a thread of its own, with the interrupt of the current turn.
fn turns(
    client: &Client,
    current: Arc<Mutex<Interrupt>>,
    work: impl Fn(&LeaderTurn) + Send + Sync + 'static,
) -> impl for<'a> Fn(&'a crate::Guard) -> Work<'a> + Send + Sync + 'static {
    let work = Arc::new(work);
    // The task of the selector keeps it, and must not keep the session open.
    let (session, async_client) = (client.session.downgrade(), client.to_async());
    move |guard| {
        let interrupt = Interrupt::default();
        *current.lock() = interrupt.clone();
        let turn = session.upgrade(interrupt.clone()).and_then(|session| {
            let client = Client {
                object: async_client.clone(),
                session,
            };
            let guard = client.bind(guard.reenter().ok()?);
            Some(LeaderTurn { guard, client })
        });
        let work = Arc::clone(&work);
        Box::pin(async move {
            let _asked_to_end = TriggerOnDrop(interrupt);
            // Without a turn the lock is lost, or the session ends.
            if let Some(turn) = turn {
                on_thread(move || work(&turn)).await;
            }
        })
    }
}

/// Runs work on a thread of its own, and panics if it does.
async fn on_thread(work: impl FnOnce() + Send + 'static) {
    let (done, result) = oneshot::channel();
    let spawned = thread::Builder::new()
        .name("minikeeper-leader".to_owned())
        .spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(work));
            let _ = done.send(result);
        });
    if let Err(error) = spawned {
        resume_unwind(Box::new(no_thread(&error).to_string()));
    }
    if let Ok(Err(panic)) = result.await {
        resume_unwind(panic);
    }
}

/// Interrupts the calls of a turn, however the turn ends.
struct TriggerOnDrop(Interrupt);

impl Drop for TriggerOnDrop {
    fn drop(&mut self) {
        self.0.trigger();
    }
}

/// A turn of a [`LeaderSelector`], for its work.
///
/// # Examples
/// ```
/// use minikeeper_client::Error;
/// use minikeeper_recipes::blocking::LeaderTurn;
///
/// fn report(turn: &LeaderTurn) -> Result<(), Error> {
///     for order in turn.client().children("/orders")?.names() {
///         println!("{order}, reported with token {}", turn.guard().token());
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct LeaderTurn {
    // Dropped first: the guard needs the session.
    guard: Guard,
    client: Client,
}

impl LeaderTurn {
    /// Returns the guard of the lock, with the fencing token.
    #[must_use]
    pub const fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Returns a client whose calls fail with [`Error::Interrupted`] when the turn has to end. So do
    /// those of the objects that are made with it.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Returns whether the turn has to end: return from the work.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let interrupt = self.client.session.interrupt.as_ref();
        interrupt.is_some_and(Interrupt::is_triggered)
    }
}
