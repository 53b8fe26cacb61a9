//! Servers under comparison: they can restart with an empty tree and have a manual clock.

use std::{net::SocketAddr, time::Duration};

use minikeeper::{Config, Recording, blocking};
use minikeeper_protocol::SessionId;
use minikeeper_test_kit::requests::LOGINS;

/// The tick of both servers, in milliseconds. Session deadlines are rounded to it.
pub const TICK_MS: u32 = 1_000;
/// The shortest session timeout granted, in milliseconds.
pub const TIMEOUT_MIN_MS: u32 = 2_000;
/// The longest session timeout granted, in milliseconds.
pub const TIMEOUT_MAX_MS: u32 = 20_000;
/// The interval between checks of containers and TTL znodes, in milliseconds.
pub const CHECK_MS: u32 = 60_000;

/// A server under comparison.
pub trait Server {
    /// The name of the server in messages.
    fn name(&self) -> String;
    /// Restarts with an empty tree and the clock at zero. Returns the address.
    ///
    /// # Errors
    /// When the server does not start.
    fn fresh(&mut self) -> Result<SocketAddr, String>;
    /// The newest zxid.
    ///
    /// # Errors
    /// When the server is broken.
    fn zxid(&mut self) -> Result<i64, String>;
    /// Expires a session before its timeout. Returns whether it existed.
    ///
    /// # Errors
    /// When the server is broken.
    fn expire(&mut self, session: SessionId) -> Result<bool, String>;
    /// Advances the clock. Returns the sessions that expired.
    ///
    /// # Errors
    /// When the server is broken.
    fn advance(&mut self, by_ms: u64) -> Result<Vec<SessionId>, String>;
}

/// minikeeper, in this process, behind TCP.
#[derive(Debug)]
pub struct Minikeeper {
    config: Config,
    running: Option<blocking::Server>,
    /// The limit of the recording that is made of each run.
    recording_bytes_max: Option<usize>,
}

impl Minikeeper {
    /// Creates a server with the common settings, changed by `configure`.
    #[must_use]
    pub fn new(configure: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config {
            tick_time_ms: TICK_MS,
            rounds_expiry: true,
            session_timeout_min_ms: Some(TIMEOUT_MIN_MS),
            session_timeout_max_ms: Some(TIMEOUT_MAX_MS),
            container_check_interval_ms: CHECK_MS,
            super_digest: Some(LOGINS[2].1.into()),
            manual_clock: true,
            java_listing_order: true,
            initial_zxid: Some(0),
            ..Config::default()
        };
        configure(&mut config);
        Self {
            config,
            running: None,
            recording_bytes_max: None,
        }
    }

    /// Makes it record what it does, with this limit in bytes.
    #[must_use]
    pub const fn recorded(mut self, bytes_max: usize) -> Self {
        self.recording_bytes_max = Some(bytes_max);
        self
    }

    /// Stops the recording and returns it.
    ///
    /// # Errors
    /// When there is none.
    pub fn stop_recording(&mut self) -> Result<Recording, String> {
        let stopped = self.running()?.stop_recording();
        stopped.map_err(|error| error.to_string())
    }

    fn running(&self) -> Result<&blocking::Server, String> {
        self.running
            .as_ref()
            .ok_or_else(|| "minikeeper is not running".to_owned())
    }
}

impl Server for Minikeeper {
    fn name(&self) -> String {
        "minikeeper".to_owned()
    }

    fn fresh(&mut self) -> Result<SocketAddr, String> {
        self.running = None;
        let server = blocking::Server::start(self.config.clone())
            .map_err(|error| format!("cannot start minikeeper: {error}"))?;
        let address = server.addr();
        if let Some(bytes_max) = self.recording_bytes_max {
            server
                .start_recording(bytes_max)
                .map_err(|error| error.to_string())?;
        }
        self.running = Some(server);
        Ok(address)
    }

    fn zxid(&mut self) -> Result<i64, String> {
        let dump = self.running()?.dump_exact();
        dump.strip_prefix("zxid 0x")
            .and_then(|rest| rest.lines().next())
            .and_then(|hex| i64::from_str_radix(hex, 16).ok())
            .ok_or_else(|| format!("no zxid in {dump}"))
    }

    fn expire(&mut self, session: SessionId) -> Result<bool, String> {
        Ok(self.running()?.expire(session).is_ok())
    }

    fn advance(&mut self, by_ms: u64) -> Result<Vec<SessionId>, String> {
        let running = self.running()?;
        let before = running.sessions();
        running.advance_strictly(Duration::from_millis(by_ms));
        let after = running.sessions();
        let ended = before
            .into_iter()
            .map(|session| session.id)
            .filter(|id| after.iter().all(|session| session.id != *id));
        Ok(ended.collect())
    }
}
