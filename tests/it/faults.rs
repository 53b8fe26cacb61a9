//! Injected faults, over sockets and in-process: both must behave the same.

mod client;
mod concurrency;
mod delays;
mod events;
mod late;
mod lifetime;
mod outages;
mod recovery;
mod requests;
mod sessions;
