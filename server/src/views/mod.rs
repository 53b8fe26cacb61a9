//! What is shown of locks, sessions, faults, the journal and advice: as JSON, once for verbs, stories,
//! pages and the reports of sweeps.
//!
//! [`schema`] describes the fields, from which the OpenAPI description and the types of the packages
//! are made; `json` has values that several have.

pub(crate) mod advice;
pub(crate) mod faults;
pub(crate) mod journal;
pub(crate) mod json;
pub(crate) mod locks;
pub(crate) mod schema;
pub(crate) mod sessions;
