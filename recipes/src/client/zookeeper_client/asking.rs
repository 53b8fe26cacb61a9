//! Requests of a session, with what their answers prove.

use std::{future::Future, sync::Arc};

use ::zookeeper_client::{Client, Error};
use minikeeper_client::{Stamped, Zxid};

use super::{
    calls::{AtOnce, at_once},
    convert,
    session::{Session, Shared},
};
use crate::clock;

/// Makes a request of this session now.
pub(super) fn ask<T, F>(
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

/// Whatever a server answers proves that the session was alive when the request was made.
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

pub(super) fn is_answer<T>(result: &Result<T, Error>) -> bool {
    match result {
        Ok(_) => true,
        // The client itself may have found it.
        Err(Error::BadArguments(_) | Error::InvalidAcl) => false,
        Err(error) => convert::code(error).is_some(),
    }
}

/// A request that was made, with the words for its failure.
pub(super) struct Call<T> {
    op: &'static str,
    path: String,
    answer: AtOnce<(Session, Result<T, Error>)>,
}

/// Makes a request now, or as soon as there is a session again if one is over and another comes.
pub(super) fn call<T, F>(
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
    /// The answer, and the session it was asked for in.
    pub(super) async fn in_session(self) -> Result<(Session, T), minikeeper_client::Error> {
        match self.answer.await {
            (session, Ok(value)) => Ok((session, value)),
            (_, Err(error)) => Err(convert::error(self.op, &self.path, &error)),
        }
    }

    /// The answer. It counts for the epoch it was asked for in.
    pub(super) async fn answer(self) -> Result<Stamped<T>, minikeeper_client::Error> {
        let (session, value) = self.in_session().await?;
        let (zxid, epoch) = (Zxid::NONE, session.epoch);
        Ok(Stamped { value, zxid, epoch })
    }

    pub(super) async fn value(self) -> Result<T, minikeeper_client::Error> {
        Ok(self.in_session().await?.1)
    }
}
