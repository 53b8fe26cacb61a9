//! Keeps cores from going to sleep.
//!
//! The host takes an idle virtual core away and returns it 50 to 100 us after it is woken; whether
//! that happens depends on the length of the pause. So a round trip of 20 us may take 120 us
//! because a client took 3 us longer. Cores that stay awake remove this effect from all figures.

use std::{
    fs::{File, OpenOptions},
    io::Write as _,
};

use crate::{Error, IoContext as _};

/// The file that limits the wake-up latency while it is open (`PM QoS` of Linux).
const PATH: &str = "/dev/cpu_dma_latency";

/// Keeps cores awake until this is dropped.
#[derive(Debug)]
pub struct Awake {
    _file: File,
}

impl Awake {
    /// Keeps all cores awake.
    ///
    /// # Errors
    /// The system has no such file, or this process is not root.
    pub fn start() -> Result<Self, Error> {
        let failed = || format!("cannot keep the cores awake: {PATH}, which takes Linux and root");
        let mut file = OpenOptions::new().write(true).open(PATH).context(failed)?;
        // In microseconds, in the machine's byte order.
        file.write_all(&0_i32.to_ne_bytes()).context(failed)?;
        Ok(Self { _file: file })
    }
}
