//! When the state is saved: on a polite stop, when asked, and from time to time if wished.

use std::{io::Write as _, sync::Arc, time::Duration};

use minikeeper_engine::Engine;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    shared::Shared,
    snapshot::{self, DataDir, SaveError},
};

/// What saves a server's state, if it has a data directory.
#[derive(Debug, Default)]
pub(crate) struct Saving {
    /// `None` without one, and once the server has stopped.
    dir: Mutex<Option<DataDir>>,
    /// What went wrong with the last save that nobody asked for, until somebody takes it.
    failure: Mutex<Option<SaveError>>,
    failed: Notify,
}

impl Saving {
    /// Into this directory from here on.
    pub(crate) fn save_to(&self, dir: DataDir) {
        *self.dir.lock() = Some(dir);
    }

    /// Lets go of the directory without saving, unless a save is being written right now: then
    /// with the last who knows of it.
    pub(crate) fn abandon(&self) {
        if let Some(mut dir) = self.dir.try_lock() {
            dir.take();
        }
    }

    /// Waits until a save that nobody asked for has failed.
    pub(crate) async fn failed(&self) -> SaveError {
        loop {
            self.failed.notified().await;
            if let Some(error) = self.failure.lock().take() {
                return error;
            }
        }
    }
}

impl Shared {
    /// Saves when somebody asks.
    pub(crate) async fn save(self: &Arc<Self>) -> Result<(), SaveError> {
        self.save_on_a_thread(Self::save_now).await
    }

    /// Saves for the last time and lets go of the directory.
    pub(crate) async fn finish_saving(self: &Arc<Self>) -> Result<(), SaveError> {
        self.save_on_a_thread(|shared| {
            let saved = shared.save_now();
            let Some(mut dir) = shared.saving.dir.lock().take() else {
                return saved;
            };
            saved.and_then(|()| dir.note_saved())
        })
        .await
    }

    /// Saves from time to time, by the server's clock, until dropped.
    pub(crate) async fn save_in_intervals(self: Arc<Self>, interval: Duration) {
        let interval_ms = u64::try_from(interval.as_millis())
            .unwrap_or(u64::MAX)
            .max(1);
        let mut has_failed = false;
        loop {
            let clock = self.turns.clock();
            let next_ms = clock.elapsed_ms().saturating_add(interval_ms);
            clock.wait_until(next_ms).await;
            match self.save().await {
                Ok(()) => has_failed = false,
                Err(error) => {
                    tracing::error!(err = %error, "not saved; tried again after save_interval");
                    // Said once, not every time it is tried again.
                    if !std::mem::replace(&mut has_failed, true) {
                        *self.saving.failure.lock() = Some(error);
                        self.saving.failed.notify_one();
                    }
                }
            }
        }
    }

    /// Files are written where waiting for a disk keeps nobody from being served.
    async fn save_on_a_thread(
        self: &Arc<Self>,
        save: impl FnOnce(&Self) -> Result<(), SaveError> + Send + 'static,
    ) -> Result<(), SaveError> {
        if self.config.data_dir.is_none() {
            return Ok(());
        }
        let shared = Arc::clone(self);
        match tokio::task::spawn_blocking(move || save(&shared)).await {
            Ok(saved) => saved,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(SaveError::NoRuntime),
            },
        }
    }

    /// Saves what has changed since the last save, if anything has.
    ///
    /// A serving engine is locked while its state is copied, no longer; a stopped one is written
    /// straight to the file, which spares the copy.
    pub(crate) fn save_now(&self) -> Result<(), SaveError> {
        let mut dir = self.saving.dir.lock();
        let Some(dir) = &mut *dir else {
            return Ok(());
        };
        let turns = &self.turns;
        if turns.is_broken() {
            return Err(SaveError::Broken);
        }
        // Every change of what is saved has a zxid of its own.
        if Some(turns.inspect(Engine::zxid)) == dir.saved() {
            return Ok(());
        }
        let now_ms = || turns.clock().elapsed_ms();
        let start_ms = now_ms();
        let (zxid, hold_ms, bytes) = if turns.is_stopped() {
            turns.inspect(|engine| {
                let zxid = engine.zxid();
                let saved = dir.save(zxid, |out| snapshot::write(engine.image(), out));
                saved.map(|bytes| (zxid, now_ms().saturating_sub(start_ms), bytes))
            })?
        } else {
            let (zxid, copy) = turns.inspect(|engine| (engine.zxid(), snapshot::copy(engine)));
            let hold_ms = now_ms().saturating_sub(start_ms);
            let bytes = dir.save(zxid, |out| out.write_all(&copy))?;
            (zxid, hold_ms, bytes)
        };
        let elapsed_ms = now_ms().saturating_sub(start_ms);
        tracing::info!(%zxid, bytes, hold_ms, elapsed_ms, "saved");
        Ok(())
    }
}
