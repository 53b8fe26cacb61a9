//! The thread behind a blocking client, and how calls wait for it.

use std::{
    convert::Infallible,
    fmt,
    future::Future,
    sync::{Arc, Weak, mpsc},
    thread::{self, JoinHandle},
};

use minikeeper_client::{Client, ClientBuilder, Error};
use tokio::{
    runtime::{self, Handle},
    sync::{mpsc as async_mpsc, oneshot, watch},
    time::timeout,
};

/// What every blocking object keeps: the client's thread, and who may interrupt its calls.
#[derive(Clone)]
pub(super) struct Session {
    thread: Arc<ClientThread>,
    pub(super) interrupt: Option<Interrupt>,
}

/// The thread that runs a client's tasks. It closes the client when this is dropped.
struct ClientThread {
    runtime: Handle,
    stop: Option<oneshot::Sender<()>>,
    /// Its clones are kept by tasks that delete a znode before the client is closed.
    last_tasks: Option<async_mpsc::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

/// A session that is not kept open.
pub(super) struct WeakSession(Weak<ClientThread>);

impl WeakSession {
    /// Returns the session, with this interrupt; `None` if all objects were dropped.
    pub(super) fn upgrade(&self, interrupt: Interrupt) -> Option<Session> {
        Some(Session {
            thread: self.0.upgrade()?,
            interrupt: Some(interrupt),
        })
    }
}

/// What the thread sends back once it has a client, or has failed.
type Started = Result<(Client, Handle), Error>;

impl Session {
    /// Starts a thread with a client, and waits for the client's first session.
    pub(super) fn start(builder: ClientBuilder) -> Result<(Client, Self), Error> {
        refuse_in_runtime("Client::connect")?;
        let (stop, stopped) = oneshot::channel();
        let (last_tasks, last_tasks_ended) = async_mpsc::channel(1);
        let (started, start) = mpsc::sync_channel(1);
        let thread = thread::Builder::new()
            .name("minikeeper-client".to_owned())
            .spawn(move || run(builder, &started, stopped, last_tasks_ended))
            .map_err(|error| no_thread(&error))?;
        let (client, runtime) = start.recv().expect("the thread reports the outcome")?;
        let thread = Arc::new(ClientThread {
            runtime,
            stop: Some(stop),
            last_tasks: Some(last_tasks),
            thread: Some(thread),
        });
        let interrupt = None;
        Ok((client, Self { thread, interrupt }))
    }

    /// Waits for a future, on the caller's thread, unless it is interrupted.
    pub(super) fn wait<T, E: From<Error>>(
        &self,
        what: &'static str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let Some(interrupt) = &self.interrupt else {
            return self.finish(what, work);
        };
        self.finish(what, async {
            tokio::select! {
                biased;
                () = interrupt.triggered() => Err(Error::Interrupted { what }.into()),
                done = work => done,
            }
        })
    }

    /// Like [`Session::wait`], for what a shutdown must still do: it cannot be interrupted.
    pub(super) fn finish<T, E: From<Error>>(
        &self,
        what: &'static str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        refuse_in_runtime(what)?;
        self.thread.runtime.block_on(work)
    }

    pub(super) fn downgrade(&self) -> WeakSession {
        WeakSession(Arc::downgrade(&self.thread))
    }

    /// Makes the last drop wait for this, which ends soon after its object was dropped.
    pub(super) fn outlive(&self, end: impl Future<Output = ()> + Send + 'static) {
        let last_task = self.thread.last_tasks.clone();
        self.thread.runtime.spawn(async move {
            end.await;
            drop(last_task);
        });
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("interrupt", &self.interrupt)
            .finish_non_exhaustive()
    }
}

impl Drop for ClientThread {
    fn drop(&mut self) {
        drop((self.stop.take(), self.last_tasks.take()));
        // A task that drops it does not wait: other tasks need its thread.
        if Handle::try_current().is_err()
            && let Some(thread) = self.thread.take()
        {
            // The thread has printed its panic.
            let _ = thread.join();
        }
    }
}

/// Fails where waiting would stop async tasks. A thread of `spawn_blocking` is refused too: tokio
/// does not say which kind of thread it is.
fn refuse_in_runtime(what: &'static str) -> Result<(), Error> {
    match Handle::try_current() {
        Ok(_) => Err(Error::InRuntime { what }),
        Err(_) => Ok(()),
    }
}

pub(super) fn no_thread(error: &std::io::Error) -> Error {
    Error::NoThread {
        reason: error.to_string(),
    }
}

fn run(
    builder: ClientBuilder,
    started: &mpsc::SyncSender<Started>,
    stopped: oneshot::Receiver<()>,
    mut last_tasks_ended: async_mpsc::Receiver<Infallible>,
) {
    let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = started.send(Err(no_thread(&error)));
            return;
        }
    };
    runtime.block_on(async {
        match builder.connect().await {
            Err(error) => {
                let _ = started.send(Err(error));
            }
            Ok(client) => {
                let _ = started.send(Ok((client.clone(), Handle::current())));
                // The sender sends nothing: it is dropped with the last object.
                let _ = stopped.await;
                let _ = timeout(client.close_wait(), last_tasks_ended.recv()).await;
                client.close().await;
            }
        }
    });
    // Without waiting for a name server that does not reply.
    runtime.shutdown_background();
}

/// Ends the waits of other threads. Clones are the same handle.
///
/// Once triggered, all calls of the objects that were created with it
/// ([`Client::with_interrupt`](super::Client::with_interrupt)) fail with [`Error::Interrupted`],
/// those that wait and later ones, until [`Interrupt::reset`]. An interrupted `acquire` leaves the
/// queue. Calls that release a lock or close something are not interrupted.
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let address = server.connect_string();
/// use std::{thread, time::Duration};
///
/// use minikeeper_recipes::blocking::{Client, InterProcessMutex, Interrupt};
///
/// let client = Client::connect(&address)?;
/// let interrupt = Interrupt::default();
/// let holder = InterProcessMutex::new(&client, "/locks/a")?;
/// let waiter = InterProcessMutex::new(&client.with_interrupt(&interrupt), "/locks/a")?;
/// let guard = holder.acquire()?;
/// let waiting = thread::spawn(move || waiter.acquire().is_err());
/// // The program is told to stop.
/// interrupt.trigger();
/// assert!(waiting.join().expect("no panic"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Interrupt(watch::Sender<bool>);

impl Interrupt {
    /// Interrupts the calls that wait, and all later ones.
    pub fn trigger(&self) {
        self.0.send_replace(true);
    }

    /// Returns whether it was triggered since the last reset.
    #[must_use]
    pub fn is_triggered(&self) -> bool {
        *self.0.borrow()
    }

    /// Lets later calls wait again.
    pub fn reset(&self) {
        self.0.send_replace(false);
    }

    async fn triggered(&self) {
        let mut triggered = self.0.subscribe();
        // It ends with an error only if there is no sender, and this is one.
        let _ = triggered.wait_for(|is_triggered| *is_triggered).await;
    }
}
