//! Judges what a test does with the resources that its locks protect.

use minikeeper_core::state::resources::{ResourceError, ResourceReport};

use crate::universe::Universe;

impl Universe {
    /// Enters a resource, which the test's lock protects, until the returned value is dropped. `token` is the fencing token of the
    /// lock, if it has one: the resource refuses those that are lower than one that it has seen. The holder has a number if it has
    /// no name.
    ///
    /// [`Universe::resource`] says whether two were inside at a time. A run of a sweep in which a resource is not safe fails.
    ///
    /// # Errors
    /// When the name of the resource or of the holder is empty, or longer than 200 characters; when there are 1,000 resources, or
    /// 1,000 holders inside.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let server = minikeeper::Server::builder().start().await?;
    /// let first = server.enter("printer", Some("first"), Some(1))?;
    /// let second = server.enter("printer", Some("second"), Some(2))?;
    /// assert!(second.write() && !first.write());
    /// drop((first, second));
    /// assert_eq!(server.resource("printer").verdict, minikeeper::ResourceVerdict::Safe);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn enter(
        &self,
        resource: &str,
        holder: Option<&str>,
        token: Option<u64>,
    ) -> Result<ResourceEntry, ResourceError> {
        let number = self.resource_enter(resource, holder, token)?;
        Ok(ResourceEntry {
            universe: self.clone(),
            number,
        })
    }

    /// Says what was done to a resource, and whether it was safe: no two holders were inside at a time, or the resource has refused
    /// the lower token.
    #[must_use]
    pub fn resource(&self, name: &str) -> ResourceReport {
        self.shared.resources.lock().report(name)
    }

    /// Says what was done to each resource, and whether it was safe.
    #[must_use]
    pub fn resources(&self) -> Vec<ResourceReport> {
        self.shared.resources.lock().reports()
    }

    pub(crate) fn resource_enter(
        &self,
        resource: &str,
        holder: Option<&str>,
        token: Option<u64>,
    ) -> Result<u64, ResourceError> {
        let now = self.now().elapsed;
        (self.shared.resources.lock()).enter(resource, holder, token, now)
    }

    pub(crate) fn resource_write(&self, entry: u64) -> Result<bool, ResourceError> {
        let now = self.now().elapsed;
        self.shared.resources.lock().write(entry, now)
    }

    pub(crate) fn resource_leave(&self, entry: u64) -> Result<(), ResourceError> {
        let now = self.now().elapsed;
        self.shared.resources.lock().leave(entry, now)
    }
}

/// A holder that is inside a resource: see [`Universe::enter`]. Leaves it when dropped.
#[derive(Debug)]
#[must_use = "the holder leaves when this is dropped"]
pub struct ResourceEntry {
    universe: Universe,
    number: u64,
}

impl ResourceEntry {
    /// Writes to the resource. Returns whether that is accepted: the resource has seen no higher token.
    #[must_use]
    pub fn write(&self) -> bool {
        // It has not left, unless the sweep that it is in has begun another run.
        self.universe.resource_write(self.number).unwrap_or(false)
    }
}

impl Drop for ResourceEntry {
    fn drop(&mut self) {
        // As above.
        let _ = self.universe.resource_leave(self.number);
    }
}
