//! Writes a recording: called by turns, under the engine lock, wherever the engine is given something.

use std::{
    fs::File,
    io::Write as _,
    sync::{Arc, OnceLock},
};

use minikeeper_engine::{CloseReason, ConnId, Engine, Handover, Input, Keep, Mark, Now};
use minikeeper_protocol::{Request, SessionId, Xid, Zxid, event, jute};
use tokio::sync::Notify;

use super::format::{self, kind};
use crate::journal::Who;

/// The room that is kept for the record which says why a recording ended. Unit: bytes.
pub const END_BYTES: usize = 160;

/// Why a recording in a file ended before its server.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RecordingEnd {
    /// The reason.
    pub reason: String,
    /// Whether the file cannot be written, so that it may break off within a record.
    pub is_failure: bool,
}

/// The end of a universe's recording in a file, for the tasks that wait for it.
#[derive(Debug, Default)]
pub struct FileEnd {
    end: OnceLock<RecordingEnd>,
    ended: Notify,
}

impl FileEnd {
    fn set(&self, reason: &str, is_failure: bool) {
        let reason = reason.to_owned();
        // A file that cannot be written has no other reason.
        let _ = self.end.set(RecordingEnd { reason, is_failure });
        self.ended.notify_waiters();
    }

    /// Waits for the end.
    pub async fn wait(&self) -> RecordingEnd {
        loop {
            let ended = self.ended.notified();
            if let Some(end) = self.end.get() {
                return end.clone();
            }
            ended.await;
        }
    }
}

/// The file of a recording.
#[derive(Debug)]
pub struct RecordingFile {
    pub file: File,
    pub end: Arc<FileEnd>,
}

/// A recording that is being written.
#[derive(Debug)]
pub struct Recorder {
    /// The records that are in no file.
    out: Vec<u8>,
    /// What is in the file. Unit: bytes.
    written: usize,
    bytes_max: usize,
    file: Option<RecordingFile>,
    /// Whether it was started in a file, which may have failed since.
    has_file: bool,
    /// Where the last cause begins in `out`.
    cause_at: usize,
    now: Now,
    /// The marks set since the start; their place is their number in records.
    marks: Vec<Mark>,
    /// Why nothing more is recorded.
    ended: Option<String>,
}

impl Recorder {
    /// Starts with the state of this engine. `prefix` is that of the universe's paths.
    pub fn new(engine: &Engine, now: Now, prefix: &str, bytes_max: usize) -> Self {
        let mut recorder = Self {
            out: format::MAGIC.to_vec(),
            written: 0,
            bytes_max,
            has_file: false,
            file: None,
            cause_at: format::MAGIC.len(),
            now,
            marks: Vec::new(),
            ended: None,
        };
        recorder.put(kind::START, &mut |out| {
            jute::put_long(out, now.elapsed_ms.cast_signed());
            jute::put_long(out, now.wall_ms);
            jute::put_buffer(out, Some(prefix.as_bytes()));
            format::put_settings(out, engine);
            format::put_state(out, engine);
        });
        recorder
    }

    fn put(&mut self, kind: u8, write: &mut dyn FnMut(&mut Vec<u8>)) {
        if self.ended.is_some() {
            return;
        }
        format::put(&mut self.out, kind, write);
        self.check_limit();
    }

    fn check_limit(&mut self) {
        if self.written + self.out.len() > self.bytes_max.saturating_sub(END_BYTES) {
            self.end_at_limit();
        }
    }

    /// Drops what does not fit, back to the cause of it, so that the rest can be replayed.
    #[cold]
    fn end_at_limit(&mut self) {
        let bytes_max = self.bytes_max;
        self.out.truncate(self.cause_at);
        self.end(format!(
            "the limit of {bytes_max} bytes is reached; raise it to record more"
        ));
        tracing::warn!(bytes_max, "limit reached: the recording ends");
    }

    /// Writes to a file from now on.
    pub fn set_file(&mut self, file: RecordingFile) {
        self.has_file = true;
        self.file = Some(file);
    }

