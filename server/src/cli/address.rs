//! Connects to servers that the user names.

use std::{
    io,
    net::{SocketAddr, TcpStream, ToSocketAddrs as _},
    time::Duration,
};

/// Returns the addresses that `HOST:PORT` stands for; at least one.
///
/// # Errors
/// When there is none.
pub(crate) fn resolve(server: &str) -> Result<Vec<SocketAddr>, String> {
    let sockets: Vec<_> = server
        .to_socket_addrs()
        .map_err(|error| format!("cannot resolve {server:?}: {error}; write HOST:PORT"))?
        .collect();
    if sockets.is_empty() {
        return Err(format!("cannot resolve {server:?}: no address"));
    }
    Ok(sockets)
}

/// Connects to the first of the addresses that listens: `localhost` is often two, of which a server has one.
///
/// # Errors
/// That of the last address.
pub(crate) fn connect(sockets: &[SocketAddr], limit: Duration) -> io::Result<TcpStream> {
    let mut last = io::ErrorKind::AddrNotAvailable.into();
    for socket in sockets {
        match TcpStream::connect_timeout(socket, limit) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Only the first address of a name was tried: `localhost:2181` was unreachable wherever it is ::1 first.
    #[test]
    fn address_that_listens_is_found_behind_one_that_does_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let listening = listener.local_addr().unwrap();
        // No other process can be given port 1.
        let closed = "127.0.0.1:1".parse().unwrap();
        let limit = Duration::from_secs(10);
        let stream = connect(&[closed, listening], limit).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), listening);
        assert!(connect(&[closed], limit).is_err());
    }
}
