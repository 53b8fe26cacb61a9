//! Recordings of a universe.

use std::{
    fs::{self, File},
    path::Path,
    sync::Arc,
};

use minikeeper_core::{
    outbox::Close,
    recording::{
        Recording, RecordingEnd, RecordingError,
        recorder::{END_BYTES, Recorder, RecordingFile},
    },
};
use minikeeper_engine::{Input, Keep};

use crate::universe::Universe;

/// Records what clients send and what follows, so that it can be [replayed](crate::replay()).
impl Universe {
    /// Starts a recording in memory, of at most this many bytes. When the limit is reached the
    /// recording ends; what it has can be replayed.
    ///
    /// If there are sessions, this closes every connection, as a restart that keeps everything does:
    /// clients connect again, and what they then send, such as their watches, is in the recording.
    ///
    /// # Errors
    /// [`RecordingError::Running`] if a recording is being made, [`RecordingError::NoJournal`] if the
    /// server keeps no journal, [`RecordingError::Sasl`] if it has SASL users,
    /// [`RecordingError::Limit`] if the state alone exceeds the limit. Nothing has changed then.
    pub fn start_recording(&self, bytes_max: usize) -> Result<(), RecordingError> {
        self.record(bytes_max, None)
    }

    /// Starts a recording in a file, which must not exist: see
    /// [`start_recording`](Universe::start_recording). The file has everything up to the last turn,
    /// even if the process is killed. [`recording_ended`](Universe::recording_ended) waits for a
    /// recording that ends early.
    ///
    /// # Errors
    /// As for [`start_recording`](Universe::start_recording), and when the file cannot be created. No
    /// file is left then.
    pub fn record_to(
        &self,
        file: impl AsRef<Path>,
        bytes_max: usize,
    ) -> Result<(), std::io::Error> {
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let path = file.as_ref();
        let file = RecordingFile {
            file: options.open(path)?,
            end: Arc::clone(&self.shared.file_end),
        };
        let started = self.record(bytes_max, Some(file));
        started.map_err(|error| {
            // A file that is left would make the next attempt fail, because it must not exist.
            let _ = fs::remove_file(path);
            std::io::Error::other(error)
        })
    }

    /// Waits until a recording in a file ends before its server does: at its limit, because the file
    /// cannot be written, or because a snapshot from before it is restored. Returns the reason.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn recording_ended(&self) -> RecordingEnd {
        self.shared.file_end.wait().await
    }

    fn record(&self, bytes_max: usize, file: Option<RecordingFile>) -> Result<(), RecordingError> {
        let turns = &self.shared.turns;
        let mut outcome = Err(RecordingError::Stopped);
        let mut file = Some(file);
        turns.turn(|core, now| {
            let Some(sink) = &mut core.sink else {
                outcome = Err(RecordingError::NoJournal);
                return Vec::new();
            };
            if sink.recorder.is_some() {
                outcome = Err(RecordingError::Running);
                return Vec::new();
            }
            if core.engine.settings().sasl.is_some() {
                outcome = Err(RecordingError::Sasl);
                return Vec::new();
            }
            // The state as it is before the restart: a replay begins with that restart.
            let mut recorder = Recorder::new(&core.engine, now, turns.prefix(), usize::MAX);
            let needed = recorder.size() + END_BYTES;
            if needed > bytes_max {
                outcome = Err(RecordingError::Limit { needed, bytes_max });
                return Vec::new();
            }
            recorder.set_limit(bytes_max);
            if let Some(file) = file.take().flatten() {
                recorder.set_file(file);
            }
            let mut wakes = Vec::new();
            let has_sessions = core.engine.counts().sessions > 0;
            if has_sessions {
                core.engine.restart(Keep::Everything, now);
            }
            for (key, member) in &core.members {
                if has_sessions {
                    wakes.extend(member.outbox.close(Close::Shutdown));
                } else if let Ok(key) = u32::try_from(key) {
                    let (conn, peer) = (minikeeper_engine::ConnId(key), member.stats.peer.ip());
                    recorder.input(now, &Input::Open { conn, peer });
                }
            }
            sink.recorder = Some(Box::new(recorder));
            outcome = Ok(());
            wakes
        });
        outcome
    }

    /// Stops the recording in memory and returns it. One in a file goes on until the server stops.
    ///
    /// # Errors
    /// [`RecordingError::NotRunning`] if no recording is being made or it is in a file.
    pub fn stop_recording(&self) -> Result<Recording, RecordingError> {
        let take = |recorder: &mut Option<Box<Recorder>>| recorder.take_if(|it| !it.has_file());
        let taken = self.shared.turns.recorder(take);
        let recorder = taken.flatten().ok_or(RecordingError::NotRunning)?;
        Recording::from_bytes(recorder.copy_ended())
    }

    /// Returns what is recorded so far, in memory.
    ///
    /// # Errors
    /// [`RecordingError::NotRunning`] if no recording is being made, or it is in a file.
    pub fn recording(&self) -> Result<Recording, RecordingError> {
        let copied = self.shared.turns.recorder(|recorder| {
            let recorder = recorder.as_ref().filter(|it| !it.has_file())?;
            Some(recorder.copy_ended())
        });
        let bytes = copied.flatten().ok_or(RecordingError::NotRunning)?;
        Recording::from_bytes(bytes)
    }
}
