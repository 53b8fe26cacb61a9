//! The clock: read, advanced, frozen and released.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{
    clock::Clock,
    turn::{timers, turns::Jump},
    universe::Universe,
};

/// The readings of a server's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Moment {
    /// The age of the server. Decides when sessions expire and times to live end.
    pub elapsed: Duration,
    /// The time of day, as in the stats of znodes.
    pub wall: SystemTime,
    /// Whether time stands still.
    pub is_frozen: bool,
}

impl Universe {
    /// Reads the clock, in whole milliseconds.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use std::time::Duration;
    /// let server = minikeeper::Server::builder().manual_clock().start().await?;
    /// let before = server.now();
    /// server.advance(Duration::from_secs(60));
    /// assert_eq!(server.now().elapsed - before.elapsed, Duration::from_secs(60));
    /// assert_eq!(server.now().wall, before.wall + Duration::from_secs(60));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn now(&self) -> Moment {
        let both = |clock: &Clock| (clock.now(), clock.is_frozen());
        let (now, is_frozen) = self.shared.turns.read_clock(both);
        let since_1970 = Duration::from_millis(now.wall_ms.max(0).unsigned_abs());
        Moment {
            elapsed: Duration::from_millis(now.elapsed_ms),
            wall: UNIX_EPOCH + since_1970,
            is_frozen,
        }
    }

    /// Advances the clock, stopping at every deadline on the way. A frozen clock is frozen again
    /// afterwards; a running one runs on from there.
    ///
    /// Connected sessions live on, however far time jumps: their clients, who live in real time,
    /// would have sent pings on the way, and count as having done so. Connected is a session whose
    /// connection stands, whether or not its client ever sends a ping; not if it was
    /// [silenced](Universe::silence), if another fault loses all its pings, or delays them for its
    /// timeout, while one of its requests is delayed, and once it must close. All others expire
    /// as usual. [`advance_strictly`](Universe::advance_strictly) spares none.
    ///
    /// Sessions expire, times to live end and unfinished handshakes end in the order of their
    /// deadlines. When this returns, all of it has happened, and the replies and events are queued
    /// for their clients. Two calls at the same time wait for each other. Time does not go further
    /// than about a thousand years. A save that was due
    /// ([`Config::save_interval`](crate::Config::save_interval)) begins, once for all of the time.
    ///
    /// Unit: whole milliseconds; the rest is dropped.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use std::time::Duration;
    /// // In real time, and an hour later at once.
    /// let server = minikeeper::Server::builder().start().await?;
    /// server.advance(Duration::from_secs(3600));
    /// assert!(server.now().elapsed >= Duration::from_secs(3600));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advance(&self, by: Duration) {
        self.jump(by, Jump::Keeping);
    }

    /// Advances the clock as [`advance`](Universe::advance) does, as if no client had sent
    /// anything: every session whose timeout is over expires, connected ones too.
    ///
    /// What a pause of the whole network looks like, or a client that hangs with its connection
    /// open.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use minikeeper_client::{Client, CreateMode};
    /// let server = minikeeper::Server::builder().manual_clock().start().await?;
    /// let client = Client::connect(&server.connect_string()).await?;
    /// client.create("/alive", b"", CreateMode::Ephemeral).await?;
    /// server.advance(Duration::from_secs(3600));
    /// assert!(server.get("/alive").is_some());
    /// server.advance_strictly(Duration::from_secs(3600));
    /// assert!(server.get("/alive").is_none());
    /// # Ok(()) }
    /// ```
    pub fn advance_strictly(&self, by: Duration) {
        self.jump(by, Jump::Strict);
    }

    fn jump(&self, by: Duration, jump: Jump) {
        let by_ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        let _mover = self.shared.time_control.enter();
        timers::advance(&self.shared, by_ms, jump);
    }

    /// Freezes the clock until [`Universe::advance`] or [`Universe::unfreeze`]. Returns whether it
    /// ran.
    ///
    /// Nothing falls due while it does: no session expires, however long a test sits in a
    /// debugger.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let server = minikeeper::Server::builder().start().await?;
    /// assert!(server.freeze());
    /// assert_eq!(server.now(), server.now());
    /// assert!(server.unfreeze());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn freeze(&self) -> bool {
        self.shared.turns.change_clock(Clock::freeze)
    }

    /// Unfreezes the clock, the wall clock too. Returns whether it was frozen.
    ///
    /// Deadlines, and intervals of saves ([`Config::save_interval`](crate::Config::save_interval)),
    /// go on with it.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let server = minikeeper::Server::builder().manual_clock().start().await?;
    /// assert!(server.unfreeze());
    /// assert!(!server.now().is_frozen);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unfreeze(&self) -> bool {
        self.shared.turns.change_clock(Clock::unfreeze)
    }

    /// Advances a frozen clock by itself: when no client has sent a request for `quiet`, in real
    /// time, the clock jumps to the next deadline. `None` switches that off.
    ///
    /// Pings do not count as asking. Connected sessions live on, as with
    /// [`advance`](Universe::advance); who has just connected has a second to say something. While
    /// time runs, nothing is moved. Default: `None`.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use std::time::Duration;
    /// let server = minikeeper::Server::builder().manual_clock().start().await?;
    /// // What takes minutes of waiting for timeouts is over in a few hundredths of a second.
    /// server.auto_advance(Some(Duration::from_millis(10)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn auto_advance(&self, quiet: Option<Duration>) {
        self.shared.time_control.set_quiet(quiet);
    }
}
