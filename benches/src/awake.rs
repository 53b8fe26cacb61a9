//! Keeps cores from going to sleep.
//!
//! A virtual core that has nothing to do is taken away, and comes back some 50 to 100 us after it
//! is woken; whether that happens depends on how long the pause was. A round trip of 20 us may
//! then cost 120 us because a client took 3 us more. Spinning whenever nobody else wants the core
//! takes that out of every figure alike.

use std::process::{Child, Command, Stdio};

use crate::{Error, IoContext as _};

/// One spinning process a core, in the scheduler's idle class: anything else goes before it.
/// They end when this is dropped.
#[derive(Debug, Default)]
pub struct Awake(Vec<Child>);

impl Awake {
    /// Keeps cores 0 and 1 awake.
    ///
    /// # Errors
    /// When `taskset` or `chrt` (util-linux) cannot be started.
    pub fn start() -> Result<Self, Error> {
        let mut awake = Self::default();
        for core in ["0", "1"] {
            let child = Command::new("taskset")
                .args(["-c", core, "chrt", "--idle", "0"])
                // It ends by itself when this process does not live to end it.
                .args(["sh", "-c", "while kill -0 $PPID; do i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .context(|| "cannot start taskset, which keeps a core awake".into())?;
            awake.0.push(child);
        }
        Ok(awake)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
