//! `GET_LOCK` of MariaDB: it locks a name for a connection until the connection releases it or
//! ends.
//!
//! Source: MariaDB's documentation of `GET_LOCK` and `RELEASE_LOCK`: times are in seconds and may
//! have fractions, names ignore case and apply to the whole server, and waiting contenders are
//! promised no order. A negative time is refused (in MySQL it means "for ever"). Checked against a
//! live server in `tests/mariadb.rs`.
//!
//! After an acquire is dropped, the server may continue to wait until it has the lock; the
//! connection then ends, and the lock with it.

use std::{net::SocketAddr, time::Duration};

use mysql_async::{Conn, Error as SqlError, prelude::Queryable as _};

use super::{
    Belief, Contender, Doing, Fairness, LockFailure, LockUnderTest, Promises, mariadb::connect,
    plain::Plain,
};
use crate::Error;

/// How long one call waits if there is no limit; it is then repeated.
const CALL_WAIT: Duration = Duration::from_secs(3_600);

/// `GET_LOCK` on a server.
#[derive(Clone, Debug)]
pub struct GetLock {
    /// The server's name in tables: `MariaDB 10.11`.
    pub server: String,
    /// The address clients connect to.
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
    /// The connection's id on the server.
    id: u32,
    /// `None` after it broke or a call on it was dropped: the lock goes with it.
    connection: Option<Conn>,
    is_held: bool,
}

impl One {
    /// Takes the connection, or opens a new one. It is taken out while in use, so that dropping a
    /// call drops it too.
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

    /// Returns whether the lock was acquired; the server measures the time.
    async fn get(&mut self, limit: Duration) -> Result<bool, LockFailure> {
        let mut connection = self.connection().await?;
        let call = (self.name.as_str(), limit.as_secs_f64());
        let reply: Result<Option<Option<i64>>, _> =
            connection.exec_first("SELECT GET_LOCK(?, ?)", call).await;
        match reply {
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
        let reply: Result<Option<Option<i64>>, _> = connection
            .exec_first("SELECT RELEASE_LOCK(?)", (self.name.as_str(),))
            .await;
        match reply {
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
