//! What the program asks of the operating system, and each system does in its own way.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows;

/// The signals that stop the program: SIGINT and SIGTERM.
#[cfg(unix)]
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    /// Also that the terminal has gone, if that is to stop the program in order.
    hangup: Option<Signal>,
}

#[cfg(unix)]
impl StopSignals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: None,
        })
    }

    /// Stops also when the terminal goes: SIGHUP.
    pub(crate) fn with_hangup(mut self) -> io::Result<Self> {
        self.hangup = Some(signal(SignalKind::hangup())?);
        Ok(self)
    }

    /// Waits for one of them.
    pub(crate) async fn next(&mut self) {
        let hangup = &mut self.hangup;
        let hung_up = async {
            match hangup {
                Some(hangup) => drop(hangup.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = hung_up => {}
        }
    }
}

/// The events that stop the program. Windows has no SIGTERM: a user presses Ctrl-C, a parent process
/// sends Ctrl-Break to the process group, and the system reports that the console closes or that it
/// shuts down. Ending the process from the task manager gives no chance to save.
#[cfg(windows)]
pub(crate) struct StopSignals {
    interrupt: windows::CtrlC,
    terminate: windows::CtrlBreak,
    close: windows::CtrlClose,
    shutdown: windows::CtrlShutdown,
}

#[cfg(windows)]
impl StopSignals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: windows::ctrl_c()?,
            terminate: windows::ctrl_break()?,
            close: windows::ctrl_close()?,
            shutdown: windows::ctrl_shutdown()?,
        })
    }

    /// The console's end stops the program anyway.
    pub(crate) const fn with_hangup(self) -> io::Result<Self> {
        Ok(self)
    }

    /// Waits for one of them.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.close.recv() => {}
            _ = self.shutdown.recv() => {}
        }
    }
}

/// Raises the soft limit of open files to the hard limit: thousands of clients need thousands of files,
/// and the soft limit is often 1,024.
#[cfg(unix)]
pub(crate) fn raise_open_files_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    /// The largest soft limit that macOS accepts, whatever the hard limit.
    const MACOS_MAX: u64 = 10_240;
    let limit = getrlimit(Resource::Nofile);
    let raised = if cfg!(target_os = "macos") {
        let max = limit.maximum.map_or(MACOS_MAX, |max| max.min(MACOS_MAX));
        // It may already be higher.
        limit.current.map(|current| current.max(max))
    } else {
        limit.maximum
    };
    let raised = Rlimit {
        current: raised,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "cannot raise the limit of open files above {:?}", limit.current);
    }
}

/// Windows has no such limit.
#[cfg(windows)]
pub(crate) const fn raise_open_files_limit() {}
