//! Curator's recipes among the locks of this bench: a contender for the mutex is a Java process.
//!
//! A pipe and two threads between them cost some hundred microseconds: exact enough for when a dead
//! holder's lock is free, but not for a hand-over.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use super::{Curator, Program, java};
use crate::{
    Error,
    peers::{
        Belief, Contender, Doing, Fairness, Kind, LockFailure, LockUnderTest, Promises,
        plain::Plain,
    },
    process::Pin,
};

/// The limit of waits without a time limit, because the Java call cannot be interrupted.
const WAIT_LIMIT: Duration = Duration::from_secs(20);

/// A recipe of Curator on a server.
#[derive(Clone, Debug)]
pub struct CuratorLock {
    /// The compiled program.
    pub program: Arc<Program>,
    /// Its placement.
    pub pin: Pin,
    /// The server's name in tables.
    pub server: String,
    /// What survives a crash of the server.
    pub durability: &'static str,
    /// The address clients connect to.
    pub addr: SocketAddr,
    /// The kind of recipe.
    pub kind: Kind,
    /// The session time-out.
    pub session_timeout: Duration,
}

impl CuratorLock {
    /// Starts a process, which has as many contenders as an order requests.
    ///
    /// # Errors
    /// Like [`Curator::start`].
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

    /// Only for the mutex: the other recipes are measured in contests.
    fn contender<'a>(&'a self, resource: &'a str) -> Doing<'a, Result<Box<dyn Contender>, Error>> {
        Box::pin(async move {
            if self.kind != Kind::Mutex {
                return Err(Error::Setup(format!(
                    "{} has contenders only in contests; use the mutex",
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
    /// Waits for Java in a thread, so that other tasks can run.
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
}

impl Plain for One {
    fn session(&self) -> String {
        self.session.clone()
    }

    async fn lock(&mut self, limit: Option<Duration>) -> Result<bool, LockFailure> {
        let resource = self.resource.clone();
        let hold =
            move |curator: &mut Curator| curator.hold(&resource, limit.unwrap_or(WAIT_LIMIT));
        self.is_held = self.order(hold).await?;
        if limit.is_none() && !self.is_held {
            return Err(LockFailure::NotHeld(format!(
                "not acquired within {WAIT_LIMIT:?}"
            )));
        }
        Ok(self.is_held)
    }

    fn belief(&self) -> Belief {
        if self.is_held {
            *java::lock(&self.belief)
        } else {
            Belief::Lost
        }
    }

    async fn unlock(&mut self) -> Result<(), LockFailure> {
        if !std::mem::take(&mut self.is_held) {
            return Err(LockFailure::NotHeld("nothing was acquired".into()));
        }
        self.order(Curator::release).await.map(drop)
    }
}
