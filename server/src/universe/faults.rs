//! Injects and removes faults, and waits until they have acted.

use std::{sync::Arc, time::Duration};

use crate::{
    faults::{
        FaultInfo,
        action::FaultAction,
        error::{FaultError, NotHit},
        fault::Fault,
        hits::{Hits, Seen},
    },
    turn::fault_turn,
    universe::Universe,
};

impl Universe {
    /// Injects a fault until the guard is dropped. Dropping it panics if the fault has not acted:
    /// see [`FaultGuard`].
    ///
    /// Faults are asked in the order of their injection, and the first that acts decides. At most
    /// 1,000 at a time.
    ///
    /// # Errors
    /// [`FaultError`] says what makes no sense; nothing has changed.
    ///
    /// # Examples
    /// ```no_run
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use minikeeper::{Fault, OpCode};
    /// let server = minikeeper::Server::builder().start().await?;
    /// {
    ///     let _lost = server.inject(Fault::lose_reply().on(OpCode::Create).at("/locks/**").once())?;
    ///     // Here the reply to the first create below /locks is lost, and the connection cut.
    /// }
    /// // Here all is well again.
    /// assert!(server.faults().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn inject(&self, fault: Fault) -> Result<FaultGuard, FaultError> {
        if self.elsewhere().is_some() && fault.action == FaultAction::Refuse {
            return Err(FaultError::Pointless {
                action: FaultAction::Refuse.name(),
                by: "universe: none is known yet; inject it in the server's own universe",
            });
        }
        let (id, hits) = self.shared.turns.faults.add(fault)?;
        // A session that is not heard any more is due some time: time may move on to that.
        self.shared.turns.activity.notify_turned();
        Ok(FaultGuard {
            universe: self.clone(),
            id,
            hits,
            is_kept: false,
        })
    }

    /// Lists the injected faults, oldest first.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use minikeeper::Fault;
    /// let server = minikeeper::Server::builder().start().await?;
    /// server.inject(Fault::refuse())?.keep();
    /// for info in server.faults() {
    ///     println!("fault {} has acted {} times", info.id, info.hits);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn faults(&self) -> Vec<FaultInfo> {
        self.shared.turns.faults.infos()
    }

    /// Removes a fault and returns how often it acted.
    ///
    /// What it held is released before this returns: events are on their way, delayed requests are
    /// served.
    ///
    /// # Errors
    /// [`NotHit::Unknown`] if there is no such fault, [`NotHit::Never`] if it has never acted and
    /// is not [optional](Fault::optional): it is removed all the same.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use minikeeper::Fault;
    /// let server = minikeeper::Server::builder().start().await?;
    /// let id = server.inject(Fault::refuse())?.keep();
    /// drop(server.local());
    /// assert_eq!(server.remove_fault(id), Ok(1));
    /// assert!(server.remove_fault(id).is_err()); // it is gone
    /// let id = server.inject(Fault::cut().at("/x"))?.keep();
    /// assert_eq!(
    ///     server.remove_fault(id).unwrap_err().to_string(),
    ///     "fault 2 (cut, path \"/x\"): has ended and never acted; 0 messages matched it; what it \
    ///      meets may be written otherwise (op, path, session), or inject it as optional"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_fault(&self, id: u64) -> Result<u64, NotHit> {
        let unknown = NotHit::Unknown { id };
        let faults = &self.shared.turns.faults;
        let info = faults.infos().into_iter().find(|info| info.id == id);
        let (Some(FaultInfo { fault, .. }), Some(hits)) = (info, faults.hits(id)) else {
            return Err(unknown);
        };
        if fault_turn::remove(&self.shared, Some(id)) == 0 {
            return Err(unknown);
        }
        let Seen { hits, matches, .. } = hits.seen();
        if hits == 0 && !fault.is_optional {
            let fault = fault.to_string();
            return Err(NotHit::Never { id, fault, matches });
        }
        Ok(hits)
    }

    /// Removes every fault, whether it has acted or not.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use minikeeper::Fault;
    /// let server = minikeeper::Server::builder().start().await?;
    /// let guard = server.inject(Fault::cut())?;
    /// server.reset_faults();
    /// assert!(server.faults().is_empty());
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reset_faults(&self) {
        fault_turn::remove(&self.shared, None);
    }

    /// Waits until a fault has acted `hits` times, in real time, and returns how often it has.
    ///
    /// # Errors
    /// [`NotHit`] says what was seen instead.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use std::time::Duration;
    /// use minikeeper::Fault;
    /// let server = minikeeper::Server::builder().start().await?;
    /// let id = server.inject(Fault::refuse())?.keep();
    /// drop(server.local());
    /// assert_eq!(server.until_hit(id, 1, Duration::from_secs(10)).await?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn until_hit(&self, id: u64, hits: u64, within: Duration) -> Result<u64, NotHit> {
        let known = self.shared.turns.faults.hits(id);
        let known = known.ok_or(NotHit::Unknown { id })?;
        within_bound(&known, id, hits, within).await
    }

    /// The same on a thread.
    pub(crate) fn until_hit_blocking(
        &self,
        id: u64,
        hits: u64,
        within: Duration,
    ) -> Result<u64, NotHit> {
        let known = self.shared.turns.faults.hits(id);
        let known = known.ok_or(NotHit::Unknown { id })?;
        verdict(known.until_blocking(hits, within), id, hits, within)
    }
}

