//! Detects connections that speak HTTP and hands them over.

use std::{
    future::Future,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use crate::{net::socket::SocketTask, state::upgrade::Upgrade};

/// The task of a connection that may turn out to speak HTTP: until then, a client connection's task.
#[derive(Debug)]
pub(crate) struct Handover {
    /// `None` once the task has ended.
    task: Option<SocketTask>,
    upgrade: Arc<dyn Upgrade>,
    peer: IpAddr,
}

impl Handover {
    pub(crate) const fn new(task: SocketTask, upgrade: Arc<dyn Upgrade>, peer: IpAddr) -> Self {
        Self {
            task: Some(task),
            upgrade,
            peer,
        }
    }
}

impl Future for Handover {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(task) = &mut self.task else {
            return Poll::Ready(());
        };
        let end = ready!(Pin::new(task).poll(cx));
        if let Some(task) = self.task.take()
            && end.is_http()
        {
            let (stream, read, slot) = task.into_parts();
            Arc::clone(&self.upgrade).serve(stream, read, slot, self.peer);
        }
        Poll::Ready(())
    }
}

/// The first four bytes of each method's name, including the space after short ones. Read as the
/// length of a handshake, each would be more than a gigabyte.
const METHODS: [&[u8; 4]; 10] = [
    b"GET ", b"POST", b"HEAD", b"PUT ", b"DELE", b"OPTI", b"PATC", b"TRAC", b"CONN", b"QUER",
];

/// Returns whether the start of a connection's input is HTTP.
pub(crate) fn are_http(input: &[u8]) -> bool {
    input
        .first_chunk::<4>()
        .is_some_and(|first| METHODS.contains(&first))
}
