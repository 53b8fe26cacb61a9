//! Reads, advances, freezes and unfreezes the clock.

use std::time::Duration;

use minikeeper_core::{
    clock::{Clock, Moment},
    journal::record::RecordKind,
    state::timers,
    turn::time::Jump,
};

use crate::universe::Universe;

impl Universe {
    /// Reads the clock, in whole milliseconds.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// let server = minikeeper::Server::builder().manual_clock().start().await?;
    /// let before = server.now();
    /// server.advance(Duration::from_secs(60));
    /// assert_eq!(server.now().elapsed - before.elapsed, Duration::from_secs(60));
    /// assert_eq!(server.now().wall, before.wall + Duration::from_secs(60));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn now(&self) -> Moment {
        self.shared.turns.read_clock(Clock::moment)
    }

    /// Advances the clock, stopping at every deadline on the way. A frozen clock stays frozen
    /// afterwards; a running one continues from there.
    ///
    /// Connected sessions do not expire, however far the clock jumps: their clients, which live in
    /// real time, count as having sent pings on the way. A session counts as connected while its
    /// connection is open, whether or not its client ever sends a ping. It does not if it is
    /// [silenced](Universe::silence), if another fault loses all its pings or delays them for at
    /// least its timeout, if one of its requests is delayed, or if its connection is closing. All
    /// other sessions expire as usual. [`advance_strictly`](Universe::advance_strictly) spares
    /// none.
    ///
    /// Sessions expire, times to live end and unfinished handshakes are cut off in the order of
    /// their deadlines. When this returns, all of that has happened, and the replies and events are
    /// queued for their clients. Concurrent calls run one after the other. The clock stops at about
    /// a thousand years. If saves became due
    /// ([`Config::save_interval`](crate::Config::save_interval)), one save begins.
    ///
    /// Unit: whole milliseconds; fractions are dropped.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// // The clock runs in real time, and jumps ahead an hour.
    /// let server = minikeeper::Server::builder().start().await?;
    /// server.advance(Duration::from_secs(3600));
    /// assert!(server.now().elapsed >= Duration::from_secs(3600));
    /// # Ok(()) }
    /// ```
    pub fn advance(&self, by: Duration) {
        self.jump(by, Jump::Keeping);
    }

    /// Advances the clock as [`advance`](Universe::advance) does, but as if no client had sent
    /// anything: every session whose timeout is over expires, connected ones too.
    ///
    /// Simulates a network outage, or clients that hang with their connections open.
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

    /// Freezes the clock until [`Universe::unfreeze`]; [`Universe::advance`] still moves it.
    /// Returns whether it was running.
    ///
    /// Nothing falls due on a frozen clock: no session expires, however long a test is paused in a
    /// debugger.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = minikeeper::Server::builder().start().await?;
    /// assert!(server.freeze());
    /// assert_eq!(server.now(), server.now());
    /// assert!(server.unfreeze());
    /// # Ok(()) }
    /// ```
    pub fn freeze(&self) -> bool {
        let was_running = self.shared.turns.change_clock(Clock::freeze);
        if was_running {
            self.note_clock("frozen");
        }
        was_running
    }

    /// Unfreezes the clock, the time of day included. Returns whether it was frozen.
    ///
    /// Deadlines and save intervals ([`Config::save_interval`](crate::Config::save_interval))
    /// continue with it.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = minikeeper::Server::builder().manual_clock().start().await?;
    /// assert!(server.unfreeze());
    /// assert!(!server.now().is_frozen);
    /// # Ok(()) }
    /// ```
    pub fn unfreeze(&self) -> bool {
        let was_frozen = self.shared.turns.change_clock(Clock::unfreeze);
        if was_frozen {
            self.note_clock("unfrozen");
        }
        was_frozen
    }

    fn note_clock(&self, text: &str) {
        let turns = &self.shared.turns;
        turns.note(RecordKind::Clock, None, || text.to_owned());
    }

    /// Lets the server advance its frozen clock: when no client has sent a request for `quiet`, in
    /// real time, the clock jumps to the next deadline. `None` switches that off.
    ///
    /// Pings do not count as requests. Connected sessions do not expire, as with
    /// [`advance`](Universe::advance). A client that has just connected has one second to send its
    /// handshake before the clock jumps. A running clock is left alone. Default: `None`.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// let server = minikeeper::Server::builder().manual_clock().start().await?;
    /// // A test that would wait minutes for timeouts is over in a few hundredths of a second.
    /// server.auto_advance(Some(Duration::from_millis(10)));
    /// # Ok(()) }
    /// ```
    pub fn auto_advance(&self, quiet: Option<Duration>) {
        self.shared.time_control.set_quiet(quiet);
    }
}
