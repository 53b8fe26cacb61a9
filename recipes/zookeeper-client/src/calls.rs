//! Requests. They are sent when a method is called, continue when the caller drops the future, and
//! their replies prove that the session is alive.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use minikeeper_client::{Stamped, Zxid};
use tokio::runtime::Handle;
use zookeeper_client::{Client, Error};

use crate::{
    clock, convert,
    session::{Session, Shared},
};

/// Makes a request in this session now.
pub(crate) fn ask<T, F>(
    shared: &Arc<Shared>,
    session: &Session,
    path: &str,
    request: impl FnOnce(Arc<Client>, String) -> F + Send + 'static,
) -> AtOnce<Result<T, Error>>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    let (shared, session) = (Arc::clone(shared), session.clone());
    let path = path.to_owned();
    at_once(async move { answer(&shared, &session, path, request).await })
}

/// Waits for the reply. Any reply proves that the session was alive when the request was made.
async fn answer<T, F>(
    shared: &Shared,
    session: &Session,
    path: String,
    request: impl FnOnce(Arc<Client>, String) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let made = clock::now();
    let result = request(Arc::clone(&session.client), path).await;
    if is_answer(&result) {
        shared.answered(session.generation, made);
    }
    result
}

pub(crate) fn is_answer<T>(result: &Result<T, Error>) -> bool {
    match result {
        Ok(_) => true,
        // The client itself may have raised these.
        Err(Error::BadArguments(_) | Error::InvalidAcl) => false,
        Err(error) => convert::code(error).is_some(),
    }
}

/// A request, with its operation and path for errors.
pub(crate) struct Call<T> {
    op: &'static str,
    path: String,
    answer: AtOnce<(Session, Result<T, Error>)>,
}

/// Makes a request now, or in the next session if the current one is over and another one follows.
pub(crate) fn call<T, F>(
    shared: &Arc<Shared>,
    op: &'static str,
    path: &str,
    request: impl FnOnce(Arc<Client>, String) -> F + Send + 'static,
) -> Call<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    let (shared, asked) = (Arc::clone(shared), path.to_owned());
    let answer = at_once(async move {
        let mut session = shared.session();
        while session.is_over {
            if !shared.renewed(&session).await {
                return (session, Err(Error::ClientClosed));
            }
            session = shared.session();
        }
        let result = answer(&shared, &session, asked, request).await;
        (session, result)
    });
    Call {
        op,
        path: path.to_owned(),
        answer,
    }
}

impl<T> Call<T> {
    /// Waits for the reply; also returns the session of the request.
    pub(crate) async fn in_session(self) -> Result<(Session, T), minikeeper_client::Error> {
        match self.answer.await {
            (session, Ok(value)) => Ok((session, value)),
            (_, Err(error)) => Err(convert::error(self.op, &self.path, &error)),
        }
    }

    /// Waits for the reply, stamped with the epoch of the request.
    pub(crate) async fn answer(self) -> Result<Stamped<T>, minikeeper_client::Error> {
        let (session, value) = self.in_session().await?;
        let (zxid, epoch) = (Zxid::NONE, session.epoch);
        Ok(Stamped { value, zxid, epoch })
    }

    pub(crate) async fn value(self) -> Result<T, minikeeper_client::Error> {
        Ok(self.in_session().await?.1)
    }
}

/// A boxed future.
pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Polls a future once, immediately.
///
/// The client sends a request when its method is called, but most of its futures borrow their
/// arguments. A future that owns the arguments sends the request at its first poll, so this
/// function makes that poll. The task that waits for the reply registers its waker with the next
/// poll.
pub(crate) fn at_once<T: Send + 'static>(
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
pub(crate) enum AtOnce<T> {
    Done(Option<T>),
    Begun(Boxed<T>),
}

// Nothing in it is pinned: the future is boxed.
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

/// A call that continues in the background when it is dropped. Then `if_dropped` handles its
/// result.
pub(crate) struct Insured<T: Send + 'static> {
    call: Option<Boxed<T>>,
    if_dropped: Option<Box<dyn FnOnce(T) + Send>>,
    runtime: Handle,
}

impl<T: Send + 'static> Insured<T> {
    pub(crate) fn new(
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
