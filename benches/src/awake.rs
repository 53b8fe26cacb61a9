//! Keeps cores from going to sleep.
//!
//! A virtual core that has nothing to do is taken away, and comes back some 50 to 100 us after it
//! is woken; whether that happens depends on how long the pause was. A round trip of 20 us may
//! then cost 120 us because a client took 3 us more. Cores that wait awake take that out of every
//! figure alike.

use std::{
    fs::{File, OpenOptions},
    io::Write as _,
};

use crate::{Error, IoContext as _};

/// Where Linux is told how long waking up may take (`PM QoS`), as long as the file is open.
const PATH: &str = "/dev/cpu_dma_latency";

/// Cores wait awake until this is dropped.
#[derive(Debug)]
pub struct Awake {
    _file: File,
}

impl Awake {
    /// Keeps all cores awake.
    ///
    /// # Errors
    /// When the system has no such file, or this process is not root.
    pub fn start() -> Result<Self, Error> {
        let failed = || format!("cannot keep the cores awake: {PATH}, which takes Linux and root");
        let mut file = OpenOptions::new().write(true).open(PATH).context(failed)?;
        // In microseconds, in the machine's byte order.
        file.write_all(&0_i32.to_ne_bytes()).context(failed)?;
        Ok(Self { _file: file })
    }
}
