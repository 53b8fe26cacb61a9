//! What a client sees to without anybody waiting for it.

use minikeeper_protocol::Ustring;

use crate::{
    client::Client,
    core::{cleanup::Target, outcome::Epoch},
    error::Error,
    paths,
};

impl Client {
    /// Sees to it that a znode made in this epoch goes, without waiting: in its session until it
    /// is gone, in the next once. Does nothing on a closed client, whose session is over anyway.
    ///
    /// # Errors
    /// When the path breaks a rule.
    pub fn clean_up(&self, epoch: Epoch, path: &str) -> Result<(), Error> {
        let path = paths::full(self.shared.chroot.as_ref(), path, false)?;
        self.hand_over(epoch, Target::Named(path));
        Ok(())
    }

    /// The same for a znode whose creation was not answered: any child of `parent` whose name
    /// begins with `prefix`. It is looked for in its own session only, after a sync.
    ///
    /// # Errors
    /// When the path breaks a rule.
    pub fn clean_up_unanswered(
        &self,
        epoch: Epoch,
        parent: &str,
        prefix: &str,
    ) -> Result<(), Error> {
        let parent = paths::full(self.shared.chroot.as_ref(), parent, false)?;
        let prefix = Ustring::from(prefix);
        self.hand_over(epoch, Target::Prefixed { parent, prefix });
        Ok(())
    }

    fn hand_over(&self, epoch: Epoch, target: Target) {
        self.shared
            .with_rearm(|inner, now| inner.core.clean_up(now, epoch, target));
        self.shared.flush();
    }

    /// How many clean-ups are not done yet.
    #[must_use]
    pub fn clean_ups_pending(&self) -> usize {
        self.shared.with(|inner, _| inner.core.clean_ups_pending())
    }

    /// How many clean-ups were given up because the server does not permit them.
    #[must_use]
    pub fn clean_ups_forbidden(&self) -> u64 {
        self.shared
            .with(|inner, _| inner.core.clean_ups_forbidden())
    }
}
