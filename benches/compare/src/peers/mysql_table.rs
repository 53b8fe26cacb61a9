//! The `resource_lock` table of MySQL, on MariaDB: a row is the lock, with its owner and count.
//! Contenders poll it every 3 ms.
//!
//! Corrected as that section describes: an insert counts as an acquire, unlock is a transaction,
//! values are bound, waits are limited, and owners are unique. Its weaknesses remain: all
//! contenders queue on the row, so that even *try* may wait for others' transactions, up to
//! `innodb_lock_wait_timeout`; a try may fail on a free lock while others insert into the same gap
//! of the index, even for another name; and [`ResourceLock::sweep`] frees locks of living owners.
//!
//! Source: `docs/curator-recipes.md` section 13.4. Checked against a live server in
//! `tests/mariadb.rs`.

use std::{net::SocketAddr, time::Duration};

use mysql_async::{Conn, Error as SqlError, prelude::Queryable as _};

use super::{Contender, Doing, Fairness, LockUnderTest, Promises, mariadb::connect};
use crate::Error;

mod owner;

use owner::is_conflict;
pub use owner::{Owner, PAUSE};

/// The largest number of characters in the name of a resource.
pub const NAME_CHARS_MAX: usize = 32;

/// How often a sweep is tried if deadlocks end it.
const SWEEPS_MAX: u32 = 100;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS bench.resource_lock (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    resource_name VARCHAR(32) NOT NULL UNIQUE,
    node_info VARCHAR(128) NOT NULL,
    count INT NOT NULL,
    description VARCHAR(128),
    create_time TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    update_time TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)
        ON UPDATE CURRENT_TIMESTAMP(6)
) ENGINE=InnoDB";

/// The table on a server.
#[derive(Clone, Debug)]
pub struct ResourceLock {
    server: String,
    durability: &'static str,
    addr: SocketAddr,
}

impl ResourceLock {
    /// The same table, reached at another address.
    #[must_use]
    pub fn at(&self, addr: SocketAddr) -> Self {
        Self {
            addr,
            ..self.clone()
        }
    }

    /// Creates the table if it does not exist. `server` is the server's name in tables: `MariaDB
    /// 10.11`; `durability` is what survives a crash of it.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses.
    pub async fn prepare(
        addr: SocketAddr,
        server: String,
        durability: &'static str,
    ) -> Result<Self, Error> {
        let table = Self {
            server,
            durability,
            addr,
        };
        let make = async {
            let mut connection = connect(addr).await?;
            connection
                .query_drop("CREATE DATABASE IF NOT EXISTS bench")
                .await?;
            connection.query_drop(TABLE).await?;
            connection.disconnect().await
        };
        make.await.map_err(|error| table.failed(&error))?;
        Ok(table)
    }

    /// Creates a contender for the lock with this name, like
    /// [`contender`](LockUnderTest::contender), but with the operations the trait lacks.
    ///
    /// # Errors
    /// If the name is longer than [`NAME_CHARS_MAX`], or the server cannot be reached.
    pub async fn owner(&self, resource: &str) -> Result<Owner, Error> {
        let chars = resource.chars().count();
        if chars > NAME_CHARS_MAX {
            return Err(Error::Setup(format!(
                "resource {resource:?}: {chars} characters exceed the table's limit of {NAME_CHARS_MAX}; \
                 give it a shorter name"
            )));
        }
        Owner::connect(self.addr, resource)
            .await
            .map_err(|error| self.failed(&error))
    }

    /// Frees every lock that was last acquired longer ago than `older_than`, by the database's
    /// clock, whether its owner lives or not. Returns their number. Nothing calls it automatically.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses, or ends each try with a deadlock.
    pub async fn sweep(&self, older_than: Duration) -> Result<u64, Error> {
        let swept = async {
            let mut connection = connect(self.addr).await?;
            let swept = sweep(&mut connection, older_than).await?;
            connection.disconnect().await?;
            Ok(swept)
        };
        swept.await.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &SqlError) -> Error {
        Error::Unexpected(format!("lock table at {}: {error}", self.addr))
    }
}

async fn sweep(connection: &mut Conn, older_than: Duration) -> Result<u64, SqlError> {
    let age_us = u64::try_from(older_than.as_micros()).unwrap_or(u64::MAX);
    let mut tries = 1;
    loop {
        let swept = connection
            .exec_drop(
                "DELETE FROM bench.resource_lock \
                 WHERE TIMESTAMPDIFF(MICROSECOND, update_time, NOW(6)) > ?",
                (age_us,),
            )
            .await;
        match swept {
            Err(error) if is_conflict(&error) && tries < SWEEPS_MAX => tries += 1,
            other => return other.map(|()| connection.affected_rows()),
        }
    }
}

impl LockUnderTest for ResourceLock {
    fn name(&self) -> String {
        format!("lock table on {}", self.server)
    }

    fn promises(&self) -> Promises {
        Promises {
            fairness: Fairness::None,
            durability: self.durability,
            death: "sweep of rows older than a limit",
            has_token: false,
        }
    }

    fn contender<'a>(&'a self, resource: &'a str) -> Doing<'a, Result<Box<dyn Contender>, Error>> {
        Box::pin(async move { Ok(Box::new(self.owner(resource).await?) as _) })
    }
}
