//! Injects and removes faults; waits until they have acted.

use std::{sync::Arc, time::Duration};

use minikeeper_core::{
    faults::{
        FaultInfo,
        action::FaultAction,
        error::{FaultError, NotHit},
        fault::Fault,
        hits::{FaultHit, Hits, Seen},
    },
    state::fault_turn,
};

use crate::universe::Universe;

impl Universe {
    /// Injects a fault until the guard is dropped. Dropping the guard panics if the fault has not
    /// acted: see [`FaultGuard`].
    ///
    /// Faults are checked in the order of injection, and only the first that applies acts. There
    /// can be at most 1,000 at a time.
    ///
    /// # Errors
    /// [`FaultError`] if the fault makes no sense; nothing has changed.
    ///
    /// # Examples
    /// ```no_run
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::{Fault, OpCode};
    /// let server = minikeeper::Server::builder().start().await?;
    /// {
    ///     let _lost = server.inject(Fault::lose_reply().on(OpCode::Create).at("/locks/**").once())?;
    ///     // Here the reply to the first create below /locks is lost, and the connection cut.
    /// }
    /// // Here all is well again.
    /// assert!(server.faults().is_empty());
    /// # Ok(()) }
    /// ```
    pub fn inject(&self, fault: Fault) -> Result<FaultGuard, FaultError> {
        if self.elsewhere().is_some() && fault.action == FaultAction::Refuse {
            return Err(FaultError::Pointless {
                action: FaultAction::Refuse.name(),
                by: "a universe: it is not known yet; inject the fault in the server's own universe",
            });
        }
        let (id, hits) = self.shared.turns.faults.add(fault)?;
        // A session that the fault silences will expire: an idle clock may advance to that.
        self.shared.turns.activity.notify_turned();
        Ok(FaultGuard {
            universe: self.clone(),
            id,
            hits,
            is_kept: false,
        })
    }

    /// Injects a fault that acts once, at a place if there is one.
    ///
    /// # Errors
    /// See [`Universe::inject`].
    #[cfg(feature = "control")]
    pub(crate) fn inject_at(
        &self,
        mut fault: Fault,
        place: Option<minikeeper_core::faults::place::FaultPlace>,
    ) -> Result<(u64, Arc<Hits>), FaultError> {
        if place.is_some() {
            // The place counts.
            fault.skip = 0;
        }
        let added = self.shared.turns.faults.add_at(fault, place)?;
        self.shared.turns.activity.notify_turned();
        Ok(added)
    }

    /// Lists the injected faults, oldest first.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::Fault;
    /// let server = minikeeper::Server::builder().start().await?;
    /// server.inject(Fault::refuse())?.keep();
    /// for info in server.faults() {
    ///     println!("fault {} has acted {} times", info.id, info.hits);
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn faults(&self) -> Vec<FaultInfo> {
        self.shared.turns.faults.infos()
    }

    /// Removes a fault and returns how often it acted.
    ///
    /// Before this returns, the events that it held are on their way and the requests that it
    /// delayed are served.
    ///
    /// # Errors
    /// [`NotHit::Unknown`] if there is no such fault. [`NotHit::Never`] if it has never acted and
    /// is not [optional](Fault::optional); it is removed nevertheless.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::Fault;
    /// let server = minikeeper::Server::builder().start().await?;
    /// let id = server.inject(Fault::refuse())?.keep();
    /// drop(server.local());
    /// assert_eq!(server.remove_fault(id), Ok(1));
    /// assert!(server.remove_fault(id).is_err()); // already removed
    /// let id = server.inject(Fault::cut().at("/x"))?.keep();
    /// assert_eq!(
    ///     server.remove_fault(id).unwrap_err().to_string(),
    ///     "fault 2 (cut, path \"/x\"): ended and never acted; messages that matched it: 0; check its op, \
    ///      path and session, or inject it as optional"
    /// );
    /// # Ok(()) }
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

    /// Removes all faults, whether they have acted or not.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::Fault;
    /// let server = minikeeper::Server::builder().start().await?;
    /// let guard = server.inject(Fault::cut())?;
    /// server.reset_faults();
    /// assert!(server.faults().is_empty());
    /// # drop(guard);
    /// # Ok(()) }
    /// ```
    pub fn reset_faults(&self) {
        fault_turn::remove(&self.shared, None);
    }

