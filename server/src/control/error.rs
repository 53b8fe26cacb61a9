//! The errors of control requests.

use hyper::StatusCode;

/// An error reply: `{"error": "..."}` with this status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ControlError {
    pub(crate) status: StatusCode,
    /// An explanation for humans.
    pub(crate) sentence: String,
}

impl ControlError {
    pub(crate) fn new(status: StatusCode, sentence: impl Into<String>) -> Self {
        let sentence = sentence.into();
        Self { status, sentence }
    }

    /// The request is malformed or contradicts itself.
    pub(crate) fn bad_input(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, sentence)
    }

    /// The object of the request does not exist.
    pub(crate) fn not_found(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, sentence)
    }

    /// The server's state does not allow the request.
    pub(crate) fn cannot_now(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, sentence)
    }

    /// A wait timed out; the sentence says what was seen instead.
    pub(crate) fn ran_out(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, sentence)
    }
}

/// Returns the text of an error and its causes, joined by colons.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
