//! Ports that serve control alone: the one in the settings, or a temporary one while the server is
//! down.

use std::{net::SocketAddr, sync::Arc};

use bytes::BytesMut;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::{
    config::Config,
    control::{
        controls::Controls,
        error::{ControlError, with_causes},
        http,
    },
    net::{listener, reachability, stream::Stream},
    start::StartError,
};

/// Listens where the settings say, if they do, and writes the real port there.
pub(crate) fn bind(config: &mut Config) -> Result<Option<TcpListener>, StartError> {
    let Some(wanted) = config.control.listen else {
        return Ok(None);
    };
    let (listener, address) = reachability::bind(wanted, config)?;
    config.control.listen = Some(address);
    tracing::info!(%address, "listening for control");
    Ok(Some(listener))
}

/// Accepts until dropped.
pub(crate) async fn accept(listener: TcpListener, controls: Arc<Controls>) {
    listener::each(listener, move |stream, peer| open(&controls, stream, peer)).await;
}

fn open(controls: &Arc<Controls>, stream: TcpStream, peer: SocketAddr) {
    let peer = peer.ip().to_canonical();
    if let Some(slot) = listener::enter(controls.shared(), &stream, peer) {
        let parts = (Stream::Plain(stream), BytesMut::new(), slot);
        tokio::spawn(http::serve(Arc::clone(controls), parts, peer));
    }
}

/// Takes the server down; returns the address of control while it is down. `asked_at` is the
/// server's end of the requesting connection: that client can reach another port there too.
///
/// # Errors
/// When there would be no way back; nothing has changed then. Or when another request has brought
/// the server up already.
pub(crate) async fn go_down(
    controls: Arc<Controls>,
    asked_at: SocketAddr,
) -> Result<SocketAddr, ControlError> {
    let shared = controls.shared();
    if let Some(mut address) = shared.config.control.listen {
        if address.ip().is_unspecified() {
            address.set_ip(asked_at.ip());
        }
        controls.go_down().await;
        return Ok(address);
    }
    let bound = reachability::bind(with_port_0(asked_at), &shared.config);
    let (listener, address) = bound.map_err(|error| {
        let why = with_causes(&error);
        ControlError::cannot_now(format!(
            "the server stays up, since it would stay down: {why}"
        ))
    })?;
    controls.go_down().await;
    let mut tasks = JoinSet::new();
    tasks.spawn(accept(listener, Arc::clone(&controls)));
    let address = shared.server.reachability.set_control_port(address, tasks);
    address.ok_or_else(|| {
        ControlError::cannot_now("the server has come up again meanwhile, or stopped")
    })
}

/// A port of its own at the same address, its scope included where it has one.
fn with_port_0(mut address: SocketAddr) -> SocketAddr {
    address.set_port(0);
    match address.ip().to_canonical() {
        ip if ip.is_ipv4() => SocketAddr::new(ip, 0),
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn side_entrance_is_at_the_same_address() {
        for (asked_at, wanted) in [
            ("127.0.0.2:2181", "127.0.0.2:0"),
            ("[::1]:2181", "[::1]:0"),
            // A socket for both families has connections of IPv4 so.
            ("[::ffff:127.0.0.1]:2181", "127.0.0.1:0"),
            ("[fe80::1%2]:2181", "[fe80::1%2]:0"),
        ] {
            let asked_at = asked_at.parse().unwrap();
            assert_eq!(with_port_0(asked_at), wanted.parse().unwrap());
        }
    }
}