    /// Sets the limit.
    pub const fn set_limit(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// Ends the recording, for this reason; empty if it was stopped.
    pub(crate) fn end(&mut self, why: String) {
        if self.ended.is_none() {
            format::put(&mut self.out, kind::END, &mut |out| {
                jute::put_buffer(out, Some(why.as_bytes()));
            });
            self.ended = Some(why);
        }
    }

    /// Begins a cause at this time.
    fn cause(&mut self, now: Now) {
        self.cause_at = self.out.len();
        if self.now != now {
            self.now = now;
            self.put(kind::TIME, &mut |out| {
                jute::put_long(out, now.elapsed_ms.cast_signed());
                jute::put_long(out, now.wall_ms);
            });
        }
    }

    pub fn input(&mut self, now: Now, input: &Input) {
        self.cause(now);
        if self.ended.is_none() {
            format::put_input(&mut self.out, input);
            self.check_limit();
        }
    }

    pub(crate) fn administer(&mut self, now: Now, request: &Request) {
        self.cause(now);
        self.put(kind::ADMINISTER, &mut |out| request.encode(Xid(0), out));
    }

    /// Records that the clock was advanced. `renewed` lists the sessions that this renewed; `None` if
    /// it was advanced strictly. `is_up` says whether the server was up.
    pub(crate) fn jump(
        &mut self,
        now: Now,
        by_ms: u64,
        is_up: bool,
        renewed: Option<&[SessionId]>,
    ) {
        self.cause(now);
        self.put(kind::JUMP, &mut |out| {
            jute::put_long(out, by_ms.cast_signed());
            jute::put_bool(out, is_up);
            jute::put_bool(out, renewed.is_some());
            for session in renewed.unwrap_or_default() {
                jute::put_long(out, session.0);
            }
        });
        // The next cause is at another time, which the replay gets by the jump itself.
        self.now.elapsed_ms += by_ms;
        self.now.wall_ms += by_ms.cast_signed();
    }

    pub fn mark(&mut self, now: Now, mark: Mark) {
        self.cause(now);
        self.marks.push(mark);
        self.put(kind::MARK, &mut |_| {});
    }

    /// Records that a mark is rewound to. Returns whether it was set in this recording.
    pub(crate) fn rewind(&mut self, now: Now, mark: Mark) -> bool {
        self.use_mark(now, kind::REWIND, mark)
    }

    /// Records that a mark is removed.
    pub fn forget(&mut self, now: Now, mark: Mark) {
        self.use_mark(now, kind::FORGET, mark);
    }

    fn use_mark(&mut self, now: Now, kind: u8, mark: Mark) -> bool {
        let Some(place) = self.marks.iter().position(|known| *known == mark) else {
            return false;
        };
        self.cause(now);
        self.put(kind, &mut |out| jute::put_length(out, place));
        true
    }

    /// Records that a mark from before the recording was rewound to, and this is the state now.
    pub(crate) fn rewound(&mut self, now: Now, engine: &Engine) {
        if engine.counts().sessions == 0 {
            return self.state(now, engine);
        }
        self.end("a snapshot from before the recording was restored".to_owned());
    }

    pub fn restart(&mut self, now: Now, keep: Keep) {
        self.cause(now);
        self.put(kind::RESTART, &mut |out| out.push(keep as u8));
    }

    /// Records that the state was replaced by this one.
    pub fn state(&mut self, now: Now, engine: &Engine) {
        self.cause(now);
        self.put(kind::STATE, &mut |out| format::put_state(out, engine));
    }

    pub(crate) fn take_over(&mut self, now: Now, conn: ConnId, handover: &Handover, seen: Zxid) {
        self.cause(now);
        self.put(kind::TAKE_OVER, &mut |out| {
            jute::put_int(out, conn.0.cast_signed());
            jute::put_long(out, seen.0);
            format::put_handover(out, handover);
        });
    }

    pub(crate) fn hand_over(&mut self, now: Now, conn: ConnId) {
        self.cause(now);
        self.put(kind::HAND_OVER, &mut |out| {
            jute::put_int(out, conn.0.cast_signed());
        });
    }

    /// Records a frame for a connection.
    pub(crate) fn sent(&mut self, to: ConnId, frame: &[u8]) {
        self.put(kind::SENT, &mut |out| {
            jute::put_int(out, to.0.cast_signed());
            out.extend_from_slice(frame);
        });
    }

    pub(crate) fn event(
        &mut self,
        to: ConnId,
        (event, path): (&minikeeper_engine::Event<'_>, &[u8]),
        is_held: bool,
    ) {
        let kind = if is_held { kind::HELD } else { kind::SENT };
        self.put(kind, &mut |out| {
            jute::put_int(out, to.0.cast_signed());
            event::encode(event.kind, path, event.zxid, out);
        });
    }

    pub(crate) fn close(&mut self, conn: ConnId, why: CloseReason) {
        self.put(kind::CLOSED, &mut |out| {
            jute::put_int(out, conn.0.cast_signed());
            jute::put_buffer(out, Some(why.to_string().as_bytes()));
        });
    }

    pub(crate) fn session_ended(&mut self, session: SessionId, expired: bool) {
        self.put(kind::SESSION_ENDED, &mut |out| {
            jute::put_long(out, session.0);
            jute::put_bool(out, expired);
        });
    }

    /// Records the act of a fault. A request that it keeps from being served is in no other record.
    pub(crate) fn fault(&mut self, who: Who<'_>, input: &Input, fault: u64, action: &str) {
        self.put(kind::FAULT, &mut |out| {
            jute::put_long(out, who.conn.cast_signed());
            jute::put_long(out, fault.cast_signed());
            jute::put_buffer(out, Some(action.as_bytes()));
            if action == "drop-request" || action == "cut" {
                format::put_input(out, input);
            }
        });
    }

    /// Records what happened outside of requests, in words.
    pub(crate) fn note(&mut self, conn: u64, text: &str) {
        self.put(kind::NOTE, &mut |out| {
            jute::put_long(out, conn.cast_signed());
            jute::put_buffer(out, Some(text.as_bytes()));
        });
    }

    /// Writes what is not in the file, if there is one.
    pub(crate) fn flush(&mut self) {
        let Some(RecordingFile { file, end }) = &mut self.file else {
            return;
        };
        let written = file.write_all(&self.out);
        if let Err(error) = &written {
            tracing::error!(%error, "cannot write the recording: it ends");
            let why = format!("it cannot be written: {error}");
            end.set(&why, true);
            self.ended = Some(why);
        } else if let Some(why) = self.ended.as_ref().filter(|why| !why.is_empty()) {
            end.set(why, false);
        }
        if written.is_err() {
            self.file = None;
        }
        self.written += self.out.len();
        self.out.clear();
        self.cause_at = 0;
    }

    pub const fn has_file(&self) -> bool {
        self.has_file
    }

    /// Returns the length of what is recorded and in no file. Unit: bytes.
    pub const fn size(&self) -> usize {
        self.out.len()
    }

    /// Returns everything recorded that is in no file, as if it was stopped.
    pub fn copy_ended(&self) -> Vec<u8> {
        let mut bytes = self.out.clone();
        if self.ended.is_none() {
            format::put(&mut bytes, kind::END, &mut |out| {
                jute::put_buffer(out, Some(b""));
            });
        }
        bytes
    }

    /// Takes everything recorded that is in no file.
    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        self.cause_at = 0;
        std::mem::take(&mut self.out)
    }
}

/// A recording in a file that ends with its server was stopped.
impl Drop for Recorder {
    fn drop(&mut self) {
        if self.file.is_some() {
            self.end(String::new());
            self.flush();
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use minikeeper_engine::Settings;

    use super::*;

    /// A full disk ended the recording with a line in the log, which is off by default.
    #[test]
    fn full_disk_ends_the_recording_and_is_reported() {
        let engine = Engine::new(Settings::default());
        let end = Arc::new(FileEnd::default());
        let mut recorder = Recorder::new(&engine, Now::default(), "", usize::MAX);
        recorder.set_file(RecordingFile {
            file: File::options().write(true).open("/dev/full").unwrap(),
            end: Arc::clone(&end),
        });
        recorder.flush();
        let RecordingEnd { reason, is_failure } = end.end.get().unwrap();
        assert!(is_failure);
        assert!(reason.starts_with("it cannot be written: "), "{reason}");
        // What follows is dropped.
        recorder.input(Now::default(), &Input::Tick);
        assert_eq!(recorder.size(), 0);
    }
}
