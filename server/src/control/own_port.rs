//! Ports where nothing but control is served: one that the settings name, or one that is there
//! while the server is down.

use std::{net::SocketAddr, sync::Arc};

use bytes::BytesMut;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::{
    config::Config,
    control::{controls::Controls, http},
    net::{listener, listening, stream::Stream},
    start::StartError,
};

/// Listens where the settings say, if they do, and writes the real port there.
pub(crate) fn bind(config: &mut Config) -> Result<Option<TcpListener>, StartError> {
    let Some(wanted) = config.control.listen else {
        return Ok(None);
    };
    let (listener, address) = listening::bind(wanted, config)?;
    config.control.listen = Some(address);
    tracing::info!(%address, "listening for control");
    Ok(Some(listener))
}

/// Accepts from here on, on the calling runtime.
pub(crate) fn serve(listener: TcpListener, controls: Arc<Controls>) -> JoinHandle<()> {
    let open = move |stream, peer| open(&controls, stream, peer);
    tokio::spawn(listener::each(listener, open))
}

fn open(controls: &Arc<Controls>, stream: TcpStream, peer: SocketAddr) {
    let peer = peer.ip().to_canonical();
    if let Some(slot) = listener::enter(controls.shared(), &stream, peer) {
        let parts = (Stream::Plain(stream), BytesMut::new(), slot);
        tokio::spawn(http::serve(Arc::clone(controls), parts, peer));
    }
}
