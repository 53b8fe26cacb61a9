//! The shared count: a number that processes read, set and watch.
//!
//! Source: `docs/curator-recipes.md` section 7; Curator's `SharedCount`.

use minikeeper_client::{Bytes, Client, Error};

use crate::{
    error::ValueError,
    values::shared_value::{SharedValue, ValueChanges, VersionedValue},
};

/// A number that processes share, compatible with Curator's class of the same name in Java.
///
/// It is a [`SharedValue`] of four bytes, the highest first. As in Java, bytes after the fourth are
/// ignored. A semaphore can use it as its maximum
/// ([`MaxLeases::Shared`](crate::MaxLeases::Shared)).
///
/// Cheap to clone. Clones share the last known value.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::SharedCount;
///
/// let tickets = SharedCount::start(client, "/tickets", 250).await?;
/// loop {
///     let before = tickets.get().await?;
///     if tickets.try_set(&before, before.value - 1).await?.is_some() {
///         break;
///     }
/// }
/// assert_eq!(tickets.get().await?.value, 249);
/// # Ok(()) });
/// ```
#[derive(Clone, Debug)]
pub struct SharedCount {
    value: SharedValue,
}

impl SharedCount {
    /// Reads the count at this path, and creates it with the seed if it is missing. See
    /// [`SharedValue::start`].
    ///
    /// # Cancel safety
    /// Same as [`SharedValue::start`].
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid, [`Error::Refused`] when a server refuses,
    /// [`Error::NotSent`] when the client is closed. A lost connection is not an error: it waits
    /// for the next connection.
    /// [`Error::CallTimedOut`] after the client's [`call_timeout`](Client::call_timeout).
    pub async fn start(client: Client, path: &str, seed: i32) -> Result<Self, Error> {
        let value = SharedValue::start(client, path, &seed.to_be_bytes()).await?;
        Ok(Self { value })
    }

    /// Returns the last known count, without a request; see [`SharedValue::current`].
    ///
    /// # Errors
    /// [`ValueError::NotACount`] when the znode does not hold a count: [`SharedCount::set`] repairs
    /// it.
    pub fn current(&self) -> Result<VersionedValue<i32>, ValueError> {
        count(self.value.path(), &self.value.current())
    }

    /// Returns the count, see [`SharedValue::get`].
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// [`ValueError::NotACount`] when the znode does not hold a count: [`SharedCount::set`] repairs
    /// it. Those of [`SharedValue::get`].
    pub async fn get(&self) -> Result<VersionedValue<i32>, ValueError> {
        count(self.value.path(), &self.value.get().await?)
    }

    /// Like [`SharedCount::get`], without a limit.
    pub(crate) async fn fresh(&self) -> Result<VersionedValue<i32>, ValueError> {
        count(self.value.path(), &self.value.fresh().await?)
    }

    /// Sets the count unconditionally, see [`SharedValue::set`].
    ///
    /// # Cancel safety
    /// Same as [`SharedValue::set`].
    ///
    /// # Errors
    /// Those of [`SharedValue::set`].
    pub async fn set(&self, new: i32) -> Result<VersionedValue<i32>, ValueError> {
        let set = self.value.set(&new.to_be_bytes()).await?;
        Ok(set.with(new))
    }

    /// Sets the count if it is unchanged, see [`SharedValue::try_set`].
    ///
    /// # Cancel safety
    /// Same as [`SharedValue::try_set`].
    ///
    /// # Errors
    /// Those of [`SharedValue::try_set`].
    pub async fn try_set(
        &self,
        previous: &VersionedValue<i32>,
        new: i32,
    ) -> Result<Option<VersionedValue<i32>>, ValueError> {
        let current = self.value.current();
        let is_current = current.mzxid == previous.mzxid
            && count(self.value.path(), &current).is_ok_and(|count| count == *previous);
        if !is_current {
            return Ok(None);
        }
        let set = self.value.try_set(&current, &new.to_be_bytes()).await?;
        Ok(set.map(|set| set.with(new)))
    }

    /// Returns a stream of later changes, see [`SharedValue::changes`].
    #[must_use]
    pub fn changes(&self) -> CountChanges {
        CountChanges {
            path: self.value.path().to_owned(),
            changes: self.value.changes(),
        }
    }

    /// Returns the path of the znode.
    #[must_use]
    pub fn path(&self) -> &str {
        self.value.path()
    }
}

fn count(path: &str, value: &VersionedValue<Bytes>) -> Result<VersionedValue<i32>, ValueError> {
    match value.value.first_chunk() {
        Some(bytes) => Ok(value.with(i32::from_be_bytes(*bytes))),
        None => Err(ValueError::NotACount {
            path: path.to_owned(),
            bytes: value.value.len(),
        }),
    }
}

/// A stream of changes of a shared count. Returned by [`SharedCount::changes`].
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::SharedCount;
///
/// let limit = SharedCount::start(client, "/limits/workers", 3).await?;
/// let mut changes = limit.changes();
/// let waiting = tokio::spawn(async move { changes.next().await });
/// limit.set(5).await?;
/// assert_eq!(waiting.await??.value, 5);
/// # Ok(()) });
/// ```
#[derive(Debug)]
pub struct CountChanges {
    path: String,
    changes: ValueChanges,
}

impl CountChanges {
    /// Waits for the next count, see [`ValueChanges::next`].
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    ///
    /// # Errors
    /// [`ValueError::NotACount`], and those of [`ValueChanges::next`].
    pub async fn next(&mut self) -> Result<VersionedValue<i32>, ValueError> {
        count(&self.path, &self.changes.next().await?)
    }
}
