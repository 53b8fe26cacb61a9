//! A verb: its name, parameters, answer and handler.

use std::{future::Future, net::SocketAddr, pin::Pin, sync::Arc};

use serde_json::{Value, json};

use crate::{
    control::{
        controls::Controls,
        error::ControlError,
        parameter::{Arguments, Parameter},
        tail::TailBody,
        verbs,
    },
    universe::{JournalTail, Universe},
    views::{
        json,
        schema::{Field, FieldKind},
    },
};

/// A verb of the control API, called over HTTP at `/v1/NAME`.
#[derive(Debug)]
#[non_exhaustive]
pub struct Verb {
    /// Its name, which is also that of the method in Rust.
    pub name: &'static str,
    /// The HTTP method.
    pub method: Method,
    /// What it does: a line without a full stop, then an empty line and details.
    ///
    /// Help, OpenAPI and the documentation of the packages show it. Names of verbs and parameters
    /// are in backquotes; the packages convert them to the style of their language.
    pub docs: &'static str,
    /// The parameters, in the query or as fields of the body.
    pub parameters: &'static [Parameter],
    /// The field of the answer that the command line prints alone, without JSON.
    pub plain: Option<&'static str>,
    /// The fields of its answer.
    pub answer: &'static [Field],
    pub(crate) handler: Handler,
}

impl Verb {
    /// Returns the first line of its documentation.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        self.docs.lines().next().unwrap_or_default()
    }

    /// Returns its documentation after the first line.
    #[must_use]
    pub fn details(&self) -> &'static str {
        self.docs
            .split_once("\n\n")
            .map_or("", |(_, details)| details)
    }

    /// Returns whether it applies to the whole server, so that created universes do not have it.
    #[must_use]
    pub fn is_of_the_server(&self) -> bool {
        verbs::find_of_universes(self.name).is_none()
    }

    /// Returns whether its answer goes on until the client ends it: lines with a JSON object each, as
    /// `answer` describes it, and empty lines.
    #[must_use]
    pub const fn is_stream(&self) -> bool {
        matches!(self.handler, Handler::Streams(_))
    }

    /// Returns the JSON schema of its answer.
    pub(crate) fn answer_schema(&self) -> Value {
        let schema_of = |field: &Field| (field.name, field.schema());
        let fields: Vec<_> = self.answer.iter().map(schema_of).collect();
        if !self
            .answer
            .iter()
            .any(|field| field.kind == FieldKind::Data)
        {
            return json::object(&fields);
        }
        let encoded = |field: &Field| match field.kind {
            FieldKind::Data => ("data_base64", json::text()),
            _ => schema_of(field),
        };
        let encoded: Vec<_> = self.answer.iter().map(encoded).collect();
        json!({"oneOf": [json::object(&fields), json::object(&encoded)]})
    }
}

/// The HTTP method of a [`Verb`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Only reads; parameters are in the query.
    Get,
    /// Changes something or waits; parameters are in a JSON body.
    Post,
}

/// The function of a verb.
pub(crate) enum Handler {
    /// Answers without waiting. Runs on a thread, so that no amount of work makes clients wait.
    AtOnce(fn(&Call) -> Outcome),
    /// Waits for something. Dropped when the client goes away or the server stops.
    Waits(for<'a> fn(&'a Call) -> HandlerFuture<'a>),
    /// Answers with the entries of a journal, as they are made.
    Streams(fn(&Call) -> Result<JournalTail, ControlError>),
}

/// The fields of the answer, as an object.
pub(crate) type Outcome = Result<Value, ControlError>;

pub(crate) type HandlerFuture<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// A request for a verb.
#[derive(Debug)]
pub(crate) struct Call {
    /// The universe it applies to.
    pub(crate) universe: Universe,
    pub(crate) controls: Arc<Controls>,
    /// The server's address on the connection.
    pub(crate) asked_at: SocketAddr,
    pub(crate) arguments: Arguments,
}

/// The answer of a verb.
pub(crate) enum Answer {
    /// JSON as text.
    Whole(String),
    Stream(TailBody),
}

impl Handler {
    pub(crate) async fn serve(&self, call: Call) -> Result<Answer, ControlError> {
        let text = match self {
            Self::AtOnce(serve) => {
                let serve = *serve;
                let controls = Arc::clone(&call.controls);
                let answer = move || serve(&call).map(|answer| answer.to_string());
                controls.on_thread(answer).await??
            }
            Self::Waits(serve) => serve(&call).await?.to_string(),
            Self::Streams(serve) => {
                let body = TailBody::new(serve(&call)?, Arc::clone(&call.controls))?;
                return Ok(Answer::Stream(body));
            }
        };
        Ok(Answer::Whole(text))
    }
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::AtOnce(_) => "AtOnce",
            Self::Waits(_) => "Waits",
            Self::Streams(_) => "Streams",
        })
    }
}

impl Method {
    /// Returns its name in HTTP.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}
