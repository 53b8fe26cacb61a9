//! Connections of the locks on MariaDB.

use std::net::SocketAddr;

use mysql_async::{Conn, Error, OptsBuilder};

use crate::servers::mariadb::USER;

/// How long a connection may be silent while it waits for a lock; the server's own default.
const SILENCE_LIMIT_S: usize = 28_800;

/// The server's own default.
const PACKET_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Opens a connection, over TCP as with the other peers.
pub(super) async fn connect(addr: SocketAddr) -> Result<Conn, Error> {
    let options = OptsBuilder::default()
        .ip_or_hostname(addr.ip().to_string())
        .tcp_port(addr.port())
        .user(Some(USER))
        // Otherwise it asks the server for its socket file and switches to that.
        .prefer_socket(false)
        // With known values, it asks for neither.
        .max_allowed_packet(Some(PACKET_BYTES_MAX))
        .wait_timeout(Some(SILENCE_LIMIT_S));
    Conn::new(options).await
}
