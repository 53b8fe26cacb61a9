//! Ctrl-C and SIGTERM: the run ends after the current block, so that servers are stopped and their
//! folders removed.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use minikeeper_bench::{Error, IoContext as _};
use tokio::signal::unix::{SignalKind, signal};

/// Tells whether the run should end.
#[derive(Clone)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens from now on, on its own thread.
    pub(crate) fn listen() -> Result<Self, Error> {
        let is_asked = Arc::new(AtomicBool::new(false));
        let stop = Self(Arc::clone(&is_asked));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context(|| "cannot listen to signals".into())?;
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                runtime.block_on(async {
                    let signals = (
                        signal(SignalKind::interrupt()),
                        signal(SignalKind::terminate()),
                    );
                    if let (Ok(mut interrupt), Ok(mut terminate)) = signals {
                        tokio::select! {
                            _ = interrupt.recv() => {}
                            _ = terminate.recv() => {}
                        }
                        is_asked.store(true, Ordering::Relaxed);
                    }
                });
            })
            .context(|| "cannot start a thread for signals".into())?;
        Ok(stop)
    }

    /// Fails once the run should end.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Error::Setup("stopped; no report is written".into()));
        }
        Ok(())
    }
}