    /// Waits until a fault has acted `hits` times, and returns how often it has. `within` is in
    /// real time.
    ///
    /// # Errors
    /// [`NotHit`] says what happened instead.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use minikeeper::Fault;
    /// let server = minikeeper::Server::builder().start().await?;
    /// let id = server.inject(Fault::refuse())?.keep();
    /// drop(server.local());
    /// assert_eq!(server.until_hit(id, 1, Duration::from_secs(10)).await?, 1);
    /// # Ok(()) }
    /// ```
    pub async fn until_hit(&self, id: u64, hits: u64, within: Duration) -> Result<u64, NotHit> {
        let known = self.shared.turns.faults.hits(id);
        let known = known.ok_or(NotHit::Unknown { id })?;
        within_bound(&known, id, hits, within).await
    }

    /// Does the same as [`Universe::until_hit`], blocking the thread.
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

/// Removes a fault when dropped, unless it is [kept](FaultGuard::keep).
///
/// # Panics
/// When dropped before the fault has acted, because the test has not tested what it should. Does
/// not panic if the fault is [optional](Fault::optional) or was already removed, or if the thread
/// is already panicking. [`FaultGuard::remove`] returns an error instead.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use minikeeper::Fault;
/// let server = minikeeper::Server::builder().start().await?;
/// let guard = server.inject(Fault::refuse().once())?;
/// drop(server.local());
/// guard.hit().await?; // it has acted
/// drop(guard); // it is removed
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "the fault ends when this is dropped; keep() keeps it"]
pub struct FaultGuard {
    universe: Universe,
    id: u64,
    hits: Arc<Hits>,
    is_kept: bool,
}

impl FaultGuard {
    /// Returns the fault's number.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use minikeeper::Fault;
    /// # let server = minikeeper::Server::builder().start().await?;
    /// let guard = server.inject(Fault::cut().optional())?;
    /// assert_eq!(server.faults()[0].id, guard.id());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Returns how often the fault has acted. A delay or a held event counts as soon as it begins,
    /// everything else when it is done.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use minikeeper::Fault;
    /// # let server = minikeeper::Server::builder().start().await?;
    /// let guard = server.inject(Fault::cut().optional())?;
    /// assert_eq!(guard.hits(), 0);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits.seen().hits
    }

    /// Returns what the fault has acted on last.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use minikeeper::Fault;
    /// # let server = minikeeper::Server::builder().start().await?;
    /// let guard = server.inject(Fault::refuse())?;
    /// drop(server.local());
    /// assert_eq!(guard.last_hit().map(|hit| hit.op), Some("connect"));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn last_hit(&self) -> Option<FaultHit> {
        self.hits.last()
    }

    /// Waits without a time limit until the fault has acted, and returns how often it has.
    ///
    /// # Errors
    /// [`NotHit::Removed`] if it is removed first.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use minikeeper::Fault;
    /// # let server = minikeeper::Server::builder().start().await?;
    /// let guard = server.inject(Fault::refuse())?;
    /// drop(server.local());
    /// assert_eq!(guard.hit().await, Ok(1));
    /// # Ok(()) }
    /// ```
    pub async fn hit(&self) -> Result<u64, NotHit> {
        verdict(self.hits.until(1).await, self.id, 1, Duration::MAX)
    }

    /// Waits until the fault has acted, at most `within` in real time.
    ///
    /// # Errors
    /// [`NotHit`] says what happened instead.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use minikeeper::Fault;
    /// # let server = minikeeper::Server::builder().start().await?;
    /// let guard = server.inject(Fault::refuse().optional())?;
    /// assert!(guard.hit_within(Duration::from_millis(1)).await.is_err());
    /// # Ok(()) }
    /// ```
    pub async fn hit_within(&self, within: Duration) -> Result<u64, NotHit> {
        within_bound(&self.hits, self.id, 1, within).await
    }

    /// Removes the fault and returns how often it acted. Returns an error where dropping the guard
    /// would panic.
    ///
    /// # Errors
    /// Those of [`Universe::remove_fault`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use minikeeper::Fault;
    /// # let server = minikeeper::Server::builder().start().await?;
    /// let guard = server.inject(Fault::refuse())?;
    /// assert!(guard.remove().is_err()); // no client has connected
    /// # Ok(()) }
    /// ```
    pub fn remove(mut self) -> Result<u64, NotHit> {
        self.is_kept = true;
        self.universe.remove_fault(self.id)
    }

    /// Keeps the fault until it is removed by its number, which this returns.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use minikeeper::Fault;
    /// # let server = minikeeper::Server::builder().start().await?;
    /// let id = server.inject(Fault::cut().optional())?.keep();
    /// server.remove_fault(id)?;
    /// # Ok(()) }
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
        // If it was already removed, that caller has read its hits, or chose not to.
        if let Err(never @ NotHit::Never { .. }) = self.universe.remove_fault(self.id)
            && !std::thread::panicking()
        {
            panic!("{never}");
        }
    }
}
