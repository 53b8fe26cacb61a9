//! `GET_LOCK` of MariaDB: a name is locked for a connection, and free when that releases it or
//! ends.
//!
//! Source: MariaDB's documentation of `GET_LOCK` and `RELEASE_LOCK`: times are in seconds and may
//! have fractions, names ignore case and are the whole server's, waiting contenders are promised no
//! order. A negative time is refused (MySQL takes it for "for ever"). Checked against a live server
//! in `tests/mariadb.rs`.
//!
//! An acquire that is dropped may go on in the server until it has the lock; its connection ends
//! then, and the lock with it.

use std::{net::SocketAddr, time::Duration};

use mysql_async::{Conn, Error as SqlError, prelude::Queryable as _};

use super::{
    Belief, Contender, Doing, Fairness, LockFailure, LockUnderTest, Promises, mariadb::connect,
    plain::Plain,
};
use crate::Error;

/// How long one call waits when there is no limit; it is then repeated.
const CALL_WAIT: Duration = Duration::from_secs(3_600);

/// `GET_LOCK` on a server.
#[derive(Clone, Debug)]
pub struct GetLock {
    /// What it stands on, as in tables: `MariaDB 10.11`.
    pub server: String,
    /// Where clients reach it.
    pub addr: SocketAddr,
}

impl LockUnderTest for GetLock {
    fn name(&self) -> String {
        format!("GET_LOCK on {}", self.server)
    }

    fn promises(&self) -> Promises {
        Promises {
            fairness: Fairness::None,
            durability: "nothing, it ends with its connection",
            death: "end of the connection, as the server sees it",
            has_token: false,
        }
    }

    fn contender<'a>(&'a self, resource: &'a str) -> Doing<'a, Result<Box<dyn Contender>, Error>> {
        Box::pin(async move {
            let connection = connect(self.addr).await.map_err(|error| {
                Error::Unexpected(format!("cannot connect to {}: {error}", self.addr))
            })?;
            Ok(Box::new(One {
                addr: self.addr,
                name: format!("bench/{resource}"),
                id: connection.id(),
                connection: Some(connection),
                is_held: false,
            }) as _)
        })
    }
}

struct One {
    addr: SocketAddr,
    name: String,
    /// The connection's, for the server.
    id: u32,
    /// None after it broke, or when a call on it was abandoned: the lock goes with it.
    connection: Option<Conn>,
    is_held: bool,
}

impl One {
    /// The connection, or a new one. Out of its place while it is used: who drops a call in between
    /// drops it too.
    async fn connection(&mut self) -> Result<Conn, LockFailure> {
        if let Some(connection) = self.connection.take() {
            return Ok(connection);
        }
        let connection = connect(self.addr)
            .await
            .map_err(|error| LockFailure::NotHeld(error.to_string()))?;
        self.id = connection.id();
        Ok(connection)
    }

    /// Whether it was got; the server counts the time.
    async fn get(&mut self, limit: Duration) -> Result<bool, LockFailure> {
        let mut connection = self.connection().await?;
        let call = (self.name.as_str(), limit.as_secs_f64());
        let answer: Result<Option<Option<i64>>, _> =
            connection.exec_first("SELECT GET_LOCK(?, ?)", call).await;
        match answer {
            Ok(got) => {
                self.connection = Some(connection);
                match got.flatten() {
                    Some(1) => {
                        self.is_held = true;
                        Ok(true)
                    }
                    Some(0) => Ok(false),
                    other => Err(LockFailure::NotHeld(format!("GET_LOCK returned {other:?}"))),
                }
            }
            Err(error @ SqlError::Server(_)) => {
                self.connection = Some(connection);
                Err(LockFailure::NotHeld(error.to_string()))
            }
            // The server may have locked it before it noticed the lost connection.
            Err(error) => Err(LockFailure::Unknown(error.to_string())),
        }
    }
}

impl Plain for One {
    fn session(&self) -> String {
        self.id.to_string()
    }

    async fn lock(&mut self, limit: Option<Duration>) -> Result<bool, LockFailure> {
        let call_wait = limit.unwrap_or(CALL_WAIT);
        loop {
            let is_held = self.get(call_wait).await?;
            if is_held || limit.is_some() {
                return Ok(is_held);
            }
        }
    }

    fn belief(&self) -> Belief {
        if self.is_held {
            Belief::NoAnswer
        } else {
            Belief::Lost
        }
    }

    async fn unlock(&mut self) -> Result<(), LockFailure> {
        let was_held = std::mem::take(&mut self.is_held);
        let Some(mut connection) = self.connection.take() else {
            return Err(LockFailure::NotHeld("its connection is gone".into()));
        };
        let answer: Result<Option<Option<i64>>, _> = connection
            .exec_first("SELECT RELEASE_LOCK(?)", (self.name.as_str(),))
            .await;
        match answer {
            Ok(released) => {
                self.connection = Some(connection);
                match released.flatten() {
                    Some(1) => Ok(()),
                    Some(_) => Err(LockFailure::NotHeld("another connection has it".into())),
                    None => Err(LockFailure::NotHeld("it is free".into())),
                }
            }
            Err(error) if was_held => Err(LockFailure::Unknown(error.to_string())),
            Err(error) => Err(LockFailure::NotHeld(error.to_string())),
        }
    }
}
