//! The tests that `docs/testing` shows. They run in real time, as a user's tests do.

mod leader_expiry;
mod lost_reply;
mod production_data;
mod reconnect;
mod time_travel;
