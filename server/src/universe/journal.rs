//! Reading the journal.

use std::{num::NonZero, time::Duration};

use minikeeper_core::{
    journal::{
        Copied,
        entry::JournalEntry,
        filter::{self, Expected, JournalError, JournalFilter},
    },
    work,
};

use crate::{advice::Advice, universe::Universe};

/// How long a [`JournalTail`] waits after the first new entry: those that follow at once are read
/// with it, so that a busy server is not read once a request.
const GATHERING: Duration = Duration::from_millis(10);

/// The maximum number of entries that a [`JournalTail`] reads before it lets others run.
const READ_AT_ONCE: usize = 2_000;

/// Reads the journal of a universe: what its clients did, and what happened to them.
///
/// The journal keeps what happened last, within
/// [`Config::journal_bytes`](crate::Config::journal_bytes).
impl Universe {
    /// Returns the entries that match, oldest first.
    ///
    /// # Errors
    /// [`JournalError::Off`] if the server keeps no journal.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::JournalFilter;
    /// use minikeeper_client::{Client, CreateMode};
    /// let server = minikeeper::Server::builder().manual_clock().start().await?;
    /// let client = Client::connect(&server.connect_string()).await?;
    /// client.create("/a", b"x", CreateMode::Ephemeral).await?;
    /// let creates = server.journal(&JournalFilter::new().op("create")?)?;
    /// assert!(creates[0].to_string().ends_with("/a EPHEMERAL 1 B -> OK"));
    /// # Ok(()) }
    /// ```
    pub fn journal(&self, filter: &JournalFilter) -> Result<Vec<JournalEntry>, JournalError> {
        let copied = self.copy_journal(filter.first())?;
        let matching = copied.entries().filter(|entry| filter.matches(entry));
        Ok(matching.collect())
    }

    pub(crate) fn copy_journal(&self, since: u64) -> Result<Copied, JournalError> {
        let copied = self.shared.turns.journal(|journal| journal.copy(since));
        copied.ok_or(JournalError::Off)
    }

    /// Returns the number that the next entry of the journal gets: pass it to
    /// [`JournalFilter::since`] to select what happens from here on.
    ///
    /// # Errors
    /// [`JournalError::Off`] if the server keeps no journal.
    pub fn next_journal_entry(&self) -> Result<u64, JournalError> {
        let next = self.shared.turns.journal(|journal| journal.next_number());
        next.ok_or(JournalError::Off)
    }

    /// Returns how many entries match.
    ///
    /// # Errors
    /// [`JournalError::Off`] if the server keeps no journal, and [`JournalError::Incomplete`] if
    /// entries that might match have been dropped.
    pub fn count(&self, filter: &JournalFilter) -> Result<u64, JournalError> {
        let entries = self.all_entries(filter.first())?;
        let matching = entries.iter().filter(|entry| filter.matches(entry));
        Ok(matching.count() as u64)
    }

    /// Verifies how many entries match, and returns the number. The error shows what matches, or
    /// what comes nearest.
    ///
    /// # Errors
    /// [`JournalError::Count`] if the number is not as expected, otherwise as for
    /// [`count`](Universe::count).
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::{Expected, JournalFilter};
    /// use minikeeper_client::Client;
    /// let server = minikeeper::Server::builder().manual_clock().start().await?;
    /// let client = Client::connect(&server.connect_string()).await?;
    /// client.get_data("/missing").await.unwrap_err();
    /// let reads = JournalFilter::new().op("getData")?.path("/missing")?;
    /// server.verify(&reads, Expected::Exactly(1))?;
    /// let error = server.verify(&reads, Expected::Exactly(2)).unwrap_err();
    /// assert!(error.to_string().starts_with("getData /missing: 1 found, exactly 2 expected"));
    /// # Ok(()) }
    /// ```
    pub fn verify(&self, filter: &JournalFilter, expected: Expected) -> Result<u64, JournalError> {
        let entries = self.all_entries(filter.first())?;
        filter::verify_count(filter, expected, &entries)
    }

    /// Verifies that entries match these filters in this order; others may stand between them.
    ///
    /// # Errors
    /// [`JournalError::Order`] if they do not, [`JournalError::NoFilter`] if there is no filter,
    /// otherwise as for [`count`](Universe::count).
    pub fn verify_order(&self, filters: &[JournalFilter]) -> Result<(), JournalError> {
        if filters.is_empty() {
            return Err(JournalError::NoFilter);
        }
        let first = filters.iter().map(JournalFilter::first).min().unwrap_or(0);
        let entries = self.all_entries(first)?;
        filter::verify_order(filters, &entries)
    }

