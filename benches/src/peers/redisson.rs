//! Redisson's RLock on Redis.
