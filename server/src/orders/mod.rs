//! Orders: in which order the requests of a run are served.
//!
//! A run in which each request waits until it is picked is a sequence of [`choices`](choice), each made
//! when no further request is coming. With a choice the events that it causes may be late, and a [`fault`] may
//! act on the request. [`explorer`] decides which order to try next; it is pure, and so is
//! [`chooser`], which makes the choices of one run. [`past`] says which orders are equivalent. [`run`] lets
//! a chooser serve the requests of a universe; for programs outside of the process [`serving`] calls it when
//! [`quiet`] finds that they only wait.

pub(crate) mod choice;
pub(crate) mod chooser;
pub(crate) mod explorer;
pub(crate) mod fault;
pub(crate) mod past;
pub(crate) mod quiet;
pub(crate) mod run;
pub(crate) mod serving;
