//! Requests on their way: made when they are asked for, and seen to when nobody waits any more.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use tokio::runtime::Handle;

/// A future whose type is of no interest.
pub(super) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Begins a future at once.
///
/// The client sends a request when its method is called, but most of its futures borrow what they
/// were made from. In a future that owns all of it the request is sent at the first poll, so that
/// comes here; whoever waits for it is known to it from the second on.
pub(super) fn at_once<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> AtOnce<T> {
    let mut future: Boxed<T> = Box::pin(future);
    let mut cx = Context::from_waker(Waker::noop());
    match future.as_mut().poll(&mut cx) {
        Poll::Ready(result) => AtOnce::Done(Some(result)),
        Poll::Pending => AtOnce::Begun(future),
    }
}

/// See [`at_once`].
pub(super) enum AtOnce<T> {
    Done(Option<T>),
    Begun(Boxed<T>),
}

// Nothing in it is pinned in place: the future is behind a pointer.
impl<T> Unpin for AtOnce<T> {}

impl<T> Future for AtOnce<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match &mut *self {
            Self::Done(result) => {
                Poll::Ready(result.take().expect("a call is not polled after its end"))
            }
            Self::Begun(future) => future.as_mut().poll(cx),
        }
    }
}

/// A call that goes on when it is dropped, and whose result is seen to then.
pub(super) struct Insured<T: Send + 'static> {
    call: Option<Boxed<T>>,
    if_dropped: Option<Box<dyn FnOnce(T) + Send>>,
    runtime: Handle,
}

impl<T: Send + 'static> Insured<T> {
    pub(super) fn new(
        runtime: &Handle,
        call: impl Future<Output = T> + Send + 'static,
        if_dropped: Option<impl FnOnce(T) + Send + 'static>,
    ) -> Self {
        Self {
            call: Some(Box::pin(call)),
            if_dropped: if_dropped.map(|then| Box::new(then) as _),
            runtime: runtime.clone(),
        }
    }
}

impl<T: Send + 'static> Future for Insured<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let call = self.call.as_mut();
        let call = call.expect("a call is not polled after its end");
        let polled = call.as_mut().poll(cx);
        if polled.is_ready() {
            self.call = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Insured<T> {
    fn drop(&mut self) {
        if let (Some(call), Some(if_dropped)) = (self.call.take(), self.if_dropped.take()) {
            self.runtime.spawn(async move { if_dropped(call.await) });
        }
    }
}