    /// Finds known mistakes of clients in the journal, such as a sequential ephemeral that a lost reply would orphan.
    ///
    /// `ignored` silences rules by name, and paths by pattern; see [`Advice::of`].
    ///
    /// # Errors
    /// [`JournalError::Off`] if the server keeps no journal, otherwise as for [`Advice::of`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper_client::{Client, CreateMode};
    /// let server = minikeeper::Server::builder().start().await?;
    /// let client = Client::connect(&server.connect_string()).await?;
    /// client.create("/lock-", b"", CreateMode::EphemeralSequential).await?;
    /// let advice = server.advise(&[])?;
    /// assert_eq!(advice.findings[0].rule.name, "unprotected-sequential");
    /// println!("{advice}");
    /// # Ok(()) }
    /// ```
    pub fn advise(&self, ignored: &[&str]) -> Result<Advice, JournalError> {
        Advice::on(&mut self.copy_journal(0)?.entries(), ignored)
    }

    /// Forgets every entry. The numbers of entries continue.
    ///
    /// # Errors
    /// [`JournalError::Off`] if the server keeps no journal.
    pub fn clear_journal(&self) -> Result<(), JournalError> {
        let cleared = self.shared.turns.journal(|journal| journal.clear());
        cleared.ok_or(JournalError::Off)
    }

    /// Follows the journal: returns a reader of what happens from here on, or from the number that
    /// the filter has in [`since`](JournalFilter::since).
    ///
    /// # Errors
    /// [`JournalError::Off`] if the server keeps no journal.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::JournalFilter;
    /// use minikeeper_client::Client;
    /// let server = minikeeper::Server::builder().manual_clock().start().await?;
    /// let mut expiries = server.tail(JournalFilter::new().kind("session_expired"))?;
    /// let client = Client::connect(&server.connect_string()).await?;
    /// server.expire(client.session_id().unwrap());
    /// let entries = expiries.next(std::num::NonZero::<usize>::MIN).await?;
    /// assert_eq!(entries[0].kind(), "session_expired");
    /// # Ok(()) }
    /// ```
    pub fn tail(&self, filter: JournalFilter) -> Result<JournalTail, JournalError> {
        let now = self.next_journal_entry()?;
        let next = if filter.first() == 0 {
            now
        } else {
            filter.first()
        };
        Ok(JournalTail {
            universe: self.clone(),
            filter,
            next,
        })
    }

    /// Returns all entries from this number on, or since the journal was cleared.
    fn all_entries(&self, since: u64) -> Result<Vec<JournalEntry>, JournalError> {
        let copied = self.copy_journal(since)?;
        if copied.lacks(since) {
            let oldest = copied.oldest;
            return Err(JournalError::Incomplete { oldest });
        }
        Ok(copied.entries().collect())
    }
}

/// Reads the entries of a journal as they are made; see [`Universe::tail`].
///
/// It holds no entries back, and the server does not wait for it. If the journal drops entries that
/// it has not read, an entry of the kind `omitted` says how many.
#[derive(Debug)]
pub struct JournalTail {
    universe: Universe,
    filter: JournalFilter,
    /// The number of the next entry to read.
    next: u64,
}

impl JournalTail {
    /// Waits for entries that match. Returns them, oldest first, at most so many; none if the
    /// universe was dropped or the server has stopped.
    ///
    /// # Errors
    /// [`JournalError::Off`] if the server keeps no journal any more.
    ///
    /// # Cancel safety
    /// Cancel safe: the next call returns what this one would have.
    pub async fn next(&mut self, max: NonZero<usize>) -> Result<Vec<JournalEntry>, JournalError> {
        let universe = self.universe.clone();
        let waiting = universe.shared.turns.activity.wait();
        loop {
            // Before the look: what happens after it is not missed.
            let recorded = waiting.recorded();
            let (entries, is_at_end) = self.read(max)?;
            if !entries.is_empty() || universe.is_over() {
                return Ok(entries);
            }
            if !is_at_end {
                tokio::task::yield_now().await;
                continue;
            }
            recorded.await;
            if !universe.is_over() {
                tokio::time::sleep(GATHERING).await;
            }
        }
    }

    /// Reads some entries without waiting. Also returns whether there are no more.
    fn read(&mut self, max: NonZero<usize>) -> Result<(Vec<JournalEntry>, bool), JournalError> {
        let copied = self.universe.copy_journal(self.next)?;
        let is_behind = copied.lacks(self.next);
        let mut matching = Vec::new();
        for (read, entry) in copied.entries().enumerate() {
            if matching.len() >= max.get() || read == READ_AT_ONCE {
                return Ok((matching, false));
            }
            work::count(1);
            if is_behind && matching.is_empty() {
                matching.push(entry.omitted_before(entry.number - self.next));
            }
            self.next = entry.number + 1;
            if self.filter.matches(&entry) {
                matching.push(entry);
            }
        }
        Ok((matching, true))
    }
}
