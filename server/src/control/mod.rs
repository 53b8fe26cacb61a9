//! The verbs of a test over HTTP, on the clients' own port or another.
//!
//! One table says which verbs there are: [`verbs()`]. Routing, the description that
//! `GET /v1/openapi.json` gives and the help of `minikeeper ctl` all come from it. A new verb is an
//! entry in a file of `control/verbs/`, one file a family.
//!
//! Off unless [`Config::control`](crate::Config::control) says otherwise.

mod access;
mod arguments;
mod carrier;
mod controls;
mod fault;
pub(crate) mod first_bytes;
mod going_down;
mod handover;
mod http;
mod json;
mod openapi;
pub(crate) mod own_port;
mod parameter;
mod query;
mod routing;
mod schema;
mod snapshots;
mod timer;
mod verb;
mod verbs;

pub(crate) use self::{controls::Controls, handover::Handover};
pub use self::{
    parameter::{Kind, Parameter},
    verb::{Method, Verb},
    verbs::all as verbs,
};
