//! Owners of rows of the lock table.

use std::{
    fs,
    net::SocketAddr,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use mysql_async::{Conn, Error as SqlError, Transaction, TxOpts, prelude::Queryable as _};

use crate::{
    clock::Deadline,
    peers::{Belief, LockFailure, mariadb::connect, plain::Plain},
};

/// How long an owner waits before it tries again.
pub const PAUSE: Duration = Duration::from_millis(3);

const SELECT: &str =
    "SELECT node_info, count FROM bench.resource_lock WHERE resource_name = ? FOR UPDATE";
const INSERT: &str = "INSERT INTO bench.resource_lock (resource_name, node_info, count, description) \
     VALUES (?, ?, 1, 'lock bench')";
const COUNT: &str = "UPDATE bench.resource_lock SET count = ? WHERE resource_name = ?";
const DELETE: &str = "DELETE FROM bench.resource_lock WHERE resource_name = ?";
const DELETE_OWN: &str =
    "DELETE FROM bench.resource_lock WHERE resource_name = ? AND node_info = ?";

/// The largest number of deadlocks in an unlock.
const CONFLICTS_MAX: u32 = 1_000;

/// A contender for a lock of the table, which is re-entrant.
#[derive(Debug)]
pub struct Owner {
    addr: SocketAddr,
    resource: String,
    node_info: String,
    /// `None` after it broke or a call on it was dropped.
    connection: Option<Conn>,
    /// A commit or an unlock has begun, and its outcome is unknown: the row may exist, with any
    /// count.
    is_in_doubt: bool,
    /// How often the lock is held, as far as known.
    holds: u32,
}

/// The result of a lock or an unlock before the commit.
enum Found {
    /// It is done and must be committed.
    Done,
    /// The row belongs to another owner or, for an unlock, does not exist.
    NotMine,
}

impl Owner {
    pub(super) async fn connect(addr: SocketAddr, resource: &str) -> Result<Self, SqlError> {
        Ok(Self {
            addr,
            resource: resource.to_owned(),
            node_info: node_info(addr),
            connection: Some(connect(addr).await?),
            is_in_doubt: false,
            holds: 0,
        })
    }

    /// Tries once, in one transaction; returns whether the lock is held now. If it was held
    /// already, it counts one more hold.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses.
    pub async fn lock_once(&mut self) -> Result<bool, LockFailure> {
        let mut connection = self.connection().await?;
        // Dropping this half-way drops the connection, which undoes uncommitted changes.
        let begun = self.enter(&mut connection).await;
        match &begun {
            Ok(is_held) => self.holds += u32::from(*is_held),
            Err(_) if self.is_in_doubt => self.holds = 0,
            Err(_) => {}
        }
        self.keep(connection, begun)
    }

    /// Reads from the table how often it is held; `None` if it is not.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses.
    pub async fn count(&mut self) -> Result<Option<u32>, LockFailure> {
        let mut connection = self.connection().await?;
        let count = connection
            .exec_first(
                "SELECT count FROM bench.resource_lock WHERE resource_name = ? AND node_info = ?",
                (&self.resource, &self.node_info),
            )
            .await
            .map_err(not_held);
        self.keep(connection, count)
    }

    /// The server's id for its connection, while it has one.
    #[must_use]
    pub fn connection_id(&self) -> Option<u32> {
        self.connection.as_ref().map(Conn::id)
    }

    /// Takes the connection, or opens a new one, and undoes a commit in doubt. The connection is
    /// taken out while in use.
    async fn connection(&mut self) -> Result<Conn, LockFailure> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(self.addr).await.map_err(not_held)?,
        };
        let mut conflicts = 0;
        while self.is_in_doubt {
            let own = (&self.resource, &self.node_info);
            // It waits for the transaction in doubt if the server still has it.
            match connection.exec_drop(DELETE_OWN, own).await {
                Ok(()) => self.is_in_doubt = false,
                Err(error) if is_conflict(&error) && conflicts < CONFLICTS_MAX => {
                    conflicts += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(LockFailure::Unknown(error.to_string())),
            }
        }
        Ok(connection)
    }

    /// Puts the connection back after a success. After a failure a new one is cheaper than checking
    /// whether this one still works.
    fn keep<T>(
        &mut self,
        connection: Conn,
        done: Result<T, LockFailure>,
    ) -> Result<T, LockFailure> {
        if done.is_ok() {
            self.connection = Some(connection);
        }
        done
    }

    async fn enter(&mut self, connection: &mut Conn) -> Result<bool, LockFailure> {
        let mut entry = begin(connection).await?;
        match self.lock_row(&mut entry).await {
            Ok(Found::Done) => self.commit(entry).await.map(|()| true),
            Ok(Found::NotMine) => roll_back(entry).await.map(|()| false),
            Err(error) if is_conflict(&error) => roll_back(entry).await.map(|()| false),
            Err(error) => Err(not_held(error)),
        }
    }

    /// Releases once; returns whether there was a hold. After an error the row may still exist.
    async fn leave(&mut self) -> Result<bool, LockFailure> {
        let mut connection = self.connection().await?;
        for _ in 0..CONFLICTS_MAX {
            let mut exit = begin(&mut connection).await?;
            let is_mine = match self.unlock_row(&mut exit).await {
                Ok(Found::Done) => self.commit(exit).await.map(|()| true)?,
                Ok(Found::NotMine) => roll_back(exit).await.map(|()| false)?,
                // The row belongs to this owner and remains: it must still be released.
                Err(error) if is_conflict(&error) => {
                    roll_back(exit).await?;
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                Err(error) => return Err(not_held(error)),
            };
            self.connection = Some(connection);
            return Ok(is_mine);
        }
        Err(LockFailure::Unknown(format!(
            "{CONFLICTS_MAX} tries ended with a deadlock"
        )))
    }

    async fn lock_row(&self, entry: &mut Transaction<'_>) -> Result<Found, SqlError> {
        let resource = &self.resource;
        let row: Option<(String, u32)> = entry.exec_first(SELECT, (resource,)).await?;
        match row {
            None => entry.exec_drop(INSERT, (resource, &self.node_info)).await?,
            Some((owner, count)) if owner == self.node_info => {
                entry.exec_drop(COUNT, (count + 1, resource)).await?;
            }
            Some(_) => return Ok(Found::NotMine),
        }
        Ok(Found::Done)
    }

    async fn unlock_row(&self, exit: &mut Transaction<'_>) -> Result<Found, SqlError> {
        let resource = &self.resource;
        let row: Option<(String, u32)> = exit.exec_first(SELECT, (resource,)).await?;
        match row {
            Some((owner, count)) if owner == self.node_info => {
                if count > 1 {
                    exit.exec_drop(COUNT, (count - 1, resource)).await?;
                } else {
                    exit.exec_drop(DELETE, (resource,)).await?;
                }
                Ok(Found::Done)
            }
            _ => Ok(Found::NotMine),
        }
    }

    async fn commit(&mut self, transaction: Transaction<'_>) -> Result<(), LockFailure> {
        self.is_in_doubt = true;
        match transaction.commit().await {
            Ok(()) => {
                self.is_in_doubt = false;
                Ok(())
            }
            Err(error) => Err(LockFailure::Unknown(error.to_string())),
        }
    }
}

async fn begin(connection: &mut Conn) -> Result<Transaction<'_>, LockFailure> {
    let begun = connection.start_transaction(TxOpts::default()).await;
    begun.map_err(not_held)
}

