//! Curator's recipes among the locks of this bench: a contender of the mutex is a Java process.
//!
//! Between here and there are a pipe and two threads, some hundred microseconds: enough to see how
//! soon a dead holder's lock is free, and not to measure a hand-over.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use super::{Curator, Program, java};
use crate::{
    Error,
    peers::{
        Access, Belief, Contender, Doing, Fairness, Grant, Kind, LockFailure, LockUnderTest,
        Promises,
    },
    process::Pin,
};

/// Who waits as long as it takes waits so long at most: Java cannot be interrupted.
const WAIT_LIMIT: Duration = Duration::from_secs(20);

/// A recipe of Curator on a server.
#[derive(Clone, Debug)]
pub struct CuratorLock {
    /// What runs.
    pub program: Arc<Program>,
    /// Where it runs.
    pub pin: Pin,
    /// What it stands on, as in tables.
    pub server: String,
    /// What the server keeps through a crash.
    pub durability: &'static str,
    /// Where clients reach it.
    pub addr: SocketAddr,
    /// Which recipe.
    pub kind: Kind,
    /// How long sessions live without a word.
    pub session_timeout: Duration,
}

impl CuratorLock {
    /// A process with as many contenders as an order says.
    ///
    /// # Errors
    /// As [`Curator::start`].
    pub fn start(&self) -> Result<Curator, Error> {
        Curator::start(
            self.pin,
            &self.program,
            self.addr,
            &self.server,
            self.session_timeout,
        )
    }
}

impl LockUnderTest for CuratorLock {
    fn name(&self) -> String {
        let recipe = match self.kind {
            Kind::Mutex => "Curator",
            Kind::ReadWrite => "Curator, read-write",
            Kind::Semaphore(_) => "Curator, semaphore",
        };
        format!("{recipe} on {}", self.server)
    }

    fn kind(&self) -> Kind {
        self.kind
    }

    fn promises(&self) -> Promises {
        Promises {
            fairness: Fairness::Fifo,
            durability: self.durability,
            death: "session timeout",
            has_token: false,
        }
    }

    /// Of the mutex only: what else there is, is measured in contests.
    fn contender<'a>(&'a self, resource: &'a str) -> Doing<'a, Result<Box<dyn Contender>, Error>> {
        Box::pin(async move {
            if self.kind != Kind::Mutex {
                return Err(Error::Setup(format!(
                    "{} has no contenders outside contests; the mutex has",
                    self.name()
                )));
            }
            let mut curator = self.start()?;
            let session = curator.connect()?;
            Ok(Box::new(One {
                belief: curator.belief(),
                curator: Arc::new(Mutex::new(curator)),
                resource: resource.to_owned(),
                session,
                is_held: false,
            }) as _)
        })
    }
}

struct One {
    curator: Arc<Mutex<Curator>>,
    belief: Arc<Mutex<Belief>>,
    resource: String,
    session: String,
    is_held: bool,
}

impl One {
    /// Java is waited for in a thread, so that others go on.
    async fn order<T: Send + 'static>(
        &self,
        order: impl FnOnce(&mut Curator) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, LockFailure> {
        let curator = Arc::clone(&self.curator);
        let run = move || order(&mut java::lock(&curator));
        match tokio::task::spawn_blocking(run).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(LockFailure::Unknown(error.chain())),
            Err(error) => Err(LockFailure::Unknown(error.to_string())),
        }
    }

    async fn hold(&mut self, limit: Duration) -> Result<Option<Grant>, LockFailure> {
        let resource = self.resource.clone();
        self.is_held = self
            .order(move |curator| curator.hold(&resource, limit))
            .await?;
        Ok(self.is_held.then_some(Grant { token: None }))
    }
}

impl Contender for One {
    fn session(&self) -> String {
        self.session.clone()
    }

    fn acquire(&mut self, _: Access) -> Doing<'_, Result<Grant, LockFailure>> {
        Box::pin(async move {
            let reason = || LockFailure::NotHeld(format!("not got within {WAIT_LIMIT:?}"));
            self.hold(WAIT_LIMIT).await?.ok_or_else(reason)
        })
    }

    fn acquire_within(
        &mut self,
        _: Access,
        limit: Duration,
    ) -> Doing<'_, Result<Option<Grant>, LockFailure>> {
        Box::pin(self.hold(limit))
    }

    fn belief(&self) -> Belief {
        if self.is_held {
            *java::lock(&self.belief)
        } else {
            Belief::Lost
        }
    }

    fn release(&mut self) -> Doing<'_, Result<(), LockFailure>> {
        Box::pin(async move {
            if !std::mem::take(&mut self.is_held) {
                return Err(LockFailure::NotHeld("nothing was acquired".into()));
            }
            self.order(Curator::release).await.map(drop)
        })
    }
}
