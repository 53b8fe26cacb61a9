//! Serves the verb `tail`: the entries of the journal as they are made, one a line.

use std::{
    convert::Infallible,
    num::NonZero,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use minikeeper_core::race::first_of;
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    control::{controls::Controls, error::ControlError},
    universe::JournalTail,
    views,
};

/// The limit of the number of streams at a time, for the whole server.
pub(crate) const STREAMS_MAX: usize = 64;

/// The maximum number of entries in a chunk of the answer.
const CHUNK_ENTRIES: NonZero<usize> = NonZero::new(200).unwrap();

/// After this time without an entry the server sends an empty line, so that each end notices when the
/// other is gone.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The body of an answer that goes on: lines with an entry as JSON each, and empty lines.
///
/// A client that reads slowly makes nothing wait: its next chunk is read from the journal when it has
/// taken the one before.
pub(crate) struct TailBody(Pin<Box<dyn Future<Output = NextChunk> + Send>>);

/// A chunk, and the stream for the next one; `None` at the end.
type NextChunk = Option<(Bytes, TailStream)>;

/// What the body is made from.
struct TailStream {
    tail: JournalTail,
    controls: Arc<Controls>,
    _permit: OwnedSemaphorePermit,
}

impl TailBody {
    /// Begins a stream.
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn new(tail: JournalTail, controls: Arc<Controls>) -> Result<Self, ControlError> {
        let permit = Arc::clone(&controls.streams).try_acquire_owned();
        let _permit = permit.map_err(|_| {
            let sentence = format!(
                "{STREAMS_MAX} clients follow the journal, which is the limit; end one of them"
            );
            ControlError::cannot_now(sentence)
        })?;
        let stream = TailStream {
            tail,
            controls,
            _permit,
        };
        // The head of the answer goes out with the first chunk.
        let first = async { Some((Bytes::from_static(b"\n"), stream)) };
        Ok(Self(Box::pin(first)))
    }
}

impl TailStream {
    async fn next(mut self) -> NextChunk {
        let controls = Arc::clone(&self.controls);
        let stopped = async {
            controls.stopped().await;
            None
        };
        let read = tokio::time::timeout(HEARTBEAT, self.tail.next(CHUNK_ENTRIES));
        let mut lines = String::new();
        match first_of(async { Some(read.await) }, stopped).await? {
            Ok(Ok(entries)) if !entries.is_empty() => {
                for entry in &entries {
                    lines += &views::journal::entry(entry).to_string();
                    lines.push('\n');
                }
            }
            // The universe or its journal is gone.
            Ok(_) => return None,
            Err(_) => lines.push('\n'),
        }
        Some((lines.into(), self))
    }
}

impl Body for TailBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.as_mut().poll(context).map(|next| {
            let (chunk, stream) = next?;
            self.0 = Box::pin(stream.next());
            Some(Ok(Frame::data(chunk)))
        })
    }
}
