//! How locks go about their work.

use crate::locks::local::LocalHandOver;

/// Which savings a lock makes. None of them shows to others in the queue.
///
/// Source: `docs/curator-recipes.md` section 14.5, which has the proofs.
///
/// # Examples
/// ```
/// use minikeeper_recipes::LockOptions;
/// let thrifty = LockOptions::default();
/// let exact = LockOptions::curator_exact();
/// assert!(thrifty.create_and_list_together && !exact.create_and_list_together);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LockOptions {
    /// What the own znode holds: whoever it belongs to, for those who look. A successor downloads
    /// it, so it is to be short.
    ///
    /// Default: empty. Curator's is the IP address of the host.
    pub data: Vec<u8>,
    /// S1: creating and listing leave together. Requests of a session are served in order, so the
    /// list shows the own znode.
    ///
    /// Default: true.
    pub create_and_list_together: bool,
    /// S4 and S5: how many of those ahead are watched. When the last one ahead is seen to go and
    /// the own znode is watched, the lock is granted without another list: contenders never come
    /// in ahead, so those ahead only become fewer. 0: the one that Curator watches, and a list
    /// after each event.
    ///
    /// Default: 2: when the one before the nearest goes, a list shows, while the nearest holds
    /// the lock, that it is the last.
    pub look_ahead: usize,
    /// S6: a reader watches the nearest writer ahead instead of the first, which wakes it once.
    ///
    /// Default: true.
    pub nearest_writer: bool,
    /// S2: missing directories are made from below, as far up as it takes. Curator asks for each
    /// of them first whether it is there.
    ///
    /// Default: true.
    pub parents_from_below: bool,
    /// S3: whoever has waited long enough leaves at once, and his znode goes behind him: until it
    /// has, others merely wait. Curator looks a last time, and stays until the znode has gone.
    ///
    /// Default: true.
    pub leave_at_once: bool,
    /// S8: lists come without the directory's stat, which nobody needs: 68 bytes less.
    ///
    /// Default: true.
    pub names_only: bool,
    /// S9: tasks that want the same lock object share one place in the queue, and pass the lock on
    /// among themselves for a while. Shortens the queue from tasks to processes, and spares them
    /// the server; others wait longer, within the bounds given.
    ///
    /// Default: `None`: each stands in the queue for itself. Mutexes only.
    pub local_hand_over: Option<LocalHandOver>,
    /// S11: a try looks before it writes. It never says yes wrongly; it may say no although the
    /// last holder has just left.
    ///
    /// Default: false.
    pub peek: bool,
    /// Whether the own znode is watched from the start, so that [`status`](crate::Guard::status)
    /// knows of its deletion by others. A lock that had to be waited for is watched anyway;
    /// [`lost`](crate::Guard::lost) watches for itself.
    ///
    /// Default: false.
    pub watch_own: bool,
    /// Whether a reader who wants to write is told at once that he would wait for himself;
    /// otherwise he does, until his time is over.
    ///
    /// Default: true. Curator's: false.
    pub refuse_upgrade: bool,
    /// Whether several leases of a semaphore are got at once, under one hold of its inner lock;
    /// otherwise one after the other, so that two who each want several can end with a part each
    /// and wait for one another (hazard H16).
    ///
    /// Default: true. Curator's: false.
    pub leases_together: bool,
    /// How often a lost session or znode is put up with while waiting; each time the wait begins
    /// anew, at the end of the queue.
    ///
    /// Default: 10.
    pub attempts_max: u32,
    /// The bug that tests switched on.
    #[cfg(feature = "planted")]
    pub planted: Option<crate::planted::Planted>,
}

impl Default for LockOptions {
    fn default() -> Self {
        Self {
            data: Vec::new(),
            create_and_list_together: true,
            look_ahead: 2,
            nearest_writer: true,
            parents_from_below: true,
            leave_at_once: true,
            names_only: true,
            local_hand_over: None,
            peek: false,
            watch_own: false,
            refuse_upgrade: true,
            leases_together: true,
            attempts_max: 10,
            #[cfg(feature = "planted")]
            planted: None,
        }
    }
}

impl LockOptions {
    /// Every request as Curator makes it, one after the other. Only watches that are left over go
    /// by a request of their own; Curator forgets them (hazard H45).
    #[must_use]
    pub fn curator_exact() -> Self {
        Self {
            create_and_list_together: false,
            look_ahead: 0,
            nearest_writer: false,
            parents_from_below: false,
            leave_at_once: false,
            names_only: false,
            refuse_upgrade: false,
            leases_together: false,
            ..Self::default()
        }
    }

    /// How many leases too many a semaphore gives.
    #[cfg(feature = "planted")]
    pub(crate) fn planted_leases(&self) -> usize {
        usize::from(self.planted == Some(crate::planted::Planted::OwnLeaseNotCounted))
    }

    /// What the own znode holds.
    #[must_use]
    pub fn with_data(mut self, data: impl Into<Vec<u8>>) -> Self {
        self.data = data.into();
        self
    }
}