/// Needed even after a deadlock, because the client does not know that the server rolled back.
async fn roll_back(transaction: Transaction<'_>) -> Result<(), LockFailure> {
    transaction.rollback().await.map_err(not_held)
}

/// Nothing is held, as uncommitted changes are undone.
fn not_held(error: SqlError) -> LockFailure {
    LockFailure::NotHeld(error.to_string())
}

/// Returns whether another contender was first: a deadlock (1213: two that found no row share its
/// gap, and both insert), too long a wait (1205), or a row that exists now (1062).
pub(super) fn is_conflict(error: &SqlError) -> bool {
    matches!(error, SqlError::Server(error) if matches!(error.code, 1213 | 1205 | 1062))
}

/// Machine, thread, process and a number within it, in at most 128 characters. A process id may be
/// used again, but not with the same start time while the machine runs.
fn node_info(addr: SocketAddr) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let thread = std::thread::current();
    let thread: String = thread.name().unwrap_or("-").chars().take(32).collect();
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in brackets, may have spaces; the start is the 20th word after it.
    let words = stat.rsplit(')').next().unwrap_or_default();
    let start = words.split_whitespace().nth(19).unwrap_or("0");
    let machine = addr.ip();
    format!("{machine}/{thread}/{}-{start}/{number}", std::process::id())
}

impl Plain for Owner {
    /// The owner in the table.
    fn session(&self) -> String {
        self.node_info.clone()
    }

    async fn lock(&mut self, limit: Option<Duration>) -> Result<bool, LockFailure> {
        let deadline = limit.map(|limit| Deadline::new(limit, "lock"));
        loop {
            if self.lock_once().await? {
                return Ok(true);
            }
            let left = deadline.as_ref().map_or(Duration::MAX, Deadline::left);
            if left.is_zero() {
                return Ok(false);
            }
            tokio::time::sleep(PAUSE.min(left)).await;
        }
    }

    /// Nothing notifies it of a loss.
    fn belief(&self) -> Belief {
        if self.holds > 0 {
            Belief::NoAnswer
        } else {
            Belief::Lost
        }
    }

    async fn unlock(&mut self) -> Result<(), LockFailure> {
        match self.leave().await {
            Ok(true) => {
                self.holds = self.holds.saturating_sub(1);
                Ok(())
            }
            Ok(false) => {
                self.holds = 0;
                Err(LockFailure::NotHeld(
                    "its row is gone, or belongs to another owner".into(),
                ))
            }
            Err(LockFailure::NotHeld(reason) | LockFailure::Unknown(reason)) => {
                // The outer holds are lost too: the row is deleted before the next call.
                self.holds = 0;
                self.is_in_doubt = true;
                Err(LockFailure::Unknown(reason))
            }
        }
    }
}
