//! Common parts of the locks on Redis: connections of contenders, names of holds, and the meaning
//! of failures.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ErrorKind, IntoConnectionInfo as _,
    ProtocolVersion, PushInfo, RedisConnectionInfo, RedisError, RedisResult,
    aio::MultiplexedConnection, io::tcp::TcpSettings,
};

use super::LockFailure;
use crate::{Error, clock::now_ns};

/// How long a reply may take before the outcome counts as unknown. Redisson's default.
pub(super) const REPLY_LIMIT: Duration = Duration::from_secs(3);

/// Keys: lock. Arguments: value. Returns 1 if the lock had this value.
pub(super) const DELETE_IF_MINE: &str = "
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0
";

/// A command that sets a key with an expiry unless there is one. Its reply says whether it did.
pub(super) fn set_if_absent(key: &str, value: &str, ttl: Duration) -> Cmd {
    let mut command = redis::cmd("SET");
    command.arg(key).arg(value).arg("NX");
    command.arg("PX").arg(millis(ttl));
    command
}

/// Opens a connection for commands.
pub(super) async fn connect(addr: SocketAddr) -> RedisResult<MultiplexedConnection> {
    open(addr, ProtocolVersion::RESP2, AsyncConnectionConfig::new()).await
}

/// Opens a connection for messages: the task that reads them calls `received` with each, which must
/// not block.
pub(super) async fn connect_for_messages(
    addr: SocketAddr,
    received: impl Fn(PushInfo) + Send + Sync + 'static,
) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new().set_push_sender(move |info| {
        received(info);
        Ok::<(), ()>(())
    });
    open(addr, ProtocolVersion::RESP3, config).await
}

async fn open(
    addr: SocketAddr,
    protocol: ProtocolVersion,
    config: AsyncConnectionConfig,
) -> RedisResult<MultiplexedConnection> {
    let info = ConnectionAddr::Tcp(addr.ip().to_string(), addr.port())
        .into_connection_info()?
        .set_redis_settings(RedisConnectionInfo::default().set_protocol(protocol))
        // A command is one small write; with Nagle's algorithm it would wait for an
        // acknowledgement.
        .set_tcp_settings(TcpSettings::default().set_nodelay(true));
    let config = config
        .set_connection_timeout(Some(REPLY_LIMIT))
        .set_response_timeout(Some(REPLY_LIMIT));
    Client::open(info)?
        .get_multiplexed_async_connection_with_config(&config)
        .await
}

/// Returns a text that is unique on this machine: process id, a counter, time.
pub(super) fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{number:x}-{:x}", std::process::id(), now_ns())
}

/// A time to live for Redis: whole milliseconds, at least one.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis())
        .unwrap_or(u64::MAX)
        .max(1)
}

/// The error of a contender that cannot be set up.
pub(super) fn setup_failed(addr: SocketAddr, error: &RedisError) -> Error {
    Error::Unexpected(format!("Redis on {addr}: {error}"))
}

/// A server that replies with an error has done nothing; after any other failure it may have
/// carried out the command.
impl From<RedisError> for LockFailure {
    fn from(error: RedisError) -> Self {
        match error.kind() {
            ErrorKind::Server(_) => Self::NotHeld(error.to_string()),
            _ => Self::Unknown(error.to_string()),
        }
    }
}
