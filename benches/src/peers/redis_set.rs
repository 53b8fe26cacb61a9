//! `SET NX PX` with polling on Redis.
