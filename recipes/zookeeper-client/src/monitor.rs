//! The task that proves that the session is alive when no other request does.

use std::{
    future::pending,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::time::{Instant, sleep, sleep_until};
use zookeeper_client::{Client, Error};

use crate::clock;
use crate::{
    calls::{Boxed, is_answer},
    session::{Errand, Shared},
};

/// The wait before another attempt to get a session or a reply. It doubles up to the maximum.
const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// Connects a client with a new session.
pub(crate) type Connect = Arc<dyn Fn() -> Boxed<Result<Client, Error>> + Send + Sync>;

/// A pending request. It does not keep the client alive.
struct Question {
    generation: u64,
    made: Instant,
    answer: Boxed<Result<(), Error>>,
}

impl Question {
    fn ask(shared: &Shared) -> Self {
        let session = shared.session();
        let made = clock::now();
        let exists = session.client.check_stat("/");
        Self {
            generation: session.generation,
            made,
            answer: Box::pin(async move { exists.await.map(drop) }),
        }
    }
}

/// Runs until the adapter is dropped, or its session is over and is not replaced. Does not keep the
/// adapter alive.
pub(crate) async fn run(shared: Weak<Shared>, connect: Option<Connect>) {
    let mut asked: Option<Question> = None;
    let mut pause = Duration::ZERO;
    let mut earliest = clock::now();
    while let Some(owner) = shared.upgrade() {
        let mut watcher = owner.watcher();
        // This comes after the line above, so that no change is missed in between.
        let (ask, look) = match owner.errand() {
            Errand::Keep { ask, look } => (ask, look),
            Errand::End => return,
            Errand::Renew => {
                let Some(connect) = &connect else { return };
                drop(owner);
                asked = None;
                let client = connected(connect).await;
                let Some(owner) = shared.upgrade() else {
                    return;
                };
                owner.renew(client);
                continue;
            }
        };
        let ask = ask.filter(|_| asked.is_none()).map(|ask| ask.max(earliest));
        if ask.is_some_and(|ask| ask <= clock::now()) {
            asked = Some(Question::ask(&owner));
            continue;
        }
        drop(owner);
        tokio::select! {
            biased;
            answer = answer(&mut asked) => {
                let question = asked.take();
                let is_answered = is_answer(&answer);
                pause = if is_answered {
                    Duration::ZERO
                } else {
                    (pause * 2).clamp(BACKOFF_MIN, BACKOFF_MAX)
                };
                earliest = clock::now() + pause;
                if let (true, Some(question), Some(owner)) = (is_answered, question, shared.upgrade()) {
                    owner.answered(question.generation, question.made);
                }
            }
            _ = watcher.changed() => {}
            () = at(ask.into_iter().chain(look).min()) => {}
        }
    }
}

/// Waits for the reply to the pending request; without one, never returns.
async fn answer(asked: &mut Option<Question>) -> Result<(), Error> {
    match asked {
        Some(question) => question.answer.as_mut().await,
        None => pending().await,
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}

/// Connects, and retries until it succeeds.
async fn connected(connect: &Connect) -> Client {
    let mut pause = BACKOFF_MIN;
    loop {
        match connect().await {
            Ok(client) => return client,
            Err(_) => sleep(pause).await,
        }
        pause = (pause * 2).min(BACKOFF_MAX);
    }
}
