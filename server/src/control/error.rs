//! Why a request is not carried out.

use hyper::StatusCode;

/// An error reply: `{"error": "..."}` with this status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ControlError {
    pub(crate) status: StatusCode,
    /// A sentence for people.
    pub(crate) sentence: String,
}

impl ControlError {
    pub(crate) fn new(status: StatusCode, sentence: impl Into<String>) -> Self {
        let sentence = sentence.into();
        Self { status, sentence }
    }

    /// What was asked for makes no sense.
    pub(crate) fn bad_input(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, sentence)
    }

    /// What was asked for is not there.
    pub(crate) fn not_found(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, sentence)
    }

    /// The server is not in the state for it.
    pub(crate) fn cannot_now(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, sentence)
    }

    /// A wait ran out; the sentence says what was seen instead.
    pub(crate) fn ran_out(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, sentence)
    }
}

/// An error and what is behind it, in one sentence.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
