//! The bodies of answers, counted while clients have not read them.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// How much hyper takes at a time: it copies what it takes. Unit: bytes.
const CHUNK_BYTES: usize = 64 << 10;

/// Answers up to this length are always sent: a client that does not read a large one must not keep
/// others from asking what happens, and each connection holds one answer. Unit: bytes.
const SMALL_ANSWER_BYTES: usize = 64 << 10;

/// The answers that clients have not read yet, of all connections together.
#[derive(Debug, Default)]
pub(crate) struct UnreadAnswers {
    bytes: AtomicUsize,
    /// How often the limit was reached.
    refused: AtomicUsize,
}

impl UnreadAnswers {
    /// Counts an answer until its body is dropped. One alone, and a small one, may exceed the limit.
    ///
    /// # Errors
    /// How much the other answers have, if this one would exceed the limit.
    pub(crate) fn admit(
        self: &Arc<Self>,
        text: Bytes,
        bytes_max: usize,
    ) -> Result<AnswerBody, usize> {
        let (length, mut others) = (text.len(), 0);
        let (set, read) = (Ordering::AcqRel, Ordering::Acquire);
        let counted = self.bytes.fetch_update(set, read, |bytes| {
            others = bytes;
            let total = bytes.saturating_add(length);
            let is_admitted = length <= SMALL_ANSWER_BYTES || bytes == 0 || total <= bytes_max;
            is_admitted.then_some(total)
        });
        if counted.is_err() {
            // Logs the first, then ever more rarely: a client may reach the limit in a loop.
            if (self.refused.fetch_add(1, Ordering::Relaxed) + 1).is_power_of_two() {
                tracing::warn!(
                    setting = "unsent_bytes_max",
                    max = bytes_max,
                    "limit reached: control refuses an answer, since others are not read"
                );
            }
            return Err(others);
        }
        let answers = Some(Arc::clone(self));
        Ok(AnswerBody {
            text,
            counted: length,
            answers,
        })
    }
}

/// A whole answer.
#[derive(Debug, Default)]
pub(crate) struct AnswerBody {
    /// What hyper has not taken.
    text: Bytes,
    counted: usize,
    answers: Option<Arc<UnreadAnswers>>,
}

impl AnswerBody {
    /// An answer that takes no memory of its own, or little.
    pub(crate) const fn uncounted(text: Bytes) -> Self {
        Self {
            text,
            counted: 0,
            answers: None,
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.text.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.text.len().min(CHUNK_BYTES);
        let chunk = self.text.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.text.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.text.len() as u64)
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        if let Some(answers) = &self.answers {
            answers.bytes.fetch_sub(self.counted, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that asked and did not read made the server hold as many answers as it liked.
    #[test]
    fn unread_answers_count_until_they_are_dropped() {
        let answers = Arc::<UnreadAnswers>::default();
        let text = |kib: usize| Bytes::from(vec![b'x'; kib << 10]);
        let bytes_max = 1_000 << 10;
        let first = answers.admit(text(600), bytes_max).unwrap();
        let second = answers.admit(text(400), bytes_max).unwrap();
        let others = answers.admit(text(65), bytes_max).unwrap_err();
        assert_eq!(others, bytes_max);
        drop(first);
        let others = answers.admit(text(601), bytes_max).unwrap_err();
        assert_eq!(others, 400 << 10);
        drop(second);
        // One alone is sent, however long it is.
        let alone = answers.admit(text(10_000), bytes_max).unwrap();
        answers.admit(text(65), bytes_max).unwrap_err();
        // While it is not read, no other client could ask for the time.
        let small = answers.admit(text(64), bytes_max).unwrap();
        drop((alone, small));
        assert_eq!(answers.bytes.load(Ordering::Acquire), 0);
    }
}
