//! One verb: how it is called, what it takes, what it does.

use std::{future::Future, net::SocketAddr, pin::Pin, sync::Arc};

use serde_json::Value;

use crate::{
    control::{
        controls::Controls,
        error::ControlError,
        parameter::{Arguments, Parameter},
    },
    universe::Universe,
};

/// A verb of a test, as it is called over HTTP: `/v1/NAME`.
#[derive(Debug)]
#[non_exhaustive]
pub struct Verb {
    /// Its name, that of the method in Rust.
    pub name: &'static str,
    /// How it is called.
    pub method: Method,
    /// What it does, in a line.
    pub summary: &'static str,
    /// What it takes: in the query, or as the fields of the body.
    pub parameters: &'static [Parameter],
    /// The field of the answer that people want to see as it is, without the JSON around it.
    pub plain: Option<&'static str>,
    /// The JSON schema of its answer.
    pub(crate) answer: fn() -> Value,
    pub(crate) handler: Handler,
}

/// The method of HTTP that a [`Verb`] is called with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Only reads; parameters are in the query.
    Get,
    /// Changes something or waits; parameters are in a JSON body.
    Post,
}

/// What a verb does.
pub(crate) enum Handler {
    /// Done when it returns.
    AtOnce(fn(&Call) -> Outcome),
    /// Waits for something. Dropped when the client goes away or the server stops.
    Waits(for<'a> fn(&'a Call) -> HandlerFuture<'a>),
}

/// The fields of the answer, as an object.
pub(crate) type Outcome = Result<Value, ControlError>;

pub(crate) type HandlerFuture<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// A request for a verb.
#[derive(Debug)]
pub(crate) struct Call {
    /// The one it is about.
    pub(crate) universe: Universe,
    pub(crate) controls: Arc<Controls>,
    /// The server's end of the connection it came over.
    pub(crate) asked_at: SocketAddr,
    pub(crate) arguments: Arguments,
}

impl Handler {
    pub(crate) async fn serve(&self, call: &Call) -> Outcome {
        match self {
            Self::AtOnce(serve) => serve(call),
            Self::Waits(serve) => serve(call).await,
        }
    }
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::AtOnce(_) => "AtOnce",
            Self::Waits(_) => "Waits",
        })
    }
}

impl Method {
    /// As HTTP names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}
