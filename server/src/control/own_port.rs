//! Ports that serve only control: the one in the settings, or a temporary one while the server is
//! down.

use std::{net::SocketAddr, sync::Arc};

use bytes::BytesMut;
use minikeeper_core::{
    config::Config,
    net::listener::{self, PortUse},
    start::{StartError, ports},
    state::reachability::HeldPorts,
    stream::Stream,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::control::{
    controls::Controls,
    error::{ControlError, with_causes},
    http,
};

/// Listens on the address in the settings, if there is one, and stores the actual port in them.
pub(crate) fn bind(config: &mut Config) -> Result<Option<TcpListener>, StartError> {
    let Some(wanted) = config.control.listen else {
        return Ok(None);
    };
    let (listener, address) = ports::listen(wanted, config, &HeldPorts::default())?;
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
    let entered = listener::enter(controls.shared(), &stream, peer, PortUse::Control);
    if let Some(slot) = entered {
        let parts = (Stream::Plain(stream), BytesMut::new(), slot);
        tokio::spawn(http::serve(Arc::clone(controls), parts, peer));
    }
}

/// Takes the server down. Returns the address of control while the server is down. `asked_at` is the
/// server's address on the requesting connection: that client can reach another port there too.
///
/// # Errors
/// When control cannot listen on another port, so that no request could bring the server up; nothing
/// has changed then. Or when another request has already brought the server up.
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
    let bound = ports::listen(with_port_0(asked_at), &shared.config, &HeldPorts::default());
    let (listener, address) = bound.map_err(|error| {
        let why = with_causes(&error);
        ControlError::cannot_now(format!(
            "the server stays up, since control could not bring it up again: {why}"
        ))
    })?;
    controls.go_down().await;
    let mut tasks = JoinSet::new();
    tasks.spawn(accept(listener, Arc::clone(&controls)));
    let address = shared.server.reachability.set_control_port(address, tasks);
    address.ok_or_else(|| {
        ControlError::cannot_now("the server has meanwhile come up again, or stopped")
    })
}

/// Returns the same address, including a scope, with port 0.
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
    fn temporary_port_is_at_the_same_address() {
        for (asked_at, wanted) in [
            ("127.0.0.2:2181", "127.0.0.2:0"),
            ("[::1]:2181", "[::1]:0"),
            // A socket for both families shows IPv4 connections like this.
            ("[::ffff:127.0.0.1]:2181", "127.0.0.1:0"),
            ("[fe80::1%2]:2181", "[fe80::1%2]:0"),
        ] {
            let asked_at = asked_at.parse().unwrap();
            assert_eq!(with_port_0(asked_at), wanted.parse().unwrap());
        }
    }
}
