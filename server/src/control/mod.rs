//! The control API: HTTP for tests, on the clients' port or its own.
//!
//! [`verbs()`] is the table of verbs. Routing, the description at `GET /v1/openapi.json`, the
//! command line of `minikeeper ctl` and the verbs of the packages for Python, Java and Node
//! (`server/tests/bindings` generates them) are derived from it. To add a verb, add a method to
//! [`Universe`](crate::Universe) or [`Server`](crate::Server) and a row in `control/verbs/`, which has
//! one file per family.
//!
//! A request passes the hook `Upgrade` (a client connection turns out to speak
//! HTTP) or `own_port`, then `http` (one connection, over `hyper_io`), `access` (may this client use
//! control), `routing` (which verb), `parameter` (its arguments), and the verb's handler, which acts on
//! `controls`. `admin_server` answers ZooKeeper's `/commands` and `/metrics` instead of a verb. `verb`
//! describes verbs, `views` the fields of their answers, and `openapi` renders the
//! description. `tail` streams the journal, `answer_body` counts answers that clients have not read, and
//! `error` has the status of each fault.
//!
//! Off unless [`Config::control`](crate::Config::control) enables it.

mod access;
mod admin_server;
mod answer_body;
mod controls;
mod error;
mod http;
mod hyper_io;
mod openapi;
pub(crate) mod own_port;
mod parameter;
mod routing;
mod tail;
mod verb;
pub(crate) mod verbs;

pub(crate) use self::controls::Controls;
pub use self::{
    parameter::{Parameter, ParameterKind},
    verb::{Method, Verb},
    verbs::all as verbs,
};
pub use crate::views::schema::{Field, FieldKind, Part};
