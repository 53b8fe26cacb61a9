//! The position of a contender in the queue, for a caller that shows it to people.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use minikeeper_client::{Client, Error, ErrorCode};
use parking_lot::Mutex;

use crate::{
    call_limit::CallLimit,
    client::names,
    queue::{
        contending::{Queue, in_session, no_session},
        order::{self, Claim, Look},
        queue_node::QueueNode,
    },
};

/// The position of one acquisition in the queue of a lock, to show it to those who wait.
///
/// [`Acquire::report_to`](crate::Acquire::report_to) sets it. Clones are the same position. It serves
/// one acquisition at a time.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use std::time::Duration;
///
/// use minikeeper_recipes::{InterProcessMutex, QueuePosition};
/// use tokio::time::sleep;
///
/// let printer = InterProcessMutex::new(client, "/locks/printer")?;
/// let guard = printer.acquire().await?;
/// let position = QueuePosition::default();
/// let mut waiting = printer.acquire().report_to(&position);
/// # let mut guard = Some(guard);
/// let second = loop {
///     tokio::select! {
///         second = &mut waiting => break second?,
///         () = sleep(Duration::from_millis(50)) => {}
///     }
///     match position.ahead().await? {
///         Some(1) => println!("one document is printed before yours"),
///         ahead => println!("{ahead:?} documents are printed before yours"),
///     }
///     # drop(guard.take());
/// };
/// # drop(second);
/// # Ok(()) });
/// ```
#[derive(Clone, Default)]
pub struct QueuePosition {
    waiting: Arc<Mutex<Option<Arc<dyn Waits>>>>,
}

impl QueuePosition {
    /// Reads how many contenders are ahead and have to release the lock first, its holder included.
    /// A reader counts writers alone. A contender of a semaphore counts those who wait for a lease
    /// before it.
    ///
    /// `None` while the acquisition is not in the queue: before it has entered, after it has ended,
    /// while it waits for its [turn within the process](crate::LocalHandOver), and without a session.
    ///
    /// The number never grows unless the acquisition loses its session or its znode, and queues
    /// again at the end. It costs a list of all contenders, so ask once a second rather than in a
    /// loop.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when the connection is lost or the client is
    /// closed, [`Error::Refused`] when a server refuses. It only reads, so it is safe to retry.
    /// [`Error::CallTimedOut`] after the client's [`call_timeout`](Client::call_timeout).
    pub async fn ahead(&self) -> Result<Option<usize>, Error> {
        let waiting = self.waiting.lock().clone();
        match waiting {
            Some(waiting) => waiting.ahead().await,
            None => Ok(None),
        }
    }

    /// Reports this contender until the result is dropped.
    fn report(&self, queue: &Queue, claim: Claim, place: &QueueNode) -> Report {
        let waiting: Arc<dyn Waits> = Arc::new(WaitingPlace {
            client: queue.client.clone(),
            directory: Arc::clone(&queue.path),
            name: place.name().to_owned(),
            claim,
        });
        *self.waiting.lock() = Some(Arc::clone(&waiting));
        Report {
            position: self.clone(),
            waiting,
        }
    }
}

impl fmt::Debug for QueuePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueuePosition")
            .field("is_in_queue", &self.waiting.lock().is_some())
            .finish()
    }
}

/// A lock whose contenders queue.
pub trait Queued: Clone {
    /// Makes the contenders of this lock object report their position.
    #[doc(hidden)]
    fn set_position(&mut self, position: &QueuePosition);
}

impl Queue {
    /// Reports the position of this contender, until the result is dropped.
    pub(crate) fn report(&self, claim: Claim, place: &QueueNode) -> Option<Report> {
        let position = self.position.as_ref()?;
        Some(position.report(self, claim, place))
    }
}

/// Ends the report of a position when it is dropped.
pub(crate) struct Report {
    position: QueuePosition,
    waiting: Arc<dyn Waits>,
}

impl Drop for Report {
    fn drop(&mut self) {
        let mut waiting = self.position.waiting.lock();
        // Another acquisition may have taken its place.
        if waiting
            .as_ref()
            .is_some_and(|waiting| Arc::ptr_eq(waiting, &self.waiting))
        {
            *waiting = None;
        }
    }
}

/// A contender that waits in a queue.
trait Waits: Send + Sync {
    fn ahead(&self) -> Pin<Box<dyn Future<Output = Result<Option<usize>, Error>> + Send + '_>>;
}

struct WaitingPlace {
    client: Client,
    directory: Arc<str>,
    name: String,
    claim: Claim,
}

impl Waits for WaitingPlace {
    fn ahead(&self) -> Pin<Box<dyn Future<Output = Result<Option<usize>, Error>> + Send + '_>> {
        Box::pin(async {
            let children = in_session(&self.client, self.client.children(&self.directory));
            let limit = CallLimit::read(&self.client, "ahead", &self.directory);
            let list = limit
                .run(async {
                    let no_session = || Err(no_session("getChildren2", &self.directory));
                    children.await.unwrap_or_else(no_session)
                })
                .await;
            let names = match list {
                Ok(children) => names(&children),
                Err(error) if error.is(ErrorCode::NoNode) => return Ok(None),
                Err(error) => return Err(error),
            };
            let ahead = order::ahead(self.claim, names.iter(), &self.name, Look::First);
            Ok(ahead.map(|ahead| ahead.seen.len() + ahead.others))
        })
    }
}
