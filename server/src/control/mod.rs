//! The verbs of a test over HTTP, on the clients' own port or another.
//!
//! One table says which verbs there are: [`verbs()`]. Routing, the description that
//! `GET /v1/openapi.json` gives and the help of `minikeeper ctl` all come from it. A new verb is an
//! entry in a file of `control/verbs/`, one file a family.
//!
//! Off unless [`Config::control`](crate::Config::control) says otherwise.

mod access;
mod controls;
mod error;
pub(crate) mod handover;
mod http;
mod hyper_io;
mod json;
mod openapi;
pub(crate) mod own_port;
mod parameter;
mod routing;
mod verb;
mod verbs;

pub(crate) use self::{controls::Controls, handover::Handover};
pub use self::{
    parameter::{Parameter, ParameterKind},
    verb::{Field, FieldKind, Method, Verb},
    verbs::all as verbs,
};
