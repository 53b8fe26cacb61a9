//! The options of locks.

use std::{path::Path, sync::LazyLock, time::Duration};

use crate::locks::local::LocalHandOver;

/// The options of a lock. Most of them save requests. Other contenders in the queue notice no
/// difference.
///
/// Source: `docs/curator-recipes.md` section 14.5, which proves the savings S1 to S11.
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
    /// The data of the lock's znode, which shows operators who holds the lock or waits for it. The
    /// next contender reads it, so keep it short.
    ///
    /// Default: [`LockOptions::process_data`]. Curator: the IP address of the host.
    pub data: Vec<u8>,
    /// S1: sends the creation and the listing together. The server serves requests of a session in
    /// order, so the list includes the new znode.
    ///
    /// Default: true.
    pub create_and_list_together: bool,
    /// S4 and S5: the number of contenders ahead that are watched. The lock is granted without
    /// another list when the watch of the last contender ahead fires and the contender's own znode
    /// is watched: new contenders never queue ahead, so those ahead only become fewer. With 0 a
    /// contender watches the one that Curator watches, and lists after each event.
    ///
    /// Default: 2. When the second contender ahead leaves, the list is read while the nearest one
    /// holds the lock, and shows that it is the last.
    pub look_ahead: usize,
    /// S6: a reader watches the nearest writer ahead instead of the first, so that it wakes only
    /// once.
    ///
    /// Default: true.
    pub nearest_writer: bool,
    /// S2: creates missing directories from the lowest one upwards, only as far as needed. Curator
    /// first checks whether each of them exists.
    ///
    /// Default: true.
    pub parents_from_below: bool,
    /// S3: a call whose time limit has passed returns at once, and its znode is deleted in the
    /// background, for which other contenders wait. Curator lists once more, and waits until the
    /// znode is deleted.
    ///
    /// Default: true.
    pub leave_at_once: bool,
    /// S8: reads lists without the directory's stat, which the recipes do not use, and so saves 68
    /// bytes.
    ///
    /// Default: true.
    pub names_only: bool,
    /// S9: tasks that acquire the same lock object share one place in the queue, and pass the lock
    /// on to each other for a while, without requests. The queue has one entry per process instead
    /// of one per task. Other processes wait longer, within these bounds. Mutexes only.
    ///
    /// Default: `None`: each task has its own place in the queue.
    pub local_hand_over: Option<LocalHandOver>,
    /// S11: an acquire whose limit is zero, such as `try_acquire`, reads before it writes. It may
    /// fail although the last holder has just released the lock; it never acquires a lock that
    /// another contender holds.
    ///
    /// Default: false.
    pub peek: bool,
    /// Whether the contender's own znode is watched from the start, so that
    /// [`status`](crate::Guard::status) notices if another client deletes it. After a wait in the
    /// queue it is always watched, and [`lost`](crate::Guard::lost) watches it in any case.
    ///
    /// Default: false.
    pub watch_own: bool,
    /// Whether an owner that reads and wants to write gets
    /// [`LockError::UpgradeWouldDeadlock`](crate::LockError::UpgradeWouldDeadlock) at once.
    /// Otherwise it waits for itself until its time limit.
    ///
    /// Default: true. Curator: false.
    pub refuse_upgrade: bool,
    /// Whether several leases of a semaphore are acquired at once, under one hold of its inner
    /// lock. Otherwise they are acquired one after the other, and two contenders that each want
    /// several can each hold a part and wait for each other (hazard H16).
    ///
    /// Default: true. Curator: false.
    pub leases_together: bool,
    /// How often a call queues, at least once. After a lost session or znode it queues again, at
    /// the end; after N times it fails with [`LockError::Lost`](crate::LockError::Lost).
    ///
    /// Default: 10.
    pub attempts_max: u32,
    /// How long a lock may be held before a warning of `tracing`, and a count in the metric
    /// `minikeeper_lock_long_holds_total`. It comes once for each hold, while the lock is still held, and
    /// changes nothing about the lock. Each hold then has a task that waits for that time.
    ///
    /// Default: `None`: no warning, no task. Any length of time is valid.
    pub hold_warn_after: Option<Duration>,
    /// Whether metrics have the path of the lock as a label, so that each path is a series of its
    /// own in each metric. Switch it off if the program makes up paths, such as one for each order:
    /// a recorder keeps every series for as long as the process lives.
    ///
    /// Default: true. Without the feature `metrics` it has no effect.
    pub path_label: bool,
}

impl Default for LockOptions {
    fn default() -> Self {
        Self {
            data: Self::process_data(),
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
            hold_warn_after: None,
            path_label: true,
        }
    }
}

impl LockOptions {
    /// Returns options that make every request as Curator does, one after the other. The one
    /// exception: additional requests remove unused watches, which Curator leaves behind (hazard
    /// H45).
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

    /// Returns text that says which process this is: the host's name, the process id and the
    /// program's name, at most 255 bytes, as in `host-7 pid 4711 billing`.
    #[must_use]
    pub fn process_data() -> Vec<u8> {
        static TEXT: LazyLock<String> = LazyLock::new(|| {
            let host = host_name().unwrap_or_else(|| "unknown host".to_owned());
            let program = std::env::current_exe().ok();
            let name = program.as_deref().and_then(Path::file_stem);
            let name = name.unwrap_or_default().to_string_lossy();
            let mut text = format!("{host} pid {} {name}", std::process::id());
            while text.len() > PROCESS_DATA_BYTES_MAX {
                text.pop();
            }
            text
        });
        TEXT.trim_end().as_bytes().to_vec()
    }

    /// Sets [`LockOptions::data`].
    #[must_use]
    pub fn with_data(mut self, data: impl Into<Vec<u8>>) -> Self {
        self.data = data.into();
        self
    }
}

/// The limit of [`LockOptions::process_data`].
const PROCESS_DATA_BYTES_MAX: usize = 255;

/// Returns the name of this host, as the kernel or the environment knows it.
fn host_name() -> Option<String> {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = kernel
        .or_else(|| std::env::var("HOSTNAME").ok())
        .or_else(|| std::env::var("COMPUTERNAME").ok())?;
    let name: String = name.trim().chars().filter(|c| !c.is_control()).collect();
    (!name.is_empty()).then_some(name)
}