async fn within_bound(known: &Hits, id: u64, wanted: u64, within: Duration) -> Result<u64, NotHit> {
    let seen = tokio::time::timeout(within, known.until(wanted)).await;
    verdict(seen.unwrap_or_else(|_| known.seen()), id, wanted, within)
}

const fn verdict(seen: Seen, id: u64, wanted: u64, within: Duration) -> Result<u64, NotHit> {
    let Seen {
        matches,
        hits,
        is_removed,
    } = seen;
    if hits >= wanted {
        return Ok(hits);
    }
    Err(if is_removed {
        NotHit::Removed { id, hits, wanted }
    } else {
        NotHit::TimedOut {
            id,
            hits,
            wanted,
            matches,
            within,
        }
    })
}

/// Keeps a fault in force until dropped, unless it is [kept](FaultGuard::keep).
///
/// # Panics
/// When it is dropped, and the fault has never acted: what was to be tested has not been. That is
/// not so if the fault is [optional](Fault::optional) or was removed by hand before, and while the
/// thread panics already. [`FaultGuard::remove`] ends it with an error instead.
///
/// # Examples
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use minikeeper::Fault;
/// let server = minikeeper::Server::builder().start().await?;
/// let guard = server.inject(Fault::refuse().once())?;
/// drop(server.local());
/// guard.hit().await?; // it has happened
/// drop(guard); // and cannot any more
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "the fault ends when this is dropped; keep() lets it last"]
pub struct FaultGuard {
    universe: Universe,
    id: u64,
    hits: Arc<Hits>,
    is_kept: bool,
}

impl FaultGuard {
    /// The fault's number.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use minikeeper::Fault;
    /// # let server = minikeeper::Server::builder().start().await?;
    /// let guard = server.inject(Fault::cut().optional())?;
    /// assert_eq!(server.faults()[0].id, guard.id());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// How often the fault has acted. A delay and a held event count as soon as they begin,
    /// everything else when it is done.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use minikeeper::Fault;
    /// # let server = minikeeper::Server::builder().start().await?;
    /// let guard = server.inject(Fault::cut().optional())?;
    /// assert_eq!(guard.hits(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits.seen().hits
    }

    /// Waits without a time limit until the fault has acted, and returns how often it has.
    ///
    /// # Errors
    /// [`NotHit::Removed`] when it was removed before.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use minikeeper::Fault;
    /// # let server = minikeeper::Server::builder().start().await?;
    /// let guard = server.inject(Fault::refuse())?;
    /// drop(server.local());
    /// assert_eq!(guard.hit().await, Ok(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn hit(&self) -> Result<u64, NotHit> {
        verdict(self.hits.until(1).await, self.id, 1, Duration::MAX)
    }

    /// Waits until the fault has acted, at most `within` in real time.
    ///
    /// # Errors
    /// [`NotHit`] says what was seen instead.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use std::time::Duration;
    /// # use minikeeper::Fault;
    /// # let server = minikeeper::Server::builder().start().await?;
    /// let guard = server.inject(Fault::refuse().optional())?;
    /// assert!(guard.hit_within(Duration::from_millis(1)).await.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn hit_within(&self, within: Duration) -> Result<u64, NotHit> {
        within_bound(&self.hits, self.id, 1, within).await
    }

    /// Removes the fault and returns how often it acted. Like dropping the guard, with an error
    /// instead of a panic.
    ///
    /// # Errors
    /// Those of [`Universe::remove_fault`].
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use minikeeper::Fault;
    /// # let server = minikeeper::Server::builder().start().await?;
    /// let guard = server.inject(Fault::refuse())?;
    /// assert!(guard.remove().is_err()); // no client has connected
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove(mut self) -> Result<u64, NotHit> {
        self.is_kept = true;
        self.universe.remove_fault(self.id)
    }

    /// Keeps the fault until it is removed by its number, which is returned.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use minikeeper::Fault;
    /// # let server = minikeeper::Server::builder().start().await?;
    /// let id = server.inject(Fault::cut().optional())?.keep();
    /// server.remove_fault(id)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[expect(clippy::must_use_candidate, reason = "reset_faults removes it too")]
    pub fn keep(mut self) -> u64 {
        self.is_kept = true;
        self.id
    }
}

impl Drop for FaultGuard {
    fn drop(&mut self) {
        if self.is_kept || self.hits.seen().is_removed {
            return;
        }
        // If it was removed already, the remover has read its hits, or chose not to.
        if let Err(never @ NotHit::Never { .. }) = self.universe.remove_fault(self.id)
            && !std::thread::panicking()
        {
            panic!("{never}");
        }
    }
}
